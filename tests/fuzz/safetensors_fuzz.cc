// Makes a checkpoint from the arrays of a .safetensors file.
#include "io/arrays/checkpoint_outline.h"
#include "io/arrays/safetensors.h"
#include "tests/fuzz/reading.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace syncline::io;
  const std::string path = file_of(data, size);
  read_or_refuse([&] { checkpoint_of(path, *open_safetensors(path)); });
  return 0;
}
