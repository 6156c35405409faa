// Reads untrusted files in a child process with limits on memory and time.
//
// A damaged or hostile file may make a library crash, loop or ask for all memory. Only the child is affected. This
// process receives a text or an error's message, or learns how the child ended.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "syncline/error.h"

namespace syncline::tools {

// The sanitizers map terabytes of address space and print on stderr: with them, memory is not limited and the child
// keeps its standard streams.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// The child crashed or reached a limit, or `diff` could not compare. The program exits with status 2.
struct ConfinementError : Error {
  using Error::Error;
};

struct Limits {
  std::int64_t memory = 0;   // MiB beyond an idle process; 0: 1024 and 4 times the files' sizes
  std::int64_t seconds = 0;  // wall time, and processor time; 0: 60 and one for each 20 MB of the files
};

// Adds the options --memory and --seconds.
void add_limits(CLI::App& command, Limits& limits);

// Runs `work` in a child and returns its text, which may have as many bytes as the memory limit. `files` are the files
// that `work` reads: their sizes set the limits that are 0, and errors name the first. An Error from `work` is thrown
// as IoError with the same message, a crash or a limit as ConfinementError. Output that `work` prints is lost. The
// calling process must have one thread only.
std::string run_confined(const std::vector<std::string>& files, const Limits& limits,
                         const std::function<std::string()>& work);

}  // namespace syncline::tools
