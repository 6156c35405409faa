// in_top_k: true if fewer than k predictions of a row are larger than the target's prediction.
#include <cmath>

#include "ops/graph/op.h"
#include "ops/kernels/parallel.h"
#include "syncline/backend/nn.h"

namespace syncline {
namespace {

template <class T>
bool among_top(const T* row, std::int64_t classes, std::int64_t target, int k) {
  if (target < 0 || target >= classes) return false;
  int larger = 0;
  for (std::int64_t c = 0; c < classes; ++c) {
    if (!std::isfinite(row[c])) return false;
    larger += row[c] > row[target];
  }
  return larger < k;
}

struct InTopK {
  static constexpr std::string_view kName = "in_top_k";
  struct Attrs {
    int k = 1;
  };
  static constexpr auto fields = std::tuple{field("k", &Attrs::k)};

  static Meta infer(const Attrs&, std::span<const Meta> in) {
    const Shape &predictions = in[0].shape, &targets = in[1].shape;
    if (!is_floating(in[0].dtype))
      fail<DTypeError>(kName, ": predictions are ", in[0].dtype, "; cast them to a floating dtype first");
    if (in[1].dtype != DType::kInt32 && in[1].dtype != DType::kInt64)
      fail<DTypeError>(kName, ": targets are ", in[1].dtype, "; cast them to int32 or int64");
    const bool ranks_fit = predictions.ndim() == 2 && targets.ndim() == 1;
    if (!ranks_fit || (predictions[0] != targets[0] && predictions[0] != kUnknown && targets[0] != kUnknown))
      fail<ShapeError>(kName, ": predictions of shape ", predictions, " and targets of shape ", targets,
                       "; give (batch, classes) and (batch)");
    return {DType::kBool, Shape{predictions[0] == kUnknown ? targets[0] : predictions[0]}};
  }

  static Placed place(const Attrs&, const PlaceArgs& args) {
    if (!args.at[0].is_split(0) && !args.at[1].is_split(0)) return gathered(args);
    const Placement rows = Placement::split(0);
    return {{rows, rows}, {rows}};
  }

  static void run(const Attrs& a, const KernelArgs& k) {
    const std::int64_t classes = k.in_shape(0)[1];
    with_floating(k.in_dtype(0), [&]<class T>(T) {
      with_index(k.in_dtype(1), [&]<class I>(I) {
        const double cost = 1 + static_cast<double>(classes);
        kernels::parallel_for(k.in_shape(0)[0], cost, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i)
            k.output<bool>()[i] = among_top(k.input<T>(0) + i * classes, classes, k.input<I>(1)[i], a.k);
        });
      });
    });
  }

  static constexpr NoGradient grad{"a truth value is piecewise constant"};
};

SYNCLINE_REGISTER_OP(InTopK)

}  // namespace

Expr in_top_k(const Expr& predictions, const Expr& targets, int k) {
  return apply<InTopK>({predictions, targets}, {k});
}

}  // namespace syncline
