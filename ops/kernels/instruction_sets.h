// The instruction sets of the vectorized kernels. Kernels use the best set that this processor supports. A test, or a
// run that must reproduce the bits of another machine, can select a smaller set.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace syncline::kernels {

struct InstructionSet {
  std::int64_t id;
  std::string name;  // "AVX2"
};

// Returns the sets that this processor supports, best first.
std::vector<InstructionSet> instruction_sets();
// Makes all vectorized kernels of the process use one of instruction_sets(). Do not call while a kernel runs.
void use_instruction_set(const InstructionSet& set);
// Restores the default.
void use_best_instruction_set();

}  // namespace syncline::kernels
