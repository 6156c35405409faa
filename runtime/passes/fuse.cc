#include <algorithm>
#include <span>
#include <utility>

#include "ops/graph/fill.h"
#include "ops/graph/value_map.h"
#include "runtime/passes/passes.h"
#include "runtime/schedule/space.h"

namespace syncline {
namespace {

constexpr std::size_t kMostWaiting = 8;           // operands kept alive only until their program runs
constexpr std::int64_t kLargeOperand = 64 << 10;  // bytes

// By node: the nodes that read its values. A node that reads one twice is listed twice.
class Users {
 public:
  explicit Users(const std::vector<std::shared_ptr<const Node>>& nodes) {
    for (const auto& node : nodes)
      for (const Expr& input : node->inputs) ++of_[input.node()].count;
    std::size_t reads = 0;
    for (const auto& node : nodes)
      if (Range* range = of_.find(*node)) {
        range->begin = reads;
        reads += std::exchange(range->count, 0);  // the next loop counts again
      }
    users_.resize(reads);
    for (const auto& node : nodes)
      for (const Expr& input : node->inputs) {
        Range& range = *of_.find(input.node());
        users_[range.begin + range.count++] = node.get();
      }
  }
  std::span<const Node* const> of(const Node& node) const {
    const Range* range = of_.find(node);
    if (range == nullptr) return {};
    return std::span(users_).subspan(range->begin, range->count);
  }

 private:
  struct Range {
    std::size_t begin = 0, count = 0;
  };
  ValueMap<Range> of_;
  std::vector<const Node*> users_;
};

class Fuser {
 public:
  explicit Fuser(Schedule& schedule) : schedule_(schedule), local_(schedule.local()), users_(schedule.nodes) {
    for (const Expr& root : schedule.roots) is_root_.insert(root.node());
  }

  std::vector<Task> run() {
    group();
    std::vector<Task> fused;
    fused.reserve(schedule_.tasks.size());
    for (std::size_t t = 0; t < schedule_.tasks.size(); ++t) {
      Task& task = schedule_.tasks[t];
      const int group = group_of(task);
      if (group < 0 || (task.kind == Task::kKernel && groups_[static_cast<std::size_t>(group)].tasks.size() == 1)) {
        const bool absorbed =
            (task.nodes[0].is<Fill>() || is_strided_view(task.nodes[0], local_)) && !is_stored(task.nodes[0]);
        if (!absorbed) fused.push_back(std::move(task));
        continue;
      }
      const Group& members = groups_[static_cast<std::size_t>(group)];
      if (members.tasks.front() == t) fused.push_back(program_of(members));  // at the last member's position
    }
    return fused;
  }

 private:
  struct Group {
    std::vector<std::size_t> tasks;  // in reverse running order
    Space space;
    Guards guards;
    std::vector<Expr> operands;  // from outside the group
    std::size_t broadcast_operands = 0;
    bool terminal = false;  // no task reads its results
    bool reduces = false;   // the last task is a reduction; no task outside the group reads the other members' results
  };

  // -1 if the task is not a member of a group.
  int group_of(const Task& task) const {
    const int* found = task.kind <= Task::kFused ? group_of_.find(task.nodes[0].node()) : nullptr;
    return found == nullptr ? -1 : *found;
  }

  // A node joins its users' group if all users are in one group over the same elements: then only the group reads its
  // value, and no path leaves the group and reenters it. There are no paths between terminal groups (new values of
  // variables and accumulators), so terminal groups that share a value merge.
  void group() {
    for (std::size_t t = schedule_.tasks.size(); t-- > 0;) {
      const Task& task = schedule_.tasks[t];
      if (schedule_.request.fuse && can_take_program(task, local_) && task.reads[0].op().block != nullptr)
        start_reduction(t);
      if (task.kind != Task::kFused) continue;
      const Expr& value = task.nodes[0];
      const Space space = space_of(value, local_);
      std::size_t broadcast_operands = 0;
      for (const Expr& input : task.reads)
        broadcast_operands += may_need_buffer(input, space, local_) || is_strided_view(input, local_);
      int group = group_of_users(task, space, broadcast_operands);
      if (group < 0) {
        group = static_cast<int>(groups_.size());
        groups_.push_back({.tasks = {},
                           .space = space,
                           .guards = task.guards,
                           .operands = {},
                           .broadcast_operands = 0,
                           .terminal = users_.of(value.node()).empty()});
      }
      Group& joined = groups_[static_cast<std::size_t>(group)];
      joined.tasks.push_back(t);
      if (joined.operands.empty()) joined.operands.reserve(task.reads.size());
      std::erase(joined.operands, value);
      for (const Expr& read : task.reads) add_once(read, joined.operands);
      joined.broadcast_operands += broadcast_operands;
      group_of_[value.node()] = group;
    }
  }

  void start_reduction(std::size_t t) {
    const Task& task = schedule_.tasks[t];
    group_of_[task.nodes[0].node()] = static_cast<int>(groups_.size());
    groups_.push_back({.tasks = {t},
                       .space = space_of(task.reads[0], local_),
                       .guards = task.guards,
                       .operands = task.reads,
                       .broadcast_operands = 0,
                       .terminal = false,
                       .reduces = true});
  }

  int group_of_users(const Task& task, const Space& space, std::size_t broadcast_operands) {
    const Node& node = task.nodes[0].node();
    const std::span<const Node* const> users = users_.of(node);
    if (!schedule_.request.fuse || users.empty()) return -1;
    candidates_.clear();
    for (const Node* user : users) {
      const int* found = group_of_.find(*user);
      if (found == nullptr) return -1;
      if (std::find(candidates_.begin(), candidates_.end(), *found) == candidates_.end()) candidates_.push_back(*found);
    }
    std::size_t members = 0;
    operands_.clear();
    for (const Expr& read : task.reads) add_once(read, operands_);
    for (const int candidate : candidates_) {
      const Group& g = groups_[static_cast<std::size_t>(candidate)];
      if (g.space != space || g.guards != task.guards || (candidates_.size() > 1 && !g.terminal)) return -1;
      if (g.reduces && (is_root_.contains(node) || reads_gathered(task, local_))) return -1;
      members += g.tasks.size();
      broadcast_operands += g.broadcast_operands;
      for (const Expr& operand : g.operands)
        if (&operand.node() != &node) add_once(operand, operands_);
    }
    if (members >= kMostNodes || broadcast_operands > kMostBroadcastOperands ||
        members + 1 + operands_.size() > kMostRegisters)
      return -1;
    if (waiting(operands_) > kMostWaiting) return -1;
    for (std::size_t i = 1; i < candidates_.size(); ++i) merge_groups(candidates_[0], candidates_[i]);
    return candidates_[0];
  }

  // The number of large operands that a separate task computes for a single user. The limit keeps the terms of a long
  // sum (gradients of an unrolled network) from being alive all at once.
  std::size_t waiting(const std::vector<Expr>& operands) const {
    return static_cast<std::size_t>(std::count_if(operands.begin(), operands.end(), [&](const Expr& operand) {
      const OpDef& op = operand.op();
      return !op.leaf && op.block == nullptr && !operand.is<Fill>() && users_.of(operand.node()).size() == 1 &&
             bytes_over_all_ranks(operand) >= kLargeOperand;
    }));
  }

  void merge_groups(int into, int from) {
    Group &a = groups_[static_cast<std::size_t>(into)], &b = groups_[static_cast<std::size_t>(from)];
    for (const std::size_t t : b.tasks) group_of_[schedule_.tasks[t].nodes[0].node()] = into;
    a.tasks.insert(a.tasks.end(), b.tasks.begin(), b.tasks.end());
    std::sort(a.tasks.begin(), a.tasks.end(), std::greater<>());
    for (const Expr& operand : b.operands) add_once(operand, a.operands);
    a.broadcast_operands += b.broadcast_operands;
    b.tasks.clear();
  }

  // False if only programs read the value, which take a fill as a number and read a strided view in place.
  bool is_stored(const Expr& value) const {
    if (is_root_.contains(value.node())) return true;
    return std::ranges::any_of(users_.of(value.node()), [](const Node* user) { return user->op->block == nullptr; });
  }

  Task program_of(const Group& group) const {
    Task program{.kind = group.reduces ? Task::kReduce : Task::kFused, .guards = group.guards};
    program.nodes.reserve(group.tasks.size());
    program.reads.reserve(group.operands.size());
    for (auto t = group.tasks.rbegin(); t != group.tasks.rend(); ++t) {
      const Task& task = schedule_.tasks[*t];
      const Expr& value = task.nodes[0];
      program.nodes.push_back(value);
      program.may_throw = program.may_throw || task.may_throw;
      for (const Expr& input : task.reads) {
        const int* found = group_of_.find(input.node());
        if (found != nullptr && *found == group_of_.at(value.node())) continue;
        const bool view = is_strided_view(input, local_) && !is_stored(input);
        if (view) add_once(input, program.strided_views);
        add_once(view ? input.input(0) : input, program.reads);
      }
      if (is_root_.contains(value.node()) || *t == group.tasks.front()) program.writes.push_back(value);
    }
    return program;
  }

  Schedule& schedule_;
  const LocalView local_;
  ValueSet is_root_;
  const Users users_;
  ValueMap<int> group_of_;
  std::vector<Group> groups_;
  std::vector<int> candidates_;  // these two: of group_of_users, here so that calls reuse their memory
  std::vector<Expr> operands_;
};

}  // namespace

Schedule fuse(Schedule schedule) {
  schedule.tasks = Fuser(schedule).run();
  return schedule;
}

}  // namespace syncline
