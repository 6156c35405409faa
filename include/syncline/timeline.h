// Timeline: records a rank's events into a file in Chrome's trace event format (docs/timeline.md has the contents).
//
// A process records one rank, into one file. While recording is off, the default, an event costs one load of a flag.
// While recording is on, an event is copied into preallocated memory; a thread writes the memory to the file five times
// a second, and when it is half full. Each write(2) ends with a whole line within one page of the file, so a killed
// process leaves whole lines. If the memory fills up between two writes, further events are counted and dropped.
//
// All functions may be called from any thread. Only start throws.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#pragma GCC visibility push(default)
namespace syncline::timeline {

inline std::atomic<bool> recording{false};
inline std::atomic<bool> detail{false};  // record each step of a plan too
inline bool on() { return recording.load(std::memory_order_relaxed); }

// The clock of all times here: CLOCK_MONOTONIC in nanoseconds, equal for all processes of a machine.
std::int64_t now();

// The rows in which viewers draw a rank's events. Events of one row must not overlap unless nested, so each wire has
// its own row: the first wire kWire, the others (of groups of ranks) the numbers after kDisk.
enum class Row : std::uint16_t { kProgram = 1, kWire = 2, kPlan = 3, kDisk = 4 };
Row add_wire();
// The row of the calling thread's spans. Threads that write files during training set kDisk.
inline thread_local Row own_row = Row::kProgram;

struct Event {
  // Must live as long as the process and need no escaping in JSON: literals, or results of keep().
  const char* category = "";
  const char* name = "";
  const char* what = nullptr;  // details
  std::int64_t begin = 0, end = 0;
  Row row = Row::kProgram;
  bool has_tag = false;  // whether plan and step are valid
  std::uint64_t plan = 0, step = 0;
  std::int64_t bucket = -1, bytes = -1;  // left out if negative
  int for_rank = -1;                     // the rank that this rank waited for; left out if negative
};
void record(const Event& event);

// Returns a permanent copy of `text` for events, escaped and cut to a maximum length. Allocates at the first use of a
// text.
const char* keep(std::string_view text);
// Escapes `text` for a JSON string. Invalid UTF-8 and control characters become question marks; the result is cut after
// `longest` bytes.
std::string escaped(std::string_view text, std::size_t longest = 2000);

// Starts recording to DIRECTORY/rankR.json; makes the directory if it is missing. `about`: members of a JSON object,
// added to the first line. Throws IoError if the file cannot be written. Does nothing if recording has started already.
void start(const std::string& directory, int rank, int ranks, const std::string& about = {});
// Adds a line that describes the rank, without a time; `members` are those of a JSON object.
void describe(const char* name, const std::string& members);
// Writes the recorded events. Call it before a process ends without unwinding.
void flush() noexcept;
// Writes the remaining events and completes the JSON document. Runs at exit too.
void stop() noexcept;

// Records its own lifetime as an event.
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

// How the calling thread spent its time since its first step began, in nanoseconds. Counted while recording is on.
struct Times {
  std::int64_t steps = 0;
  std::int64_t first_begin = 0, last_end = 0;
  std::int64_t in_steps = 0, waited_in_steps = 0;      // in_steps includes waited_in_steps
  std::int64_t between_steps = 0, waited_between = 0;  // between_steps includes waited_between
};
const Times& times();
// Adds a wait to the calling thread's Times.
void count_wait(std::int64_t nanoseconds);

// Records a call of a function.
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

// Records a step of a plan under its label.
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
#pragma GCC visibility pop
