#include "runtime/schedule/memory.h"

#include <algorithm>

#include "base/alignment.h"
#include "ops/graph/leaf.h"
#include "syncline/error.h"

namespace syncline {

int Memory::add(Buffer buffer) {
  buffers_.push_back(buffer);
  return size() - 1;
}

int Memory::add_arena(std::int64_t bytes, int first, int last) {
  return add({.life = {static_cast<std::size_t>(bytes), first, last, 0}});
}

int Memory::of_variable(VariableState& state) {
  const auto [it, fresh] = variables_.try_emplace(&state, size());
  if (fresh && state.shared() != nullptr) add({.kind = Buffer::kVariable, .variable = &state});
  else if (fresh) add({.kind = Buffer::kFixed, .address = state.value().raw()});
  return it->second;
}

int Memory::next_of_variable(VariableState& state) {
  const auto [it, fresh] = next_.try_emplace(&state, size());
  if (fresh) add({.kind = Buffer::kVariable, .variable = &state, .next = true});
  return it->second;
}

int Memory::of_constant(const Expr& constant) {
  const Array& array = constant.attrs<Constant::Attrs>().value->array;
  return add({.kind = Buffer::kFixed, .address = const_cast<std::byte*>(array.raw())});  // never written
}

Location Memory::locate(const Expr& value, const LocalView& local) const {
  const auto place = local.resolve(value);
  const Location* found = location_.find(place.base);
  if (found == nullptr) fail<InternalError>("plan: ", place.base.op().name, " has no memory");
  return {found->buffer, found->offset + place.offset};
}

std::size_t Memory::first_shared_byte(std::span<const Location> places) const {
  std::size_t first = SIZE_MAX;
  for (const Location& at : places)
    if (const Buffer& buffer = (*this)[at.buffer]; buffer.kind == Buffer::kShared)
      first = std::min(first, buffer.life.offset);
  return first;
}

// Offsets must be equal on all ranks, but lifetimes may differ: buffers do not share memory.
void Memory::place_shared(bool leased) {
  for (Buffer& buffer : buffers_) {
    if (buffer.kind != Buffer::kShared || buffer.leased != leased) continue;
    buffer.life.offset = shared_bytes_;
    shared_bytes_ += aligned(buffer.life.bytes);
  }
}

void Memory::place() {
  place_shared(true);
  leased_bytes_ = shared_bytes_;
  place_shared(false);
  std::vector<Lifetime> lives;
  for (const Buffer& buffer : buffers_) lives.push_back(buffer.kind == Buffer::kArena ? buffer.life : Lifetime{});
  arena_bytes_ = place_in_arena(lives);
  // Keeps the requested bytes, at whose end a scratch has its guard; place_in_arena has rounded those of `lives`.
  for (std::size_t i = 0; i < lives.size(); ++i)
    if (buffers_[i].kind == Buffer::kArena) buffers_[i].life.offset = lives[i].offset;
}

}  // namespace syncline
