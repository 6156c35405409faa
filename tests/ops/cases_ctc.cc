// Op cases of connectionist temporal classification. The references of the cost and of the beam search enumerate every
// path of classes through time.
#include "syncline/backend/ctc.h"

#include <cmath>
#include <limits>
#include <map>

#include "syncline/backend/sparse.h"
#include "tests/ops/reference.h"

namespace syncline::testing {
namespace {

using Exprs = std::vector<Expr>;
using Labels = std::vector<std::int64_t>;
constexpr double kEpsilon = 1e-7;

// The probability of each sequence of labels in the first `steps` rows of sample i, each normalized to sum 1.
std::map<Labels, double> sequences_of(const Tensor& y, std::int64_t i, std::int64_t steps) {
  const std::int64_t classes = y.shape[2];
  std::map<Labels, double> found;
  std::int64_t paths = 1;
  for (std::int64_t t = 0; t < steps; ++t) paths *= classes;
  for (std::int64_t path = 0; path < paths; ++path) {
    double probability = 1;
    Labels labels;
    std::int64_t before = classes - 1, rest = path;
    for (std::int64_t t = 0; t < steps; ++t, rest /= classes) {
      const std::int64_t c = rest % classes;
      double total = 0;
      for (std::int64_t k = 0; k < classes; ++k) total += at(y, {i, t, k}) + kEpsilon;
      probability *= (at(y, {i, t, c}) + kEpsilon) / total;
      if (c != classes - 1 && c != before) labels.push_back(c);
      before = c;
    }
    found[labels] += probability;
  }
  return found;
}

std::int64_t whole(const Tensor& x, std::int64_t i) {
  return static_cast<std::int64_t>(x.values[static_cast<std::size_t>(i)]);
}

// Inputs: y_true, y_pred, input_length, label_length.
Tensor cost(std::span<const Tensor> in) {
  return tabulate({in[0].shape[0], 1}, [&](const Index& index) {
    Labels labels;
    for (std::int64_t j = 0; j < whole(in[3], index[0]); ++j) {
      labels.push_back(static_cast<std::int64_t>(at(in[0], {index[0], j})));
      if (labels.back() < in[1].shape[2] - 1) continue;
      labels.pop_back();  // a blank ends the labels
      break;
    }
    return -std::log(sequences_of(in[1], index[0], whole(in[2], index[0]))[labels]);
  });
}

Tensor greedy(std::span<const Tensor> in) {
  Tensor found{{in[0].shape[0], in[0].shape[1]}, {}};
  for (std::int64_t i = 0; i < in[0].shape[0]; ++i) {
    Labels labels;
    std::int64_t before = -1;
    for (std::int64_t t = 0; t < whole(in[1], i); ++t) {
      std::int64_t best = 0;
      for (std::int64_t c = 1; c < in[0].shape[2]; ++c)
        if (at(in[0], {i, t, c}) > at(in[0], {i, t, best})) best = c;
      if (best != before && best + 1 != in[0].shape[2]) labels.push_back(best);
      before = best;
    }
    labels.resize(static_cast<std::size_t>(in[0].shape[1]), -1);
    found.values.insert(found.values.end(), labels.begin(), labels.end());
  }
  return found;
}

// The `rank`-th likeliest sequence of sample i (from 0) and its probability.
std::pair<Labels, double> likeliest(const Tensor& y, std::int64_t i, std::int64_t steps, std::size_t rank) {
  std::vector<std::pair<double, Labels>> sorted;
  for (const auto& [labels, probability] : sequences_of(y, i, steps)) sorted.emplace_back(probability, labels);
  std::sort(sorted.rbegin(), sorted.rend());
  if (rank >= sorted.size()) return {{}, 0};
  return {sorted[rank].second, sorted[rank].first};
}

Reference beam_labels(std::size_t rank) {
  return [rank](std::span<const Tensor> in) {
    Tensor found{{in[0].shape[0], in[0].shape[1]}, {}};
    for (std::int64_t i = 0; i < in[0].shape[0]; ++i) {
      Labels labels = likeliest(in[0], i, whole(in[1], i), rank).first;
      labels.resize(static_cast<std::size_t>(in[0].shape[1]), -1);
      found.values.insert(found.values.end(), labels.begin(), labels.end());
    }
    return found;
  };
}

InputSpec probabilities(Shape shape) { return {.shape = std::move(shape), .low = 0.05, .high = 1}; }
InputSpec numbers(Shape shape, std::vector<double> values, DType dtype = DType::kInt32) {
  return {.shape = std::move(shape), .dtype = dtype, .values = std::move(values)};
}

OpCase cost_case(std::string name, std::vector<InputSpec> inputs) {
  InputSpec labels{.shape = {6, 20}, .dtype = DType::kInt64, .low = 0, .high = 18};
  const std::vector<InputSpec> large{labels, probabilities({6, 50, 20}), numbers({6, 1}, {50, 49, 48, 50, 40, 50}),
                                     numbers({6, 1}, {20, 18, 0, 10, 5, 1})};
  return {.name = std::move(name),
          .inputs = std::move(inputs),
          .build = [](const Exprs& x) { return ctc_batch_cost(x[0], x[1], x[2], x[3]); },
          .reference = cost,
          .large = large,
          .tolerance = 1e-5};
}

std::vector<OpCase> cost_rows() {
  return {
      cost_case("ctc_batch_cost", {numbers({5, 2}, {0, 1, 1, 1, 0, 0, 1, 0, 0, 1}), probabilities({5, 4, 3}),
                                   numbers({5, 1}, {4, 4, 3, 4, 2}), numbers({5, 1}, {2, 2, 1, 0, 2})}),
      cost_case("ctc_batch_cost_of_flat_lengths",
                {numbers({5, 3}, {2, 1, 0, 2, 2, 2, 0, 0, 1, 0, 1, 0, 1, 2, 0}, DType::kInt8), probabilities({5, 5, 4}),
                 numbers({5}, {5, 5, 5, 5, 4}, DType::kInt64), numbers({5}, {3, 3, 3, 1, 2}, DType::kUint8)}),
      cost_case("ctc_batch_cost_of_no_steps", {numbers({5, 1}, {0, 0, 0, 0, 0}), probabilities({5, 2, 2}),
                                               numbers({5, 1}, {0, 1, 2, 0, 2}), numbers({5, 1}, {0, 1, 1, 0, 0})}),
      cost_case("ctc_batch_cost_of_blanks_as_labels",
                {numbers({5, 2}, {2, 0, 0, 2, 2, 2, 1, 7, 0, 1}), probabilities({5, 4, 3}),
                 numbers({5, 1}, {4, 4, 3, 2, 4}), numbers({5, 1}, {1, 2, 2, 2, 2})}),
  };
}

OpCase beam_case(std::string name, int path, std::vector<InputSpec> inputs) {
  return {.name = std::move(name),
          .inputs = std::move(inputs),
          .build =
              [path](const Exprs& x) {
                return ctc_decode(x[0], x[1], {.greedy = false, .beam_width = 200, .top_paths = 3})
                    .decoded[static_cast<std::size_t>(path)];
              },
          .reference = beam_labels(static_cast<std::size_t>(path)),
          .large = {probabilities({6, 12, 9}), numbers({6}, {12, 3, 0, 12, 11, 12})},
          .gradient = false};
}

std::vector<OpCase> decode_rows() {
  const std::vector<InputSpec> inputs{probabilities({5, 4, 3}), numbers({5}, {4, 4, 3, 2, 4})};
  const std::vector<InputSpec> column{probabilities({5, 5, 3}), numbers({5, 1}, {5, 2, 5, 5, 4}, DType::kInt64)};
  return {
      {.name = "ctc_decode_greedy",
       .inputs = inputs,
       .build = [](const Exprs& x) { return ctc_decode(x[0], x[1]).decoded[0]; },
       .reference = greedy,
       .large = {probabilities({60, 50, 20}), {.shape = {60}, .dtype = DType::kInt32, .low = 0, .high = 50}},
       .gradient = false},
      {.name = "ctc_decode_greedy_log_probability",
       .inputs = inputs,
       .build = [](const Exprs& x) { return ctc_decode(x[0], x[1]).log_probability; },
       .reference =
           [](std::span<const Tensor> in) {
             return tabulate({in[0].shape[0], 1}, [&](const Index& index) {
               double total = 0;
               for (std::int64_t t = 0; t < whole(in[1], index[0]); ++t) {
                 double best = 0;
                 for (std::int64_t c = 0; c < in[0].shape[2]; ++c) best = std::max(best, at(in[0], {index[0], t, c}));
                 total -= std::log(best + kEpsilon);
               }
               return total;
             });
           },
       .gradient = false},
      beam_case("ctc_decode_beam_first", 0, inputs),
      beam_case("ctc_decode_beam_third", 2, column),
      {.name = "ctc_decode_beam_log_probability",
       .inputs = {probabilities({5, 4, 3}), numbers({5}, {4, 4, 3, 0, 1})},
       .build =
           [](const Exprs& x) {
             return ctc_decode(x[0], x[1], {.greedy = false, .beam_width = 50, .top_paths = 4}).log_probability;
           },
       .reference =
           [](std::span<const Tensor> in) {
             return tabulate({in[0].shape[0], 4}, [&](const Index& i) {
               return std::log(likeliest(in[0], i[0], whole(in[1], i[0]), static_cast<std::size_t>(i[1])).second);
             });
           },
       .gradient = false},
      {.name = "ctc_label_dense_to_sparse",
       .inputs = {{.shape = {5, 3}}, numbers({5}, {3, 0, 2, 7, -1})},
       .build = [](const Exprs& x) { return to_dense(ctc_label_dense_to_sparse(x[0], x[1])); },
       .reference =
           [](std::span<const Tensor> in) {
             return tabulate(in[0].shape, [&](const Index& i) { return i[1] < whole(in[1], i[0]) ? at(in[0], i) : 0; });
           }},
  };
}

SYNCLINE_OP_CASES(cost_rows)
SYNCLINE_OP_CASES(decode_rows)

}  // namespace
}  // namespace syncline::testing
