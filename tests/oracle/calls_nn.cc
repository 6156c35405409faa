#include "ops/nn.h"
#include "tests/oracle/oracle_case.h"

namespace syncline::testing {

SYNCLINE_ORACLE_CALL(softmax) { return softmax(call.tensor(0), call.get("axis", -1)); }

}  // namespace syncline::testing
