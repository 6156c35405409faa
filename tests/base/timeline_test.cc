// The timeline's files: their content, that they are JSON whenever the process ends, and the counts of steps and waits.
#include "syncline/timeline.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "syncline/error.h"
#include "tests/io/scratch.h"

namespace syncline::timeline {
namespace {

using io::read_file;
using io::Scratch;
using Json = nlohmann::json;

// The process has one recorder: each test starts it in its own folder and stops it.
class Timeline : public ::testing::Test {
 protected:
  void start() { timeline::start(scratch_.path("trace"), 3, 4, "\"more\":1"); }
  std::string text() const { return read_file(scratch_.path("trace/rank3.json")); }
  Json stopped() {
    stop();
    return Json::parse(text());
  }
  ~Timeline() override { stop(); }

  Scratch scratch_;
};

Json find(const Json& events, const std::string& name) {
  for (const Json& event : events)
    if (event["name"] == name) return event;
  ADD_FAILURE() << "no event is called " << name << " in " << events;
  return {};
}

TEST_F(Timeline, OffRecordsNothing) {
  EXPECT_FALSE(on());
  { const Span span("test", "before"); }
  record({.category = "test", .name = "before", .begin = now(), .end = now()});
  start();
  EXPECT_TRUE(on());
  EXPECT_EQ(stopped().size(), 8u);  // events about the rank, and the end
  { const Span span("test", "after"); }
  EXPECT_EQ(text().find("after"), std::string::npos);
}

TEST_F(Timeline, AThreadMayHaveARowOfItsOwn) {
  start();
  std::thread([] {
    own_row = Row::kDisk;
    const Span span("test", "elsewhere");
  }).join();
  { const Span span("test", "here"); }
  const auto events = stopped();
  EXPECT_EQ(find(events, "elsewhere")["tid"], 4);
  EXPECT_EQ(find(events, "here")["tid"], 1);
}

TEST_F(Timeline, WritesWhatChromesFormatWants) {
  start();
  const std::int64_t begin = now();
  record({.category = "a",
          .name = "b",
          .what = keep("c"),
          .begin = begin,
          .end = begin + 1'234'567,
          .row = Row::kWire,
          .has_tag = true,
          .plan = 0xabcdef0123456789,
          .step = 5,
          .bucket = 6,
          .bytes = 7,
          .for_rank = 8});
  record({.category = "a", .name = "bare", .begin = begin, .end = begin});
  const Json events = stopped();
  const Json event = find(events, "b");
  EXPECT_EQ(event["cat"], "a");
  EXPECT_EQ(event["ph"], "X");
  EXPECT_EQ(event["dur"], 1234.567);
  EXPECT_EQ(event["pid"], 3);
  EXPECT_EQ(event["tid"], 2);
  EXPECT_EQ(event["args"], Json::parse(R"({"plan": "abcdef0123456789", "step": 5, "bucket": 6, "bytes": 7, "rank": 8,
                                            "what": "c"})"));
  EXPECT_EQ(find(events, "bare")["args"], Json::object());
  EXPECT_EQ(events[0]["name"], "syncline");
  EXPECT_EQ(events[0]["args"]["ranks"], 4);
  EXPECT_EQ(events[0]["args"]["more"], 1);
  EXPECT_EQ(find(events, "process_name")["args"]["name"], "rank 3");
  EXPECT_EQ(find(events, "end")["args"]["left_out"], 0);
  EXPECT_NEAR(event["ts"].get<double>() * 1e3, begin - events[0]["args"]["begin_ns"].get<std::int64_t>(), 1);
}

TEST_F(Timeline, TextsBecomeJson) {
  const std::string nasty = "q\"b\\n\n\x01t\xc3\xa4\xff\xe2\x82 \xed\xa0\x80 \xf0\x9f\x98\x80";
  EXPECT_EQ(escaped(nasty), "q\\\"b\\\\n??t\xc3\xa4??? ??? \xf0\x9f\x98\x80");
  EXPECT_EQ(escaped("abcdef", 3), "abc...");
  EXPECT_EQ(escaped("\xc3\xa4\xc3\xa4", 1), "\xc3\xa4...");
  start();
  record({.category = "test", .name = keep(nasty), .begin = now(), .end = now()});
  record({.category = "test", .name = keep(std::string(5000, '\\')), .begin = now(), .end = now()});
  EXPECT_EQ(keep(nasty), keep(std::string(nasty)));
  EXPECT_EQ(stopped().size(), 10u);
}

// The process may be killed at any time: each page of the file ends with a whole line or with spaces.
TEST_F(Timeline, NoLineCrossesAPage) {
  start();
  std::string name = "x";
  for (int i = 0; i < 2000; ++i, name += i % 150 == 0 ? name.substr(0, 1) : "y")
    record({.category = "test", .name = keep(name), .begin = now(), .end = now()});
  flush();
  const std::string text = this->text();
  EXPECT_GT(text.size(), 50 * 4096u);
  for (std::size_t page = 4096; page < text.size(); page += 4096) {
    const std::size_t last = text.find_last_not_of(' ', page - 1);
    EXPECT_EQ(text[last], '\n') << "at " << page;
  }
  EXPECT_EQ(Json::parse(text.substr(0, text.rfind(',')) + "]").size(), 2007u);
  EXPECT_EQ(stopped().size(), 2008u);
}

TEST_F(Timeline, WhatDoesNotFitIsCounted) {
  start();
  constexpr int kEvents = 100'000;
  for (int i = 0; i < kEvents; ++i) record({.category = "test", .name = "one of many", .begin = 1, .end = 2});
  const Json events = stopped();
  const auto left_out = find(events, "end")["args"]["left_out"].get<std::size_t>();
  EXPECT_EQ(events.size() + left_out, kEvents + 8u);
}

TEST_F(Timeline, ThreadsRecordTogether) {
  start();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      for (int i = 0; i < 1000; ++i) {
        const Span span("test", "span");
        if (i % 100 == 0) flush();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(stopped().size(), 4008u);
}

TEST_F(Timeline, StepsAreCounted) {
  start();
  const Times before = times();
  for (std::uint64_t step = 0; step < 3; ++step) {
    const Step traced("train", 0xab, step);
    count_wait(1000);
  }
  count_wait(500);
  { const Step traced("train", 0xab, 3); }
  const Times& after = times();
  EXPECT_EQ(after.steps - before.steps, 4);
  EXPECT_EQ(after.waited_in_steps - before.waited_in_steps, 3000);
  EXPECT_EQ(after.waited_between - before.waited_between, 500);
  EXPECT_EQ(after.last_end - after.first_begin, after.in_steps + after.between_steps);
  const Json event = find(stopped(), "train");
  EXPECT_EQ(event["args"], Json::parse(R"({"plan": "ab", "step": 0})"));
}

TEST_F(Timeline, AForkedChildLeavesTheFileAlone) {
  start();
  { const Span span("test", "parent's"); }
  const pid_t child = fork();
  if (child == 0) {
    { const Span span("test", "child's"); }
    flush();
    std::exit(on() ? 1 : 0);  // runs the handlers that stop the recorder
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  const Json events = stopped();
  EXPECT_EQ(events.size(), 9u);
  find(events, "parent's");
}

TEST_F(Timeline, RefusesWhatCannotBeWritten) {
  io::write_file(scratch_.path("trace"), "no folder");
  EXPECT_CONTAINS(io::message_of([&] { start(); }),
                  "cannot write " + scratch_.path("trace") + "/rank3.json: Not a directory");
  EXPECT_FALSE(on());
}

TEST_F(Timeline, AFullDiskEndsTheTimelineOnly) {
  ASSERT_EQ(mkdir(scratch_.path("trace").c_str(), 0777), 0);
  ASSERT_EQ(symlink("/dev/full", scratch_.path("trace/rank3.json").c_str()), 0);
  ::testing::internal::CaptureStderr();
  start();
  { const Span span("test", "span"); }
  stop();
  EXPECT_CONTAINS(::testing::internal::GetCapturedStderr(), "No space left");
}

}  // namespace
}  // namespace syncline::timeline
