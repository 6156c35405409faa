#include "syncline/backend/linalg.h"
#include "tests/oracle/oracle_case.h"
#include "tests/oracle/sparse_operand.h"

namespace syncline::testing {

SYNCLINE_ORACLE_CALL(dot) {
  if (call.has("sparse_by"))
    return with_sparse_operands(call, call.get<std::string>("sparse_by"), {true, false},
                                [](const std::vector<Expr>& x) { return dot(x[0], x[1]); });
  return dot(call.tensor(0), call.tensor(1));
}
SYNCLINE_ORACLE_CALL(gather) { return gather(call.tensor(0), call.tensor(1)); }

}  // namespace syncline::testing
