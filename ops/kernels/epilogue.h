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

// Computes rows [begin, end) of `row` elements by body(first, last), followed by their epilogue (or null) while they
// are in a core's cache.
template <class Body>
void run_rows(const Epilogue* epilogue, std::int64_t begin, std::int64_t end, std::int64_t row, const Body& body) {
  constexpr std::int64_t kElements = 16 << 10;
  const std::int64_t step = epilogue == nullptr ? end - begin : std::max<std::int64_t>(1, kElements / row);
  for (; begin < end; begin += step) {
    const std::int64_t last = std::min(begin + step, end);
    body(begin, last);
    if (epilogue != nullptr) epilogue->run(begin * row, last * row);
  }
}

}  // namespace syncline::kernels
