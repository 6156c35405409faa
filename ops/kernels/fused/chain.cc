// Interprets the links of a chain. A link costs one jump per eight vectors, much less than the loads and stores that it
// saves.
#include "ops/kernels/fused/chain.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/kernels/fused/chain.cc"
#include <hwy/foreach_target.h>
// foreach_target.h must come first
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "ops/kernels/fused/curves-inl.h"
#include "ops/kernels/fused/lanes-inl.h"

// The ops by name, whether they support float64 (its sigmoid and tanh are too long to inline for every vector), and the
// time that they take in additions.
#ifndef SYNCLINE_CHAIN_OPS
// clang-format off
#define SYNCLINE_CHAIN_OPS(BINARY, UNARY, COMPARISON, SELECT)                           \
  BINARY(add, true, 1) BINARY(sub, true, 1) BINARY(mul, true, 1) BINARY(div, true, 2)   \
  BINARY(maximum, true, 1) BINARY(minimum, true, 1)                                     \
  BINARY(sigmoid_gradient, true, 1) BINARY(tanh_gradient, true, 1)                      \
  UNARY(neg, true, 1) UNARY(square, true, 1) UNARY(sqrt, true, 2) UNARY(relu, true, 1)  \
  UNARY(sigmoid, false, 8) UNARY(tanh, false, 8)                                        \
  COMPARISON(less) COMPARISON(less_equal) COMPARISON(greater) COMPARISON(greater_equal) \
  SELECT(select)
// clang-format on

namespace syncline::kernels {
enum ChainOp : std::uint8_t {
#define SYNCLINE_CHAIN_CODE(name, ...) op_##name,
  SYNCLINE_CHAIN_OPS(SYNCLINE_CHAIN_CODE, SYNCLINE_CHAIN_CODE, SYNCLINE_CHAIN_CODE, SYNCLINE_CHAIN_CODE)
#undef SYNCLINE_CHAIN_CODE
};
inline constexpr int kBesides = 10;
constexpr int code_of(ChainOp op, Beside beside) { return op * kBesides + static_cast<int>(beside); }
// The codes of the ops that give or take a mask are the last.
inline constexpr int kFirstMask = code_of(op_less, Beside::kNothing);
}  // namespace syncline::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace syncline {
namespace HWY_NAMESPACE {
using kernels::Beside;
using kernels::ChainLink;
using kernels::ChainOp;

// True if hn::Max and hn::Min give their second operand where one is NaN or both are zeros, as x86's instructions do.
constexpr bool kExtremesGiveSecond = HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128;

// Must give the same bits as the loops of ops/math and ops/nn.
struct Chain_add {
  template <class D, class V>
  HWY_INLINE HWY_ATTR V operator()(D, V x, V y) const {
    return hn::Add(x, y);
  }
};
struct Chain_sub {
  template <class D, class V>
  HWY_INLINE HWY_ATTR V operator()(D, V x, V y) const {
    return hn::Sub(x, y);
  }
};
struct Chain_mul {
  template <class D, class V>
  HWY_INLINE HWY_ATTR V operator()(D, V x, V y) const {
    return hn::Mul(x, y);
  }
};
struct Chain_div {
  template <class D, class V>
  HWY_INLINE HWY_ATTR V operator()(D, V x, V y) const {
    return hn::Div(x, y);
  }
};
struct Chain_maximum {
  template <class D, class V>
  HWY_INLINE HWY_ATTR V operator()(D, V x, V y) const {
    if constexpr (kExtremesGiveSecond) return hn::IfThenElse(hn::IsNaN(x), x, hn::Max(x, y));
    else return hn::IfThenElse(hn::Or(hn::Gt(x, y), hn::IsNaN(x)), x, y);
  }
};
struct Chain_minimum {
  template <class D, class V>
  HWY_INLINE HWY_ATTR V operator()(D, V x, V y) const {
    if constexpr (kExtremesGiveSecond) return hn::IfThenElse(hn::IsNaN(x), x, hn::Min(x, y));
    else return hn::IfThenElse(hn::Or(hn::Lt(x, y), hn::IsNaN(x)), x, y);
  }
};
struct Chain_neg {
  template <class D, class V>
  HWY_INLINE HWY_ATTR V operator()(D, V x) const {
    return hn::Neg(x);
  }
};
struct Chain_square {
  template <class D, class V>
  HWY_INLINE HWY_ATTR V operator()(D, V x) const {
    return hn::Mul(x, x);
  }
};
struct Chain_relu {
  template <class D, class V>
  HWY_INLINE HWY_ATTR V operator()(D d, V x) const {
    if constexpr (kExtremesGiveSecond) return hn::Max(hn::Zero(d), x);
    else return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x);
  }
};
#define SYNCLINE_CHAIN_MASK(name, Compare)                  \
  struct Chain_##name {                                     \
    template <class D, class V>                             \
    HWY_INLINE HWY_ATTR V operator()(D d, V x, V y) const { \
      return hn::VecFromMask(d, hn::Compare(x, y));         \
    }                                                       \
  };
SYNCLINE_CHAIN_MASK(less, Lt)
SYNCLINE_CHAIN_MASK(less_equal, Le)
SYNCLINE_CHAIN_MASK(greater, Gt)
SYNCLINE_CHAIN_MASK(greater_equal, Ge)
#undef SYNCLINE_CHAIN_MASK
struct Chain_select {
  template <class D, class V>
  HWY_INLINE HWY_ATTR V operator()(D, V mask, V x, V y) const {
    return hn::IfThenElse(hn::MaskFromVec(mask), x, y);
  }
};
using Chain_sqrt = SqrtF;
using Chain_sigmoid = SigmoidF;
using Chain_tanh = TanhF;
using Chain_sigmoid_gradient = SigmoidGradientF;
using Chain_tanh_gradient = TanhGradientF;

// Vector k of an operand.
template <bool kIsNumber, class D, class T>
HWY_INLINE HWY_ATTR auto load(D d, const T* operand, std::int64_t at, std::size_t k) {
  if constexpr (kIsNumber) return hn::Set(d, *operand);
  else return hn::LoadU(d, operand + at + static_cast<std::int64_t>(k * hn::Lanes(d)));
}

template <class F, Beside kBeside, class D, class T, class V, std::size_t... k>
HWY_INLINE HWY_ATTR void link(D d, const ChainLink& step, std::int64_t at, V* value, std::index_sequence<k...>) {
  const F f{};
  const T *x = static_cast<const T*>(step.x), *y = static_cast<const T*>(step.y);
  constexpr bool kNumber = kBeside == Beside::kNumber || kBeside == Beside::kNumberFirst;
  constexpr bool kThen = kBeside == Beside::kNumberBlock || kBeside == Beside::kNumbers;
  constexpr bool kElse = kBeside == Beside::kBlockNumber || kBeside == Beside::kNumbers;
  if constexpr (kBeside == Beside::kNothing) {
    ((value[k] = f(d, value[k])), ...);
  } else if constexpr (kBeside == Beside::kItself) {
    ((value[k] = f(d, value[k], value[k])), ...);
  } else if constexpr (kBeside == Beside::kBlock || kBeside == Beside::kNumber) {
    ((value[k] = f(d, value[k], load<kNumber>(d, x, at, k))), ...);
  } else if constexpr (kBeside == Beside::kBlockFirst || kBeside == Beside::kNumberFirst) {
    ((value[k] = f(d, load<kNumber>(d, x, at, k), value[k])), ...);
  } else {
    ((value[k] = f(d, value[k], load<kThen>(d, x, at, k), load<kElse>(d, y, at, k))), ...);
  }
}

// kMasks: the chain has comparisons. Their cases cost the others registers, about 4 % of the time of a GELU.
template <bool kMasks, class D, class T, class V, std::size_t... k>
HWY_INLINE HWY_ATTR void apply(D d, const ChainLink& step, std::int64_t at, V* value, std::index_sequence<k...> all) {
  switch (step.code) {
#define SYNCLINE_CHAIN_CASE(name, kBeside)                                                               \
  case kernels::code_of(kernels::op_##name, Beside::kBeside):                                            \
    if constexpr (kMasks || kernels::code_of(kernels::op_##name, Beside::kBeside) < kernels::kFirstMask) \
      link<Chain_##name, Beside::kBeside, D, T>(d, step, at, value, all);                                \
    break;
#define SYNCLINE_CHAIN_BINARY(name, ...)  \
  SYNCLINE_CHAIN_CASE(name, kBlock)       \
  SYNCLINE_CHAIN_CASE(name, kBlockFirst)  \
  SYNCLINE_CHAIN_CASE(name, kNumber)      \
  SYNCLINE_CHAIN_CASE(name, kNumberFirst) \
  SYNCLINE_CHAIN_CASE(name, kItself)
#define SYNCLINE_CHAIN_UNARY(name, wide, additions)                        \
  case kernels::code_of(kernels::op_##name, Beside::kNothing):             \
    if constexpr (wide || sizeof(T) == sizeof(float))                      \
      link<Chain_##name, Beside::kNothing, D, T>(d, step, at, value, all); \
    break;
#define SYNCLINE_CHAIN_SELECT(name)       \
  SYNCLINE_CHAIN_CASE(name, kBlocks)      \
  SYNCLINE_CHAIN_CASE(name, kBlockNumber) \
  SYNCLINE_CHAIN_CASE(name, kNumberBlock) \
  SYNCLINE_CHAIN_CASE(name, kNumbers)
    SYNCLINE_CHAIN_OPS(SYNCLINE_CHAIN_BINARY, SYNCLINE_CHAIN_UNARY, SYNCLINE_CHAIN_BINARY, SYNCLINE_CHAIN_SELECT)
#undef SYNCLINE_CHAIN_CASE
#undef SYNCLINE_CHAIN_BINARY
#undef SYNCLINE_CHAIN_UNARY
#undef SYNCLINE_CHAIN_SELECT
    default: break;
  }
}

// Processes groups of sizeof...(k) vectors, starting at element `at`. Returns the first element that is not processed.
template <bool kMasks, class T, std::size_t... k>
HWY_ATTR std::int64_t run_groups(const T* first, std::span<const ChainLink> links, std::int64_t at, std::int64_t n,
                                 std::index_sequence<k...> all) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto group = static_cast<std::int64_t>(sizeof...(k)) * lanes;
  for (; at + group <= n; at += group) {
    hn::Vec<decltype(d)> value[] = {hn::LoadU(d, first + at + static_cast<std::int64_t>(k) * lanes)...};
    for (const ChainLink& step : links) {
      apply<kMasks, decltype(d), T>(d, step, at, value, all);
      if (step.store == nullptr) continue;
      T* y = static_cast<T*>(step.store) + at;
      (hn::StoreU(value[k], d, y + static_cast<std::int64_t>(k) * lanes), ...);
    }
  }
  return at;
}

// Processes the last elements, fewer than a vector, on zero-padded copies.
template <class T>
HWY_ATTR void run_tail(const T* first, std::span<const ChainLink> links, std::int64_t at, std::int64_t n) {
  constexpr std::size_t kLanes = HWY_MAX_BYTES / sizeof(T);
  const std::size_t bytes = static_cast<std::size_t>(n - at) * sizeof(T);
  alignas(64) T start[kLanes] = {}, operands[2 * kernels::kLongestChain][kLanes],
                results[kernels::kLongestChain][kLanes];
  std::memcpy(start, first + at, bytes);
  T(*operand)[kLanes] = operands;
  const auto copy = [&](const void*& block) {
    std::memset(*operand, 0, sizeof *operand);
    std::memcpy(*operand, static_cast<const T*>(block) + at, bytes);
    block = *operand++;
  };
  ChainLink steps[kernels::kLongestChain];
  for (std::size_t i = 0; i < links.size(); ++i) {
    steps[i] = links[i];
    const auto beside = static_cast<Beside>(links[i].code % kernels::kBesides);
    if (beside == Beside::kBlock || beside == Beside::kBlockFirst) copy(steps[i].x);
    if (beside == Beside::kBlocks || beside == Beside::kBlockNumber) copy(steps[i].x);
    if (beside == Beside::kBlocks || beside == Beside::kNumberBlock) copy(steps[i].y);
    if (links[i].store != nullptr) steps[i].store = results[i];
  }
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>{}));
  run_groups<true, T>(start, {steps, links.size()}, 0, lanes, std::make_index_sequence<1>{});
  for (std::size_t i = 0; i < links.size(); ++i)
    if (links[i].store != nullptr) std::memcpy(static_cast<T*>(links[i].store) + at, results[i], bytes);
}

template <class T>
HWY_ATTR void run_chain_of(const T* first, std::span<const ChainLink> links, std::int64_t n) {
  const bool masks =
      std::any_of(links.begin(), links.end(), [](const auto& link) { return link.code >= kernels::kFirstMask; });
  constexpr std::make_index_sequence<8> kGroup;
  std::int64_t at =
      masks ? run_groups<true, T>(first, links, 0, n, kGroup) : run_groups<false, T>(first, links, 0, n, kGroup);
  at = run_groups<true, T>(first, links, at, n, std::make_index_sequence<1>{});
  if (at < n) run_tail<T>(first, links, at, n);
}

void run_chain(DType dtype, const void* first, std::span<const ChainLink> links, std::int64_t n) {
  if (dtype == DType::kFloat32) run_chain_of(static_cast<const float*>(first), links, n);
  else run_chain_of(static_cast<const double*>(first), links, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace syncline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syncline::kernels {
namespace {

enum class Role { kValue, kMask, kSelect };

struct NamedChainOp {
  std::string_view name;
  bool wide;
  int additions;
  Role role;
};

constexpr NamedChainOp kOps[] = {
#define SYNCLINE_CHAIN_VALUE(name, wide, additions) {#name, wide, additions, Role::kValue},
#define SYNCLINE_CHAIN_MASK(name) {#name, true, 1, Role::kMask},
#define SYNCLINE_CHAIN_SELECT(name) {#name, true, 1, Role::kSelect},
    SYNCLINE_CHAIN_OPS(SYNCLINE_CHAIN_VALUE, SYNCLINE_CHAIN_VALUE, SYNCLINE_CHAIN_MASK, SYNCLINE_CHAIN_SELECT)
#undef SYNCLINE_CHAIN_VALUE
#undef SYNCLINE_CHAIN_MASK
#undef SYNCLINE_CHAIN_SELECT
};

const NamedChainOp* find_chain_op(std::string_view name) {
  const auto* found = std::find_if(std::begin(kOps), std::end(kOps), [&](const auto& op) { return op.name == name; });
  return found == std::end(kOps) ? nullptr : found;
}

bool has_role(std::string_view op, Role role) {
  const NamedChainOp* found = find_chain_op(op);
  return found != nullptr && found->role == role;
}

}  // namespace

HWY_EXPORT(run_chain);

bool is_chain_op(std::string_view op, DType dtype) {
  const NamedChainOp* found = find_chain_op(op);
  return found != nullptr && found->role == Role::kValue &&
         (dtype == DType::kFloat32 || (dtype == DType::kFloat64 && found->wide));
}

bool gives_mask(std::string_view op) { return has_role(op, Role::kMask); }
bool takes_mask(std::string_view op) { return has_role(op, Role::kSelect); }

int chain_op_additions(std::string_view op) { return find_chain_op(op)->additions; }

std::uint8_t chain_code(std::string_view op, Beside beside) {
  return static_cast<std::uint8_t>(code_of(static_cast<ChainOp>(find_chain_op(op) - kOps), beside));
}

void run_chain(DType dtype, const void* first, std::span<const ChainLink> links, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(run_chain)(dtype, first, links, n);
}

}  // namespace syncline::kernels
#endif  // HWY_ONCE
