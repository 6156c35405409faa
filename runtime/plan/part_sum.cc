#include "runtime/plan/part_sum.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/alignment.h"
#include "base/convert.h"
#include "ops/kernels/copy/bytes.h"
#include "ops/kernels/parallel.h"
#include "ops/kernels/part_tree.h"

namespace syncline {
namespace {

std::size_t size_in_bytes(const Meta& meta) {
  return static_cast<std::size_t>(meta.shape.size()) * size_of(meta.dtype);
}

void add_elements(const Meta& meta, void* to, const void* from) {
  with_dtype(meta.dtype, [&]<class T>(T) {
    auto* sums = static_cast<T*>(to);
    const auto* terms = static_cast<const T*>(from);
    const double cost = 3 * kernels::kNanosecondsPerByte * sizeof(T);
    kernels::parallel_for(meta.shape.size(), cost, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) sums[i] = static_cast<T>(wrapping(sums[i]) + wrapping(terms[i]));
    });
  });
}

}  // namespace

PartSum::PartSum(const OpDef& op, const void* attrs, std::span<const Meta> in, const Meta& out, std::vector<int> axes,
                 std::vector<std::int64_t> begin)
    : op_(op), attrs_(attrs), axes_(std::move(axes)), begin_(std::move(begin)), out_(out), pointers_(in.size()) {
  SYNCLINE_CHECK(begin_.size() > 2 && axes_.size() == in.size() && op_.run != nullptr);
  const auto take = [&](std::size_t bytes) { return std::exchange(scratch_bytes_, aligned(scratch_bytes_ + bytes)); };
  for (std::int64_t i = 1; i < kernels::sums_kept(static_cast<std::int64_t>(parts())); ++i) take(size_in_bytes(out));
  std::vector<std::size_t> copied(in.size());
  std::size_t op_scratch = 0;
  for (std::size_t part = 0; part < parts(); ++part) {
    std::vector<Meta> metas(in.begin(), in.end());
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (axes_[i] < 0) continue;
      std::int64_t& size = metas[i].shape[axes_[i]];
      size =
          elements_before(begin_[part + 1], begin_.back(), size) - elements_before(begin_[part], begin_.back(), size);
      if (metas[i].shape.product(0, axes_[i]) != 1) copied[i] = std::max(copied[i], size_in_bytes(metas[i]));
    }
    if (op_.scratch != nullptr) op_scratch = std::max(op_scratch, op_.scratch(attrs_, metas, {&out_, 1}, {}));
    in_.push_back(std::move(metas));
  }
  for (const std::size_t bytes : copied) copies_at_.push_back(take(bytes));
  op_scratch_at_ = take(op_scratch);
}

// The part's rows of an input: where they are, or copied one behind the other.
const void* PartSum::cut(std::size_t input, std::size_t part, const KernelArgs& args) const {
  const auto* from = static_cast<const std::byte*>(args.in[input]);
  const int axis = axes_[input];
  if (axis < 0) return from;
  const Shape& whole = args.in_meta[input].shape;
  const Shape& own = in_[part][input].shape;
  const std::int64_t before = whole.product(0, axis);
  const std::int64_t row =
      whole.product(axis + 1, whole.ndim()) * static_cast<std::int64_t>(size_of(args.in_meta[input].dtype));
  from += elements_before(begin_[part], begin_.back(), whole[axis]) * row;
  if (before == 1) return from;
  auto* to = static_cast<std::byte*>(args.scratch) + copies_at_[input];
  const std::int64_t run = own[axis] * row, stride = whole[axis] * row;
  kernels::parallel_for(before, kernels::kNanosecondsPerByte * static_cast<double>(run),
                        [&](std::int64_t begin, std::int64_t end) {
                          for (std::int64_t i = begin; i < end; ++i)
                            std::memcpy(to + i * run, from + i * stride, static_cast<std::size_t>(run));
                        });
  return to;
}

void PartSum::run(const KernelArgs& args) {
  auto* scratch = static_cast<std::byte*>(args.scratch);
  const auto place_of = [&](std::int64_t place) -> void* {
    return place == 0 ? args.out[0] : scratch + static_cast<std::size_t>(place - 1) * aligned(size_in_bytes(out_));
  };
  const auto compute = [&](std::int64_t part, std::int64_t place) {
    const auto p = static_cast<std::size_t>(part);
    for (std::size_t i = 0; i < pointers_.size(); ++i) pointers_[i] = cut(i, p, args);
    void* out = place_of(place);
    KernelArgs own = args;
    own.in = pointers_.data();
    own.out = &out;
    own.in_meta = in_[p];
    own.scratch = scratch + op_scratch_at_;
    own.slice = {};  // as for op_scratch: run and scratch must select the same algorithm
    op_.run(attrs_, own);
  };
  kernels::sum_parts(static_cast<std::int64_t>(parts()), compute,
                     [&](std::int64_t to, std::int64_t from) { add_elements(out_, place_of(to), place_of(from)); });
}

}  // namespace syncline
