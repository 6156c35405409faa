// Op cases of blocks of networks. Their ops have references of their own; these cases test gradients, threads, and
// ranks that cut the rows.
#include "syncline/backend/control.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "tests/ops/reference.h"

namespace syncline::testing {
namespace {

using Exprs = std::vector<Expr>;

constexpr const char* kWhy = "composed of ops that have references";

Expr normalized(const Expr& x) {
  const Expr centered = x - mean(x, {-1}, true);
  return centered / sqrt(mean(square(centered), {-1}, true) + 1e-3);
}

// x: (samples, steps, features). Two heads, then two dense layers, each with a normalized residual.
Expr transformer_block(const Exprs& in) {
  const Expr& x = in[0];
  const std::int64_t steps = x.shape()[1], features = x.shape()[2], width = features / 2;
  const auto heads = [&](const Expr& kernel) {  // (samples * 2, steps, width)
    const Expr split = reshape(dot(x, kernel), {-1, steps, 2, width});
    return reshape(permute_dimensions(split, {0, 2, 1, 3}), {-1, steps, width});
  };
  const Expr weights = softmax(batch_dot(heads(in[1]), heads(in[2]), {2, 2}) * 0.5);
  const Expr seen = reshape(batch_dot(weights, heads(in[3]), {2, 1}), {-1, 2, steps, width});
  const Expr joined = reshape(permute_dimensions(seen, {0, 2, 1, 3}), {-1, steps, features});
  const Expr y = normalized(x + joined);
  return normalized(y + dot(tanh(dot(y, in[4])), in[5]));
}

Expr last_state(const Expr& x, const Expr& mask, const Expr& kernel, const Expr& recurrent, bool backwards) {
  const std::int64_t units = recurrent.shape()[0];
  const auto step = [&](const Expr& input, const Exprs& states) {
    const Expr z = dot(input, kernel) + dot(states[0], recurrent);
    const auto gate = [&](int i) { return slice_axis(z, 1, i * units, units); };
    const Expr cell = sigmoid(gate(1)) * states[1] + sigmoid(gate(0)) * tanh(gate(2));
    const Expr output = sigmoid(gate(3)) * tanh(cell);
    return std::pair{output, Exprs{output, cell}};
  };
  const Expr zeros = dot(mean(x, {1}) * 0.0, slice_axis(kernel, 1, 0, units));
  return rnn(step, x, {zeros, zeros}, {.go_backwards = backwards, .mask = mask}).last_output;
}

// x: (samples, time, features), mask: (samples, time).
Expr bidirectional_lstm(const Exprs& in) {
  return concatenate({last_state(in[0], in[1], in[2], in[3], false), last_state(in[0], in[1], in[4], in[5], true)});
}

std::vector<OpCase> composites() {
  const InputSpec square{.shape = {8, 8}};
  return {{.name = "transformer_block",
           .inputs = {{.shape = {5, 6, 8}}, square, square, square, {.shape = {8, 12}}, {.shape = {12, 8}}},
           .build = transformer_block,
           .no_reference = kWhy,
           .open_batch = false,
           .gradient_tolerance = 2e-5},
          {.name = "bidirectional_lstm_with_a_mask",
           .inputs = {{.shape = {5, 7, 3}},
                      {.shape = {5, 7}, .dtype = DType::kInt32, .low = 0, .high = 1},
                      {.shape = {3, 16}},
                      {.shape = {4, 16}},
                      {.shape = {3, 16}},
                      {.shape = {4, 16}}},
           .build = bidirectional_lstm,
           .no_reference = kWhy,
           .open_batch = false}};
}

SYNCLINE_OP_CASES(composites)

}  // namespace
}  // namespace syncline::testing
