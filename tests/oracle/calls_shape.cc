#include "syncline/backend/linalg.h"
#include "syncline/backend/shape.h"
#include "syncline/backend/variable.h"
#include "tests/oracle/oracle_case.h"
#include "tests/oracle/sparse_operand.h"

namespace syncline::testing {

SYNCLINE_ORACLE_CALL(concatenate) {
  const int axis = call.get("axis", -1);
  if (!call.has("sparse_by")) return concatenate(call.tensors(), axis);
  std::vector<bool> sparse(static_cast<std::size_t>(call.size()), true);
  std::string how = call.get<std::string>("sparse_by");
  if (how == "first") {
    how = "variable";
    sparse.assign(sparse.size(), false);
    sparse[0] = true;
  }
  return with_sparse_operands(call, how, sparse, [&](const std::vector<Expr>& x) { return concatenate(x, axis); });
}
SYNCLINE_ORACLE_CALL(stack) { return stack(call.tensors(), call.get("axis", 0)); }
SYNCLINE_ORACLE_CALL(reshape) { return reshape(call.tensor(0), call.get<Shape>("shape")); }
SYNCLINE_ORACLE_CALL(transpose) { return transpose(call.tensor(0)); }
SYNCLINE_ORACLE_CALL(flatten) { return flatten(call.tensor(0)); }
SYNCLINE_ORACLE_CALL(batch_flatten) { return batch_flatten(call.tensor(0)); }
SYNCLINE_ORACLE_CALL(expand_dims) { return expand_dims(call.tensor(0), call.get("axis", -1)); }
SYNCLINE_ORACLE_CALL(squeeze) { return squeeze(call.tensor(0), call.get<int>("axis")); }
SYNCLINE_ORACLE_CALL(reverse) { return reverse(call.tensor(0), call.list("axes")); }
SYNCLINE_ORACLE_CALL(repeat) { return repeat(call.tensor(0), call.get<int>("n")); }
SYNCLINE_ORACLE_CALL(tile) { return tile(call.tensor(0), call.get<Shape>("n")); }
SYNCLINE_ORACLE_CALL(one_hot) { return one_hot(call.tensor(0), call.get<int>("num_classes")); }

SYNCLINE_ORACLE_CALL(permute_dimensions) {
  return permute_dimensions(call.tensor(0), call.get<std::vector<int>>("pattern"));
}

SYNCLINE_ORACLE_CALL(repeat_elements) {
  return repeat_elements(call.tensor(0), call.get<int>("rep"), call.get<int>("axis"));
}

SYNCLINE_ORACLE_CALL(temporal_padding) {
  return temporal_padding(call.tensor(0), call.get("padding", std::pair{1, 1}));
}

SYNCLINE_ORACLE_CALL(spatial_2d_padding) {
  using Padding = std::array<std::pair<int, int>, 2>;
  return spatial_2d_padding(call.tensor(0), call.get("padding", Padding{{{1, 1}, {1, 1}}}),
                            call.get("data_format", "channels_last"));
}

SYNCLINE_ORACLE_CALL(slice) {
  return slice(call.tensor(0), Dims(call.get<std::vector<std::int64_t>>("start")),
               Dims(call.get<std::vector<std::int64_t>>("size")));
}

SYNCLINE_ORACLE_CALL(arange) {
  const DType dtype = call.get("dtype", DType::kInt32);
  if (!call.has("stop")) return arange(call.get<double>("start"), dtype);
  return arange(call.get<double>("start"), call.get<double>("stop"), call.get("step", 1.0), dtype);
}

SYNCLINE_ORACLE_CALL(eye) { return eye(call.get<int>("size"), {.dtype = call.optional<DType>("dtype")}).expr(); }

}  // namespace syncline::testing
