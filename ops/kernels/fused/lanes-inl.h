// Loops over blocks of elementwise ops. Highway's foreach_target compiles this file once per instruction set.
//
// A file of elementwise ops defines one small struct per op inside HWY_NAMESPACE. Its call operator maps numbers to a
// number (`plain_block_of`, `comparing_block_of`) or vectors to a vector (`floating_block`). Run-time dispatch selects
// the table.
#if defined(SYNCLINE_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SYNCLINE_LANES_INL_H_
#undef SYNCLINE_LANES_INL_H_
#else
#define SYNCLINE_LANES_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <cstring>
#include <string_view>
#include <utility>

#include "ops/graph/op.h"
#include "syncline/dtype.h"

HWY_BEFORE_NAMESPACE();
namespace syncline {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Calls step for each full vector, then on zero-padded copies of the remaining inputs.
template <int kInputs, class T, class Out, class Step>
HWY_INLINE void for_blocks(const void* const* in, void* out, std::int64_t n, Step step) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const T* x[kInputs];
  for (int i = 0; i < kInputs; ++i) x[i] = static_cast<const T*>(in[i]);
  Out* y = static_cast<Out*>(out);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const T* at[kInputs];
    for (int k = 0; k < kInputs; ++k) at[k] = x[k] + i;
    step(d, at, y + i);
  }
  if (i == n) return;
  alignas(64) T tail[kInputs][HWY_MAX_BYTES / sizeof(T)] = {};
  alignas(64) Out result[HWY_MAX_BYTES / sizeof(T)];
  const T* at[kInputs];
  for (int k = 0; k < kInputs; ++k) {
    std::memcpy(tail[k], x[k] + i, static_cast<std::size_t>(n - i) * sizeof(T));
    at[k] = tail[k];
  }
  step(d, at, result);
  std::memcpy(y + i, result, static_cast<std::size_t>(n - i) * sizeof(Out));
}

template <int kInputs, class T, class F>
void value_block(const void* const* in, void* out, std::int64_t n) {
  const F f;
  for_blocks<kInputs, T, T>(in, out, n, [&](auto d, const T* const* x, T* y) HWY_ATTR {
    if constexpr (kInputs == 1) hn::StoreU(f(d, hn::LoadU(d, x[0])), d, y);
    else hn::StoreU(f(d, hn::LoadU(d, x[0]), hn::LoadU(d, x[1])), d, y);
  });
}

// A plain loop that the compiler vectorizes: y[i] = f(x0[i], x1[i], ...). The output may be one of the inputs.
template <class F, class Out, class... In, std::size_t... k>
HWY_INLINE HWY_ATTR void plain_loop(const F& f, const void* const* in, Out* y, std::int64_t n,
                                    std::index_sequence<k...>) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) y[i] = f(static_cast<const In*>(in[k])[i]...);
}

template <class F, class Out, class... In>
HWY_ATTR void plain_block(const void* const* in, void* out, std::int64_t n) {
  plain_loop<F, Out, In...>(F(), in, static_cast<Out*>(out), n, std::index_sequence_for<In...>{});
}

// e^x for every x. hn::Exp supports only finite x without overflow.
template <class D, class V>
HWY_INLINE HWY_ATTR V exp_of(D d, V x) {
  using T = hn::TFromD<D>;
  const auto limit = hn::Set(d, sizeof(T) == 4 ? static_cast<T>(88.72283905206835) : static_cast<T>(709.782712893384));
  V y = hn::Exp(d, hn::Min(x, limit));
  y = hn::IfThenElse(hn::Gt(x, limit), hn::Inf(d), y);
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

// (T, T, ...) -> T for every dtype, with kInputs inputs.
template <class F, int kInputs>
BlockFn plain_block_of(DType dtype) {
  return with_dtype(dtype, []<class T>(T) -> BlockFn {
    if constexpr (kInputs == 1) return &plain_block<F, T, T>;
    else return &plain_block<F, T, T, T>;
  });
}

// (T, T) -> bool for every dtype.
template <class F>
BlockFn comparing_block_of(DType dtype) {
  return with_dtype(dtype, []<class T>(T) -> BlockFn { return &plain_block<F, bool, T, T>; });
}

template <int kInputs, class F>
BlockFn floating_block(DType dtype) {
  return dtype == DType::kFloat32 ? &value_block<kInputs, float, F> : &value_block<kInputs, double, F>;
}

// One row of the block table of a file.
struct NamedBlock {
  std::string_view name;
  BlockFn (*of)(DType);
};

template <std::size_t kCount>
BlockFn find_block(const NamedBlock (&table)[kCount], std::string_view name, DType dtype) {
  for (const NamedBlock& row : table)
    if (row.name == name) return row.of(dtype);
  return nullptr;
}

}  // namespace HWY_NAMESPACE
}  // namespace syncline
HWY_AFTER_NAMESPACE();

#endif  // SYNCLINE_LANES_INL_H_
