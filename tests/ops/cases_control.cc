// Op cases of rnn, against plain loops over samples and time.
#include "syncline/backend/control.h"

#include <cmath>

#include "syncline/backend/convolution.h"
#include "syncline/backend/core.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/random.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "tests/ops/reference.h"

namespace syncline::testing {
namespace {

using Exprs = std::vector<Expr>;
using Numbers = std::vector<double>;

// All results of rnn, one row per sample: the last output, the outputs, the new states.
Expr all_of(const RnnResult& r) {
  Exprs parts{r.last_output, batch_flatten(r.outputs)};
  parts.insert(parts.end(), r.new_states.begin(), r.new_states.end());
  return concatenate(parts, 1);
}

// ---- the cells as ops ----

// w: kernel, u: recurrent kernel, b: bias.
RnnStep simple_cell(const Expr& w, const Expr& u, const Expr& b) {
  return [=](const Expr& x, const Exprs& states) {
    const Expr h = tanh(dot(x, w) + dot(states[0], u) + b);
    return std::pair{h, Exprs{h}};
  };
}

// The gates i, f, c, o are side by side, in Keras's order.
RnnStep lstm_cell(const Expr& w, const Expr& u, const Expr& b) {
  return [=](const Expr& x, const Exprs& states) {
    const std::int64_t n = u.shape()[1] / 4;
    const Expr z = dot(x, w) + dot(states[0], u) + b;
    auto gate = [&](int i) { return slice_axis(z, 1, i * n, n); };
    const Expr c = sigmoid(gate(1)) * states[1] + sigmoid(gate(0)) * tanh(gate(2));
    const Expr h = sigmoid(gate(3)) * tanh(c);
    return std::pair{h, Exprs{h, c}};
  };
}

// ---- the cells as plain arithmetic ----

// One iteration of one sample: takes x and the states, replaces the states, returns the output.
using Step = std::function<Numbers(const Numbers&, std::vector<Numbers>&)>;

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

// z = x w + h u + b
Numbers affine(const Numbers& x, const Tensor& w, const Numbers& h, const Tensor& u, const Tensor& b) {
  Numbers z = b.values;
  const std::size_t n = z.size();
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t i = 0; i < x.size(); ++i) z[j] += x[i] * w.values[i * n + j];
    for (std::size_t i = 0; i < h.size(); ++i) z[j] += h[i] * u.values[i * n + j];
  }
  return z;
}

Step simple_step(const Tensor& w, const Tensor& u, const Tensor& b) {
  return [=](const Numbers& x, std::vector<Numbers>& states) {
    for (double& z : states[0] = affine(x, w, states[0], u, b)) z = std::tanh(z);
    return states[0];
  };
}

Step lstm_step(const Tensor& w, const Tensor& u, const Tensor& b) {
  return [=](const Numbers& x, std::vector<Numbers>& states) {
    const Numbers z = affine(x, w, states[0], u, b);
    const std::size_t n = z.size() / 4;
    for (std::size_t j = 0; j < n; ++j) {
      double& c = states[1][j];
      c = sigmoid_of(z[n + j]) * c + sigmoid_of(z[j]) * std::tanh(z[2 * n + j]);
      states[0][j] = sigmoid_of(z[3 * n + j]) * std::tanh(c);
    }
    return states[0];
  };
}

Numbers row_of(const Tensor& x, std::int64_t row, std::int64_t size) {
  const auto begin = x.values.begin() + row * size;
  return Numbers(begin, begin + size);
}

struct Course {
  bool go_backwards = false;
  const Tensor* mask = nullptr;
};

// x: (samples, time, features). Returns the values of all_of.
Tensor recur(const Step& step, const Tensor& x, std::vector<Tensor> initial, Course course = {}) {
  const std::int64_t samples = x.shape[0], time = x.shape[1], features = x.shape[2];
  Tensor result;
  for (std::int64_t s = 0; s < samples; ++s) {
    std::vector<Numbers> states;
    for (const Tensor& state : initial) states.push_back(row_of(state, s, state.shape[1]));
    Numbers outputs, last;
    for (std::int64_t i = 0; i < time; ++i) {
      const std::int64_t t = course.go_backwards ? time - 1 - i : i;
      std::vector<Numbers> next = states;
      const Numbers output = step(row_of(x, s * time + t, features), next);
      if (last.empty()) last.assign(output.size(), 0);
      if (course.mask == nullptr || course.mask->values[static_cast<std::size_t>(s * time + t)] != 0) {
        last = output;
        states = next;
      }
      outputs.insert(outputs.end(), last.begin(), last.end());
    }
    for (const Numbers* part : {&last, &outputs}) result.values.insert(result.values.end(), part->begin(), part->end());
    for (const Numbers& state : states) result.values.insert(result.values.end(), state.begin(), state.end());
  }
  result.shape = {samples, static_cast<std::int64_t>(result.values.size()) / samples};
  return result;
}

// ---- rows ----

constexpr std::int64_t kSamples = 5, kTime = 4, kFeatures = 3, kUnits = 2;

// x, kernel, recurrent kernel, bias, states
std::vector<InputSpec> inputs_of(std::int64_t gates, int states) {
  std::vector<InputSpec> inputs{{.shape = {kSamples, kTime, kFeatures}},
                                {.shape = {kFeatures, gates * kUnits}},
                                {.shape = {kUnits, gates * kUnits}},
                                {.shape = {gates * kUnits}}};
  for (int i = 0; i < states; ++i) inputs.push_back({.shape = {kSamples, kUnits}});
  return inputs;
}

// All steps of sample 0 are masked, none of sample 1, some of the others.
InputSpec mask_input(DType dtype, bool column) {
  const Numbers mask{0, 0, 0, 0, 1, 1, 1, 1, 0, 1, 0, 1, 1, 0, 0, 0, 0, 0, 1, 0};
  return {.shape = column ? Shape{kSamples, kTime, 1} : Shape{kSamples, kTime}, .dtype = dtype, .values = mask};
}

OpCase simple_row(std::string name, const RnnOptions& options) {
  return {.name = std::move(name),
          .inputs = inputs_of(1, 1),
          .build = [=](const Exprs& x) { return all_of(rnn(simple_cell(x[1], x[2], x[3]), x[0], {x[4]}, options)); },
          .reference =
              [=](std::span<const Tensor> in) {
                return recur(simple_step(in[1], in[2], in[3]), in[0], {in[4]}, {options.go_backwards, nullptr});
              },
          .second_gradient = true};
}

OpCase lstm_row(std::string name, const RnnOptions& options) {
  return {.name = std::move(name),
          .inputs = inputs_of(4, 2),
          .build =
              [=](const Exprs& x) {
                return all_of(rnn(lstm_cell(x[1], x[2], x[3]), x[0], {x[4], x[5]}, options));
              },
          .reference =
              [=](std::span<const Tensor> in) {
                return recur(lstm_step(in[1], in[2], in[3]), in[0], {in[4], in[5]}, {options.go_backwards, nullptr});
              }};
}

// The mask is the last input.
OpCase masked_row(std::string name, const RnnOptions& options, const InputSpec& mask) {
  OpCase row{.name = std::move(name),
             .inputs = inputs_of(4, 2),
             .build =
                 [=](const Exprs& x) {
                   RnnOptions with_mask = options;
                   with_mask.mask = x[6];
                   return all_of(rnn(lstm_cell(x[1], x[2], x[3]), x[0], {x[4], x[5]}, with_mask));
                 },
             .reference =
                 [=](std::span<const Tensor> in) {
                   return recur(lstm_step(in[1], in[2], in[3]), in[0], {in[4], in[5]}, {options.go_backwards, &in[6]});
                 }};
  row.inputs.push_back(mask);
  return row;
}

std::vector<OpCase> recurrent_rows() {
  return {simple_row("rnn", {}),
          simple_row("rnn_go_backwards", {.go_backwards = true}),
          simple_row("rnn_unroll", {.unroll = true}),
          lstm_row("rnn_lstm", {}),
          lstm_row("rnn_lstm_go_backwards", {.go_backwards = true}),
          lstm_row("rnn_lstm_unroll", {.go_backwards = true, .unroll = true}),
          masked_row("rnn_mask", {}, mask_input(DType::kBool, false)),
          masked_row("rnn_mask_column", {.go_backwards = true}, mask_input(DType::kInt32, true)),
          masked_row("rnn_mask_unroll", {.unroll = true}, mask_input(DType::kInt64, false))};
}

// A decaying sum: state = scale * state + x.
Step decay_step(double scale) {
  return [=](const Numbers& x, std::vector<Numbers>& states) {
    for (std::size_t j = 0; j < states[0].size(); ++j) states[0][j] = scale * states[0][j] + x[j];
    return states[0];
  };
}

// A linear recurrence: its gradient needs no residual.
OpCase linear_row() {
  const RnnStep step = [](const Expr& e, const Exprs& s) {
    const Expr h = s[0] * 0.5 + e;
    return std::pair{h, Exprs{h}};
  };
  return {.name = "rnn_linear",
          .inputs = {{.shape = {5, 4, 3}}, {.shape = {5, 3}}},
          .build = [=](const Exprs& x) { return all_of(rnn(step, x[0], {x[1]})); },
          .reference = [](std::span<const Tensor> in) { return recur(decay_step(0.5), in[0], {in[1]}); },
          .second_gradient = true};
}

// The step receives the constants after the states. It also captures an outside value, which is not declared.
OpCase constants_row() {
  return {.name = "rnn_constants",
          .inputs = {{.shape = {5, 4, 3}}, {.shape = {5, 3}}, {.shape = {5, 3}}, {.shape = {3}}},
          .build =
              [](const Exprs& x) {
                const RnnStep step = [&](const Expr& e, const Exprs& s) {
                  const Expr h = tanh(s[0] * s[1] + e * x[3]);
                  return std::pair{h + s[1], Exprs{h}};
                };
                return all_of(rnn(step, x[0], {x[1]}, {.constants = {x[2]}}));
              },
          .reference =
              [](std::span<const Tensor> in) {
                // The constant is one more state, which does not change.
                const Step step = [&](const Numbers& x, std::vector<Numbers>& s) {
                  Numbers output = s[0];
                  for (std::size_t j = 0; j < x.size(); ++j) {
                    s[0][j] = std::tanh(s[0][j] * s[1][j] + x[j] * in[3].values[j]);
                    output[j] = s[0][j] + s[1][j];
                  }
                  return output;
                };
                Tensor y = recur(step, in[0], {in[1], in[2]});
                Tensor without{{5, 18}, {}};
                for (std::int64_t row = 0; row < 5; ++row) {
                  const Numbers kept = row_of(y, row, 21);
                  without.values.insert(without.values.end(), kept.begin(), kept.end() - 3);
                }
                return without;
              },
          .second_gradient = true};
}

// A step without state: a function of its input. The plan computes the product outside the loop.
OpCase stateless_row() {
  return {.name = "rnn_without_state",
          .inputs = {{.shape = {5, 4, 3}}, {.shape = {3, 2}}},
          .build =
              [](const Exprs& x) {
                const RnnStep step = [&](const Expr& e, const Exprs&) {
                  return std::pair{tanh(dot(e * 2.0, x[1])), Exprs{}};
                };
                return rnn(step, x[0], {}).outputs;
              },
          .reference =
              [](std::span<const Tensor> in) {
                Tensor y{{5, 4, 2}, Numbers(40)};
                for (std::size_t r = 0; r < 20; ++r)
                  for (std::size_t j = 0; j < 2; ++j) {
                    double z = 0;
                    for (std::size_t i = 0; i < 3; ++i) z += 2 * in[0].values[3 * r + i] * in[1].values[2 * i + j];
                    y.values[2 * r + j] = std::tanh(z);
                  }
                return y;
              },
          .second_gradient = true};
}

// A step that joins its input and its state before the product.
OpCase concatenated_row() {
  return {.name = "rnn_concatenated",
          .inputs = {{.shape = {5, 4, 3}}, {.shape = {5, 2}}, {.shape = {5, 2}}, {.shape = {5, 2}}},
          .build =
              [](const Exprs& x) {
                const RnnStep step = [&](const Expr& e, const Exprs& s) {
                  const Expr h = tanh(dot(concatenate({e, s[0] * x[3]}), x[2]));
                  return std::pair{h, Exprs{h}};
                };
                return all_of(rnn(step, x[0], {x[1]}));
              },
          .no_reference = "rnn covers the arithmetic; this is about gradients and placement",
          .second_gradient = true};
}

// A recurrence within a recurrence.
OpCase nested_row() {
  return {.name = "rnn_nested",
          .inputs = {{.shape = {5, 3, 2, 2}}, {.shape = {5, 2}}, {.shape = {2, 2}}},
          .build =
              [](const Exprs& x) {
                const RnnStep inner = [&](const Expr& e, const Exprs& s) {
                  const Expr h = tanh(e + dot(s[0], x[2]));
                  return std::pair{h, Exprs{h}};
                };
                const RnnStep outer = [&](const Expr& rows, const Exprs& s) {
                  const Expr h = rnn(inner, rows, {s[0]}).last_output;
                  return std::pair{h, Exprs{h}};
                };
                return all_of(rnn(outer, x[0], {x[1]}));
              },
          .no_reference = "rnn covers the arithmetic; this is about gradients and placement",
          .second_gradient = true};
}

// Images over time: h = tanh(conv(x, w) + conv(h, u)) with padding "same". A masked step keeps the sample's state.
OpCase image_row() {
  return {.name = "rnn_of_images",
          .inputs = {{.shape = {3, 2, 4, 3, 2}},
                     {.shape = {3, 2, 2, 2}},
                     {.shape = {3, 2, 2, 2}},
                     {.shape = {3, 4, 3, 2}},
                     {.shape = {3, 2}, .dtype = DType::kBool, .values = {1, 1, 0, 1, 1, 0}}},
          .build =
              [](const Exprs& x) {
                const RnnStep step = [&](const Expr& e, const Exprs& s) {
                  const Expr h = tanh(conv2d(e, x[1], {.padding = "same"}) + conv2d(s[0], x[2], {.padding = "same"}));
                  return std::pair{h, Exprs{h}};
                };
                return rnn(step, x[0], {x[3]}, {.mask = x[4]}).outputs;
              },
          .reference =
              [](std::span<const Tensor> in) {
                Tensor h = in[3];
                // The padding: one row above, one row below, one column on the right.
                auto convolved = [](const Tensor& image, const Index& place, const Tensor& w) {
                  double z = 0;
                  for (std::int64_t i = 0; i < 3; ++i)
                    for (std::int64_t j = 0; j < 2; ++j)
                      for (std::int64_t c = 0; c < 2; ++c) {
                        const std::int64_t row = place[1] + i - 1, column = place[2] + j;
                        if (row < 0 || row >= 4 || column >= 3) continue;
                        z += at(image, {place[0], row, column, c}) * at(w, {i, j, c, place[3]});
                      }
                  return z;
                };
                Tensor last{{3, 4, 3, 2}, Numbers(72)};
                std::vector<Tensor> outputs;
                for (std::int64_t t = 0; t < 2; ++t) {
                  const Tensor x = tabulate({3, 4, 3, 2}, [&](const Index& i) {
                    return at(in[0], {i[0], t, i[1], i[2], i[3]});
                  });
                  auto counts = [&](const Index& i) { return at(in[4], {i[0], t}) != 0; };
                  const Tensor next = tabulate({3, 4, 3, 2}, [&](const Index& i) {
                    return std::tanh(convolved(x, i, in[1]) + convolved(h, i, in[2]));
                  });
                  last = tabulate({3, 4, 3, 2}, [&](const Index& i) { return counts(i) ? at(next, i) : at(last, i); });
                  h = tabulate({3, 4, 3, 2}, [&](const Index& i) { return counts(i) ? at(next, i) : at(h, i); });
                  outputs.push_back(last);
                }
                return tabulate({3, 2, 4, 3, 2}, [&](const Index& i) {
                  return at(outputs[static_cast<std::size_t>(i[1])], {i[0], i[2], i[3], i[4]});
                });
              }};
}

std::vector<OpCase> other_rows() {
  return {linear_row(), constants_row(), stateless_row(), concatenated_row(), nested_row(), image_row()};
}

SYNCLINE_OP_CASES(recurrent_rows)
SYNCLINE_OP_CASES(other_rows)

}  // namespace
}  // namespace syncline::testing
