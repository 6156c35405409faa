#include "ops/kernels/instruction_sets.h"

#include <hwy/highway.h>
#include <hwy/targets.h>

#include "syncline/error.h"

namespace syncline::kernels {
namespace {

std::int64_t limit = 0;  // ids; 0: none

// Highway offers this only as a test function. A mask of 0 removes the restriction.
void restrict_targets(std::int64_t targets) {
  hwy::SetSupportedTargetsForTest(targets);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

// On x86 a wider set has a smaller id. The sets of other architectures are not compared with AVX2.
bool is_wider_than_avx2(const InstructionSet& set) { return HWY_ARCH_X86 != 0 && set.id < HWY_AVX2; }

}  // namespace

std::vector<InstructionSet> instruction_sets() {
  std::vector<InstructionSet> sets;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    sets.push_back({target, hwy::TargetName(target)});
  }
  return sets;
}

std::int64_t instruction_sets_of(std::string_view name) {
  if (name != "best" && name != "common" && name != "avx2" && name != "baseline")
    fail<ValueError>("give best, common, avx2 or baseline");
  const std::vector<InstructionSet> sets = instruction_sets();
  if (name == "baseline") return sets.back().id;
  std::int64_t ids = 0;
  for (const InstructionSet& set : sets)
    if (name != "avx2" || !is_wider_than_avx2(set)) ids |= set.id;
  return ids;
}

void limit_instruction_sets(std::int64_t ids) {
  limit = ids;
  restrict_targets(limit);
}

void use_instruction_set(const InstructionSet& set) { restrict_targets(set.id); }

void use_best_instruction_set() { restrict_targets(limit); }

}  // namespace syncline::kernels
