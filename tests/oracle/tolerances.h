// The only table of tolerances. A floating value may differ from the oracle's by `relative` times the larger of 1 and
// the magnitude of the oracle's value; infinities and NaN, integers and bools must be equal. Kinds that start with
// "edge" replace 1 by the smallest normal number.
#pragma once

#include <limits>
#include <string_view>

#include "syncline/dtype.h"

namespace syncline::testing {

struct Tolerance {
  std::string_view kind;  // named by a case; "" is the default
  std::string_view dtype;
  double relative;
};

inline constexpr Tolerance kTolerances[] = {
    // one operation, or a few
    {"", "float16", 2e-3},
    {"", "float32", 5e-6},
    {"", "float64", 1e-12},
    // gradients, which sum over the elements that share an operand's element
    {"gradient", "float16", 1e-2},
    {"gradient", "float32", 5e-5},
    {"gradient", "float64", 1e-10},
    // values at the edges of a function's domain (generate/edges.py), and their gradients
    {"edge", "float16", 2e-3},
    {"edge", "float32", 5e-6},
    {"edge", "float64", 1e-12},
    {"edge_gradient", "float32", 5e-5},
    {"edge_gradient", "float64", 1e-10},
    // long sums, chains of operations, functions that both sides approximate
    {"loose", "float16", 1e-2},
    {"loose", "float32", 1e-4},
    {"loose", "float64", 1e-9},
    // the oracle computes in single precision for every dtype
    {"single", "float32", 2e-5},
    {"single", "float64", 2e-5},
    // moments of random numbers
    {"statistic", "float16", 5e-2},
    {"statistic", "float32", 5e-2},
    {"statistic", "float64", 5e-2},
};

// Throws ValueError for a kind that the table does not have. 0 for integers and bools.
inline double tolerance_of(std::string_view kind, DType dtype) {
  if (!is_floating(dtype)) return 0;
  for (const Tolerance& row : kTolerances)
    if (row.kind == kind && row.dtype == name_of(dtype)) return row.relative;
  fail("tests/oracle/tolerances.h has no ", kind, " of ", dtype, "; use one that is listed there");
}

// The least magnitude that `relative` is multiplied by.
inline double least_magnitude(std::string_view kind, DType dtype) {
  if (!kind.starts_with("edge")) return 1;
  if (dtype == DType::kFloat16) return 0x1p-14;
  return dtype == DType::kFloat32 ? std::numeric_limits<float>::min() : std::numeric_limits<double>::min();
}

}  // namespace syncline::testing
