// Uses: the writer and readers of each value of a schedule, as task indices in running order. A snapshot: later changes
// of the schedule do not appear in it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "ops/graph/value_map.h"
#include "runtime/schedule/schedule.h"

namespace syncline {

inline constexpr int kNoTask = -1;

struct Use {
  int writer = kNoTask;          // kNoTask for leaves
  int available = kNoTask;       // readable after this task: the writer, or a transfer's wait
  std::span<const int> readers;  // ascending; one per read of it or a view of it; valid while the Uses lives
  bool root = false;             // the plan returns it or a view of it

  // The last reader; `end` for a root, the writer if there is no reader.
  int last(int end) const { return root ? end : readers.empty() ? writer : readers.back(); }
};

class Uses {
 public:
  explicit Uses(const Schedule& schedule);
  Uses(const Uses&) = delete;
  Uses& operator=(const Uses&) = delete;
  // The use of a value, or of a view's base.
  const Use& of(const Expr& value) const;
  // Calls visit with the writers of a task's operands and guard conditions.
  template <class Visit>
  void for_writers(const Task& task, const Visit& visit) const {
    const auto visit_writer = [&](const Expr& value) {
      if (const int writer = of(value).writer; writer != kNoTask) visit(writer);
    };
    for (const Expr& read : task.reads) visit_writer(read);
    for (const Guard& guard : task.guards) visit_writer(guard.condition);
  }

 private:
  std::size_t number_of(const Expr& value);

  LocalView local_;
  ValueMap<std::size_t> number_;
  std::vector<Use> uses_;     // by number
  std::vector<int> readers_;  // of all values
};

}  // namespace syncline
