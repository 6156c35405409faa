// The networks that step_bench trains. benchmarks/peers/measure.py describes them; the peers' programs build the same.
#pragma once

#include <string>
#include <vector>

#include "syncline/backend/variable.h"

namespace syncline::benchmarks {

struct Network {
  Expr x{}, labels{};  // placeholders; the batch is unknown
  Expr loss{};
  std::vector<Update> updates{};
  int rows = 0;     // of one rank's batch
  int classes = 0;  // labels are in [0, classes)
  int words = 0;    // x holds integers in [0, words); 0: floats in [0, 1)
};

const std::vector<std::string>& network_names();
// Throws ValueError for another name.
Network make_network(const std::string& name);

}  // namespace syncline::benchmarks
