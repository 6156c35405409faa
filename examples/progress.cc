#include "examples/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

namespace syncline::examples {
namespace {

constexpr int kBarWidth = 24;
constexpr auto kTerminalPause = std::chrono::milliseconds(100);
constexpr auto kLinePause = std::chrono::seconds(5);

std::string output_of(pid_t process) {
  char target[64] = {};
  const std::string link = fmt::format("/proc/{}/fd/1", process);
  return readlink(link.c_str(), target, sizeof target - 1) < 0 ? "" : target;
}

pid_t parent_of(pid_t process) {
  std::string status;
  std::getline(std::ifstream(fmt::format("/proc/{}/stat", process)), status);
  pid_t parent = 0;  // the second field after the name, which may hold anything
  const std::size_t name_end = status.rfind(')');
  if (name_end != std::string::npos) std::sscanf(status.c_str() + name_end, ") %*c %d", &parent);
  return parent;
}

// Launchers give each rank a terminal of its own, whatever their own output is; then the launcher's counts, which is
// the first process above that writes somewhere else.
bool shows_terminal() {
  const char* term = std::getenv("TERM");
  if (isatty(STDOUT_FILENO) != 1 || (term != nullptr && std::string_view(term) == "dumb")) return false;
  if (std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr) return true;
  const std::string own = output_of(getpid());
  pid_t launcher = getppid();
  while (launcher > 1 && output_of(launcher) == own) launcher = parent_of(launcher);
  const std::string path = output_of(launcher);
  return path.starts_with("/dev/pts/") || path.starts_with("/dev/tty");
}

std::string minutes(double seconds) {
  const auto s = static_cast<long>(seconds + 0.5);
  return fmt::format("{}:{:02}", s / 60, s % 60);
}

}  // namespace

Progress::Progress(bool shown, std::int64_t epoch, std::int64_t epochs, std::int64_t steps, std::int64_t done)
    : shown_(shown),
      terminal_(shown && shows_terminal()),
      epoch_(epoch),
      epochs_(epochs),
      steps_(steps),
      done_(done),
      first_(done) {}

void Progress::step(std::int64_t rows, double loss, double accuracy) {
  ++done_;
  rows_ += rows;
  loss_ += loss * static_cast<double>(rows);
  accuracy_ += accuracy * static_cast<double>(rows);
  const auto pause = terminal_ ? Clock::duration(kTerminalPause) : Clock::duration(kLinePause);
  if (Clock::now() - printed_ >= pause && done_ < steps_) print(false);
}

void Progress::finish() { print(true); }

void Progress::print(bool last) {
  if (!shown_ || rows_ == 0) return;
  printed_ = Clock::now();
  const double seconds = std::chrono::duration<double>(printed_ - begin_).count();
  const auto rows = static_cast<double>(rows_);
  const double left = seconds / static_cast<double>(done_ - first_) * static_cast<double>(steps_ - done_);
  const auto filled = static_cast<std::size_t>(kBarWidth * done_ / steps_);
  const std::string bar =
      terminal_ ? fmt::format(" [{}{}]", std::string(filled, '='), std::string(kBarWidth - filled, '.')) : "";
  const std::string time = last ? fmt::format("took {}", minutes(seconds)) : fmt::format("left {}", minutes(left));
  fmt::print("{}epoch {}/{}{} step {}/{}  loss {:.4f}  accuracy {:.4f}  {:.0f} samples/s  {}{}", terminal_ ? "\r" : "",
             epoch_ + 1, epochs_, bar, done_, steps_, loss_ / rows, accuracy_ / rows, rows / seconds, time,
             terminal_ && !last ? "\x1b[K"
             : terminal_        ? "\x1b[K\n"
                                : "\n");
  std::fflush(stdout);
}

}  // namespace syncline::examples
