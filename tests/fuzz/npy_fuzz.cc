// Parses an .npy file in memory.
#include <span>

#include "io/arrays/npy.h"
#include "tests/fuzz/reading.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace syncline::io;
  read_or_refuse([&] { parse_npy("fuzzed", std::as_bytes(std::span(data, size))); });
  return 0;
}
