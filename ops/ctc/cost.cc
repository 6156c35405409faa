// ctc_batch_cost: sums over alignments in log space. State 2 i + 1 of a sample is its label i; even states are blanks.
// alpha[t][s] is the log probability of the first t + 1 steps, ending in state s; beta[t][s] that of the steps after t.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/ctc/cost.cc"
#include <hwy/foreach_target.h>
// foreach_target.h must come first
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "ops/ctc/cost.h"
#include "ops/kernels/fused/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syncline {
namespace HWY_NAMESPACE {

template <class T>
HWY_ATTR T log_sum_exp(const T* x, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  T top = x[0];
  for (std::int64_t i = 1; i < n; ++i) top = std::max(top, x[i]);
  auto total = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) total = hn::Add(total, exp_of(d, hn::Sub(hn::LoadU(d, x + i), hn::Set(d, top))));
  T sum = hn::GetLane(hn::SumOfLanes(d, total));
  for (; i < n; ++i) sum += std::exp(x[i] - top);
  return top + std::log(sum);
}

// y = exp(x - shift) * scale
template <class T>
HWY_ATTR void exp_row(const T* x, T shift, T scale, T* y, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(hn::Mul(exp_of(d, hn::Sub(hn::LoadU(d, x + i), hn::Set(d, shift))), hn::Set(d, scale)), d, y + i);
  for (; i < n; ++i) y[i] = std::exp(x[i] - shift) * scale;
}

// The rows of states of one sample, with -infinity around the states.
template <class T>
struct States {
  ctc::Sample<T> sample;
  std::int64_t states, width;  // width: states, rounded up to kMargin
  T *alpha, *beta, *ahead, *next, *emitted, *skip, *norm;

  HWY_ATTR States(const ctc::Sample<T>& s, std::int64_t rows_of_alpha) : sample(s), states(2 * s.labels + 1) {
    const std::int64_t stride = ctc::state_stride(s.labels);
    width = stride - 2 * ctc::kMargin;
    std::fill_n(s.memory, (rows_of_alpha + ctc::kOtherRows) * stride, -std::numeric_limits<T>::infinity());
    T* row = s.memory + ctc::kMargin;
    alpha = row, row += rows_of_alpha * stride;
    T** const rows[ctc::kOtherRows] = {&beta, &ahead, &next, &emitted, &skip};
    for (T** r : rows) *r = row, row += stride;
    norm = row - ctc::kMargin;
    // A step may skip the blank between two different labels.
    for (std::int64_t i = 1; i < s.labels; ++i)
      if (s.label[i] != s.label[i - 1]) skip[2 * i + 1] = T{0};
    for (std::int64_t t = 0; t < s.time; ++t) norm[t] = log_sum_exp(s.logits + t * s.classes, s.classes);
  }

  // The log probabilities of the states' classes at step t.
  void emit(std::int64_t t) const {
    const T* row = sample.logits + t * sample.classes;
    const T blank = row[sample.classes - 1] - norm[t];
    for (std::int64_t s = 0; s < states; s += 2) emitted[s] = blank;
    for (std::int64_t i = 0; i < sample.labels; ++i) emitted[2 * i + 1] = row[sample.label[i]] - norm[t];
  }

  // sum = log(exp(a) + exp(b) + exp(c + may)), with_emitted = sum + emitted, state by state.
  HWY_ATTR void advance(const T* a, const T* b, const T* c, const T* may, T* sum, T* with_emitted) const {
    const hn::ScalableTag<T> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const auto lowest = hn::Neg(hn::Inf(d));
    for (std::int64_t s = 0; s < width; s += lanes) {
      const auto x = hn::LoadU(d, a + s), y = hn::LoadU(d, b + s);
      const auto z = hn::Add(hn::LoadU(d, c + s), hn::LoadU(d, may + s));
      const auto top = hn::Max(x, hn::Max(y, z));
      const auto none = hn::Eq(top, lowest);
      const auto shift = hn::IfThenElse(none, hn::Zero(d), top);
      const auto total =
          hn::Add(exp_of(d, hn::Sub(x, shift)), hn::Add(exp_of(d, hn::Sub(y, shift)), exp_of(d, hn::Sub(z, shift))));
      const auto log = hn::Add(hn::Log(d, hn::IfThenElse(none, hn::Set(d, T{1}), total)), shift);
      const auto result = hn::IfThenElse(none, lowest, log);
      hn::StoreU(result, d, sum + s);
      hn::StoreU(hn::Add(result, hn::LoadU(d, emitted + s)), d, with_emitted + s);
    }
  }
};

template <class T>
HWY_ATTR T log_add(T a, T b) {
  const T top = std::max(a, b);
  return top == -std::numeric_limits<T>::infinity() ? top : top + std::log1p(std::exp(std::min(a, b) - top));
}

// -log P. Keeps all rows of alpha if `kept`; otherwise two rows alternate.
template <class T>
HWY_ATTR T forward(const States<T>& x, bool kept) {
  const std::int64_t stride = ctc::state_stride(x.sample.labels), time = x.sample.time;
  if (time == 0) return T{0};  // the empty sequence of no labels
  auto row = [&](std::int64_t t) { return x.alpha + (kept ? t : t % 2) * stride; };
  x.emit(0);
  for (std::int64_t s = 0; s < std::min<std::int64_t>(2, x.states); ++s) row(0)[s] = x.emitted[s];
  for (std::int64_t t = 1; t < time; ++t) {
    x.emit(t);
    const T* before = row(t - 1);
    x.advance(before, before - 1, before - 2, x.skip, x.beta, row(t));
  }
  const T* last = row(time - 1);
  return -(x.states == 1 ? last[0] : log_add(last[x.states - 1], last[x.states - 2]));
}

template <class T>
HWY_ATTR void backward(const States<T>& x, T loss) {
  const std::int64_t stride = ctc::state_stride(x.sample.labels), classes = x.sample.classes;
  T *ahead = x.ahead, *next = x.next;
  std::fill_n(x.beta, x.width, -std::numeric_limits<T>::infinity());
  for (std::int64_t t = x.sample.time - 1; t >= 0; --t) {
    x.emit(t);
    if (t + 1 == x.sample.time) {
      for (std::int64_t s = std::max<std::int64_t>(0, x.states - 2); s < x.states; ++s) {
        x.beta[s] = T{0};
        next[s] = x.emitted[s];
      }
    } else {
      x.advance(ahead, ahead + 1, ahead + 2, x.skip + 2, x.beta, next);
    }
    std::swap(ahead, next);
    // Probability of each state at step t given the labels, times `scale`.
    T* likely = x.alpha + t * stride;
    for (std::int64_t s = 0; s < x.states; ++s) likely[s] += x.beta[s];
    exp_row(likely, -loss, x.sample.scale, likely, x.states);
    T* gradient = x.sample.gradient + t * classes;
    exp_row(x.sample.logits + t * classes, x.norm[t], x.sample.scale, gradient, classes);
    for (std::int64_t s = 0; s < x.states; s += 2) gradient[classes - 1] -= likely[s];
    for (std::int64_t i = 0; i < x.sample.labels; ++i) gradient[x.sample.label[i]] -= likely[2 * i + 1];
  }
}

template <class T>
HWY_ATTR T cost(const ctc::Sample<T>& sample) {
  const bool gradient = sample.gradient != nullptr;
  const States<T> states(sample, ctc::alpha_rows(sample.time, gradient));
  const T loss = forward(states, gradient);
  if (gradient) backward(states, loss);
  return loss;
}

float cost_f32(const ctc::Sample<float>& sample) { return cost(sample); }
double cost_f64(const ctc::Sample<double>& sample) { return cost(sample); }

}  // namespace HWY_NAMESPACE
}  // namespace syncline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "ops/ctc/lengths.h"
#include "ops/graph/op.h"
#include "ops/kernels/copy/bytes.h"
#include "ops/kernels/parallel.h"
#include "syncline/backend/core.h"
#include "syncline/backend/ctc.h"
#include "syncline/backend/math.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"

namespace syncline {
namespace {
HWY_EXPORT(cost_f32);
HWY_EXPORT(cost_f64);

float cost_of(const ctc::Sample<float>& sample) { return HWY_DYNAMIC_DISPATCH(cost_f32)(sample); }
double cost_of(const ctc::Sample<double>& sample) { return HWY_DYNAMIC_DISPATCH(cost_f64)(sample); }

enum Inputs { kLogits, kLabels, kInputLength, kLabelLength, kUpstream };

void check_operands(std::string_view op, std::span<const Meta> in) {
  ctc::check_logits(op, in[kLogits]);
  const Shape &labels = in[kLabels].shape, &logits = in[kLogits].shape;
  bool fit = labels.ndim() == 2;
  for (const int i : {kLabels, kInputLength, kLabelLength})
    fit = fit && in[static_cast<std::size_t>(i)].shape.ndim() >= 1 &&
          !sizes_differ(in[static_cast<std::size_t>(i)].shape[0], logits[0]);
  if (!fit)
    fail<ShapeError>(
        op, ": y_true ", labels, ", y_pred ", logits, ", input_length ", in[kInputLength].shape, " and label_length ",
        in[kLabelLength].shape,
        " do not fit together; give (samples, labels), (samples, time, classes) and lengths of (samples, 1)");
}

Placed place_samples(const PlaceArgs& args) {
  const bool split = std::any_of(args.at.begin(), args.at.end(), [](Placement p) { return p.is_split(0); });
  const Placement rows = Placement::split(0);
  return split ? Placed{std::vector<Placement>(args.in.size(), rows), {rows}} : gathered(args);
}

// Number of labels of sample i: the first number >= the blank ends them, as in TensorFlow.
std::int64_t labels_of(const KernelArgs& k, std::int64_t i) {
  const std::int32_t blank = static_cast<std::int32_t>(k.in_shape(kLogits)[2] - 1);
  const std::int32_t* label = k.input<std::int32_t>(kLabels) + i * k.in_shape(kLabels)[1];
  const std::int32_t* end = label + k.input<std::int32_t>(kLabelLength)[i];
  return std::find_if(label, end, [=](std::int32_t c) { return c >= blank; }) - label;
}

// Throws ValueError for samples without a cost, before the parallel work starts.
void check_values(std::string_view op, const KernelArgs& k) {
  const Shape& logits = k.in_shape(kLogits);
  const std::int64_t width = k.in_shape(kLabels)[1], classes = logits[2];
  ctc::check_lengths(op, "input_length", k, kInputLength, logits[1]);
  ctc::check_lengths(op, "label_length", k, kLabelLength, width);
  for (std::int64_t i = 0; i < logits[0]; ++i) {
    const std::int32_t* label = k.input<std::int32_t>(kLabels) + i * width;
    const std::int64_t given = k.input<std::int32_t>(kLabelLength)[i], time = k.input<std::int32_t>(kInputLength)[i];
    const std::int64_t labels = labels_of(k, i);
    std::int64_t needed = labels;
    for (std::int64_t j = 0; j < given; ++j) {
      const std::int64_t sample = k.slice.begin + i;
      if (label[j] < 0)
        fail<ValueError>(op, ": label ", label[j], " at (", sample, ", ", j, ") is negative; give class numbers");
      if (j > labels && label[j] < classes - 1)
        fail<ValueError>(op, ": label ", label[j], " at (", sample, ", ", j, ") follows ", label[labels],
                         ", which ends the labels: the last of the ", classes, " classes is the blank");
      needed += j > 0 && j < labels && label[j] == label[j - 1];
    }
    if (needed > time)
      fail<ValueError>(op, ": the ", labels, " labels of sample ", k.slice.begin + i, " need ", needed,
                       " time steps (one more between equal labels), but its input_length is ", time);
  }
}

double cost_of_sample(const Shape& logits, std::int64_t labels) {
  return static_cast<double>(logits[1]) * static_cast<double>(10 + logits[2] + 10 * labels);
}

template <class T>
void for_samples(const KernelArgs& k, bool gradient, const std::function<void(std::int64_t, ctc::Sample<T>&)>& f) {
  const Shape& logits = k.in_shape(kLogits);
  const std::int64_t width = k.in_shape(kLabels)[1], memory = ctc::sample_memory(logits[1], width, gradient);
  kernels::parallel_chunks(ctc::sample_chunks(logits[0], cost_of_sample(logits, width)),
                           [&](std::int64_t chunk, std::int64_t begin, std::int64_t end) {
                             for (std::int64_t i = begin; i < end; ++i) {
                               ctc::Sample<T> sample{.logits = k.input<T>(kLogits) + i * logits[1] * logits[2],
                                                     .time = k.input<std::int32_t>(kInputLength)[i],
                                                     .classes = logits[2],
                                                     .label = k.input<std::int32_t>(kLabels) + i * width,
                                                     .labels = labels_of(k, i),
                                                     .memory = static_cast<T*>(k.scratch) + chunk * memory,
                                                     .gradient = nullptr,
                                                     .scale = T{1}};
                               f(i, sample);
                             }
                           });
}

std::size_t scratch_of(std::span<const Meta> in, bool gradient) {
  const Shape& logits = in[kLogits].shape;
  const std::int64_t width = in[kLabels].shape[1];
  const std::int64_t chunks = ctc::sample_chunks(logits[0], cost_of_sample(logits, width)).count;
  return static_cast<std::size_t>(chunks * ctc::sample_memory(logits[1], width, gradient)) * size_of(in[kLogits].dtype);
}

// Inputs: logits; int32 labels, input_length and label_length. The lengths are (samples).
struct CtcCost : WithoutAttrs {
  static constexpr std::string_view kName = "ctc_batch_cost";
  static Meta infer(const Attrs&, std::span<const Meta> in) {
    check_operands(kName, in);
    return {in[kLogits].dtype, Shape{in[kLogits].shape[0]}};
  }
  static Placed place(const Attrs&, const PlaceArgs& args) { return place_samples(args); }
  static bool may_throw(const Attrs&, std::span<const Meta>) { return true; }
  static std::size_t scratch(const Attrs&, std::span<const Meta> in, std::span<const Meta>) {
    return scratch_of(in, /*gradient=*/false);
  }
  static void run(const Attrs&, const KernelArgs& k) {
    check_values(kName, k);
    with_floating(k.out_dtype(), [&]<class T>(T) {
      for_samples<T>(k, false, [&](std::int64_t i, ctc::Sample<T>& sample) { k.output<T>()[i] = cost_of(sample); });
    });
  }
  static std::vector<Expr> grad(const Attrs&, const Expr& y, const Expr& dy);
};

struct CtcCostGrad : WithoutAttrs {
  static constexpr std::string_view kName = "ctc_batch_cost_grad";
  static Meta infer(const Attrs&, std::span<const Meta> in) {
    check_operands(kName, in);
    return in[kLogits];
  }
  static Placed place(const Attrs&, const PlaceArgs& args) { return place_samples(args); }
  static bool may_throw(const Attrs&, std::span<const Meta>) { return true; }
  static std::size_t scratch(const Attrs&, std::span<const Meta> in, std::span<const Meta>) {
    return scratch_of(in, /*gradient=*/true);
  }
  static void run(const Attrs&, const KernelArgs& k) {
    check_values(kName, k);
    kernels::clear_output(k);
    const std::int64_t size = k.out_shape()[1] * k.out_shape()[2];
    with_floating(k.out_dtype(), [&]<class T>(T) {
      for_samples<T>(k, true, [&](std::int64_t i, ctc::Sample<T>& sample) {
        sample.gradient = k.output<T>() + i * size;
        sample.scale = k.input<T>(kUpstream)[i];
        cost_of(sample);
      });
    });
  }
  static std::vector<Expr> grad(const Attrs&, const Expr& y, const Expr& dy);
};

// The derivative of the cost's gradient by the logits, which only refuses to be computed. Loops and branches
// differentiate by more than they need, so it must not be refused earlier.
struct CtcSecondDerivative : WithoutAttrs {
  static constexpr std::string_view kName = "ctc_second_derivative";
  static Meta infer(const Attrs&, std::span<const Meta> in) { return in[0]; }
  static Placed place(const Attrs&, const PlaceArgs& args) { return place_elementwise(args); }
  static bool may_throw(const Attrs&, std::span<const Meta>) { return true; }
  static void run(const Attrs&, const KernelArgs&) {
    fail<ValueError>(
        CtcCost::kName,
        " has no second derivative: compute no gradient of its gradient, or hold that fixed by stop_gradient");
  }
  static constexpr NoGradient grad{"it is refused"};
};

// The gradient is linear in the upstream gradient, the last input.
std::vector<Expr> CtcCostGrad::grad(const Attrs&, const Expr& y, const Expr& dy) {
  std::vector<Expr> inputs = y.node().inputs;
  inputs[kUpstream] = ones_like(inputs[kUpstream]);
  return {apply<CtcSecondDerivative>({dy}), {}, {}, {}, sum(apply<CtcCostGrad>(inputs) * dy, {1, 2})};
}

std::vector<Expr> CtcCost::grad(const Attrs&, const Expr& y, const Expr& dy) {
  std::vector<Expr> inputs = y.node().inputs;
  inputs.push_back(dy);
  return {apply<CtcCostGrad>(inputs), {}, {}, {}};
}

SYNCLINE_REGISTER_OP(CtcCost)
SYNCLINE_REGISTER_OP(CtcCostGrad)
SYNCLINE_REGISTER_OP(CtcSecondDerivative)

}  // namespace

Expr ctc_batch_cost(const Expr& y_true, const Expr& y_pred, const Expr& input_length, const Expr& label_length,
                    const CtcOptions& options) {
  constexpr std::string_view kName = CtcCost::kName;
  if (y_true.dtype() == DType::kBool) fail<DTypeError>(kName, ": y_true is bool; it must hold class numbers");
  ctc::check_logits(kName, y_pred.meta());
  const Expr cost = apply<CtcCost>({log(y_pred + options.epsilon), cast(y_true, DType::kInt32),
                                    ctc::flat_lengths(kName, input_length), ctc::flat_lengths(kName, label_length)});
  return expand_dims(cost, 1);
}

}  // namespace syncline
#endif  // HWY_ONCE
