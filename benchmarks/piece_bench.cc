// Times single functions on data in memory. Prints one JSON line; scripts/bench compares it with other frameworks on
// the same work (benchmarks/peers/pieces.py).
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "ops/kernels/parallel.h"
#include "syncline/backend/config.h"
#include "syncline/backend/function.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "syncline/session.h"

namespace {
using namespace syncline;
using Clock = std::chrono::steady_clock;

struct Piece {
  std::vector<Shape> inputs;  // the last one of gather: indices
  std::function<std::vector<Expr>(const std::vector<Expr>&)> build;
};

const Shape kLayer{4096, 1024};

Expr gelu(const Expr& x) { return x * 0.5 * (tanh((x + x * x * x * 0.044715) * 0.7978845608) + 1.0); }

const std::map<std::string, Piece> kPieces{
    {"softmax", {{kLayer}, [](const auto& x) { return std::vector{softmax(x[0])}; }}},
    {"row_means", {{kLayer}, [](const auto& x) { return std::vector{mean(x[0], {-1})}; }}},
    {"column_sums", {{kLayer}, [](const auto& x) { return std::vector{sum(x[0], {0})}; }}},
    {"row_maxima", {{kLayer}, [](const auto& x) { return std::vector{max(x[0], {-1})}; }}},
    {"gelu", {{kLayer}, [](const auto& x) { return std::vector{gelu(x[0])}; }}},
    {"gather", {{{20000, 128}, {128, 80}}, [](const auto& x) { return std::vector{gather(x[0], x[1])}; }}},
    {"transpose", {{{2048, 2048}}, [](const auto& x) { return std::vector{transpose(x[0])}; }}},
    {"channels_first",
     {{{32, 56, 56, 64}},
      [](const auto& x) {
        return std::vector{permute_dimensions(x[0], {0, 3, 1, 2})};
      }}},
};

Array make_input(const Shape& shape, std::int64_t rows) {
  if (rows == 0) return eval(random_uniform(shape)).copy();
  Array indices(DType::kInt32, shape);
  for (std::int64_t i = 0; i < indices.size(); ++i)
    indices.data<std::int32_t>()[i] = static_cast<std::int32_t>(i * 7919 % rows);
  return indices;
}

// A new thread of the pool shares its creator's core until the kernel migrates it, after about 0.1 s.
constexpr std::chrono::milliseconds kWarmUp{300};

double median_ms(Function& f, const std::vector<Array>& feeds, int steps) {
  std::vector<Array> results = f(feeds);
  for (const auto start = Clock::now(); Clock::now() - start < kWarmUp;) f.run(feeds, results);
  std::vector<double> ms;
  for (int i = 0; i < steps; ++i) {
    const auto start = Clock::now();
    f.run(feeds, results);
    ms.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  std::nth_element(ms.begin(), ms.begin() + static_cast<std::ptrdiff_t>(ms.size() / 2), ms.end());
  return ms[ms.size() / 2];
}

void run(const std::string& name, int threads, int steps) {
  Session session(1);
  SessionScope scope(session);
  set_thread_count(threads);
  const Piece& piece = kPieces.at(name);
  std::vector<Array> feeds;
  std::vector<Expr> x;
  for (const Shape& shape : piece.inputs) {
    feeds.push_back(make_input(shape, feeds.empty() ? 0 : piece.inputs[0][0]));
    x.push_back(placeholder({.shape = shape, .dtype = feeds.back().dtype(), .name = "x"}));
  }
  Function f(x, piece.build(x));
  const nlohmann::json line{{"model", name}, {"threads", threads}, {"step_ms", median_ms(f, feeds, steps)}};
  std::cout << line.dump() << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  std::string name = "softmax";
  int threads = 1, steps = 100;
  bool json = true;
  std::vector<std::string> names;
  for (const auto& [known, piece] : kPieces) names.push_back(known);
  CLI::App app("Times single functions.");
  app.add_option("--model", name, "the function")->check(CLI::IsMember(names));
  app.add_option("--threads", threads, "threads")->check(CLI::PositiveNumber);
  app.add_option("--steps", steps, "calls timed")->check(CLI::PositiveNumber);
  app.add_flag("--json", json, "one JSON line, the only form of output");
  CLI11_PARSE(app, argc, argv);
  try {
    run(name, threads, steps);
  } catch (const std::exception& e) {
    std::cerr << "piece_bench: " << e.what() << '\n';
    return 1;
  }
}
