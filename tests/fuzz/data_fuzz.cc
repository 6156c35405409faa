// Reads the first thousand rows of a data set, whose bytes determine the format: CSV, IDX, npy, npz or HDF5.
#include <algorithm>

#include "syncline/data/open_source.h"
#include "tests/fuzz/reading.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace syncline::io;
  const std::string path = file_of(data, size);
  read_or_refuse([&] {
    const auto source = open_source(path, {.memory = 1 << 20});
    // Rows may have no bytes; then only the header limits their number.
    source->read_range(0, std::min<std::int64_t>(source->rows(), 1000));
  });
  return 0;
}
