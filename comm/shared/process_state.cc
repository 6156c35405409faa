#include "comm/shared/process_state.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>

namespace syncline::comm {
namespace {

struct Stat {
  ProcessState state = ProcessState::kRuns;
  std::uint64_t start = 0;
};

// /proc/ID/stat is "id (name) state ...", with the start as the 20th word from the state on. A name may contain
// anything, also a bracket.
Stat parse(std::string_view line) {
  Stat stat;
  const std::size_t end = line.rfind(')');
  if (end == line.npos || end + 2 >= line.size()) return stat;
  line.remove_prefix(end + 2);
  if (line[0] == 'T' || line[0] == 't') stat.state = ProcessState::kStopped;
  if (line[0] == 'Z' || line[0] == 'X') stat.state = ProcessState::kGone;
  for (int word = 0; word < 19 && !line.empty(); ++word)
    line.remove_prefix(std::min(line.find(' '), line.size() - 1) + 1);
  std::from_chars(line.data(), line.data() + line.size(), stat.start);
  return stat;
}

Stat stat_of(std::uint64_t id) noexcept {
  std::array<char, 40> path{};
  std::snprintf(path.data(), path.size(), "/proc/%llu/stat", static_cast<unsigned long long>(id));
  const int file = ::open(path.data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {errno == ENOENT ? ProcessState::kGone : ProcessState::kRuns};
  std::array<char, 1024> text{};
  const ssize_t length = ::read(file, text.data(), text.size());
  const bool gone = length < 0 && errno == ESRCH;
  ::close(file);
  if (length < 0) return {gone ? ProcessState::kGone : ProcessState::kRuns};
  return parse({text.data(), static_cast<std::size_t>(length)});
}

}  // namespace

ProcessName this_process() noexcept {
  const auto id = static_cast<std::uint64_t>(::getpid());
  std::array<char, 32> shown{};
  const bool shows_own =
      ::readlink("/proc/self", shown.data(), shown.size() - 1) > 0 && shown.data() == std::to_string(id);
  struct stat space {};
  const bool known = shows_own && ::stat("/proc/self/ns/pid", &space) == 0;
  return {id, stat_of(id).start, known ? space.st_ino : 0};
}

ProcessState process_state(const ProcessName& process, const ProcessName& observer) noexcept {
  if (process == observer || process.space == 0 || process.space != observer.space) return ProcessState::kRuns;
  const Stat stat = stat_of(process.id);
  const bool another = process.start != 0 && stat.start != 0 && stat.start != process.start;
  return another ? ProcessState::kGone : stat.state;
}

}  // namespace syncline::comm
