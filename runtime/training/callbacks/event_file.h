// EventFile: a TensorBoard event file. It holds scalars, each with a name, a step and a wall time, in one file per
// process: events.out.tfevents.<seconds>.<host>.<process>. TensorBoard reads all files of a folder, in the order of
// their names, as one run, and sibling folders as runs to compare.
//
// The format is TFRecord frames around protobuf messages. Scalars need few of them; docs/libraries.md says why this
// file encodes them by hand. Values are stored as float32.
//
// Events are buffered until flush(). For one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io/files/append_file.h"

namespace syncline::io {

class EventFile {
 public:
  // Creates a new file in the folder, and the folder and its parents if they are missing. Readers drop the events of
  // earlier files from `first_step` on, because a resumed run repeats those steps. Throws IoError.
  EventFile(const std::string& folder, std::int64_t first_step);

  const std::string& path() const { return file_.path(); }
  void add_scalar(std::string_view name, std::int64_t step, double value);
  // Buffered bytes.
  std::size_t held() const { return records_.size(); }
  // Writes the buffered events. Throws IoError on failure; the events are dropped and the file still ends with a whole
  // event.
  void flush();

 private:
  void add_record(std::string_view event);

  AppendFile file_;
  std::string records_;
};

// CRC-32C (Castagnoli), the checksum of the frames.
std::uint32_t crc32c(std::string_view bytes);

}  // namespace syncline::io
