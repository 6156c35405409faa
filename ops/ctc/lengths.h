// What the functions of CTC share: checks of their operands, and how samples are shared out to threads.
#pragma once

#include <string_view>

#include "ops/graph/op.h"
#include "ops/kernels/parallel.h"

namespace syncline::ctc {

// Throws unless y_pred is floating, (samples, time, classes) with at least the blank as a class.
void check_logits(std::string_view op, const Meta& y_pred);
// Lengths of (samples) or (samples, 1) as int32 of (samples).
Expr flat_lengths(std::string_view op, const Expr& lengths);
// Throws ValueError if one of the lengths, input `number` of a kernel, is outside [0, most].
void check_lengths(std::string_view op, std::string_view what, const KernelArgs& k, int number, std::int64_t most);

// At most 16 chunks: each has memory of its own.
inline kernels::Chunks sample_chunks(std::int64_t samples, double cost_of_sample) {
  const kernels::Chunks fine = kernels::fixed_chunks(samples, cost_of_sample);
  const std::int64_t size = std::max(fine.size, (samples + 15) / 16);
  return {samples, size, samples == 0 ? 0 : (samples + size - 1) / size};
}

}  // namespace syncline::ctc
