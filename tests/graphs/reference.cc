#include "tests/graphs/reference.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "syncline/dtype.h"

namespace syncline::graphs {
namespace {

std::vector<double> numbers(const Array& a) {
  const Array wide = a.cast(DType::kFloat64);
  return {wide.values<double>().begin(), wide.values<double>().end()};
}

// The tolerance of a result in this dtype, relative to its magnitude or the magnitude of its terms.
double rounding(DType dtype) { return dtype == DType::kFloat16 ? 2e-3 : dtype == DType::kFloat32 ? 2e-6 : 1e-12; }

bool near(double got, double wanted, double tolerance, double scale, DType dtype) {
  if (std::isnan(wanted)) return std::isnan(got);
  const double largest = dtype == DType::kFloat16 ? 65504 : dtype == DType::kFloat32 ? 3.4e38 : 1.7e308;
  const double least = dtype == DType::kFloat16 ? 6e-5 : dtype == DType::kFloat32 ? 1.2e-38 : 2.3e-308;
  if (std::abs(wanted) > largest * (1 - 1e-3)) return !(std::abs(got) < largest * 0.99) && (got > 0) == (wanted > 0);
  if (std::isinf(wanted) || std::isinf(got)) return got == wanted;
  return std::abs(got - wanted) <= tolerance * std::max(scale, std::abs(wanted)) + least;
}

using Function = std::function<double(const double* x)>;
const std::map<std::string_view, Function>& functions() {
  static const std::map<std::string_view, Function> all{
      {"add", [](const double* x) { return x[0] + x[1]; }},
      {"sub", [](const double* x) { return x[0] - x[1]; }},
      {"mul", [](const double* x) { return x[0] * x[1]; }},
      {"div", [](const double* x) { return x[0] / x[1]; }},
      {"maximum", [](const double* x) { return std::isnan(x[0]) || x[0] > x[1] ? x[0] : x[1]; }},
      {"minimum", [](const double* x) { return std::isnan(x[0]) || x[0] < x[1] ? x[0] : x[1]; }},
      {"neg", [](const double* x) { return -x[0]; }},
      {"square", [](const double* x) { return x[0] * x[0]; }},
      {"abs", [](const double* x) { return std::abs(x[0]); }},
      {"sqrt", [](const double* x) { return std::isnan(x[0]) ? x[0] : std::sqrt(std::max(x[0], 0.0)); }},
      {"exp", [](const double* x) { return std::exp(x[0]); }},
      {"log", [](const double* x) { return std::log(x[0]); }},
      {"sin", [](const double* x) { return std::sin(x[0]); }},
      {"cos", [](const double* x) { return std::cos(x[0]); }},
      {"tanh", [](const double* x) { return std::tanh(x[0]); }},
      {"sigmoid", [](const double* x) { return 1 / (1 + std::exp(-x[0])); }},
      {"softplus", [](const double* x) { return x[0] > 30 ? x[0] : std::log1p(std::exp(x[0])); }},
      {"softsign", [](const double* x) { return x[0] / (1 + std::abs(x[0])); }},
      {"round", [](const double* x) { return std::nearbyint(x[0]); }},
      {"equal", [](const double* x) { return x[0] == x[1]; }},
      {"not_equal", [](const double* x) { return x[0] != x[1]; }},
      {"greater", [](const double* x) { return x[0] > x[1]; }},
      {"greater_equal", [](const double* x) { return x[0] >= x[1]; }},
      {"less", [](const double* x) { return x[0] < x[1]; }},
      {"less_equal", [](const double* x) { return x[0] <= x[1]; }},
      {"select", [](const double* x) { return x[0] != 0 ? x[1] : x[2]; }},
      {"logical_and", [](const double* x) { return x[0] != 0 && x[1] != 0; }},
      {"logical_not", [](const double* x) { return x[0] == 0; }},
  };
  return all;
}

// NumPy's broadcasting rule, implemented independently. Empty if the shapes do not broadcast.
std::optional<std::vector<std::int64_t>> broadcast_shape(const std::vector<Array>& in) {
  int ndim = 0;
  for (const Array& a : in) ndim = std::max(ndim, a.shape().ndim());
  std::vector<std::int64_t> out(static_cast<std::size_t>(ndim), 1);
  for (const Array& a : in)
    for (int i = 1; i <= a.shape().ndim(); ++i) {
      std::int64_t& have = out[out.size() - static_cast<std::size_t>(i)];
      const std::int64_t n = a.shape()[a.shape().ndim() - i];
      if (n == 1 || n == have) continue;
      if (have != 1) return {};
      have = n;
    }
  return out;
}

// The position in `a` of element `index` of a value of shape `out`.
std::size_t place_in(const Array& a, const Shape& out, std::int64_t index) {
  std::int64_t at = 0, stride = 1;
  for (int i = 1; i <= out.ndim(); ++i) {
    const std::int64_t n = out[out.ndim() - i], k = index % n;
    index /= n;
    if (i > a.shape().ndim()) continue;
    const std::int64_t own = a.shape()[a.shape().ndim() - i];
    at += own == 1 ? 0 : k * stride;
    stride *= own;
  }
  return static_cast<std::size_t>(at);
}

// The axes and flags of a reduction's line. Its tape has one number per axis (0 to 2: kept; 3, 4: reduced), the order
// if several axes are reduced, keepdims, and 0 if all axes are reduced.
struct Reduced {
  std::vector<bool> axes;
  bool keep = false, whole = false;
};
Reduced reduced_of(const std::vector<std::int64_t>& tape, int ndim) {
  Reduced r;
  std::size_t at = 0;
  for (int i = 0; i < ndim; ++i) r.axes.push_back(tape[at++] >= 3);
  if (std::count(r.axes.begin(), r.axes.end(), true) > 1) ++at;
  r.keep = tape[at++] != 0;
  r.whole = tape[at] == 0;
  if (r.whole) r = {std::vector<bool>(static_cast<std::size_t>(ndim), true), false, true};
  return r;
}

std::string check_reduction(const std::vector<std::int64_t>& tape, const Array& x, const Array& out, double start,
                            const std::function<double(double, double)>& join, bool mean = false) {
  const Reduced r = reduced_of(tape, x.shape().ndim());
  Shape wanted, kept;
  std::int64_t of_each = 1;
  for (int i = 0; i < x.shape().ndim(); ++i) {
    const bool gone = r.axes[static_cast<std::size_t>(i)];
    kept.push_back(gone ? 1 : x.shape()[i]);
    if (gone) of_each *= x.shape()[i];
    if (!gone || r.keep) wanted.push_back(gone ? 1 : x.shape()[i]);
  }
  if (out.shape() != wanted) return join_text("has the shape ", out.shape(), ", wanted ", wanted);
  if (!is_floating(x.dtype())) return {};
  const std::vector<double> in = numbers(x), got = numbers(out);
  std::vector<double> total(static_cast<std::size_t>(kept.size()), start), size(total.size(), 0),
      reach(total.size(), 1);
  const Array places(DType::kBool, kept);
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const std::size_t at = place_in(places, x.shape(), i);
    total[at] = join(total[at], in[static_cast<std::size_t>(i)]);
    if (std::abs(in[static_cast<std::size_t>(i)]) > 1) reach[at] *= std::abs(in[static_cast<std::size_t>(i)]);
    size[at] += std::isfinite(in[static_cast<std::size_t>(i)]) ? std::abs(in[static_cast<std::size_t>(i)]) : 0;
  }
  for (std::size_t i = 0; i < total.size(); ++i) {
    if (mean) total[i] /= static_cast<double>(of_each);
    const double largest = x.dtype() == DType::kFloat16 ? 6e4 : x.dtype() == DType::kFloat32 ? 1e38 : 1e307;
    // In another order partial results may overflow.
    if (size[i] > largest || std::abs(total[i]) > largest || (start == 1 && reach[i] > largest) || of_each == 0)
      continue;
    if (!near(got[i], total[i], rounding(x.dtype()) * 4, size[i], x.dtype()))
      return join_text("element ", i, " is ", got[i], ", wanted ", total[i]);
  }
  return {};
}

}  // namespace

std::string check_elementwise(std::string_view op, const std::vector<Array>& in, const Array& out) {
  const auto found = functions().find(op);
  if (found == functions().end()) return {};
  const auto shape = broadcast_shape(in);
  if (!shape) return "takes shapes that do not fit";
  if (out.shape() != Shape(*shape)) return join_text("has the shape ", out.shape(), ", wanted ", Shape(*shape));
  const DType dtype = in.back().dtype();
  if (!is_floating(dtype)) return {};
  std::vector<std::vector<double>> x;
  for (const Array& a : in) x.push_back(numbers(a));
  const std::vector<double> got = numbers(out);
  for (std::int64_t i = 0; i < out.size(); ++i) {
    double operands[3] = {};
    for (std::size_t k = 0; k < x.size(); ++k) operands[k] = x[k][place_in(in[k], out.shape(), i)];
    const double wanted = found->second(operands);
    const double scale = op == "sin" || op == "cos" ? 1 : 0;
    if (!near(got[static_cast<std::size_t>(i)], wanted, rounding(dtype), scale, dtype))
      return join_text("element ", i, " is ", got[static_cast<std::size_t>(i)], ", wanted ", wanted);
  }
  return {};
}

std::string check_sum_of_terms(std::int64_t element, double got, double wanted, double size, DType dtype) {
  const double largest = dtype == DType::kFloat16 ? 6e4 : dtype == DType::kFloat32 ? 1e38 : 1e307;
  if (!(size < largest) || near(got, wanted, rounding(dtype) * 4, size, dtype)) return {};
  return join_text("element ", element, " is ", got, ", wanted ", wanted);
}

std::string check_relu(const std::vector<std::int64_t>& tape, const std::vector<Array>& in, const Array& out) {
  static constexpr double kAlpha[] = {0, 0.25, 0.5, 1, -0.5}, kThreshold[] = {0, 0, 1, -0.5}, kMost[] = {6, 1, 0.5, 2};
  const double alpha = kAlpha[tape[0]], threshold = kThreshold[tape[1]], most = kMost[tape[2]];
  const std::vector<double> x = numbers(in[0]), got = numbers(out);
  for (std::size_t i = 0; i < x.size(); ++i) {
    double kept = x[i] >= threshold ? x[i] : 0;  // as in TensorFlow, max_value implies a lower bound of 0
    if (tape[3] != 0) kept = std::clamp(kept, 0.0, most);
    const double wanted = std::isnan(x[i]) ? x[i] : kept + alpha * std::min(x[i] - threshold, 0.0);
    if (std::isinf(x[i])) continue;
    if (!near(got[i], wanted, rounding(out.dtype()), 1, out.dtype()))
      return join_text("element ", i, " of ", x[i], " is ", got[i], ", wanted ", wanted);
  }
  return {};
}

std::string check_sum(const std::vector<std::int64_t>& tape, const std::vector<Array>& in, const Array& out) {
  return check_reduction(tape, in[0], out, 0, [](double a, double b) { return a + b; });
}
std::string check_mean(const std::vector<std::int64_t>& tape, const std::vector<Array>& in, const Array& out) {
  return check_reduction(
      tape, in[0], out, 0, [](double a, double b) { return a + b; }, true);
}
std::string check_prod(const std::vector<std::int64_t>& tape, const std::vector<Array>& in, const Array& out) {
  return check_reduction(tape, in[0], out, 1, [](double a, double b) { return a * b; });
}
std::string check_max(const std::vector<std::int64_t>& tape, const std::vector<Array>& in, const Array& out) {
  return check_reduction(tape, in[0], out, -INFINITY,
                         [](double a, double b) { return std::isnan(a) || a > b ? a : b; });
}
std::string check_min(const std::vector<std::int64_t>& tape, const std::vector<Array>& in, const Array& out) {
  return check_reduction(tape, in[0], out, INFINITY, [](double a, double b) { return std::isnan(a) || a < b ? a : b; });
}

}  // namespace syncline::graphs
