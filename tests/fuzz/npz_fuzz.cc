// Makes a checkpoint from the arrays of an .npz file.
#include "io/arrays/checkpoint_outline.h"
#include "io/arrays/npz.h"
#include "tests/fuzz/reading.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace syncline::io;
  const std::string path = file_of(data, size);
  read_or_refuse([&] { checkpoint_of(path, *open_npz(path)); });
  return 0;
}
