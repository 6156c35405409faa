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

constexpr std::int64_t kLargeValue = 128 << 10;  // bytes; smaller values stay in a core's own cache
constexpr int kMostAgain = 4;                    // additions that compute a value again: each costs about 1/4 of a read

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
  static std::int64_t bytes_of(const Expr& e) { return e.is<Fill>() ? 0 : bytes_over_all_ranks(e); }

  // The part of a program that computes the value, for its readers to repeat; nothing if it must be stored or is
  // cheaper to read.
  std::optional<Task> part_to_repeat(const Task& from, const Expr& value) const {
    const Use& use = uses_.of(value);
    if (use.root || use.readers.empty() || value.op().block == nullptr || bytes_of(value) < kLargeValue) return {};
    Task part{.kind = Task::kFused};
    if (reads_gathered(from, local_) || !keeps_program(from) || !add_to(part, from, value)) return {};
    std::int64_t more = 0, longer = 0;
    for (const int reader : use.readers) {
      const Task& task = tasks_[static_cast<std::size_t>(reader)];
      if (!can_repeat(task, from, value, part)) return {};
      for (const Expr& read : part.reads) {
        if (contains(task.reads, read)) continue;
        if (!kernels::is_read_in_place(read.meta(), value.shape())) return {};
        more += bytes_of(read);
      }
    }
    for (const Expr& read : part.reads) {
      const Use& operand = uses_.of(read);
      if (operand.writer != kNoTask && !operand.root && operand.last(0) < use.readers.back())
        longer += bytes_of(local_.resolve(read).base);
    }
    // Saved: a write, which costs two reads, and a read for each reader. Added: `more` bytes and each reader's
    // additions. The memory of operands that live longer replaces the value's.
    const std::int64_t bytes = bytes_of(value), readers = std::ssize(use.readers);
    const std::int64_t little = bytes / 2;  // broadcast operands
    const std::int64_t again = readers * additions(part) * bytes / 4;
    if (more > readers * bytes + little || more + again > (readers + 2) * bytes || longer > bytes + little) return {};
    return part;
  }

  // False if several reductions of operands in memory would be left: they share a pass only beside elementwise nodes.
  static bool keeps_program(const Task& from) {
    const std::span<const Expr> reductions = from.reductions();
    return reductions.size() < 2 || from.writes.size() > reductions.size() + 1 ||
           std::any_of(reductions.begin(), reductions.end(),
                       [&](const Expr& e) { return contains(from.nodes, e.input(0)); });
  }

  // Adds the nodes that compute `value`; false if these take long, are no chain ops, or read a strided view.
  static bool add_to(Task& part, const Task& from, const Expr& value) {
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
    return additions(part) <= kMostAgain;
  }

  static int additions(const Task& part) {
    int sum = 0;
    for (const Expr& node : part.nodes) sum += kernels::chain_op_additions(node.op().name);
    return sum;
  }

  // True if the task reads the value element by element and has room for the part.
  bool can_repeat(const Task& task, const Task& from, const Expr& value, const Task& part) const {
    if (!task.has_program() || task.guards != from.guards || reads_gathered(task, local_)) return false;
    if (space_of_program(task, local_) != space_of(value, local_)) return false;
    for (const Expr& read : task.reads)
      if (!(read == value) && local_.resolve(read).base == value) return false;
    for (const Expr& view : task.strided_views)
      if (local_.resolve(view.input(0)).base == value) return false;
    return fit_one_program(task, part, local_);
  }

  void repeat(Task& from, const Expr& value, const Task& part) {
    for (const int reader : uses_.of(value).readers) {
      Task& task = tasks_[static_cast<std::size_t>(reader)];
      // All nodes of the part come first, also those that the task has: its later nodes may read them.
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
