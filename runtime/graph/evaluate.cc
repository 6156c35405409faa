#include "runtime/graph/evaluate.h"

#include "ops/graph/fill.h"
#include "ops/graph/leaf.h"
#include "ops/graph/op.h"
#include "ops/kernels/fused/fused.h"

namespace syncline {

Array evaluate(const Expr& e) {
  if (e.is<Constant>()) return e.attrs<Constant::Attrs>().value->array;
  const Node& node = e.node();
  if (node.op->view) return evaluate(node.inputs[0]).reshaped(e.shape());
  Array result(e.dtype(), e.shape());
  std::vector<Array> inputs;
  std::vector<Meta> metas;
  std::vector<const void*> in;
  for (const Expr& input : node.inputs) {
    inputs.push_back(evaluate(input));
    metas.push_back(input.meta());
    in.push_back(inputs.back().raw());
  }
  void* out = result.raw();
  if (node.op->block != nullptr) {
    kernels::FusedSpec spec{.space = e.shape(), .inputs = metas, .nodes = {}, .outputs = {0}, .overwrites = {}};
    kernels::FusedNode only{node.op, node.attrs, {}, e.meta()};
    for (std::size_t i = 0; i < metas.size(); ++i) only.operands.push_back(~static_cast<int>(i));
    spec.nodes.push_back(std::move(only));
    kernels::run_fused(kernels::fuse(spec), in.data(), &out);
  } else {
    const std::size_t scratch_bytes =
        node.op->scratch != nullptr ? node.op->scratch(node.attrs.get(), metas, node.outputs, {}) : 0;
    Array scratch(DType::kUint8, Shape{static_cast<std::int64_t>(scratch_bytes)});
    const KernelArgs args{.in = in.data(),
                          .out = &out,
                          .in_meta = metas,
                          .out_meta = node.outputs,
                          .scratch = scratch.raw(),
                          .random_runs = nullptr,
                          .slice = {},
                          .parts = {}};
    node.op->run(node.attrs.get(), args);
  }
  return result;
}

}  // namespace syncline
