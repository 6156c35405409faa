// Shared by the CTC functions: checks of operands, and chunks of samples for threads.
#pragma once

#include <string_view>

#include "ops/graph/op.h"
#include "ops/kernels/parallel.h"

namespace syncline::ctc {

// Throws DTypeError unless y_pred is floating, ShapeError unless it is (samples, time, classes) with one class or more.
void check_logits(std::string_view op, const Meta& y_pred);
// Lengths (samples) or (samples, 1) as int32 (samples). Throws ShapeError; DTypeError for bool.
Expr flat_lengths(std::string_view op, const Expr& lengths);
// Throws ValueError for a length outside [0, most] in the kernel's input `number`, int32.
void check_lengths(std::string_view op, std::string_view what, const KernelArgs& k, int number, std::int64_t most);

// At most 16 chunks: each has its own scratch memory.
inline kernels::Chunks sample_chunks(std::int64_t samples, double cost_of_sample) {
  const kernels::Chunks fine = kernels::fixed_chunks(samples, cost_of_sample);
  const std::int64_t size = std::max(fine.size, (samples + 15) / 16);
  return {samples, size, samples == 0 ? 0 : (samples + size - 1) / size};
}

}  // namespace syncline::ctc
