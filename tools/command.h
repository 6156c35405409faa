// The commands of `syncline`. Each has its own file and adds itself, its options and its action to the program.
//
// An action throws syncline::Error for a failure. main prints it as one line on stderr and exits with 1, or with 2 for
// a ConfinementError (tools/confined.h). CLI11 detects wrong usage: exit status 2. An action with an exit status of its
// own calls end_with.
#pragma once

#include <CLI/CLI.hpp>
#include <cmath>
#include <string>

namespace syncline::tools {

void add_convert(CLI::App& program);  // convert.cc
void add_diff(CLI::App& program);     // diff.cc
void add_doctor(CLI::App& program);   // doctor/doctor.cc
void add_ls(CLI::App& program);       // ls.cc
void add_profile(CLI::App& program);  // profiling/profile.cc
void add_show(CLI::App& program);     // show.cc
void add_stat(CLI::App& program);     // stat.cc
void add_trace(CLI::App& program);    // profiling/trace.cc
void add_verify(CLI::App& program);   // verify.cc

// CLI11's own check prints a range of 300 digits.
inline CLI::Validator not_negative() {
  return CLI::Validator(
      [](std::string& text) {
        double number = 0;
        return CLI::detail::lexical_cast(text, number) && number >= 0 && std::isfinite(number)
                   ? std::string()
                   : text + " is not a number that is 0 or more";
      },
      "NONNEGATIVE");
}

inline void end_with(int status) {
  if (status != 0) throw CLI::RuntimeError(status);
}

}  // namespace syncline::tools
