#include "tests/graphs/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "syncline/error.h"
#include "tests/graphs/one_by_one.h"

namespace syncline::graphs {
namespace {

std::vector<double> numbers(const Array& a) {
  const Array wide = a.cast(DType::kFloat64);
  return {wide.values<double>().begin(), wide.values<double>().end()};
}

// How far rounding moves each element of an output.
class Spread {
 public:
  Spread(const Array& base, DType dtype)
      : base_(numbers(base)), spread_(base_.size(), 0), wild_(base_.size(), false), ulp_(ulp_of(dtype)) {}

  void add(const Array& other, bool decides_what_is_finite) {
    singular_ = singular_ || decides_what_is_finite;
    const std::vector<double> v = numbers(other);
    for (std::size_t i = 0; i < v.size() && i < base_.size(); ++i) {
      if (std::isfinite(v[i]) != std::isfinite(base_[i])) wild_[i] = true;
      else if (std::isfinite(v[i])) spread_[i] = std::max(spread_[i], std::abs(v[i] - base_[i]));
      else if (!(v[i] == base_[i]) && !(std::isnan(v[i]) && std::isnan(base_[i]))) wild_[i] = true;
    }
  }

  // The first element that differs from the base by more than rounding explains, or -1.
  std::int64_t first_beyond(const std::vector<double>& got, bool in_parts) const {
    double largest = 0;
    for (const double s : spread_) largest = std::max(largest, s);
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (wild_[i] || got[i] == base_[i] || (std::isnan(got[i]) && std::isnan(base_[i]))) continue;
      if (!std::isfinite(got[i]) || !std::isfinite(base_[i])) {
        if (singular_ || is_quotient_by_noise(i)) continue;
        if (in_parts && std::isinf(base_[i]) && std::isnan(got[i])) continue;
        return static_cast<std::int64_t>(i);
      }
      const double most = 40 * spread_[i] + 4 * largest + 8 * ulp_ * std::abs(base_[i]);
      if (!(std::abs(got[i] - base_[i]) <= most)) return static_cast<std::int64_t>(i);
    }
    return -1;
  }
  // A quotient by a rounding error, where another way of computing may divide by 0.
  bool is_quotient_by_noise(std::size_t i) const {
    const double size = std::abs(base_[i]), most = std::max(size, spread_[i]);
    return spread_[i] > size / 4 && most * ulp_ * 1000 > 1;
  }
  double base(std::int64_t i) const { return base_[static_cast<std::size_t>(i)]; }
  double spread(std::int64_t i) const { return spread_[static_cast<std::size_t>(i)]; }

 private:
  std::vector<double> base_, spread_;
  std::vector<bool> wild_;
  bool singular_ = false;
  double ulp_;
};

std::string difference_of(std::size_t output, const Outcome& wanted, const Array& got, bool exact, bool in_parts,
                          const Perturbed& perturbed) {
  const Array& base = wanted.outputs[output];
  if (got.dtype() != base.dtype() || got.shape() != base.shape())
    return join_text("output ", output, " is ", got.dtype(), got.shape(), ", wanted ", base.dtype(), base.shape());
  if (same_bits(base, got, true)) return {};
  Spread spread(base, base.dtype());
  const std::vector<double> values = numbers(got);
  std::int64_t at = -1;
  for (std::uint64_t k = 1; k <= (exact ? 0 : 3 * kNoiseOfResults); ++k) {
    const Outcome other = perturbed(k);
    if (other.error.starts_with("an internal error")) return "with other rounding errors throws " + other.error;
    if (!other.error.empty() || other.outputs.size() <= output) return {};
    spread.add(other.outputs[output], wanted.poles_in_bodies || other.finite != wanted.finite);
    if (k >= 3 && (at = spread.first_beyond(values, in_parts)) < 0) return {};
  }
  const Array flat = base.reshaped({base.size()}), flat_got = got.reshaped({base.size()});
  if (exact)
    for (at = 0; same_bits(flat.rows(at, at + 1), flat_got.rows(at, at + 1), true);) ++at;
  return join_text("output ", output, " ", base.dtype(), base.shape(), ", element ", at, ": ",
                   values[static_cast<std::size_t>(at)], ", wanted ", spread.base(at),
                   exact ? " to the bit" : join_text(" within about ", spread.spread(at)));
}

}  // namespace

double ulp_of(DType dtype) {
  return dtype == DType::kFloat16 ? 1e-3 : dtype == DType::kFloat32 ? 1.2e-7 : dtype == DType::kFloat64 ? 2.2e-16 : 0;
}

bool same_bits(const Array& a, const Array& b, bool any_zero) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0) return true;
  if (!is_floating(a.dtype())) return false;
  const std::size_t size = size_of(a.dtype());
  const std::vector<double> x = numbers(a), y = numbers(b);
  for (std::size_t i = 0; i < x.size(); ++i)
    if (std::memcmp(a.raw() + i * size, b.raw() + i * size, size) != 0 && !(std::isnan(x[i]) && std::isnan(y[i])) &&
        !(any_zero && x[i] == 0 && y[i] == 0))
      return false;
  return true;
}

std::string difference(const Outcome& wanted, const Outcome& got, bool exact, bool in_parts,
                       const Perturbed& perturbed) {
  if (!wanted.error.empty()) return {};  // a plan may drop the failing part if nothing needs it
  if (!got.error.empty()) return "throws " + got.error;
  for (std::size_t i = 0; i < wanted.outputs.size(); ++i)
    if (std::string found = difference_of(i, wanted, got.outputs[i], exact, in_parts, perturbed); !found.empty())
      return found;
  return {};
}

}  // namespace syncline::graphs
