// syncline profile: sums by kind, layer and operands, rates and shares of the limits; files that are no profiles.
#include <gtest/gtest.h>

#include "syncline/error.h"
#include "tests/io/scratch.h"

namespace syncline::tools {
namespace {

using io::Outcome;
using io::Scratch;
using io::write_file;

constexpr const char* kHead =
    R"({"format":1,"rank":1,"ranks":2,"threads":4,"instruction_set":"AVX2","flops_per_second":1e11,"bytes_per_second":1e10})"
    "\n";
constexpr const char* kLines =
    R"({"kind":"dot","what":"dot a","layer":"dense_1","calls":10,"seconds":0.5,"flops":4e10,"bytes":1e6})"
    "\n"
    R"({"kind":"dot","what":"dot b","layer":"dense_2","calls":5,"seconds":0.3,"flops":2e9,"bytes":2e9})"
    "\n"
    R"({"kind":"wait","what":"wait","layer":"","calls":7,"seconds":0.2,"flops":0,"bytes":0})"
    "\n";

class ProfileTable : public ::testing::Test {
 protected:
  Outcome show(const std::string& text, const std::string& options = "") {
    write_file(scratch_.path("p"), text);
    return io::run_shell(SYNCLINE_PROGRAM " profile " + options + " " + scratch_.path("p"));
  }
  Scratch scratch_;
};

TEST_F(ProfileTable, SumsByKind) {
  const Outcome outcome = show(join_text(kHead, kLines));
  ASSERT_EQ(outcome.status, 0) << outcome.output;
  // The limits allow 0.4 s for the first line and 0.2 s for the second.
  EXPECT_EQ(outcome.output,
            "rank 1 of 2, 4 threads, AVX2; limits 100.0 Gflop/s and 10.0 GB/s; 1.000 s in steps\n"
            "   seconds      %     calls   Gflop/s     GB/s of limit  kind\n"
            "    0.8000   80.0        15     52.50     2.50     0.75  dot\n"
            "    0.2000   20.0         7         -        -        -  wait\n");
}

TEST_F(ProfileTable, ShowsPlansBeforeTheirSteps) {
  const Outcome outcome =
      show(join_text(kHead, R"({"plan":"train","calls":10,"seconds":1.0,"flops":5e10,"bytes":1e9})", "\n", kLines));
  ASSERT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_CONTAINS(outcome.output,
                  "   seconds      runs   ms a run  least ms of limit  plan\n"
                  "    1.0000        10    100.000    50.000     0.50  train\n\n");
  EXPECT_CONTAINS(outcome.output, "    0.8000   80.0        15     52.50     2.50     0.75  dot\n");
}

TEST_F(ProfileTable, SumsByLayerAndByOperands) {
  const Outcome layers = show(join_text(kHead, kLines), "--by layer --top 2");
  EXPECT_EQ(layers.status, 0);
  EXPECT_NE(layers.output.find("     0.80  dense_1\n"), std::string::npos) << layers.output;
  EXPECT_NE(layers.output.find("     0.67  dense_2\n1 more; --top 0 prints all\n"), std::string::npos) << layers.output;
  const Outcome steps = show(join_text(kHead, kLines), "--by what --top 0");
  EXPECT_NE(steps.output.find("  dot b\n"), std::string::npos) << steps.output;
  EXPECT_EQ(show(kLines, "--by color").status, 2);
}

TEST_F(ProfileTable, RefusesOtherFiles) {
  const std::string path = scratch_.path("p");
  for (const char* text : {"not JSON\n", "{}\n", "[]\n", "{\"format\":2}\n", "{\"format\":1}\n"}) {
    const Outcome outcome = show(text);
    EXPECT_EQ(outcome.status, 1) << text;
    EXPECT_NE(outcome.output.find(path + ": "), std::string::npos) << outcome.output;
  }
  const Outcome empty = show("");
  EXPECT_EQ(empty.status, 1);
  EXPECT_NE(empty.output.find(path + ": is empty"), std::string::npos) << empty.output;
  const Outcome folder = io::run_shell(SYNCLINE_PROGRAM " profile " + scratch_.directory());
  EXPECT_EQ(folder.status, 1);
  EXPECT_NE(folder.output.find(scratch_.directory() + ": is a folder"), std::string::npos) << folder.output;
  const Outcome cut = show(join_text(kHead, "{\"kind\":\"dot\",\n"));
  EXPECT_EQ(cut.status, 1);
  EXPECT_NE(cut.output.find("line 2 is not of a profile"), std::string::npos) << cut.output;
  EXPECT_EQ(io::run_shell(SYNCLINE_PROGRAM " profile " + scratch_.path("none")).status, 1);
}

// The head alone is wrong, so no line of a step names the fault.
TEST_F(ProfileTable, ChecksTheFirstLine) {
  const std::string head = kHead;
  const auto with = [&](const std::string& from, const std::string& to) {
    return std::string(head).replace(head.find(from), from.size(), to);
  };
  for (const std::string& text :
       {with("\"rank\":1,", ""), with("\"ranks\":2", "\"ranks\":\"two\""), with("\"threads\":4,", ""),
        with("\"AVX2\"", "3"), with("1e11", "0"), with("1e10", "-1e10"), with("1e10", "null")}) {
    const Outcome outcome = show(text);
    EXPECT_EQ(outcome.status, 1) << text;
    EXPECT_NE(outcome.output.find(scratch_.path("p") + ": line 1 is not of a profile: "), std::string::npos)
        << outcome.output;
  }
}

}  // namespace
}  // namespace syncline::tools
