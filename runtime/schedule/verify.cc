#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <unordered_map>

#include "base/digest.h"
#include "ops/control/branch.h"
#include "ops/graph/fill.h"
#include "ops/graph/leaf.h"
#include "runtime/placement/differing_value.h"
#include "runtime/schedule/space.h"
#include "runtime/schedule/uses.h"
#include "syncline/error.h"

namespace syncline {
namespace {

#ifdef NDEBUG
constexpr bool kDebugBuild = false;
#else
constexpr bool kDebugBuild = true;
#endif

class Verifier {
 public:
  Verifier(const Schedule& schedule, const char* pass)
      : schedule_(schedule), local_(schedule.local()), uses_(schedule), pass_(pass) {}

  void run() const {
    check_transfers();
    check_same_transfers();
    check_reads();
    check_reductions();
    check_epilogues();
    if (schedule_.memory.size() == 0) return;
    check_commit();
    check_shared_variables();
    check_lives();
    check_leases();
    check_in_place();
  }

 private:
  template <class... Parts>
  [[noreturn]] void broken(std::size_t t, const Parts&... parts) const {
    fail<InternalError>("plan, pass ", pass_, ": task ", t, " of '", schedule_.request.name, "' ", parts..., "; ",
                        to_text(schedule_));
  }

  // Each transfer has one start and one later wait, under equal guards.
  void check_transfers() const {
    std::unordered_map<int, std::size_t> starts, waits;
    for (std::size_t t = 0; t < schedule_.tasks.size(); ++t) {
      const Task& task = schedule_.tasks[t];
      if (task.starts_transfer() && !starts.emplace(task.transfer, t).second) broken(t, "starts a transfer again");
      if (task.kind != Task::kWait) continue;
      const auto start = starts.find(task.transfer);
      if (start == starts.end()) broken(t, "waits for a transfer that has not started");
      if (schedule_.tasks[start->second].guards != task.guards)
        broken(t, "waits under guards that differ from those of its start");
      if (!waits.emplace(task.transfer, t).second) broken(t, "waits again");
    }
    if (waits.empty()) return;  // the pass `wait` has not run yet
    for (const auto& [transfer, t] : starts)
      if (!waits.contains(transfer)) broken(t, "starts a transfer that no task waits for");
  }

  // All ranks have equal transfers in equal order.
  void check_same_transfers() const {
    if (schedule_.request.strategy == nullptr) return;
    std::string transfers;
    for (const Task& task : schedule_.tasks) {
      if (!task.starts_transfer() && task.kind != Task::kBarrier) continue;
      transfers += join_text(static_cast<int>(task.kind), task.in_place ? " in place" : "", " of ", task.guards.size(),
                             " guards:");
      for (const Expr& node : task.nodes) transfers += join_text(' ', node.meta());
      transfers += '\n';
    }
    if (!all_equal(gather_numbers(*schedule_.request.strategy, digest_bytes(transfers.data(), transfers.size()),
                                  "transfers of a plan")))
      fail<InternalError>("plan, pass ", pass_, ": ranks have different transfers; those of this rank are\n",
                          transfers);
  }

  // A task reads leaves, fills (fused programs only), and values written before it.
  void check_reads() const {
    for (std::size_t t = 0; t < schedule_.tasks.size(); ++t) {
      const Task& task = schedule_.tasks[t];
      const auto check = [&](const Expr& value) {
        const Expr base = local_.resolve(value).base;
        const Use& use = uses_.of(base);
        const bool number = task.has_program() && base.is<Fill>();
        if (use.writer == kNoTask && !base.op().leaf && !number)
          broken(t, "reads what no task writes: ", base.op().name);
        if (use.available >= static_cast<int>(t)) broken(t, "reads ", base.op().name, " before it is written");
      };
      for (const Expr& read : task.reads) check(read);
      for (const Guard& guard : task.guards) check(guard.condition);
    }
  }

  // The reductions of a pass are alike, and are its last nodes and results. Each operand is a node or a read of its
  // space.
  void check_reductions() const {
    for (std::size_t t = 0; t < schedule_.tasks.size(); ++t) {
      const Task& task = schedule_.tasks[t];
      if (task.kind != Task::kReduce) continue;
      const std::span<const Expr> reductions = task.reductions();
      if (reductions.empty() || reductions.size() > kernels::kMostReduced)
        broken(t, "has ", reductions.size(), " reductions");
      if (reductions.size() > task.writes.size() ||
          !std::equal(reductions.rbegin(), reductions.rend(), task.writes.rbegin()))
        broken(t, "does not write its reductions last");
      const OpDef& op = reductions[0].op();
      for (const Expr& e : reductions) {
        if (&e.op() != &op || e.dtype() != reductions[0].dtype() ||
            !op.equal(e.node().attrs.get(), reductions[0].node().attrs.get()))
          broken(t, "has reductions that differ");
        if (std::ranges::count(task.nodes, e.input(0)) == 0 && std::ranges::count(task.reads, e.input(0)) == 0)
          broken(t, "reduces ", e.input(0).op().name, ", which it neither computes nor reads");
        if (space_of(e.input(0), local_) != space_of_program(task, local_))
          broken(t, "reduces ", e.input(0).op().name, " of another space");
      }
    }
  }

  // An epilogue follows a kernel that supports it, reads the kernel's whole value, and writes no memory that the kernel
  // reads or that another value may have while the kernel runs.
  void check_epilogues() const {
    for (std::size_t t = 0; t < schedule_.tasks.size(); ++t) {
      const Task& task = schedule_.tasks[t];
      if (!task.epilogue) continue;
      const bool follows = t > 0 && schedule_.tasks[t - 1].kind == Task::kKernel;
      if (task.kind != Task::kFused || !follows || schedule_.tasks[t - 1].guards != task.guards)
        broken(t, "is an epilogue that follows no kernel");
      const Task& kernel = schedule_.tasks[t - 1];
      const auto of_kernel = [&](const Expr& read) { return local_.resolve(read).base == kernel.writes[0]; };
      if (!kernel.nodes[0].op().takes_epilogue || kernel.part_sum >= 0)
        broken(t, "is the epilogue of ", kernel.nodes[0].op().name, ", which supports none");
      const bool whole = std::ranges::all_of(task.reads, [&](const Expr& read) {
        return !of_kernel(read) || (local_.bytes(read) == local_.bytes(kernel.writes[0]) &&
                                    local_.meta(read).shape == local_.meta(task.nodes.back()).shape);
      });
      if (std::ranges::count_if(task.reads, of_kernel) != 1 || !whole || !task.by_rank.empty())
        broken(t, "does not read the elements of ", kernel.nodes[0].op().name, ", whose epilogue it is, once");
      if (schedule_.memory.size() > 0) check_memory_of_epilogue(t);
    }
  }

  void check_memory_of_epilogue(std::size_t t) const {
    const Task &task = schedule_.tasks[t], &kernel = schedule_.tasks[t - 1];
    for (const Expr& value : task.writes) {
      const int buffer = schedule_.memory.locate(value, local_).buffer;
      const Life written = life_of(value, 0, 0);
      const Buffer& memory = schedule_.memory[buffer];
      if (memory.kind == Buffer::kArena && memory.life.first >= static_cast<int>(t))
        broken(t, "is an epilogue, but other values may have its memory while the kernel before it runs");
      for (const Expr& read : kernel.reads) {
        const Life needed = life_of(read, 0, 0);
        const bool apart = needed.end <= written.begin || written.end <= needed.begin;
        if (schedule_.memory.locate(read, local_).buffer == buffer && !apart)
          broken(t, "writes over ", read.op().name, ", which the kernel of this epilogue still reads");
      }
    }
  }

  // No task writes a variable before a task that may fail: a transfer, also in a loop, or an op that may reject a
  // value.
  void check_commit() const {
    const auto late = std::find_if(schedule_.tasks.rbegin(), schedule_.tasks.rend(),
                                   [](const Task& task) { return task.may_fail() || task.starts_transfer(); });
    for (auto task = late; task != schedule_.tasks.rend(); ++task)
      for (const Expr& value : task->writes)
        if (schedule_.memory[schedule_.memory.locate(value, local_).buffer].kind == Buffer::kFixed)
          broken(static_cast<std::size_t>(schedule_.tasks.rend() - task) - 1, "writes a variable before '",
                 late->nodes.empty() ? "wait" : late->nodes[0].op().name, "' may fail");
  }

  // A transfer starts after all tasks that write a shared variable's new value or read its old one.
  void check_shared_variables() const {
    ValueSet old;
    for (const Update& update : schedule_.request.updates)
      if (update.target.state().shared() != nullptr) old.insert(update.target.expr());
    if (old.empty()) return;
    const auto last = std::find_if(schedule_.tasks.rbegin(), schedule_.tasks.rend(), [](const Task& task) {
      return task.starts_transfer() || task.kind == Task::kBarrier;
    });
    for (auto task = schedule_.tasks.rbegin(); task != last; ++task) {
      const auto t = static_cast<std::size_t>(schedule_.tasks.rend() - task) - 1;
      for (const Expr& value : task->writes)
        if (schedule_.memory[schedule_.memory.locate(value, local_).buffer].kind == Buffer::kVariable)
          broken(t, "writes a shared variable behind the last transfer");
      for (const Expr& read : task->reads)
        if (old.contains(local_.resolve(read).base)) broken(t, "reads a shared variable behind the last transfer");
    }
  }

  struct Life {
    Expr value;
    int first, last;
    std::size_t begin, end;  // bytes
  };

  Life life_of(const Expr& value, int first, int last) const {
    const auto begin = static_cast<std::size_t>(schedule_.memory.locate(value, local_).offset);
    return {value, first, last, begin, begin + static_cast<std::size_t>(local_.bytes(value))};
  }

  // No other task writes a value's memory while the value has readers. The last reader may, if it reads each element
  // before writing there.
  void check_lives() const {
    std::unordered_map<int, std::vector<Life>> lives;  // by buffer
    const int end = static_cast<int>(schedule_.tasks.size());
    const auto add = [&](const Expr& value, int first) {
      const Use& use = uses_.of(value);
      lives[schedule_.memory.locate(value, local_).buffer].push_back(
          life_of(value, first, std::max(use.last(end), use.available)));
    };
    ValueSet leaves;
    for (std::size_t t = 0; t < schedule_.tasks.size(); ++t) {
      for (const Expr& read : schedule_.tasks[t].reads)
        if (const Expr base = local_.resolve(read).base; base.is<VariableLeaf>() && leaves.insert(base))
          add(base, kNoTask);
      for (const Expr& value : schedule_.tasks[t].writes) add(value, static_cast<int>(t));
    }
    for (const auto& [buffer, of_buffer] : lives)
      for (const Life& life : of_buffer)
        for (const Life& other : of_buffer) check_pair(life, other);
  }

  void check_pair(const Life& life, const Life& other) const {
    const bool apart = life.end <= other.begin || other.end <= life.begin || life.begin == life.end;
    const bool moved = takes_part(other.value, life.value) || takes_part(life.value, other.value);
    if (life.value == other.value || apart || moved || other.first <= life.first || life.last < other.first) return;
    if (is_chosen_instead(life, other)) return;
    const auto t = static_cast<std::size_t>(other.first);
    if (life.last > other.first || !reads_before_it_writes(schedule_.tasks[t], life.value, other.value))
      broken(t, "writes over ", life.value.op().name, ", which task ", life.last, " still reads");
  }

  bool reads_before_it_writes(const Task& task, const Expr& operand, const Expr& output) const {
    const auto reads = [&](const Expr& read) { return local_.resolve(read).base == operand; };
    if (task.kind == Task::kKernel)
      return task.nodes[0].op().in_place && (reads(task.reads[0]) || task.nodes[0].is<Choose>());
    const std::span<const Expr> reductions = task.reductions();
    const bool reduced =
        std::any_of(reductions.begin(), reductions.end(), [&](const Expr& e) { return reads(e.input(0)); });
    if (task.kind == Task::kReduce && (reduced || output.op().block == nullptr)) return false;
    return task.has_program() && std::all_of(task.reads.begin(), task.reads.end(), [&](const Expr& read) {
             return !reads(read) || local_.meta(read).shape == local_.meta(output).shape;
           });
  }

  // Only transfers in place and tasks that compute this rank's part or term write leased memory.
  void check_leases() const {
    for (std::size_t t = 0; t < schedule_.tasks.size(); ++t)
      for (const Expr& value : schedule_.tasks[t].writes) {
        const int buffer = schedule_.memory.locate(value, local_).buffer;
        if (!schedule_.memory[buffer].leased || schedule_.tasks[t].in_place) continue;
        const std::span<const int> readers = uses_.of(value).readers;
        const bool is_part = std::ranges::any_of(
            readers, [&](int reader) { return schedule_.tasks[static_cast<std::size_t>(reader)].in_place; });
        if (!is_part) broken(t, "writes memory that other ranks read");
      }
  }

  // Programs add up every operand that is a sum in place. If leases end, a transfer comes behind the last reader.
  void check_in_place() const {
    int last_reader = kNoTask, last_transfer = kNoTask;
    for (int t = 0; t < std::ssize(schedule_.tasks); ++t) {
      const Task& task = schedule_.tasks[static_cast<std::size_t>(t)];
      if (task.guards.empty() && (task.starts_transfer() || task.kind == Task::kBarrier)) last_transfer = t;
      if (!task.in_place) continue;
      for (const int r : uses_.of(task.nodes[0]).readers) {
        last_reader = std::max(last_reader, r);
        const Task& reader = schedule_.tasks[static_cast<std::size_t>(r)];
        for (std::size_t i = 0; i < reader.reads.size() && task.kind == Task::kReduceScatter; ++i)
          if (local_.resolve(reader.reads[i]).base == task.nodes[0] && !adds_up(reader, i))
            broken(static_cast<std::size_t>(r), "does not add the ranks' terms of a sum in place");
      }
    }
    if (schedule_.leases_end && last_reader > last_transfer)
      broken(static_cast<std::size_t>(last_reader), "reads other ranks' memory behind the last transfer");
  }

  bool adds_up(const Task& task, std::size_t operand) const {
    return task.kind == Task::kFused &&
           schedule_.programs[static_cast<std::size_t>(task.program)].inputs[operand].spread ==
               kernels::FusedProgram::Input::kComputed;
  }

  // True if a transfer writes `given` over its operand `part`.
  bool takes_part(const Expr& given, const Expr& part) const {
    const Use& use = uses_.of(given);
    if (use.writer == kNoTask) return false;
    const Task& task = schedule_.tasks[static_cast<std::size_t>(use.writer)];
    return task.starts_transfer() && std::any_of(task.reads.begin(), task.reads.end(),
                                                 [&](const Expr& read) { return local_.resolve(read).base == part; });
  }

  // One side of a choice may overwrite the other: under its guard, only the choice still reads the other side.
  bool is_chosen_instead(const Life& life, const Life& other) const {
    const Task* const choice = last_reader_behind(life.value, other.first);
    if (choice == nullptr || !choice->nodes[0].is<Choose>()) return false;
    const Guards& guards = schedule_.tasks[static_cast<std::size_t>(other.first)].guards;
    for (const bool side : {true, false})
      if (local_.resolve(choice->reads[side ? 0 : 1]).base == other.value)
        return std::find(guards.begin(), guards.end(), Guard{choice->reads[2], side}) != guards.end();
    return false;
  }

  // The only reader after task t; null if there are others.
  const Task* last_reader_behind(const Expr& value, int t) const {
    const Use& use = uses_.of(value);
    const auto behind = std::upper_bound(use.readers.begin(), use.readers.end(), t);
    const bool one = !use.root && behind != use.readers.end() && *behind == use.readers.back();
    return one ? &schedule_.tasks[static_cast<std::size_t>(*behind)] : nullptr;
  }

  const Schedule& schedule_;
  const LocalView local_;
  const Uses uses_;
  const char* const pass_;
};

}  // namespace

bool verifies_plans() {
  static const bool wanted = [] {
    const char* value = std::getenv("SYNCLINE_VERIFY_PLAN");
    return kDebugBuild || (value != nullptr && std::string_view(value) == "1");
  }();
  return wanted;
}

void verify(const Schedule& schedule, const char* pass) { Verifier(schedule, pass).run(); }

}  // namespace syncline
