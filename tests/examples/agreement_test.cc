// The same training on one, two and three ranks: the variables agree up to rounding, and on each run the ranks hold the
// same bits. Dropout is on and the last batch of an epoch has fewer rows than there are ranks.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/examples/job.h"
#include "tests/examples/small_data.h"

namespace syncline::examples {
namespace {

struct Case {
  std::string model, optimizer, floatx;
  friend std::ostream& operator<<(std::ostream& out, const Case& c) {
    return out << c.model << '_' << c.optimizer << '_' << c.floatx;
  }
};

double norm(const Array& x) {
  double sum = 0;
  const Array values = x.cast(DType::kFloat64);
  for (const double v : values.values<double>()) sum += v * v;
  return std::sqrt(sum);
}

double distance(const Array& x, const Array& y) {
  Array difference = x.cast(DType::kFloat64).copy();
  const Array other = y.cast(DType::kFloat64);
  for (std::int64_t i = 0; i < difference.size(); ++i) difference.data<double>()[i] -= other.data<double>()[i];
  return norm(difference);
}

std::vector<io::Weight> weights_of(const io::Checkpoint& checkpoint) {
  std::vector<io::Weight> all;
  for (const io::Layer& layer : checkpoint.layers) all.insert(all.end(), layer.weights.begin(), layer.weights.end());
  all.insert(all.end(), checkpoint.optimizer.begin(), checkpoint.optimizer.end());
  return all;
}

class Agreement : public testing::TestWithParam<Case> {
 protected:
  // 50 steps, 26 to an epoch.
  io::Checkpoint train(int ranks) {
    const Case& c = GetParam();
    const int batch = c.model == "cnn" ? 8 : 40;
    const Ended ended = run_job(
        scratch_,
        {.ranks = ranks,
         .arguments = fmt::format("--data {0} --model {1} --optimizer {2} --floatx {3} --batch {4} --samples "
                                  "{5} --epochs 2 --max-steps 50 --save-every 1000 --threads 1 --digest "
                                  "--checkpoint {0}/{6}.h5",
                                  scratch_.directory(), c.model, c.optimizer, c.floatx, batch, 25 * batch + 2, ranks)});
    expect_success(ended);
    common_digest(ended, ranks);
    const io::Checkpoint checkpoint = io::load_checkpoint(scratch_.path(fmt::format("{}.h5", ranks)));
    EXPECT_EQ(checkpoint.state.global_step, 50);
    EXPECT_EQ(checkpoint.state.step, 24);
    return checkpoint;
  }

  io::Scratch scratch_;
};

TEST_P(Agreement, OneTwoThreeRanks) {
  write_small_data(scratch_.directory(), 1002, 60);
  const double tolerance = GetParam().floatx == "float64" ? 1e-10 : 1e-4;
  const auto one = weights_of(train(1));
  for (const int ranks : {2, 3}) {
    const auto several = weights_of(train(ranks));
    ASSERT_EQ(one.size(), several.size());
    double worst = 0;
    for (std::size_t i = 0; i < one.size(); ++i) {
      ASSERT_EQ(one[i].name, several[i].name);
      const double size = norm(one[i].value), apart = distance(several[i].value, one[i].value);
      EXPECT_TRUE(std::isfinite(size)) << one[i].name;
      EXPECT_LE(apart, tolerance * size) << one[i].name << " on " << ranks << " ranks";
      if (size > 0) worst = std::max(worst, apart / size);
    }
    RecordProperty(fmt::format("worst_{}", ranks), fmt::format("{:.1e}", worst));
    fmt::print("{} ranks: at most {:.1e} of the norm apart\n", ranks, worst);
  }
}

INSTANTIATE_TEST_SUITE_P(Training, Agreement,
                         testing::Values(Case{"mlp", "sgd", "float32"}, Case{"mlp", "adam", "float32"},
                                         Case{"mlp", "adadelta", "float32"}, Case{"mlp", "sgd", "float64"},
                                         Case{"mlp", "adam", "float64"}, Case{"mlp", "adadelta", "float64"},
                                         Case{"cnn", "sgd", "float32"}, Case{"cnn", "adam", "float32"},
                                         Case{"cnn", "adadelta", "float32"}, Case{"cnn", "adam", "float64"}),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace syncline::examples
