// dropout: x / (1 - level) where a random mask is true, 0 elsewhere. The mask is a separate op; the rest fuses with
// adjacent ops.
#include <algorithm>
#include <cmath>

#include "ops/graph/deferred.h"
#include "ops/random/draw.h"
#include "syncline/backend/math.h"
#include "syncline/backend/random.h"

namespace syncline {
namespace {

struct DropoutMask {
  static constexpr std::string_view kName = "dropout_mask";
  static constexpr bool kTakesFloat16 = true;
  struct Attrs {
    double level = 0;   // unused if an operand gives the level
    Shape noise_shape;  // one entry per axis: 1, the size of x, or unknown for the size of x
    std::shared_ptr<RandomOp> random_op;
  };
  static constexpr auto fields = std::tuple{field("level", &Attrs::level), field("noise_shape", &Attrs::noise_shape),
                                            field("op", &Attrs::random_op)};

  static Meta infer(const Attrs& a, std::span<const Meta> in) {
    const Shape& x = in[0].shape;
    if (in.size() > 1 && in[1].shape.ndim() != 0)
      fail<ShapeError>("dropout: the level has the shape ", in[1].shape, "; give a scalar");
    bool fits = a.noise_shape.ndim() == x.ndim();
    for (int axis = 0; fits && axis < x.ndim(); ++axis) {
      const std::int64_t noise = a.noise_shape[axis];
      fits = noise == 1 || noise == kUnknown || x[axis] == kUnknown || noise == x[axis];
    }
    if (!fits)
      fail<ShapeError>("dropout: noise_shape ", a.noise_shape, " does not fit x of shape ", x,
                       "; give 1, x's size or -1 for each axis");
    Shape out = x;
    for (int axis = 0; axis < x.ndim(); ++axis)
      if (a.noise_shape[axis] == 1) out[axis] = 1;
    return {DType::kBool, out};
  }

  // x provides only its shape, so any placement works. Each rank draws the whole mask if all rows share it.
  static Placed place(const Attrs& a, const PlaceArgs& args) {
    const Placement at = args.at[0];
    const bool rows = at.is_split() && a.noise_shape[at.axis] != 1;
    std::vector<Placement> in{at};
    if (args.in.size() > 1) in.push_back(Placement::replicated());
    return {in, {rows ? at : Placement::replicated()}};
  }

  static void run(const Attrs& a, const KernelArgs& k) {
    const Stream stream = stream_of(*a.random_op, *k.random_runs);
    double level = a.level;
    if (k.in_meta.size() > 1) level = *k.input<double>(1);
    if (!(level < 1)) {
      std::fill_n(k.output<bool>(), k.out_shape().size(), false);
      return;
    }
    const double bound = std::clamp(std::round(level * 0x1p32), 0.0, 0x1p32 - 1);
    const auto threshold = static_cast<std::uint32_t>(bound);
    for_global_runs<bool>(
        k, 0.7, [&](std::uint64_t first, std::int64_t n, bool* out) { draw_mask(stream, first, n, threshold, out); });
  }

  static constexpr NoGradient grad{"random numbers do not depend on values"};
};

SYNCLINE_REGISTER_OP(DropoutMask)

}  // namespace

namespace {

// If the level is an operand, it follows x in `operands`.
Expr mask_of(const std::vector<Expr>& operands, double level, const RandomKey& key,
             const std::optional<Dims>& noise_shape) {
  const Expr& x = operands[0];
  const Shape all(std::vector<std::int64_t>(static_cast<std::size_t>(x.ndim()), kUnknown));
  // Fewer entries than axes apply to the last axes, as in broadcasting.
  Dims noise(std::vector<std::int64_t>(
      noise_shape ? static_cast<std::size_t>(std::max(0, x.ndim() - noise_shape->size())) : 0, 1));
  noise.append(noise_shape.value_or(all));
  Meta unknown{DType::kBool, x.shape()};
  for (int axis = 0; axis < std::min(x.ndim(), noise.size()); ++axis)
    if (noise.is_tensor(axis)) unknown.shape[axis] = kUnknown;
    else if (noise.numbers()[axis] == 1) unknown.shape[axis] = 1;
  const auto rule = [=](std::span<const Expr> in, const Shape& numbers) {
    return apply<DropoutMask>({in.begin(), in.end()}, {level, numbers, key.op()});
  };
  return with_numbers("dropout", operands, noise, unknown, rule, key.op());
}

void check_floating(const Expr& x) {
  if (!is_floating(x.dtype())) fail<DTypeError>("dropout: x is ", x.dtype(), "; cast it to a floating dtype first");
}

}  // namespace

Expr dropout_mask(const Expr& x, double level, const RandomKey& key, const std::optional<Dims>& noise_shape) {
  if (!(level >= 0 && level < 1)) fail<ValueError>("dropout: level is ", level, "; give 0 <= level < 1");
  return mask_of({x}, level, key, noise_shape);
}
Expr dropout_mask(const Expr& x, const Expr& level, const RandomKey& key, const std::optional<Dims>& noise_shape) {
  return mask_of({x, cast(level, DType::kFloat64)}, 0, key, noise_shape);
}

Expr dropout(const Expr& x, double level, const RandomKey& key, const std::optional<Dims>& noise_shape) {
  check_floating(x);
  const Expr mask = dropout_mask(x, level, key, noise_shape);
  return level == 0 ? x : select(mask, x * (1 / (1 - level)), scalar_like(0, x));
}
Expr dropout(const Expr& x, const Expr& level, const RandomKey& key, const std::optional<Dims>& noise_shape) {
  check_floating(x);
  const Expr mask = dropout_mask(x, level, key, noise_shape);
  const Expr kept = 1.0 - cast(level, x.dtype());  // 0 if all is dropped; the quotient's gradient would be NaN
  return select(mask, x / select(equal(kept, scalar_like(0, kept)), scalar_like(1, kept), kept), scalar_like(0, x));
}

}  // namespace syncline
