#include "ops/leaf.h"

#include "ops/core/fill.h"

namespace syncline {

SYNCLINE_REGISTER_OP(Placeholder)
SYNCLINE_REGISTER_OP(VariableLeaf)
SYNCLINE_REGISTER_OP(Constant)

std::string Constant::Value::describe() const {
  std::uint64_t digest = 14695981039346656037ULL;  // FNV-1a: equal bytes on equal ranks, no address
  for (std::size_t i = 0; i < array.bytes(); ++i)
    digest = (digest ^ std::to_integer<std::uint64_t>(array.raw()[i])) * 1099511628211ULL;
  return join_text(array.dtype(), array.shape(), '#', std::hex, digest);
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
