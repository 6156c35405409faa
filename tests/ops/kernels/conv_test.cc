// Convolutions against plain loops in double, for geometries that reach each algorithm and its tails.
#include "ops/kernels/convolution/conv.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "ops/kernels/convolution/paths.h"
#include "ops/kernels/parallel.h"
#include "ops/kernels/part_tree.h"
#include "ops/kernels/product/gemm.h"
#include "syncline/error.h"
#include "tests/ops/kernels/random_values.h"

namespace syncline::kernels {
namespace {

using Index = std::int64_t;

struct Problem : ConvGeometry {
  bool depthwise = false;
};

template <class T>
const ConvLoops<T>& loops_of(const Problem& p) {
  return p.depthwise ? depthwise_conv<T>() : dense_conv<T>();
}

struct Sizes {
  std::size_t x, w, y;
  explicit Sizes(const Problem& g)
      : x(static_cast<std::size_t>(g.batch * g.in_d * g.in_h * g.in_w * g.in_c)),
        w(static_cast<std::size_t>(g.k_d * g.k_h * g.k_w * g.in_c * (g.depthwise ? 1 : g.out_c))),
        y(static_cast<std::size_t>(g.batch * g.out_d * g.out_h * g.out_w * g.out_c)) {}
};

// Calls visit(pixel of x, kernel position, pixel of y) for each kernel position that lies inside the image.
template <class Visit>
void for_taps(const Problem& g, const Visit& visit) {
  Index out = 0;
  for (Index n = 0; n < g.batch; ++n)
    for (Index d = 0; d < g.out_d; ++d)
      for (Index i = 0; i < g.out_h; ++i)
        for (Index j = 0; j < g.out_w; ++j, ++out)
          for (Index tap = 0; tap < g.k_d * g.k_h * g.k_w; ++tap) {
            const Index e = tap / (g.k_h * g.k_w), a = tap / g.k_w % g.k_h, b = tap % g.k_w;
            const Index z = d * g.stride_d + e * g.dilation_d - g.pad_front;
            const Index y = i * g.stride_h + a * g.dilation_h - g.pad_top;
            const Index x = j * g.stride_w + b * g.dilation_w - g.pad_left;
            if (z < 0 || z >= g.in_d || y < 0 || y >= g.in_h || x < 0 || x >= g.in_w) continue;
            visit(((n * g.in_d + z) * g.in_h + y) * g.in_w + x, tap, out);
          }
}

// Calls visit(x index, w index, y index) for each product of the convolution.
template <class Visit>
void for_products(const Problem& g, const Visit& visit) {
  for_taps(g, [&](Index x, Index tap, Index y) {
    for (Index c = 0; c < g.in_c; ++c) {
      if (g.depthwise) visit(x * g.in_c + c, tap * g.in_c + c, y * g.in_c + c);
      for (Index k = 0; !g.depthwise && k < g.out_c; ++k)
        visit(x * g.in_c + c, (tap * g.in_c + c) * g.out_c + k, y * g.out_c + k);
    }
  });
}

// Computes the output sizes from the pads on all four sides.
Problem geometry(Index batch, Index h, Index w, Index in_c, Index out_c, Index k_h, Index k_w, Index stride = 1,
                 Index dilation = 1, Index top = 0, Index left = 0, Index bottom = 0, Index right = 0) {
  Problem g{{.batch = batch, .in_h = h, .in_w = w, .in_c = in_c, .out_c = out_c, .k_h = k_h, .k_w = k_w}};
  g.stride_h = g.stride_w = stride;
  g.dilation_h = g.dilation_w = dilation;
  g.pad_top = top;
  g.pad_left = left;
  g.out_h = (h + top + bottom - (k_h - 1) * dilation - 1) / stride + 1;
  g.out_w = (w + left + right - (k_w - 1) * dilation - 1) / stride + 1;
  return g;
}

Problem depthwise(Problem p) {
  p.out_c = p.in_c;
  p.depthwise = true;
  return p;
}

Problem deep(Problem p, Index depth, Index k_d, Index stride = 1, Index dilation = 1, Index front = 0, Index back = 0) {
  p.in_d = depth;
  p.k_d = k_d;
  p.stride_d = stride;
  p.dilation_d = dilation;
  p.pad_front = front;
  p.out_d = (depth + front + back - (k_d - 1) * dilation - 1) / stride + 1;
  return p;
}

std::vector<Problem> geometries() {
  std::vector<Problem> all = {
      geometry(2, 7, 5, 3, 4, 3, 3),                         // lowered: few output channels
      geometry(1, 1, 1, 1, 1, 1, 1),                         // the smallest
      geometry(2, 6, 7, 5, 6, 2, 4, 1, 1, 0, 1, 1, 2),       // even kernels
      geometry(2, 9, 8, 6, 7, 3, 3, 2, 1, 1, 1, 1, 1),       // stride
      geometry(2, 11, 10, 6, 5, 3, 2, 1, 2, 2, 1, 2, 1),     // dilation
      geometry(1, 12, 13, 7, 5, 3, 3, 3, 2, 2, 2, 2, 2),     // stride and dilation
      geometry(3, 6, 6, 20, 24, 1, 1),                       // pointwise
      geometry(2, 9, 9, 20, 24, 1, 1, 2),                    // pointwise with stride
      geometry(8, 28, 28, 48, 64, 1, 1),                     // pointwise: partial sums
      geometry(4, 9, 9, 64, 40, 3, 3, 2, 1, 1, 1, 1, 1),     // dw: all patches at once; y and dx: several blocks
      geometry(60, 13, 13, 66, 8, 3, 3, 2),                  // dw (float): all patches at once, partial sums
      geometry(2, 4, 4, 5, 3, 5, 5, 1, 1, 3, 3, 3, 3),       // kernel larger than the image
      geometry(40, 9, 9, 18, 19, 2, 2),                      // several blocks and slots
      geometry(2, 9, 10, 1, 8, 3, 3),                        // direct: one channel
      geometry(2, 9, 30, 1, 37, 3, 3, 1, 1, 1, 1, 1, 1),     // direct: pads, tails of vectors and pixels
      geometry(2, 13, 12, 3, 21, 5, 5, 2, 1, 2, 2, 1, 1),    // direct: stride
      geometry(2, 13, 20, 4, 40, 3, 2, 1, 3, 3, 1, 2, 4),    // direct: dilation
      geometry(2, 2, 2, 2, 9, 4, 4, 1, 1, 2, 2, 2, 2),       // direct: no interior columns
      geometry(1, 5, 11, 3, 33, 3, 3, 2),                    // direct: interiors of 5, 6, 7 and 12 columns, stride
      geometry(1, 5, 13, 3, 33, 3, 3, 2),                    //
      geometry(1, 5, 15, 3, 33, 3, 3, 2),                    //
      geometry(1, 5, 25, 3, 33, 3, 3, 2),                    //
      geometry(30, 16, 16, 1, 32, 3, 3),                     // direct: several slots
      geometry(2, 10, 10, 16, 16, 3, 3),                     // Winograd: whole tiles
      geometry(2, 10, 11, 17, 33, 3, 3, 1, 1, 1, 1, 1, 1),   // Winograd: tails of tiles and channels
      geometry(3, 9, 14, 32, 20, 3, 3, 1, 1, 2, 2, 2, 2),    // Winograd: full pads
      geometry(3, 12, 9, 19, 32, 3, 3, 1, 1, 0, 2, 2, 0),    // Winograd: uneven pads
      geometry(90, 12, 12, 40, 48, 3, 3, 1, 1, 1, 1, 1, 1),  // Winograd: several slots of several blocks
      geometry(4, 12, 12, 16, 16, 3, 3, 1, 1, 4, 4, 4, 4),   // Winograd: pads larger than the kernel
      geometry(4, 9, 9, 80, 97, 3, 3, 1, 1, 1, 1, 1, 1),     // Winograd: a wide kernel
      geometry(2, 9, 9, 80, 97, 3, 3, 1, 1, 1, 1, 1, 1),     // Winograd: a wide kernel, few tiles
      deep(geometry(2, 6, 7, 3, 4, 3, 2), 5, 3),             // depth
      deep(geometry(2, 5, 5, 20, 24, 3, 3, 1, 1, 1, 1, 1, 1), 4, 3, 1, 1, 1, 1),  // depth: no Winograd
      deep(geometry(2, 5, 6, 2, 9, 2, 3, 2, 1, 1, 1, 1, 1), 7, 2, 3, 2, 1, 2),    // depth: direct, all steps
      deep(geometry(1, 5, 20, 2, 17, 3, 3, 2), 1, 2, 1, 3, 1, 2),                 // depth: direct, outputs of pads
      deep(geometry(12, 12, 12, 3, 16, 3, 3), 6, 3),                              // depth: direct, several slots
      deep(geometry(2, 4, 4, 1, 40, 3, 3, 1, 1, 1, 1, 1, 1), 1, 3, 1, 1, 1, 1),   // depth: direct, one plane
      deep(geometry(2, 6, 5, 9, 7, 3, 2, 1, 2, 2, 1, 1, 1), 4, 2, 1, 2, 1, 2),    // depth: dilation, dx a convolution
      deep(geometry(2, 4, 4, 5, 6, 1, 1), 3, 1),                                  // depth: pointwise
      depthwise(geometry(2, 7, 8, 5, 1, 3, 3)),                                   // depthwise: single lanes
      depthwise(geometry(2, 9, 20, 37, 1, 3, 3, 1, 1, 1, 1, 1, 1)),               // depthwise: pads, all tails
      depthwise(geometry(2, 9, 8, 16, 1, 2, 4, 2, 1, 0, 1, 1, 2)),                // depthwise: stride
      depthwise(geometry(2, 11, 10, 9, 1, 3, 2, 1, 3, 3, 1, 3, 2)),               // depthwise: dilation
      depthwise(geometry(1, 12, 13, 8, 1, 3, 5, 3, 2, 2, 4, 2, 4)),               // depthwise: both
      depthwise(geometry(2, 2, 2, 8, 1, 4, 4, 1, 1, 2, 2, 2, 2)),                 // depthwise: no interior
      depthwise(geometry(3, 5, 6, 9, 1, 1, 1, 1, 1, 2, 2, 1, 3)),                 // depthwise: pads beyond the kernel
      depthwise(geometry(30, 24, 24, 32, 1, 3, 3, 1, 1, 1, 1, 1, 1)),             // depthwise: several slots
      depthwise(geometry(2, 4, 4, 150, 1, 3, 3, 1, 1, 1, 1, 1, 1)),               // depthwise: groups of vectors
      depthwise(geometry(2, 9, 10, 70, 1, 5, 7, 1, 1, 2, 2, 3, 3)),               // depthwise: groups of taps, rests
  };
  Problem uneven = geometry(2, 10, 12, 5, 9, 3, 2);  // strides and dilations that differ by axis
  uneven.stride_w = 2;
  uneven.dilation_h = 2;
  uneven.out_h = (10 - 4 - 1) / 1 + 1;
  uneven.out_w = (12 - 1 - 1) / 2 + 1;
  all.push_back(uneven);
  return all;
}

// The geometry, for failure messages.
std::string name(const Problem& g) {
  return join_text(g.depthwise ? "depthwise x " : "x ", g.batch, "x", g.in_d, "x", g.in_h, "x", g.in_w, "x", g.in_c,
                   ", w ", g.k_d, "x", g.k_h, "x", g.k_w, "x", g.out_c, ", stride ", g.stride_h, ", dilation ",
                   g.dilation_h, ", pads ", g.pad_top, " ", g.pad_left);
}

template <class T>
struct Results {
  std::vector<T> y, dx, dw;
};

template <class T>
struct Case {
  std::vector<T> x, w, dy;
  explicit Case(const Problem& g)
      : x(random_values<T>(Sizes(g).x, 1)), w(random_values<T>(Sizes(g).w, 2)), dy(random_values<T>(Sizes(g).y, 3)) {}
};

template <class T>
Results<T> run(const Problem& g, const Case<T>& c, const ConvLoops<T>& loops) {
  const T poison = std::numeric_limits<T>::quiet_NaN();  // shows reads before writes, and missing writes
  const Sizes sizes(g);
  Results<T> r{std::vector<T>(sizes.y, poison), std::vector<T>(sizes.x, poison), std::vector<T>(sizes.w, poison)};
  GuardedScratch forward(loops.forward_scratch_bytes(g));
  loops.forward(g, c.x.data(), c.w.data(), r.y.data(), forward.data(), nullptr);
  GuardedScratch input(loops.grad_input_scratch_bytes(g));
  loops.grad_input(g, c.dy.data(), c.w.data(), r.dx.data(), input.data(), nullptr);
  GuardedScratch kernel(loops.grad_kernel_scratch_bytes(g));
  loops.grad_kernel(g, c.x.data(), c.dy.data(), r.dw.data(), kernel.data());
  EXPECT_TRUE(forward.intact() && input.intact() && kernel.intact()) << "scratch overrun: " << name(g);
  return r;
}

template <class T>
Results<T> run(const Problem& g, const Case<T>& c) {
  return run(g, c, loops_of<T>(g));
}

// Matrix products only.
ConvLoops<float> im2col_loops() {
  namespace im2col = conv::im2col;
  return {&im2col::forward_scratch_bytes<float>,     &im2col::forward<float>,
          &im2col::grad_input_scratch_bytes<float>,  &im2col::grad_input<float>,
          &im2col::grad_kernel_scratch_bytes<float>, &im2col::grad_kernel<float>};
}
Results<float> run_im2col(const Problem& g, const Case<float>& c) { return run(g, c, im2col_loops()); }

template <class T>
Results<double> expected(const Problem& g, const Case<T>& c) {
  const Sizes sizes(g);
  Results<double> r{std::vector<double>(sizes.y), std::vector<double>(sizes.x), std::vector<double>(sizes.w)};
  for_products(g, [&](Index x, Index w, Index y) {
    const double xv = c.x[static_cast<std::size_t>(x)], wv = c.w[static_cast<std::size_t>(w)];
    const double dyv = c.dy[static_cast<std::size_t>(y)];
    r.y[static_cast<std::size_t>(y)] += xv * wv;
    r.dx[static_cast<std::size_t>(x)] += dyv * wv;
    r.dw[static_cast<std::size_t>(w)] += xv * dyv;
  });
  return r;
}

template <class T>
void check(const Problem& g, const Case<T>& c, const Results<T>& got, double tolerance) {
  const Results<double> want = expected(g, c);
  EXPECT_LT(largest_error(got.y, want.y), tolerance) << "y of " << name(g);
  EXPECT_LT(largest_error(got.dx, want.dx), tolerance) << "dx of " << name(g);
  EXPECT_LT(largest_error(got.dw, want.dw), tolerance) << "dw of " << name(g);
}

template <class T>
void check_all(double tolerance) {
  for (const Problem& g : geometries()) {
    const Case<T> c(g);
    check(g, c, run(g, c), tolerance);
  }
}

TEST(Conv, FloatEqualsPlainLoops) { check_all<float>(1e-5); }

TEST(Conv, DoubleEqualsPlainLoops) { check_all<double>(1e-13); }

template <class T>
void check_epilogues(const Problem& g, const Case<T>& c, const ConvLoops<T>& loops) {
  const Results<T> want = run(g, c, loops);
  std::vector<T> y(want.y.size()), dx(want.dx.size());
  const CheckedEpilogue<T> of_y(want.y, y), of_dx(want.dx, dx);
  GuardedScratch forward(loops.forward_scratch_bytes(g)), input(loops.grad_input_scratch_bytes(g));
  loops.forward(g, c.x.data(), c.w.data(), y.data(), forward.data(), &of_y);
  loops.grad_input(g, c.dy.data(), c.w.data(), dx.data(), input.data(), &of_dx);
  EXPECT_TRUE(of_y.wrong() == 0 && of_dx.wrong() == 0) << name(g);
}

TEST(Conv, EpiloguesTakeFinalElementsOnce) {
  for (const int threads : {1, 2, 4}) {
    set_thread_count(threads);
    for (const Problem& g : geometries()) {
      const Case<float> c(g);
      check_epilogues(g, c, loops_of<float>(g));
      if (!g.depthwise) check_epilogues(g, c, im2col_loops());
      check_epilogues(g, Case<double>(g), loops_of<double>(g));
    }
  }
  set_thread_count(2);
}

TEST(Conv, FloatWithoutWinogradIsCloser) {
  for (const Problem& g : geometries()) {
    const Case<float> c(g);
    check(g, c, g.depthwise || conv::direct::fits(g) ? run(g, c) : run_im2col(g, c), 2e-6);
  }
}

TEST(Conv, EveryInstructionSetIsRight) {
  for_each_instruction_set([](const std::string& set) {
    SCOPED_TRACE(set);
    check_all<float>(1e-5);
  });
}

// So many tiles that the gradient of the kernel takes them in groups. The plain loops would take seconds.
TEST(Conv, WideKernelsByGroupsOfTilesEqualProducts) {
  const Problem g = geometry(5, 40, 40, 16, 460, 3, 3, 1, 1, 1, 1, 1, 1);
  const Case<float> c(g);
  const std::vector<float> grouped = run(g, c).dw;
  const std::vector<float> plain = run_im2col(g, c).dw;
  EXPECT_NE(grouped, plain);
  EXPECT_LT(largest_error(grouped, std::vector<double>(plain.begin(), plain.end())), 2e-5);  // of both
}

TEST(Conv, WinogradIsUsedAndItsErrorIsBounded) {
  const Problem g = geometry(4, 26, 26, 32, 64, 3, 3);
  const Case<float> c(g);
  const Results<double> want = expected(g, c);
  const Results<float> fast = run(g, c);
  const Results<float> plain = run_im2col(g, c);
  EXPECT_NE(fast.y, plain.y);
  EXPECT_NE(fast.dx, plain.dx);
  EXPECT_NE(fast.dw, plain.dw);
  EXPECT_LT(largest_error(fast.y, want.y), 1e-5);
  EXPECT_LT(largest_error(fast.dx, want.dx), 1e-5);
  EXPECT_LT(largest_error(fast.dw, want.dw), 1e-5);
}

TEST(Conv, BitsDoNotDependOnThreads) {
  for (const Problem& g : geometries()) {
    const Case<float> c(g);
    set_thread_count(1);
    const Results<float> one = run(g, c);
    for (int threads : {2, 3}) {
      set_thread_count(threads);
      const Results<float> many = run(g, c);
      EXPECT_EQ(one.y, many.y) << name(g);
      EXPECT_EQ(one.dx, many.dx) << name(g);
      EXPECT_EQ(one.dw, many.dw) << name(g);
    }
    set_thread_count(2);
  }
}

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

// The gradient of the kernel as the sum of the parts' gradients, each computed alone, along the tree.
template <class T>
std::vector<T> sum_of_parts(const Problem& g, const Case<T>& c, const std::vector<Index>& images) {
  const ConvLoops<T>& loops = loops_of<T>(g);
  const Index parts = static_cast<Index>(images.size()) - 1;
  std::vector<std::vector<T>> sums(at(sums_kept(parts)), std::vector<T>(Sizes(g).w));
  const auto compute = [&](Index part, Index place) {
    Problem own = g;
    own.batch = images[at(part + 1)] - images[at(part)];
    GuardedScratch scratch(loops.grad_kernel_scratch_bytes(own));
    const Index x = g.in_d * g.in_h * g.in_w * g.in_c, y = g.out_d * g.out_h * g.out_w * g.out_c;
    loops.grad_kernel(own, c.x.data() + images[at(part)] * x, c.dy.data() + images[at(part)] * y,
                      sums[at(place)].data(), scratch.data());
  };
  sum_parts(parts, compute, [&](Index to, Index from) {
    for (std::size_t i = 0; i < sums[0].size(); ++i) sums[at(to)][i] += sums[at(from)][i];
  });
  return sums[0];
}

// Returns whether the kernel supports the parts.
template <class T>
bool check_parts(Problem g, const std::vector<Index>& images) {
  g.batch = images.back();
  const ConvLoops<T>& loops = loops_of<T>(g);
  const std::optional<std::size_t> bytes = loops.parts_scratch_bytes(g, images);
  if (!bytes) return false;
  const Case<T> c(g);
  const std::vector<T> want = sum_of_parts(g, c, images);
  for (const int threads : {1, 3}) {
    set_thread_count(threads);
    GuardedScratch scratch(*bytes);
    std::vector<T> got(Sizes(g).w, std::numeric_limits<T>::quiet_NaN());
    loops.grad_kernel_by_parts(g, images, c.x.data(), c.dy.data(), got.data(), scratch.data());
    EXPECT_EQ(got, want) << name(g) << ", " << images.size() - 1 << " parts, " << threads << " threads";
    EXPECT_TRUE(scratch.intact()) << "scratch overrun: " << name(g);
  }
  set_thread_count(2);
  return true;
}

TEST(Conv, PartsAreAddedAlongATree) {
  const KeptRowBits no_blas;
  const Problem pointwise = geometry(20, 6, 6, 20, 24, 1, 1), strided = geometry(18, 9, 9, 64, 40, 3, 3, 2);
  const Problem winograd = geometry(16, 4, 4, 64, 70, 3, 3, 1, 1, 1, 1, 1, 1);
  const std::vector<Index> eight{0, 2, 5, 7, 10, 12, 15, 17, 20};
  EXPECT_TRUE(check_parts<float>(pointwise, eight));
  EXPECT_TRUE(check_parts<double>(pointwise, eight));
  EXPECT_TRUE(check_parts<float>(pointwise, {0, 0, 10, 10, 20}));
  EXPECT_TRUE(check_parts<float>(strided, {0, 4, 9, 13, 18}));
  EXPECT_TRUE(check_parts<double>(strided, {0, 4, 9, 13, 18}));
  EXPECT_TRUE(check_parts<float>(deep(geometry(8, 4, 4, 70, 6, 3, 3), 3, 2), {0, 3, 8}));
  EXPECT_TRUE(check_parts<float>(winograd, {0, 4, 8, 12, 16}));  // of all images at once, not of 4
}

TEST(Conv, PartsThatAreNotSupported) {
  const KeptRowBits no_blas;
  const Problem winograd = geometry(16, 8, 8, 64, 32, 3, 3, 1, 1, 1, 1, 1, 1);
  EXPECT_FALSE(check_parts<float>(winograd, {0, 4, 8, 12, 16}));                    // 16 tiles a part
  EXPECT_TRUE(check_parts<float>(winograd, {0, 3, 6, 9, 12}));                      // 12 tiles: too few for Winograd
  EXPECT_FALSE(check_parts<float>(winograd, {0, 3, 7, 9, 12}));                     // Winograd for one part
  EXPECT_FALSE(check_parts<float>(geometry(20, 6, 6, 3, 16, 1, 1), {0, 10, 20}));   // direct
  EXPECT_FALSE(check_parts<float>(geometry(12, 6, 6, 20, 24, 1, 1), {0, 11, 12}));  // 396 rows of a part
  EXPECT_TRUE(check_parts<float>(geometry(64, 4, 4, 20, 24, 1, 1), {0, 16, 32, 48, 64}));   // 1024 rows
  EXPECT_FALSE(check_parts<float>(geometry(65, 4, 4, 20, 24, 1, 1), {0, 16, 32, 48, 65}));  // 1040 rows
  EXPECT_FALSE(check_parts<float>(geometry(4, 9, 9, 18, 19, 2, 2), {0, 2, 4}));             // block by block
}

TEST(Conv, EmptyBatchGivesZeroKernelGradient) {
  for (Index channels : {1, 5, 16, 600}) {
    Problem g = geometry(1, 8, 8, channels, 16, 3, 3);
    g.batch = 0;
    g.of_all_ranks = 16;
    const Results<float> r = run(g, Case<float>(g));
    EXPECT_EQ(r.dw, std::vector<float>(Sizes(g).w, 0.0f)) << name(g);
  }
}

}  // namespace
}  // namespace syncline::kernels
