#include "tests/graphs/program.h"

#include <algorithm>
#include <cmath>

#include "ops/control/loop.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/sparse.h"
#include "tests/graphs/table.h"
#include "tests/graphs/ways.h"
#include "tests/ops/gradient_check.h"

namespace syncline::graphs {
namespace {

constexpr std::int64_t kMostElements = 40000;
constexpr std::int64_t kMostInLoop = 4'000'000;  // elements that all iterations compute

constexpr double kMomentum = 0.9;

const Expr& value_of(const Environment& env, const Ref& ref) {
  if (ref.scope == Ref::kInput) {
    if (static_cast<std::size_t>(ref.line) >= env.inputs.size()) throw Rejected{};
    return env.inputs[static_cast<std::size_t>(ref.line)];
  }
  if (static_cast<std::size_t>(ref.line) >= env.lines.size()) throw Rejected{};
  const auto& line = env.lines[static_cast<std::size_t>(ref.line)];
  if (static_cast<std::size_t>(ref.output) >= line.size()) throw Rejected{};
  return line[static_cast<std::size_t>(ref.output)];
}

bool small(const std::vector<Expr>& values) {
  return std::all_of(values.begin(), values.end(),
                     [](const Expr& e) { return !e.shape().is_known() || e.shape().size() <= kMostElements; });
}

// The elements that a value's loops compute.
std::int64_t work_of(const std::vector<Expr>& values) {
  std::int64_t work = 0;
  for (const auto& node : nodes_under(values)) {
    const Expr e(node);
    for (const auto& inner : nodes_under(body_of(e)))
      for (const Meta& meta : inner->outputs)
        if (e.is<Loop>() && meta.shape.is_known() && e.input(0).shape().is_known())
          work += e.input(0).shape()[0] * std::max<std::int64_t>(1, meta.shape.size());
  }
  return work;
}

int entry_of(std::string_view name) {
  const auto found = std::find_if(table().begin(), table().end(), [&](const Entry& e) { return e.name == name; });
  return static_cast<int>(found - table().begin());
}

int draw_entry(Random& random, int depth) {
  static const std::vector<int> by_weight = [] {
    std::vector<int> numbers;
    for (std::size_t i = 0; i < table().size(); ++i)
      numbers.insert(numbers.end(), static_cast<std::size_t>(table()[i].weight), static_cast<int>(i));
    return numbers;
  }();
  for (;;) {
    const int entry = random.pick(by_weight);
    if (depth <= table()[static_cast<std::size_t>(entry)].most_depth) return entry;
  }
}

Expr make_input(const Program& program, const Input& input, const Building& how) {
  const DType dtype = how.wide && is_floating(input.dtype) ? DType::kFloat64 : input.dtype;
  if (how.all_fed || input.kind == Input::kFed) {
    Shape shape = input.shape;
    if (input.group >= 0 && how.open) shape[0] = kUnknown;
    return placeholder({.shape = shape, .dtype = dtype, .sparse = input.sparse && !how.all_fed});
  }
  const Array value = value_in(program, input, 0, how.wide);
  if (input.kind == Input::kVariable) return variable(value);
  if (input.kind == Input::kConstant) return constant(value);
  const Array one = value.size() > 0 ? value.reshaped({value.size()}).rows(0, 1).reshaped({}) : Array(dtype, {});
  return constant(one.cast(DType::kFloat64).item(), dtype, input.shape);
}

// What the public function of an update makes of a variable's value.
Expr next_value(NewValue::Kind kind, const Expr& x, const Expr& operand) {
  switch (kind) {
    case NewValue::kSet: return operand;
    case NewValue::kAdd: return x + operand;
    case NewValue::kSubtract: return x - operand;
    default: return x * kMomentum + operand * (1.0 - kMomentum);
  }
}

Expr loss_of(const std::vector<Expr>& values) {
  Expr loss;
  for (const Expr& value : values) {
    if (!value || !is_floating(value.dtype())) continue;
    const Expr one = cast(syncline::testing::weighted_sum(to_dense(value), 7), DType::kFloat64);
    loss = loss ? loss + one : one;
  }
  return loss;
}

// Replaces the loss by a loss of its gradients, if these have gradients. For half of the programs.
void differentiate_again(const std::vector<Expr>& wrt, Expr& loss) {
  try {
    const Expr again = loss_of(gradients(loss, wrt));
    if (!again) return;
    gradients(again, wrt);
    loss = again;
  } catch (const Error&) {
  }
}

void add_gradients(const Program& program, const std::vector<Expr>& inputs, Graph& graph) {
  graph.loss = loss_of(graph.outputs);
  std::vector<Expr> wrt;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (has_gradient(program.inputs[i])) wrt.push_back(inputs[i]);
  if (!graph.loss || wrt.empty()) {
    graph.loss = {};
    return;
  }
  if (program.seed % 4 < 2) differentiate_again(wrt, graph.loss);
  const std::vector<Expr> found = gradients(graph.loss, wrt);
  for (std::size_t i = 0; i < wrt.size(); ++i)
    graph.outputs.push_back(found[i] ? to_dense(found[i]) : zeros_like(wrt[i]));
}

}  // namespace

const std::vector<Entry>& table() {
  static const std::vector<Entry> all = [] {
    std::vector<Entry> entries;
    for (auto part : {elementwise_entries(), reduction_entries(), shape_entries(), product_entries(), network_entries(),
                      window_entries(), control_entries(), other_entries()})
      entries.insert(entries.end(), part.begin(), part.end());
    return entries;
  }();
  return all;
}

bool draw_line(Environment& env, std::vector<Line>& lines, std::vector<std::vector<Expr>>& values, Random& random,
               std::string_view name) {
  const std::size_t inputs = env.inputs.size();
  for (int attempt = 0; attempt < 20; ++attempt) {
    Line line{.entry = name.empty() ? draw_entry(random, env.depth) : entry_of(name),
              .operands = {},
              .tape = {},
              .bodies = {}};
    try {
      Choices choices(env, line, &random);
      const Built built = table()[static_cast<std::size_t>(line.entry)].line(choices);
      if (!small(built.values) || work_of(built.values) > kMostInLoop) throw Rejected{};
      values.push_back(built.values);
      lines.push_back(std::move(line));
      return true;
    } catch (const Rejected&) {
    } catch (const ValueError&) {
    } catch (const DTypeError&) {
    }
    env.inputs.resize(inputs);
    env.program->inputs.resize(inputs);
  }
  return false;
}

void build_lines(Environment& env, const std::vector<Line>& lines, std::vector<std::vector<Expr>>& values,
                 std::vector<std::string>* texts, std::vector<Check>* checks) {
  for (const Line& line : lines) {
    Line copy = line;
    Choices choices(env, copy, nullptr);
    const Built built = table()[static_cast<std::size_t>(line.entry)].line(choices);
    values.push_back(built.values);
    if (texts != nullptr) texts->push_back(built.text);
    if (checks != nullptr) checks->push_back(built.check);
  }
}

bool has_gradient(const Input& input) { return is_floating(input.dtype) && !input.sparse; }

Update update_of(const NewValue& u, const Variable& x, const Expr& operand) {
  switch (u.kind) {
    case NewValue::kSet: return update(x, operand);
    case NewValue::kAdd: return update_add(x, operand);
    case NewValue::kSubtract: return update_sub(x, operand);
    default: return moving_average_update(x, operand, kMomentum);
  }
}

Graph build(const Program& program, const Building& how) {
  Environment env{.program = const_cast<Program*>(&program), .how = &how};
  for (const Input& input : program.inputs) env.inputs.push_back(make_input(program, input, how));
  Graph graph;
  build_lines(env, program.lines, env.lines, &graph.texts, &graph.checks);
  graph.inputs = env.inputs;
  for (const Ref& ref : program.outputs) graph.outputs.push_back(value_of(env, ref));
  graph.values = graph.outputs.size();
  for (const NewValue& u : program.updates) {
    const Expr &x = env.inputs[static_cast<std::size_t>(u.input)], &operand = value_of(env, u.value);
    if (!(operand.meta() == x.meta())) throw Rejected{};
    graph.operands.push_back(operand);
    graph.updates.push_back(next_value(u.kind, x, operand));
  }
  graph.lines = std::move(env.lines);
  if (program.gradient) add_gradients(program, env.inputs, graph);
  return graph;
}

namespace {

void draw_outputs(Program& program, const Environment& env, Random& random) {
  for (std::size_t i = 0; i < env.lines.size(); ++i)
    for (std::size_t k = 0; k < env.lines[i].size(); ++k) {
      const Ref ref{Ref::kLine, static_cast<int>(i), static_cast<int>(k)};
      if (is_sparse(env.lines[i][k])) continue;
      // A rare line is not wasted: something needs its value.
      const bool rare = table()[static_cast<std::size_t>(program.lines[i].entry)].weight <= 2;
      if (i + 1 == env.lines.size() || random.chance(rare ? 80 : 20)) program.outputs.push_back(ref);
    }
}

void draw_updates(Program& program, const Environment& env, Random& random) {
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    if (program.inputs[i].kind != Input::kVariable || !random.chance(70)) continue;
    std::vector<Ref> found;
    for (std::size_t l = 0; l < env.lines.size(); ++l)
      for (std::size_t k = 0; k < env.lines[l].size(); ++k)
        if (env.lines[l][k].meta() == env.inputs[i].meta())
          found.push_back({Ref::kLine, static_cast<int>(l), static_cast<int>(k)});
    if (found.empty()) continue;
    NewValue u{static_cast<int>(i), random.pick(found)};
    const DType dtype = program.inputs[i].dtype;
    if (dtype != DType::kBool && random.chance(40))
      u.kind = static_cast<NewValue::Kind>(1 + random.below(is_floating(dtype) ? 3 : 2));
    program.updates.push_back(u);
  }
}

// Rows of each rank: uneven, none at all, or a batch too small for the ranks.
std::vector<std::int64_t> draw_ranks(int ranks, Random& random) {
  std::vector<std::int64_t> rows;
  for (int r = 0; r < ranks; ++r) rows.push_back(random.chance(15) ? 0 : 1 + random.below(4));
  return rows;
}

void draw_calls(Program& program, Random& random) {
  const std::int64_t calls = 1 + random.below(4);
  static const std::vector<std::int64_t> kRows{0, 1, 2, 3, 5, 7, 4, 6};
  for (std::int64_t i = 0; i < calls; ++i) {
    Call call;
    call.rows = program.rows;
    if (i > 0 && random.chance(70))
      for (std::int64_t& n : call.rows)
        if (random.chance(60)) n = random.pick(kRows);
    if (i > 0 && random.chance(30)) call.rows[1] = call.rows[0];
    if (random.chance(10)) call.before = static_cast<Call::Event>(1 + random.below(3));
    const int most_ranks = program.ranks.back();
    for (std::size_t g = 0; g < program.rows.size(); ++g) call.ranks.push_back(draw_ranks(most_ranks, random));
    if (random.chance(60)) call.ranks[1] = call.ranks[0];
    if (random.chance(40)) call.ranks[1].assign(call.ranks[1].size(), 1 + random.below(4));
    // Group 0 keeps the rows of the previous call.
    if (i > 0 && random.chance(50)) call.ranks[0] = program.calls.back().ranks[0];
    program.calls.push_back(std::move(call));
  }
}

}  // namespace

Program draw_program(std::uint64_t seed) {
  Random random(seed);
  Program program{.seed = seed};
  const std::int64_t dtype = random.below(10);
  program.floatx = dtype < 5 ? DType::kFloat32 : dtype < 9 ? DType::kFloat64 : DType::kFloat16;
  static const std::vector<std::int64_t> kRows{1, 2, 3, 5, 7, 4, 6, 2, 3, 5, 4, 0, 9};
  program.rows = {random.pick(kRows), random.pick(kRows)};
  program.edges = random.chance(20);
  const bool single = random.chance(program.edges ? 60 : 25);
  const Building how{.open = false};
  Environment env{.program = &program, .how = &how};
  // As in a training step, variables change beside collectives and there are few outputs, so the plan chooses when to
  // write variables.
  const bool training = random.chance(3);
  // Gradients at the kink of a function, which are compared in programs of one line.
  const bool kinked = single && !training && random.chance(20);
  static const std::vector<const char*> kKinked{"relu", "relu", "relu_tensors", "clip"};
  const std::int64_t lines = single || training ? 1 : 2 + random.below(random.chance(10) ? 40 : 10);
  if (training) draw_line(env, program.lines, env.lines, random, "large_variable");
  for (std::int64_t i = 0; i < lines; ++i)
    draw_line(env, program.lines, env.lines, random, kinked ? random.pick(kKinked) : "");
  for (Input& input : program.inputs)
    if (kinked && is_floating(input.dtype)) input.pool = Pool::kTies;
  if (training) draw_line(env, program.lines, env.lines, random, random.chance(50) ? "statistic_rnn" : "simple_rnn");
  draw_outputs(program, env, random);
  draw_updates(program, env, random);
  draw_calls(program, random);
  program.gradient = kinked || random.chance(training ? 30 : 70);
  return program;
}

}  // namespace syncline::graphs
