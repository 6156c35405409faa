#include "syncline/backend/sparse.h"

#include "syncline/backend/core.h"
#include "syncline/backend/ctc.h"
#include "syncline/backend/function.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/shape.h"
#include "syncline/backend/sparse_variable.h"
#include "tests/oracle/sparse_operand.h"

namespace syncline::testing {

Answer with_sparse_operands(const Call& call, const std::string& how, const std::vector<bool>& sparse,
                            const std::function<Expr(const std::vector<Expr>&)>& f) {
  std::vector<Expr> operands, inputs;
  std::vector<Feed> feeds;
  for (int i = 0; i < call.size(); ++i) {
    const bool is_sparse = sparse[static_cast<std::size_t>(i)];
    if (how == "feed") {
      // The number of rows is unknown, so ranks split the rows.
      Shape shape = call.array(i).shape();
      shape[0] = kUnknown;
      inputs.push_back(placeholder({.shape = shape, .dtype = call.array(i).dtype(), .sparse = is_sparse}));
      operands.push_back(inputs.back());
      if (is_sparse) feeds.emplace_back(SparseArray::from_dense(call.array(i)));
      else feeds.emplace_back(call.array(i));
    } else if (is_sparse) {
      operands.push_back(variable(SparseArray::from_dense(call.array(i))));
    } else {
      operands.push_back(call.tensor(i));
    }
  }
  const Expr y = to_dense(f(operands));
  if (how != "feed") return y;
  return Function(inputs, {y})(feeds)[0];
}

SYNCLINE_ORACLE_CALL(is_sparse) {
  const std::string how = call.get<std::string>("how");
  const Array& value = call.array(0);
  const SparseVariable x = variable(SparseArray::from_dense(value));
  Expr tensor;
  if (how == "placeholder") tensor = placeholder({.shape = value.shape(), .sparse = true});
  if (how == "dense_placeholder") tensor = placeholder({.shape = value.shape()});
  if (how == "variable") tensor = x;
  if (how == "dense_variable") tensor = variable(value);
  if (how == "to_dense") tensor = to_dense(x);
  if (how == "concatenate") tensor = concatenate({x, x});
  if (how == "concatenate_mixed") tensor = concatenate({x, constant(value)});
  if (how == "dot") tensor = dot(x, transpose(constant(value)));
  if (how == "cast") tensor = cast(x, DType::kFloat64);
  if (how == "labels") tensor = ctc_label_dense_to_sparse(constant(value), fill({value.shape()[0]}, 1, DType::kInt32));
  return Answer::as_tensor(is_sparse(tensor));
}

SYNCLINE_ORACLE_CALL(to_dense) {
  const std::string how = call.get<std::string>("how");
  if (how == "dense") return to_dense(call.tensor(0));
  return with_sparse_operands(call, how, {true}, [](const std::vector<Expr>& x) { return to_dense(x[0]); });
}

}  // namespace syncline::testing
