#include <algorithm>

#include "runtime/passes/passes.h"
#include "runtime/schedule/uses.h"

namespace syncline {
namespace {

// Which tasks move, and behind which of the others. Stays valid until the schedule's tasks change.
class Advance {
 public:
  explicit Advance(const Schedule& schedule) : tasks_(schedule.tasks), uses_(schedule) {
    const auto tasks = tasks_.size();
    only_.assign(tasks, kNone);
    of_sum_.assign(tasks, false);
    moves_.assign(tasks, false);
    find_moves();
    find_places();
    move_operands_with_readers();
  }

  // The tasks' numbers in their new order.
  std::vector<int> order() const {
    std::vector<std::vector<int>> behind(tasks_.size() + 1);  // the tasks that move behind task i - 1
    for (int t = 0; t < count(); ++t)
      if (moves_[at(t)]) behind[at(place_[at(t)] + 1)].push_back(t);
    std::vector<int> order;
    for (int t = kNoTask; t < count(); ++t) {
      if (t != kNoTask && !moves_[at(t)]) order.push_back(t);
      order.insert(order.end(), behind[at(t + 1)].begin(), behind[at(t + 1)].end());
    }
    return order;
  }

 private:
  static constexpr int kNone = -1, kSeveral = -2;

  static std::size_t at(int task) { return static_cast<std::size_t>(task); }
  int count() const { return static_cast<int>(tasks_.size()); }
  const Task& task(int t) const { return tasks_[at(t)]; }

  // True for a transfer that a task soon waits for.
  bool is_urgent(int t) const { return task(t).starts_transfer() && !task(t).bucketed; }

  // Effects keep their order. A task that waits for a transfer leaves the tasks before it to hide the transfer.
  bool may_move(int t) const {
    bool waits = false;
    uses_.for_writers(task(t), [&](int writer) { waits = waits || is_urgent(writer); });
    return !waits && !is_urgent(t) && task(t).kind != Task::kLoop && !task(t).nodes[0].op().effect;
  }

  // A task moves if only sums read its results, or if they lead to one sum only. (All of a backward pass leads to
  // sums.)
  void find_moves() {
    std::vector<bool> of_task(tasks_.size(), false);  // a task before the sums reads its results
    for (int t = count() - 1; t >= 0; --t) {
      if (task(t).late) continue;
      int leads_to = t;
      if (!task(t).bucketed) {
        const bool leads_to_sums = only_[at(t)] >= 0 || (of_sum_[at(t)] && !of_task[at(t)]);
        moves_[at(t)] = leads_to_sums && may_move(t);
        leads_to = moves_[at(t)] ? only_[at(t)] : kSeveral;
      }
      uses_.for_writers(task(t), [&](int writer) {
        int& only = only_[at(writer)];
        only = only == kNone || only == leads_to ? leads_to : kSeveral;
        if (task(t).bucketed) of_sum_[at(writer)] = true;
        else of_task[at(writer)] = true;
      });
    }
  }

  // A task moves behind the last task that it depends on, and behind a transfer that starts there; it stays behind a
  // transfer that it hides.
  void find_places() {
    std::vector<int> first_reader(tasks_.size(), kNoTask);  // of urgent transfers
    for (int t = 0; t < count(); ++t)
      uses_.for_writers(task(t), [&](int writer) {
        if (is_urgent(writer) && !task(t).late && first_reader[at(writer)] == kNoTask) first_reader[at(writer)] = t;
      });
    std::vector<int> under_way;
    for (int t = 0; t < count(); ++t) {
      place_.push_back(t);
      if (first_reader[at(t)] != kNoTask) under_way.push_back(t);
      if (!moves_[at(t)]) continue;
      while (!under_way.empty() && first_reader[at(under_way.back())] <= t) under_way.pop_back();
      int& place = place_.back();
      place = under_way.empty() ? kNoTask : under_way.back();
      uses_.for_writers(task(t), [&](int writer) { place = std::max(place, place_[at(writer)]); });
      for (int next = place + 1; next < t && (moves_[at(next)] || is_urgent(next)); ++next)
        if (is_urgent(next)) place = next;
    }
  }

  // A task whose results only moving tasks read moves to the first of them, not farther: its results need memory. It
  // stays if they come later than the task.
  void move_operands_with_readers() {
    std::vector<int> first(tasks_.size(), count());
    for (int t = count() - 1; t >= 0; --t) {
      if (!moves_[at(t)]) continue;
      if (!of_sum_[at(t)]) {
        moves_[at(t)] = first[at(t)] < t;
        place_[at(t)] = std::min(first[at(t)], t);
      }
      uses_.for_writers(task(t), [&](int writer) { first[at(writer)] = std::min(first[at(writer)], place_[at(t)]); });
    }
  }

  const std::vector<Task>& tasks_;
  const Uses uses_;
  std::vector<int> only_;     // the one sum that a task's results lead to, kNone or kSeveral
  std::vector<bool> of_sum_;  // a sum reads the task's results
  std::vector<bool> moves_;
  std::vector<int> place_;  // of a moving task: the last task that stays before it; else the task itself
};

}  // namespace

Schedule advance(Schedule schedule) {
  const auto is_sum = [](const Task& task) { return task.bucketed; };
  if (std::none_of(schedule.tasks.begin(), schedule.tasks.end(), is_sum)) return schedule;
  std::vector<Task> tasks;
  tasks.reserve(schedule.tasks.size());
  for (const int t : Advance(schedule).order()) tasks.push_back(std::move(schedule.tasks[static_cast<std::size_t>(t)]));
  schedule.tasks = std::move(tasks);
  return schedule;
}

}  // namespace syncline
