// The profile of a process: the lines of its plans' steps, and its file.
#include "runtime/plan/profile.h"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "syncline/backend/control.h"
#include "syncline/backend/function.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "syncline/training/accumulation.h"
#include "tests/io/scratch.h"
#include "tests/runtime/ranks.h"
#include "tests/runtime/support.h"

static bool is_child = false;  // forked by a test

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
// A forked child has no other threads, whose memory then looks lost.
int __lsan_is_turned_off() { return is_child; }
#endif

namespace syncline {
namespace {

using io::Scratch;
using testing::random_doubles;
using testing::random_ints;
using Json = nlohmann::json;
using Exprs = std::vector<Expr>;

// Names the file before the first plan.
const std::string& path_of_process() {
  static const Scratch* const scratch = new Scratch;
  static const std::string path = [] {
    std::string named = scratch->path("profile");
    setenv("SYNCLINE_PROFILE", named.c_str(), /*overwrite=*/1);
    return named;
  }();
  return path;
}
[[maybe_unused]] const std::string& is_named = path_of_process();

std::vector<Json> lines_of(const std::string& path) {
  std::vector<Json> lines;
  std::istringstream in(io::read_file(path));
  for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line));
  return lines;
}

std::vector<Json> lines_in(const std::string& layer) {
  Profile::of_process()->write();
  std::vector<Json> found;
  for (const Json& line : lines_of(path_of_process()))
    if (line.contains("layer") && line.at("layer") == layer) found.push_back(line);
  return found;
}

Json line_of_plan(const std::string& name) {
  Profile::of_process()->write();
  for (const Json& line : lines_of(path_of_process()))
    if (line.contains("plan") && line.at("plan") == name) return line;
  throw std::runtime_error("no line of the plan " + name);
}

int status_of_child(const std::function<int()>& run) {
  const pid_t child = fork();
  if (child == 0) {
    is_child = true;
    _exit(run());
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// The first test: the process has no plan yet.
TEST(ProfileOfProcess, BelongsToTheProcessThatLoadedTheLibrary) {
  EXPECT_EQ(status_of_child([] { return Profile::of_process() == nullptr ? 0 : 1; }), 0);
  ASSERT_NE(Profile::of_process(), nullptr);
  const int status = status_of_child([]() -> int { std::exit(0); });
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(std::filesystem::exists(path_of_process()));
}

// A recurrent network with weights in the scope `layer`; returns its loss and its weights' gradients.
struct Recurrent {
  static constexpr std::int64_t kRows = 30, kFeatures = 5, kUnits = 6;
  Variable kernel, recurrent;
  Expr x;
  Exprs values;

  Recurrent(const std::string& layer, std::int64_t time)
      : kernel(variable(random_doubles({kFeatures, kUnits}, 1), {.name = layer + "/kernel"})),
        recurrent(variable(random_doubles({kUnits, kUnits}, 2), {.name = layer + "/recurrent_kernel"})),
        x(placeholder({.shape = {kUnknown, time, kFeatures}, .dtype = DType::kFloat64})) {
    const RnnStep step = [this](const Expr& e, const Exprs& s) {
      // The product runs the addition; tanh is a step of its own.
      const Expr h = tanh(reverse(dot(e, kernel) + dot(s[0], recurrent), {1}));
      return std::pair{h, Exprs{h}};
    };
    const Expr zero = repeat_elements(expand_dims(sum(x, {1, 2}) * 0.0, 1), kUnits, 1);
    const Expr loss = mean(square(rnn(step, x, {zero}, {}).last_output - 0.5));
    values = {loss};
    for (const Expr& d : gradients(loss, {kernel.expr(), recurrent.expr()})) values.push_back(d);
  }
};

// Groups of 8 iterations: 5 groups of which the last has 5 iterations, and 5 whole groups.
TEST(ProfileOfProcess, CountsTheProductsOfLoopsOverAllIterations) {
  for (const std::int64_t time : {37, 40}) {
    const std::string layer = join_text("folded_", time);
    const Recurrent net(layer, time);
    Function f({net.x}, net.values);
    const Array x = random_doubles({Recurrent::kRows, time, Recurrent::kFeatures}, 3);
    ASSERT_EQ(testing::count_lines(f.describe({&x, 1}), "; every 8 iterations dot_kernel_grad"), 1);
    f({x});
    double flops = 0, calls = 0;
    for (const Json& line : lines_in(layer))
      if (line.at("kind") == "dot_kernel_grad") {
        flops += line.at("flops").get<double>();
        calls += line.at("calls").get<double>();
        EXPECT_CONTAINS(line.at("what").get<std::string>(), join_text('(', time, ", 30, "));
      }
    EXPECT_EQ(calls, 2 * 5);
    EXPECT_NEAR(flops,
                2.0 * static_cast<double>(Recurrent::kRows * time * Recurrent::kUnits) *
                    (Recurrent::kFeatures + Recurrent::kUnits),
                1);
  }
}

TEST(ProfileOfProcess, StepsOfALoopHaveItsLayer) {
  constexpr std::int64_t kTime = 9;
  const Recurrent net("recurrent_1", kTime);
  Function f({net.x}, {net.values[0]});
  f({random_doubles({Recurrent::kRows, kTime, Recurrent::kFeatures}, 3)});
  std::map<std::string, std::int64_t> calls;
  for (const Json& line : lines_in("recurrent_1"))
    calls[line.at("kind").get<std::string>().substr(0, 3)] += line.at("calls").get<std::int64_t>();
  EXPECT_GE(calls["dot"], kTime);  // of the state; dot or dot_packed
  EXPECT_GE(calls["fus"], kTime);  // reads no variable
  EXPECT_EQ(calls["loo"], 1);
}

// Sums with equal labels, results and operands of the reduction, but of other memory.
TEST(ProfileOfProcess, ReductionsOfOtherOperandsHaveLinesOfTheirOwn) {
  const Variable v = variable(random_doubles({200, 300}, 1), {.name = "reduced/v"});
  const Expr row = placeholder({.shape = {300}, .dtype = DType::kFloat64});
  const Expr all = placeholder({.shape = {200, 300}, .dtype = DType::kFloat64});
  for (const Expr& factor : {row, all})
    Function({factor}, {sum(v.expr() * factor)})({random_doubles(factor.shape(), 2)});
  std::vector<double> bytes;
  for (const Json& line : lines_in("reduced"))
    if (line.at("kind") == "reduce") bytes.push_back(line.at("bytes"));
  ASSERT_EQ(bytes.size(), 2u);
  EXPECT_EQ(std::abs(bytes[0] - bytes[1]), 8.0 * (200 * 300 - 300));
}

// A rank alone may refuse an index of its rows. Last, because the ranks are threads and rename the process's file.
TEST(ProfileOfProcess, APlanHasALineOfItsRuns) {
  const Expr x = placeholder({.shape = {kUnknown, 50}, .dtype = DType::kFloat64});
  const Variable w = variable(random_doubles({50, 20}, 1));
  const Expr y = reverse(dot(x, w), {1});
  Function f({x}, {dot(y, transpose(y))}, {}, "profiled plan");
  for (int i = 0; i < 3; ++i) f({random_doubles({30, 50}, 2)});
  const Json line = line_of_plan("profiled plan");
  EXPECT_EQ(line.at("calls"), 3);
  EXPECT_GT(line.at("seconds"), 0);
  EXPECT_EQ(line.at("flops"), 3 * (2 * 30 * 50 * 20 + 2 * 30 * 20 * 30));
  // Both products, the reversed rows and the transposed ones are written once and read once.
  EXPECT_EQ(line.at("bytes"), 3 * 8 * (30 * 50 + 50 * 20 + 2 * (3 * 30 * 20 + 30 * 30)));
}

TEST(ProfileOfProcess, APlanReadsFewRowsOfATable) {
  const Variable table = variable(random_doubles({1000, 8}, 1));
  const Expr rows = placeholder({.shape = {5}, .dtype = DType::kInt32});
  Function f({rows}, {gather(table, rows)}, {}, "profiled gather");
  f({random_ints({5}, 1000, 2)});
  EXPECT_LT(line_of_plan("profiled gather").at("bytes").get<double>(), 8 * 8 * 100.0);
}

TEST(ProfileOfProcess, BarriersHaveLines) {
  testing::on_ranks(2, [](comm::Communicator&) {
    const std::vector<Variable> table{variable(random_doubles({3, 4}, 1), {.name = "table"})};
    const Expr i = placeholder({.shape = {kUnknown}, .dtype = DType::kInt32});
    const Expr loss = sum(square(gather(table[0], i)));
    Function f({i}, {}, accumulate_gradients(gradients(loss, table), table, 4).updates);
    const Array feed = random_ints({8}, 3, 4);
    EXPECT_EQ(testing::count_lines(f.describe({&feed, 1}), "barrier"), 1);
    f({feed});
  });
  Profile::of_process()->write();
  int found = 0;
  for (const std::string& file : {path_of_process() + ".rank0", path_of_process() + ".rank1"})
    if (std::filesystem::exists(file))
      for (const Json& line : lines_of(file)) found += line.value("kind", "") == "barrier";
  EXPECT_EQ(found, 2);  // to start it and to wait for it; ranks that are threads share a file
}

TEST(ProfileFile, IsNeitherAFolderNorADeviceNorALink) {
  const Scratch scratch;
  const std::filesystem::path link = std::filesystem::path(scratch.directory()) / "link";
  std::filesystem::create_symlink("target", link);
  EXPECT_CONTAINS(io::message_of([&] { Profile{link.string()}; }), "is no regular file");
  EXPECT_CONTAINS(io::message_of([&] { Profile{scratch.directory()}; }), "is no regular file");
  EXPECT_CONTAINS(io::message_of([&] { Profile{"/dev/null"}; }), "is no regular file");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST(ProfileFile, DoesNotMoveWithTheCurrentFolder) {
  const Scratch scratch;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(scratch.directory());
  Profile profile("p");
  std::filesystem::current_path(before);
  profile.write();
  EXPECT_EQ(scratch.files(), std::vector<std::string>{"p"});
}

TEST(ProfileFile, IsWrittenWhenItsFolderComesBack) {
  const Scratch scratch;
  Profile profile(scratch.path("later/p"));
  EXPECT_CONTAINS(io::message_of([&] { profile.write(); }), "cannot write " + scratch.path("later/p"));
  std::filesystem::create_directory(scratch.path("later"));
  profile.write();
  EXPECT_EQ(lines_of(scratch.path("later/p")).size(), 1u);
}

TEST(ProfileFile, HasABoundedNumberOfLines) {
  const Scratch scratch;
  Profile profile(scratch.path("p"));
  for (std::size_t i = 0; i < Profile::kMostLines; ++i) profile.line("dot", join_text(i), "", {1, 1});
  ProfileLine* const dot = profile.line("dot", "more", "", {2, 2});
  EXPECT_EQ(profile.line("dot", "still more", "", {3, 3}), dot);
  EXPECT_NE(profile.line("fused", "still more", "", {3, 3}), dot);
  EXPECT_EQ(dot->what, "other");
  EXPECT_EQ(dot->work.flops, 0);
  EXPECT_EQ(profile.line("dot", "7", "", {1, 1})->what, "7");
  EXPECT_NE(profile.line("dot", "7", "", {1, 1}), dot);
}

}  // namespace
}  // namespace syncline
