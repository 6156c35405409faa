// keras.json: reading, writing, overriding, errors. A map stands for the environment, and the real home directory is
// not touched.
#include "syncline/distributed/keras_json.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <thread>

#include "syncline/backend/config.h"
#include "syncline/backend/function.h"
#include "syncline/backend/math.h"
#include "syncline/distributed/make_communicator.h"
#include "syncline/session.h"
#include "tests/runtime/support.h"

namespace syncline::testing {
namespace {

class KerasJsonFile : public ::testing::Test {
 protected:
  KerasJsonFile() {
    std::string name = (std::filesystem::temp_directory_path() / "keras_json_XXXXXX").string();
    home_ = mkdtemp(name.data());
    environment_["KERAS_HOME"] = home_;
  }
  ~KerasJsonFile() override { std::filesystem::remove_all(home_); }

  KerasJson load() const {
    return load_keras_json([this](const char* name) {
      const auto found = environment_.find(name);
      return found == environment_.end() ? nullptr : found->second.c_str();
    });
  }
  void write(const std::string& text) const { std::ofstream(path()) << text; }
  static std::string text_of(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string path() const { return home_ + "/keras.json"; }
  template <class E>
  std::string refusal(const std::string& of) const {
    write(of);
    return message_of<E>([&] { load(); });
  }

  std::string home_;
  std::map<std::string, std::string> environment_;
};

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks\n" << part;
}

TEST_F(KerasJsonFile, IsWrittenWithDefaultsWhereThereIsNone) {
  environment_["KERAS_HOME"] = home_ + "/new/folder";
  const KerasJson found = load();
  EXPECT_EQ(found.config.floatx, DType::kFloat32);
  EXPECT_EQ(found.config.epsilon, 1e-7);
  EXPECT_EQ(found.config.image_data_format, "channels_last");
  EXPECT_EQ(text_of(home_ + "/new/folder/keras.json"), R"({
    "floatx": "float32",
    "epsilon": 1e-07,
    "backend": "tensorflow",
    "image_data_format": "channels_last"
}
)");
  EXPECT_EQ(load().config.epsilon, 1e-7);
}

TEST_F(KerasJsonFile, StepsBetweenComparisons) {
  EXPECT_EQ(load().check_steps, 100u);
  write(R"({"syncline": {"check_steps": 7}})");
  EXPECT_EQ(load().check_steps, 7u);
  environment_["SYNCLINE_CHECK_STEPS"] = "0";
  EXPECT_EQ(load().check_steps, 0u);
  environment_["SYNCLINE_CHECK_STEPS"] = "often";
  expect_contains(refusal<ValueError>("{}"), "SYNCLINE_CHECK_STEPS is 'often'; give a number of steps, or 0");
  expect_contains(refusal<ValueError>(R"({"syncline": {"check_steps": -1}})"), "syncline.check_steps\" is -1");
}

TEST_F(KerasJsonFile, PartsOfABatch) {
  EXPECT_EQ(load().parts, 0);
  write(R"({"syncline": {"parts": 8}})");
  EXPECT_EQ(load().parts, 8);
  environment_["SYNCLINE_PARTS"] = "0";
  EXPECT_EQ(load().parts, 0);
  for (const char* wrong : {"6", "-8", "2048", "many", "2.5"}) {
    environment_["SYNCLINE_PARTS"] = wrong;
    expect_contains(refusal<ValueError>("{}"),
                    join_text("SYNCLINE_PARTS is '", wrong, "'; give a power of two up to 1024, or 0 for none"));
  }
}

TEST_F(KerasJsonFile, TableOfAlgorithms) {
  using comm::Algorithm;
  EXPECT_FALSE(load().comm.algorithms.has_value());
  const std::string table = home_ + "/table.json";
  const auto write_table = [&](const char* text) { std::ofstream(table) << text; };
  write_table(R"({"sums": [{"nodes": 4, "bytes": 70000, "algorithm": "halves"}, {"algorithm": "direct"}],
                  "meetings": [{"nodes": 2, "algorithm": "halves"}]})");
  write(join_text(R"({"syncline": {"algorithms": ")", table, R"("}})"));
  const comm::AlgorithmTable built_in, found = load().comm.algorithms.value();
  ASSERT_EQ(found.sums.size(), built_in.sums.size() + 2);
  EXPECT_EQ(found.sums[0], (comm::AlgorithmTable::Row{4, 70000, Algorithm::kHalves}));
  EXPECT_EQ(found.sums[1], (comm::AlgorithmTable::Row{.algorithm = Algorithm::kDirect}));
  EXPECT_EQ(found.sums[2], built_in.sums[0]);
  EXPECT_EQ(found.meetings[0], (comm::AlgorithmTable::Row{.nodes = 2, .algorithm = Algorithm::kHalves}));
  EXPECT_EQ(found.gathers, built_in.gathers);

  write("{}");
  environment_["SYNCLINE_ALGORITHMS"] = table;
  const std::pair<const char*, const char*> wrong[] = {
      {"[]", "holds []; give an object of tables"},
      {R"({"sum": []})", R"("sum" is not a table; the tables are meetings, sums and gathers)"},
      {R"({"sums": {}})", R"("sums" is {}; give a list of rows)"},
      {R"({"sums": [4]})", R"("sums" row 1 is 4; give an object with an algorithm)"},
      {R"({"sums": [{"algorithm": "direct"}, {"nodes": 4}]})", R"("sums" row 2 is {"nodes":4}; give an object)"},
      {R"({"sums": [{"algorithm": "ring"}]})", R"("algorithm" is "ring"; give "direct" or "halves")"},
      {R"({"sums": [{"algorithm": "direct", "nodes": -1}]})", R"("nodes" is -1; give a whole number)"},
      {R"({"meetings": [{"algorithm": "direct", "bytes": 1}]})",
       R"("bytes" is not a column; the columns are nodes and)"},
  };
  for (const auto& [text, message] : wrong) {
    write_table(text);
    const std::string told = message_of<ValueError>([&] { load(); });
    expect_contains(told, message);
    expect_contains(told, "table.json");
  }
  write_table("{");
  expect_contains(message_of<IoError>([&] { load(); }), "table.json: is not valid JSON at line 1");
  environment_["SYNCLINE_ALGORITHMS"] = home_ + "/none.json";
  expect_contains(message_of<IoError>([&] { load(); }), "environment: SYNCLINE_ALGORITHMS is '");
  environment_["SYNCLINE_ALGORITHMS"] = home_;
  expect_contains(message_of<IoError>([&] { load(); }), ": cannot be read: it is a folder");
  environment_.erase("SYNCLINE_ALGORITHMS");
  write(R"({"syncline": {"algorithms": 3}})");
  expect_contains(message_of<ValueError>([&] { load(); }), "give the path of a table of algorithms");
}

TEST_F(KerasJsonFile, PartsNeedSumsInOneOrder) {
  write(R"({"syncline": {"parts": 8, "wire_format": "float16"}})");
  expect_contains(message_of<ValueError>([&] { load(); }),
                  "SYNCLINE_PARTS is 8, but with a 16-bit wire format sums depend on the number of ranks");
  environment_["SYNCLINE_WIRE_FORMAT"] = "float32";
  EXPECT_EQ(load().parts, 8);
  environment_["SYNCLINE_TRANSPORT"] = "nccl";
  expect_contains(message_of<ValueError>([&] { load(); }), "with the transport nccl sums depend");
  environment_["SYNCLINE_PARTS"] = "0";
  EXPECT_EQ(load().parts, 0);
}

TEST_F(KerasJsonFile, InstructionSets) {
  EXPECT_EQ(load().simd, "best");
  write(R"({"syncline": {"simd": "common"}})");
  EXPECT_EQ(load().simd, "common");
  environment_["SYNCLINE_SIMD"] = "baseline";
  EXPECT_EQ(load().simd, "baseline");
  environment_["SYNCLINE_SIMD"] = "mmx";
  expect_contains(refusal<ValueError>("{}"), "SYNCLINE_SIMD is 'mmx'; give best, common, avx2 or baseline");
}

TEST_F(KerasJsonFile, FaultsMustBeAllowed) {
  EXPECT_TRUE(load().faults.empty());
  environment_["SYNCLINE_FAULT"] = "1:3:kill";
  expect_contains(message_of<ValueError>([&] { load(); }), "set SYNCLINE_ALLOW_FAULTS=1 for a test");
  environment_["SYNCLINE_ALLOW_FAULTS"] = "1";
  EXPECT_EQ(load().faults, "1:3:kill");
}

TEST_F(KerasJsonFile, IsReadAndLeftAsItIs) {
  const std::string before =
      R"({"floatx": "float64", "epsilon": 0.001, "image_data_format": "channels_first", "backend": "theano", "other": 1,
          "syncline": {"wait_limit": 2.5, "background": false}})";
  write(before);
  const KerasJson found = load();
  EXPECT_EQ(found.config.floatx, DType::kFloat64);
  EXPECT_EQ(found.config.epsilon, 0.001);
  EXPECT_EQ(found.config.image_data_format, "channels_first");
  EXPECT_EQ(found.backend, "theano");
  EXPECT_EQ(text_of(path()), before);
  const comm::WorkerOptions options = comm::options_for_threads(1, found.comm).worker;
  EXPECT_EQ(options.wait_limit.count(), 2.5);
  EXPECT_EQ(options.background, false);
}

TEST_F(KerasJsonFile, AbsentKeysHaveKerasDefaults) {
  write(R"({"floatx": "float16"})");
  EXPECT_EQ(load().config.floatx, DType::kFloat16);
  EXPECT_EQ(load().config.epsilon, 1e-7);
  EXPECT_FALSE(load().comm.wait_limit.has_value());
}

TEST_F(KerasJsonFile, IsLookedForInKerasHomeAndThenInHome) {
  environment_.erase("KERAS_HOME");
  environment_["HOME"] = home_;
  load();
  EXPECT_TRUE(std::filesystem::exists(home_ + "/.keras/keras.json"));
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(KerasJsonFile, WhereNothingCanBeWrittenNothingIs) {
  write("a file, not a folder");
  environment_["KERAS_HOME"] = path() + "/below";
  EXPECT_EQ(load().config.floatx, DType::kFloat32);
  environment_.clear();
  EXPECT_EQ(load().config.floatx, DType::kFloat32);
}

TEST_F(KerasJsonFile, TheEnvironmentOverridesTheFile) {
  write(R"({"floatx": "float64", "epsilon": 0.001, "image_data_format": "channels_first"})");
  environment_["SYNCLINE_FLOATX"] = "float16";
  environment_["SYNCLINE_EPSILON"] = "1e-5";
  environment_["SYNCLINE_IMAGE_DATA_FORMAT"] = "channels_last";
  EXPECT_EQ(load().config.floatx, DType::kFloat16);
  EXPECT_EQ(load().config.epsilon, 1e-5);
  EXPECT_EQ(load().config.image_data_format, "channels_last");
  environment_["SYNCLINE_EPSILON"] = "small";
  expect_contains(message_of<ValueError>([&] { load(); }), "SYNCLINE_EPSILON is 'small'; give a number");
  environment_["SYNCLINE_EPSILON"] = "-1";
  expect_contains(message_of<ValueError>([&] { load(); }), "SYNCLINE_EPSILON");
  environment_["SYNCLINE_FLOATX"] = "int8";
  expect_contains(message_of<ValueError>([&] { load(); }), "SYNCLINE_FLOATX: unknown floatx 'int8'");
}

TEST_F(KerasJsonFile, OptimizerState) {
  EXPECT_EQ(load().optimizer_state, OptimizerState::kAuto);
  write(R"({"syncline": {"optimizer_state": "replicated"}})");
  EXPECT_EQ(load().optimizer_state, OptimizerState::kReplicated);
  environment_["SYNCLINE_OPTIMIZER_STATE"] = "split";
  EXPECT_EQ(load().optimizer_state, OptimizerState::kSplit);
  environment_["SYNCLINE_OPTIMIZER_STATE"] = "true";
  expect_contains(message_of<ValueError>([&] { load(); }),
                  "SYNCLINE_OPTIMIZER_STATE is 'true'; give auto, split or replicated");
}

TEST_F(KerasJsonFile, OptionsOfTheWireStandInTheFileOrTheEnvironment) {
  write(R"({"syncline": {"first_bucket": 4096, "bucket": "1.5 MiB"}})");
  EXPECT_EQ(load().first_bucket, 4096);
  EXPECT_EQ(load().later_buckets, 3 << 19);
  environment_["SYNCLINE_FIRST_BUCKET"] = "8192";
  environment_["SYNCLINE_BUCKET"] = "2GiB";
  environment_["SYNCLINE_BY_ROWS_FROM"] = "3KiB";
  environment_["SYNCLINE_SHARE_FROM"] = "1GiB";
  environment_["SYNCLINE_WAIT_LIMIT"] = "2.5";
  environment_["SYNCLINE_BACKGROUND"] = "false";
  EXPECT_EQ(load().first_bucket, 8192);
  EXPECT_EQ(load().later_buckets, std::int64_t{2} << 30);
  EXPECT_EQ(load().by_rows_from, 3 << 10);
  EXPECT_EQ(load().share_from, 1 << 30);
  EXPECT_EQ(load().comm.wait_limit, 2.5);
  EXPECT_EQ(load().comm.background, false);
  for (const char* wrong : {"0", "-1", "25MB", "MiB", "1.5", "nan", "2000GiB", "[1]", "true"}) {
    environment_["SYNCLINE_BUCKET"] = wrong;
    expect_contains(message_of<ValueError>([&] { load(); }),
                    join_text("SYNCLINE_BUCKET is '", wrong, "'; give a number of bytes, such as 4096 or \"25MiB\""));
  }
  environment_.erase("SYNCLINE_BUCKET");
  expect_contains(refusal<ValueError>(R"({"syncline": {"bucket": "big"}})"),
                  path() + ": \"syncline.bucket\" is \"big\"; give a number of bytes");
  environment_["SYNCLINE_WAIT_LIMIT"] = "1e10";  // more nanoseconds than 64 bits hold
  expect_contains(message_of<ValueError>([&] { write("{}"), load(); }),
                  "SYNCLINE_WAIT_LIMIT is '1e10'; give a positive number of seconds, at most 1e9");
  environment_.erase("SYNCLINE_WAIT_LIMIT");
  environment_["SYNCLINE_BACKGROUND"] = "no";
  expect_contains(message_of<ValueError>([&] { write("{}"), load(); }),
                  "SYNCLINE_BACKGROUND is 'no'; give true or false");
}

TEST_F(KerasJsonFile, AMalformedFileNamesItselfAndThePlace) {
  expect_contains(refusal<IoError>("{\"floatx\": \"float32\",\n  epsilon: 1}"),
                  path() + ": is not valid JSON at line 2, column 3");
  expect_contains(refusal<IoError>(""), path() + ": is not valid JSON at line 1, column 1");
  expect_contains(refusal<IoError>("{\"epsilon\": 1e999}"), path() + ": has a number beyond");
  expect_contains(refusal<ValueError>("[1]"), path() + ": holds [1]");
}

TEST_F(KerasJsonFile, AMalformedValueNamesTheFileAndTheKey) {
  expect_contains(refusal<ValueError>(R"({"floatx": "int99"})"), path() + ": \"floatx\": unknown floatx 'int99'");
  expect_contains(refusal<ValueError>(R"({"floatx": 32})"), path() + ": \"floatx\" is 32; give a name");
  expect_contains(refusal<ValueError>(R"({"epsilon": "1e-7"})"), path() + ": \"epsilon\" is \"1e-7\"; give a number");
  expect_contains(refusal<ValueError>(R"({"epsilon": -1})"), path() + ": \"epsilon\"");
  expect_contains(refusal<ValueError>(R"({"image_data_format": "th"})"), "unknown data_format 'th'");
  expect_contains(refusal<ValueError>(R"({"backend": null})"), path() + ": \"backend\" is null");
  expect_contains(refusal<ValueError>(R"({"syncline": 1})"), path() + ": \"syncline\" is 1; give an object");
  expect_contains(refusal<ValueError>(R"({"syncline": {"wait": 1}})"),
                  "\"syncline.wait\" is not an option; the options are");
  expect_contains(refusal<ValueError>(R"({"syncline": {"wait_limit": 0}})"), "\"syncline.wait_limit\" is 0");
  expect_contains(refusal<ValueError>(R"({"syncline": {"background": 1}})"), "\"syncline.background\" is 1");
}

// Ranks start together in an empty home directory: each sees no file or a whole one, and no other file remains.
TEST_F(KerasJsonFile, IsWrittenOnceByMany) {
  environment_["KERAS_HOME"] = home_ + "/shared";
  std::vector<std::thread> ranks;
  for (int i = 0; i < 8; ++i) ranks.emplace_back([&] { EXPECT_EQ(load().config.image_data_format, "channels_last"); });
  for (std::thread& rank : ranks) rank.join();
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(home_ + "/shared")) {
    EXPECT_EQ(entry.path().filename(), "keras.json");
    ++files;
  }
  EXPECT_EQ(files, 1);
}

TEST(Configuration, SettersOverrideAndRefuse) {
  Session session;
  SessionScope scope(session);
  set_floatx("float16");
  EXPECT_EQ(floatx(), DType::kFloat16);
  EXPECT_EQ(cast_to_floatx(2.5).dtype(), DType::kFloat16);
  EXPECT_EQ(cast_to_floatx(constant(Array::scalar(std::int32_t{3}))).dtype(), DType::kFloat16);
  expect_contains(message_of<ValueError>([] { set_floatx("int99"); }), "set_floatx: unknown floatx 'int99'");
  expect_contains(message_of<ValueError>([] { set_floatx(DType::kInt32); }), "set_floatx: unknown floatx 'int32'");
  expect_contains(message_of<ValueError>([] { set_epsilon(-1); }), "set_epsilon: epsilon -1");
  expect_contains(message_of<ValueError>([] { set_image_data_format("rows"); }), "unknown data_format 'rows'");
  set_image_dim_ordering("th");
  EXPECT_EQ(image_data_format(), "channels_first");
  EXPECT_EQ(image_dim_ordering(), "th");
  expect_contains(message_of<ValueError>([] { set_image_dim_ordering("cntk"); }), "unknown dim_ordering 'cntk'");
  EXPECT_EQ(floatx(), DType::kFloat16);
  Session other;
  SessionScope inner(other);
  EXPECT_EQ(floatx(), keras_json().config.floatx);
}

}  // namespace
}  // namespace syncline::testing
