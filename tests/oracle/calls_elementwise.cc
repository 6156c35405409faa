#include "syncline/backend/math.h"
#include "tests/oracle/oracle_case.h"

namespace syncline::testing {

#define SYNCLINE_UNARY(function) \
  SYNCLINE_ORACLE_CALL(function) { return function(call.tensor(0)); }
#define SYNCLINE_BINARY(function) \
  SYNCLINE_ORACLE_CALL(function) { return function(call.tensor(0), call.tensor(1)); }

SYNCLINE_UNARY(square)
SYNCLINE_UNARY(abs)
SYNCLINE_UNARY(sqrt)
SYNCLINE_UNARY(exp)
SYNCLINE_UNARY(log)
SYNCLINE_UNARY(round)
SYNCLINE_UNARY(sign)
SYNCLINE_UNARY(sin)
SYNCLINE_UNARY(cos)
SYNCLINE_BINARY(equal)
SYNCLINE_BINARY(not_equal)
SYNCLINE_BINARY(greater)
SYNCLINE_BINARY(greater_equal)
SYNCLINE_BINARY(less)
SYNCLINE_BINARY(less_equal)
SYNCLINE_BINARY(maximum)
SYNCLINE_BINARY(minimum)

SYNCLINE_ORACLE_CALL(pow) {
  if (call.has(1)) return pow(call.tensor(0), call.tensor(1));
  return pow(call.tensor(0), call.get<double>("a"));
}

SYNCLINE_ORACLE_CALL(clip) {
  return clip(call.tensor(0), call.optional<double>("min_value"), call.optional<double>("max_value"));
}

SYNCLINE_ORACLE_CALL(cast) { return cast(call.tensor(0), call.get<DType>("dtype")); }

}  // namespace syncline::testing
