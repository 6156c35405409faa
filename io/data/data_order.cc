// Fisher-Yates over SplitMix64: std::shuffle and the standard distributions differ between libraries.
#include "io/data/data_order.h"

#include <numeric>
#include <utility>

#include "syncline/error.h"

namespace syncline::io {
namespace {

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;

std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

class SplitMix {
 public:
  explicit SplitMix(std::uint64_t state) : state_(state) {}

  std::uint64_t next() { return mix(state_ += kGolden); }

  // Uniform in [0, bound): redraws values in the incomplete last block of the 64-bit range.
  std::uint64_t below(std::uint64_t bound) {
    const std::uint64_t incomplete = -bound % bound;
    std::uint64_t value = next();
    while (value < incomplete) value = next();
    return value % bound;
  }

 private:
  std::uint64_t state_;
};

// Mixes twice, so that neighbouring seeds and epochs start unrelated streams.
std::uint64_t epoch_state(std::uint64_t seed, std::int64_t epoch) {
  return mix(mix(seed + kGolden) + static_cast<std::uint64_t>(epoch) * kGolden);
}

std::vector<std::int64_t> permutation(SplitMix random, std::int64_t rows) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(rows));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  for (std::size_t left = order.size(); left > 1; --left) std::swap(order[left - 1], order[random.below(left)]);
  return order;
}

}  // namespace

std::vector<std::int64_t> epoch_order(std::uint64_t seed, std::int64_t epoch, std::int64_t rows) {
  if (epoch < 0 || rows < 0)
    fail<ValueError>("epoch_order: epoch ", epoch, " and rows ", rows, " must not be negative");
  return permutation(SplitMix(epoch_state(seed, epoch)), rows);
}

std::vector<std::int64_t> part_order(std::uint64_t seed, std::int64_t epoch, std::int64_t part, std::int64_t rows) {
  if (epoch < 0 || part < 0 || rows < 0)
    fail<ValueError>("part_order: epoch ", epoch, ", part ", part, " and rows ", rows, " must not be negative");
  const std::uint64_t state = epoch_state(seed, epoch) ^ kGolden;  // a stream other than the epoch's own
  return permutation(SplitMix(mix(state + static_cast<std::uint64_t>(part) * kGolden)), rows);
}

}  // namespace syncline::io
