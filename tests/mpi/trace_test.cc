// SYNCLINE_TRACE under mpirun: the files are well-formed, also those of killed ranks, and the line at the end names the
// slow rank.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
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

constexpr std::int64_t kSteps = 12;  // of straggler.cc

// Each event has the fields of the format; events are in the order of time; events of a row are nested or disjoint.
void expect_well_formed(const Json& document, int ranks) {
  std::set<int> named;
  std::map<std::pair<int, int>, std::vector<std::int64_t>> open;  // ends, by row
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

// Runs the job with longer and longer naps of rank 1, because a busy machine delays the other rank too, until rank 0's
// program has waited for more than half of the naps and the line at the end names rank 1 and the reason.
Outcome run_until_named(Scratch& scratch, const std::string& how, const std::string& why) {
  Outcome outcome;
  for (const std::int64_t nap : {20, 80, 320}) {
    outcome = run_job(scratch, join_text(how, ' ', nap));
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    const Json document = merged(scratch);
    // A part of a nap may be hidden behind rank 0's own computation.
    const std::int64_t for_1 = waited(document, 0, 1), for_0 = waited(document, 1, 0);
    const auto says = [&](const std::string& part) { return outcome.output.find(part) != std::string::npos; };
    if (for_1 > kSteps * nap * 1'000'000 / 2 && for_1 > 2 * for_0 && says("rank 0 waited longest") && says("rank 1") &&
        says("its " + why + " takes longer"))
      return outcome;
  }
  ADD_FAILURE() << "rank 1 is not named, but: " << outcome.output;
  return outcome;
}

TEST(Trace, NamesTheRankThatIsSlowInItsSteps) {
  Scratch scratch;
  const Outcome outcome = run_until_named(scratch, "backward", "computation");
  EXPECT_CONTAINS(outcome.output, "syncline: 12 steps in ");
  for (const char* name : {"rank0.json", "rank1.json"})
    EXPECT_GT(Json::parse(read_file(scratch.path("trace/") + name)).size(), 100u) << name;  // without being merged
  const Json document = merged(scratch);
  expect_well_formed(document, 2);
  for (int rank = 0; rank < 2; ++rank) {
    std::map<std::string, int> count = categories(document, rank);
    EXPECT_EQ(count["step"], kSteps);
    EXPECT_EQ(count["plan"], 1);
    EXPECT_GE(count["transfer"], 2 * kSteps);
    EXPECT_GE(count["compute"], 3 * kSteps);
    EXPECT_GE(count["wait"], 1);
  }
  const Json& summary = document["metadata"]["summary"];
  EXPECT_CONTAINS(outcome.output, summary.at("text").get<std::string>());
  EXPECT_GT(summary["ranks"][1]["compute_ns"], summary["ranks"][0]["compute_ns"]);
  EXPECT_LT(document["metadata"]["clock_error_ns"], 1'000'000'000);
}

TEST(Trace, TellsWorkBetweenStepsFromWorkInSteps) {
  Scratch scratch;
  run_until_named(scratch, "between", "work between steps");
}

TEST(Trace, FilesOfKilledRanksAreWhole) {
  const Scratch scratch;
  const Outcome outcome = run_job(scratch, "killed");
  EXPECT_NE(outcome.status, 0);
  const std::string text = read_file(scratch.path("trace/rank1.json"));
  EXPECT_TRUE(Json::accept(text.substr(0, text.rfind(',')) + "]"));  // the format wants no closing bracket
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
  EXPECT_CONTAINS(outcome.output, "SYNCLINE_TRACE: cannot create the folder");
}

}  // namespace
}  // namespace syncline
