#include "syncline/training/callbacks/progress_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

#include "syncline/training/first_rank.h"
#include "syncline/training/fit.h"

namespace syncline::training {
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
  pid_t parent = 0;  // second field after the name, which may hold any bytes
  const std::size_t name_end = status.rfind(')');
  if (name_end != std::string::npos) std::sscanf(status.c_str() + name_end, ") %*c %d", &parent);
  return parent;
}

// A launcher gives each rank its own terminal, wherever the launcher itself writes. So the launcher's output decides:
// that of the nearest ancestor whose standard output differs from this process's.
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

ProgressBar::ProgressBar(const comm::Communicator* communicator)
    : first_(is_first(communicator)), terminal_(first_ && shows_terminal()) {}

void ProgressBar::on_epoch_begin(Fit& fit, std::int64_t epoch) {
  epoch_ = epoch;
  begin_step_ = fit.counts().step;
  rows_ = 0;
  open_ = true;
  begin_ = printed_ = Clock::now();
}

void ProgressBar::on_step_end(Fit& fit, const Logs&) {
  rows_ += fit.rows();
  const std::int64_t done = fit.counts().step;
  const auto pause = terminal_ ? Clock::duration(kTerminalPause) : Clock::duration(kLinePause);
  if (Clock::now() - printed_ >= pause && done < fit.steps_of_epoch()) print(fit, done, fit.averages(), false);
}

void ProgressBar::on_epoch_end(Fit& fit, std::int64_t, Logs& logs) {
  print(fit, fit.steps_of_epoch(), logs, true);
  open_ = false;
}

void ProgressBar::on_train_end(Fit& fit) { finish(fit); }

// Ends the bar's line, so that the error message begins a new one.
void ProgressBar::on_failure(Fit& fit, const std::exception&) noexcept { finish(fit); }

void ProgressBar::finish(const Fit& fit) {
  if (open_) print(fit, fit.counts().step, fit.averages(), true);
  open_ = false;
}

void ProgressBar::print(const Fit& fit, std::int64_t done, const Logs& averages, bool last) {
  if (!first_ || rows_ == 0) return;
  printed_ = Clock::now();
  const std::int64_t steps = fit.steps_of_epoch();
  const double seconds = std::chrono::duration<double>(printed_ - begin_).count();
  const double left = seconds / static_cast<double>(done - begin_step_) * static_cast<double>(steps - done);
  const auto filled = static_cast<std::size_t>(kBarWidth * done / steps);
  const std::string bar =
      terminal_ ? fmt::format(" [{}{}]", std::string(filled, '='), std::string(kBarWidth - filled, '.')) : "";
  const std::string time = last ? fmt::format("took {}", minutes(seconds)) : fmt::format("left {}", minutes(left));
  std::string values;
  for (const auto& [name, value] : averages) values += fmt::format("  {} {:.4f}", name, value);
  const std::string line =
      fmt::format("{}epoch {}/{}{} step {}/{}{}  {:.0f} samples/s  {}{}", terminal_ ? "\r" : "", epoch_ + 1,
                  fit.options().epochs, bar, done, steps, values, static_cast<double>(rows_) / seconds, time,
                  terminal_ && !last ? "\x1b[K"
                  : terminal_        ? "\x1b[K\n"
                                     : "\n");
  std::fputs(line.c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace syncline::training
