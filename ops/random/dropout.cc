// dropout: x / (1 - level) where a random mask holds, 0 elsewhere. The mask is an op; the rest fuses with its
// neighbours.
#include <algorithm>
#include <cmath>

#include "ops/math.h"
#include "ops/random.h"
#include "ops/random/draw.h"

namespace syncline {
namespace {

struct DropoutMask {
  static constexpr std::string_view kName = "dropout_mask";
  static constexpr bool kTakesFloat16 = true;
  static constexpr bool kRandom = true;
  struct Attrs {
    double level = 0;
    Shape noise_shape;  // an entry an axis: 1, x's size, or unknown for x's size
    std::uint64_t seed = 0, op = 0;
  };
  static constexpr auto fields = std::tuple{field("level", &Attrs::level), field("noise_shape", &Attrs::noise_shape),
                                            field("seed", &Attrs::seed), field("op", &Attrs::op)};

  static Meta infer(const Attrs& a, std::span<const Meta> in) {
    const Shape& x = in[0].shape;
    bool fits = a.noise_shape.ndim() == x.ndim();
    for (int axis = 0; fits && axis < x.ndim(); ++axis) {
      const std::int64_t noise = a.noise_shape[axis];
      fits = noise == 1 || noise == kUnknown || x[axis] == kUnknown || noise == x[axis];
    }
    if (!fits)
      fail<ShapeError>("dropout: noise_shape ", a.noise_shape, " for x of shape ", x,
                       "; give 1, x's size or -1 for each axis");
    Shape out = x;
    for (int axis = 0; axis < x.ndim(); ++axis)
      if (a.noise_shape[axis] == 1) out[axis] = 1;
    return {DType::kBool, out};
  }

  // x gives its shape only, so it may come as it is. A draw that serves all rows is made on each rank.
  static Placed place(const Attrs& a, const PlaceArgs& args) {
    const Placement at = args.at[0];
    const bool rows = at.is_split() && a.noise_shape[at.axis] != 1;
    return {{at}, {rows ? at : Placement::replicated()}};
  }

  static void run(const Attrs& a, const KernelArgs& k) {
    const Stream stream = stream_of({a.seed, a.op}, *k.random_step);
    const double bound = std::min(std::round(a.level * 0x1p32), 0x1p32 - 1);
    const auto threshold = static_cast<std::uint32_t>(bound);
    for_global_runs<bool>(
        k, 0.7, [&](std::uint64_t first, std::int64_t n, bool* out) { draw_mask(stream, first, n, threshold, out); });
  }

  static constexpr NoGradient grad{"random numbers do not depend on values"};
};

SYNCLINE_REGISTER_OP(DropoutMask)

}  // namespace

Expr dropout_mask(const Expr& x, double level, RandomKey key, const std::optional<Dims>& noise_shape) {
  if (!(level >= 0 && level < 1)) fail<ValueError>("dropout: level is ", level, "; give 0 <= level < 1");
  const Shape all(std::vector<std::int64_t>(static_cast<std::size_t>(x.ndim()), kUnknown));
  const Dims noise = noise_shape.value_or(all);
  Meta unknown{DType::kBool, x.shape()};
  for (int axis = 0; axis < std::min(x.ndim(), noise.size()); ++axis)
    if (noise.is_tensor(axis)) unknown.shape[axis] = kUnknown;
    else if (noise.numbers()[axis] == 1) unknown.shape[axis] = 1;
  return with_numbers("dropout", {x}, noise, unknown, [=](std::span<const Expr> operands, const Shape& numbers) {
    return apply<DropoutMask>({operands[0]}, {level, numbers, key.seed, key.op});
  });
}

Expr dropout(const Expr& x, double level, RandomKey key, const std::optional<Dims>& noise_shape) {
  if (!is_floating(x.dtype())) fail<DTypeError>("dropout: x is ", x.dtype(), "; cast it to a floating dtype first");
  const Expr mask = dropout_mask(x, level, key, noise_shape);
  return level == 0 ? x : select(mask, x * (1 / (1 - level)), scalar_like(0, x));
}

}  // namespace syncline
