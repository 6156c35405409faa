#include "tests/io/scratch.h"

#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "io/checkpoint/json.h"

namespace syncline::io {
namespace {

void expect_equal_weights(const std::vector<Weight>& a, const std::vector<Weight>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    SCOPED_TRACE(a[i].name);
    EXPECT_EQ(a[i].name, b[i].name);
    EXPECT_EQ(a[i].value.dtype(), b[i].value.dtype());
    ASSERT_EQ(a[i].value.shape(), b[i].value.shape());
    if (a[i].value.bytes() > 0) {
      EXPECT_EQ(std::memcmp(a[i].value.raw(), b[i].value.raw(), a[i].value.bytes()), 0);
    }
  }
}

Array ramp(Shape shape, float start) {
  Array array(DType::kFloat32, std::move(shape));
  for (std::int64_t i = 0; i < array.size(); ++i) array.data<float>()[i] = start + 0.5f * static_cast<float>(i);
  return array;
}

}  // namespace

Scratch::Scratch() {
  std::string pattern = testing::TempDir() + "syncline_test_XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) fail<IoError>("cannot make a directory like ", pattern);
  directory_ = pattern;
}

Scratch::~Scratch() {
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

std::vector<std::string> Scratch::files() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory_)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) fail<IoError>("cannot read ", path);
  return text.str();
}

void write_file(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush();
  if (!file) fail<IoError>("cannot write ", path);
}

Outcome run_shell(const std::string& command) {
  const std::string limited = "timeout -k 1 60 sh -c '" + command + "' 2>&1";
  FILE* pipe = ::popen(limited.c_str(), "r");
  if (pipe == nullptr) fail<IoError>("cannot run ", command);
  Outcome outcome;
  char buffer[4096];
  while (const std::size_t got = std::fread(buffer, 1, sizeof buffer, pipe)) outcome.output.append(buffer, got);
  const int status = ::pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  return outcome;
}

bool has_program(const std::string& name) { return run_shell("command -v " + name).status == 0; }

std::string python() {
  const char* chosen = std::getenv("SYNCLINE_TEST_PYTHON");
  return chosen != nullptr ? chosen : "python3";
}

bool has_h5py() { return run_shell(python() + " -c \"import h5py\"").status == 0; }

Checkpoint small_checkpoint() {
  Checkpoint checkpoint;
  checkpoint.model = "mlp";
  checkpoint.layers = {
      {"dense_1", {{"dense_1/kernel:0", ramp({3, 4}, 0)}, {"dense_1/bias:0", ramp({4}, 100)}}},
      {"dropout_1", {}},
      {"dense_2", {{"dense_2/kernel:0", ramp({4, 2}, 200)}, {"dense_2/bias:0", ramp({2}, 300)}}},
  };
  checkpoint.optimizer = {{"Adam/iterations:0", Array::scalar(std::int64_t{7})},
                          {"training/Adam/dense_1/kernel/m:0", ramp({3, 4}, 400)}};
  checkpoint.state = {.epoch = 2,
                      .step = 5,
                      .global_step = 943,
                      .seed = 18446744073709551615u,
                      .random_step = 943,
                      .batch = 128,
                      .samples = 60000};
  return checkpoint;
}

void expect_equal(const Checkpoint& a, const Checkpoint& b) {
  ASSERT_EQ(a.layers.size(), b.layers.size());
  for (std::size_t i = 0; i < a.layers.size(); ++i) {
    EXPECT_EQ(a.layers[i].name, b.layers[i].name);
    expect_equal_weights(a.layers[i].weights, b.layers[i].weights);
  }
  expect_equal_weights(a.optimizer, b.optimizer);
  // A checkpoint that was never saved has no version.
  const auto text_of = [&](CheckpointHead head) {
    if (a.version.empty() || b.version.empty()) head.version.clear();
    return json_of(head).dump();
  };
  EXPECT_EQ(text_of(a), text_of(b));
}

}  // namespace syncline::io
