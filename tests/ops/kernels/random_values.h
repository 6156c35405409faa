// Helpers of the kernel tests: reproducible values, an error measure, an epilogue that checks its kernel, scratch
// memory that detects overruns, a loop over instruction sets.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <new>
#include <random>
#include <vector>

#include "ops/kernels/epilogue.h"
#include "ops/kernels/instruction_sets.h"

namespace syncline::kernels {

// Uniform in [-1, 1).
template <class T>
std::vector<T> random_values(std::size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<T> distribution(-1, 1);
  std::vector<T> values(count);
  for (T& value : values) value = distribution(generator);
  return values;
}

// The largest difference relative to the largest expected value. A NaN counts as infinite.
template <class T>
double largest_error(const std::vector<T>& got, const std::vector<double>& want) {
  double error = 0, scale = std::numeric_limits<double>::min();
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double difference = std::abs(static_cast<double>(got[i]) - want[i]);
    error = std::max(error, std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference);
    scale = std::max(scale, std::abs(want[i]));
  }
  return error / scale;
}

// Finds elements of `out` that are handed over before they have their final bits, twice or not at all. It replaces each
// one by NaN, which shows that a kernel reads or writes it later.
template <class T>
class CheckedEpilogue final : public Epilogue {
 public:
  CheckedEpilogue(const std::vector<T>& want, std::vector<T>& out) : want_(want), out_(out), times_(want.size()) {}
  void run(std::int64_t begin, std::int64_t end) const override {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      if (std::memcmp(&out_[i], &want_[i], sizeof(T)) != 0) wrong_.fetch_add(1);
      out_[i] = std::numeric_limits<T>::quiet_NaN();
      times_[i].fetch_add(1);
    }
  }
  // Elements that were not final, not handed over once, or changed later.
  std::int64_t wrong() const {
    std::int64_t count = wrong_.load();
    for (std::size_t i = 0; i < want_.size(); ++i) count += times_[i].load() != 1 || !std::isnan(out_[i]);
    return count;
  }

 private:
  const std::vector<T>& want_;
  std::vector<T>& out_;
  mutable std::atomic<std::int64_t> wrong_ = 0;
  mutable std::vector<std::atomic<int>> times_;
};

// 64-byte aligned memory, filled with NaN, followed by a guard. data() is null for 0 bytes.
class GuardedScratch {
 public:
  explicit GuardedScratch(std::size_t bytes)
      : bytes_(bytes), memory_(static_cast<std::byte*>(::operator new(bytes + kGuard, std::align_val_t(64)))) {
    std::memset(memory_, 0xff, bytes + kGuard);
  }
  ~GuardedScratch() { ::operator delete(memory_, std::align_val_t(64)); }
  GuardedScratch(const GuardedScratch&) = delete;
  GuardedScratch& operator=(const GuardedScratch&) = delete;

  void* data() const { return bytes_ == 0 ? nullptr : memory_; }
  bool intact() const {
    return std::all_of(memory_ + bytes_, memory_ + bytes_ + kGuard, [](std::byte b) { return b == std::byte{0xff}; });
  }

 private:
  static constexpr std::size_t kGuard = 4096;
  std::size_t bytes_;
  std::byte* memory_;
};

// Calls check(name) once per instruction set that the kernels were compiled for and this processor has; the kernels use
// only that set.
template <class Check>
void for_each_instruction_set(const Check& check) {
  for (const InstructionSet& set : instruction_sets()) {
    use_instruction_set(set);
    check(set.name);
  }
  use_best_instruction_set();
}

}  // namespace syncline::kernels
