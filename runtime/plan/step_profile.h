// StepProfiler: gives the steps of a plan their lines in the process's profile.
#pragma once

#include <span>
#include <string>
#include <utility>

#include "ops/graph/value_map.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/profile.h"

namespace syncline {

// A step's label and operands.
std::string describe_operands(const Step& step);

class StepProfiler {
 public:
  // `new_values`: of the updates. Does nothing if the process has no profile. `strategy` may be null.
  StepProfiler(const Strategy* strategy, std::span<const Update> updates, std::span<const Expr> new_values);

  // The line of a step whose operands are known; null if the process has no profile. `work` returns the step's Work.
  template <class WorkOf>
  ProfileLine* line(std::string_view kind, const Step& step, WorkOf work) const {
    if (profile_ == nullptr) return nullptr;
    return profile_->line(std::string(kind), describe_operands(step), layer_of(step), work());
  }

 private:
  void name_kernels_of(const Expr& new_value, const std::string& layer, ValueSet& seen);
  std::string layer_of(const Step& step) const;

  Profile* const profile_;
  ValueMap<std::string> layers_;  // of gradients and statistics: that of the variable that they change
};

}  // namespace syncline
