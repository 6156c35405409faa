// Summarizes, loads and verifies a checkpoint, and reads it array by array.
#include "io/arrays/array_file.h"
#include "syncline/checkpoint/checkpoint.h"
#include "tests/fuzz/reading.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace syncline::io;
  const std::string path = file_of(data, size);
  const bool opens = read_or_refuse([&] { summarize_checkpoint(path); });
  const bool loads = read_or_refuse([&] { load_checkpoint(path); });
  // load_checkpoint must succeed exactly if verify_checkpoint finds no problems; one shard alone is no checkpoint.
  const VerifyReport report = verify_checkpoint(path);
  const bool whole = report.problems.empty() && !report.is_shard;
  if (loads != whole) syncline::fail<syncline::InternalError>("loads: ", loads, ", whole: ", whole);
  // Other formats have targets of their own.
  if (opens)
    read_or_refuse([&] {
      const auto file = open_array_file(path);
      for (std::size_t i = 0; i < file->entries().size(); ++i) file->read(i);
    });
  return 0;
}
