// The `syncline` command: looks at checkpoints, timelines and profiles.
#include <fmt/core.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "syncline/error.h"
#include "tools/command.h"
#include "tools/confined.h"
#include "tools/doctor/checks.h"

namespace {

constexpr int kFailure = 1, kTrouble = 2;

// Flushing may fail after all writes succeeded: a full disk, a closed pipe.
void flush_output() {
  if (std::fflush(stdout) != 0) syncline::fail<syncline::IoError>("cannot write the output");
}

int report(const char* message, int status) {
  fmt::print(stderr, "syncline: {}\n", message);
  return status;
}

// Returns the exit status that the command chose.
int parse_and_run(CLI::App& program, int argc, char** argv) {
  try {
    program.parse(argc, argv);
    return 0;
  } catch (const CLI::RuntimeError& end) {
    return end.get_exit_code();
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App program("Inspects the files of Syncline.", "syncline");
  program.require_subcommand(1);
  program.set_version_flag(
      "--version", syncline::tools::describe_versions,
      "prints the versions of Syncline and of the libraries that it loads, and the instruction set");
  syncline::tools::add_ls(program);
  syncline::tools::add_show(program);
  syncline::tools::add_stat(program);
  syncline::tools::add_diff(program);
  syncline::tools::add_convert(program);
  syncline::tools::add_doctor(program);
  syncline::tools::add_profile(program);
  syncline::tools::add_trace(program);
  syncline::tools::add_verify(program);
  try {
    const int status = parse_and_run(program, argc, argv);
    flush_output();
    return status;
  } catch (const CLI::Success& help) {
    return program.exit(help);
  } catch (const CLI::ParseError& error) {
    // A missing command that is an unknown word: the parser's text does not name it.
    const std::vector<std::string> unknown = program.remaining(/*recurse=*/true);
    if (program.get_subcommands().empty() && !unknown.empty() && unknown.front().front() != '-')
      return report(fmt::format("'{}' is no command (syncline --help lists the commands)", unknown.front()).c_str(),
                    kTrouble);
    return report(fmt::format("{} (syncline --help lists the commands and options)", error.what()).c_str(), kTrouble);
  } catch (const syncline::tools::ConfinementError& error) {
    return report(error.what(), kTrouble);
  } catch (const std::exception& error) {
    return report(error.what(), kFailure);
  }
}
