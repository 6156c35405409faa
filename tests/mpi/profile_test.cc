// SYNCLINE_PROFILE: a program's file counts the operations of its products, each rank's file its transfers, and the
// tool reads them. A name that is of no use does not end the program.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "syncline/error.h"
#include "tests/io/scratch.h"

namespace syncline {
namespace {

using io::Outcome;
using io::read_file;
using io::run_shell;
using io::Scratch;
using Json = nlohmann::json;

constexpr std::int64_t kSteps = 12, kRows = 8;  // of straggler.cc

std::vector<Json> lines_of(const std::string& path) {
  std::vector<Json> lines;
  std::istringstream in(read_file(path));
  for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line));
  return lines;
}

Outcome run_job(const Scratch& scratch, const std::string& launch) {
  return run_shell("SYNCLINE_PROFILE=" + scratch.path("p") + " " + launch + " " SYNCLINE_STRAGGLER " none");
}

std::string kind_of(const Json& line) { return line.contains("plan") ? "plan" : line.at("kind"); }

// Products of `rows` rows: x (rows, 64) * first (64, 512), hidden (rows, 512) * second (512, 700), and their gradients.
void expect_products(const std::vector<Json>& lines, std::int64_t rows) {
  std::map<std::string, double> flops;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const Json& line = lines[i];
    EXPECT_GE(line.at("seconds"), 0);
    if (const std::string kind = kind_of(line); kind == "dot" || kind == "dot_kernel_grad") {
      EXPECT_EQ(line.at("calls"), kSteps) << line;
      flops[line.at("layer")] += line.at("flops").get<double>();
    }
  }
  // The gradient with respect to x is not wanted.
  EXPECT_EQ(flops["first"], 2.0 * kSteps * rows * (2 * 64 * 512));
  EXPECT_EQ(flops["second"], 2.0 * kSteps * rows * (3 * 512 * 700));
}

TEST(Profile, CountsTheStepsOfAProcess) {
  const Scratch scratch;
  const Outcome outcome = run_job(scratch, "");
  ASSERT_EQ(outcome.status, 0) << outcome.output;
  const std::vector<Json> lines = lines_of(scratch.path("p"));
  EXPECT_EQ(lines.at(0).at("format"), 2);
  EXPECT_EQ(lines[0].at("ranks"), 1);
  EXPECT_GT(lines[0].at("flops_per_second"), 1e8);
  EXPECT_GT(lines[0].at("bytes_per_second"), 1e8);
  expect_products(lines, kRows);

  const Outcome table = run_shell(SYNCLINE_TOOL " profile --by layer " + scratch.path("p"));
  EXPECT_EQ(table.status, 0) << table.output;
  EXPECT_NE(table.output.find("  second\n"), std::string::npos) << table.output;
}

TEST(Profile, CountsTheTransfersOfEachRank) {
  const Scratch scratch;
  const Outcome outcome = run_job(scratch, SYNCLINE_MPIRUN " -np 2");
  ASSERT_EQ(outcome.status, 0) << outcome.output;
  for (const char* name : {"p.rank0", "p.rank1"}) {
    const std::vector<Json> lines = lines_of(scratch.path(name));
    EXPECT_EQ(lines.at(0).at("ranks"), 2);
    std::map<std::string, std::int64_t> calls;
    for (std::size_t i = 1; i < lines.size(); ++i) calls[kind_of(lines[i])] += lines[i].at("calls").get<std::int64_t>();
    EXPECT_GE(calls["all_reduce"], kSteps) << name;
    EXPECT_EQ(calls["wait"], calls["all_reduce"] + calls["all_gather"]) << name;
    EXPECT_GT(calls["fused"], 0) << name;
    EXPECT_EQ(run_shell(SYNCLINE_TOOL " profile " + scratch.path(name)).status, 0) << name;
  }
}

TEST(Profile, AFileThatCannotBeWrittenDoesNotEndTheProgram) {
  const Scratch scratch;
  const Outcome outcome = run_shell("SYNCLINE_PROFILE=" + scratch.path("no/folder/p") + " " SYNCLINE_STRAGGLER " none");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.output.find("SYNCLINE_PROFILE: cannot write "), std::string::npos) << outcome.output;
}

TEST(Profile, AFolderIsNotReplaced) {
  const Scratch scratch;
  const Outcome outcome = run_shell("SYNCLINE_PROFILE=" + scratch.directory() + " " SYNCLINE_STRAGGLER " none");
  EXPECT_EQ(outcome.status, 0);
  const std::string line = "syncline: SYNCLINE_PROFILE: " + scratch.directory() + " is no regular file; ";
  EXPECT_NE(outcome.output.find(line), std::string::npos) << outcome.output;
  EXPECT_EQ(outcome.output.find("SYNCLINE_PROFILE"), outcome.output.rfind("SYNCLINE_PROFILE")) << outcome.output;
  EXPECT_TRUE(scratch.files().empty());
}

}  // namespace
}  // namespace syncline
