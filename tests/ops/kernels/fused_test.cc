// Strided views of larger operands and parts of larger outputs, for rows of many lengths: blocks that lie within a row
// are read and written in place, others are copied.
#include "ops/kernels/fused/fused.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "ops/graph/op.h"
#include "ops/kernels/parallel.h"

namespace syncline::kernels {
namespace {

constexpr std::int64_t kColumns[] = {2, 7, 64, 100, 128, 129, 256, 1021, 1024, 1500, 2042, 4096};

std::vector<float> numbers(std::int64_t n, float first) {
  std::vector<float> x(static_cast<std::size_t>(n));
  std::iota(x.begin(), x.end(), first);
  return x;
}

FusedNode node(const char* name, FusedOperands operands, Meta out) {
  return {find_op(name), std::make_shared<NoAttrs>(), operands, out};
}

// a, b, c are the thirds of the columns of x; bias is a row. The outputs are (a + bias, a + bias - b, c * 2) side by
// side, (c * 2, a + bias) side by side, and c * 2.
void check_thirds(std::int64_t rows, std::int64_t columns) {
  const Meta part{DType::kFloat32, {rows, columns}};
  const std::vector<float> x = numbers(rows * columns * 3, 1), bias = numbers(columns, 5), two{2};
  FusedSpec spec{.space = part.shape,
                 .inputs = {part, part, part, {DType::kFloat32, {columns}}, {DType::kFloat32, {}}},
                 .nodes = {node("add", {~0, ~3}, part), node("sub", {0, ~1}, part), node("mul", {~2, ~4}, part)},
                 .outputs = {-1, -1, 2},
                 .overwrites = {-1, -1, -1}};
  for (std::int64_t i = 0; i < 3; ++i) spec.strided_views.push_back({i * columns, {3 * columns, 1}});
  spec.strided_views.resize(5);
  for (int i = 0; i < 3; ++i) spec.parts.push_back({i, 0, {i * columns, {3 * columns, 1}}});
  spec.parts.push_back({2, 1, {0, {2 * columns, 1}}});
  spec.parts.push_back({0, 1, {columns, {2 * columns, 1}}});

  std::vector<float> first(x.size()), second(static_cast<std::size_t>(rows * columns * 2)),
      third(static_cast<std::size_t>(rows * columns));
  const void* in[] = {x.data(), x.data(), x.data(), bias.data(), two.data()};
  void* out[] = {first.data(), second.data(), third.data()};
  run_fused(fuse(spec), in, out);
  std::int64_t wrong = 0;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) {
      const float* at = x.data() + r * 3 * columns + c;
      const float a = at[0] + bias[static_cast<std::size_t>(c)], b = at[columns], doubled = 2 * at[2 * columns];
      const float* y = first.data() + r * 3 * columns + c;
      const float* z = second.data() + r * 2 * columns + c;
      wrong += y[0] != a || y[columns] != a - b || y[2 * columns] != doubled;
      wrong += z[0] != doubled || z[columns] != a || third[static_cast<std::size_t>(r * columns + c)] != doubled;
    }
  EXPECT_EQ(wrong, 0) << rows << " rows of " << columns;
  const Work work = work_of(fuse(spec));
  EXPECT_EQ(work.flops, 3.0 * static_cast<double>(rows * columns));
  EXPECT_EQ(work.bytes, 4.0 * static_cast<double>(9 * rows * columns + columns + 1));  // three thirds in, six out
}

TEST(Fused, WindowsAndParts) {
  for (const std::int64_t columns : kColumns)
    for (const std::int64_t rows : {1, 2, 33}) check_thirds(rows, columns);
}

TEST(Fused, WindowsAndPartsOfManyBlocksOnTwoThreads) {
  set_thread_count(2);
  for (const std::int64_t columns : {256, 300, 2048}) check_thirds(3000, columns);
  set_thread_count(1);
}

// Elements 3, 4, 5, ...
class Counting : public BlockSource {
 public:
  void read(std::int64_t begin, std::int64_t count, void* to) const override {
    std::iota(static_cast<float*>(to), static_cast<float*>(to) + count, static_cast<float>(begin + 3));
  }
};

// (x - y) * bias, where y is computed. The program also expands operands.
TEST(Fused, AnOperandThatIsComputedByBlocks) {
  for (const std::int64_t columns : {1, 7, 1024, 1500})
    for (const std::int64_t rows : {1, 4, 3000}) {
      const Meta all{DType::kFloat32, {rows, columns}};
      FusedProgram program = fuse({.space = all.shape,
                                   .inputs = {all, all, {DType::kFloat32, {columns}}},
                                   .nodes = {node("sub", {~0, ~1}, all), node("mul", {0, ~2}, all)},
                                   .outputs = {1},
                                   .overwrites = {-1}});
      compute_by_blocks(program, 1, 3);
      EXPECT_EQ(work_of(program).flops, 4.0 * static_cast<double>(rows * columns));
      const Counting counting;
      std::vector<float> x(static_cast<std::size_t>(rows * columns), 2), y(x.size());
      const std::vector<float> bias = numbers(columns, 5);
      const void* in[] = {x.data(), static_cast<const BlockSource*>(&counting), bias.data()};
      void* out[] = {y.data()};
      for (const int threads : {1, 2}) {
        set_thread_count(threads);
        run_fused(program, in, out);
        std::int64_t wrong = 0;
        for (std::size_t i = 0; i < y.size(); ++i)
          wrong += y[i] != (2 - static_cast<float>(i + 3)) * bias[i % static_cast<std::size_t>(columns)];
        EXPECT_EQ(wrong, 0) << rows << " rows of " << columns << " on " << threads << " threads";
      }
      set_thread_count(1);
    }
}

// (x - bias) * two, in place, a range at a time.
TEST(Fused, SomeElementsAlone) {
  constexpr std::int64_t kSize = 5000;
  const Meta all{DType::kFloat32, {kSize}};
  const FusedSpec spec{.space = all.shape,
                       .inputs = {all, all, {DType::kFloat32, {}}},
                       .nodes = {node("sub", {~0, ~1}, all), node("mul", {0, ~2}, all)},
                       .outputs = {1},
                       .overwrites = {0}};
  const FusedProgram program = fuse(spec);
  ASSERT_TRUE(by_element(program));
  const std::vector<float> bias = numbers(kSize, 5), two{2};
  for (const int threads : {1, 2}) {
    set_thread_count(threads);
    std::vector<float> x(kSize);
    for (std::int64_t i = 0; i < kSize; ++i) x[static_cast<std::size_t>(i)] = static_cast<float>(i % 77);
    const std::vector<float> before = x;
    const void* in[] = {x.data(), bias.data(), two.data()};
    void* out[] = {x.data()};
    std::int64_t begin = 0;
    for (const std::int64_t end : {0, 1, 1030, 1031, 3100, 4900}) {
      run_fused(program, in, out, begin, end);
      begin = end;
    }
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(x[i], i < 4900 ? (before[i] - bias[i]) * 2 : before[i]) << i << ", " << threads << " threads";
  }
  set_thread_count(1);
}

TEST(Fused, RowsAreNotByElement) {
  const Meta rows{DType::kFloat32, {30, 40}};
  const FusedSpec spec{.space = rows.shape,
                       .inputs = {rows, {DType::kFloat32, {40}}},
                       .nodes = {node("add", {~0, ~1}, rows)},
                       .outputs = {0},
                       .overwrites = {}};
  EXPECT_FALSE(by_element(fuse(spec)));
}

// Operands of one element a row: first and second operand of a chain, alone and behind others, beside a bias. They are
// numbers in memory where blocks lie within rows, unless a node that is no link of a chain reads them too
// (`expanded`: a maximum of two such operands).
void check_row_numbers(std::int64_t rows, std::int64_t columns, bool expanded) {
  const Meta all{DType::kFloat32, {rows, columns}}, row{DType::kFloat32, {rows, 1}};
  const std::vector<float> x = numbers(rows * columns, 1), a = numbers(rows, 3), b = numbers(rows, -7),
                           bias = numbers(columns, 5);
  FusedSpec spec{.space = all.shape,
                 .inputs = {all, row, row, {DType::kFloat32, {columns}}},
                 .nodes = {node("sub", {~1, ~0}, all), node("mul", {0, ~2}, all), node("add", {1, ~3}, all),
                           node("sub", {~0, ~2}, all)},
                 .outputs = {2, 3},
                 .overwrites = {}};
  if (expanded) {
    spec.nodes.insert(spec.nodes.end(), {node("maximum", {~1, ~2}, all), node("add", {4, ~0}, all)});
    spec.outputs.push_back(5);
  }
  const FusedProgram program = fuse(spec);
  const bool within_rows = columns % program.block == 0 && rows > 1;
  for (const int i : {1, 2}) EXPECT_EQ(program.inputs[i].buffer < 0, within_rows && !expanded) << columns << ", " << i;
  std::vector<std::vector<float>> y(3, std::vector<float>(x.size()));
  const void* in[] = {x.data(), a.data(), b.data(), bias.data()};
  void* out[] = {y[0].data(), y[1].data(), y[2].data()};
  const std::int64_t size = rows * columns;
  std::int64_t begin = 0;
  for (const std::int64_t end : {std::int64_t{1}, columns - 1, columns + 1, size / 2 + 1, size}) {
    run_fused(program, in, out, begin, std::max(begin, end));
    begin = std::max(begin, end);
  }
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t r = i / static_cast<std::size_t>(columns), c = i % static_cast<std::size_t>(columns);
    wrong += y[0][i] != (a[r] - x[i]) * b[r] + bias[c] || y[1][i] != x[i] - b[r] ||
             (expanded && y[2][i] != std::max(a[r], b[r]) + x[i]);
  }
  EXPECT_EQ(wrong, 0) << rows << " rows of " << columns;
}

TEST(Fused, OneElementARow) {
  for (const int threads : {1, 2}) {
    set_thread_count(threads);
    for (const std::int64_t columns : kColumns) {
      for (const bool expanded : {false, true}) {
        check_row_numbers(3, columns, expanded);
        check_row_numbers(70, columns, expanded);
      }
    }
  }
  set_thread_count(1);
}

// (x - a) * x, where an operand of {5, 7, 1} has one element for each of the rows.
template <class T>
void check_planes(std::int64_t columns) {
  const Meta all{dtype_of<T>(), {5, 7, columns}}, rows{dtype_of<T>(), {5, 7, 1}};
  const FusedSpec spec{.space = all.shape,
                       .inputs = {all, rows},
                       .nodes = {node("sub", {~0, ~1}, all), node("mul", {0, ~0}, all)},
                       .outputs = {1},
                       .overwrites = {}};
  const FusedProgram program = fuse(spec);
  EXPECT_EQ(program.inputs[1].buffer, -1) << columns;
  EXPECT_TRUE(is_read_in_place(rows, all.shape)) << columns;
  std::vector<T> x(static_cast<std::size_t>(35 * columns)), a(35), y(x.size());
  std::iota(x.begin(), x.end(), T(1));
  std::iota(a.begin(), a.end(), T(9));
  const void* in[] = {x.data(), a.data()};
  void* out[] = {y.data()};
  run_fused(program, in, out);
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < x.size(); ++i) wrong += y[i] != (x[i] - a[i / static_cast<std::size_t>(columns)]) * x[i];
  EXPECT_EQ(wrong, 0) << columns;
}

TEST(Fused, OneElementARowOfPlanesAndOfFloat64) {
  for (const std::int64_t columns : {128, 1000, 3000}) {
    check_planes<float>(columns);
    check_planes<double>(columns);
  }
}

TEST(Fused, RowsOfOneNumberNeedNoBuffer) {
  const Meta all{DType::kFloat32, {9, 1000}};
  const FusedSpec spec{.space = all.shape,
                       .inputs = {all, {DType::kFloat32, {9, 1}}},
                       .nodes = {node("mul", {~0, ~1}, all)},
                       .outputs = {0},
                       .overwrites = {}};
  const FusedProgram program = fuse(spec);
  EXPECT_EQ(program.block, 1000);
  EXPECT_EQ(program.inputs[1].buffer, -1);
}

// Rows decide about the block if that lets chains read an operand in place, not beside a view that would need copies
// then.
TEST(Fused, BlocksOfRowsOnlyWhereTheyHelp) {
  auto block_of = [](const char* op, Shape space, Shape rows, StridedView view) {
    const Meta all{DType::kFloat32, space};
    const Meta out{op[0] == 'g' ? DType::kBool : DType::kFloat32, space};
    return fuse({.space = space,
                 .inputs = {all, {DType::kFloat32, rows}},
                 .strided_views = {view, {}},
                 .nodes = {node(op, {~0, ~1}, out)},
                 .outputs = {0},
                 .overwrites = {}})
        .block;
  };
  constexpr std::int64_t kLongest = kFusedBlockBytes / 4;
  EXPECT_EQ(block_of("mul", {9, 600}, {9, 1}, {}), 600);
  EXPECT_EQ(block_of("greater", {9, 600}, {9, 1}, {}), kLongest);  // no chain reads it
  EXPECT_EQ(block_of("mul", {9, 60}, {9, 1}, {}), kLongest);       // short rows
  EXPECT_EQ(block_of("mul", {9, 1031}, {9, 1}, {}), kLongest);     // no block divides them
  // Rows of 4 beside a view of 300 of each 500 of these rows.
  EXPECT_EQ(block_of("mul", {9, 300, 4}, {9, 300, 1}, {.offset = 0, .strides = {2000, 4, 1}}), 600);
}

// A strided view of three dimensions, whose step from row to row is not constant.
TEST(Fused, WindowOfThreeDimensions) {
  constexpr std::int64_t kPlanes = 3, kRows = 5;
  for (const std::int64_t columns : kColumns) {
    const Meta whole{DType::kFloat32, {kPlanes, kRows, columns}};
    const std::vector<float> x = numbers(kPlanes * 8 * 2 * columns, 0);
    FusedSpec spec{
        .space = whole.shape, .inputs = {whole}, .nodes = {node("neg", {~0}, whole)}, .outputs = {0}, .overwrites = {}};
    const std::int64_t row = 2 * columns, plane = 8 * row;
    spec.strided_views.push_back({plane / 4, {plane, row, 1}});
    std::vector<float> y(static_cast<std::size_t>(whole.shape.size()));
    const void* in[] = {x.data()};
    void* out[] = {y.data()};
    run_fused(fuse(spec), in, out);
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < whole.shape.size(); ++i) {
      const std::int64_t at = plane / 4 + i / (kRows * columns) * plane + i / columns % kRows * row + i % columns;
      wrong += y[static_cast<std::size_t>(i)] != -x[static_cast<std::size_t>(at)];
    }
    EXPECT_EQ(wrong, 0) << columns;
  }
}

}  // namespace
}  // namespace syncline::kernels
