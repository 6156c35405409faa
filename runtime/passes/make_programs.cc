#include <algorithm>

#include "base/convert.h"
#include "ops/graph/fill.h"
#include "ops/graph/leaf.h"
#include "ops/shape/join.h"
#include "runtime/passes/passes.h"

namespace syncline {
namespace {

// A fill's single element, as a constant.
Expr element_of(const Expr& fill, Memory& memory) {
  Array one(fill.dtype(), Shape{});
  with_stored_dtype(fill.dtype(), [&]<class T>(T) { *one.data<T>() = convert<T>(fill.attrs<Fill::Attrs>().value); });
  const Expr number = constant_of(std::move(one));
  memory.put(number, {memory.of_constant(number), 0});
  return number;
}

class ProgramMaker {
 public:
  ProgramMaker(Task& task, Memory& memory, const LocalView& local) : task_(task), memory_(memory), local_(local) {}

  // Also sets task.reads to the program's operands, in order.
  kernels::FusedProgram run() {
    const std::span<const Expr> reductions = task_.reductions();
    const std::span<const Expr> nodes(task_.nodes.data(), task_.nodes.size() - reductions.size());
    spec_.space = local_.meta(nodes.back()).shape;
    spec_.nodes.reserve(nodes.size());
    for (auto* values : {&values_, &operands_}) values->reserve(task_.reads.size());
    spec_.inputs.reserve(task_.reads.size());
    for (const Expr& value : nodes) {
      kernels::FusedNode node{&value.op(), value.node().attrs, {}, local_.meta(value)};
      for (const Expr& in : value.node().inputs) {
        const int inside = number_of(in);
        node.operands.push_back(inside >= 0 ? inside : operand(in));
      }
      spec_.nodes.push_back(std::move(node));
    }
    const std::span<const Expr> stored(task_.writes.data(), task_.writes.size() - reductions.size());
    add_outputs(stored);
    const std::vector<kernels::FusedProgram::Reduced> reduced = add_reduced(reductions, stored);
    if (!spec_.strided_views.empty()) spec_.strided_views.resize(spec_.inputs.size());
    task_.reads = std::move(operands_);
    kernels::FusedProgram program = kernels::fuse(std::move(spec_));
    program.reduced = reduced;
    for (const auto& operand : reduced)
      SYNCLINE_CHECK(operand.input < 0 || program.inputs[static_cast<std::size_t>(operand.input)].spread ==
                                              kernels::FusedProgram::Input::kFull);
    return program;
  }

 private:
  // The index of a node that is in the program so far, or -1. Programs are short: a search is faster than a table.
  int number_of(const Expr& value) const {
    for (std::size_t i = 0; i < spec_.nodes.size(); ++i)
      if (task_.nodes[i] == value) return static_cast<int>(i);
    return -1;
  }

  void add_outputs(std::span<const Expr> stored) {
    for (const Expr& value : stored) {
      const int node = number_of(value);
      if (node < 0) add_parts(value);
      spec_.outputs.push_back(node);
      spec_.overwrites.push_back(node < 0 ? -1 : overwritten_input(value));
    }
  }

  std::vector<kernels::FusedProgram::Reduced> add_reduced(std::span<const Expr> reductions,
                                                          std::span<const Expr> stored) {
    std::vector<kernels::FusedProgram::Reduced> reduced;
    for (const Expr& reduction : reductions) {
      const int node = number_of(reduction.input(0));
      if (node < 0) {
        reduced.push_back({.input = ~operand(reduction.input(0))});
        continue;
      }
      const auto at = std::find(stored.begin(), stored.end(), reduction.input(0));
      if (at != stored.end()) {
        reduced.push_back({.output = static_cast<int>(at - stored.begin()), .stored = true});
        continue;
      }
      reduced.push_back({.output = static_cast<int>(spec_.outputs.size())});
      spec_.outputs.push_back(node);
      spec_.overwrites.push_back(-1);
    }
    return reduced;
  }

  int operand(const Expr& value) {
    const auto known = std::find(values_.begin(), values_.end(), value);
    const int number = static_cast<int>(known - values_.begin());
    if (known != values_.end()) return ~number;
    values_.push_back(value);
    const bool view =
        std::find(task_.strided_views.begin(), task_.strided_views.end(), value) != task_.strided_views.end();
    operands_.push_back(value.is<Fill>() ? element_of(value, memory_) : view ? value.input(0) : value);
    spec_.inputs.push_back(local_.meta(view ? value : operands_.back()));
    if (view) {
      spec_.strided_views.resize(spec_.inputs.size());
      spec_.strided_views.back() = value.op().strided_view(value.node().attrs.get(), local_.meta(operands_.back()));
    }
    return ~number;
  }

  // Adds the parts of a concatenation, which is the next output.
  void add_parts(const Expr& joined) {
    const std::vector<StridedView> views = joined_views(joined, local_.metas(joined.node().inputs));
    for (std::size_t i = 0; i < views.size(); ++i) {
      const int node = number_of(joined.input(static_cast<int>(i)));
      SYNCLINE_CHECK(node >= 0);
      spec_.parts.push_back({node, static_cast<int>(spec_.outputs.size()), views[i]});
    }
  }

  int overwritten_input(const Expr& output) const {
    const Location out = memory_.locate(output, local_);
    for (std::size_t i = 0; i < operands_.size(); ++i)
      if (memory_.locate(operands_[i], local_) == out) return static_cast<int>(i);
    return -1;
  }

  Task& task_;
  Memory& memory_;
  const LocalView& local_;
  kernels::FusedSpec spec_;
  std::vector<Expr> values_;    // from outside the program
  std::vector<Expr> operands_;  // their memory: a fill's element, a view's input
};

}  // namespace

Schedule make_programs(Schedule schedule) {
  const LocalView local = schedule.local();
  for (Task& task : schedule.tasks) {
    if (!task.has_program()) continue;
    task.program = static_cast<int>(schedule.programs.size());
    schedule.programs.push_back(ProgramMaker(task, schedule.memory, local).run());
  }
  return schedule;
}

}  // namespace syncline
