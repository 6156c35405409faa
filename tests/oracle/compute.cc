#include "tests/oracle/compute.h"

#include <algorithm>
#include <cmath>

#include "ops/graph/leaf.h"
#include "syncline/backend/core.h"
#include "syncline/backend/function.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/math.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "syncline/backend/variable.h"
#include "syncline/error.h"
#include "tests/oracle/tolerances.h"

namespace syncline::testing {
namespace {

// x[..., axis, ...] -> x[axis, ...]
Array axis_first(const Array& value, int axis) {
  const Expr x = constant(value);
  std::vector<int> pattern{axis};
  for (int i = 0; i < x.ndim(); ++i)
    if (i != axis) pattern.push_back(i);
  return eval(permute_dimensions(x, pattern)).copy();
}

Expr axis_back(const Expr& x, int axis) {
  std::vector<int> pattern;
  for (int i = 1; i < x.ndim(); ++i) pattern.push_back(i);
  pattern.insert(pattern.begin() + axis, 0);
  return permute_dimensions(x, pattern);
}

void add_operand(CaseGraph& graph, const std::optional<Array>& value, Operand operand) {
  if (!value) return graph.values.push_back({});
  if (operand.kind == Operand::kVariable) return graph.values.push_back(variable(*value));
  const bool permuted = operand.kind == Operand::kSplit && operand.axis > 0;
  graph.feeds.push_back(permuted ? axis_first(*value, operand.axis) : *value);
  Shape shape = graph.feeds.back().shape();
  if (operand.kind == Operand::kOpenBatch && shape.ndim() > 0) shape[0] = kUnknown;
  const Expr fed = placeholder({.shape = shape, .dtype = value->dtype()});
  graph.placeholders.push_back(fed);
  graph.values.push_back(permuted ? axis_back(fed, operand.axis) : fed);
}

// The same weights as weights_of in tests/oracle/generate/oracle.py.
Array weights_of(const Shape& shape, DType dtype) {
  Array weights(DType::kFloat64, shape);
  for (std::int64_t i = 0; i < weights.size(); ++i)
    weights.data<double>()[i] = static_cast<double>((7 * i + 3) % 11 - 5) / 8;
  return weights.cast(dtype);
}

std::string unequal(const std::string& what, const Array& wanted, const Array& got, const std::string& kind) {
  if (got.dtype() != wanted.dtype()) return join_text(what, ": ", got.dtype(), ", wanted ", wanted.dtype());
  if (got.shape() != wanted.shape()) return join_text(what, ": shape ", got.shape(), ", wanted ", wanted.shape());
  if (wanted.dtype() == DType::kInt64) {
    for (std::int64_t i = 0; i < wanted.size(); ++i)
      if (got.data<std::int64_t>()[i] != wanted.data<std::int64_t>()[i])
        return join_text(what, ", element ", i, ": ", got.data<std::int64_t>()[i], ", wanted ",
                         wanted.data<std::int64_t>()[i]);
    return {};
  }
  const double tolerance = tolerance_of(kind, wanted.dtype()), least = least_magnitude(kind, wanted.dtype());
  const Array a = wanted.cast(DType::kFloat64), b = got.cast(DType::kFloat64);
  for (std::int64_t i = 0; i < a.size(); ++i) {
    const double x = a.data<double>()[i], y = b.data<double>()[i];
    const bool same = std::isfinite(x) ? std::abs(x - y) <= tolerance * std::max(least, std::abs(x))
                                       : x == y || (std::isnan(x) && std::isnan(y));
    if (!same) return join_text(what, ", element ", i, " of ", a.size(), ": ", y, ", wanted ", x);
  }
  return {};
}

}  // namespace

Operands alike(const OracleCase& row, Operand operand) { return Operands(row.inputs.size(), operand); }

CaseGraph graph_of(const OracleCase& row, const Operands& operands) {
  const OracleCall call = oracle_call(row.function);
  if (call == nullptr) fail("there is no adapter of ", row.function, "; write one in tests/oracle/calls_*.cc");
  CaseGraph graph;
  for (std::size_t i = 0; i < row.inputs.size(); ++i) {
    const bool closed = operands[i].kind == Operand::kOpenBatch && !row.open_batch[i];
    add_operand(graph, row.inputs[i], closed ? Operand{} : operands[i]);
  }
  graph.outputs = call(Call(row, graph.values)).outputs;
  return graph;
}

Expr loss_of(const OracleCase& row, const std::vector<Expr>& outputs) {
  Expr loss;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const DType dtype = outputs[k].dtype();
    if (!is_floating(dtype)) continue;
    const Expr term = cast(sum(outputs[k] * constant(weights_of(row.outputs.at(k).shape(), dtype))), DType::kFloat64);
    loss = loss ? loss + term : term;
  }
  return loss;
}

Computed compute(const OracleCase& row, const Operands& operands, bool gradients) {
  const CaseGraph graph = graph_of(row, operands);
  const std::vector<Expr>& outputs = graph.outputs;
  std::vector<Expr> roots = outputs;
  std::vector<std::size_t> derived;  // the inputs whose gradients are among the roots
  if (gradients && !row.gradients.empty()) {
    std::vector<Expr> wrt;
    for (std::size_t i = 0; i < row.gradients.size(); ++i) {
      if (!row.gradients[i]) continue;
      derived.push_back(i);
      wrt.push_back(graph.values[i]);
    }
    const std::vector<Expr> dx = syncline::gradients(loss_of(row, outputs), wrt);
    for (std::size_t k = 0; k < wrt.size(); ++k) roots.push_back(dx[k] ? dx[k] : zeros_like(wrt[k]));
  }
  std::vector<Array> results = Function(graph.placeholders, roots)(graph.feeds);
  Computed computed;
  computed.gradients.resize(row.gradients.size());
  for (std::size_t k = 0; k < outputs.size(); ++k) computed.outputs.push_back(results[k].copy());
  for (std::size_t k = 0; k < derived.size(); ++k) computed.gradients[derived[k]] = results[outputs.size() + k].copy();
  return computed;
}

std::string difference(const OracleCase& row, const Computed& got) {
  if (got.outputs.size() != row.outputs.size())
    return join_text(got.outputs.size(), " outputs, wanted ", row.outputs.size());
  for (std::size_t k = 0; k < row.outputs.size(); ++k) {
    const std::string problem = unequal(join_text("output ", k), row.outputs[k], got.outputs[k], row.tolerance);
    if (!problem.empty()) return problem;
  }
  for (std::size_t i = 0; i < row.gradients.size(); ++i) {
    if (!row.gradients[i] || !got.gradients[i]) continue;
    const bool is_edge = row.tolerance == "edge";
    const std::string kind = row.tolerance.empty() ? "gradient" : is_edge ? "edge_gradient" : row.tolerance;
    const std::string problem = unequal(join_text("gradient of input ", i), *row.gradients[i], *got.gradients[i], kind);
    if (!problem.empty()) return problem;
  }
  return {};
}

std::vector<Operands> ways_of(const OracleCase& row) {
  std::vector<Operands> ways{alike(row, {Operand::kVariable})};
  int ndim = 0;
  for (const auto& input : row.inputs)
    if (input) ndim = std::max(ndim, input->shape().ndim());
  for (int axis = 0; axis < ndim; ++axis) {
    Operands way = alike(row, {Operand::kVariable});
    for (std::size_t i = 0; i < way.size(); ++i)
      if (row.inputs[i] && row.inputs[i]->shape().ndim() > axis) way[i] = {Operand::kSplit, axis};
    ways.push_back(std::move(way));
  }
  for (std::size_t i = 0; i < row.inputs.size() && row.inputs.size() > 1; ++i) {
    if (!row.inputs[i] || row.inputs[i]->shape().ndim() == 0) continue;
    Operands way = alike(row, {Operand::kVariable});
    way[i] = {Operand::kSplit, 0};
    ways.push_back(std::move(way));
  }
  return ways;
}

std::string name_of(const Operands& operands) {
  std::string text;
  for (const Operand& operand : operands)
    text += operand.kind == Operand::kVariable ? " replicated" : join_text(" split(", operand.axis, ")");
  return text;
}

}  // namespace syncline::testing
