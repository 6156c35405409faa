// Times every op case of tests/ops that has large inputs. --benchmark_filter=NAME selects cases; --threads=N sets the
// number of threads (default 1).
#include <benchmark/benchmark.h>

#include <charconv>
#include <cstdio>
#include <string_view>

#include "ops/kernels/parallel.h"
#include "syncline/backend/function.h"
#include "tests/ops/op_case.h"

namespace syncline::testing {
namespace {

void run_case(benchmark::State& state, const OpCase& row) {
  const std::vector<Array> feeds = make_inputs(row.large, 1);
  std::vector<Expr> x;
  for (const Array& feed : feeds) x.push_back(placeholder({.shape = feed.shape(), .dtype = feed.dtype(), .name = "x"}));
  Function f(x, {row.build(x)});
  std::vector<Array> out = f(feeds);
  std::size_t bytes = out[0].bytes();
  for (const Array& feed : feeds) bytes += feed.bytes();
  for (auto _ : state) f.run(feeds, out);
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}

// Removes --threads=N from the arguments and sets the number of threads. False if N is not an integer of at least 1.
bool take_threads(int& argc, char** argv) {
  constexpr std::string_view kFlag = "--threads=";
  int kept = 1, threads = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (!argument.starts_with(kFlag)) {
      argv[kept++] = argv[i];
      continue;
    }
    const std::string_view number = argument.substr(kFlag.size());
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), threads);
    if (error != std::errc{} || end != number.data() + number.size() || threads < 1) return false;
  }
  argc = kept;
  set_thread_count(threads);
  return true;
}

}  // namespace
}  // namespace syncline::testing

int main(int argc, char** argv) {
  using namespace syncline::testing;
  if (!take_threads(argc, argv)) {
    std::fputs("op_bench: --threads wants a number of at least 1\n", stderr);
    return 2;
  }
  for (const OpCase& row : all_cases()) {
    if (row.large.empty()) continue;
    benchmark::RegisterBenchmark(row.name.c_str(), [&row](benchmark::State& state) { run_case(state, row); });
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
