// Dump: writes the schedule after each pass as text, for SYNCLINE_DUMP_PLAN=folder.
#pragma once

#include <filesystem>

#include "runtime/schedule/schedule.h"

namespace syncline {

// Writes folder/<rank>-<plan number>-<function>/<pass number>-<pass>.txt. Does nothing if the variable is unset. Throws
// IoError if a file cannot be written.
class Dump {
 public:
  explicit Dump(const Schedule& schedule);
  void write(const char* pass, const Schedule& schedule);

 private:
  std::filesystem::path folder_;  // empty: disabled
  int passes_ = 0;
};

}  // namespace syncline
