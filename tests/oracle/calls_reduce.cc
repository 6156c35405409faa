#include "syncline/backend/reduce.h"
#include "tests/oracle/oracle_case.h"

namespace syncline::testing {

#define SYNCLINE_REDUCTION(function) \
  SYNCLINE_ORACLE_CALL(function) { return function(call.tensor(0), call.axes("axis"), call.get("keepdims", false)); }

SYNCLINE_REDUCTION(sum)
SYNCLINE_REDUCTION(prod)
SYNCLINE_REDUCTION(max)
SYNCLINE_REDUCTION(min)
SYNCLINE_REDUCTION(mean)
SYNCLINE_REDUCTION(var)
SYNCLINE_REDUCTION(std)
SYNCLINE_REDUCTION(logsumexp)
SYNCLINE_REDUCTION(any)
SYNCLINE_REDUCTION(all)

SYNCLINE_ORACLE_CALL(argmax) { return argmax(call.tensor(0), call.get("axis", -1)); }
SYNCLINE_ORACLE_CALL(argmin) { return argmin(call.tensor(0), call.get("axis", -1)); }
SYNCLINE_ORACLE_CALL(cumsum) { return cumsum(call.tensor(0), call.get("axis", 0)); }
SYNCLINE_ORACLE_CALL(cumprod) { return cumprod(call.tensor(0), call.get("axis", 0)); }

}  // namespace syncline::testing
