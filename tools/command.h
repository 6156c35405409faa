// The commands of `syncline`. Each lives in its own file and adds itself, its options and its action to the program.
//
// An action throws syncline::Error for what went wrong; main prints it as one line on stderr and exits with 1. Wrong
// usage is CLI11's to notice: exit status 2.
#pragma once

#include <CLI/CLI.hpp>

namespace syncline::tools {

void add_ls(CLI::App& program);     // ls.cc
void add_trace(CLI::App& program);  // trace.cc

}  // namespace syncline::tools
