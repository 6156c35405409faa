// Reading files that nobody vouches for: in a child process with limits on memory and time.
//
// A damaged or hostile file may make a library crash, loop or ask for all memory. The child takes that blow; what
// reaches this process is a text, an error's message, or the news of how the child ended.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "syncline/error.h"

namespace syncline::tools {

// The sanitizers map terabytes of address space; with them memory is not limited, and stderr stays open for them.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// The child crashed or met a limit, or `diff` could not compare. The program ends with exit status 2.
struct TroubleError : Error {
  using Error::Error;
};

struct Limits {
  std::int64_t memory = 0;   // MiB beyond what an idle process has; 0: 1024 and 4 times the files' sizes
  std::int64_t seconds = 0;  // of wall time, and of processor time; 0: 60 and one for each 20 MB of the files
};

// The options --memory and --seconds.
void add_limits(CLI::App& command, Limits& limits);

// Runs `work` in a child and returns its text, of at most as many bytes as the memory limit. `files` are those that
// `work` reads: their sizes set the limits that are 0, and the first is named in errors. An Error that `work` throws is
// thrown here as IoError with the same message; a crash or a limit as TroubleError. What `work` prints is lost.
// The calling process must have one thread only.
std::string run_confined(const std::vector<std::string>& files, const Limits& limits,
                         const std::function<std::string()>& work);

}  // namespace syncline::tools
