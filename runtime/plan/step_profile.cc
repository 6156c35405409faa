#include "runtime/plan/step_profile.h"

#include <vector>

#include "ops/graph/leaf.h"
#include "ops/graph/op.h"
#include "runtime/placement/collectives.h"

namespace syncline {
namespace {

// "dense_1" of dense_1/kernel; "" if the name has no scope.
std::string scope_of(const std::string& name) {
  const std::size_t end = name.rfind('/');
  return end == std::string::npos ? "" : name.substr(0, end);
}

}  // namespace

std::string describe_operands(const Step& step) {
  std::string text = step.label;
  for (std::size_t i = 0; i < step.in_meta.size(); ++i) text += join_text(i == 0 ? "  " : ", ", step.in_meta[i]);
  for (std::size_t i = 0; i < step.out_meta.size(); ++i) text += join_text(i == 0 ? " -> " : ", ", step.out_meta[i]);
  return text;
}

StepProfiler::StepProfiler(const Strategy* strategy, std::span<const Update> updates, std::span<const Expr> new_values)
    : profile_(Profile::of_process()) {
  if (profile_ == nullptr) return;
  if (strategy != nullptr) profile_->set_rank(strategy->rank(), strategy->size());
  ValueSet seen;
  for (std::size_t i = 0; i < updates.size(); ++i)
    if (const std::string layer = scope_of(updates[i].target.name()); !layer.empty())
      name_kernels_of(new_values[i], layer, seen);
}

// Goes through elementwise ops, views and transfers to the kernels before them.
void StepProfiler::name_kernels_of(const Expr& new_value, const std::string& layer, ValueSet& seen) {
  std::vector<Expr> open{new_value};
  while (!open.empty()) {
    const Expr e = open.back();
    open.pop_back();
    const OpDef& op = e.op();
    if (op.leaf || !seen.insert(e.node())) continue;
    layers_[e] = layer;
    if (op.block != nullptr || op.view || e.is<AllReduce>() || e.is<AllGather>())
      open.insert(open.end(), e.node().inputs.begin(), e.node().inputs.end());
  }
}

std::string StepProfiler::layer_of(const Step& step) const {
  for (const StepValue& read : step.reads)
    if (read.value.is<VariableLeaf>())
      if (std::string scope = scope_of(read.value.attrs<VariableLeaf::Attrs>().state->name()); !scope.empty())
        return scope;
  for (const StepValue& write : step.writes)
    if (const std::string* layer = layers_.find(write.value)) return *layer;
  return "";
}

}  // namespace syncline
