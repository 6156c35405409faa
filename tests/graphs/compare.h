// Compares the results of two ways of computing a program.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "syncline/array.h"

namespace syncline::graphs {

// The result of a call: its outputs, or the error's text.
struct Outcome {
  std::vector<Array> outputs;
  std::string error;
  std::vector<bool> finite;      // per node: its value is finite. Rounding errors may change it
  bool poles_in_bodies = false;  // the same may happen within bodies, which `finite` does not cover
};

// The outcome of the same call with other rounding errors, which `number` selects.
using Perturbed = std::function<Outcome(std::uint64_t number)>;

// "" if `got` equals `wanted`, else the difference. `exact` compares bits; otherwise the outcomes of `perturbed` show
// how far rounding errors move the values. `in_parts`: ranks computed `got`, which may multiply the parts of a sum by
// infinity before they are added: parts of both signs then give NaN instead of an infinity.
std::string difference(const Outcome& wanted, const Outcome& got, bool exact, bool in_parts,
                       const Perturbed& perturbed);

// About the distance from 1 to the next number; 0 for integers.
double ulp_of(DType dtype);

// All NaNs are equal, and with `any_zero` -0 equals 0.
bool same_bits(const Array& a, const Array& b, bool any_zero = false);

}  // namespace syncline::graphs
