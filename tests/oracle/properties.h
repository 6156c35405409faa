// Properties of a function that its oracle cases show: dtypes, gradient, placement.
#pragma once

#include <string>
#include <vector>

#include "tests/oracle/oracle_case.h"

namespace syncline::testing {

// The operands' dtypes (without operands: the arguments `dtype`), in the order of DType.
std::string dtypes_of(const std::vector<OracleCase>& rows);
// "yes", "no" with the reasons, or a dash if no output depends on an operand.
std::string gradient_of(const std::vector<OracleCase>& rows);
// The placements of the results if ranks split the operands' rows (axis 0), with the number of cases of each.
std::string placement_of(const std::vector<OracleCase>& rows);

}  // namespace syncline::testing
