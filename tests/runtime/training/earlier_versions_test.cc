// Checkpoints that earlier versions wrote (written_by_COMMIT/README.md): a training resumes from them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "io/arrays/array_file.h"
#include "io/arrays/checkpoint_outline.h"
#include "tests/io/scratch.h"
#include "tests/runtime/training/saved_runs.h"
#include "tests/runtime/training/small_fit.h"

namespace syncline::training {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

struct Version {
  const char* commit;
  bool records_settings;  // those that decide the bits
  bool converts_notes;    // `syncline convert` keeps them
};
const Version kVersions[] = {{"7100a1d", false, false}, {"0ed8c12", true, true}};

struct Written {
  const char* name;
  Way way;
};
const Written kWritten[] = {{"full", {.epochs = 1}},
                            {"mid_epoch", {.stop = true}},
                            {"sharded", {.ranks = 2, .stop = true, .shards = 2}},
                            {"emergency", {.ranks = 3, .kill = true}}};

void copy_folder(const std::string& from, const std::string& to) {
  fs::copy(from, to, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
}

std::string files_of(const char* commit) {
  return join_text(SYNCLINE_SOURCE_DIR "/tests/runtime/training/written_by_", commit);
}

// Compares the metrics of a training with those that another one wrote.
void expect_close(const std::string& csv, const std::string& wanted) {
  std::istringstream lines(csv), wanted_lines(wanted);
  std::string line, wanted_line;
  while (std::getline(wanted_lines, wanted_line)) {
    ASSERT_TRUE(std::getline(lines, line)) << csv;
    std::istringstream fields(line), wanted_fields(wanted_line);
    std::string field, wanted_field;
    while (std::getline(wanted_fields, wanted_field, ',')) {
      ASSERT_TRUE(std::getline(fields, field, ',')) << line;
      if (field == wanted_field) continue;
      const double value = std::stod(wanted_field);
      EXPECT_NEAR(std::stod(field), value, 1e-5 * std::abs(value)) << line;
    }
    EXPECT_FALSE(std::getline(fields, field, ',')) << line;
  }
  EXPECT_FALSE(std::getline(lines, line)) << csv;
}

class EarlierVersions : public testing::TestWithParam<std::tuple<Version, Written>> {};

// The variables that are read have the bits that were written. The resumed training ends with the bits of today's
// unbroken one, if that one still has the bits of the commit and machine that wrote the file.
TEST_P(EarlierVersions, GoOn) {
  const auto& [version, written] = GetParam();
  const auto& [name, way] = written;
  const std::string files = files_of(version.commit);
  const io::Scratch scratch;
  copy_folder(files + "/" + name, scratch.path("run"));
  EXPECT_TRUE(io::verify_checkpoint(scratch.path("run/latest")).problems.empty());
  const ordered_json wanted = ordered_json::parse(io::read_file(files + "/expected.json")).at(name);
  testing::internal::CaptureStderr();
  const Trained resumed = train({.ranks = way.ranks, .resume = true}, scratch.path("run"));
  const std::string text = testing::internal::GetCapturedStderr();
  const std::string warning =
      "the checkpoint is from an earlier version and does not record the settings that decide the bits";
  EXPECT_NE(text.find(warning) != std::string::npos, version.records_settings) << text;
  EXPECT_EQ(resumed.begun_step, wanted["step"]);
  EXPECT_EQ(resumed.begun, wanted["digest"]);
  const Trained unbroken = train({.ranks = way.ranks}, scratch.path("unbroken"));
  if (unbroken.ended == wanted["end"]) {
    EXPECT_EQ(resumed.ended, unbroken.ended);
    EXPECT_EQ(resumed.csv, unbroken.csv);
    EXPECT_EQ(resumed.csv, wanted["csv"].get<std::string>());
  } else {
    std::printf("today's trainings have other bits than those of %s: epochs are compared to rounding\n",
                version.commit);
    expect_close(resumed.csv, wanted["csv"]);
  }
}

std::string name_of(const testing::TestParamInfo<std::tuple<Version, Written>>& row) {
  const auto& [version, written] = row.param;
  return join_text(written.name, "_of_", version.commit);
}

INSTANTIATE_TEST_SUITE_P(, EarlierVersions, testing::Combine(testing::ValuesIn(kVersions), testing::ValuesIn(kWritten)),
                         name_of);

TEST(EarlierSettings, AreCompared) {
  const io::Scratch scratch;
  copy_folder(files_of("0ed8c12") + "/sharded", scratch.path("run"));
  testing::internal::CaptureStderr();
  train({.ranks = 1, .resume = true}, scratch.path("run"));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_CONTAINS(said, "was saved with ranks 0-1, Syncline 0.1.0, arithmetic 2");
  EXPECT_CONTAINS(said, " and continues with ranks 0, ");
}

TEST(EarlierConversions, HaveTheCheckpointsValues) {
  for (const Version& version : kVersions) {
    SCOPED_TRACE(version.commit);
    const std::string files = files_of(version.commit);
    const io::Checkpoint wanted = io::load_checkpoint(files + "/mid_epoch/latest");
    for (const char* name : {"/converted.npz", "/converted.safetensors"}) {
      io::Checkpoint found = io::checkpoint_of(files + name, *io::open_array_file(files + name));
      if (!version.converts_notes) {
        EXPECT_TRUE(found.notes.empty());
        EXPECT_EQ(found.version, "");
        found.notes = wanted.notes;
      }
      io::expect_equal(found, wanted);
    }
  }
}

// Not a test: writes such files into $WRITE_TO.
TEST(EarlierVersionsFiles, DISABLED_Write) {
  const std::string directory = std::getenv("WRITE_TO");
  ordered_json all;
  for (const auto& [name, way] : kWritten) {
    try {
      train(way, directory + "/" + name);
    } catch (const Death&) {
    }
    const io::Scratch scratch;
    copy_folder(directory + "/" + name, scratch.path("run"));
    const Trained resumed = train({.ranks = way.ranks, .resume = true}, scratch.path("run"));
    const Trained unbroken = train({.ranks = way.ranks}, scratch.path("unbroken"));
    EXPECT_EQ(resumed.ended, unbroken.ended);
    all[name] = {
        {"step", resumed.begun_step}, {"digest", resumed.begun}, {"end", unbroken.ended}, {"csv", unbroken.csv}};
  }
  std::ofstream(directory + "/expected.json") << all.dump(2) << '\n';
}

}  // namespace
}  // namespace syncline::training
