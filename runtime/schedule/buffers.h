// Which memory each value of a plan lives in. An output may take over the buffer of an operand that ends there; a
// variable's new value is written straight into the variable where nobody reads the old one any more; a bucket's
// elements lie side by side.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/local.h"
#include "runtime/plan.h"
#include "runtime/schedule/arena.h"
#include "runtime/schedule/tasks.h"

namespace syncline {

struct Location {
  int buffer = -1;
  std::int64_t offset = 0;  // bytes
  friend bool operator==(const Location&, const Location&) = default;
};

struct Buffer {
  enum Kind : std::uint8_t { kArena, kShared, kFixed, kFeed } kind = kArena;
  Lifetime life;            // kArena; kShared: its bytes and offset
  void* address = nullptr;  // kFixed: a variable's or a constant's
  std::size_t feed = 0;     // kFeed: its number, and where this rank's rows begin in it
  std::size_t feed_offset = 0;
  bool lent = false;  // kShared: other ranks read it
};

class Buffers {
 public:
  // `roots`: the request's outputs, then the values of its updates. Decides everything that can be decided beforehand.
  Buffers(const LowerRequest& request, const std::vector<Expr>& roots, const std::vector<Task>& tasks,
          const LocalView& local);

  // Throws ValueError for a placeholder that is not among the feeds.
  Location locate(const Expr& value);
  // Memory for one task alone.
  Location scratch(std::size_t bytes, int task);
  Location variable(VariableState& state) { return {variable_buffer(state), 0}; }
  std::size_t bytes_of(int buffer) const { return buffers_[static_cast<std::size_t>(buffer)].life.bytes; }

  void lend(int buffer) { buffers_[static_cast<std::size_t>(buffer)].lent = true; }

  // Gives the buffers of the arena and of the shared memory their offsets; returns the arena's size.
  std::size_t place();
  // Of the memory of kShared, and of its beginning, which is lent.
  std::size_t shared_bytes() const { return shared_bytes_; }
  std::size_t lent_bytes() const { return lent_bytes_; }
  // Where the first region that has one of these begins there, which is equal on all ranks; SIZE_MAX if none lies
  // there.
  std::size_t first_shared_byte(std::span<const Location> places) const;
  const Buffer& operator[](int buffer) const { return buffers_[static_cast<std::size_t>(buffer)]; }

 private:
  void measure_uses();
  void choose_transfer_memory();
  bool may_be_shared(const Task& task) const;
  void place_shared(bool lent);
  int place_sums(const Task& task, int t);
  int place_gathered(const Task& task, int t);
  int place_alone(const Expr& value, const Location& at, int first);
  void choose_variable_memory();
  void choose_output_memory();
  void assign_outputs(int task);
  void compute_new_side_in_place(const Variable& target, const Expr& choice, int task);
  static bool writes_anywhere(const Task& task, const Expr& value);
  bool may_write_in_place(const Variable& variable, const Expr& value, const Task& task, int t) const;
  // Whether a task that writes the value where the variable lies reads each old element before it writes there.
  bool overwrites_what_it_has_read(const Variable& variable, const Expr& value, const Task& task) const;
  int reusable_operand(const Task& task, const Expr& value, int t) const;
  int reads_of(const Task& task, const Expr& base) const;
  int new_buffer(std::int64_t bytes, int first, int last);
  int variable_buffer(VariableState& state);
  int leaf_buffer(const Expr& leaf);

  const LowerRequest& request_;
  const std::vector<Expr>& roots_;
  const std::vector<Task>& tasks_;
  const LocalView& local_;
  std::unordered_map<Expr, int, ExprHash> written_by_, last_use_, readers_;
  std::unordered_map<Expr, Location, ExprHash> location_;
  std::unordered_map<const VariableState*, int> variable_buffers_;
  std::vector<Buffer> buffers_;
  std::size_t shared_bytes_ = 0, lent_bytes_ = 0;
  int last_failure_ = -1;  // the last task that may_fail
};

}  // namespace syncline
