#include "syncline/backend/control.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/shape.h"
#include "tests/oracle/oracle_case.h"

namespace syncline::testing {
namespace {

using Step = std::pair<Expr, std::vector<Expr>>;

Step lstm(const Expr& x, const std::vector<Expr>& states, const std::vector<Expr>& weights) {
  const std::int64_t units = weights[1].shape()[0];
  const Expr z = dot(x, weights[0]) + dot(states[0], weights[1]) + weights[2];
  auto gate = [&](std::int64_t k) { return slice_axis(z, 1, k * units, units); };
  const Expr c = sigmoid(gate(1)) * states[1] + sigmoid(gate(0)) * tanh(gate(2));
  const Expr h = sigmoid(gate(3)) * tanh(c);
  return {h, {h, c}};
}

// The steps of tests/oracle/generate/rnn.py.
RnnStep step_of(const std::string& kind, const std::vector<Expr>& weights) {
  if (kind == "lstm") return [=](const Expr& x, const std::vector<Expr>& s) { return lstm(x, s, weights); };
  if (kind == "sum") return [](const Expr& x, const std::vector<Expr>& s) { return Step{x + s[0], {x + s[0]}}; };
  if (kind == "stateless") return [](const Expr& x, const std::vector<Expr>&) { return Step{square(x), {}}; };
  if (kind == "two")
    return [](const Expr& x, const std::vector<Expr>& s) { return Step{x * s[1] + s[0], {s[1], x + s[0]}}; };
  if (kind == "constants")
    return [](const Expr& x, const std::vector<Expr>& s) {
      const Expr h = x * s[1] + s[0] * s[2];
      return Step{h, {h}};
    };
  return [=](const Expr& x, const std::vector<Expr>& s) {
    const Expr z = dot(x, weights[0]) + dot(s[0], weights[1]);
    if (kind == "projected") return Step{dot(tanh(z), weights[2]), {tanh(z)}};
    const Expr h = tanh(z + weights[2]);
    return Step{h, {h}};
  };
}

}  // namespace

SYNCLINE_ORACLE_CALL(rnn) {
  // The operands: inputs, mask, states, constants, weights.
  const std::vector<int> sizes = call.list("sizes");
  const std::vector<Expr> states = call.tensors(2, sizes[0]), weights = call.tensors(2 + sizes[0] + sizes[1]);
  const RnnResult result = rnn(step_of(call.get<std::string>("step"), weights), call.tensor(0), states,
                               {.go_backwards = call.get("go_backwards", false),
                                .mask = call.tensor(1),
                                .constants = call.tensors(2 + sizes[0], sizes[1]),
                                .unroll = call.get("unroll", false),
                                .input_length = call.optional<std::int64_t>("input_length")});
  std::vector<Expr> outputs{result.last_output, result.outputs};
  outputs.insert(outputs.end(), result.new_states.begin(), result.new_states.end());
  return outputs;
}

}  // namespace syncline::testing
