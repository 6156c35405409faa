#include "runtime/plan/profile.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "ops/kernels/instruction_sets.h"
#include "ops/kernels/parallel.h"
#include "syncline/error.h"
#include "syncline/timeline.h"

namespace syncline {
namespace {

constexpr std::int64_t kWriteEvery = 10'000'000'000;  // nanoseconds

thread_local ProfileSpan* open_span = nullptr;

const pid_t loading_process = getpid();

void report(const std::exception& error) noexcept {
  std::fprintf(stderr, "syncline: SYNCLINE_PROFILE: %s\n", error.what());
}

// Writes the process's profile.
class Writer {
 public:
  explicit Writer(Profile& profile) : profile_(profile) {}

  void write() noexcept {
    if (getpid() != loading_process) return;
    written_ = timeline::now();
    try {
      profile_.write();
    } catch (const std::exception& error) {
      if (!failed_.exchange(true)) report(error);
    }
  }
  void write_if_due(std::int64_t now) noexcept {
    std::int64_t written = written_;
    if (now - written >= kWriteEvery && written_.compare_exchange_strong(written, now)) write();
  }

 private:
  Profile& profile_;
  std::atomic<std::int64_t> written_ = timeline::now();
  std::atomic<bool> failed_ = false;
};

Writer* process_writer = nullptr;

// Throws if the path names a folder, a device, a pipe or a link, which a rename would replace.
void require_file(const std::filesystem::path& path) {
  std::error_code ignored;
  const std::filesystem::file_status found = std::filesystem::symlink_status(path, ignored);
  if (std::filesystem::exists(found) && !std::filesystem::is_regular_file(found))
    fail<IoError>(path.string(), " is no regular file; give the name of a file");
}

std::string absolute(const std::string& path) {
  require_file(path);
  std::error_code error;
  const std::filesystem::path found = std::filesystem::absolute(path, error);
  return error ? path : found.string();
}

}  // namespace

Profile* Profile::of_process() {
  static Profile* const profile = []() -> Profile* {
    const char* path = std::getenv("SYNCLINE_PROFILE");
    if (path == nullptr || *path == '\0' || getpid() != loading_process) return nullptr;
    try {
      auto* made = new Profile(path);  // never destroyed: threads may run steps until exit
      process_writer = new Writer(*made);
      std::atexit([] { process_writer->write(); });
      return made;
    } catch (const IoError& error) {
      report(error);
      return nullptr;
    }
  }();
  return profile;
}

Profile::Profile(const std::string& path) : path_(absolute(path)), limits_(measure_machine()) {}

void Profile::set_rank(int rank, int ranks) {
  const std::lock_guard hold(mutex_);
  rank_ = rank;
  ranks_ = ranks;
}

ProfileLine* Profile::line(std::string kind, std::string what, std::string layer, const Work& work) {
  const std::lock_guard hold(mutex_);
  const std::string key = join_text(kind, '\n', what, '\n', layer, '\n', work.flops, ' ', work.bytes);
  if (const auto found = line_of_.find(key); found != line_of_.end()) return found->second;
  if (lines_.size() >= kMostLines) {
    ProfileLine& other = add_line(kind);
    other.kind = std::move(kind);
    other.what = "other";
    return &other;
  }
  ProfileLine& line = add_line(key);
  line.kind = std::move(kind);
  line.what = std::move(what);
  line.layer = std::move(layer);
  line.work = work;
  return &line;
}

ProfileLine* Profile::plan(const std::string& name, const Work& work) {
  const std::lock_guard hold(mutex_);
  const std::string key = join_text("plan\n", name, '\n', work.flops, ' ', work.bytes);
  if (const auto found = line_of_.find(key); found != line_of_.end()) return found->second;
  if (plans_.size() >= kMostLines) return nullptr;
  ProfileLine& plan = *(line_of_[key] = &plans_.emplace_back());
  plan.kind = name;
  plan.work = work;
  return &plan;
}

ProfileLine& Profile::add_line(const std::string& key) {
  ProfileLine*& line = line_of_[key];
  if (line == nullptr) line = &lines_.emplace_back();
  return *line;
}

void Profile::write() {
  const std::lock_guard hold(mutex_);
  const std::string path = ranks_ > 1 ? join_text(path_, ".rank", rank_) : path_;
  require_file(path);
  const std::string temporary = join_text(path, '.', getpid(), ".tmp");
  std::ofstream out(temporary, std::ios::binary);
  out << nlohmann::ordered_json{{"format", 2},
                                {"rank", rank_},
                                {"ranks", ranks_},
                                {"threads", thread_count()},
                                {"instruction_set", kernels::instruction_sets().front().name},
                                {"flops_per_second", limits_.flops},
                                {"bytes_per_second", limits_.bytes}}
             .dump()
      << '\n';
  const auto write_line = [&](nlohmann::ordered_json json, const ProfileLine& line) {
    const auto calls = static_cast<double>(line.calls);
    if (calls == 0) return;
    json["calls"] = line.calls.load();
    json["seconds"] = static_cast<double>(line.nanoseconds) * 1e-9;
    json["flops"] = calls * line.work.flops;
    json["bytes"] = calls * line.work.bytes;
    out << json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  };
  for (const ProfileLine& plan : plans_) write_line({{"plan", plan.kind}}, plan);
  for (const ProfileLine& line : lines_)
    write_line({{"kind", line.kind}, {"what", line.what}, {"layer", line.layer}}, line);
  out.close();
  if (!out || std::rename(temporary.c_str(), path.c_str()) != 0) {
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
  line_->nanoseconds.fetch_add(whole_ ? elapsed : elapsed - inside_, std::memory_order_relaxed);
  if (outer_ == nullptr && process_writer != nullptr) process_writer->write_if_due(now);
}

}  // namespace syncline
