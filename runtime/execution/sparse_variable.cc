#include "syncline/backend/sparse_variable.h"

#include "ops/graph/leaf.h"
#include "ops/sparse/tensor.h"
#include "runtime/execution/sparse_feed.h"
#include "syncline/session.h"

namespace syncline {

SparseVariable variable(const SparseArray& value, VariableOptions options) {
  const std::string name = Session::current().unique_name(options.name.empty() ? "variable" : options.name);
  const std::array<std::int64_t, 2> all{0, value.rows()};
  PackedSparse packed;
  pack(value, slots_for(value, all), all, packed);
  const std::array<Variable, 3> parts{variable(packed[kValues], {.name = name + "/values"}),
                                      variable(packed[kColumns], {.name = name + "/columns"}),
                                      variable(packed[kSpans], {.name = name + "/spans"})};
  const Expr tensor = sparse_tensor({parts[0], parts[1], parts[2], constant_of(packed[kExtent])}, name);
  return {tensor, parts};
}

SparseArray get_value(const SparseVariable& x) {
  PackedSparse packed;
  for (std::size_t i = 0; i < 3; ++i) packed[i] = get_value(x.parts()[i]);
  packed[kExtent] = Array(DType::kBool, Shape{0, x.shape()[1]});
  return unpack(packed);
}

void set_value(const SparseVariable& x, const SparseArray& value) {
  if (value.dtype() != x.dtype())
    fail<DTypeError>("set_value: variable '", x.name(), "' holds ", x.dtype(), ", but the value is ", value.dtype(),
                     "; cast the value");
  if (value.shape() != x.shape())
    fail<ShapeError>("set_value: variable '", x.name(), "' has the shape ", x.shape(), ", but the value has ",
                     value.shape());
  const Shape& memory = x.values().shape();
  if (value.count() > memory.size())
    fail<ValueError>("set_value: variable '", x.name(), "' has memory for ", memory.size(),
                     " entries, but the value has ", value.count(), "; create a new variable");
  PackedSparse packed;
  pack(value, memory[1], std::array<std::int64_t, 2>{0, value.rows()}, packed);
  for (std::size_t i = 0; i < 3; ++i) set_value(x.parts()[i], packed[i]);
}

}  // namespace syncline
