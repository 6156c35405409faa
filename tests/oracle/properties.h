// What the oracle cases of a function show about it, beside its values: dtypes, gradient, placement.
#pragma once

#include <string>
#include <vector>

#include "tests/oracle/oracle_case.h"

namespace syncline::testing {

// The operands' dtypes (without operands: those asked for), in the order of DType.
std::string dtypes_of(const std::vector<OracleCase>& rows);
// "yes", or why not.
std::string gradient_of(const std::vector<OracleCase>& rows);
// Where rows go when several ranks hold rows of the operands along axis 0, with the number of cases.
std::string placement_of(const std::vector<OracleCase>& rows);

}  // namespace syncline::testing
