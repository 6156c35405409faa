// StepProfiler: gives the steps of a plan their lines in the process's profile.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/graph/value_map.h"
#include "runtime/placement/local.h"
#include "runtime/plan/layers.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/profile.h"

namespace syncline {

// A step's label and operands.
std::string describe_operands(const Step& step);

// Its functions do nothing if the process has no profile. Labels, metas and operands must be set before.
class StepProfiler {
 public:
  // `new_values`: of the updates. `strategy` may be null. `layers` must outlive the profiler.
  StepProfiler(const Strategy* strategy, std::span<const Update> updates, std::span<const Expr> new_values,
               const Layers& layers);

  void add(std::string_view kind, Step& step, const Work& work = {}) const;
  // A step of kind kKernel: `op` with the step's attributes and metas.
  void add_kernel(const OpDef& op, Step& step) const;
  void add_program(std::string_view kind, const kernels::FusedProgram& program, Step& step) const;
  // To a kernel's step, which has its line. `bytes`: what the kernel writes and the program reads without memory.
  void add_epilogue(const kernels::FusedProgram& program, double bytes, Step& step) const;
  // What a run of a plan takes at least: its steps' operations; the bytes of its feeds, variables and stored values,
  // each read once, and written once if a step computes it; of a table only those that steps move. Nothing if the
  // process has no profile.
  Work work_of(std::span<const Step> steps, std::span<const LoopStep> loops, const LocalView& local) const;
  ProfileLine* plan(const std::string& name, const Work& work) const {
    return profile_ == nullptr ? nullptr : profile_->plan(name, work);
  }
  // `value`, which `loop` adds up in so many groups of iterations. `operands`: the metas over all iterations.
  void add_product(const Step& loop, const StepValue& value, std::span<const Meta> operands, std::int64_t groups,
                   LoopStep::Product& product) const;

 private:
  void name_kernels_of(const Expr& new_value, const std::string& layer, ValueSet& seen);
  ProfileLine* line(std::string_view kind, const Step& step, const Work& work) const {
    return line(kind, step, layer_of_step(step), work);
  }
  ProfileLine* line(std::string_view kind, const Step& step, std::string layer, const Work& work) const;
  std::string layer_of_step(const Step& step) const;

  Profile* const profile_;
  const Layers& layers_;
  ValueMap<std::string> changed_layers_;  // of gradients and statistics: that of the variable that they change
};

}  // namespace syncline
