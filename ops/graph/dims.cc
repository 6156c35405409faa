#include "syncline/dims.h"

#include <algorithm>

#include "ops/graph/known_elements.h"
#include "ops/graph/leaf.h"
#include "syncline/backend/core.h"
#include "syncline/backend/math.h"
#include "syncline/backend/shape.h"

namespace syncline {

Dims::Dims(std::initializer_list<Dim> entries) {
  for (const Dim& entry : entries) append(entry);
}

Dims Dims::of_numbers(std::string_view function, std::initializer_list<Dim> entries) {
  for (const Dim& entry : entries)
    if (!entry.is_number() && entry.tensor().ndim() != 0)
      fail<ShapeError>(function, ": a tensor of shape ", entry.tensor().shape(),
                       " is given where one number is needed; give a scalar");
  return Dims(entries);
}

bool Dims::is_tensor(int i) const {
  return std::any_of(tensors_.begin(), tensors_.end(), [i](const auto& t) {
    return i >= t.first && i < t.first + (t.second.ndim() == 0 ? 1 : static_cast<int>(t.second.shape()[0]));
  });
}

void Dims::append(const Dim& entry) {
  if (entry.is_number()) return numbers_.push_back(entry.number());
  const Expr& e = entry.tensor();
  if (!is_integer(e.dtype())) fail<DTypeError>("a shape argument is a tensor of ", e.dtype(), "; cast it to int32");
  if (e.ndim() > 1 || !e.shape().is_known())
    fail<ShapeError>("a shape argument is a tensor of shape ", e.shape(),
                     "; give scalars, or a vector whose length is known");
  const KnownElements known = known_elements(e);
  if (known.empty()) {  // one tensor, also of several sizes
    if (e.shape().size() > 0) tensors_.emplace_back(numbers_.ndim(), e);
    for (std::int64_t i = 0; i < e.shape().size(); ++i) numbers_.push_back(kUnknown);
  }
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (!known[i])
      tensors_.emplace_back(numbers_.ndim(), squeeze(slice_axis(e, 0, static_cast<std::int64_t>(i), 1), 0));
    numbers_.push_back(known[i].value_or(kUnknown));
  }
}

void Dims::append(const Dims& others) {
  const int begin = numbers_.ndim();
  for (const std::int64_t number : others.numbers_) numbers_.push_back(number);
  for (const auto& [at, tensor] : others.tensors_) tensors_.emplace_back(begin + at, tensor);
}

Expr stack(const Dims& entries, DType dtype) {
  std::vector<Expr> parts;
  auto tensor = entries.tensors().begin();
  for (int i = 0; i < entries.size();) {
    if (tensor != entries.tensors().end() && tensor->first == i) {
      const Expr part = tensor->second.ndim() == 0 ? expand_dims(tensor->second) : tensor->second;
      parts.push_back(part.dtype() == dtype ? part : cast(part, dtype));
      i += static_cast<int>(part.shape()[0]);
      ++tensor;
    } else {
      parts.push_back(constant_of(Array::from<std::int64_t>(Shape{1}, {entries.numbers()[i++]}).cast(dtype)));
    }
  }
  if (parts.empty()) return constant_of(Array(dtype, Shape{0}));
  return concatenate(std::move(parts), 0);
}

Dim dim(const Expr& x, int axis) {
  const int at = wrap_axis("dim", axis, x.ndim());
  if (x.shape()[at] >= 0) return x.shape()[at];
  return squeeze(slice_axis(shape(x), 0, at, 1), 0);
}

Dims dims_of(const Expr& x) {
  Dims dims;
  for (int axis = 0; axis < x.ndim(); ++axis) dims.append(dim(x, axis));
  return dims;
}

}  // namespace syncline
