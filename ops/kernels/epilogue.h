// Epilogue: what a plan computes from a kernel's output while the output is in the cache. A kernel with an epilogue
// calls run for each element of output 0 exactly once, when the element is final, and neither reads nor writes the
// element afterwards. Elements count in C order. Threads may call it at the same time, also within parallel loops.
#pragma once

#include <algorithm>
#include <cstdint>

namespace syncline::kernels {

class Epilogue {
 public:
  virtual ~Epilogue() = default;
  virtual void run(std::int64_t begin, std::int64_t end) const = 0;
};

// A call takes about so many elements, if possible: fewer cost more each, more leave a core's cache.
inline constexpr std::int64_t kEpilogueElements = 32 << 10;

// Calls kernel(epilogue), or kernel(nullptr) and then the epilogue if a core's cache keeps the whole output.
template <class Kernel>
void run_with_epilogue(const Epilogue* epilogue, std::int64_t elements, const Kernel& kernel) {
  constexpr std::int64_t kMany = 256 << 10;
  const bool small = elements < kMany;
  kernel(small ? nullptr : epilogue);
  if (small && epilogue != nullptr) epilogue->run(0, elements);
}

// Computes rows [begin, end) of `row` elements by body(first, last), followed by their epilogue (or null) while they
// are in a core's cache.
template <class Body>
void run_rows(const Epilogue* epilogue, std::int64_t begin, std::int64_t end, std::int64_t row, const Body& body) {
  const std::int64_t step = epilogue == nullptr ? end - begin : std::max<std::int64_t>(1, kEpilogueElements / row);
  for (; begin < end; begin += step) {
    const std::int64_t last = std::min(begin + step, end);
    body(begin, last);
    if (epilogue != nullptr) epilogue->run(begin * row, last * row);
  }
}

// Joins ranges that follow one another to fewer calls. Call flush at the end.
class JoinedRanges {
 public:
  explicit JoinedRanges(const Epilogue& epilogue) : epilogue_(epilogue) {}
  void add(std::int64_t begin, std::int64_t end) {
    if (begin != end_) flush();
    if (begin_ == end_) begin_ = begin;
    end_ = end;
    if (end_ - begin_ >= kEpilogueElements) flush();
  }
  void flush() {
    if (begin_ < end_) epilogue_.run(begin_, end_);
    begin_ = end_;
  }

 private:
  const Epilogue& epilogue_;
  std::int64_t begin_ = 0, end_ = 0;
};

}  // namespace syncline::kernels
