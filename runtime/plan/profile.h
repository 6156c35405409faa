// Profile: the time of each kind of step of a process's plans, beside its arithmetic operations and bytes of memory.
// For SYNCLINE_PROFILE=FILE (docs/profile.md).
//
// The process's profile belongs to the process that loaded the library: a child that a fork makes has none and does not
// write its parent's file.
//
// All functions may be called from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>

#include "ops/graph/work.h"
#include "runtime/plan/machine_limits.h"

namespace syncline {

// Steps of one kind with equal operands and equal work, in one layer.
struct ProfileLine {
  std::string kind;   // an op, "fused", "reduce", "copy", "loop", "wait", "barrier" or a transfer's, "all_reduce"
  std::string what;   // attributes and operands
  std::string layer;  // "" if the step reads and writes no variable with a scope
  Work work;          // of one call
  std::atomic<std::int64_t> calls = 0;
  std::atomic<std::int64_t> nanoseconds = 0;  // without the steps of a loop's body
};

class Profile {
 public:
  // Of steps, and of plans. Further steps have one line per kind, "other", without work; further plans have none.
  static constexpr std::size_t kMostLines = 10000;

  // Null unless SYNCLINE_PROFILE is set. Also null if it names something other than a file; standard error says so.
  static Profile* of_process();

  // Measures the machine. `path`: the file of a job with one rank, relative to the current folder. Throws IoError if
  // something other than a file has that name.
  explicit Profile(const std::string& path);

  // Call it before the first write. Rank R of several writes the file PATH.rankR.
  void set_rank(int rank, int ranks);
  // The line that counts such steps; it lives as long as the profile.
  ProfileLine* line(std::string kind, std::string what, std::string layer, const Work& work);
  // The line of the runs of plans of this name and work (of one run), with the time of all their steps.
  ProfileLine* plan(const std::string& name, const Work& work);
  // Replaces the file. Throws IoError; a later call tries again. The process's profile writes itself every ten seconds
  // and at exit.
  void write();

 private:
  ProfileLine& add_line(const std::string& key);

  std::mutex mutex_;        // guards the members below
  const std::string path_;  // absolute
  int rank_ = 0, ranks_ = 1;
  const MachineLimits limits_;
  std::deque<ProfileLine> plans_, lines_;
  std::unordered_map<std::string, ProfileLine*> line_of_;
};

// Adds its lifetime to a line, without the lifetimes of the spans inside it on the same thread unless `whole`. Null:
// does nothing.
class ProfileSpan {
 public:
  explicit ProfileSpan(ProfileLine* line, bool whole = false) : line_(line), whole_(whole) {
    if (line_ != nullptr) begin();
  }
  ~ProfileSpan() {
    if (line_ != nullptr) end();
  }
  ProfileSpan(const ProfileSpan&) = delete;
  ProfileSpan& operator=(const ProfileSpan&) = delete;

 private:
  void begin();
  void end();

  ProfileLine* const line_;
  const bool whole_;
  ProfileSpan* outer_ = nullptr;
  std::int64_t begin_ = 0, inside_ = 0;
};

}  // namespace syncline
