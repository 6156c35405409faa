// ctc_label_dense_to_sparse: each label keeps its slot (ops/sparse/tensor.h), so nothing moves.
#include "ops/ctc/lengths.h"
#include "ops/sparse/tensor.h"
#include "syncline/backend/core.h"
#include "syncline/backend/ctc.h"
#include "syncline/backend/math.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"

namespace syncline {

Expr ctc_label_dense_to_sparse(const Expr& labels, const Expr& label_lengths) {
  constexpr std::string_view kName = "ctc_label_dense_to_sparse";
  const Expr lengths = ctc::flat_lengths(kName, label_lengths);
  if (labels.ndim() != 2 || sizes_differ(labels.shape()[0], lengths.shape()[0]))
    fail<ShapeError>(kName, ": labels ", labels.shape(), " and label_lengths ", label_lengths.shape(),
                     " do not fit together; give (samples, labels) and one length per sample");
  const Expr most = count(labels, {1}, DType::kInt32);
  const Expr entries = cast(minimum(maximum(lengths, zeros_like(most)), most), DType::kInt64);
  const Expr columns = cumsum(fill_like(labels, 1, DType::kInt32), 1) - 1;
  const Expr extent = fill_like(slice_axis(labels, 0, 0, 0), 0, DType::kBool);
  return sparse_tensor({labels, columns, stack({zeros_like(entries), entries}, 1), extent});
}

}  // namespace syncline
