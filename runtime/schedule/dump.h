// SYNCLINE_DUMP_PLAN=folder: the schedule behind each pass, for people.
#pragma once

#include <filesystem>

#include "runtime/schedule/schedule.h"

namespace syncline {

// Writes to folder/<rank>-<number of the plan>-<function>/<number of the pass>-<pass>.txt, and does nothing where the
// variable is not set. Throws IoError where a file cannot be written.
class Dump {
 public:
  explicit Dump(const Schedule& schedule);
  void write(const char* pass, const Schedule& schedule);

 private:
  std::filesystem::path folder_;  // empty: nothing is written
  int passes_ = 0;
};

}  // namespace syncline
