#include "ops/graph/leaf.h"

#include "base/digest.h"
#include "ops/graph/fill.h"

namespace syncline {

SYNCLINE_REGISTER_OP(Placeholder)
SYNCLINE_REGISTER_OP(VariableLeaf)
SYNCLINE_REGISTER_OP(Constant)

std::string Constant::Value::describe() const {
  return join_text(array.dtype(), array.shape(), '#', std::hex, digest_bytes(array.raw(), array.bytes()));
}

Expr constant_of(Array value, std::string name) {
  return apply<Constant>({}, {std::make_shared<Constant::Value>(Constant::Value{std::move(value)})}, std::move(name));
}

Expr scalar(double value, DType dtype) { return apply<Fill>({}, {value, dtype, Shape{}}); }

bool scalar_value(const Expr& e, double& value) {
  if (e.is<Fill>()) {
    value = e.attrs<Fill::Attrs>().value;
    return true;
  }
  if (e.is<Constant>() && e.attrs<Constant::Attrs>().value->array.size() == 1) {
    value = e.attrs<Constant::Attrs>().value->array.item();
    return true;
  }
  return false;
}

}  // namespace syncline
