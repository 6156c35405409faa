// Random tensors. Python draws the seed where the caller gives none, from NumPy's generator as Keras does, so that
// numpy.random.seed makes a run reproducible.
#include "ops/random.h"

#include "python/binding/binding.h"
#include "python/binding/conversion.h"
#include "python/binding/tensor.h"
#include "runtime/config.h"

namespace syncline::python {

void bind_random(nb::module_& m) {
  m.def(
      "random_uniform",
      [](nb::handle shape, double minval, double maxval, nb::handle dtype, std::uint64_t seed) {
        return tensor(random_uniform(dims_from(shape), {minval, maxval, dtype_from(dtype)}, seed));
      },
      nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg());
  m.def(
      "random_normal",
      [](nb::handle shape, double mean, double stddev, nb::handle dtype, std::uint64_t seed) {
        return tensor(random_normal(dims_from(shape), {mean, stddev, dtype_from(dtype)}, seed));
      },
      nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg());
  m.def(
      "truncated_normal",
      [](nb::handle shape, double mean, double stddev, nb::handle dtype, std::uint64_t seed) {
        return tensor(truncated_normal(dims_from(shape), {mean, stddev, dtype_from(dtype)}, seed));
      },
      nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg());
  m.def(
      "random_binomial",
      [](nb::handle shape, double p, nb::handle dtype, std::uint64_t seed) {
        return tensor(random_binomial(dims_from(shape), {p, dtype_from(dtype)}, seed));
      },
      nb::arg(), nb::arg(), nb::arg().none(), nb::arg());
  m.def(
      "dropout",
      [](nb::handle x, double level, nb::handle noise_shape, std::uint64_t seed) {
        std::optional<Dims> shape;
        if (!noise_shape.is_none()) shape = dims_from(noise_shape);
        return tensor(dropout(expr_from(x), level, shape, seed));
      },
      nb::arg(), nb::arg(), nb::arg().none(), nb::arg());
}

}  // namespace syncline::python
