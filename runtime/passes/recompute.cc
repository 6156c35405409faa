#include <algorithm>
#include <optional>
#include <span>

#include "ops/graph/fill.h"
#include "ops/kernels/fused/chain.h"
#include "runtime/passes/passes.h"
#include "runtime/schedule/space.h"
#include "runtime/schedule/uses.h"

namespace syncline {
namespace {

constexpr std::int64_t kLargeValue = 128 << 10;  // bytes; smaller values stay in the fastest caches
constexpr std::int64_t kLongRow = 128;  // elements; blocks of shorter rows are expanded (kernels/fused/fuse.cc)
constexpr std::size_t kMostAgain = 4;   // nodes that compute a value again: each costs about 1/4 of a read

bool contains(const std::vector<Expr>& values, const Expr& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}
void add_once(const Expr& value, std::vector<Expr>& values) {
  if (!contains(values, value)) values.push_back(value);
}

// True if programs over the space take the operand as it lies in memory: whole, one number, a row for all rows, or one
// number a long row. They expand others block by block, which takes as long as to read them.
bool is_read_in_place(const Shape& operand, const Shape& space) {
  const int lead = space.ndim() - operand.ndim();
  std::int64_t repeats = 1;  // of each element along the last axes
  int parts = 0;             // neighbouring axes that are all repeated or all not
  bool repeated = false;
  for (int axis = space.ndim() - 1; axis >= 0; --axis) {
    if (space[axis] == 1) continue;
    const bool now = axis < lead || operand[axis - lead] == 1;
    parts += parts == 0 || now != repeated;
    repeated = now;
    if (now && parts == 1) repeats *= space[axis];
  }
  return parts < 2 || (parts == 2 && (repeated || repeats >= kLongRow));
}

// The part of a program that computes one value.
struct Part {
  std::vector<Expr> nodes;  // operands before users
  std::vector<Expr> reads;
};

class Recomputer {
 public:
  explicit Recomputer(Schedule& schedule) : tasks_(schedule.tasks), local_(schedule.local()), uses_(schedule) {}

  // Producers in running order: the part of a later one includes what it computes again itself.
  void run() {
    for (Task& task : tasks_) {
      if (!task.has_program()) continue;
      const std::vector<Expr> written = task.writes;
      for (const Expr& value : written)
        if (const auto part = part_to_repeat(task, value)) repeat(task, value, *part);
    }
    std::erase_if(tasks_, [](const Task& task) { return task.has_program() && task.writes.empty(); });
  }

 private:
  // Sizes are global: all ranks must make equal tasks.
  static std::int64_t bytes_of(const Expr& e) {
    return e.is<Fill>() ? 0 : e.shape().size() * static_cast<std::int64_t>(size_of(e.dtype()));
  }

  // The part of `from` that its readers compute instead of reading the value; nothing if it must be stored or is
  // cheaper to read.
  std::optional<Part> part_to_repeat(const Task& from, const Expr& value) const {
    const Use& use = uses_.of(value);
    if (use.root || use.readers.empty() || value.op().block == nullptr || bytes_of(value) < kLargeValue) return {};
    Part part;
    if (reads_gathered(from, local_) || !keeps_program(from) || !add_to(part, from, value)) return {};
    std::int64_t more = 0, longer = 0;
    for (const int reader : use.readers) {
      const Task& task = tasks_[static_cast<std::size_t>(reader)];
      if (!can_repeat(task, from, value, part)) return {};
      for (const Expr& read : part.reads) {
        if (contains(task.reads, read)) continue;
        if (!is_read_in_place(read.shape(), value.shape())) return {};
        more += bytes_of(read);
      }
    }
    for (const Expr& read : part.reads) {
      const Use& operand = uses_.of(read);
      if (operand.writer != kNoTask && !operand.root && operand.last(0) < use.readers.back()) longer += bytes_of(read);
    }
    // One write and a read for each reader become `more` bytes; operands that live longer take the value's memory.
    const std::int64_t bytes = bytes_of(value), readers = std::ssize(use.readers);
    const std::int64_t little = bytes / 2;  // broadcast operands
    if (more > readers * bytes + little || longer > bytes + little) return {};
    return part;
  }

  // False if several reductions of operands in memory would be left: they share a pass only beside elementwise nodes.
  static bool keeps_program(const Task& from) {
    const std::span<const Expr> reductions = from.reductions();
    return reductions.size() < 2 || from.writes.size() > reductions.size() + 1 ||
           std::any_of(reductions.begin(), reductions.end(),
                       [&](const Expr& e) { return contains(from.nodes, e.input(0)); });
  }

  // Adds the nodes that compute `value`; false if these are many or take long.
  static bool add_to(Part& part, const Task& from, const Expr& value) {
    if (contains(part.nodes, value)) return true;
    if (!kernels::is_chain_op(value.op().name, value.dtype())) return false;
    for (const Expr& input : value.node().inputs) {
      if (contains(from.nodes, input)) {
        if (!add_to(part, from, input)) return false;
        continue;
      }
      if (contains(from.strided_views, input)) return false;
      add_once(input, part.reads);
    }
    part.nodes.push_back(value);
    return part.nodes.size() <= kMostAgain;
  }

  // True if the task reads the value element by element and has room for the part.
  bool can_repeat(const Task& task, const Task& from, const Expr& value, const Part& part) const {
    if (!task.has_program() || task.guards != from.guards || reads_gathered(task, local_)) return false;
    const Space space = space_of(value, local_);
    if (space_of_program(task, local_) != space) return false;
    for (const Expr& read : task.reads)
      if (!(read == value) && local_.resolve(read).base == value) return false;
    for (const Expr& view : task.strided_views)
      if (local_.resolve(view.input(0)).base == value) return false;
    std::size_t broadcast = task.strided_views.size(), registers = task.nodes.size() + task.reads.size();
    for (const Expr& read : task.reads) broadcast += space_of(read, local_) != space;
    for (const Expr& read : part.reads) broadcast += !contains(task.reads, read) && space_of(read, local_) != space;
    registers += part.nodes.size() + part.reads.size() + task.strided_views.size();
    return task.nodes.size() + part.nodes.size() <= kMostNodes && broadcast <= kMostBroadcastOperands &&
           registers <= kMostRegisters;
  }

  void repeat(Task& from, const Expr& value, const Part& part) {
    for (const int reader : uses_.of(value).readers) {
      Task& task = tasks_[static_cast<std::size_t>(reader)];
      // In front, also those that it has: its other nodes may need them.
      std::erase_if(task.nodes, [&](const Expr& node) { return contains(part.nodes, node); });
      task.nodes.insert(task.nodes.begin(), part.nodes.begin(), part.nodes.end());
      for (const Expr& read : part.reads) add_once(read, task.reads);
      std::erase(task.reads, value);
    }
    std::erase(from.writes, value);
    drop_unused(from);
  }

  // Drops nodes and operands that no result of the task needs.
  static void drop_unused(Task& task) {
    ValueSet used;
    std::vector<Expr> nodes;
    for (auto node = task.nodes.rbegin(); node != task.nodes.rend(); ++node) {
      const bool joined = std::any_of(task.joined.begin(), task.joined.end(),
                                      [&](const Expr& e) { return contains(e.node().inputs, *node); });
      if (!joined && !used.contains(*node) && !contains(task.writes, *node)) continue;
      used.insert(node->node().inputs.begin(), node->node().inputs.end());
      nodes.push_back(*node);
    }
    task.nodes.assign(nodes.rbegin(), nodes.rend());
    std::erase_if(task.strided_views, [&](const Expr& view) { return !used.contains(view); });
    for (const Expr& view : task.strided_views) used.insert(view.input(0));
    std::erase_if(task.reads, [&](const Expr& read) { return !used.contains(read); });
    if (task.kind == Task::kReduce && task.nodes.size() == 1) task.kind = Task::kKernel;  // a reduction of its operand
  }

  std::vector<Task>& tasks_;
  const LocalView local_;
  const Uses uses_;
};

}  // namespace

Schedule recompute(Schedule schedule) {
  if (schedule.request.fuse) Recomputer(schedule).run();
  return schedule;
}

}  // namespace syncline
