#include "ops/linalg.h"
#include "tests/oracle/oracle_case.h"

namespace syncline::testing {

SYNCLINE_ORACLE_CALL(dot) { return dot(call.tensor(0), call.tensor(1)); }
SYNCLINE_ORACLE_CALL(gather) { return gather(call.tensor(0), call.tensor(1)); }

}  // namespace syncline::testing
