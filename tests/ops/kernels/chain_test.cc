// A chain of ops computes the same bits as its ops one by one.
#include "ops/kernels/fused/chain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "ops/graph/op.h"
#include "ops/kernels/fused/find_chains.h"
#include "ops/kernels/fused/fused.h"
#include "ops/kernels/instruction_sets.h"
#include "syncline/array.h"

namespace syncline::kernels {
namespace {

constexpr const char* kBinary[] = {"add",          "sub", "mul", "div", "maximum", "minimum", "sigmoid_gradient",
                                   "tanh_gradient"};
constexpr const char* kComparisons[] = {"less", "less_equal", "greater", "greater_equal"};
constexpr const char* kUnary[] = {"neg", "square", "sqrt", "relu", "sigmoid", "tanh"};

struct Op {
  std::string name;
  std::vector<int> operands;  // as in FusedNode
};

// Normally distributed values with special ones among them. n = 0: a scalar that is not special.
Array make_values(DType dtype, std::int64_t n, unsigned seed) {
  Array values(dtype, n == 0 ? Shape{} : Shape{n});
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  const double inf = std::numeric_limits<double>::infinity();
  const double special[] = {0.0, -0.0, inf, -inf, std::numeric_limits<double>::quiet_NaN(), 1e30, 1e-30, 100.0};
  auto fill = [&]<class T>(T* x) {
    for (std::int64_t i = 0; i < values.size(); ++i)
      x[i] = static_cast<T>(random() % 16 == 0 && n > 0 ? special[random() % 8] : normal(random));
  };
  if (dtype == DType::kFloat32) fill(values.data<float>());
  else fill(values.data<double>());
  return values;
}

FusedSpec make_spec(const std::vector<Array>& inputs, const std::vector<Op>& ops, std::vector<int> outputs) {
  FusedSpec spec;
  spec.space = inputs[0].shape();
  for (const Array& input : inputs) spec.inputs.push_back({input.dtype(), input.shape()});
  for (const Op& op : ops) {
    const OpDef* def = find_op(op.name);
    if (def == nullptr) throw std::runtime_error("no op " + op.name);
    const DType dtype = gives_mask(op.name) ? DType::kBool : inputs[0].dtype();
    FusedNode& node = spec.nodes.emplace_back(FusedNode{def, std::make_shared<NoAttrs>(), {}, {dtype, spec.space}});
    for (const int operand : op.operands) node.operands.push_back(operand);
  }
  spec.outputs = std::move(outputs);
  return spec;
}

std::vector<Array> run(const FusedSpec& spec, const std::vector<Array>& inputs) {
  std::vector<Array> results;
  std::vector<const void*> in;
  std::vector<void*> out;
  for (const Array& input : inputs) in.push_back(input.raw());
  for (std::size_t i = 0; i < spec.outputs.size(); ++i)
    results.emplace_back(spec.nodes[static_cast<std::size_t>(spec.outputs[i])].out.dtype, spec.space);
  for (Array& result : results) out.push_back(result.raw());
  run_fused(fuse(spec), in.data(), out.data());
  return results;
}

// Runs each op as its own program.
std::vector<Array> run_one_by_one(const std::vector<Array>& inputs, const std::vector<Op>& ops) {
  std::vector<Array> values;
  for (const Op& op : ops) {
    std::vector<Array> operands{inputs[0]};  // determines the space
    Op alone{op.name, {}};
    for (const int operand : op.operands) {
      alone.operands.push_back(~static_cast<int>(operands.size()));
      operands.push_back(operand >= 0 ? values[static_cast<std::size_t>(operand)]
                                      : inputs[static_cast<std::size_t>(~operand)]);
    }
    values.push_back(run(make_spec(operands, {alone}, {0}), operands)[0]);
  }
  return values;
}

template <class T>
std::int64_t count_differences(const T* x, const T* y, std::int64_t n) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < n; ++i)
    count += std::memcmp(x + i, y + i, sizeof(T)) != 0 && !(x[i] != x[i] && y[i] != y[i]);
  return count;
}

std::int64_t differences(const Array& x, const Array& y) {
  if (x.dtype() == DType::kBool) return count_differences(x.data<bool>(), y.data<bool>(), x.size());
  if (x.dtype() == DType::kFloat32) return count_differences(x.data<float>(), y.data<float>(), x.size());
  return count_differences(x.data<double>(), y.data<double>(), x.size());
}

std::size_t chains_of(FusedSpec spec) {
  std::vector<bool> numbers;
  for (const Meta& input : spec.inputs) numbers.push_back(input.shape.size() == 1 && spec.space.size() > 1);
  return order_by_chains(spec, numbers).size();
}

// Inputs 0, 1, 2: vectors of n elements; 3, 4: scalars.
std::vector<Array> make_inputs(DType dtype, std::int64_t n) {
  std::vector<Array> inputs;
  for (unsigned i = 0; i < 3; ++i) inputs.push_back(make_values(dtype, n, 7 + i));
  for (unsigned i = 3; i < 5; ++i) inputs.push_back(make_values(dtype, 0, 7 + i));
  return inputs;
}

std::vector<Op> first_ops() {
  std::vector<Op> ops;
  for (const char* name : kUnary) ops.push_back({name, {~0}});
  for (const char* name : kBinary)
    for (const auto& operands : std::vector<std::vector<int>>{{~0, ~1}, {~0, ~3}, {~3, ~0}, {~0, ~0}})
      ops.push_back({name, operands});
  return ops;
}

std::vector<Op> second_ops() {
  std::vector<Op> ops;
  for (const char* name : kUnary) ops.push_back({name, {0}});
  for (const char* name : kBinary)
    for (const auto& operands : std::vector<std::vector<int>>{{0, ~2}, {~2, 0}, {0, ~4}, {~4, 0}, {0, 0}, {0, ~0}})
      ops.push_back({name, operands});
  return ops;
}

void check_all_pairs(DType dtype, std::int64_t n) {
  const std::vector<Array> inputs = make_inputs(dtype, n);
  for (const Op& first : first_ops()) {
    const Array value = run_one_by_one(inputs, {first})[0];
    for (const Op& second : second_ops()) {
      const FusedSpec spec = make_spec(inputs, {first, second}, {1});
      EXPECT_EQ(chains_of(spec), is_chain_op(first.name, dtype) && is_chain_op(second.name, dtype) ? 1u : 2u);
      const Array wanted = run_one_by_one(inputs, {first, second})[1];
      EXPECT_EQ(differences(run(spec, inputs)[0], wanted), 0)
          << first.name << ' ' << first.operands[0] << ", then " << second.name << ' ' << second.operands[0] << ' '
          << second.operands.back() << ", " << n << " elements";
      const std::vector<Array> both = run(make_spec(inputs, {first, second}, {0, 1}), inputs);
      EXPECT_EQ(differences(both[0], value) + differences(both[1], wanted), 0) << first.name << ' ' << second.name;
    }
  }
}

TEST(Chain, PairsGiveTheBitsOfSingleOps) {
  for (const InstructionSet& set : instruction_sets()) {
    SCOPED_TRACE(set.name);
    use_instruction_set(set);
    for (const DType dtype : {DType::kFloat32, DType::kFloat64})
      for (const std::int64_t n : {1, 5, 301}) check_all_pairs(dtype, n);
  }
  use_best_instruction_set();
}

// Values, a comparison of them, a choice by it, and one more op: one chain, with blocks and numbers on each side.
void check_masks(DType dtype, std::int64_t n) {
  const std::vector<Array> inputs = make_inputs(dtype, n);
  for (const char* comparison : kComparisons)
    for (const auto& compared : std::vector<std::vector<int>>{{0, ~1}, {~1, 0}, {0, ~3}, {~3, 0}, {0, 0}})
      for (const auto& [then, otherwise] : {std::pair{~2, ~0}, {~2, ~3}, {~4, ~2}, {~3, ~4}, {~2, ~2}}) {
        const std::vector<Op> ops{
            {"mul", {~0, ~1}}, {comparison, compared}, {"select", {1, then, otherwise}}, {"add", {2, ~2}}};
        const std::vector<Array> wanted = run_one_by_one(inputs, ops);
        const FusedSpec spec = make_spec(inputs, ops, {0, 2, 3});
        EXPECT_EQ(chains_of(spec), 1u);
        const std::vector<Array> results = run(spec, inputs);
        EXPECT_EQ(differences(results[0], wanted[0]) + differences(results[1], wanted[2]) +
                      differences(results[2], wanted[3]),
                  0)
            << comparison << ' ' << compared[0] << ' ' << compared[1] << ", select " << then << ' ' << otherwise << ", "
            << n << " elements";
      }
}

TEST(Chain, MasksGiveTheBitsOfSingleOps) {
  for (const InstructionSet& set : instruction_sets()) {
    SCOPED_TRACE(set.name);
    use_instruction_set(set);
    for (const DType dtype : {DType::kFloat32, DType::kFloat64})
      for (const std::int64_t n : {1, 5, 301, 3001}) check_masks(dtype, n);
  }
  use_best_instruction_set();
}

// A comparison is no mask if it is stored, has two readers, or compares another dtype than the select's.
TEST(Chain, OtherComparisonsStayAlone) {
  std::vector<Array> inputs = make_inputs(DType::kFloat32, 301);
  const std::vector<Op> twice{{"less", {~0, ~1}}, {"select", {0, ~2, ~3}}, {"select", {0, ~1, 1}}};
  const std::vector<Array> wanted = run_one_by_one(inputs, twice);
  for (const std::vector<int>& outputs : {std::vector<int>{2}, {0, 2}}) {
    const FusedSpec spec = make_spec(inputs, twice, outputs);
    EXPECT_EQ(chains_of(spec), 3u);
    EXPECT_EQ(differences(run(spec, inputs).back(), wanted[2]), 0);
  }
  const std::vector<Op> once(twice.begin(), twice.begin() + 2);
  EXPECT_EQ(chains_of(make_spec(inputs, once, {1})), 1u);
  EXPECT_EQ(chains_of(make_spec(inputs, once, {0, 1})), 2u);
  for (const unsigned seed : {1u, 2u}) inputs.push_back(make_values(DType::kFloat64, 301, seed));
  const std::vector<Op> mixed{{"less", {~5, ~6}}, {"select", {0, ~1, ~2}}};
  const FusedSpec spec = make_spec(inputs, mixed, {1});
  EXPECT_EQ(chains_of(spec), 2u);
  EXPECT_EQ(differences(run(spec, inputs)[0], run_one_by_one(inputs, mixed)[1]), 0);
}

// A chain that is full takes no comparison without its select.
TEST(Chain, AComparisonAndItsSelectAreInOneChain) {
  const std::vector<Array> inputs = make_inputs(DType::kFloat32, 301);
  for (int before = kLongestChain - 3; before <= kLongestChain + 1; ++before) {
    std::vector<Op> ops{{"mul", {~0, ~1}}};
    while (static_cast<int>(ops.size()) < before) ops.push_back({"add", {static_cast<int>(ops.size()) - 1, ~3}});
    ops.push_back({"greater", {before - 1, ~4}});
    ops.push_back({"select", {before, ~2, ~3}});
    const FusedSpec spec = make_spec(inputs, ops, {before + 1});
    EXPECT_EQ(chains_of(spec), before + 2 <= kLongestChain ? 1u : 2u) << before;
    EXPECT_EQ(differences(run(spec, inputs)[0], run_one_by_one(inputs, ops).back()), 0) << before;
  }
}

// Operands of op i of a random program: mostly recent values, so that long chains form; comparisons only where `truth`.
int random_operand(const std::vector<Op>& ops, bool truth, std::mt19937& random) {
  const int i = static_cast<int>(ops.size());
  while (true) {
    const bool recent = i > 0 && (truth || random() % 4 != 0);
    const int operand =
        recent ? i - 1 - static_cast<int>(random() % (truth ? 5 : 3)) % i : ~static_cast<int>(random() % 5);
    if (operand < 0 || gives_mask(ops[static_cast<std::size_t>(operand)].name) == truth) return operand;
  }
}

Op random_op(const std::vector<Op>& ops, std::mt19937& random) {
  const auto value = [&] { return random_operand(ops, false, random); };
  const auto is_recent_truth = [](const Op& op) { return gives_mask(op.name); };
  const bool compared = ops.size() > 4 && std::any_of(ops.end() - 2, ops.end(), is_recent_truth);
  if (compared && random() % 3 != 0) return {"select", {random_operand(ops, true, random), value(), value()}};
  if (random() % 5 == 0) return {kComparisons[random() % 4], {std::max(value(), ~2), value()}};
  if (random() % 4 == 0) return {kUnary[random() % 6], {std::max(value(), ~2)}};
  return {kBinary[random() % 8], {std::max(value(), ~2), value()}};
}

// Random programs of 30 ops over random operands: values with several readers, outputs from the middle.
TEST(Chain, ProgramsGiveTheBitsOfSingleOps) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    const DType dtype = round % 2 == 0 ? DType::kFloat32 : DType::kFloat64;
    const std::vector<Array> inputs = make_inputs(dtype, 1 + static_cast<std::int64_t>(random() % 3000));
    std::vector<Op> ops;
    std::vector<int> outputs;
    for (int i = 0; i < 30; ++i) {
      ops.push_back(random_op(ops, random));
      if (random() % 8 == 0 || i == 29) outputs.push_back(i);
    }
    const FusedSpec spec = make_spec(inputs, ops, outputs);
    EXPECT_LT(chains_of(spec), 30u);
    const std::vector<Array> results = run(spec, inputs), wanted = run_one_by_one(inputs, ops);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      EXPECT_EQ(differences(results[i], wanted[static_cast<std::size_t>(outputs[i])]), 0)
          << "round " << round << ", op " << outputs[i];
  }
}

// A result overwrites an input: input 0, which the first and the last op read, or input 1.
TEST(Chain, OverwritesItsInputs) {
  const std::vector<Op> ops{{"mul", {~0, ~3}}, {"add", {0, ~1}}, {"sub", {1, ~0}}};
  for (const int overwritten : {0, 1}) {
    std::vector<Array> inputs = make_inputs(DType::kFloat32, 3001);
    const std::vector<Array> wanted = run_one_by_one(inputs, ops);
    FusedSpec spec = make_spec(inputs, ops, {1, 2});
    spec.overwrites = {overwritten, -1};
    Array last(DType::kFloat32, spec.space);
    std::vector<const void*> in;
    for (const Array& input : inputs) in.push_back(input.raw());
    void* out[] = {inputs[static_cast<std::size_t>(overwritten)].raw(), last.raw()};
    run_fused(fuse(spec), in.data(), out);
    EXPECT_EQ(differences(inputs[static_cast<std::size_t>(overwritten)], wanted[1]), 0) << overwritten;
    EXPECT_EQ(differences(last, wanted[2]), 0) << overwritten;
  }
}

TEST(Chain, OpsOfOtherDtypesStayAlone) {
  EXPECT_TRUE(is_chain_op("add", DType::kFloat64));
  EXPECT_FALSE(is_chain_op("add", DType::kInt32));
  EXPECT_FALSE(is_chain_op("tanh", DType::kFloat64));
  EXPECT_FALSE(is_chain_op("cast", DType::kFloat32));
  EXPECT_FALSE(is_chain_op("less", DType::kBool));
  EXPECT_FALSE(is_chain_op("select", DType::kFloat32));
}

}  // namespace
}  // namespace syncline::kernels
