// Whether two ways of computing a program agree.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "syncline/array.h"

namespace syncline::graphs {

// What a call gave: its outputs, or the error's text.
struct Outcome {
  std::vector<Array> outputs;
  std::string error;
  std::vector<bool> finite;      // each node's value; where rounding errors change that, they decide what is infinite
  bool poles_in_bodies = false;  // they may do so where no node of the graph shows it
};

// The outcome of the same call with other rounding errors; `number` tells them apart.
using Perturbed = std::function<Outcome(std::uint64_t number)>;

// "" if `got` is `wanted`: bit for bit where `exact`, otherwise as far as rounding goes, which is what `perturbed`
// shows.
std::string difference(const Outcome& wanted, const Outcome& got, bool exact, const Perturbed& perturbed);

// The distance of 1 to the next number; 0 for integers.
double ulp_of(DType dtype);

// Any NaN is as good as any other, and with `any_zero` -0 as 0.
bool same_bits(const Array& a, const Array& b, bool any_zero = false);

}  // namespace syncline::graphs
