// Times each family of kernels at sizes of the fourteen networks of nets.py and prints its share of what the machine
// can do, for every instruction set that this processor and SYNCLINE_SIMD allow.
//
//   limits [--threads N] [--only REGEX] [--best] [--seconds S]
//
// A line: time of a call, operations and bytes a second, the share of the limit, and of a product its speed beside
// OpenBLAS's. The limit is the time that the measured rates allow: a large product's operations a second (of this
// instruction set; for the best one OpenBLAS's if it is faster), and the bytes a second of a triad beyond the caches.
// Operations are those of the algorithm that runs. Bytes are operands read once and results written once (of tables the
// rows that are read), so rows of fewer bytes than the caches hold may pass the limit. OpenBLAS uses the instruction
// set that it chose or that OPENBLAS_CORETYPE names; with several threads it computes the pieces of our split.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <regex>
#include <string>
#include <vector>

#include "benchmarks/limit_rows.h"
#include "ops/graph/fill.h"
#include "ops/graph/op.h"
#include "ops/kernels/instruction_sets.h"
#include "ops/kernels/parallel.h"
#include "ops/kernels/product/blas.h"
#include "ops/kernels/product/gemm.h"
#include "runtime/plan/machine_limits.h"
#include "syncline/backend/function.h"
#include "syncline/timeline.h"

namespace syncline::benchmarks {
namespace {

struct Options {
  int threads = 1;
  std::string only;
  bool best = false;  // only the best instruction set
  double seconds = 0.3;
};

// The least time of the calls that fit into `seconds`, at least three, after one that is not counted.
template <class Call>
double least_seconds(double seconds, Call call) {
  call();
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  const std::int64_t begin = timeline::now();
  for (int calls = 0; calls < 3 || static_cast<double>(timeline::now() - begin) < seconds * 1e9; ++calls) {
    const std::int64_t start = timeline::now();
    call();
    least = std::min(least, timeline::now() - start);
  }
  return static_cast<double>(std::max<std::int64_t>(least, 1)) * 1e-9;
}

// Numbers in [0.1, 1), integers in [0, below).
Array random_array(const Meta& meta, std::int64_t below) {
  static std::mt19937_64 random(1);
  Array array(meta.dtype, meta.shape);
  if (meta.dtype == DType::kInt32) {
    for (std::int64_t i = 0; i < array.size(); ++i)
      array.data<std::int32_t>()[i] = static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(below));
    return array;
  }
  std::uniform_real_distribution<float> draw(0.1f, 1.0f);
  for (std::int64_t i = 0; i < array.size(); ++i) array.data<float>()[i] = draw(random);
  return array;
}

Work work_of(const LimitGraph& graph) {
  Work work{.flops = graph.flops};
  std::vector<Expr> roots = graph.outputs;
  for (const Update& update : graph.updates) {
    roots.push_back(update.value);
    work.bytes += bytes_of(update.target.expr().meta());
  }
  for (const auto& node : nodes_under(roots)) {
    if (node->op->leaf) {
      if (!is_constant(Expr(node))) work.bytes += bytes_of(node->outputs[0]);
      continue;
    }
    std::vector<Meta> in;
    for (const Expr& input : node->inputs) in.push_back(input.meta());
    if (graph.flops == 0) work.flops += node->op->work(node->attrs.get(), in, node->outputs).flops;
  }
  for (const Expr& output : graph.outputs) work.bytes += bytes_of(output.meta());
  if (graph.bytes != 0) work.bytes = graph.bytes;
  return work;
}

// gemm calls OpenBLAS for scaled products.
double openblas_seconds(std::int64_t m, std::int64_t n, std::int64_t k, bool ta, bool tb, double seconds) {
  using kernels::Trans;
  const std::vector<float> a(static_cast<std::size_t>(m * k), 0.5f), b(static_cast<std::size_t>(k * n), 0.25f);
  std::vector<float> c(static_cast<std::size_t>(m * n));
  return least_seconds(seconds, [&] {
    kernels::gemm<float>(ta ? Trans::kYes : Trans::kNo, tb ? Trans::kYes : Trans::kNo, m, n, k, 2, a.data(), ta ? m : k,
                         b.data(), tb ? k : n, 0, c.data(), n);
  });
}

// OpenBLAS does not follow our instruction set, so only the best one is held to it.
MachineLimits limits_here(bool best, double seconds) {
  MachineLimits limits = measure_machine();
  if (!best) return limits;
  limits.flops = std::max(limits.flops, 2.0 * 768 * 768 * 768 / openblas_seconds(768, 768, 768, false, false, seconds));
  return limits;
}

void run(const LimitRow& row, const MachineLimits& limits, const Options& options) {
  const LimitGraph graph = row.make();
  Function f(graph.feeds, graph.outputs, graph.updates);
  std::vector<Array> feeds;
  for (const Expr& x : graph.feeds) feeds.push_back(random_array(x.meta(), graph.below));
  std::vector<Array> outputs = f(feeds);
  const double seconds = least_seconds(options.seconds, [&] { f.run(feeds, outputs); });
  const Work work = work_of(graph);
  const double limit = std::max(work.flops / limits.flops, work.bytes / limits.bytes);
  std::string beside;
  if (!graph.product.empty()) {
    const auto& p = graph.product;
    const double theirs = openblas_seconds(p[0], p[1], p[2], graph.a_transposed, graph.b_transposed, options.seconds);
    beside = fmt::format("{:.2f} of OpenBLAS", theirs / seconds);
  }
  fmt::print("{:<52}{:<38}{:>10.3f}{:>10.1f}{:>8.1f}{:>8.1f}{:>8.2f}  {}\n", row.family, row.what, seconds * 1e3,
             work.flops / seconds * 1e-9, work.bytes / seconds * 1e-9, work.bytes / (1 << 20), limit / seconds, beside);
  std::fflush(stdout);
}

void run_all(const Options& options) {
  set_thread_count(options.threads);
  const std::regex only(options.only);
  const std::vector<kernels::InstructionSet> sets = kernels::instruction_sets();
  for (const kernels::InstructionSet& set : sets) {
    kernels::use_instruction_set(set);
    const MachineLimits limits = limits_here(set.id == sets[0].id, options.seconds);
    fmt::print("{}, threads: {}; limits {:.1f} Gflop/s and {:.1f} GB/s; {}\n", set.name, options.threads,
               limits.flops * 1e-9, limits.bytes * 1e-9, kernels::loaded_blas().processor);
    fmt::print("{:<52}{:<38}{:>10}{:>10}{:>8}{:>8}{:>8}\n", "family", "size", "ms", "Gflop/s", "GB/s", "MiB",
               "of limit");
    for (const LimitRow& row : limit_rows())
      if (std::regex_search(row.family + ' ' + row.what, only)) run(row, limits, options);
    if (options.best) break;
  }
}

}  // namespace
}  // namespace syncline::benchmarks

int main(int argc, char** argv) {
  syncline::benchmarks::Options options;
  CLI::App app{"Times each family of kernels beside the limits of this machine."};
  app.add_option("--threads", options.threads, "threads of a kernel")->check(CLI::Range(1, 4096));
  const auto is_expression = [](const std::string& text) {
    try {
      std::regex{text};
      return std::string();
    } catch (const std::regex_error& error) {
      return "'" + text + "' is no regular expression: " + error.what();
    }
  };
  app.add_option("--only", options.only, "rows whose family and size match this regular expression")
      ->check(is_expression);
  app.add_flag("--best", options.best, "only the best instruction set");
  app.add_option("--seconds", options.seconds, "time a row")->check(CLI::Range(0.0, 3600.0));
  CLI11_PARSE(app, argc, argv);
  syncline::benchmarks::run_all(options);
}
