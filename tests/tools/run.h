// Runs the `syncline` command.
#pragma once

#include <string>

#include "tests/io/scratch.h"

namespace syncline::tools {

inline io::Outcome run(const std::string& arguments) {
  return io::run_shell(SYNCLINE_PROGRAM " " + arguments);
}

}  // namespace syncline::tools
