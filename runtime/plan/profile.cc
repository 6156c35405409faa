#include "runtime/plan/profile.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "ops/kernels/instruction_sets.h"
#include "ops/kernels/parallel.h"
#include "syncline/error.h"
#include "syncline/timeline.h"

namespace syncline {
namespace {

constexpr std::int64_t kWriteEvery = 10'000'000'000;  // nanoseconds

thread_local ProfileSpan* open_span = nullptr;

// Writes the process's profile. A child that a fork made has no profile of its own.
class Writer {
 public:
  explicit Writer(Profile& profile) : profile_(profile) {}

  void write() noexcept {
    if (getpid() != process_ || failed_) return;
    written_ = timeline::now();
    try {
      profile_.write();
    } catch (const std::exception& error) {
      failed_ = true;
      std::fprintf(stderr, "syncline: SYNCLINE_PROFILE: %s\n", error.what());
    }
  }
  void write_if_due(std::int64_t now) noexcept {
    std::int64_t written = written_;
    if (now - written >= kWriteEvery && written_.compare_exchange_strong(written, now)) write();
  }

 private:
  Profile& profile_;
  const pid_t process_ = getpid();
  std::atomic<std::int64_t> written_ = timeline::now();
  std::atomic<bool> failed_ = false;
};

Writer* process_writer = nullptr;

}  // namespace

Profile* Profile::of_process() {
  static Profile* const profile = []() -> Profile* {
    const char* path = std::getenv("SYNCLINE_PROFILE");
    if (path == nullptr || *path == '\0') return nullptr;
    auto* made = new Profile(path);  // never destroyed: threads may run steps until exit
    process_writer = new Writer(*made);
    std::atexit([] { process_writer->write(); });
    return made;
  }();
  return profile;
}

Profile::Profile(std::string path) : path_(std::move(path)), limits_(measure_machine()) {}

void Profile::set_rank(int rank, int ranks) {
  const std::lock_guard hold(mutex_);
  rank_ = rank;
  ranks_ = ranks;
}

ProfileLine* Profile::line(std::string kind, std::string what, std::string layer, const Work& work) {
  const std::lock_guard hold(mutex_);
  ProfileLine*& line = line_of_[join_text(kind, '\n', what, '\n', layer)];
  if (line == nullptr) {
    line = &lines_.emplace_back();
    line->kind = std::move(kind);
    line->what = std::move(what);
    line->layer = std::move(layer);
    line->work = work;
  }
  return line;
}

void Profile::write() {
  const std::lock_guard hold(mutex_);
  const std::string path = ranks_ > 1 ? join_text(path_, ".rank", rank_) : path_;
  const std::string temporary = join_text(path, '.', getpid(), ".tmp");
  std::ofstream out(temporary, std::ios::binary);
  out << nlohmann::ordered_json{{"format", 1},
                                {"rank", rank_},
                                {"ranks", ranks_},
                                {"threads", kernels::thread_count()},
                                {"instruction_set", kernels::instruction_sets().front().name},
                                {"flops_per_second", limits_.flops},
                                {"bytes_per_second", limits_.bytes}}
             .dump()
      << '\n';
  for (const ProfileLine& line : lines_) {
    const auto calls = static_cast<double>(line.calls);
    if (calls == 0) continue;
    const nlohmann::ordered_json json{{"kind", line.kind},
                                      {"what", line.what},
                                      {"layer", line.layer},
                                      {"calls", line.calls.load()},
                                      {"seconds", static_cast<double>(line.nanoseconds) * 1e-9},
                                      {"flops", calls * line.work.flops},
                                      {"bytes", calls * line.work.bytes}};
    out << json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  }
  if (!out.flush() || std::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    std::remove(temporary.c_str());
    fail<IoError>("cannot write ", path, ": ", std::strerror(error));
  }
}

void ProfileSpan::begin() {
  outer_ = std::exchange(open_span, this);
  begin_ = timeline::now();
}

void ProfileSpan::end() {
  const std::int64_t now = timeline::now(), elapsed = now - begin_;
  open_span = outer_;
  if (outer_ != nullptr) outer_->inside_ += elapsed;
  line_->calls.fetch_add(1, std::memory_order_relaxed);
  line_->nanoseconds.fetch_add(elapsed - inside_, std::memory_order_relaxed);
  if (outer_ == nullptr && process_writer != nullptr) process_writer->write_if_due(now);
}

}  // namespace syncline
