#include "runtime/schedule/buffers.h"

#include <algorithm>

#include "ops/control/branch.h"
#include "ops/leaf.h"
#include "runtime/collectives.h"

namespace syncline {
namespace {

constexpr std::int64_t kAlignment = 64;
constexpr std::int64_t kSharedFrom = 64 << 10;  // bytes: comm copies less than these anyway

std::int64_t aligned(std::int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

Buffers::Buffers(const LowerRequest& request, const std::vector<Expr>& roots, const std::vector<Task>& tasks,
                 const LocalView& local)
    : request_(request), roots_(roots), tasks_(tasks), local_(local) {
  measure_uses();
  choose_transfer_memory();
  choose_variable_memory();
  choose_output_memory();
  for (int t = 0; t < static_cast<int>(tasks_.size()); ++t) assign_outputs(t);
}

void Buffers::measure_uses() {
  const int end = static_cast<int>(tasks_.size());
  std::unordered_map<int, const Task*> starts;
  for (int t = 0; t < end; ++t) {
    const Task& task = tasks_[t];
    for (const Expr& value : task.writes) written_by_[value] = t;
    for (const Expr& value : task.reads) {
      const Expr base = local_.resolve(value).base;
      last_use_[base] = t;
      ++readers_[base];
    }
    for (const Guard& guard : task.guards) {
      last_use_[guard.condition] = t;
      ++readers_[guard.condition];
    }
    if (may_fail(task)) last_failure_ = t;
    if (task.kind == Task::kWait) {
      // The wire reads and writes until the wait is over.
      for (const Expr& node : starts.at(task.transfer)->nodes) {
        last_use_[node] = std::max(last_use_[node], t);
        const Expr part = local_.resolve(node.input(0)).base;
        last_use_[part] = std::max(last_use_[part], t);
      }
    } else if (task.transfer >= 0) {
      starts[task.transfer] = &task;
    }
  }
  for (const Expr& root : roots_) {
    const Expr base = local_.resolve(root).base;
    last_use_[base] = end;
    ++readers_[base];
  }
}

int Buffers::new_buffer(std::int64_t bytes, int first, int last) {
  buffers_.push_back({});
  buffers_.back().life = {static_cast<std::size_t>(bytes), first, last, 0};
  return static_cast<int>(buffers_.size()) - 1;
}

// Everywhere: what a transfer moves lies in a region of its own.
void Buffers::choose_transfer_memory() {
  for (int t = 0; t < static_cast<int>(tasks_.size()); ++t) {
    const Task& task = tasks_[t];
    if (task.kind != Task::kAllReduce && task.kind != Task::kAllGather) continue;
    const int region = task.kind == Task::kAllReduce ? place_sums(task, t) : place_gathered(task, t);
    if (request_.shared_buckets && may_be_shared(task)) buffers_[region].kind = Buffer::kShared;
  }
}

// Whole outputs, as of all of a test set's rows, are too large for memory that may be scarce.
bool Buffers::may_be_shared(const Task& task) const {
  if (task.kind == Task::kAllReduce) return task.bucketed;
  const bool is_root = std::any_of(roots_.begin(), roots_.end(), [&](const Expr& root) {
    const Expr base = local_.resolve(root).base;
    return base == task.nodes[0] || (base.is<Interleave>() && base.input(0) == task.nodes[0]);
  });
  return !is_root && local_.bytes(task.nodes[0]) >= kSharedFrom;
}

// All elements of an all-reduce lie in one region.
int Buffers::place_sums(const Task& task, int t) {
  int first = t, last = t;
  std::int64_t bytes = 0;
  const int region = new_buffer(0, t, t);
  for (const Expr& node : task.nodes) {
    last = std::max(last, last_use_[node]);
    location_[node] = {region, bytes};
    const Expr base = local_.resolve(node.input(0)).base;
    if (local_.bytes(base) == local_.bytes(node)) first = place_alone(base, {region, bytes}, first);
    bytes += aligned(local_.bytes(node));
  }
  buffers_[region].life = {static_cast<std::size_t>(bytes), first, last, 0};
  return region;
}

// The ranks' parts lie one behind the other.
int Buffers::place_gathered(const Task& task, int t) {
  const Expr& node = task.nodes[0];
  const Expr& part = node.input(0);
  const int region = new_buffer(local_.bytes(node), t, last_use_[node]);
  location_[node] = {region, 0};
  const std::int64_t size = part.shape()[local_.placement(part).axis];
  const std::int64_t before = size == 0 ? 0 : local_.bytes(node) / size * local_.shares().own_begin(size);
  const Expr base = local_.resolve(part).base;
  if (local_.bytes(base) == local_.bytes(part)) buffers_[region].life.first = place_alone(base, {region, before}, t);
  return region;
}

// A value that only a transfer reads is computed where it is transferred from; any other is copied there. The first
// task that needs the memory, if `first` was it so far.
int Buffers::place_alone(const Expr& value, const Location& at, int first) {
  const auto producer = written_by_.find(value);
  const bool alone = producer != written_by_.end() && readers_[value] == 1 &&
                     writes_anywhere(tasks_[producer->second], value) && !location_.contains(value);
  if (!alone) return first;
  location_[value] = at;
  return std::min(first, producer->second);
}

// A loop's own outputs are states and stacks, whose memory it uses in its own way.
bool Buffers::writes_anywhere(const Task& task, const Expr& value) {
  return task.kind <= Task::kFused ||
         std::find(task.products.begin(), task.products.end(), value) != task.products.end();
}

void Buffers::choose_variable_memory() {
  for (std::size_t i = 0; i < request_.updates.size(); ++i) {
    const Variable& target = request_.updates[i].target;
    const auto place = local_.resolve(roots_[request_.outputs.size() + i]);
    const auto producer = written_by_.find(place.base);
    if (producer == written_by_.end() || place.offset != 0 || location_.contains(place.base)) continue;
    if (!may_write_in_place(target, place.base, tasks_[producer->second], producer->second)) continue;
    location_[place.base] = variable(target.state());
    compute_new_side_in_place(target, place.base, producer->second);
  }
}

// A variable that changes only under a condition, in task t: its new value is computed where the variable lies, if
// nothing reads the old one after that. Then the choice finds both sides in their place.
void Buffers::compute_new_side_in_place(const Variable& target, const Expr& choice, int t) {
  if (!choice.is<Choose>() || !(choice.input(0) == target.expr())) return;
  const auto side = local_.resolve(choice.input(1));
  const auto producer = written_by_.find(side.base);
  if (producer == written_by_.end() || side.offset != 0 || location_.contains(side.base) || readers_[side.base] != 1 ||
      producer->second <= last_failure_)
    return;
  const Task& task = tasks_[producer->second];
  const Guard guard{choice.input(2), false};
  if (std::find(task.guards.begin(), task.guards.end(), guard) == task.guards.end()) return;
  for (int between = producer->second + 1; between < t; ++between)
    if (reads_of(tasks_[between], target.expr()) > 0) return;
  if (overwrites_what_it_has_read(target, side.base, task)) location_[side.base] = variable(target.state());
}

// An output that the caller has memory for is computed there.
void Buffers::choose_output_memory() {
  for (std::size_t i = 0; i < request_.in_callers_memory.size(); ++i) {
    if (!request_.in_callers_memory[i]) continue;
    const auto place = local_.resolve(roots_[i]);
    const auto producer = written_by_.find(place.base);
    if (producer == written_by_.end() || place.offset != 0 || location_.contains(place.base)) continue;
    if (tasks_[producer->second].kind > Task::kFused || local_.bytes(place.base) != local_.bytes(roots_[i])) continue;
    location_[place.base] = {static_cast<int>(buffers_.size()), 0};
    buffers_.push_back({});
    buffers_.back().kind = Buffer::kFeed;
    buffers_.back().feed = request_.feeds.size() + i;
  }
}

// In how many ways (itself, a view of it, a window onto it) a task reads a value.
int Buffers::reads_of(const Task& task, const Expr& base) const {
  const auto views = std::count_if(task.reads.begin(), task.reads.end(),
                                   [&](const Expr& read) { return local_.resolve(read).base == base; });
  const auto windows = std::count_if(task.windows.begin(), task.windows.end(),
                                     [&](const Expr& window) { return local_.resolve(window.input(0)).base == base; });
  return static_cast<int>(views + windows);
}

bool Buffers::may_write_in_place(const Variable& variable, const Expr& value, const Task& task, int t) const {
  if (t <= last_failure_) return false;  // runtime/schedule/commit.h
  const auto last = last_use_.find(variable.expr());
  if (last != last_use_.end() && last->second > t) return false;
  return overwrites_what_it_has_read(variable, value, task);
}

bool Buffers::overwrites_what_it_has_read(const Variable& variable, const Expr& value, const Task& task) const {
  if (task.kind != Task::kFused && task.kind != Task::kKernel) return false;
  const Expr& leaf = variable.expr();
  if (local_.bytes(value) != local_.bytes(leaf)) return false;
  const int reads = reads_of(task, leaf);
  if (reads == 0) return true;
  if (reads > 1) return false;
  for (const Expr& read : task.reads) {
    if (!(local_.resolve(read).base == leaf)) continue;
    if (task.kind == Task::kFused) return local_.meta(read) == local_.meta(value);
    return task.nodes[0].op().in_place && read == task.reads[0];
  }
  return false;
}

int Buffers::variable_buffer(VariableState& state) {
  const auto [it, fresh] = variable_buffers_.emplace(&state, static_cast<int>(buffers_.size()));
  if (fresh) {
    buffers_.push_back({});
    buffers_.back().kind = Buffer::kFixed;
    buffers_.back().address = state.value().raw();
  }
  return it->second;
}

void Buffers::assign_outputs(int t) {
  for (const Expr& value : tasks_[t].writes) {
    if (location_.contains(value)) continue;
    const auto used = last_use_.find(value);
    const int last = used == last_use_.end() ? t : used->second;
    int buffer = reusable_operand(tasks_[t], value, t);
    if (buffer < 0) buffer = new_buffer(local_.bytes(value), t, last);
    buffers_[buffer].life.last = std::max(buffers_[buffer].life.last, last);
    location_[value] = {buffer, 0};
  }
}

// The buffer of an operand of equal size that nobody reads after this task, or -1.
int Buffers::reusable_operand(const Task& task, const Expr& value, int t) const {
  const bool in_place = task.kind == Task::kFused || (task.kind == Task::kKernel && task.nodes[0].op().in_place);
  if (!in_place) return -1;
  for (const Expr& read : task.reads) {
    if (task.kind == Task::kKernel && !(read == task.reads[0])) break;
    const auto place = local_.resolve(read);
    const auto found = location_.find(place.base);
    if (found == location_.end() || place.offset != 0 || found->second.offset != 0) continue;
    const Buffer& buffer = buffers_[found->second.buffer];
    if (buffer.kind != Buffer::kArena || buffer.life.last != t || buffer.life.first >= t) continue;
    if (local_.meta(read).shape != local_.meta(value).shape || local_.bytes(read) != local_.bytes(value)) continue;
    if (static_cast<std::int64_t>(buffer.life.bytes) != local_.bytes(value) || reads_of(task, place.base) != 1)
      continue;
    return found->second.buffer;
  }
  return -1;
}

Location Buffers::locate(const Expr& value) {
  const auto place = local_.resolve(value);
  if (!location_.contains(place.base)) location_[place.base] = {leaf_buffer(place.base), 0};
  Location at = location_[place.base];
  at.offset += place.offset;
  return at;
}

Location Buffers::scratch(std::size_t bytes, int task) {
  return {new_buffer(static_cast<std::int64_t>(bytes), task, task), 0};
}

int Buffers::leaf_buffer(const Expr& leaf) {
  if (leaf.is<VariableLeaf>()) return variable_buffer(*leaf.attrs<VariableLeaf::Attrs>().state);
  Buffer buffer;
  if (leaf.is<Constant>()) {
    const Array& array = leaf.attrs<Constant::Attrs>().value->array;
    buffer.kind = Buffer::kFixed;
    buffer.address = const_cast<std::byte*>(array.raw());  // only ever an operand
  } else if (leaf.is<Placeholder>()) {
    const auto feed = std::find(request_.feeds.begin(), request_.feeds.end(), leaf);
    if (feed == request_.feeds.end())
      fail<ValueError>("function: placeholder '", leaf.name(), "' of shape ", leaf.shape(),
                       " is needed but not among the inputs; add it to inputs");
    buffer.kind = Buffer::kFeed;
    buffer.feed = static_cast<std::size_t>(feed - request_.feeds.begin());
    if (local_.placement(leaf).is_split() && !request_.local)
      buffer.feed_offset =
          static_cast<std::size_t>(local_.shares().own_begin(leaf.shape()[0]) * leaf.shape().product(1, leaf.ndim())) *
          size_of(leaf.dtype());
  } else {
    fail<InternalError>("plan: ", leaf.op().name, " has no memory");
  }
  buffers_.push_back(buffer);
  return static_cast<int>(buffers_.size()) - 1;
}

// Every rank must place them alike, so no lifetimes, which may differ, but one behind the other.
void Buffers::place_shared(bool lent) {
  for (Buffer& buffer : buffers_) {
    if (buffer.kind != Buffer::kShared || buffer.lent != lent) continue;
    buffer.life.offset = shared_bytes_;
    shared_bytes_ += static_cast<std::size_t>(aligned(static_cast<std::int64_t>(buffer.life.bytes)));
  }
}

std::size_t Buffers::first_shared_byte(std::span<const Location> places) const {
  std::size_t first = SIZE_MAX;
  for (const Location& at : places)
    if (const Buffer& buffer = buffers_[at.buffer]; buffer.kind == Buffer::kShared)
      first = std::min(first, buffer.life.offset);
  return first;
}

std::size_t Buffers::place() {
  place_shared(true);
  lent_bytes_ = shared_bytes_;
  place_shared(false);
  std::vector<Lifetime> lives;
  for (const Buffer& buffer : buffers_) lives.push_back(buffer.kind == Buffer::kArena ? buffer.life : Lifetime{});
  const std::size_t total = place_in_arena(lives);
  for (std::size_t i = 0; i < lives.size(); ++i)
    if (buffers_[i].kind == Buffer::kArena) buffers_[i].life = lives[i];
  return total;
}

}  // namespace syncline
