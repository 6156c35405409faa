#include "runtime/placement/local.h"

#include "runtime/placement/collectives.h"

namespace syncline {

Placement LocalView::placement(const Expr& e) const { return placement_.value_or(e, Placement::replicated()); }

Meta LocalView::meta(const Expr& e) const {
  Meta meta = e.meta();
  const Placement p = placement(e);
  if (p.is_split()) meta.shape[p.axis] = shares_.own_size(meta.shape[p.axis], p.rows);
  return meta;
}

std::vector<Meta> LocalView::metas(std::span<const Expr> values) const {
  std::vector<Meta> metas;
  metas.reserve(values.size());
  for (const Expr& value : values) metas.push_back(meta(value));
  return metas;
}

std::int64_t LocalView::bytes(const Expr& e) const {
  return meta(e).shape.size() * static_cast<std::int64_t>(size_of(e.dtype()));
}

OutputSlice LocalView::slice(const Expr& e) const {
  const Placement p = placement(e);
  if (!p.is_split()) return {.axis = 0, .begin = 0, .size = e.ndim() > 0 ? e.shape()[0] : 1};
  return {.axis = p.axis, .begin = shares_.own_begin(e.shape()[p.axis], p.rows), .size = e.shape()[p.axis]};
}

std::vector<std::int64_t> LocalView::elements_by_rank(const Expr& part) const {
  const Placement at = placement(part);
  const std::int64_t size = part.shape()[at.axis], row = size == 0 ? 0 : part.shape().size() / size;
  std::vector<std::int64_t> counts;
  for (int r = 0; r < shares_.ranks(); ++r)
    counts.push_back((shares_.at(r + 1, size, at.rows) - shares_.at(r, size, at.rows)) * row);
  return counts;
}

std::int64_t LocalView::bytes_before(const Expr& part) const {
  const OutputSlice own = slice(part);
  const std::int64_t row = own.size == 0 ? 0 : part.shape().size() / own.size;
  return own.begin * row * static_cast<std::int64_t>(size_of(part.dtype()));
}

bool LocalView::is_view(const Expr& e) const {
  if (e.op().view) return true;
  if (!e.is<OwnRows>()) return false;
  return e.shape().product(0, e.attrs<OwnRows::Attrs>().axis) == 1;
}

LocalView::Place LocalView::resolve(const Expr& e) const {
  const Expr* base = &e;
  std::int64_t offset = 0;
  for (; is_view(*base); base = &base->input(0)) {
    if (!base->is<OwnRows>()) continue;
    const auto& a = base->attrs<OwnRows::Attrs>();
    offset +=
        a.begin * base->shape().product(a.axis + 1, base->ndim()) * static_cast<std::int64_t>(size_of(base->dtype()));
  }
  return {*base, offset};
}

}  // namespace syncline
