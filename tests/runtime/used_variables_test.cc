// Ranks compare their variables at an interval of steps: one flipped bit is found and named, without false alarms.
#include <gtest/gtest.h>

#include "ops/kernels/digest.h"
#include "syncline/backend/config.h"
#include "syncline/backend/convolution.h"
#include "syncline/backend/function.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/reduce.h"
#include "syncline/session.h"
#include "syncline/training/accumulation.h"
#include "syncline/training/optimizers.h"
#include "tests/runtime/ranks.h"
#include "tests/runtime/support.h"

namespace syncline::testing {
namespace {

void flip(const Variable& v, std::size_t element, int bit) {
  Array& value = v.state().value();
  value.raw()[element * size_of(value.dtype()) + static_cast<std::size_t>(bit / 8)] ^=
      static_cast<std::byte>(1 << bit % 8);
}

// A network whose training uses parameters, the optimizer's slots and counter, and a moving average.
struct Network {
  Expr x = placeholder({.shape = {kUnknown, 6}, .name = "x"});
  Variable kernel = random_normal_variable({6, 6}, 0, 0.3, {.name = "dense/kernel"});
  Variable bias = zeros({6}, {.name = "dense/bias"});
  Variable average = zeros({6}, {.name = "average"});
  Function step = make();

  Function make() {
    const Expr hidden = dropout(tanh(bias_add(dot(x, kernel), bias)), 0.2);
    const Expr loss = mean(square(hidden - x));
    const std::vector<Variable> variables{kernel, bias};
    std::vector<Update> updates = adam(loss, variables).updates;
    updates.push_back(moving_average_update(average, mean(hidden, {0}), 0.9));
    return {{x}, {loss}, updates, "train"};
  }
  void run(int steps, std::uint64_t seed = 1) {
    for (int i = 0; i < steps; ++i) step({random_doubles({8, 6}, seed).cast(DType::kFloat32)});
  }
};

std::vector<std::string> errors_of(int size, std::uint64_t every, const std::function<void(int, Network&)>& body) {
  std::vector<std::string> texts(static_cast<std::size_t>(size));
  on_ranks(size,
           [&](comm::Communicator& communicator) {
             Network network;
             texts[static_cast<std::size_t>(communicator.rank())] =
                 message_of<DisagreementError>([&] { body(communicator.rank(), network); });
           },
           {.check_steps = every});
  return texts;
}

void expect_parts(const std::vector<std::string>& texts, std::initializer_list<std::string_view> parts) {
  for (const std::string& text : texts) {
    EXPECT_EQ(text, texts[0]);
    for (const std::string_view part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
  }
}

TEST(UsedVariables, NoFalseAlarm) {
  for (const int ranks : {1, 2, 3})
    on_ranks(ranks, [](comm::Communicator&) { Network().run(250); }, {.check_steps = 1});
}

TEST(UsedVariables, AFlippedBitIsNamed) {
  expect_parts(errors_of(3, 10,
                         [](int rank, Network& network) {
                           network.run(12);
                           set_value(network.average, Array(DType::kFloat32, {6}));
                           if (rank == 2) flip(network.kernel, 8, 30);
                           network.run(20);
                         }),
               {"variable 'dense/kernel'", "at [1, 2] (element 8 of 36)", " on ranks 0, 1; ", " on rank 2", "bits "});
}

TEST(UsedVariables, InEveryDType) {
  for (const DType dtype : {DType::kBool, DType::kUint8, DType::kInt64, DType::kFloat16, DType::kFloat64})
    expect_parts(errors_of(2, 1,
                           [&](int rank, Network& network) {
                             const Variable v = variable(Array(dtype, {3}), {.name = "v"});
                             Function read({}, {v});
                             read({});
                             if (rank == 1) flip(v, 2, 0);
                             read({});
                             network.run(1);
                           }),
                 {"variable 'v'", "(element 2 of 3): 0 (bits 0", " on rank 0; "});
}

TEST(UsedVariables, OfAFunctionThatOnlyReadsThem) {
  expect_parts(errors_of(2, 2,
                         [](int rank, Network& network) {
                           Function predict({network.x}, {dot(network.x, network.kernel)});
                           const std::vector<Array> feeds{random_doubles({8, 6}, 1).cast(DType::kFloat32)};
                           predict(feeds);
                           if (rank == 1) flip(network.kernel, 35, 3);
                           for (int i = 0; i < 4; ++i) predict(feeds);
                         }),
               {"variable 'dense/kernel'", "[5, 5]"});
}

TEST(UsedVariables, SeveralAreCounted) {
  expect_parts(errors_of(2, 5,
                         [](int rank, Network& network) {
                           network.run(1);
                           if (rank == 1) flip(network.average, 0, 22);
                           if (rank == 1) flip(network.bias, 1, 22);
                           network.run(9);
                         }),
               {"(1 more variables differ)"});
}

TEST(UsedVariables, AnotherSeedIsFoundLater) {
  expect_parts(errors_of(2, 5,
                         [](int rank, Network& network) {
                           network.run(2);
                           if (rank == 1) Session::current().set_seed(99);
                           network.run(5);
                         }),
               {"ranks 0 and 1 are not alike: rank 0 has seed 5, rank 1 has seed 99"});
}

TEST(UsedVariables, SetByHandOnOneRank) {
  expect_parts(errors_of(2, 4,
                         [](int rank, Network& network) {
                           do network.run(1);  // up to the first step after a comparison
                           while (Session::current().steps() % 4 != 1);
                           Function other({}, {constant(1.0)});
                           if (rank == 1) set_value(network.bias, Array(DType::kFloat32, {6}));
                           for (int i = 0; i < 4; ++i) other({});
                         }),
               {"'dense/bias'", "that was set by hand"});
}

TEST(UsedVariables, PartialVariablesMayDiffer) {
  on_ranks(2,
           [](comm::Communicator&) {
             const Expr x = placeholder({.shape = {kUnknown, 3}});
             const Variable w = variable(doubles({1, 2, 3}), {.dtype = DType::kFloat32});
             const std::vector<Variable> variables{w};
             const AccumulatingOptimizer optimizer = accumulate(sgd(mean(square(x * w)), variables), 3);
             Function step({x}, {}, optimizer.updates);
             for (int i = 0; i < 10; ++i) step({random_doubles({4, 3}, 3).cast(DType::kFloat32)});
           },
           {.check_steps = 1});
}

TEST(UsedVariables, NeverIfNotWanted) {
  on_ranks(2,
           [](comm::Communicator& communicator) {
             Network network;
             network.run(1);
             if (communicator.rank() == 1) flip(network.kernel, 3, 1);
             network.run(120);
           },
           {.check_steps = 0});
}

TEST(Digest, EveryBitCounts) {
  for (const std::size_t size : {1u, 7u, 64u, 5000u, 3000001u}) {
    std::vector<unsigned char> bytes(size, 7);
    const std::uint64_t before = kernels::digest(bytes.data(), size);
    EXPECT_EQ(before, kernels::digest(bytes.data(), size));
    for (const std::size_t at : {std::size_t{0}, size / 2, size - 1}) {
      bytes[at] ^= 16;
      EXPECT_NE(before, kernels::digest(bytes.data(), size));
      bytes[at] ^= 16;
    }
    EXPECT_NE(before, kernels::digest(bytes.data(), size - 1));
  }
}

}  // namespace
}  // namespace syncline::testing
