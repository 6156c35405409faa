// Timeline: what a rank did when, as a file in Chrome's trace event format (docs/timeline.md has the contents).
//
// A process records one rank, into one file. While recording is off, which is the rule, an event costs one look at a
// flag. While it is on, an event is copied into memory that was allocated before; a thread writes it to the file five
// times a second. Each write(2) ends with a whole line within one page of the file, so a process that is killed leaves
// whole lines. Events beyond what the memory holds between two writes are counted and left out.
//
// All functions may be called from any thread. Only start throws.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace syncline::timeline {

inline std::atomic<bool> recording{false};
inline std::atomic<bool> detail{false};  // also each step of a plan
inline bool on() { return recording.load(std::memory_order_relaxed); }

// The clock of all times here: CLOCK_MONOTONIC in nanoseconds, which the processes of a machine share.
std::int64_t now();

// The rows in which a rank's events are drawn. Events of a row lie one after the other or one inside the other, so each
// wire has a row of its own: the first one kWire, the others (of groups of ranks) what follows kDisk.
enum class Row : std::uint16_t { kProgram = 1, kWire = 2, kPlan = 3, kDisk = 4 };
Row add_wire();
// Where the calling thread's spans are drawn. A thread that writes files while others train sets kDisk.
inline thread_local Row own_row = Row::kProgram;

struct Event {
  // These live as long as the process and need no escaping in JSON: literals, or what keep() gave.
  const char* category = "";
  const char* name = "";
  const char* what = nullptr;  // more about it
  std::int64_t begin = 0, end = 0;
  Row row = Row::kProgram;
  bool has_tag = false;  // whether the next two mean anything
  std::uint64_t plan = 0, step = 0;
  std::int64_t bucket = -1, bytes = -1;  // left out if negative
  int for_rank = -1;                     // the rank that was waited for; left out if negative
};
void record(const Event& event);

// A text for events. Allocates when it sees a text for the first time. Long texts are cut.
const char* keep(std::string_view text);
// What stands for a text between the quotes of a JSON string. Bytes that are no UTF-8, and control characters, become
// question marks; what goes beyond `longest` bytes is cut.
std::string escaped(std::string_view text, std::size_t longest = 2000);

// Begins DIRECTORY/rankR.json, and the directory if need be. `about` is what the first line says besides: members of a
// JSON object. Throws IoError if the file cannot be written. Once started, a second start does nothing.
void start(const std::string& directory, int rank, int ranks, const std::string& about = {});
// Adds a line about the rank rather than about a time; `members` are those of a JSON object.
void describe(const char* name, const std::string& members);
// Writes what was recorded so far: before the process ends without unwinding.
void flush() noexcept;
// Writes the rest and makes the file a complete JSON document. Happens by itself when the process exits.
void stop() noexcept;

// Records the time from its construction to its end.
class Span {
 public:
  Span(const char* category, const char* name) {
    if (on()) event_ = {.category = category, .name = name, .begin = now(), .row = own_row};
  }
  ~Span() {
    if (event_.begin == 0) return;
    event_.end = now();
    record(event_);
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  Event event_;
};

// Where the calling thread's time went since it began its first step, in nanoseconds. Counted while recording is on.
struct Times {
  std::int64_t steps = 0;
  std::int64_t first_begin = 0, last_end = 0;
  std::int64_t in_steps = 0, waited_in_steps = 0;      // the first includes the second
  std::int64_t between_steps = 0, waited_between = 0;  // as here
};
const Times& times();
// For who waits for a reason that the timeline counts.
void count_wait(std::int64_t nanoseconds);

// A call of a function.
class Step {
 public:
  Step(std::string_view name, std::uint64_t plan, std::uint64_t step) {
    if (on()) begin(name, plan, step);
  }
  ~Step() {
    if (event_.begin != 0) end();
  }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

 private:
  void begin(std::string_view name, std::uint64_t plan, std::uint64_t step);
  void end();

  Event event_;
};

// A step of a plan, by its label.
class Detail {
 public:
  explicit Detail(std::string_view label) {
    if (detail.load(std::memory_order_relaxed)) event_ = {.name = keep(label), .begin = now()};
  }
  ~Detail() {
    if (event_.begin != 0) end();
  }
  Detail(const Detail&) = delete;
  Detail& operator=(const Detail&) = delete;

 private:
  void end();

  Event event_;
};

}  // namespace syncline::timeline
