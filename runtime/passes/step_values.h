// StepValues: the shapes, values and ops of a plan's steps (Step::args, reads, writes and label). The plan stores them.
// Borrows the schedule and the plan's tables. Not thread-safe.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ops/graph/value_map.h"
#include "runtime/schedule/schedule.h"

namespace syncline {

class StepValues {
 public:
  StepValues(const Schedule& schedule, Chunks<Meta>& metas, Chunks<StepValue>& values)
      : local_(schedule.local()), metas_(metas), values_(values) {
    for (std::size_t i = 0; i < schedule.request.updates.size(); ++i)
      assigned_[local_.resolve(schedule.new_value(i)).base] = &schedule.request.updates[i].target.name();
  }

  StepValue of(const Expr& value) const {
    const Expr& base = local_.resolve(value).base;
    return {base, local_.placement(base), assigned_.value_or(base, nullptr)};
  }
  std::span<const StepValue> of_all(std::span<const Expr> values) {
    return values_.add(values.size(), [&](std::size_t i) { return of(values[i]); });
  }
  std::span<const StepValue> with_more(std::span<const StepValue> some, std::span<const Expr> more) {
    return values_.add(some.size() + more.size(),
                       [&](std::size_t i) { return i < some.size() ? some[i] : of(more[i - some.size()]); });
  }
  // For labels.
  static std::string ops_of(const std::vector<Expr>& values) {
    std::string text;
    for (const Expr& value : values) text.append(" ").append(value.op().name);
    return text;
  }
  std::span<const Meta> metas(std::span<const Expr> values) {
    return metas_.add(values.size(), [&](std::size_t i) { return local_.meta(values[i]); });
  }

 private:
  const LocalView local_;
  Chunks<Meta>& metas_;
  Chunks<StepValue>& values_;
  ValueMap<const std::string*> assigned_;  // a new value -> the name of its variable
};

}  // namespace syncline
