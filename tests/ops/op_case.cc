#include "tests/ops/op_case.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <set>

namespace syncline::testing {
namespace {

std::vector<OpCase>& cases() {
  static std::vector<OpCase> list;
  return list;
}

// splitmix64
std::uint64_t scramble(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

double uniform(std::uint64_t key, std::uint64_t index) {
  return static_cast<double>(scramble(scramble(key) + index) >> 11) * 0x1p-53;
}

}  // namespace

bool add_cases(std::vector<OpCase> (*rows)()) {
  for (OpCase& row : rows()) {
    for (const OpCase& other : cases())
      if (other.name == row.name) {
        std::fprintf(stderr, "two op cases are named %s\n", row.name.c_str());
        std::abort();
      }
    cases().push_back(std::move(row));
  }
  return true;
}

std::span<const OpCase> all_cases() { return cases(); }

std::vector<std::size_t> numbers_of_cases() {
  std::vector<std::size_t> numbers(cases().size());
  std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  return numbers;
}

Array random_array(DType dtype, const Shape& shape, double low, double high, std::uint64_t key) {
  if (dtype == DType::kFloat16) return random_array(DType::kFloat32, shape, low, high, key).cast(dtype);
  Array array(dtype, shape);
  with_dtype(dtype, [&]<class T>(T) {
    for (std::int64_t i = 0; i < array.size(); ++i) {
      const double u = uniform(key, static_cast<std::uint64_t>(i));
      if constexpr (std::is_same_v<T, bool>) array.data<T>()[i] = u < 0.5;
      else if constexpr (std::is_integral_v<T>)
        array.data<T>()[i] = static_cast<T>(std::floor(low + u * (high + 1 - low)));
      else array.data<T>()[i] = static_cast<T>(low + u * (high - low));
    }
  });
  return array;
}

Array make_input(const InputSpec& spec, std::uint64_t point, bool wide) {
  const DType dtype = wide && spec.dtype == DType::kFloat32 ? DType::kFloat64 : spec.dtype;
  if (!spec.values.empty()) return array_of({spec.shape, spec.values}, dtype);
  // Drawn in the spec's dtype, so that both widths hold the same numbers.
  return random_array(spec.dtype, spec.shape, spec.low, spec.high, point).cast(dtype);
}

std::vector<Array> make_inputs(std::span<const InputSpec> specs, std::uint64_t point, bool wide) {
  std::vector<Array> inputs;
  for (std::size_t i = 0; i < specs.size(); ++i) inputs.push_back(make_input(specs[i], 100 * point + i, wide));
  return inputs;
}

std::vector<Array> make_halves(std::span<const InputSpec> specs, std::uint64_t point) {
  std::vector<Array> inputs = make_inputs(specs, point);
  for (Array& input : inputs)
    if (input.dtype() == DType::kFloat32) input = input.cast(DType::kFloat16);
  return inputs;
}

Tensor tensor_of(const Array& array) {
  const Array wide = array.cast(DType::kFloat64);
  const auto values = wide.values<double>();
  return {array.shape(), {values.begin(), values.end()}};
}

Array array_of(const Tensor& tensor, DType dtype) {
  return Array::from<double>(tensor.shape, tensor.values).cast(dtype);
}

}  // namespace syncline::testing
