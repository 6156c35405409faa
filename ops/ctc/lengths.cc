#include "ops/ctc/lengths.h"

#include "syncline/backend/math.h"
#include "syncline/backend/shape.h"

namespace syncline::ctc {

void check_logits(std::string_view op, const Meta& y_pred) {
  if (!is_floating(y_pred.dtype))
    fail<DTypeError>(op, ": y_pred is ", y_pred.dtype, "; cast it to a floating dtype first");
  if (y_pred.shape.ndim() != 3 || y_pred.shape[2] == 0)
    fail<ShapeError>(op, ": y_pred has the shape ", y_pred.shape, "; it must be (samples, time, classes)");
}

Expr flat_lengths(std::string_view op, const Expr& lengths) {
  const bool column = lengths.ndim() == 2 && (lengths.shape()[1] == 1 || lengths.shape()[1] == kUnknown);
  if (lengths.ndim() != 1 && !column)
    fail<ShapeError>(op, ": lengths have the shape ", lengths.shape(), "; it must be (samples) or (samples, 1)");
  if (lengths.dtype() == DType::kBool) fail<DTypeError>(op, ": lengths are bool; cast them to an integer dtype");
  return cast(column ? squeeze(lengths, 1) : lengths, DType::kInt32);
}

void check_lengths(std::string_view op, std::string_view what, const KernelArgs& k, int number, std::int64_t most) {
  const auto* length = k.input<std::int32_t>(number);
  for (std::int64_t i = 0; i < k.in_shape(number).size(); ++i)
    if (length[i] < 0 || length[i] > most)
      fail<ValueError>(op, ": ", what, ' ', length[i], " of sample ", k.slice.begin + i, " is outside [0, ", most, ']');
}

}  // namespace syncline::ctc
