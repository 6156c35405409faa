#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <unordered_map>

#include "base/error.h"
#include "ops/core/fill.h"
#include "runtime/schedule/uses.h"

namespace syncline {
namespace {

class Verifier {
 public:
  Verifier(const Schedule& schedule, const char* pass)
      : schedule_(schedule), local_(schedule.local()), uses_(schedule), pass_(pass) {}

  void run() const {
    check_transfers();
    check_reads();
    if (schedule_.memory.size() == 0) return;
    check_commit();
    check_lives();
  }

 private:
  template <class... Parts>
  [[noreturn]] void broken(std::size_t t, const Parts&... parts) const {
    fail<InternalError>("plan, pass ", pass_, ": task ", t, " of '", schedule_.request.name, "' ", parts..., "; ",
                        to_text(schedule_));
  }

  // Each starts once and is waited for once, later, under the same guards.
  void check_transfers() const {
    std::unordered_map<int, std::size_t> starts, waits;
    for (std::size_t t = 0; t < schedule_.tasks.size(); ++t) {
      const Task& task = schedule_.tasks[t];
      if (task.starts_transfer() && !starts.emplace(task.transfer, t).second) broken(t, "starts a transfer again");
      if (task.kind != Task::kWait) continue;
      const auto start = starts.find(task.transfer);
      if (start == starts.end()) broken(t, "waits for a transfer that has not started");
      if (schedule_.tasks[start->second].guards != task.guards) broken(t, "waits under other guards than the start's");
      if (!waits.emplace(task.transfer, t).second) broken(t, "waits again");
    }
    if (waits.empty()) return;  // before the pass `wait`
    for (const auto& [transfer, t] : starts)
      if (!waits.contains(transfer)) broken(t, "starts a transfer that nobody waits for");
  }

  // What a task reads is a leaf, a number within a program, or was written before; a guarded value is read under its
  // guards or as a side of its choice.
  void check_reads() const {
    for (std::size_t t = 0; t < schedule_.tasks.size(); ++t) {
      const Task& task = schedule_.tasks[t];
      const auto check = [&](const Expr& value) {
        const Expr base = local_.resolve(value).base;
        const Use& use = uses_.of(base);
        const bool number = task.kind == Task::kFused && base.is<Fill>();
        if (use.writer == kNoTask && !base.op().leaf && !number)
          broken(t, "reads what no task writes: ", base.op().name);
        if (use.available >= static_cast<int>(t)) broken(t, "reads ", base.op().name, " before it is there");
      };
      for (const Expr& read : task.reads) check(read);
      for (const Guard& guard : task.guards) check(guard.condition);
    }
  }

  // Nothing writes a variable before what may fail: a transfer, in a loop or outside, or a value that is refused.
  void check_commit() const {
    const auto late = std::find_if(schedule_.tasks.rbegin(), schedule_.tasks.rend(),
                                   [](const Task& task) { return task.may_fail() || task.starts_transfer(); });
    for (auto task = late; task != schedule_.tasks.rend(); ++task)
      for (const Expr& value : task->writes)
        if (schedule_.memory.is_variable(schedule_.memory.locate(value, local_).buffer))
          broken(static_cast<std::size_t>(schedule_.tasks.rend() - task) - 1, "writes a variable before '",
                 late->nodes.empty() ? "wait" : late->nodes[0].op().name, "' may fail");
  }

  struct Life {
    Expr value;
    int first, last;
    std::size_t begin, end;  // bytes
  };

  // While a value is read no other task writes its memory. What overwrites it in its last reader is of that task.
  void check_lives() const {
    std::unordered_map<int, std::vector<Life>> lives;  // by buffer
    const int end = static_cast<int>(schedule_.tasks.size());
    for (std::size_t t = 0; t < schedule_.tasks.size(); ++t)
      for (const Expr& value : schedule_.tasks[t].writes) {
        const Location at = schedule_.memory.locate(value, local_);
        const Use& use = uses_.of(value);
        const auto begin = static_cast<std::size_t>(at.offset);
        lives[at.buffer].push_back({value, static_cast<int>(t), std::max(use.last(end), use.available), begin,
                                    begin + static_cast<std::size_t>(local_.bytes(value))});
      }
    for (const auto& [buffer, of_buffer] : lives)
      for (const Life& life : of_buffer)
        for (const Life& other : of_buffer) check_pair(life, other);
  }

  void check_pair(const Life& life, const Life& other) const {
    const bool apart = life.end <= other.begin || other.end <= life.begin || life.begin == life.end;
    const bool moved = takes_part(other.value, life.value) || takes_part(life.value, other.value);
    if (life.value == other.value || apart || moved || is_side_of(life.value, other.value)) return;
    if (life.first < other.first && other.first < life.last)
      broken(static_cast<std::size_t>(other.first), "writes over ", life.value.op().name, ", which task ", life.last,
             " still reads");
  }

  // A transfer gives its sum, or all ranks' rows, where this rank's part lies.
  bool takes_part(const Expr& given, const Expr& part) const {
    const Use& use = uses_.of(given);
    if (use.writer == kNoTask) return false;
    const Task& task = schedule_.tasks[static_cast<std::size_t>(use.writer)];
    return task.starts_transfer() && std::any_of(task.reads.begin(), task.reads.end(),
                                                 [&](const Expr& read) { return local_.resolve(read).base == part; });
  }

  // The new side of a choice is computed where the choice's result lies (passes/assign_memory.cc).
  static bool is_side_of(const Expr& side, const Expr& choice) {
    return std::find(choice.node().inputs.begin(), choice.node().inputs.end(), side) != choice.node().inputs.end();
  }

  const Schedule& schedule_;
  const LocalView local_;
  const Uses uses_;
  const char* const pass_;
};

}  // namespace

void verify(const Schedule& schedule, const char* pass) {
  static const bool wanted = [] {
    const char* value = std::getenv("SYNCLINE_VERIFY_PLAN");
    return value != nullptr && std::string_view(value) == "1";
  }();
  if (wanted) Verifier(schedule, pass).run();
}

}  // namespace syncline
