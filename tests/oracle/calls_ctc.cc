#include "syncline/backend/ctc.h"
#include "syncline/backend/sparse.h"
#include "tests/oracle/oracle_case.h"

namespace syncline::testing {

SYNCLINE_ORACLE_CALL(ctc_batch_cost) {
  return ctc_batch_cost(call.tensor(0), call.tensor(1), call.tensor(2), call.tensor(3));
}

SYNCLINE_ORACLE_CALL(ctc_decode) {
  CtcDecoded found = ctc_decode(call.tensor(0), call.tensor(1),
                                {.greedy = call.get("greedy", true),
                                 .beam_width = call.get("beam_width", 100),
                                 .top_paths = call.get("top_paths", 1),
                                 .merge_repeated = call.get("merge_repeated", false)});
  found.decoded.push_back(found.log_probability);
  return found.decoded;
}

SYNCLINE_ORACLE_CALL(ctc_label_dense_to_sparse) {
  return to_dense(ctc_label_dense_to_sparse(call.tensor(0), call.tensor(1)));
}

}  // namespace syncline::testing
