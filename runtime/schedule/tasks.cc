#include "runtime/schedule/tasks.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ops/control/branch.h"
#include "ops/control/loop.h"
#include "ops/core/fill.h"
#include "ops/kernels/fused.h"
#include "ops/op.h"
#include "runtime/collectives.h"
#include "runtime/schedule/buckets.h"

namespace syncline {
namespace {

constexpr std::size_t kLargestGroup = 40;                         // nodes
constexpr std::size_t kMostLaidOut = 14;                          // operands that need a block buffer of their own
constexpr std::size_t kMostRegisters = kernels::kFusedRegisters;  // one a node and one an operand from outside

bool is_collective(const Node& node) { return node.op == &def_of<AllReduce>() || node.op == &def_of<AllGather>(); }

// What a value's elements are, over all ranks. Tasks are made alike on every rank, so that transfers have one order:
// what decides is never the shape of a rank's own part, which may be that of another value by chance.
struct Space {
  Shape shape;
  Placement at;
  friend bool operator==(const Space&, const Space&) = default;
};

class TaskMaker {
 public:
  TaskMaker(const std::vector<Expr>& roots, const LocalView& local, const Distributor* distributor, bool fuse)
      : local_(local), distributor_(distributor), fuse_(fuse), guarded_(roots), nodes_(guarded_.in_order()) {
    for (const Expr& root : roots) {
      is_root_.insert(&root.node());
      is_read_.insert(root);
    }
    for (const auto& node : nodes_)
      for (const Expr& input : node->inputs) {
        users_[&input.node()].push_back(node.get());
        is_read_.insert(input);
      }
  }

  std::vector<Task> run() {
    group_elementwise();
    find_late_nodes();
    for (const auto& node : nodes_) emit(node);
    start_gathers_early();
    std::stable_partition(tasks_.begin(), tasks_.end(), [&](const Task& task) { return !is_small_end(task); });
    std::vector<Expr> sums;
    for (const auto& node : nodes_)
      if (bucketable_.contains(node.get())) sums.emplace_back(node);
    append_late(place_buckets(tasks_, sums, guarded_, local_, distributor_, transfers_));
    return insert_waits();
  }

 private:
  using Operands = std::unordered_set<Expr, ExprHash>;
  struct Group {
    std::vector<Expr> members;  // by id
    Space space;
    Guards guards;
    Operands operands;  // from outside
    std::size_t laid_out = 0;
    bool terminal = false;  // nothing reads what it computes
  };

  // A node joins the group of its users if they are all in one group and compute over the same elements: then nothing
  // but that group needs its value, and no path leaves the group and comes back. Groups that nothing reads (a
  // variable's new value, an accumulator's) have no path between them either, so a value that several of them share
  // makes them one.
  void group_elementwise() {
    for (auto it = nodes_.rbegin(); it != nodes_.rend(); ++it) {
      const auto& node = *it;
      if (node->op->block == nullptr) continue;
      const Expr value(node);
      const Space space = space_of(value);
      std::size_t laid_out = 0;
      for (const Expr& input : node->inputs) laid_out += space_of(input) != space || is_window(input);
      int group = group_of_users(*node, space, laid_out);
      if (group < 0) {
        group = static_cast<int>(groups_.size());
        groups_.push_back({.members = {},
                           .space = space,
                           .guards = guarded_.of(*node),
                           .operands = {},
                           .laid_out = 0,
                           .terminal = !users_.contains(node.get())});
      }
      Group& joined = groups_[group];
      joined.members.push_back(value);
      joined.operands.erase(value);
      joined.operands.insert(node->inputs.begin(), node->inputs.end());
      joined.laid_out += laid_out;
      group_of_[node.get()] = group;
    }
    for (Group& group : groups_)
      std::sort(group.members.begin(), group.members.end(),
                [](const Expr& a, const Expr& b) { return a.node().id < b.node().id; });
  }

  int group_of_users(const Node& node, const Space& space, std::size_t laid_out) {
    const auto users = users_.find(&node);
    if (!fuse_ || users == users_.end()) return -1;
    std::vector<int> candidates;
    std::size_t members = 0;
    Operands operands(node.inputs.begin(), node.inputs.end());
    for (const Node* user : users->second) {
      const auto found = group_of_.find(user);
      if (found == group_of_.end()) return -1;
      if (std::find(candidates.begin(), candidates.end(), found->second) == candidates.end())
        candidates.push_back(found->second);
    }
    for (const int candidate : candidates) {
      const Group& g = groups_[static_cast<std::size_t>(candidate)];
      if (g.space != space || g.guards != guarded_.of(node) || (candidates.size() > 1 && !g.terminal)) return -1;
      members += g.members.size();
      laid_out += g.laid_out;
      for (const Expr& operand : g.operands)
        if (&operand.node() != &node) operands.insert(operand);
    }
    if (members >= kLargestGroup || laid_out > kMostLaidOut) return -1;
    if (members + 1 + operands.size() > kMostRegisters) return -1;
    for (std::size_t i = 1; i < candidates.size(); ++i) merge_groups(candidates[0], candidates[i]);
    return candidates[0];
  }

  void merge_groups(int into, int from) {
    Group &a = groups_[static_cast<std::size_t>(into)], &b = groups_[static_cast<std::size_t>(from)];
    for (const Expr& member : b.members) group_of_[&member.node()] = into;
    a.members.insert(a.members.end(), b.members.begin(), b.members.end());
    a.operands.merge(b.operands);
    a.laid_out += b.laid_out;
    b.members.clear();
  }

  // An all-reduce may wait in a bucket if no other transfer depends on it, nor a condition (under which there may be
  // transfers). A gather may wait if no all-reduce depends on it. What depends on such a one is late.
  void find_late_nodes() {
    std::unordered_set<const Node*> leads_to_wire, leads_to_sum;
    for (auto it = nodes_.rbegin(); it != nodes_.rend(); ++it) {
      const bool condition = (*it)->op == &def_of<Condition>(), sum = (*it)->op == &def_of<AllReduce>();
      for (const Expr& input : (*it)->inputs) {
        if (is_collective(**it) || condition || leads_to_wire.contains(it->get())) leads_to_wire.insert(&input.node());
        if (sum || condition || leads_to_sum.contains(it->get())) leads_to_sum.insert(&input.node());
      }
    }
    std::unordered_set<const Node*> can_wait;
    for (const auto& node : nodes_) {
      const bool bucketable = node->op == &def_of<AllReduce>() && !leads_to_wire.contains(node.get());
      const bool gather = node->op == &def_of<AllGather>() && !leads_to_sum.contains(node.get());
      if (bucketable) bucketable_.insert(node.get());
      if (bucketable || gather) can_wait.insert(node.get());
      for (const Expr& input : node->inputs)
        if (can_wait.contains(&input.node()) || late_.contains(&input.node())) late_.insert(node.get());
    }
  }

  bool group_is_late(const Group& group) const {
    return std::any_of(group.members.begin(), group.members.end(),
                       [&](const Expr& member) { return late_.contains(&member.node()); });
  }

  void emit(const std::shared_ptr<const Node>& node) {
    const Expr value(node);
    if (node->op->leaf || local_.is_view(value)) return;
    if (bucketable_.contains(node.get())) return;  // runtime/schedule/buckets.h
    if (node->op->block != nullptr) {
      const Group& group = groups_[static_cast<std::size_t>(group_of_.at(node.get()))];
      if (group.members.back() == value) add(fused_task(group), group_is_late(group));
      return;
    }
    if ((node->op == &def_of<Fill>() || is_window(value)) && !needs_storage(*node)) return;
    Task task;
    task.kind = node->op == &def_of<AllReduce>()   ? Task::kAllReduce
                : node->op == &def_of<AllGather>() ? Task::kAllGather
                : node->op == &def_of<Loop>()      ? Task::kLoop
                                                   : Task::kKernel;
    task.nodes = {value};
    task.reads = node->inputs;
    for (int i = 0; i < static_cast<int>(node->outputs.size()); ++i)
      if (is_stored(Expr(node, i))) task.writes.push_back(Expr(node, i));
    if (is_collective(*node)) task.transfer = transfers_++;
    task.guards = guarded_.of(*node);
    add(std::move(task), late_.contains(node.get()));
  }

  // A loop keeps its states in its outputs, but leaves out the taps that nobody reads. Any other op writes all it has.
  bool is_stored(const Expr& output) const {
    if (!output.is<Loop>() || is_read_.contains(output)) return true;
    return output.output() < static_cast<int>(output.attrs<Loop::Attrs>().body->states.size());
  }

  // A value that fused programs can read in its input, however many rows a rank has.
  bool is_window(const Expr& e) const {
    if (e.op().window == nullptr) return false;
    const Shape& shape = e.shape();
    const StridedWindow window = e.op().window(e.node().attrs.get(), e.input(0).meta());
    int axis = shape.ndim() - 1;
    while (axis > 0 && shape[axis] == 1) --axis;
    if (axis > 0 && local_.placement(e).is_split(axis)) return false;
    return axis < 0 || shape[axis] == 1 || window.strides[static_cast<std::size_t>(axis)] == 1;
  }

  // Fused programs take a fill as a number and a window where it lies.
  bool needs_storage(const Node& node) const {
    if (is_root_.contains(&node)) return true;
    const auto users = users_.find(&node);
    return users != users_.end() && std::any_of(users->second.begin(), users->second.end(),
                                                [](const Node* user) { return user->op->block == nullptr; });
  }

  Task fused_task(const Group& group) const {
    Task task;
    task.kind = Task::kFused;
    task.nodes = group.members;
    task.guards = group.guards;
    for (const Expr& member : group.members) {
      for (const Expr& input : member.node().inputs) {
        const auto found = group_of_.find(&input.node());
        const bool inside = found != group_of_.end() && found->second == group_of_.at(&member.node());
        if (inside) continue;
        const bool window = is_window(input) && !needs_storage(input.node());
        if (window) add_once(input, task.windows);
        add_once(window ? input.input(0) : input, task.reads);
      }
      if (is_root_.contains(&member.node()) || member == group.members.back()) task.writes.push_back(member);
    }
    return task;
  }

  static bool contains(const std::vector<Expr>& values, const Expr& value) {
    return std::find(values.begin(), values.end(), value) != values.end();
  }

  static void add_once(const Expr& value, std::vector<Expr>& values) {
    if (!contains(values, value)) values.push_back(value);
  }

  void add(Task task, bool late) {
    if (late) late_tasks_.push_back(std::move(task));
    else if (!tasks_.empty() && can_join(tasks_.back(), task)) join(tasks_.back(), std::move(task));
    else tasks_.push_back(std::move(task));
  }

  // Right behind the task that writes what is gathered, so that the wire can begin.
  void start_gathers_early() {
    for (auto task = tasks_.begin(); task != tasks_.end(); ++task) {
      if (task->kind != Task::kAllGather || !task->guards.empty()) continue;
      const Expr part = local_.resolve(task->reads[0]).base;
      const auto writer = std::find_if(std::make_reverse_iterator(task), tasks_.rend(),
                                       [&](const Task& before) { return contains(before.writes, part); });
      std::rotate(writer.base(), task, std::next(task));
    }
  }

  // A counter's or a running mean's new value: nobody reads it, and its operands take little memory until the end. Last
  // of all, they leave a step that is stopped on its way without a changed variable.
  bool is_small_end(const Task& task) const {
    constexpr std::int64_t kSmall = 64 << 10;  // bytes
    std::int64_t bytes = 0;
    for (const Expr& read : task.reads) bytes += read.shape().size() * static_cast<std::int64_t>(size_of(read.dtype()));
    const bool ends = std::all_of(task.writes.begin(), task.writes.end(),
                                  [&](const Expr& value) { return !users_.contains(&value.node()); });
    return task.kind == Task::kFused && ends && bytes <= kSmall;
  }

  Space space_of(const Expr& e) const {
    const Placement at = local_.placement(e);
    return {e.shape(), at.is_split() ? at : Placement::replicated()};
  }
  Space space_of(const Task& fused) const { return space_of(fused.nodes.back()); }

  // Neighbours over the same elements that read, or hand on, the same values are one pass over them. What the second
  // reads of the first's results it must read element by element.
  bool can_join(const Task& first, const Task& second) const {
    if (first.kind != Task::kFused || second.kind != Task::kFused || !fuse_ || first.guards != second.guards)
      return false;
    const Space space = space_of(first);
    if (space != space_of(second) || first.nodes.size() + second.nodes.size() > kLargestGroup) return false;
    bool shared = false;
    for (const Expr& read : second.reads) {
      const bool whole = space_of(read) == space;
      shared = shared || (whole && (contains(first.reads, read) || contains(first.writes, read)));
      const Expr base = local_.resolve(read).base;
      if (contains(first.writes, base) && (!whole || !(base == read))) return false;
    }
    for (const Expr& window : second.windows)
      if (contains(first.writes, local_.resolve(window.input(0)).base)) return false;
    return shared && laid_out(first, space) + laid_out(second, space) <= kMostLaidOut &&
           registers_of_both(first, second) <= kMostRegisters;
  }

  // At most: a read from which windows are cut may be no operand itself.
  static std::size_t registers_of_both(const Task& first, const Task& second) {
    std::size_t registers = first.nodes.size() + second.nodes.size() + first.reads.size() + first.windows.size();
    for (const Expr& read : second.reads) registers += !contains(first.reads, read) && !contains(first.writes, read);
    for (const Expr& window : second.windows) registers += !contains(first.windows, window);
    return registers;
  }

  std::size_t laid_out(const Task& task, const Space& space) const {
    const auto others =
        std::count_if(task.reads.begin(), task.reads.end(), [&](const Expr& read) { return space_of(read) != space; });
    return static_cast<std::size_t>(others) + task.windows.size();
  }

  void join(Task& first, Task second) const {
    first.nodes.insert(first.nodes.end(), second.nodes.begin(), second.nodes.end());
    for (const Expr& read : second.reads)
      if (!contains(first.writes, read)) add_once(read, first.reads);
    for (const Expr& window : second.windows) add_once(window, first.windows);
    // What only the other one wanted stays in the cache.
    std::erase_if(first.writes, [&](const Expr& value) {
      const auto users = users_.find(&value.node());
      return !is_root_.contains(&value.node()) && users != users_.end() &&
             std::all_of(users->second.begin(), users->second.end(), [&](const Node* user) {
               return std::any_of(first.nodes.begin(), first.nodes.end(),
                                  [&](const Expr& member) { return &member.node() == user; });
             });
    });
    first.writes.insert(first.writes.end(), second.writes.begin(), second.writes.end());
  }

  // What waits for an early bucket runs while later ones are still on the wire; gathers that start late come behind all
  // buckets.
  void append_late(const std::unordered_map<const Node*, int>& bucket_of) {
    std::unordered_map<const Node*, int> needs, gives = bucket_of;  // by order of the starts; -1: nothing
    int next = static_cast<int>(bucket_of.size());
    for (const auto& node : nodes_) {
      int& last = needs[node.get()] = -1;
      for (const Expr& input : node->inputs)
        if (const auto found = gives.find(&input.node()); found != gives.end()) last = std::max(last, found->second);
      const bool starts = node->op == &def_of<AllGather>() && late_.contains(node.get());
      if (!bucket_of.contains(node.get())) gives[node.get()] = starts ? next++ : last;
    }
    auto needed = [&](const Task& task) {
      int last = -1;
      for (const Expr& node : task.nodes)
        if (const auto found = needs.find(&node.node()); found != needs.end()) last = std::max(last, found->second);
      return last;
    };
    std::stable_sort(late_tasks_.begin(), late_tasks_.end(),
                     [&](const Task& a, const Task& b) { return needed(a) < needed(b); });
    for (Task& task : late_tasks_) tasks_.push_back(std::move(task));
  }

  std::vector<Task> insert_waits() {
    std::unordered_map<const Node*, int> pending;  // collective -> its transfer
    std::vector<Guards> guards(static_cast<std::size_t>(transfers_));
    for (const Task& task : tasks_) {
      if (task.transfer < 0) continue;
      for (const Expr& node : task.nodes) pending[&node.node()] = task.transfer;
      guards[static_cast<std::size_t>(task.transfer)] = task.guards;
    }
    std::unordered_set<int> waited;
    std::vector<Task> result;
    auto wait = [&](int transfer) {
      if (!waited.insert(transfer).second) return;
      Task task;
      task.kind = Task::kWait;
      task.transfer = transfer;
      task.guards = guards[static_cast<std::size_t>(transfer)];
      result.push_back(std::move(task));
    };
    for (Task& task : tasks_) {
      for (const Expr& value : task.reads)
        if (const auto found = pending.find(&local_.resolve(value).base.node()); found != pending.end())
          wait(found->second);
      result.push_back(std::move(task));
    }
    for (int transfer = 0; transfer < transfers_; ++transfer) wait(transfer);
    return result;
  }

  const LocalView& local_;
  const Distributor* distributor_;
  const bool fuse_;
  const GuardedNodes guarded_;
  const std::vector<std::shared_ptr<const Node>>& nodes_;
  std::unordered_set<Expr, ExprHash> is_read_;
  std::unordered_set<const Node*> is_root_, bucketable_, late_;
  std::unordered_map<const Node*, std::vector<const Node*>> users_;
  std::unordered_map<const Node*, int> group_of_;
  std::vector<Group> groups_;
  std::vector<Task> tasks_, late_tasks_;
  int transfers_ = 0;
};

}  // namespace

std::vector<Task> make_tasks(const std::vector<Expr>& roots, const LocalView& local, const Distributor* distributor,
                             bool fuse) {
  return TaskMaker(roots, local, distributor, fuse).run();
}

}  // namespace syncline
