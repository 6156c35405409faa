// Uses: who writes and who reads each value of a schedule, by the places of tasks in running order. A snapshot.
#pragma once

#include <unordered_map>
#include <vector>

#include "runtime/schedule/schedule.h"

namespace syncline {

inline constexpr int kNoTask = -1;

struct Use {
  int writer = kNoTask;      // a leaf has none
  int available = kNoTask;   // behind this task it may be read: the writer or, of what is transferred, the wait
  std::vector<int> readers;  // ascending, once for each time that a task reads it or a view of it, or its guards do
  bool root = false;         // the plan's caller reads it, or a view of it

  // The place of the last task that reads it; `end` for a root, the writer if nothing does.
  int last(int end) const { return root ? end : readers.empty() ? writer : readers.back(); }
};

class Uses {
 public:
  explicit Uses(const Schedule& schedule);
  // Of a value, or of the value that a view looks at.
  const Use& of(const Expr& value) const;

 private:
  LocalView local_;
  std::unordered_map<Expr, Use, ExprHash> uses_;
};

}  // namespace syncline
