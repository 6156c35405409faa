#include "runtime/placement/local.h"

#include "runtime/placement/collectives.h"

namespace syncline {

Placement LocalView::placement(const Expr& e) const {
  const auto found = placement_.find(e);
  return found == placement_.end() ? Placement::replicated() : found->second;
}

Meta LocalView::meta(const Expr& e) const {
  Meta meta = e.meta();
  const Placement p = placement(e);
  if (p.is_split()) meta.shape[p.axis] = shares_.own_size(meta.shape[p.axis]);
  return meta;
}

std::int64_t LocalView::bytes(const Expr& e) const {
  return meta(e).shape.size() * static_cast<std::int64_t>(size_of(e.dtype()));
}

Slice LocalView::slice(const Expr& e) const {
  const Placement p = placement(e);
  if (!p.is_split()) return {.axis = 0, .begin = 0, .size = e.ndim() > 0 ? e.shape()[0] : 1};
  return {.axis = p.axis, .begin = shares_.own_begin(e.shape()[p.axis]), .size = e.shape()[p.axis]};
}

bool LocalView::is_view(const Expr& e) const {
  if (e.op().view) return true;
  if (!e.is<OwnRows>()) return false;
  return e.shape().product(0, e.attrs<OwnRows::Attrs>().axis) == 1;
}

LocalView::Place LocalView::resolve(const Expr& e) const {
  Place place{e, 0};
  while (is_view(place.base)) {
    const Expr& view = place.base;
    if (view.is<OwnRows>()) {
      const auto& a = view.attrs<OwnRows::Attrs>();
      place.offset +=
          a.begin * view.shape().product(a.axis + 1, view.ndim()) * static_cast<std::int64_t>(size_of(view.dtype()));
    }
    place.base = Expr(view.input(0));
  }
  return place;
}

}  // namespace syncline
