#include "comm/shared/process_state.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <string_view>

namespace syncline::comm {

ProcessState process_state(pid_t process) noexcept {
  std::array<char, 32> path{};
  std::snprintf(path.data(), path.size(), "/proc/%d/stat", static_cast<int>(process));
  const int file = ::open(path.data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return errno == ENOENT ? ProcessState::kGone : ProcessState::kRuns;
  std::array<char, 512> text{};
  const ssize_t length = ::read(file, text.data(), text.size());
  ::close(file);
  if (length < 0) return errno == ESRCH ? ProcessState::kGone : ProcessState::kRuns;
  // The format is "pid (name) state ..."; a name may contain anything, also a bracket.
  const std::string_view line(text.data(), static_cast<std::size_t>(length));
  const std::size_t end = line.rfind(')');
  if (end == line.npos || end + 2 >= line.size()) return ProcessState::kRuns;
  switch (line[end + 2]) {
    case 'T':
    case 't': return ProcessState::kStopped;
    case 'Z':
    case 'X': return ProcessState::kGone;
    default: return ProcessState::kRuns;
  }
}

}  // namespace syncline::comm
