// The commands of `syncline`. Each lives in its own file and adds itself, its options and its action to the program.
//
// An action throws syncline::Error for what went wrong; main prints it as one line on stderr and exits with 1, or 2 for
// a TroubleError (tools/confined.h). Wrong usage is CLI11's to notice: exit status 2. An action whose answer is an exit
// status ends with end_with.
#pragma once

#include <CLI/CLI.hpp>

namespace syncline::tools {

void add_convert(CLI::App& program);  // convert.cc
void add_diff(CLI::App& program);     // diff.cc
void add_doctor(CLI::App& program);   // doctor/doctor.cc
void add_ls(CLI::App& program);       // ls.cc
void add_show(CLI::App& program);     // show.cc
void add_stat(CLI::App& program);     // stat.cc
void add_trace(CLI::App& program);    // trace.cc
void add_verify(CLI::App& program);   // verify.cc

inline void end_with(int status) {
  if (status != 0) throw CLI::RuntimeError(status);
}

}  // namespace syncline::tools
