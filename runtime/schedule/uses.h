// Uses: the writer and readers of each value of a schedule, as task indices in running order. A snapshot: later changes
// of the schedule do not appear in it.
#pragma once

#include <unordered_map>
#include <vector>

#include "runtime/schedule/schedule.h"

namespace syncline {

inline constexpr int kNoTask = -1;

struct Use {
  int writer = kNoTask;      // kNoTask for leaves
  int available = kNoTask;   // readable after this task: the writer, or a transfer's wait
  std::vector<int> readers;  // ascending; one entry per read of it or a view of it, by operands or guards
  bool root = false;         // the plan returns it or a view of it

  // The last reader; `end` for a root, the writer if there is no reader.
  int last(int end) const { return root ? end : readers.empty() ? writer : readers.back(); }
};

class Uses {
 public:
  explicit Uses(const Schedule& schedule);
  // The use of a value, or of a view's base.
  const Use& of(const Expr& value) const;

 private:
  LocalView local_;
  std::unordered_map<Expr, Use, ExprHash> uses_;
};

}  // namespace syncline
