// The kernels that `limits` times, at or near sizes of the fourteen networks of nets.py.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "syncline/backend/variable.h"
#include "syncline/expr.h"

namespace syncline::benchmarks {

// A graph of one kernel, or of a few that belong together.
struct LimitGraph {
  std::vector<Expr> feeds{};  // placeholders of known shapes; integers are fed numbers below `below`
  std::vector<Expr> outputs{};
  std::vector<Update> updates{};
  std::int64_t below = 1;
  // Of tables, of which only some rows are read, and of operands that must pass twice. 0: operands once, results once.
  double bytes = 0;
  double flops = 0;  // of a loop, which the ops' own counts leave out; 0: the sum over the graph's ops
  std::vector<std::int64_t> product{};  // m, n, k of a product of two matrices, which OpenBLAS can compute as well
  bool a_transposed = false, b_transposed = false;
};

struct LimitRow {
  std::string family, what;
  std::function<LimitGraph()> make;
};

std::vector<LimitRow> limit_rows();

}  // namespace syncline::benchmarks
