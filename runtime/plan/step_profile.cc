#include "runtime/plan/step_profile.h"

#include <algorithm>
#include <utility>

#include "ops/graph/fill.h"
#include "ops/graph/op.h"
#include "runtime/placement/collectives.h"

namespace syncline {

std::string describe_operands(const Step& step) {
  std::string text = step.label;
  const char* before = "  ";
  for (const Meta& meta : step.args.in_meta) text += join_text(std::exchange(before, ", "), meta);
  before = " -> ";
  for (const Meta& meta : step.args.out_meta) text += join_text(std::exchange(before, ", "), meta);
  return text;
}

StepProfiler::StepProfiler(const Strategy* strategy, std::span<const Update> updates, std::span<const Expr> new_values,
                           const Layers& layers)
    : profile_(Profile::of_process()), layers_(layers) {
  if (profile_ == nullptr) return;
  if (strategy != nullptr) profile_->set_rank(strategy->rank(), strategy->size());
  ValueSet seen;
  for (std::size_t i = 0; i < updates.size(); ++i)
    if (const std::string layer = scope_of(updates[i].target.name()); !layer.empty())
      name_kernels_of(new_values[i], layer, seen);
}

void StepProfiler::add(std::string_view kind, Step& step, const Work& work) const {
  if (profile_ != nullptr) step.profile = line(kind, step, work);
}

void StepProfiler::add_kernel(const OpDef& op, Step& step) const {
  if (profile_ != nullptr)
    step.profile = line(op.name, step, op.work(step.attrs, step.args.in_meta, step.args.out_meta));
}

void StepProfiler::add_program(std::string_view kind, const kernels::FusedProgram& program, Step& step) const {
  if (profile_ != nullptr) step.profile = line(kind, step, kernels::work_of(program));
}

void StepProfiler::add_epilogue(const kernels::FusedProgram& program, double bytes, Step& step) const {
  if (step.profile == nullptr) return;
  const Work kernel = step.profile->work, more = kernels::work_of(program);
  step.profile =
      line(step.profile->kind + " + fused", step, {kernel.flops + more.flops, kernel.bytes + more.bytes - bytes});
}

void StepProfiler::add_product(const Step& loop, const StepValue& value, std::span<const Meta> operands,
                               std::int64_t groups, LoopStep::Product& product) const {
  if (profile_ == nullptr) return;
  const OpDef& op = value.value.op();
  Step step;
  step.label = join_text(op.name, "(", op.print(product.attrs), ")");
  step.args.in_meta = operands;
  step.args.out_meta = product.out_meta;
  step.writes = {&value, 1};
  Work work = op.work(product.attrs, operands, product.out_meta);
  const auto calls = static_cast<double>(std::max<std::int64_t>(groups, 1));
  work.flops /= calls;
  work.bytes /= calls;
  std::string layer = layer_of_step(step);
  if (layer.empty()) layer = layer_of_step(loop);
  product.profile = line(op.name, step, std::move(layer), work);
}

Work StepProfiler::work_of(std::span<const Step> steps, std::span<const LoopStep> loops, const LocalView& local) const {
  Work work;
  if (profile_ == nullptr) return work;
  ValueMap<double> moved;  // the bytes of the steps that read or write a value: a gather reads a few rows of its table
  std::vector<StepValue> values;
  for (const Step& step : steps) {
    const double bytes = step.profile == nullptr ? 0 : step.profile->work.bytes;
    for (const auto& some : {step.reads, step.writes})
      for (const StepValue& value : some) {
        const auto [sum, fresh] = moved.try_emplace(value.value, 0);
        if (fresh) values.push_back(value);
        sum += bytes > 0 ? bytes : static_cast<double>(local.bytes(value.value));
      }
    if (step.profile != nullptr) work.flops += step.profile->work.flops;
    if (step.kind != Step::kLoop) continue;
    const LoopStep& loop = loops[static_cast<std::size_t>(step.index)];
    work.flops += static_cast<double>(loop.iterations) * loop.body.work().flops;
    for (const LoopStep::Product& product : loop.products)
      if (product.profile != nullptr) work.flops += static_cast<double>(loop.groups()) * product.profile->work.flops;
  }
  for (const StepValue& value : values) {
    const Expr& e = value.value;
    const bool once = e.op().leaf || value.assigned != nullptr;
    if (!e.is<Fill>()) work.bytes += (once ? 1 : 2) * std::min(static_cast<double>(local.bytes(e)), moved.at(e));
  }
  return work;
}

// Goes through elementwise ops, views and transfers to the kernels before them.
void StepProfiler::name_kernels_of(const Expr& new_value, const std::string& layer, ValueSet& seen) {
  std::vector<Expr> open{new_value};
  while (!open.empty()) {
    const Expr e = open.back();
    open.pop_back();
    const OpDef& op = e.op();
    if (op.leaf || !seen.insert(e.node())) continue;
    changed_layers_[e] = layer;
    if (op.block != nullptr || op.view || e.is<AllReduce>() || e.is<ReduceScatter>() || e.is<AllGather>() ||
        e.is<OwnRows>() || e.is<Copy>())
      open.insert(open.end(), e.node().inputs.begin(), e.node().inputs.end());
  }
}

ProfileLine* StepProfiler::line(std::string_view kind, const Step& step, std::string layer, const Work& work) const {
  return profile_->line(std::string(kind), describe_operands(step), std::move(layer), work);
}

std::string StepProfiler::layer_of_step(const Step& step) const {
  for (const StepValue& read : step.reads)
    if (std::string layer = layer_of(read.value, layers_); !layer.empty()) return layer;
  for (const StepValue& write : step.writes)
    if (const std::string* layer = changed_layers_.find(write.value)) return *layer;
  return layers_.loop;
}

}  // namespace syncline
