#include "syncline/timeline.h"

#include <pthread.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/block_signals.h"
#include "base/paged_file.h"
#include "syncline/error.h"

namespace syncline::timeline {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostEvents = 32768;
constexpr std::size_t kLongestText = 200;  // bytes; several texts and the numbers of an event fit in a page
constexpr auto kWriteEvery = 200ms;

void append_number(std::string& text, std::int64_t value, int base = 10) {
  char digits[24];
  const auto end = base == 16 ? std::to_chars(digits, std::end(digits), static_cast<std::uint64_t>(value), 16).ptr
                              : std::to_chars(digits, std::end(digits), value).ptr;
  text.append(digits, end);
}

// Converts nanoseconds to microseconds, the format's unit.
void append_time(std::string& text, std::int64_t nanoseconds) {
  append_number(text, nanoseconds / 1000);
  const auto rest = static_cast<int>(nanoseconds % 1000);
  const char digits[] = {'.', static_cast<char>('0' + rest / 100), static_cast<char>('0' + rest / 10 % 10),
                         static_cast<char>('0' + rest % 10)};
  text.append(digits, sizeof digits);
}

// The length in bytes of the UTF-8 character at the beginning; 0 if it is invalid.
std::size_t character_bytes(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t bytes = at(0) < 0x80                    ? 1
                            : at(0) >= 0xc2 && at(0) < 0xe0 ? 2
                            : at(0) >= 0xe0 && at(0) < 0xf0 ? 3
                            : at(0) >= 0xf0 && at(0) < 0xf5 ? 4
                                                            : 0;
  if (bytes > text.size()) return 0;
  for (std::size_t i = 1; i < bytes; ++i)
    if ((at(i) & 0xc0) != 0x80) return 0;
  // Reject overlong forms, surrogates, and code points beyond U+10FFFF.
  if (bytes == 3 && ((at(0) == 0xe0 && at(1) < 0xa0) || (at(0) == 0xed && at(1) >= 0xa0))) return 0;
  if (bytes == 4 && ((at(0) == 0xf0 && at(1) < 0x90) || (at(0) == 0xf4 && at(1) >= 0x90))) return 0;
  return bytes;
}

struct TextHash : std::hash<std::string_view> {
  using is_transparent = void;
};

class Recorder {
 public:
  static Recorder& instance() {
    static Recorder* const recorder = new Recorder;  // never destroyed: threads may record until exit
    return *recorder;
  }

  void start(const std::string& directory, int rank, int ranks, const std::string& about);
  void record(const Event& event);
  void describe(const char* name, const std::string& members);
  void flush();
  void stop();
  Row add_wire();
  const char* keep(std::string_view text);
  // Runs in a forked child, which has only the forking thread: the file is the parent's, and mutexes may be locked.
  void forget() {
    recording = false;
    forgotten_ = true;
    file_.close();
  }

 private:
  void run();
  void write();
  void add_row(Row row, const std::string& name);
  void add_description(const char* name, const std::string& members, const char* end);
  void add_event(const Event& event);

  std::mutex mutex_;  // guards the members up to thread_; if both are needed, lock file_mutex_ first
  std::vector<Event> events_;
  std::size_t count_ = 0;
  std::int64_t left_out_ = 0;
  bool stop_ = false;
  std::condition_variable wake_;
  std::thread thread_;

  std::mutex file_mutex_;  // guards the members below
  PagedFile file_;
  std::vector<Event> taken_;  // swapped with events_
  std::string line_;
  int rank_ = 0;
  std::int64_t begin_ = 0;
  int wires_ = 0;

  bool forgotten_ = false;
  std::mutex texts_mutex_;
  std::unordered_map<std::string, std::string, TextHash, std::equal_to<>> texts_;
};

void Recorder::start(const std::string& directory, int rank, int ranks, const std::string& about) {
  const std::lock_guard hold(file_mutex_);
  if (forgotten_ || file_.is_open()) return;
  if (mkdir(directory.c_str(), 0777) != 0 && errno != EEXIST)
    fail<IoError>("SYNCLINE_TRACE: cannot create the folder ", directory, ": ", std::strerror(errno));
  const std::string path = join_text(directory, "/rank", rank, ".json");
  if (!file_.open(path)) fail<IoError>("SYNCLINE_TRACE: cannot write ", path, ": ", std::strerror(errno));
  rank_ = rank;
  begin_ = now();
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  file_.add("[\n");
  add_description("syncline",
                  join_text("\"format\":1,\"rank\":", rank, ",\"ranks\":", ranks, ",\"host\":\"", escaped(host),
                            "\",\"process\":", getpid(), ",\"begin_ns\":", begin_, about.empty() ? "" : ",", about),
                  ",\n");
  add_description("process_name", join_text("\"name\":\"rank ", rank, "\""), ",\n");
  add_description("process_sort_index", join_text("\"sort_index\":", rank), ",\n");
  add_row(Row::kProgram, "program");
  add_row(Row::kWire, "wire");
  add_row(Row::kPlan, "steps of the plan");
  add_row(Row::kDisk, "disk");
  wires_ = 0;
  write();
  {
    const std::lock_guard lock(mutex_);
    events_.resize(kMostEvents);
    count_ = 0;
    left_out_ = 0;
    stop_ = false;
  }
  taken_.resize(kMostEvents);
  line_.reserve(PagedFile::kPage);
  const BlockSignals block;
  thread_ = std::thread([this] { run(); });
  recording = true;
}

void Recorder::record(const Event& event) {
  const std::lock_guard lock(mutex_);
  if (count_ == events_.size()) {
    ++left_out_;
    return;
  }
  events_[count_++] = event;
  if (count_ == events_.size() / 2) wake_.notify_one();
}

void Recorder::run() {
  pthread_setname_np(pthread_self(), "syncline-trace");
  std::unique_lock lock(mutex_);
  while (!stop_) {
    wake_.wait_for(lock, kWriteEvery, [&] { return stop_ || count_ >= events_.size() / 2; });
    lock.unlock();
    flush();
    lock.lock();
  }
}

void Recorder::flush() {
  const std::lock_guard hold(file_mutex_);
  std::size_t count = 0;
  {
    const std::lock_guard lock(mutex_);
    std::swap(count, count_);
    events_.swap(taken_);
  }
  for (std::size_t i = 0; i < count; ++i) add_event(taken_[i]);
  write();
}

void Recorder::describe(const char* name, const std::string& members) {
  const std::lock_guard hold(file_mutex_);
  if (!file_.is_open()) return;
  add_description(name, members, ",\n");
  write();
}

void Recorder::stop() {
  recording = false;
  if (forgotten_ || !thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    wake_.notify_one();
  }
  thread_.join();
  flush();
  const std::lock_guard hold(file_mutex_);
  add_description("end", join_text("\"left_out\":", left_out_), "\n");
  file_.add("]\n");
  write();
  file_.close();
}

const char* Recorder::keep(std::string_view text) {
  const std::lock_guard lock(texts_mutex_);
  if (const auto found = texts_.find(text); found != texts_.end()) return found->second.c_str();
  return texts_.try_emplace(std::string(text), escaped(text, kLongestText)).first->second.c_str();
}

void Recorder::write() {
  if (const int error = file_.write(); error != 0) {
    recording = false;
    std::fprintf(stderr, "syncline: cannot write the timeline's file: %s; the timeline ends here\n",
                 std::strerror(error));
  }
}

Row Recorder::add_wire() {
  const std::lock_guard hold(file_mutex_);
  if (++wires_ == 1) return Row::kWire;
  const auto row = static_cast<Row>(static_cast<int>(Row::kDisk) + wires_ - 1);
  if (file_.is_open()) add_row(row, join_text("wire ", wires_));
  return row;
}

void Recorder::add_row(Row row, const std::string& name) {
  file_.add(join_text("{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":", rank_, ",\"tid\":", static_cast<int>(row),
                      ",\"args\":{\"name\":\"", name, "\"}},\n"));
}

void Recorder::add_description(const char* name, const std::string& members, const char* end) {
  file_.add(
      join_text("{\"name\":\"", name, "\",\"ph\":\"M\",\"pid\":", rank_, ",\"tid\":0,\"args\":{", members, "}}", end));
}

void Recorder::add_event(const Event& event) {
  line_ = "{\"name\":\"";
  ((((line_ += event.name) += "\",\"cat\":\"") += event.category) += "\",\"ph\":\"X\",\"ts\":");
  append_time(line_, std::max<std::int64_t>(event.begin - begin_, 0));
  line_ += ",\"dur\":";
  append_time(line_, event.end - event.begin);
  const auto member = [this](const char* key, std::int64_t value) {
    (line_ += '"') += key;
    line_ += "\":";
    append_number(line_, value);
    line_ += ',';
  };
  line_ += ',';
  member("pid", rank_);
  member("tid", static_cast<int>(event.row));
  line_ += "\"args\":{";
  if (event.has_tag) {
    line_ += "\"plan\":\"";
    append_number(line_, static_cast<std::int64_t>(event.plan), 16);
    line_ += "\",";
    member("step", static_cast<std::int64_t>(event.step));
  }
  if (event.bucket >= 0) member("bucket", event.bucket);
  if (event.bytes >= 0) member("bytes", event.bytes);
  if (event.for_rank >= 0) member("rank", event.for_rank);
  if (event.what != nullptr) ((line_ += "\"what\":\"") += event.what) += "\",";
  if (line_.back() == ',') line_.pop_back();
  line_ += "}},\n";
  file_.add(line_);
}

thread_local Times thread_times;
thread_local bool in_step = false;

}  // namespace

std::int64_t now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
}

void record(const Event& event) {
  if (on()) Recorder::instance().record(event);
}

std::string escaped(std::string_view text, std::size_t longest) {
  std::string result;
  while (!text.empty()) {
    if (result.size() >= longest) return result + "...";
    const std::size_t bytes = character_bytes(text);
    const char c = text[0];
    if (bytes == 0 || static_cast<unsigned char>(c) < 0x20) result += '?';
    else if (c == '"' || c == '\\') (result += '\\') += c;
    else result += text.substr(0, bytes);
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return result;
}

const char* keep(std::string_view text) { return Recorder::instance().keep(text); }

void start(const std::string& directory, int rank, int ranks, const std::string& about) {
  Recorder::instance().start(directory, rank, ranks, about);
  [[maybe_unused]] static const int once = [] {
    std::atexit([] { stop(); });
    return pthread_atfork(nullptr, nullptr, [] { Recorder::instance().forget(); });
  }();
}

void describe(const char* name, const std::string& members) { Recorder::instance().describe(name, members); }
Row add_wire() { return Recorder::instance().add_wire(); }

void flush() noexcept {
  if (on()) Recorder::instance().flush();
}
void stop() noexcept { Recorder::instance().stop(); }

const Times& times() { return thread_times; }

void count_wait(std::int64_t nanoseconds) {
  (in_step ? thread_times.waited_in_steps : thread_times.waited_between) += nanoseconds;
}

void Step::begin(std::string_view name, std::uint64_t plan, std::uint64_t step) {
  event_ = {.category = "step", .name = keep(name), .begin = now(), .has_tag = true, .plan = plan, .step = step};
  Times& t = thread_times;
  if (t.steps == 0) {
    t.first_begin = event_.begin;
    t.waited_between = 0;
  } else {
    t.between_steps += event_.begin - t.last_end;
  }
  in_step = true;
}

void Step::end() {
  event_.end = now();
  Times& t = thread_times;
  ++t.steps;
  t.in_steps += event_.end - event_.begin;
  t.last_end = event_.end;
  in_step = false;
  record(event_);
}

void Detail::end() {
  event_.end = now();
  event_.category = "kernel";
  event_.row = Row::kPlan;
  record(event_);
}

}  // namespace syncline::timeline
