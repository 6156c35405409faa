// The table of op cases: one row an op (or more), run in several modes by op_case_test.cc, op_placement_test.cc and,
// for speed, benchmarks/op_bench.cc. A row says how to build the op, what to feed it, and what must come out, computed
// by other means: plain loops in double, or numbers from NumPy.
//
// Rows are added to one list before main (SYNCLINE_OP_CASES); afterwards the list does not change.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "syncline/array.h"
#include "syncline/expr.h"

namespace syncline::testing {

// Shape and values of anything, in double.
struct Tensor {
  Shape shape;
  std::vector<double> values;
};

// What is fed: uniform random numbers in [low, high] (integers: both ends, too), or `values` where given.
struct InputSpec {
  Shape shape = {};
  DType dtype = DType::kFloat32;
  double low = -1;
  double high = 1;
  std::vector<double> values = {};
};

using Builder = std::function<Expr(const std::vector<Expr>&)>;
using Reference = std::function<Tensor(std::span<const Tensor>)>;

struct OpCase {
  std::string name;  // letters, digits and _
  std::vector<InputSpec> inputs;
  Builder build;
  Reference reference = {};
  // The rest is for special rows only.
  std::string no_reference = {};      // why there is no reference
  std::vector<InputSpec> large = {};  // for speed and for the comparison of bits; rows without it use `inputs`
  bool open_batch = true;             // may be built while the first dimension of every input is unknown
  bool gradient = true;               // compare with central differences
  bool second_gradient = false;       // those of the gradient, too
  bool placement = true;              // several ranks must compute the same
  bool half = true;                   // float16 must compute the same up to its rounding
  double tolerance = 2e-6;            // of a value in float32, relative to the larger of it and 1
  double gradient_tolerance = 2e-6;
};

// Adds rows to the list; for the macro.
bool add_cases(std::vector<OpCase> (*rows)());
#define SYNCLINE_OP_CASES(function) \
  [[maybe_unused]] static const bool added_##function = ::syncline::testing::add_cases(&function);

std::span<const OpCase> all_cases();

// An array as the spec says; `point` selects other random numbers. With `wide`, float32 becomes float64.
Array make_input(const InputSpec& spec, std::uint64_t point, bool wide = false);
std::vector<Array> make_inputs(std::span<const InputSpec> specs, std::uint64_t point, bool wide = false);
// The same with float16 for float32.
std::vector<Array> make_halves(std::span<const InputSpec> specs, std::uint64_t point);
// Random numbers in [low, high], a function of the key and the shape.
Array random_array(DType dtype, const Shape& shape, double low, double high, std::uint64_t key);

Tensor tensor_of(const Array& array);
Array array_of(const Tensor& tensor, DType dtype);

}  // namespace syncline::testing
