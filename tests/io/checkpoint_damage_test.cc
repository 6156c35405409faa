// Truncated and corrupted checkpoints cause one-line errors, never a crash or wrong values.
#include <gtest/gtest.h>

#include <random>
#include <utility>
#include <vector>

#include "syncline/checkpoint/checkpoint.h"
#include "tests/io/scratch.h"

namespace syncline::io {
namespace {

class CheckpointDamage : public testing::Test {
 protected:
  CheckpointDamage() {
    save_checkpoint(path_, small_checkpoint());
    bytes_ = read_file(path_);
  }

  // Loads `bytes`. Returns true if they are refused; the error must be one line that names the file. If they are not
  // refused, the checkpoint must equal the saved one.
  bool refused(const std::string& bytes) {
    write_file(path_, bytes);
    try {
      expect_equal(load_checkpoint(path_), small_checkpoint());
      return false;
    } catch (const IoError& error) {
      EXPECT_CONTAINS(error.what(), path_);
      EXPECT_ONE_LINE(error.what());
      return true;
    }
  }

  Scratch scratch_;
  std::string path_ = scratch_.path("a.h5");
  std::string bytes_;
};

TEST_F(CheckpointDamage, TruncatedAnywhere) {
  for (std::size_t length = 0; length < bytes_.size(); length += 1 + bytes_.size() / 500)
    EXPECT_TRUE(refused(bytes_.substr(0, length))) << "cut to " << length << " of " << bytes_.size();
  EXPECT_TRUE(refused(bytes_.substr(0, bytes_.size() - 1)));
}

TEST_F(CheckpointDamage, OneBitFlippedAnywhere) {
  std::size_t refusals = 0, trials = 0;
  for (std::size_t at = 0; at < bytes_.size(); at += 1 + bytes_.size() / 2000, ++trials) {
    std::string damaged = bytes_;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
    refusals += refused(damaged);
  }
  // The other flips hit unused space.
  EXPECT_GT(refusals, trials / 10);
}

TEST_F(CheckpointDamage, ABitOfAWeightFlippedIsNamed) {
  const float value = 201.5f;  // the fourth element of dense_2/kernel:0
  const std::string needle(reinterpret_cast<const char*>(&value), sizeof value);
  const std::size_t at = bytes_.find(needle);
  ASSERT_NE(at, std::string::npos);
  bytes_[at] = static_cast<char>(bytes_[at] ^ 1);
  write_file(path_, bytes_);
  const std::string message = message_of([&] { load_checkpoint(path_); });
  EXPECT_CONTAINS(message, "/model_weights/dense_2/dense_2/kernel:0: is damaged: its bytes have XXH3 ");
}

TEST_F(CheckpointDamage, BitsOfEveryWeightAreNamed) {
  // The file stores arrays as in memory, so each is found by its bytes. The value 7 would occur elsewhere, too.
  Checkpoint saved = small_checkpoint();
  saved.optimizer[0].value = Array::scalar(std::int64_t{0x0123456789abcdef});
  save_checkpoint(path_, saved);
  bytes_ = read_file(path_);
  std::vector<std::pair<std::string, const Array*>> arrays;
  for (const Layer& layer : saved.layers)
    for (const Weight& weight : layer.weights)
      arrays.emplace_back("/model_weights/" + layer.name + "/" + weight.name, &weight.value);
  for (const Weight& weight : saved.optimizer) arrays.emplace_back("/optimizer_weights/" + weight.name, &weight.value);
  for (const auto& [name, value] : arrays) {
    const std::size_t at = bytes_.find(std::string(reinterpret_cast<const char*>(value->raw()), value->bytes()));
    ASSERT_NE(at, std::string::npos) << name;
    for (std::size_t bit = 0; bit < 8 * value->bytes(); bit += 7) {
      std::string damaged = bytes_;
      damaged[at + bit / 8] = static_cast<char>(damaged[at + bit / 8] ^ (1 << bit % 8));
      write_file(path_, damaged);
      EXPECT_CONTAINS(message_of([&] { load_checkpoint(path_); }), name + ": is damaged");
      const VerifyReport report = verify_checkpoint(path_);
      ASSERT_EQ(report.problems.size(), 1u);
      EXPECT_CONTAINS(report.problems[0], name + ": is damaged");
    }
  }
}

TEST_F(CheckpointDamage, VerifyReportsAllOfIt) {
  EXPECT_TRUE(verify_checkpoint(path_).problems.empty());
  for (const float value : {201.5f, 400.5f}) {  // elements of dense_2/kernel:0 and of Adam's m
    const std::size_t at = bytes_.find(std::string(reinterpret_cast<const char*>(&value), sizeof value));
    ASSERT_NE(at, std::string::npos);
    bytes_[at] = static_cast<char>(bytes_[at] ^ 1);
  }
  write_file(path_, bytes_);
  const VerifyReport report = verify_checkpoint(path_);
  EXPECT_TRUE(report.readable);
  ASSERT_EQ(report.problems.size(), 2u);
  EXPECT_CONTAINS(report.problems[0], "/model_weights/dense_2/dense_2/kernel:0: is damaged");
  EXPECT_CONTAINS(report.problems[1], "/optimizer_weights/training/Adam/dense_1/kernel/m:0: is damaged");
  EXPECT_FALSE(verify_checkpoint("/nowhere/a.h5").readable);
}

TEST_F(CheckpointDamage, StretchesOfGarbage) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 200; ++trial) {
    std::string damaged = bytes_;
    const std::size_t length = 1 + random() % 512, begin = random() % (damaged.size() - length);
    for (std::size_t i = 0; i < length; ++i) damaged[begin + i] = static_cast<char>(random());
    refused(damaged);
  }
}

TEST_F(CheckpointDamage, OtherFiles) {
  EXPECT_TRUE(refused(""));
  EXPECT_TRUE(refused("PK\3\4 this is another archive"));
  EXPECT_TRUE(refused(std::string(100000, '\0')));
}

}  // namespace
}  // namespace syncline::io
