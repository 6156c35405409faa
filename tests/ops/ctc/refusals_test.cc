// Arguments that the ops of syncline/backend/ctc.h reject, and the error messages.
#include <gtest/gtest.h>

#include "syncline/backend/ctc.h"
#include "syncline/backend/function.h"
#include "syncline/backend/gradients.h"
#include "syncline/session.h"

namespace syncline {
namespace {

template <class E, class F>
void expect_refused(F f, const std::string& part) {
  try {
    f();
    ADD_FAILURE() << "not refused; expected a message with: " << part;
  } catch (const E& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

class CtcRefusals : public ::testing::Test {
 protected:
  static Expr input(Shape shape, DType dtype = DType::kInt32) {
    return placeholder({.shape = std::move(shape), .dtype = dtype});
  }
  static Expr probabilities(Shape shape) { return input(std::move(shape), DType::kFloat32); }
  static Array ints(Shape shape, std::vector<std::int32_t> values) {
    return Array::from<std::int32_t>(std::move(shape), values);
  }
  // Evaluates the cost, or its gradient, of two samples of two labels, four steps and three classes.
  static void cost_of(std::vector<std::int32_t> labels, std::vector<std::int32_t> steps,
                      std::vector<std::int32_t> counts, bool gradient) {
    const Expr y = fill({2, 4, 3}, 1.0 / 3);
    const Expr cost = ctc_batch_cost(constant(ints({2, 2}, labels)), y, constant(ints({2, 1}, steps)),
                                     constant(ints({2, 1}, counts)));
    eval(gradient ? gradients(cost, {y})[0] : cost);
  }

 private:
  Session session_{1};
  SessionScope scope_{session_};
};

TEST_F(CtcRefusals, ShapesOfTheCost) {
  const Expr y = probabilities({2, 4, 3}), labels = input({2, 2}), lengths = input({2, 1});
  expect_refused<ShapeError>([&] { ctc_batch_cost(input({3, 2}), y, lengths, lengths); }, "y_true (3, 2)");
  expect_refused<ShapeError>([&] { ctc_batch_cost(input({2}), y, lengths, lengths); }, "(samples, labels)");
  expect_refused<ShapeError>([&] { ctc_batch_cost(labels, probabilities({4, 3}), lengths, lengths); }, "(4, 3)");
  expect_refused<ShapeError>([&] { ctc_batch_cost(labels, probabilities({2, 4, 0}), lengths, lengths); }, "classes");
  expect_refused<ShapeError>([&] { ctc_batch_cost(labels, y, input({3, 1}), lengths); }, "input_length (3,)");
  expect_refused<ShapeError>([&] { ctc_batch_cost(labels, y, lengths, input({2, 2})); }, "(2, 2)");
  expect_refused<DTypeError>([&] { ctc_batch_cost(labels, input({2, 4, 3}), lengths, lengths); }, "int32");
  expect_refused<DTypeError>([&] { ctc_batch_cost(input({2, 2}, DType::kBool), y, lengths, lengths); }, "bool");
  expect_refused<DTypeError>([&] { ctc_batch_cost(labels, y, input({2}, DType::kBool), lengths); }, "bool");
}

TEST_F(CtcRefusals, ValuesOfTheCost) {
  for (const bool gradient : {false, true}) {
    expect_refused<ValueError>([&] { cost_of({0, 1, 2, 0}, {4, 4}, {2, 2}, gradient); }, "label 0 at (1, 1) follows 2");
    expect_refused<ValueError>([&] { cost_of({0, 1, -1, 0}, {4, 4}, {2, 2}, gradient); }, "label -1 at (1, 0)");
    expect_refused<ValueError>([&] { cost_of({0, 1, 2, -1}, {4, 4}, {2, 2}, gradient); }, "label -1 at (1, 1)");
    expect_refused<ValueError>(
        [&] {
          cost_of({0, 1, 0, 1}, {4, 5}, {2, 2}, gradient);
        },
        "input_length 5 of sample 1 is outside [0, 4]");
    expect_refused<ValueError>([&] { cost_of({0, 1, 0, 1}, {-1, 4}, {2, 2}, gradient); }, "input_length -1");
    expect_refused<ValueError>(
        [&] {
          cost_of({0, 1, 0, 1}, {4, 4}, {3, 2}, gradient);
        },
        "label_length 3 of sample 0 is outside [0, 2]");
    expect_refused<ValueError>([&] { cost_of({0, 1, 0, 1}, {4, 1}, {2, 2}, gradient); }, "need 2 time steps");
    expect_refused<ValueError>([&] { cost_of({0, 0, 0, 1}, {2, 4}, {2, 2}, gradient); }, "need 3 time steps");
    cost_of({0, 0, 0, 7}, {3, 4}, {2, 1}, gradient);  // labels behind the last do not matter
  }
}

TEST_F(CtcRefusals, Decoding) {
  const Expr y = probabilities({2, 4, 3}), lengths = input({2});
  expect_refused<ShapeError>([&] { ctc_decode(probabilities({4, 3}), lengths); }, "(4, 3)");
  expect_refused<ShapeError>([&] { ctc_decode(y, input({3})); }, "input_length (3,)");
  expect_refused<DTypeError>([&] { ctc_decode(input({2, 4, 3}), lengths); }, "int32");
  expect_refused<ValueError>([&] { ctc_decode(y, lengths, {.greedy = false, .beam_width = 2, .top_paths = 3}); },
                             "top_paths 3");
  expect_refused<ValueError>([&] { ctc_decode(y, lengths, {.greedy = false, .beam_width = 0, .top_paths = 0}); },
                             "beam_width is 0");
  for (const bool greedy : {false, true})
    expect_refused<ValueError>(
        [&] {
          eval(ctc_decode(fill({2, 4, 3}, 0.5), constant(ints({2}, {4, 6})), {.greedy = greedy}).log_probability);
        },
        "input_length 6 of sample 1 is outside [0, 4]");
}

TEST_F(CtcRefusals, Labels) {
  expect_refused<ShapeError>([&] { ctc_label_dense_to_sparse(input({2}), input({2})); }, "labels (2,)");
  expect_refused<ShapeError>([&] { ctc_label_dense_to_sparse(input({2, 3}), input({3})); }, "label_lengths (3,)");
}

}  // namespace
}  // namespace syncline
