// Functions that rearrange elements, and static properties of tensors.
#include "syncline/backend/shape.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/binding/binding.h"
#include "python/binding/conversion.h"
#include "python/binding/tensor.h"
#include "syncline/backend/core.h"
#include "syncline/backend/math.h"
#include "syncline/backend/sparse.h"

namespace syncline::python {
namespace {

Pads pads_from(nb::handle pair) {
  const std::vector<std::int64_t> numbers = integers_from(pair);
  if (numbers.size() != 2) fail<ValueError>("padding: ", Shape(numbers), " is not a pair (before, after)");
  return {int_from(numbers[0], "padding"), int_from(numbers[1], "padding")};
}

template <std::size_t n>
std::array<Pads, n> pads_of(nb::handle padding) {
  std::array<Pads, n> pads{};
  std::size_t i = 0;
  for (nb::handle pair : nb::iter(padding)) {
    if (i < n) pads[i] = pads_from(pair);
    ++i;
  }
  if (i != n) fail<ValueError>("padding: ", i, " pairs for ", n, " axes; give one pair per axis");
  return pads;
}

DType dtype_of_number(nb::handle x) {
  if (nb::isinstance<Tensor>(x)) return nb::cast<Tensor&>(x).expr.dtype();
  if (PyFloat_CheckExact(x.ptr())) return DType::kFloat32;
  return array_from(x).array.dtype();
}

// As in TensorFlow, the widest dtype of the numbers replaces int32, the default.
Expr range(nb::handle start, nb::handle stop, nb::handle step, nb::handle dtype) {
  DType widest = DType::kInt32;
  bool has_tensors = false;
  for (nb::handle x : {start, stop, step}) {
    if (x.is_none()) continue;
    has_tensors |= nb::isinstance<Tensor>(x);
    for (const DType wider : {DType::kInt64, DType::kFloat32, DType::kFloat64})
      if (dtype_of_number(x) == wider)
        widest = std::max(widest, wider, [](DType a, DType b) {
          return std::pair(is_floating(a), size_of(a)) < std::pair(is_floating(b), size_of(b));
        });
  }
  DType type = dtype_from(dtype);
  if (type == DType::kInt32) type = widest;
  if (is_floating(widest) && !has_tensors) {
    const auto number = [](nb::handle x) { return nb::cast<double>(nb::float_(x)); };
    return stop.is_none() ? arange(0, number(start), number(step), type)
                          : arange(number(start), number(stop), number(step), type);
  }
  const auto scalar = [](nb::handle x) {  // Keras also passes tensors of shape (1,)
    if (!nb::isinstance<Tensor>(x)) return dim_from(x);
    return Dim(reshape(expr_from(x), Shape{}));
  };
  return stop.is_none() ? arange(Dim(0), scalar(start), scalar(step), type)
                        : arange(scalar(start), scalar(stop), scalar(step), type);
}

void bind_views(nb::module_& m) {
  m.def("reshape", [](nb::handle x, nb::handle shape) { return tensor(reshape(expr_from(x), dims_from(shape))); });
  m.def("expand_dims",
        [](nb::handle x, nb::handle axis) { return tensor(expand_dims(expr_from(x), int_from(axis, "axis"))); });
  m.def("squeeze", [](nb::handle x, nb::handle axis) { return tensor(squeeze(expr_from(x), int_from(axis, "axis"))); });
  m.def("flatten", [](nb::handle x) { return tensor(flatten(expr_from(x))); });
  m.def("batch_flatten", [](nb::handle x) { return tensor(batch_flatten(expr_from(x))); });
  m.def("permute_dimensions", [](nb::handle x, nb::handle pattern) {
    return tensor(permute_dimensions(expr_from(x), Axes(integers_from(pattern)).of(0)));
  });
  m.def("transpose", [](nb::handle x) { return tensor(transpose(expr_from(x))); });
  m.def("reverse", [](nb::handle x, nb::handle axes) { return tensor(reverse(expr_from(x), axes_from(axes))); });
}

void bind_parts(nb::module_& m) {
  m.def("concatenate", [](nb::handle tensors, nb::handle axis) {
    return tensor(concatenate(exprs_from(tensors), int_from(axis, "axis")));
  });
  m.def("stack", [](nb::handle tensors, nb::handle axis) {
    return tensor(stack(alike_exprs_from(tensors), int_from(axis, "axis")));
  });
  m.def("slice", [](nb::handle x, nb::handle start, nb::handle size) {
    return tensor(slice(expr_from(x), dims_from(start), dims_from(size)));
  });
  m.def("temporal_padding",
        [](nb::handle x, nb::handle padding) { return tensor(temporal_padding(expr_from(x), pads_from(padding))); });
  m.def("spatial_2d_padding", [](nb::handle x, nb::handle padding, const std::string& data_format) {
    return tensor(spatial_2d_padding(expr_from(x), pads_of<2>(padding), data_format));
  });
  m.def("spatial_3d_padding", [](nb::handle x, nb::handle padding, const std::string& data_format) {
    return tensor(spatial_3d_padding(expr_from(x), pads_of<3>(padding), data_format));
  });
}

void bind_repeats(nb::module_& m) {
  m.def("repeat_elements", [](nb::handle x, nb::handle rep, nb::handle axis) {
    return tensor(repeat_elements(expr_from(x), int_from(rep, "rep"), int_from(axis, "axis")));
  });
  m.def("repeat", [](nb::handle x, nb::handle n) { return tensor(repeat(expr_from(x), dim_from(n))); });
  m.def("resize_images", [](nb::handle x, nb::handle height_factor, nb::handle width_factor,
                            const std::string& data_format, const std::string& interpolation) {
    return tensor(resize_images(expr_from(x), int_from(height_factor, "height_factor"),
                                int_from(width_factor, "width_factor"), data_format, interpolation));
  });
  m.def("resize_volumes", [](nb::handle x, nb::handle depth_factor, nb::handle height_factor, nb::handle width_factor,
                             const std::string& data_format) {
    return tensor(resize_volumes(expr_from(x), int_from(depth_factor, "depth_factor"),
                                 int_from(height_factor, "height_factor"), int_from(width_factor, "width_factor"),
                                 data_format));
  });
  m.def("tile", [](nb::handle x, nb::handle n) { return tensor(tile(expr_from(x), dims_from(n))); });
  m.def("one_hot", [](nb::handle indices, nb::handle num_classes) {
    return tensor(one_hot(expr_from(indices), dim_from(num_classes)));
  });
  m.def(
      "arange",
      [](nb::handle start, nb::handle stop, nb::handle step, nb::handle dtype) {
        return tensor(range(start, stop, step, dtype));
      },
      nb::arg(), nb::arg().none(), nb::arg(), nb::arg().none());
}

}  // namespace

void bind_shape(nb::module_& m) {
  bind_views(m);
  bind_parts(m);
  bind_repeats(m);
  m.def("shape", [](nb::handle x) { return tensor(shape(expr_from(x))); });
  m.def("size", [](nb::handle x) { return tensor(count(expr_from(x), {}, DType::kInt32)); });
  m.def("count_params", [](nb::handle x) { return count_params(expr_from(x)); });
  m.def("static_shape", [](nb::handle x) { return shape_to(expr_from(x).shape()); });
  m.def("is_sparse", [](nb::handle x) { return is_sparse(expr_from(x)); });
  m.def("to_dense", [](nb::handle x) { return tensor(to_dense(expr_from(x))); });
  m.def("identity", [](nb::handle x, const std::string& name) { return tensor(identity(expr_from(x), name)); });
  m.def("stop_gradient", [](nb::handle x) { return tensor(stop_gradient(expr_from(x))); });
  const auto like = [](Expr (*make)(const Expr&, const TensorOptions&)) {
    return [make](nb::handle x, nb::handle dtype, const std::string& name) {
      return tensor(make(expr_from(x), {.dtype = optional_dtype_from(dtype), .name = name}));
    };
  };
  m.def("zeros_like", like(zeros_like), nb::arg(), nb::arg().none(), nb::arg());
  m.def("ones_like", like(ones_like), nb::arg(), nb::arg().none(), nb::arg());
}

}  // namespace syncline::python
