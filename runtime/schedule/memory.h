// Memory: the buffers of a schedule and the location of each value in them. Lifetimes count task indices.
//
// Borrows the memory of variables and constants, which the graph owns. Not thread-safe.
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
  enum Kind : std::uint8_t { kArena, kShared, kFixed, kFeed, kVariable } kind = kArena;
  Lifetime life{};          // kArena; kShared uses only bytes and offset
  void* address = nullptr;  // kFixed: of a variable, or of a constant (read-only)
  std::size_t feed = 0;     // kFeed: its index, and the byte offset of this rank's rows
  std::size_t feed_offset = 0;
  bool leased = false;                // kShared: other ranks read it
  VariableState* variable = nullptr;  // kVariable: a shared variable
  bool next = false;                  // kVariable: the memory of its new value
};

class Memory {
 public:
  int add(Buffer buffer);
  int add_arena(std::int64_t bytes, int first, int last);
  int of_variable(VariableState& state);
  // Where a step writes a shared variable's new value. Both begin with VariableState::Shared::before.
  int next_of_variable(VariableState& state);
  int of_constant(const Expr& constant);

  Buffer& operator[](int buffer) { return buffers_[static_cast<std::size_t>(buffer)]; }
  const Buffer& operator[](int buffer) const { return buffers_[static_cast<std::size_t>(buffer)]; }
  int size() const { return static_cast<int>(buffers_.size()); }

  bool has(const Expr& base) const { return location_.contains(base); }
  void put(const Expr& base, Location at) { location_[base] = at; }
  // The location of a value or a view. Throws InternalError if it has no memory.
  Location locate(const Expr& value, const LocalView& local) const;
  // The offset in the shared memory.
  std::size_t shared_offset(const Location& at) const {
    return (*this)[at.buffer].life.offset + static_cast<std::size_t>(at.offset);
  }
  // The lowest offset of the shared buffers among `places`; SIZE_MAX if none is shared. Equal on all ranks.
  std::size_t first_shared_byte(std::span<const Location> places) const;

  // Sets the offsets of arena and shared buffers.
  void place();
  std::size_t arena_bytes() const { return arena_bytes_; }
  // Bytes of the shared memory, and of its leased part at the beginning.
  std::size_t shared_bytes() const { return shared_bytes_; }
  std::size_t leased_bytes() const { return leased_bytes_; }

 private:
  void place_shared(bool leased);

  std::vector<Buffer> buffers_;
  ValueMap<Location> location_;
  std::unordered_map<const VariableState*, int> variables_, next_;
  std::size_t arena_bytes_ = 0, shared_bytes_ = 0, leased_bytes_ = 0;
};

}  // namespace syncline
