#include "runtime/plan/layers.h"

#include "ops/graph/leaf.h"
#include "syncline/backend/variable.h"

namespace syncline {

std::string scope_of(const std::string& variable) {
  const std::size_t end = variable.rfind('/');
  return end == std::string::npos ? "" : variable.substr(0, end);
}

std::string layer_of(const Expr& value, const Layers& layers) {
  Expr at = value;
  while (!at.op().leaf && at.node().inputs.size() == 1) at = Expr(at.input(0));
  if (at.is<VariableLeaf>()) return scope_of(at.attrs<VariableLeaf::Attrs>().state->name());
  const std::string* layer = layers.feeds.find(at);
  return layer == nullptr ? "" : *layer;
}

}  // namespace syncline
