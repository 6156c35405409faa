// Times the first call of a training function, which makes its plan: a deep network with SGD updates, of about 12,500,
// 25,000 and 50,000 nodes. Part of kernel_bench. Twice the nodes should take about twice the time.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "syncline/backend/function.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/variable.h"

namespace syncline {
namespace {

struct Network {
  Expr x, loss;
  std::vector<Update> updates;

  std::int64_t nodes() const {
    std::vector<Expr> roots{loss};
    for (const Update& update : updates) roots.push_back(update.value);
    return std::ssize(nodes_under(roots));
  }
};

Network network_of(std::int64_t layers) {
  constexpr std::int64_t kUnits = 2;
  Network net;
  net.x = placeholder({.shape = Shape{4, kUnits}, .dtype = DType::kFloat32});
  std::vector<Variable> weights;
  Expr h = net.x;
  for (std::int64_t i = 0; i < layers; ++i) {
    const Variable w = variable(Array(DType::kFloat32, Shape{kUnits, kUnits}));
    const Variable b = variable(Array(DType::kFloat32, Shape{kUnits}));
    weights.insert(weights.end(), {w, b});
    h = tanh(dot(h, w) + b);
  }
  net.loss = mean(square(h));
  const std::vector<Expr> gradient = gradients(net.loss, std::vector<Expr>(weights.begin(), weights.end()));
  for (std::size_t i = 0; i < weights.size(); ++i) net.updates.push_back(update_sub(weights[i], gradient[i] * 0.1));
  return net;
}

void planning(benchmark::State& state) {
  // A layer adds the same number of nodes each time.
  const std::int64_t nodes_a_layer = network_of(2).nodes() - network_of(1).nodes();
  const Network net = network_of(state.range(0) / nodes_a_layer);
  const Array feed(DType::kFloat32, net.x.shape());
  for (auto _ : state) {
    std::optional<Function> f(std::in_place, std::vector{net.x}, std::vector{net.loss}, net.updates);
    benchmark::DoNotOptimize((*f)({feed}));
    state.PauseTiming();
    f.reset();  // the plan ends with the training, not with its first call
    state.ResumeTiming();
  }
  state.counters["nodes"] = static_cast<double>(net.nodes());
}
BENCHMARK(planning)->Arg(12500)->Arg(25000)->Arg(50000)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace syncline
