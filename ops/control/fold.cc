// map_fn, foldl, foldr: loops over the first axis.
#include <algorithm>

#include "ops/control/loop_build.h"
#include "syncline/backend/control.h"
#include "syncline/backend/math.h"
#include "syncline/backend/shape.h"

namespace syncline {
namespace {

using Exprs = std::vector<Expr>;

void check_elems(std::string_view op, const Exprs& elems) {
  if (elems.empty()) fail<ValueError>(op, ": there are no elems; give at least one tensor");
  std::int64_t length = kUnknown;
  for (const Expr& e : elems) {
    if (e.ndim() == 0) fail<ShapeError>(op, ": an elem is a scalar; elems must have a first axis to iterate over");
    if (length >= 0 && e.shape()[0] >= 0 && e.shape()[0] != length)
      fail<ShapeError>(op, ": elems have ", length, " and ", e.shape()[0],
                       " rows; they must have the same number of rows");
    length = std::max(length, e.shape()[0]);
  }
}

// x without its last element if `last`, otherwise without its first.
Expr without_one(const Expr& x, bool last) {
  std::vector<std::int64_t> none(static_cast<std::size_t>(x.ndim()), 0), one = none;
  one[0] = 1;
  return last ? trim(x, none, one) : trim(x, one, none);
}

Expr first_of(const Expr& x) { return squeeze(slice_axis(x, 0, 0, 1), 0); }

Expr last_of(const Expr& x) {
  const std::int64_t size = x.shape()[0];
  return size < 0 ? first_of(reverse(x, {0})) : squeeze(slice_axis(x, 0, size - 1, 1), 0);
}

Exprs fold(std::string_view op, const FoldFunctionOfMany& fn, Exprs elems, Exprs initializers, bool from_last) {
  check_elems(op, elems);
  if (initializers.empty()) {
    for (Expr& e : elems) {
      if (e.shape()[0] == 0)
        fail<ShapeError>(op, ": elems of shape ", e.shape(), " have no rows, and no initializer is given; give one");
      initializers.push_back(from_last ? last_of(e) : first_of(e));
      e = without_one(e, from_last);
    }
  }
  LoopParts parts;
  parts.reverse = from_last;
  parts.sequences = std::move(elems);
  parts.initial_states = std::move(initializers);
  for (const Expr& e : parts.sequences) parts.elements.push_back(element_of(e));
  for (const Expr& e : parts.initial_states) parts.states.push_back(stand_in(e));
  parts.next_states = fn(parts.states, parts.elements);
  if (parts.next_states.size() != parts.states.size())
    fail<ValueError>(op, ": fn takes ", parts.states.size(), " accumulators, but returns ", parts.next_states.size(),
                     "; it must return as many as it takes");
  const std::size_t count = parts.states.size();
  const Expr loop = make_loop(std::move(parts));
  Exprs result;
  for (std::size_t i = 0; i < count; ++i) result.emplace_back(loop.handle(), static_cast<int>(i));
  return result;
}

FoldFunctionOfMany of_many(const FoldFunction& fn) {
  return [&fn](const Exprs& accumulators, const Exprs& elements) { return Exprs{fn(accumulators[0], elements[0])}; };
}

Exprs optional_one(const Expr& e) { return e ? Exprs{e} : Exprs{}; }

}  // namespace

std::vector<Expr> map_fn(const MapFunctionOfMany& fn, const std::vector<Expr>& elems,
                         const std::vector<DType>& dtypes) {
  check_elems("map_fn", elems);
  LoopParts parts;
  parts.sequences = elems;
  for (const Expr& e : elems) parts.elements.push_back(element_of(e));
  const Exprs values = fn(parts.elements);
  if (values.empty()) fail<ValueError>("map_fn: fn returns nothing; it must return at least one tensor");
  if (!dtypes.empty() && dtypes.size() != values.size())
    fail<ValueError>("map_fn: ", dtypes.size(), " dtypes are given, but fn returns ", values.size(),
                     " tensors; give one dtype per tensor");
  for (std::size_t i = 0; i < values.size(); ++i)
    parts.residuals.push_back(
        {dtypes.empty() || dtypes[i] == values[i].dtype() ? values[i] : cast(values[i], dtypes[i])});
  const Expr loop = make_loop(std::move(parts));
  Exprs result;
  for (std::size_t i = 0; i < values.size(); ++i) result.emplace_back(loop.handle(), static_cast<int>(i));
  return result;
}

Expr map_fn(const MapFunction& fn, const Expr& elems, std::optional<DType> dtype) {
  const MapFunctionOfMany of_one = [&](const Exprs& elements) { return Exprs{fn(elements[0])}; };
  return map_fn(of_one, Exprs{elems}, dtype ? std::vector{*dtype} : std::vector<DType>{})[0];
}

std::vector<Expr> foldl(const FoldFunctionOfMany& fn, const std::vector<Expr>& elems,
                        const std::vector<Expr>& initializers) {
  return fold("foldl", fn, elems, initializers, /*from_last=*/false);
}

std::vector<Expr> foldr(const FoldFunctionOfMany& fn, const std::vector<Expr>& elems,
                        const std::vector<Expr>& initializers) {
  return fold("foldr", fn, elems, initializers, /*from_last=*/true);
}

Expr foldl(const FoldFunction& fn, const Expr& elems, const Expr& initializer) {
  return foldl(of_many(fn), Exprs{elems}, optional_one(initializer))[0];
}

Expr foldr(const FoldFunction& fn, const Expr& elems, const Expr& initializer) {
  return foldr(of_many(fn), Exprs{elems}, optional_one(initializer))[0];
}

}  // namespace syncline
