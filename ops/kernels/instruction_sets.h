// The instruction sets that the vectorized kernels were compiled for. Kernels use the best one of this processor; a
// test, or a run whose bits are to match another machine's, can hold them to a smaller one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace syncline::kernels {

struct InstructionSet {
  std::int64_t id;
  std::string name;  // "AVX2"
};

// Those that this processor has, best first.
std::vector<InstructionSet> instruction_sets();
// Holds all vectorized kernels of the process to one of instruction_sets(). Not to be called while a kernel runs.
void use_instruction_set(const InstructionSet& set);
// Back to the best.
void use_best_instruction_set();

}  // namespace syncline::kernels
