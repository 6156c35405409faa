#include "ops/shape.h"
#include "tests/oracle/oracle_case.h"

namespace syncline::testing {

SYNCLINE_ORACLE_CALL(concatenate) { return concatenate(call.tensors(), call.get("axis", -1)); }

}  // namespace syncline::testing
