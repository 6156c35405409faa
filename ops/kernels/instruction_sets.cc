#include "ops/kernels/instruction_sets.h"

#include <hwy/highway.h>
#include <hwy/targets.h>

namespace syncline::kernels {
namespace {

// Highway offers this only as a test function. A mask of 0 removes the restriction.
void restrict_targets(std::int64_t targets) {
  hwy::SetSupportedTargetsForTest(targets);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace

std::vector<InstructionSet> instruction_sets() {
  std::vector<InstructionSet> sets;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    sets.push_back({target, hwy::TargetName(target)});
  }
  return sets;
}

void use_instruction_set(const InstructionSet& set) { restrict_targets(set.id); }

void use_best_instruction_set() { restrict_targets(0); }

}  // namespace syncline::kernels
