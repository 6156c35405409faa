// The table of op cases: one or more rows per op. op_case_test.cc, op_half_test.cc, op_placement_test.cc and
// benchmarks/op_bench.cc run them. A row has a builder of the op, its inputs, and a reference that computes the result
// by other means: plain loops in double, or numbers from NumPy.
//
// SYNCLINE_OP_CASES adds rows to one list before main; afterwards the list does not change.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "syncline/array.h"
#include "syncline/expr.h"

namespace syncline::testing {

// The shape and values of an array of any dtype, in double.
struct Tensor {
  Shape shape;
  std::vector<double> values;
};

// An input: `values` if given, else uniform random numbers between low and high (integers: both included).
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
  // Options of special rows.
  std::string no_reference = {};      // why there is no reference
  std::vector<InputSpec> large = {};  // of benchmarks (empty: none) and of the mode Bits (empty: `inputs`)
  bool open_batch = true;             // can be built with an unknown first dimension of every input
  bool gradient = true;               // compare with central differences
  bool second_gradient = false;       // the same for second derivatives
  bool placement = true;              // several ranks must compute the same
  bool half = true;                   // float16 must compute the same up to its rounding
  double tolerance = 2e-6;            // of a float32 value, relative to max(1, |value|)
  double gradient_tolerance = 2e-6;
};

// Adds rows to the list; for the macro.
bool add_cases(std::vector<OpCase> (*rows)());
#define SYNCLINE_OP_CASES(function) \
  [[maybe_unused]] static const bool added_##function = ::syncline::testing::add_cases(&function);

std::span<const OpCase> all_cases();
// 0 to the number of cases: the parameters of tests that run every case.
std::vector<std::size_t> numbers_of_cases();

// An array by the spec; `point` selects the random numbers. With `wide`, float32 becomes float64.
Array make_input(const InputSpec& spec, std::uint64_t point, bool wide = false);
std::vector<Array> make_inputs(std::span<const InputSpec> specs, std::uint64_t point, bool wide = false);
// The same with float16 for float32.
std::vector<Array> make_halves(std::span<const InputSpec> specs, std::uint64_t point);
// Random numbers as in InputSpec; they depend only on the arguments.
Array random_array(DType dtype, const Shape& shape, double low, double high, std::uint64_t key);

Tensor tensor_of(const Array& array);
Array array_of(const Tensor& tensor, DType dtype);

}  // namespace syncline::testing
