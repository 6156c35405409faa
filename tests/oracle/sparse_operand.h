// Operands of oracle cases as sparse tensors.
#pragma once

#include <functional>

#include "tests/oracle/oracle_case.h"

namespace syncline::testing {

// What f makes of all operands as sparse tensors: sparse variables (how = "variable"), or sparse placeholders of a
// function that is fed with them ("feed"), whose outputs then come as constants. `sparse` says which operands; the
// others are passed on as they are.
Answer with_sparse_operands(const Call& call, const std::string& how, const std::vector<bool>& sparse,
                            const std::function<Expr(const std::vector<Expr>&)>& f);

}  // namespace syncline::testing
