// Memory layout and arguments of the ctc_batch_cost kernel.
#pragma once

#include <cstdint>

namespace syncline::ctc {

inline constexpr std::int64_t kMargin = 16;  // -infinity on each side of a row of states: at least a vector

// Elements of a row of 2 * labels + 1 states, with margins.
inline std::int64_t state_stride(std::int64_t labels) {
  return (2 * labels + 1 + kMargin - 1) / kMargin * kMargin + 2 * kMargin;
}

// Rows of states per sample: alpha (one per step for the gradient, otherwise two that alternate), and other rows.
inline std::int64_t alpha_rows(std::int64_t time, bool gradient) { return gradient ? time : 2; }
inline constexpr std::int64_t kOtherRows = 5;

// Elements of memory per sample: rows of states, and one number per step.
inline std::int64_t sample_memory(std::int64_t time, std::int64_t labels, bool gradient) {
  return (alpha_rows(time, gradient) + kOtherRows) * state_stride(labels) + time;
}

template <class T>
struct Sample {
  const T* logits;  // (time, classes); the kernel normalizes them by softmax
  std::int64_t time, classes;
  const std::int32_t* label;
  std::int64_t labels;
  T* memory;    // at least sample_memory(time, labels, gradient) elements
  T* gradient;  // (time, classes), or null
  T scale;      // of the gradient
};

}  // namespace syncline::ctc
