// Pooling and its gradients against plain loops.
#include "ops/kernels/convolution/pool.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "ops/kernels/parallel.h"
#include "tests/ops/kernels/random_values.h"

namespace syncline::kernels {
namespace {

using Index = std::int64_t;

PoolGeometry geometry(Index batch, Index h, Index w, Index channels, Index k_h, Index k_w, Index stride_h,
                      Index stride_w, Index top = 0, Index left = 0, Index bottom = 0, Index right = 0) {
  PoolGeometry g{.batch = batch, .in_h = h, .in_w = w, .channels = channels, .k_h = k_h, .k_w = k_w};
  g.stride_h = stride_h;
  g.stride_w = stride_w;
  g.pad_top = top;
  g.pad_left = left;
  g.out_h = (h + top + bottom - k_h) / stride_h + 1;
  g.out_w = (w + left + right - k_w) / stride_w + 1;
  return g;
}

PoolGeometry deep(PoolGeometry g, Index depth, Index k_d, Index stride, Index front = 0, Index back = 0) {
  g.in_d = depth;
  g.k_d = k_d;
  g.stride_d = stride;
  g.pad_front = front;
  g.out_d = (depth + front + back - k_d) / stride + 1;
  return g;
}

const std::vector<PoolGeometry> kGeometries = {
    geometry(2, 6, 8, 5, 2, 2, 2, 2),               // quads, channels in single lanes
    geometry(3, 8, 6, 37, 2, 2, 2, 2),              // quads, both kinds of channels
    geometry(40, 24, 24, 64, 2, 2, 2, 2),           // quads, several chunks
    geometry(2, 7, 9, 16, 2, 2, 2, 2),              // an odd row and column belong to no window
    geometry(2, 7, 9, 17, 3, 3, 2, 2, 1, 1, 1, 1),  // overlap and pads
    geometry(2, 5, 5, 3, 3, 2, 1, 1, 2, 1, 2, 0),   // every window overlaps
    geometry(1, 9, 9, 4, 2, 2, 3, 4),               // gaps between windows
    geometry(1, 1, 1, 1, 1, 1, 1, 1),
    geometry(1, 40, 40, 64, 3, 3, 2, 2, 1, 1, 1, 1),           // one image, several chunks of lines
    deep(geometry(2, 6, 4, 17, 2, 2, 2, 2), 5, 2, 2),          // depth
    deep(geometry(3, 5, 4, 3, 3, 2, 1, 2, 1), 4, 3, 1, 1, 1),  // depth: overlap and pads
    deep(geometry(2, 6, 4, 5, 2, 2, 2, 2), 3, 1, 1),           // depth: planes of quads
};

std::size_t in_size(const PoolGeometry& g) {
  return static_cast<std::size_t>(g.batch * g.in_d * g.in_h * g.in_w * g.channels);
}
std::size_t out_size(const PoolGeometry& g) {
  return static_cast<std::size_t>(g.batch * g.out_d * g.out_h * g.out_w * g.channels);
}

// Calls visit(out, cells) with the indices of each window's cells inside the image.
template <class Visit>
void for_windows(const PoolGeometry& g, const Visit& visit) {
  std::size_t out = 0;
  for (Index n = 0; n < g.batch; ++n)
    for (Index d = 0; d < g.out_d; ++d)
      for (Index i = 0; i < g.out_h; ++i)
        for (Index j = 0; j < g.out_w; ++j)
          for (Index c = 0; c < g.channels; ++c) {
            std::vector<std::size_t> cells;
            for (Index tap = 0; tap < g.k_d * g.k_h * g.k_w; ++tap) {
              const Index z = d * g.stride_d + tap / (g.k_h * g.k_w) - g.pad_front;
              const Index y = i * g.stride_h + tap / g.k_w % g.k_h - g.pad_top;
              const Index x = j * g.stride_w + tap % g.k_w - g.pad_left;
              if (z < 0 || z >= g.in_d || y < 0 || y >= g.in_h || x < 0 || x >= g.in_w) continue;
              const Index pixel = ((n * g.in_d + z) * g.in_h + y) * g.in_w + x;
              cells.push_back(static_cast<std::size_t>(pixel * g.channels + c));
            }
            visit(out++, cells);
          }
}

template <class T>
void check_max(const PoolGeometry& g, const std::vector<T>& x) {
  const auto dy = random_values<T>(out_size(g), 5);
  std::vector<T> y(out_size(g), -77), dx(in_size(g), -77), want_y(out_size(g)), want_dx(in_size(g));
  for_windows(g, [&](std::size_t out, const std::vector<std::size_t>& cells) {
    std::size_t best = cells.front();
    for (std::size_t cell : cells) best = x[cell] > x[best] ? cell : best;
    want_y[out] = x[best];
    want_dx[best] += dy[out];
  });
  max_pool(g, x.data(), y.data());
  max_pool_grad(g, x.data(), y.data(), dy.data(), dx.data());
  EXPECT_EQ(y, want_y);
  EXPECT_EQ(dx, want_dx);
}

template <class T>
void check_average(const PoolGeometry& g, double tolerance) {
  const auto x = random_values<T>(in_size(g), 6), dy = random_values<T>(out_size(g), 7);
  std::vector<T> y(out_size(g), -77), dx(in_size(g), -77);
  std::vector<double> want_y(out_size(g)), want_dx(in_size(g));
  for_windows(g, [&](std::size_t out, const std::vector<std::size_t>& cells) {
    for (std::size_t cell : cells) {
      want_y[out] += static_cast<double>(x[cell]) / static_cast<double>(cells.size());
      want_dx[cell] += static_cast<double>(dy[out]) / static_cast<double>(cells.size());
    }
  });
  average_pool(g, x.data(), y.data());
  average_pool_grad(g, dy.data(), dx.data());
  EXPECT_LT(largest_error(y, want_y), tolerance);
  EXPECT_LT(largest_error(dx, want_dx), tolerance);
}

TEST(Pool, MaxEqualsPlainLoops) {
  for (const PoolGeometry& g : kGeometries) {
    check_max(g, random_values<float>(in_size(g), 4));
    check_max(g, random_values<double>(in_size(g), 4));
  }
}

TEST(Pool, GradientOfTiesGoesToTheFirst) {
  for (const PoolGeometry& g : kGeometries) {
    auto x = random_values<float>(in_size(g), 4);
    for (float& value : x) value = value > 0 ? 1.0f : 0.0f;
    check_max(g, x);
  }
}

TEST(Pool, AverageDividesByRealCells) {
  for (const PoolGeometry& g : kGeometries) {
    check_average<float>(g, 1e-6);
    check_average<double>(g, 1e-15);
  }
}

TEST(Pool, EveryInstructionSetIsRight) {
  for_each_instruction_set([](const std::string& name) {
    SCOPED_TRACE(name);
    for (const PoolGeometry& g : kGeometries) {
      check_max(g, random_values<float>(in_size(g), 4));
      check_max(g, random_values<double>(in_size(g), 4));
      check_average<float>(g, 1e-6);
    }
  });
}

TEST(Pool, BitsDoNotDependOnThreads) {
  for (const PoolGeometry& g : kGeometries) {
    const auto x = random_values<float>(in_size(g), 8), dy = random_values<float>(out_size(g), 9);
    std::vector<std::vector<float>> results;
    for (int threads : {1, 2}) {
      set_thread_count(threads);
      std::vector<float> y(out_size(g)), dx(in_size(g)), mean(out_size(g)), mean_dx(in_size(g));
      max_pool(g, x.data(), y.data());
      max_pool_grad(g, x.data(), y.data(), dy.data(), dx.data());
      average_pool(g, x.data(), mean.data());
      average_pool_grad(g, dy.data(), mean_dx.data());
      for (auto* part : {&dx, &mean, &mean_dx}) y.insert(y.end(), part->begin(), part->end());
      results.push_back(y);
    }
    EXPECT_EQ(results[0], results[1]);
  }
}

}  // namespace
}  // namespace syncline::kernels
