#include <algorithm>
#include <cmath>

#include "base/convert.h"
#include "tests/graphs/program.h"

namespace syncline::graphs {
namespace {

double edge(DType dtype, Random& random) {
  const bool half = dtype == DType::kFloat16, narrow = dtype == DType::kFloat32;
  const double huge = half ? 3e4 : narrow ? 1.7e9 : 1e17, tiny = half ? 6e-8 : narrow ? 1e-42 : 1e-310;
  switch (random.below(16)) {
    case 0: return NAN;
    case 1: return INFINITY;
    case 2: return -INFINITY;
    case 3: return huge * (1 + random.uniform());
    case 4: return -huge * (1 + random.uniform());
    case 5: return 0.0;
    case 6: return -0.0;
    case 7: return tiny;
    case 8: return 1;
    case 9: return -1;
    case 10: return -tiny;
    case 11: return half ? 100 : 1e4 * random.uniform();
    default: return 4 * random.uniform() - 2;
  }
}

double drawn(DType dtype, Pool pool, std::int64_t limit, Random& random) {
  if (pool == Pool::kIndex) return static_cast<double>(random.below(std::max<std::int64_t>(1, limit)));
  if (pool == Pool::kProbability) return 0.05 + 0.9 * random.uniform();
  if (!is_floating(dtype)) {
    const double sign = dtype == DType::kUint8 || dtype == DType::kBool ? 0 : 3;
    if (pool == Pool::kEdges && random.chance(20)) {
      static constexpr double kEdges[] = {127, -128, 255, 32767, -32768, 2147483647, -2147483648.0, 0};
      return kEdges[random.below(8)];
    }
    return static_cast<double>(random.below(dtype == DType::kBool ? 2 : 7)) - sign;
  }
  if (pool == Pool::kTies) return static_cast<double>(random.below(4)) / 2 - 0.5;
  if (pool == Pool::kEdges) return edge(dtype, random);
  return pool == Pool::kPositive ? 0.5 + random.uniform() : 3 * random.uniform() - 1.5;
}

template <class T>
T number_as(double v) {
  if constexpr (std::is_same_v<T, bool>) return v != 0;
  else if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<std::int64_t>(v));
  else return static_cast<T>(v);
}

}  // namespace

Array values_of(DType dtype, const Shape& shape, Pool pool, std::int64_t limit, std::uint64_t key) {
  Random random(key);
  if (dtype == DType::kFloat16) {
    Array floats(DType::kFloat32, shape);
    for (std::int64_t i = 0; i < floats.size(); ++i)
      floats.data<float>()[i] = static_cast<float>(drawn(dtype, pool, limit, random));
    return floats.cast(dtype);
  }
  Array result(dtype, shape);
  with_stored_dtype(dtype, [&]<class T>(T) {
    if constexpr (!std::is_same_v<T, Float16>)
      for (std::int64_t i = 0; i < result.size(); ++i)
        result.data<T>()[i] = number_as<T>(drawn(dtype, pool, limit, random));
  });
  return result;
}

Shape shape_in(const Input& input, const Call& call) {
  Shape shape = input.shape;
  if (input.group >= 0) shape[0] = call.rows[static_cast<std::size_t>(input.group)];
  return shape;
}

std::uint64_t key_in(const Input& input, std::size_t call) {
  return input.key + (input.kind == Input::kFed ? 977 * call : 0);
}

Array value_in(const Program& program, const Input& input, std::size_t call, bool wide) {
  const Shape shape = input.kind == Input::kFed ? shape_in(input, program.calls[call]) : input.shape;
  Array value = values_of(input.dtype, input.kind == Input::kFill ? Shape{} : shape, input.pool, input.limit,
                          key_in(input, call));
  if (input.kind == Input::kFill) {
    Array filled(input.dtype, shape);
    for (std::size_t i = 0; i < filled.bytes(); i += value.bytes())
      std::copy_n(value.raw(), value.bytes(), filled.raw() + i);
    value = filled;
  }
  return wide && is_floating(input.dtype) ? value.cast(DType::kFloat64) : value;
}

}  // namespace syncline::graphs
