#include "ops/control/print.h"

#include <cstdio>

#include "ops/control/array_text.h"
#include "ops/control/body.h"
#include "ops/control/branch.h"
#include "ops/control/loop.h"
#include "ops/graph/substitute.h"
#include "ops/kernels/copy/bytes.h"
#include "syncline/backend/control.h"

namespace syncline {
namespace {

SYNCLINE_REGISTER_OP(Print)

std::function<void(const std::string&)>& writer() {
  static std::function<void(const std::string&)> write = [](const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  };
  return write;
}

// Returns the attributes of a node with prints removed from its body.
std::shared_ptr<const void> silent_attrs(const Node& node) {
  if (node.op == &def_of<Branch>()) {
    const BranchBodies& old = *static_cast<const Branch::Attrs*>(node.attrs.get())->bodies;
    if (!has_effect(old.roots())) return node.attrs;
    return std::make_shared<Branch::Attrs>(Branch::Attrs{std::make_shared<const BranchBodies>(
        BranchBodies{old.captures, without_prints(old.then_outputs), without_prints(old.else_outputs)})});
  }
  if (node.op == &def_of<Loop>()) {
    const LoopBody& old = *static_cast<const Loop::Attrs*>(node.attrs.get())->body;
    if (!has_effect(old.roots())) return node.attrs;
    auto body = std::make_shared<LoopBody>(old);
    body->next_states = without_prints(old.next_states);
    for (Residual& r : body->residuals) r.value = without_prints({r.value})[0];
    return std::make_shared<Loop::Attrs>(Loop::Attrs{std::move(body)});
  }
  return node.attrs;
}

}  // namespace

Placed Print::place(const Attrs&, const PlaceArgs& args) {
  const Placement own = args.at[0].is_partial() ? Placement::replicated() : args.at[0];
  return {{own, Placement::replicated()}, {own}};
}

void Print::run(const Attrs& a, const KernelArgs& k) {
  kernels::copy_to_output(k.in[0], k);
  if (!k.is_primary) return;
  const Array value = Array::borrow(k.in_dtype(1), k.in_shape(1), const_cast<void*>(k.in[1]));
  writer()((a.message.empty() ? "" : a.message + ' ') + text_of(value) + '\n');
}

std::vector<Expr> without_prints(const std::vector<Expr>& roots) {
  Rewritten graph;
  for (const auto& node : nodes_under(roots)) {
    if (node->op == &def_of<Print>()) graph.set(Expr(node), graph.now(node->inputs[0]));
    else graph.rebuild(node, silent_attrs(*node));
  }
  return graph.now(roots);
}

void print_to(std::function<void(const std::string& text)> write) { writer() = std::move(write); }

Expr print_tensor(const Expr& x, std::string message) { return apply<Print>({x, x}, {std::move(message)}); }

}  // namespace syncline
