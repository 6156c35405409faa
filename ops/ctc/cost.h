// What the kernel of ctc_batch_cost works on.
#pragma once

#include <cstdint>

namespace syncline::ctc {

inline constexpr std::int64_t kMargin = 16;  // elements around a row of states: minus infinity, at least a vector

// Elements of a row of 2 * labels + 1 states, with margins.
inline std::int64_t state_stride(std::int64_t labels) {
  return (2 * labels + 1 + kMargin - 1) / kMargin * kMargin + 2 * kMargin;
}

// Rows of states that a sample needs: those of alpha (all with the gradient, otherwise two that take turns), and
// others.
inline std::int64_t alpha_rows(std::int64_t time, bool gradient) { return gradient ? time : 2; }
inline constexpr std::int64_t kOtherRows = 5;

// Elements of memory for a sample: rows of states, and a number for each step.
inline std::int64_t sample_memory(std::int64_t time, std::int64_t labels, bool gradient) {
  return (alpha_rows(time, gradient) + kOtherRows) * state_stride(labels) + time;
}

template <class T>
struct Sample {
  const T* logits;  // (time, classes), any scale: their softmax counts
  std::int64_t time, classes;
  const std::int32_t* label;
  std::int64_t labels;
  T* memory;    // sample_memory(at least time, labels) elements
  T* gradient;  // (time, classes), or null
  T scale;      // of the gradient
};

}  // namespace syncline::ctc
