// A reduction whose operand a program computes has the bits of the reduction of the stored operand: for shapes whose
// tiles lie on both sides of every border, each reduction, dtype and number of threads.
#include <gtest/gtest.h>
#include <pthread.h>

#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "base/convert.h"
#include "ops/graph/op.h"
#include "ops/kernels/fused/fused.h"
#include "ops/kernels/instruction_sets.h"
#include "ops/kernels/parallel.h"
#include "ops/reduce/kernel.h"

namespace syncline::kernels {
namespace {

FusedNode node(const char* name, FusedOperands operands, Meta out) {
  return {find_op(name), std::make_shared<NoAttrs>(), operands, out};
}

template <class T>
std::vector<T> numbers(std::int64_t n, int seed) {
  std::mt19937 bits(static_cast<unsigned>(seed));
  std::uniform_real_distribution<double> between(-2, 2);
  std::vector<T> x(static_cast<std::size_t>(n));
  for (T& v : x) v = convert<T>(between(bits));
  if (std::is_floating_point_v<T> && n > 30000) x[20000] = std::numeric_limits<T>::quiet_NaN();  // behind a tile
  return x;
}

// A program over x and a row as long as x's last dimension. It stores x * row; x * row - x, x and x * row are reduced.
template <class T>
class Computed {
 public:
  Computed(DType dtype, const Shape& shape)
      : meta_{dtype, shape}, x_(numbers<T>(shape.size(), 1)), row_(numbers<T>(shape.back(), 2)) {
    program_ = fuse({.space = shape,
                     .inputs = {meta_, {dtype, {shape.back()}}},
                     .nodes = {node("mul", {~0, ~1}, meta_), node("sub", {0, ~0}, meta_)},
                     .outputs = {0, 1},
                     .overwrites = {-1, -1}});
    product_.resize(x_.size());
    difference_.resize(x_.size());
    const void* in[] = {x_.data(), row_.data()};
    void* out[] = {product_.data(), difference_.data()};
    run_fused(program_, in, out);
    program_.reduced = {{.output = 1}, {.input = 0}, {.output = 0, .stored = true}};
  }

  const FusedProgram& program() const { return program_; }

  // True if both ways give equal bits.
  bool reduces_alike(const char* op, const std::vector<int>& axes) const {
    const AxisMask mask = axis_mask(op, axes, meta_.shape.ndim());
    const Meta reduced{meta_.dtype, reduced_shape(meta_.shape, mask, false)};
    const ReduceLoops loops = reduce_loops(op, meta_.dtype);
    std::vector<std::byte> scratch(3 * reduce_scratch(loops, mask, meta_));
    const auto run = [&](std::vector<const void*> in, std::vector<void*> out, const FusedProgram* program) {
      std::vector<Meta> metas(out.size(), reduced);
      if (program != nullptr) metas[0] = meta_;
      KernelArgs k;
      k.in = in.data();
      k.out = out.data();
      k.in_meta = {&meta_, 1};
      k.out_meta = metas;
      k.scratch = scratch.data();
      reduce(loops, mask, k, program);
    };
    const auto elements = static_cast<std::size_t>(reduced.shape.size());
    std::vector<T> wanted(3 * elements, T(7)), got(3 * elements, T(8)), stored(x_.size(), T(9));
    run({difference_.data()}, {wanted.data()}, nullptr);
    run({x_.data()}, {wanted.data() + elements}, nullptr);
    run({product_.data()}, {wanted.data() + 2 * elements}, nullptr);
    run({x_.data(), row_.data()}, {stored.data(), got.data(), got.data() + elements, got.data() + 2 * elements},
        &program_);
    return std::memcmp(wanted.data(), got.data(), got.size() * sizeof(T)) == 0 &&
           std::memcmp(stored.data(), product_.data(), stored.size() * sizeof(T)) == 0;
  }

 private:
  Meta meta_;
  std::vector<T> x_, row_, product_, difference_;
  FusedProgram program_;
};

const std::vector<std::pair<Shape, std::vector<std::vector<int>>>> kCases{
    {{1, 1}, {{0}, {0, 1}}},
    {{7, 3}, {{0}, {1}, {0, 1}}},
    {{40, 10}, {{0}, {1}, {0, 1}}},
    {{300, 64}, {{0}, {1}, {0, 1}}},
    {{301, 65}, {{0}, {1}, {0, 1}}},
    {{20000, 5}, {{0}, {1}, {0, 1}}},
    {{9001, 31}, {{0}, {1}, {0, 1}}},
    {{70, 2047}, {{0}, {1}, {0, 1}}},
    {{3, 40000}, {{1}, {0, 1}}},
    {{20, 60000}, {{1}}},
    {{5, 33, 1025}, {{0, 1}, {1}, {2}, {0, 2}}},
    {{64, 17, 9}, {{0}, {1}, {2}, {0, 2}, {1, 2}, {0, 1, 2}}},
    {{2, 9, 100, 16}, {{0, 1, 2}, {1, 2}, {3}, {0, 2}}},
};

template <class T>
void check(DType dtype) {
  for (const auto& [shape, all_axes] : kCases) {
    const Computed<T> operand(dtype, shape);
    for (const std::vector<int>& axes : all_axes) {
      if (!takes_program(axis_mask("sum", axes, shape.ndim()), {dtype, shape})) continue;
      for (const char* op : {"sum", "prod", "max", "min"})
        EXPECT_TRUE(operand.reduces_alike(op, axes))
            << op << " of " << shape << " over " << axes.size() << " axes from " << axes[0];
    }
  }
}

class ReduceProgram : public testing::TestWithParam<int> {
 protected:
  ReduceProgram() { set_thread_count(GetParam()); }
  ~ReduceProgram() override { set_thread_count(1); }
};

TEST_P(ReduceProgram, GivesTheBitsOfAStoredOperand) {
  check<float>(DType::kFloat32);
  check<double>(DType::kFloat64);
  check<std::int32_t>(DType::kInt32);
}
INSTANTIATE_TEST_SUITE_P(Threads, ReduceProgram, testing::Values(1, 2, 4));

// Two elementwise operations and three reductions of 300 x 64 elements. Only x, the row and the product are in memory.
TEST(ReduceProgram, Work) {
  const Work work = work_of(Computed<float>(DType::kFloat32, {300, 64}).program());
  EXPECT_EQ(work.flops, 5.0 * 300 * 64);
  EXPECT_EQ(work.bytes, 4.0 * (2 * 300 * 64 + 64));
}

TEST(ReduceProgram, EachInstructionSet) {
  for (const InstructionSet& set : instruction_sets()) {
    use_instruction_set(set);
    SCOPED_TRACE(set.name);
    check<float>(DType::kFloat32);
  }
  use_best_instruction_set();
}

// Sums, products and extrema of rows, with zeros of both signs, have equal bits on every instruction set.
TEST(ReduceRows, BitsAreThoseOfEachInstructionSet) {
  const std::vector<InstructionSet> sets = instruction_sets();
  for (const std::int64_t length : {5, 16, 20, 31, 63, 64, 96, 100, 129, 1000}) {
    std::vector<float> x = numbers<float>(7 * length, 3);
    for (std::size_t i = 0; i < x.size(); ++i)
      if (i / static_cast<std::size_t>(length) < 4)
        x[i] = i % 16 / 4 == i / static_cast<std::size_t>(length) ? 0.f : -0.f;
    for (const char* op : {"sum", "prod", "max", "min"}) {
      std::vector<float> wanted;
      for (const InstructionSet& set : sets) {
        use_instruction_set(set);
        const ReduceLoops loops = reduce_loops(op, DType::kFloat32);
        std::vector<float> got(7);
        loops.start(got.data(), 7);
        for (std::size_t row = 0; row < 7; ++row)
          loops.columns(x.data() + row * static_cast<std::size_t>(length), length, 1, 1, &got[row], length);
        if (wanted.empty()) wanted = got;
        EXPECT_EQ(std::memcmp(wanted.data(), got.data(), 7 * sizeof(float)), 0)
            << op << " of " << length << ", " << set.name;
      }
    }
  }
  use_best_instruction_set();
}

// Programs that embed the library may start threads with little stack.
TEST(ReduceProgram, RunsOnASmallStack) {
  const Computed<double> operand(DType::kFloat64, {9001, 31});
  pthread_attr_t small;
  ASSERT_EQ(pthread_attr_init(&small), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&small, std::size_t{512} << 10), 0);
  pthread_t thread;
  const auto run = [](void* x) -> void* {
    EXPECT_TRUE(static_cast<const Computed<double>*>(x)->reduces_alike("sum", {0}));
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &small, run, const_cast<Computed<double>*>(&operand)), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&small);
}

TEST(ReduceProgram, NeedsColumnsOfOneThread) {
  EXPECT_TRUE(takes_program(axis_mask("sum", {0}, 2), {DType::kFloat32, {100, 2047}}));
  EXPECT_FALSE(takes_program(axis_mask("sum", {0}, 2), {DType::kFloat32, {100, 2048}}));
  EXPECT_TRUE(takes_program(axis_mask("sum", {1}, 2), {DType::kFloat32, {5000, 4}}));
  EXPECT_FALSE(takes_program(axis_mask("sum", {1}, 3), {DType::kFloat32, {5000, 1, 4}}));
  EXPECT_FALSE(takes_program(axis_mask("sum", {0, 2}, 3), {DType::kFloat32, {32, 512, 49}}));
  EXPECT_TRUE(takes_program(axis_mask("sum", {0, 2}, 3), {DType::kFloat32, {32, 64, 3136}}));
}

}  // namespace
}  // namespace syncline::kernels
