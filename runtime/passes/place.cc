#include "runtime/passes/passes.h"

namespace syncline {

CompileRequest place(CompileRequest request) {
  if (request.placed || request.strategy == nullptr) return request;
  std::vector<Expr> roots = request.outputs;
  for (const Update& u : request.updates) roots.push_back(u.value);
  PlacedGraph graph = request.strategy->place(roots, request.placement, *request.shares, request.wanted);
  for (std::size_t i = 0; i < request.outputs.size(); ++i) request.outputs[i] = graph.roots[i];
  for (std::size_t i = 0; i < request.updates.size(); ++i)
    request.updates[i].value = graph.roots[request.outputs.size() + i];
  request.placement = std::move(graph.placement);
  request.placed = true;
  return request;
}

}  // namespace syncline
