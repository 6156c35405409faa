// Progress of an epoch: a bar on a terminal, plain lines elsewhere, nothing on other ranks than the first.
#pragma once

#include <chrono>
#include <cstdint>

namespace syncline::examples {

class Progress {
 public:
  // `done`: steps of the epoch finished before (a resumed run).
  Progress(bool shown, std::int64_t epoch, std::int64_t epochs, std::int64_t steps, std::int64_t done);
  // After a step: the number of rows it took, its loss and accuracy.
  void step(std::int64_t rows, double loss, double accuracy);
  // Ends the line.
  void finish();

 private:
  void print(bool last);

  using Clock = std::chrono::steady_clock;
  bool shown_, terminal_;
  std::int64_t epoch_, epochs_, steps_, done_, first_;
  std::int64_t rows_ = 0;
  double loss_ = 0, accuracy_ = 0;  // sums over rows
  Clock::time_point begin_ = Clock::now(), printed_ = Clock::now();
};

}  // namespace syncline::examples
