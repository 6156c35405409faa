#include "runtime/config.h"
#include "tests/oracle/oracle_case.h"

namespace syncline::testing {

SYNCLINE_ORACLE_CALL(floatx) {
  std::vector<Expr> seen{Answer::as_tensor(std::string(name_of(floatx())))};
  for (const std::string& value : call.get<std::vector<std::string>>("values")) {
    set_floatx(parse_dtype(value));
    seen.push_back(Answer::as_tensor(std::string(name_of(floatx()))));
  }
  return seen;
}

}  // namespace syncline::testing
