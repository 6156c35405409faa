// Event files: what TensorBoard reads. Numbers by name ("scalars"), each with a step and the time it was written at, in
// one file a process: events.out.tfevents.<seconds>.<host>.<process>. TensorBoard reads all files of a folder in the
// order of their names as one run, and the folders beside each other as runs to compare.
//
// The format is TFRecord frames around protobuf messages, of which scalars need five; docs/design.md says why they are
// written here by hand. Values are float32 there.
//
// Events are held back until flush(). For one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io/files/append_file.h"

namespace syncline::io {

class EventFile {
 public:
  // Makes a new file in the folder, which is made if it is missing with all above it. Readers forget what earlier files
  // of the folder say of `first_step` and later ones: those steps are done again. Throws IoError.
  EventFile(const std::string& folder, std::int64_t first_step);

  const std::string& path() const { return file_.path(); }
  void add_scalar(std::string_view name, std::int64_t step, double value);
  // How many bytes are held back.
  std::size_t held() const { return records_.size(); }
  // Throws IoError if they cannot be written; they are dropped then, and the file ends with a whole event all the same.
  void flush();

 private:
  void add_record(std::string_view event);

  AppendFile file_;
  std::string records_;
};

// CRC-32C (Castagnoli), which guards the frames.
std::uint32_t crc32c(std::string_view bytes);

}  // namespace syncline::io
