// SYNCLINE_TRACE under mpirun: whether the files are what they should be, also of ranks that are killed, and whether
// the slow rank is named.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/io/scratch.h"

namespace syncline {
namespace {

using io::Outcome;
using io::read_file;
using io::run_shell;
using io::Scratch;
using Json = nlohmann::json;

Outcome run_job(const Scratch& scratch, const std::string& how, int ranks = 2, const std::string& more = "") {
  return run_shell("SYNCLINE_TRACE=" + scratch.path("trace") + " " + more + " " SYNCLINE_MPIRUN " -np " +
                   std::to_string(ranks) + " " SYNCLINE_STRAGGLER " " + how);
}

Json merged(const Scratch& scratch) {
  const Outcome outcome =
      run_shell(SYNCLINE_TOOL " trace merge " + scratch.path("trace") + " -o " + scratch.path("merged.json"));
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  return Json::parse(read_file(scratch.path("merged.json")));
}

// Each event has what the format wants, in the order of time; events of a row do not cross each other.
void expect_well_formed(const Json& document, int ranks) {
  std::set<int> named;
  std::map<std::pair<int, int>, std::vector<std::int64_t>> open;  // ends, of each row
  const auto nanoseconds = [](const Json& time) { return std::llround(time.get<double>() * 1e3); };
  std::int64_t last = 0;
  for (const Json& event : document.at("traceEvents")) {
    ASSERT_TRUE(event.at("name").is_string() && event.at("ph").is_string()) << event;
    const int pid = event.at("pid"), tid = event.at("tid");
    ASSERT_LT(pid, ranks);
    if (event["ph"] == "M") {
      if (event["name"] == "process_name") named.insert(pid);
      continue;
    }
    ASSERT_EQ(event["ph"], "X");
    const std::int64_t begin = nanoseconds(event.at("ts")), end = begin + nanoseconds(event.at("dur"));
    ASSERT_LE(last, begin);
    ASSERT_LE(begin, end);
    last = begin;
    auto& row = open[{pid, tid}];
    while (!row.empty() && row.back() <= begin) row.pop_back();
    ASSERT_TRUE(row.empty() || end <= row.back()) << event;
    row.push_back(end);
  }
  EXPECT_EQ(named.size(), static_cast<std::size_t>(ranks));
}

std::map<std::string, int> categories(const Json& document, int rank) {
  std::map<std::string, int> count;
  for (const Json& event : document.at("traceEvents"))
    if (event["ph"] == "X" && event["pid"] == rank) ++count[event.at("cat")];
  return count;
}

std::int64_t waited(const Json& document, int rank, int other) {
  return document["metadata"]["ranks"][static_cast<std::size_t>(rank)]["waited_for_rank_ns"].value(
      std::to_string(other), std::int64_t{0});
}

constexpr std::int64_t kAllNaps = 12 * 20'000'000;

TEST(Trace, NamesTheRankThatIsSlowInItsSteps) {
  const Scratch scratch;
  const Outcome outcome = run_job(scratch, "backward");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_CONTAINS(outcome.output, "syncline: 12 steps in ");
  EXPECT_CONTAINS(outcome.output, "rank 0 waited longest");
  EXPECT_CONTAINS(outcome.output, "rank 1");
  EXPECT_CONTAINS(outcome.output, "its computation takes longer");
  for (const char* name : {"rank0.json", "rank1.json"})
    EXPECT_GT(Json::parse(read_file(scratch.path("trace/") + name)).size(), 100u) << name;  // without being merged
  const Json document = merged(scratch);
  expect_well_formed(document, 2);
  for (int rank = 0; rank < 2; ++rank) {
    std::map<std::string, int> count = categories(document, rank);
    EXPECT_EQ(count["step"], 12);
    EXPECT_EQ(count["plan"], 1);
    EXPECT_GE(count["transfer"], 2 * 12);
    EXPECT_GE(count["compute"], 3 * 12);
    EXPECT_GE(count["wait"], 1);
  }
  // Nearly all the naps: a part of a nap may be hidden behind rank 0's own computation, and other things take time too.
  EXPECT_GT(waited(document, 0, 1), kAllNaps / 2);
  EXPECT_LT(waited(document, 1, 0), waited(document, 0, 1));
  const Json& summary = document["metadata"]["summary"];
  EXPECT_CONTAINS(outcome.output, summary.at("text").get<std::string>());
  EXPECT_GT(summary["ranks"][1]["compute_ns"], summary["ranks"][0]["compute_ns"]);
  EXPECT_LT(document["metadata"]["clock_error_ns"], 100'000'000);
}

TEST(Trace, TellsWorkBetweenStepsFromWorkInSteps) {
  const Scratch scratch;
  const Outcome outcome = run_job(scratch, "between");
  EXPECT_CONTAINS(outcome.output, "rank 0 waited longest");
  EXPECT_CONTAINS(outcome.output, "its work between steps takes longer");
  EXPECT_GT(waited(merged(scratch), 0, 1), kAllNaps / 2);
}

TEST(Trace, FilesOfKilledRanksAreWhole) {
  const Scratch scratch;
  const Outcome outcome = run_job(scratch, "killed");
  EXPECT_NE(outcome.status, 0);
  const std::string text = read_file(scratch.path("trace/rank1.json"));
  EXPECT_NO_THROW(Json::parse(text.substr(0, text.rfind(',')) + "]"));  // the format wants no closing bracket
  const Json document = merged(scratch);
  expect_well_formed(document, 2);
  EXPECT_EQ(categories(document, 1)["step"], 6);
  EXPECT_FALSE(document["metadata"]["ranks"][1]["complete"].get<bool>());
}

TEST(Trace, ARankThatAbortsWritesItsLastEvents) {
  const Scratch scratch;
  EXPECT_EQ(run_job(scratch, "fails").status, 7);
  EXPECT_EQ(categories(merged(scratch), 1)["step"], 6);
}

TEST(Trace, KernelsByName) {
  const Scratch scratch;
  run_job(scratch, "none", 1, "SYNCLINE_TRACE_DETAIL=1");
  const Json document = merged(scratch);
  expect_well_formed(document, 1);
  std::set<std::string> names;
  for (const Json& event : document["traceEvents"])
    if (event.value("cat", "") == "kernel") names.insert(event["name"]);
  EXPECT_TRUE(names.contains("nap(now=true)")) << Json(names);
}

TEST(Trace, AFolderThatCannotBeMade) {
  const Scratch scratch;
  io::write_file(scratch.path("trace"), "a file");
  const Outcome outcome = run_shell("SYNCLINE_TRACE=" + scratch.path("trace/more") + " " SYNCLINE_STRAGGLER " none");
  EXPECT_NE(outcome.status, 0);
  EXPECT_CONTAINS(outcome.output, "SYNCLINE_TRACE: the folder");
}

}  // namespace
}  // namespace syncline
