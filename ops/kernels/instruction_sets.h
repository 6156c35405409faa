// The instruction sets of the vectorized kernels. Kernels use the best set that this processor supports and that the
// limit allows. A test selects smaller sets. None of the functions that change the set may run beside a kernel.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace syncline::kernels {

struct InstructionSet {
  std::int64_t id;
  std::string name;  // "AVX2"
};

// The sets that this processor supports and the limit allows, best first.
std::vector<InstructionSet> instruction_sets();
// The ids of a value of SYNCLINE_SIMD, as one number: "best" and "common" are all of instruction_sets(), "avx2" those
// not wider than AVX2, "baseline" the smallest one. Throws ValueError for another name.
std::int64_t instruction_sets_of(std::string_view name);
// Sets the limit: the ids that kernels may use, as one number. The first session of a process calls it for
// SYNCLINE_SIMD, Session::distribute for "common"; kernels that ran before may have used wider sets.
void limit_instruction_sets(std::int64_t ids);

// Makes all vectorized kernels of the process use one of instruction_sets().
void use_instruction_set(const InstructionSet& set);
// Restores the best set.
void use_best_instruction_set();

}  // namespace syncline::kernels
