#include "tests/ops/windows.h"

namespace syncline::testing {

std::int64_t Windows::positions(int i, std::int64_t in) const {
  const auto k = static_cast<std::size_t>(i);
  const std::int64_t reach = (size[k] - 1) * dilation_rate[k] + 1;
  std::int64_t n = 0;
  while (n * strides[k] + (padding == "valid" ? reach : 1) <= in) ++n;
  return n;
}

std::int64_t Windows::before(int i, std::int64_t in) const {
  const auto k = static_cast<std::size_t>(i);
  const std::int64_t reach = (size[k] - 1) * dilation_rate[k] + 1;
  if (padding == "valid") return 0;
  if (padding == "causal") return reach - 1;
  std::int64_t zeros = 0;
  while ((positions(i, in) - 1) * strides[k] + reach > in + zeros) ++zeros;
  return zeros / 2;  // the odd zero goes to the end
}

Shape Windows::result(const Shape& x) const {
  Shape y{x[0]};
  for (int i = 0; i < spatial(); ++i) y.push_back(positions(i, x[i + 1]));
  return y;
}

void Windows::for_taps(const Shape& x, const Index& position,
                       const std::function<void(const Index&, const Index&)>& f) const {
  tabulate(Shape(size), [&](const Index& tap) {
    Index at;
    for (int i = 0; i < spatial(); ++i) {
      const auto k = static_cast<std::size_t>(i);
      at.push_back(position[k] * strides[k] + tap[k] * dilation_rate[k] - before(i, x[i + 1]));
      if (at.back() < 0 || at.back() >= x[i + 1]) return 0.0;
    }
    f(tap, at);
    return 0.0;
  });
}

namespace {

std::vector<int> to_back(int ndim) {
  std::vector<int> pattern{0};
  for (int axis = 2; axis < ndim; ++axis) pattern.push_back(axis);
  pattern.push_back(1);
  return pattern;
}

std::vector<int> to_front(int ndim) {
  std::vector<int> pattern{0, ndim - 1};
  for (int axis = 1; axis + 1 < ndim; ++axis) pattern.push_back(axis);
  return pattern;
}

}  // namespace

Shape Windows::order(const Shape& last) const {
  if (!first()) return last;
  Shape shape;
  for (const int axis : to_front(last.ndim())) shape.push_back(last[axis]);
  return shape;
}
Tensor Windows::to_last(const Tensor& x) const { return first() ? permuted(x, to_back(x.shape.ndim())) : x; }
Tensor Windows::from_last(const Tensor& x) const { return first() ? permuted(x, to_front(x.shape.ndim())) : x; }

double& element(Tensor& x, const Index& index) {
  std::int64_t offset = 0;
  for (int axis = 0; axis < x.shape.ndim(); ++axis)
    offset = offset * x.shape[axis] + index[static_cast<std::size_t>(axis)];
  return x.values[static_cast<std::size_t>(offset)];
}

Tensor zeros_of(const Shape& shape) {
  return {shape, std::vector<double>(static_cast<std::size_t>(shape.size()), 0.0)};
}

Tensor permuted(const Tensor& x, const std::vector<int>& pattern) {
  Shape shape;
  for (const int axis : pattern) shape.push_back(x.shape[axis]);
  return tabulate(shape, [&](const Index& i) {
    Index from(i.size());
    for (std::size_t k = 0; k < i.size(); ++k) from[static_cast<std::size_t>(pattern[k])] = i[k];
    return at(x, from);
  });
}

Tensor padded(const Tensor& x, const Steps& before, const Shape& shape) {
  Tensor y = zeros_of(shape);
  tabulate(x.shape, [&](const Index& from) {
    Index to = from;
    for (std::size_t axis = 0; axis < to.size(); ++axis) to[axis] += before[axis];
    return element(y, to) = at(x, from);
  });
  return y;
}

Shape padded_shape(Shape x, const Steps& before, const Steps& after) {
  for (int axis = 0; axis < x.ndim(); ++axis)
    x[axis] += before[static_cast<std::size_t>(axis)] + after[static_cast<std::size_t>(axis)];
  return x;
}

}  // namespace syncline::testing
