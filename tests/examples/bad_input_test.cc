// Wrong input: one clear line, every rank ends with an error within 10 s, and the old checkpoint is unchanged.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "tests/examples/job.h"
#include "tests/examples/small_data.h"

namespace syncline::examples {
namespace {

class BadInput : public testing::Test {
 protected:
  void SetUp() override {
    write_small_data(scratch_.directory(), 100, 20);
    io::save_checkpoint(path("old.h5"), io::small_checkpoint());
  }

  std::string path(const std::string& name) const { return scratch_.path(name); }
  // Replaces bytes of a data file.
  void overwrite(const std::string& name, std::size_t place, const std::string& bytes) const {
    io::write_file(path(name), io::read_file(path(name)).replace(place, bytes.size(), bytes));
  }
  JobOptions job(const std::string& more = "") const {
    return {.ranks = 2,
            .arguments = fmt::format("--data {0} --threads 1 --epochs 1 --checkpoint {0}/old.h5 {1}",
                                     scratch_.directory(), more),
            .seconds = 20};
  }
  void expect_refused(const JobOptions& options, const std::string& part) const {
    const std::string old = io::read_file(path("old.h5"));
    expect_refusal(scratch_, run_job(scratch_, options), part);
    EXPECT_TRUE(io::read_file(path("old.h5")) == old) << "the old checkpoint was changed";
    EXPECT_FALSE(std::filesystem::exists(path("old.h5.tmp"))) << "a temporary file is left";
  }

  io::Scratch scratch_;
};

TEST_F(BadInput, NoDataSet) {
  JobOptions options = job();
  options.arguments = fmt::format("--data {0}/nowhere --checkpoint {0}/old.h5", scratch_.directory());
  expect_refused(options, "install the Debian package dataset-fashion-mnist");
}

TEST_F(BadInput, NoDataSetOnOneRank) {
  std::filesystem::create_directory(path("1"));
  std::filesystem::copy(path("train-labels-idx1-ubyte"), path("1"));
  JobOptions options = job();
  options.arguments = fmt::format("--checkpoint {}/old.h5", scratch_.directory());
  options.prelude =
      fmt::format("folder={}; test $rank = 1 && folder=$folder/1; set -- \"$@\" --data $folder", scratch_.directory());
  expect_refused(options, "/1/train-images-idx3-ubyte");
}

TEST_F(BadInput, TruncatedGzip) {
  ASSERT_EQ(io::run_shell("gzip " + path("train-images-idx3-ubyte")).status, 0);
  const std::string file = path("train-images-idx3-ubyte.gz");
  std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
  expect_refused(job(), "train-images-idx3-ubyte.gz");
}

TEST_F(BadInput, WrongMagicNumber) {
  overwrite("train-labels-idx1-ubyte", 0, "\x7f");
  expect_refused(job(), "train-labels-idx1-ubyte");
}

TEST_F(BadInput, LabelOutOfRange) {
  overwrite("train-labels-idx1-ubyte", 8 + 17, "\x0b");
  expect_refused(job(), "label 17 is 11, not 0 to 9");
}

TEST_F(BadInput, ImagesAndLabelsOfDifferentNumber) {
  std::filesystem::copy_file(path("t10k-labels-idx1-ubyte"), path("train-labels-idx1-ubyte"),
                             std::filesystem::copy_options::overwrite_existing);
  expect_refused(job(), "holds 20 labels for 100 images");
}

TEST_F(BadInput, CheckpointOfAnotherModel) {
  expect_refused(job("--model cnn --resume"), "is of another model or optimizer: layer 0 is 'dense_1' in the file");
}

TEST_F(BadInput, CheckpointOfAnotherOptimizer) {
  const std::string common = "--model softmax --batch 30 ";
  expect_success(run_job(scratch_, job(common + "--optimizer sgd")));
  expect_refused(job(common + "--optimizer adam --resume"), "is of another model or optimizer");
}

TEST_F(BadInput, CheckpointOfAnotherBatch) {
  expect_success(run_job(scratch_, job("--model softmax --batch 30")));
  expect_refused(job("--model softmax --batch 20 --resume"), "was written with batches of 30 on 100 samples");
}

TEST_F(BadInput, TruncatedCheckpoint) {
  expect_success(run_job(scratch_, job("--model softmax --batch 30")));
  const std::string latest = path("old/latest");
  std::filesystem::resize_file(latest, std::filesystem::file_size(latest) - 1000);
  expect_refused(job("--model softmax --batch 30 --resume"), "damaged or truncated");
}

TEST_F(BadInput, CheckpointFolderIsAFile) {
  JobOptions options = job();
  io::write_file(path("file"), "");
  options.arguments = fmt::format("--data {0} --model softmax --epochs 1 --checkpoint {0}/file", scratch_.directory());
  expect_refused(options, "cannot create it: File exists");
}

TEST_F(BadInput, FullDisk) {
  JobOptions options = job("--model mlp --batch 50");
  // 7600 KiB a file: enough for the memory that the ranks share (7 MiB) and the launcher's, but not for the checkpoint,
  // 8 MB.
  options.layout = "one_node";
  options.prelude = "export SYNCLINE_SHARE_FROM=1024GiB; ulimit -f 7600";
  expect_refused(options, "File too large");
}

// OpenBLAS retries without end if it gets no memory, so the program checks the limit first.
TEST_F(BadInput, TooLittleAddressSpace) {
  JobOptions options = job("--model softmax");
  options.ranks = 1;
  options.prelude = "ulimit -v 180000";
  expect_refused(options, "the address space is limited to 175 MiB (RLIMIT_AS, ulimit -v), but OpenBLAS needs 128 MiB");
}

TEST_F(BadInput, OptionInTheEnvironment) {
  JobOptions options = job("--model softmax");
  options.ranks = 1;
  options.prelude = "export SYNCLINE_SHARE_FROM=0";
  expect_refused(options, "SYNCLINE_SHARE_FROM is '0'; give a number of bytes");
}

TEST_F(BadInput, BatchOfNoRows) {
  expect_refused(job("--batch 0"), "--batch: give a whole number from 1 to 9223372036854775807, not '0'");
}
TEST_F(BadInput, NumbersThatDoNotFit) {
  expect_refused(job("--batch 9223372036854775808"), "--batch: give a whole number from 1 to 9223372036854775807");
  expect_refused(job("--seed -1"), "--seed: give a whole number from 0 to 18446744073709551615, not '-1'");
  expect_refused(job("--seed 18446744073709551616"), "not '18446744073709551616'");
  expect_refused(job("--threads 2147483648"), "--threads: give a whole number from 0 to 2147483647");
}
TEST_F(BadInput, ABatchOfMoreRowsThanThereAre) {
  const Ended ended = run_job(scratch_, job("--model softmax --batch 9223372036854775807"));
  expect_success(ended);
  EXPECT_CONTAINS(ended.out, "is larger than the training set of 100 rows");
  EXPECT_EQ(io::summarize_checkpoint(path("old/latest")).state.global_step, 1);
}
TEST_F(BadInput, UnknownModel) { expect_refused(job("--model vgg"), "--model"); }
TEST_F(BadInput, UnknownOption) { expect_refused(job("--modle cnn"), "--modle"); }
TEST_F(BadInput, ResumeFromNothing) {
  JobOptions options = job();
  options.arguments = fmt::format("--data {} --resume", scratch_.directory());
  expect_refused(options, "--checkpoint");
}

TEST_F(BadInput, RanksWithDifferentModels) {
  JobOptions options = job("--batch 50");
  options.ranks = 3;
  options.prelude = "model=mlp; test $rank = 2 && model=softmax; set -- \"$@\" --model $model";
  expect_refused(options, "ranks 0 and 2 built different functions; the first difference");
}

TEST_F(BadInput, RanksWithDifferentSeeds) {
  JobOptions options = job("--model softmax --batch 50");
  options.prelude = "set -- \"$@\" --seed $((7 + rank))";
  expect_refused(options, "ranks 0 and 1 are not alike: rank 0 has --seed 7, rank 1 has 8");
  const Ended ended = run_job(scratch_, options);
  EXPECT_EQ(ended.code, 65) << ended.trace;
}

// The data has equal shapes, so only the comparison of values finds the difference.
TEST_F(BadInput, RanksWithDifferentData) {
  for (const auto& [file, of_what] : std::map<std::string, std::string>{
           {"train-images-idx3-ubyte", "the training's step"}, {"t10k-images-idx3-ubyte", "the evaluation"}}) {
    const std::filesystem::path other = path(file + ".d");
    std::filesystem::create_directory(other);
    for (const auto& each : std::filesystem::directory_iterator(scratch_.directory()))
      if (each.path().filename().string().ends_with("ubyte")) std::filesystem::copy(each.path(), other);
    const std::string bytes = io::read_file(other / file);
    io::write_file(other / file, bytes.substr(0, 16) + bytes.substr(17) + bytes.substr(16, 1));
    JobOptions options = job();
    options.arguments =
        fmt::format("--threads 1 --epochs 1 --model softmax --batch 50 --checkpoint {}/new", other.string());
    options.prelude = fmt::format("folder={}; test $rank = 1 && folder={}; set -- \"$@\" --data $folder",
                                  scratch_.directory(), other.string());
    const Ended ended = run_job(scratch_, options);
    EXPECT_EQ(ended.code, 0) << ended.trace;
    ASSERT_FALSE(ended.complaints.empty()) << ended.trace;
    EXPECT_CONTAINS(ended.complaints[0], "the ranks feed different values for input 0 of " + of_what);
  }
}

TEST_F(BadInput, RanksWithDifferentBatches) {
  JobOptions options = job("--model mlp");
  options.prelude = "set -- \"$@\" --batch $((50 + rank))";
  expect_refused(options, "ranks 0 and 1");
}

}  // namespace
}  // namespace syncline::examples
