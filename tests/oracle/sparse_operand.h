// Operands of oracle cases as sparse tensors.
#pragma once

#include <functional>

#include "tests/oracle/oracle_case.h"

namespace syncline::testing {

// The dense result of f, whose operands are sparse where `sparse` is true. how = "variable": sparse operands are
// variables, the others are passed unchanged. how = "feed": all operands are placeholders of a function that is called,
// and its output becomes a constant.
Answer with_sparse_operands(const Call& call, const std::string& how, const std::vector<bool>& sparse,
                            const std::function<Expr(const std::vector<Expr>&)>& f);

}  // namespace syncline::testing
