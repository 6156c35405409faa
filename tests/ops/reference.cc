#include "tests/ops/reference.h"

#include <algorithm>

namespace syncline::testing {

Tensor tabulate(const Shape& shape, const std::function<double(const Index&)>& f) {
  Tensor y{shape, {}};
  Index index(static_cast<std::size_t>(shape.ndim()), 0);
  for (std::int64_t i = 0; i < shape.size(); ++i) {
    y.values.push_back(f(index));
    for (int axis = shape.ndim() - 1; axis >= 0; --axis) {
      std::int64_t& digit = index[static_cast<std::size_t>(axis)];
      if (++digit < shape[axis]) break;
      digit = 0;
    }
  }
  return y;
}

double at(const Tensor& x, const Index& index) {
  std::int64_t offset = 0;
  const auto extra = static_cast<int>(index.size()) - x.shape.ndim();
  for (int axis = 0; axis < x.shape.ndim(); ++axis) {
    const std::int64_t digit = x.shape[axis] == 1 ? 0 : index[static_cast<std::size_t>(axis + extra)];
    offset = offset * x.shape[axis] + digit;
  }
  return x.values.at(static_cast<std::size_t>(offset));
}

Shape broadcast_shape(const Shape& a, const Shape& b) {
  Shape longer = a.ndim() >= b.ndim() ? a : b;
  const Shape& shorter = a.ndim() >= b.ndim() ? b : a;
  const int extra = longer.ndim() - shorter.ndim();
  for (int axis = 0; axis < shorter.ndim(); ++axis)
    if (longer[axis + extra] == 1) longer[axis + extra] = shorter[axis];
  return longer;
}

Reference elementwise(double (*f)(double)) {
  return [f](std::span<const Tensor> in) {
    return tabulate(in[0].shape, [&](const Index& i) { return f(at(in[0], i)); });
  };
}

Reference elementwise(double (*f)(double, double)) {
  return [f](std::span<const Tensor> in) {
    return tabulate(broadcast_shape(in[0].shape, in[1].shape),
                    [&](const Index& i) { return f(at(in[0], i), at(in[1], i)); });
  };
}

Reference elementwise(double (*f)(double, double, double)) {
  return [f](std::span<const Tensor> in) {
    return tabulate(broadcast_shape(broadcast_shape(in[0].shape, in[1].shape), in[2].shape),
                    [&](const Index& i) { return f(at(in[0], i), at(in[1], i), at(in[2], i)); });
  };
}

Reference folding(std::vector<int> axes, bool keepdims, Fold f) {
  return [axes, keepdims, f](std::span<const Tensor> in) {
    const Shape& shape = in[0].shape;
    auto folded = [&](int axis) {
      return std::any_of(axes.begin(), axes.end(), [&](int a) { return (a < 0 ? a + shape.ndim() : a) == axis; });
    };
    Shape kept = shape, inner = shape;
    for (int axis = 0; axis < shape.ndim(); ++axis) (folded(axis) ? kept : inner)[axis] = 1;
    Tensor y = tabulate(kept, [&](const Index& outside) {
      const Tensor group = tabulate(inner, [&](const Index& inside) {
        Index both = outside;
        for (std::size_t axis = 0; axis < both.size(); ++axis) both[axis] += inside[axis];
        return at(in[0], both);
      });
      return f(group.values);
    });
    for (int axis = shape.ndim() - 1; axis >= 0 && !keepdims; --axis)
      if (folded(axis)) y.shape.erase(axis);
    return y;
  };
}

Reference literal(Shape shape, std::vector<double> values) {
  return [shape, values](std::span<const Tensor>) { return Tensor{shape, values}; };
}

}  // namespace syncline::testing
