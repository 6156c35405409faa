// Times the kernels on the shapes of the benchmark networks (planning.cc: planning). The number of threads is
// SYNCLINE_BENCH_THREADS, or 1.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <new>
#include <random>
#include <string>

#include "ops/kernels/convolution/conv.h"
#include "ops/kernels/convolution/pool.h"
#include "ops/kernels/instruction_sets.h"
#include "ops/kernels/parallel.h"
#include "ops/kernels/product/blas.h"
#include "ops/kernels/product/gemm.h"

namespace syncline::kernels {
namespace {

using Index = std::int64_t;

// An array of small numbers, aligned to 64 bytes. The distances of arrays modulo a page change a kernel's time by up to
// 8 %, so each process draws them at random: the median over processes does not depend on one choice.
class Values {
 public:
  explicit Values(Index count) {
    static std::mt19937 random{std::random_device{}()};
    constexpr std::size_t kLine = 16, kPage = 1024;  // floats
    const std::size_t before = random() % (kPage / kLine) * kLine;
    memory_ = new (std::align_val_t(64)) float[before + static_cast<std::size_t>(count) + 1];
    data_ = memory_ + before;
    for (Index i = 0; i < count; ++i) data_[i] = static_cast<float>(i % 17) - 8.0f;
  }
  ~Values() { ::operator delete[](memory_, std::align_val_t(64)); }
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;
  float* get() const { return data_; }

 private:
  float *memory_, *data_;
};

void report(benchmark::State& state, double flops) {
  state.counters["GFLOP/s"] = benchmark::Counter(flops * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

// Values of alpha: gemm always calls OpenBLAS for scaled products.
constexpr float kOurs = 1.0f, kOpenBlas = 2.0f;

void product(benchmark::State& state, Trans ta, Trans tb, Index m, Index n, Index k, float alpha = kOurs) {
  const Values a(m * k), b(k * n), c(m * n);
  for (auto _ : state) {
    gemm(ta, tb, m, n, k, alpha, a.get(), ta == Trans::kYes ? m : k, b.get(), tb == Trans::kYes ? k : n, 0.0f, c.get(),
         n);
    benchmark::ClobberMemory();
  }
  report(state, 2.0 * static_cast<double>(m * n * k));
}

ConvGeometry square(Index batch, Index size, Index in_c, Index out_c, Index pad) {
  ConvGeometry g{.batch = batch, .in_h = size, .in_w = size, .in_c = in_c, .out_c = out_c, .k_h = 3, .k_w = 3};
  g.out_h = g.out_w = size - 2 + 2 * pad;
  g.pad_top = g.pad_left = pad;
  return g;
}

enum class ConvPass { kForward, kGradInput, kGradKernel };

void convolution(benchmark::State& state, ConvPass pass, ConvGeometry g) {
  const Values x(g.batch * g.in_h * g.in_w * g.in_c), w(9 * g.in_c * g.out_c), y(g.batch * g.out_h * g.out_w * g.out_c);
  const ConvLoops<float>& loops = dense_conv<float>();
  const std::size_t bytes = pass == ConvPass::kForward     ? loops.forward_scratch_bytes(g)
                            : pass == ConvPass::kGradInput ? loops.grad_input_scratch_bytes(g)
                                                           : loops.grad_kernel_scratch_bytes(g);
  const Values scratch(static_cast<Index>(bytes / sizeof(float)));
  for (auto _ : state) {
    if (pass == ConvPass::kForward) loops.forward(g, x.get(), w.get(), y.get(), scratch.get(), nullptr);
    if (pass == ConvPass::kGradInput) loops.grad_input(g, y.get(), w.get(), x.get(), scratch.get(), nullptr);
    if (pass == ConvPass::kGradKernel) loops.grad_kernel(g, x.get(), y.get(), w.get(), scratch.get());
    benchmark::ClobberMemory();
  }
  report(state, 2.0 * static_cast<double>(g.batch * g.out_h * g.out_w) * static_cast<double>(9 * g.in_c * g.out_c));
  state.counters["scratch MB"] = static_cast<double>(bytes) * 1e-6;
}

void pooling(benchmark::State& state, bool gradient) {
  PoolGeometry g{.batch = 128, .in_h = 24, .in_w = 24, .channels = 64, .out_h = 12, .out_w = 12, .k_h = 2, .k_w = 2};
  g.stride_h = g.stride_w = 2;
  const Index in = g.batch * g.in_h * g.in_w * g.channels;
  const Values x(in), dx(in), y(in / 4), dy(in / 4);
  max_pool(g, x.get(), y.get());
  for (auto _ : state) {
    if (gradient) max_pool_grad(g, x.get(), y.get(), dy.get(), dx.get());
    else max_pool(g, x.get(), y.get());
    benchmark::ClobberMemory();
  }
}

void add_convolution(const char* name, ConvPass pass, ConvGeometry g) {
  benchmark::RegisterBenchmark(name, convolution, pass, g)->Unit(benchmark::kMillisecond)->UseRealTime();
}

void add_product(const char* name, Trans ta, Trans tb, Index m, Index n, Index k) {
  benchmark::RegisterBenchmark(name, product, ta, tb, m, n, k, kOurs)->Unit(benchmark::kMicrosecond)->UseRealTime();
}

// Times one product with each instruction set of this processor, and by OpenBLAS. The environment variable
// OPENBLAS_CORETYPE selects OpenBLAS's instruction set: Haswell is AVX2, Nehalem SSE4.
void add_instruction_sets() {
  for (const InstructionSet& set : instruction_sets()) {
    const auto held = [set](benchmark::State& state) {
      use_instruction_set(set);
      product(state, Trans::kNo, Trans::kNo, 1024, 1024, 1024);
      use_best_instruction_set();
    };
    benchmark::RegisterBenchmark(("gemm/1024x1024x1024/" + set.name).c_str(), held)->UseRealTime();
  }
  const std::string name = "gemm/1024x1024x1024/" + loaded_blas().processor;
  benchmark::RegisterBenchmark(name.c_str(), product, Trans::kNo, Trans::kNo, 1024, 1024, 1024, kOpenBlas)
      ->UseRealTime();
}

void add_all() {
  constexpr Trans kNo = Trans::kNo, kYes = Trans::kYes;
  add_product("gemm/32x64x64", kNo, kNo, 32, 64, 64);
  add_product("gemm/32x10x64", kNo, kNo, 32, 10, 64);
  add_product("gemm/64x64x32/AtB", kYes, kNo, 64, 64, 32);
  add_product("gemm/32x64x64/ABt", kNo, kYes, 32, 64, 64);
  add_product("gemm/128x512x784", kNo, kNo, 128, 512, 784);
  add_product("gemm/784x512x128/AtB", kYes, kNo, 784, 512, 128);
  add_product("gemm/128x784x512/ABt", kNo, kYes, 128, 784, 512);
  add_product("gemm/128x128x9216", kNo, kNo, 128, 128, 9216);
  add_product("gemm/256x768x3200/AtB", kYes, kNo, 256, 768, 3200);
  add_product("gemm/64x768x3200/AtB", kYes, kNo, 64, 768, 3200);
  add_product("gemm/3200x768x64", kNo, kNo, 3200, 768, 64);
  add_product("gemm/128x512x2560/AtB", kYes, kNo, 128, 512, 2560);
  add_product("gemm/2560x128x512/ABt", kNo, kYes, 2560, 128, 512);
  add_product("gemm/2048x2048x32/AtB", kYes, kNo, 2048, 2048, 32);
  add_product("gemm/32x2048x2048", kNo, kNo, 32, 2048, 2048);
  add_product("gemm/32x2048x2048/ABt", kNo, kYes, 32, 2048, 2048);
  add_product("gemm/1024x1024x1024", kNo, kNo, 1024, 1024, 1024);
  add_instruction_sets();
  const ConvGeometry first = square(128, 28, 1, 32, 0), second = square(128, 26, 32, 64, 0);
  const ConvGeometry deep = square(32, 32, 64, 64, 1), wide = square(8, 16, 256, 256, 1);
  add_convolution("conv/28x28x1to32/forward", ConvPass::kForward, first);
  add_convolution("conv/28x28x1to32/grad_kernel", ConvPass::kGradKernel, first);
  add_convolution("conv/26x26x32to64/forward", ConvPass::kForward, second);
  add_convolution("conv/26x26x32to64/grad_input", ConvPass::kGradInput, second);
  add_convolution("conv/26x26x32to64/grad_kernel", ConvPass::kGradKernel, second);
  add_convolution("conv/32x32x64to64/forward", ConvPass::kForward, deep);
  add_convolution("conv/32x32x64to64/grad_input", ConvPass::kGradInput, deep);
  add_convolution("conv/32x32x64to64/grad_kernel", ConvPass::kGradKernel, deep);
  add_convolution("conv/16x16x256to256/forward", ConvPass::kForward, wide);
  add_convolution("conv/16x16x256to256/grad_kernel", ConvPass::kGradKernel, wide);
  benchmark::RegisterBenchmark("max_pool/24x24x64/forward", pooling, false)->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("max_pool/24x24x64/gradient", pooling, true)->Unit(benchmark::kMillisecond);
}

}  // namespace
}  // namespace syncline::kernels

int main(int argc, char** argv) {
  const char* threads = std::getenv("SYNCLINE_BENCH_THREADS");
  syncline::set_thread_count(threads ? std::atoi(threads) : 1);
  syncline::kernels::add_all();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
