// Memory: where each value of a schedule lies. Lives are counted in places of tasks.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/placement/local.h"
#include "runtime/schedule/arena.h"
#include "syncline/backend/variable.h"

namespace syncline {

struct Location {
  int buffer = -1;
  std::int64_t offset = 0;  // bytes
  friend bool operator==(const Location&, const Location&) = default;
};

struct Buffer {
  enum Kind : std::uint8_t { kArena, kShared, kFixed, kFeed } kind = kArena;
  Lifetime life{};          // kArena; kShared: its bytes and offset
  void* address = nullptr;  // kFixed: a variable's or, only ever read, a constant's
  std::size_t feed = 0;     // kFeed: its number, and where this rank's rows begin in it
  std::size_t feed_offset = 0;
  bool leased = false;  // kShared: other ranks read it
};

class Memory {
 public:
  int add(Buffer buffer);
  int add_arena(std::int64_t bytes, int first, int last);
  int of_variable(VariableState& state);
  int of_constant(const Expr& constant);

  Buffer& operator[](int buffer) { return buffers_[static_cast<std::size_t>(buffer)]; }
  const Buffer& operator[](int buffer) const { return buffers_[static_cast<std::size_t>(buffer)]; }
  int size() const { return static_cast<int>(buffers_.size()); }

  bool has(const Expr& base) const { return location_.contains(base); }
  void put(const Expr& base, Location at) { location_[base] = at; }
  // Of a value or a view. Throws InternalError if it has no memory.
  Location locate(const Expr& value, const LocalView& local) const;
  // Where the first region of shared memory that has one of these begins, which is equal on all ranks; SIZE_MAX if none
  // lies there.
  std::size_t first_shared_byte(std::span<const Location> places) const;

  // Gives the buffers of the arena and of the shared memory their offsets.
  void place();
  std::size_t arena_bytes() const { return arena_bytes_; }
  // Of the shared memory, and of its beginning, which is leased.
  std::size_t shared_bytes() const { return shared_bytes_; }
  std::size_t leased_bytes() const { return leased_bytes_; }

 private:
  void place_shared(bool leased);

  std::vector<Buffer> buffers_;
  std::unordered_map<Expr, Location, ExprHash> location_;
  std::unordered_map<const VariableState*, int> variables_;
  std::size_t arena_bytes_ = 0, shared_bytes_ = 0, leased_bytes_ = 0;
};

}  // namespace syncline
