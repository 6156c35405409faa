// syncline trace merge: clocks with an offset and a drift, truncated files, and files that are no timelines.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "syncline/error.h"
#include "tests/io/scratch.h"

namespace syncline::tools {
namespace {

using io::Outcome;
using io::Scratch;
using io::write_file;
using Json = nlohmann::json;

std::string first_line(int rank, int ranks, int job, std::int64_t begin, std::int64_t at, std::int64_t offset) {
  return join_text("[\n{\"name\":\"syncline\",\"ph\":\"M\",\"pid\":", rank,
                   ",\"tid\":0,\"args\":{\"format\":1,\"rank\":", rank, ",\"ranks\":", ranks,
                   ",\"host\":\"h\",\"process\":1,\"begin_ns\":", begin, ",\"job\":", job, ",\"at_ns\":", at,
                   ",\"offset_ns\":", offset, ",\"error_ns\":", rank * 100, "}},\n");
}

std::string event(int rank, const char* name, const char* category, const char* begin, const char* duration,
                  const char* args = "{}") {
  return join_text("{\"name\":\"", name, "\",\"cat\":\"", category, "\",\"ph\":\"X\",\"ts\":", begin,
                   ",\"dur\":", duration, ",\"pid\":", rank, ",\"tid\":1,\"args\":", args, "},\n");
}

constexpr const char* kEnd = "{\"name\":\"end\",\"ph\":\"M\",\"pid\":0,\"tid\":0,\"args\":{\"left_out\":2}}\n]\n";

class Merge : public ::testing::Test {
 protected:
  void write(int rank, const std::string& text) { write_file(scratch_.path(join_text("rank", rank, ".json")), text); }
  Outcome merge() { return io::run_shell(SYNCLINE_PROGRAM " trace merge " + scratch_.directory()); }
  Json merged() {
    outcome_ = merge();
    EXPECT_EQ(outcome_.status, 0) << outcome_.output;
    return Json::parse(io::read_file(scratch_.path("merged.json")));
  }
  // The names of the events with a time.
  static std::vector<std::string> names(const Json& document) {
    std::vector<std::string> names;
    for (const Json& e : document["traceEvents"])
      if (e["ph"] == "X") names.push_back(e["name"]);
    return names;
  }

  Scratch scratch_;
  Outcome outcome_;
};

// Rank 1's clock is an hour behind and loses another 1 ms within 10 s.
TEST_F(Merge, AlignsClocksThatDrift) {
  constexpr std::int64_t kHour = 3'600'000'000'000;
  write(0, first_line(0, 2, 7, 2 * kHour, 2 * kHour, 0) + event(0, "a", "step", "0.000", "5000000.5") +
               event(0, "d", "step", "10000000.000", "1.000") + kEnd);
  write(1, first_line(1, 2, 7, kHour, kHour, kHour) + event(1, "b", "step", "4999500.000", "0.002") +
               event(1, "c", "step", "9999000.000", "0.000") +
               join_text("{\"name\":\"clock\",\"ph\":\"M\",\"pid\":1,\"tid\":0,\"args\":{\"at_ns\":",
                         kHour + 9'999'000'000, ",\"offset_ns\":", kHour + 1'000'000, ",\"error_ns\":300}},\n") +
               kEnd);
  const Json document = merged();
  // Of two events that begin together, the longer one comes first.
  EXPECT_EQ(names(document), (std::vector<std::string>{"a", "b", "d", "c"}));
  const Json& events = document["traceEvents"];
  EXPECT_EQ(events[0]["ts"], 0.0);
  EXPECT_EQ(events[0]["dur"], 5000000.5);
  EXPECT_EQ(events[1]["ts"], 5000000.0);
  EXPECT_EQ(events[1]["pid"], 1);
  EXPECT_EQ(events[2]["ts"], 10000000.0);
  EXPECT_EQ(events[3]["ts"], 10000000.0);
  EXPECT_EQ(document["metadata"]["clock_error_ns"], 300);
  EXPECT_EQ(document["metadata"]["ranks"][0]["events_left_out"], 2);
  EXPECT_CONTAINS(outcome_.output, "2 ranks, 4 events, 10.000 s; clocks agree within 0.3 us");
}

std::string waiting(int rank, const char* begin, const char* late, const char* for_rank = "") {
  const std::string tag = R"("plan":"ab","step":1,"bucket":2,"bytes":8)";
  return event(rank, "all_reduce", "transfer", "500.000", "10.000", ("{" + tag + "}").c_str()) +
         event(rank, "other ranks compute", "arrival", begin, "1.000", ("{" + tag + for_rank + "}").c_str()) +
         event(rank, "for the others", "wait", begin, late, ("{" + tag + for_rank + "}").c_str()) +
         event(rank, "for the transfer", "wait", "500.000", "4.000", ("{" + tag + "}").c_str()) +
         event(rank, "wait", "wait", begin, "50.000", ("{" + tag + "}").c_str());
}

TEST_F(Merge, FindsTheLastRankByTheAlignedClocks) {
  write(0, first_line(0, 3, 7, 0, 0, 0) + waiting(0, "100.000", "30.000"));
  write(1, first_line(1, 3, 7, 0, 0, 900'000) + waiting(1, "20.000", "0.001"));  // at 920 us on rank 0's clock
  write(2, first_line(2, 3, 7, 0, 0, 0) + waiting(2, "400.000", "20.000", ",\"rank\":0"));
  const Json ranks = merged()["metadata"]["ranks"];
  EXPECT_EQ(ranks[0]["waited_for_rank_ns"], Json::parse(R"({"1": 30000})"));
  EXPECT_EQ(ranks[1]["waited_for_rank_ns"], Json::object());                  // rank 1 was the last rank
  EXPECT_EQ(ranks[2]["waited_for_rank_ns"], Json::parse(R"({"0": 20000})"));  // its file names the rank
  EXPECT_EQ(ranks[0]["transfers_ns"], 10000);
  EXPECT_EQ(ranks[0]["hidden_ns"], 6000);
  EXPECT_EQ(ranks[0]["waited_ns"], 50000);
  EXPECT_EQ(ranks[0]["complete"], false);
  EXPECT_CONTAINS(outcome_.output, "rank 0 ended before its timeline was complete");
}

TEST_F(Merge, LeavesOutALastLineThatIsCut) {
  const std::string text = first_line(0, 1, 7, 0, 0, 0) + event(0, "a", "step", "1.000", "2.000");
  const std::string last = event(0, "b", "step", "4.000", "2.000");
  for (const std::size_t bytes : {0u, 1u, 20u, static_cast<unsigned>(last.size() - 4)}) {
    write(0, text + last.substr(0, bytes));
    EXPECT_EQ(names(merged()), std::vector<std::string>{"a"}) << bytes;
  }
  write(0, text + last.substr(0, last.size() - 2));
  EXPECT_EQ(names(merged()).size(), 2u);
}

TEST_F(Merge, SaysWhatIsDamaged) {
  const auto refused = [&](const std::string& text, const std::string& part) {
    write(0, text);
    const Outcome outcome = merge();
    EXPECT_EQ(outcome.status, 1);
    EXPECT_CONTAINS(outcome.output, part);
  };
  const std::string first = first_line(0, 1, 7, 0, 0, 0);
  refused(first + "{\"name\":\n" + kEnd, "rank0.json:3: this is not an event of Syncline's timeline: it is not JSON");
  refused(first + "[1,2]\n" + kEnd, "rank0.json:3: this is not an event");
  refused(first + "{\"name\":\"a\",\"ph\":\"X\",\"pid\":0},\n" + kEnd, "rank0.json:3: this is not an event");
  refused(first + "{\"name\":\"a\",\"ph\":\"B\",\"pid\":0},\n" + kEnd, "its kind is B");
  refused("{\"traceEvents\": []}\n", "rank0.json:1: this is not an event");
  refused(event(0, "a", "step", "1.000", "2.000"),
          "rank0.json:1: this is not an event of Syncline's timeline: the file does not");
  refused("[\n", "contains no event");
}

TEST_F(Merge, LeavesOutFilesOfOtherJobs) {
  write(0, first_line(0, 2, 7, 0, 0, 0) + event(0, "a", "step", "1.000", "2.000"));
  write(5, first_line(5, 6, 6, 0, 0, 0) + event(5, "old", "step", "1.000", "2.000"));
  write(12, "");
  write_file(scratch_.path("rank.json"), "not looked at");
  EXPECT_EQ(names(merged()), std::vector<std::string>{"a"});
  EXPECT_CONTAINS(outcome_.output, "rank5.json belongs to another job and is ignored");
  EXPECT_CONTAINS(outcome_.output, "rank12.json is empty and ignored");
  EXPECT_CONTAINS(outcome_.output, "1 of 2 ranks have no file");
}

TEST_F(Merge, SaysWhatIsMissing) {
  EXPECT_CONTAINS(merge().output, "contains no timeline");
  EXPECT_EQ(merge().status, 1);
  EXPECT_CONTAINS(io::run_shell(SYNCLINE_PROGRAM " trace merge /no/folder").output, "/no/folder: No such file");
  write(0, first_line(0, 1, 7, 0, 0, 0));
  const Outcome outcome = io::run_shell(SYNCLINE_PROGRAM " trace merge " + scratch_.directory() + " -o /no/folder/a");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_CONTAINS(outcome.output, "/no/folder/a: cannot write the file");
  EXPECT_EQ(io::run_shell(SYNCLINE_PROGRAM " trace").status, 2);
  EXPECT_EQ(io::run_shell(SYNCLINE_PROGRAM " trace merge").status, 2);
}

}  // namespace
}  // namespace syncline::tools
