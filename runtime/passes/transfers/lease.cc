#include <algorithm>

#include "runtime/passes/passes.h"
#include "runtime/placement/collectives.h"
#include "runtime/schedule/space.h"
#include "runtime/schedule/uses.h"

// A transfer in place moves nothing: if only elementwise programs read its value and all ranks' parts lie in shared
// memory, the programs read the parts there, and the transfer is only a barrier. They read a gathered value's rows in
// the memory of the rank that computed them, and add the terms of a sum block by block. This memory is leased to the
// other ranks until a later transfer completes.
namespace syncline {
namespace {

// True if the task reads the value element by element, so that it can run for one rank's elements at a time.
bool reads_elements(const Task& task, const Expr& value, const Schedule& schedule) {
  if (task.kind != Task::kFused) return false;
  const LocalView local = schedule.local();
  if (space_of_program(task, local).at.is_part_of_variable()) return false;  // all elements only on some ranks
  const kernels::FusedProgram& program = schedule.programs[static_cast<std::size_t>(task.program)];
  if (!kernels::by_element(program) || program.size != value.shape().size()) return false;
  for (std::size_t i = 0; i < task.reads.size(); ++i) {
    const kernels::FusedProgram::Input& input = program.inputs[i];
    const bool whole = input.spread == kernels::FusedProgram::Input::kFull && input.offset == 0;
    if (local.resolve(task.reads[i]).base == value && !whole) return false;
  }
  return true;
}

// Where each rank's elements begin; empty if they are not whole rows.
std::vector<std::int64_t> parts_of(const Expr& value, const LocalView& local) {
  const Placement at = local.placement(value.input(0));
  if (at.axis != 0 || value.shape().size() == 0) return {};
  const std::int64_t rows = value.shape()[0], row = value.shape().size() / rows;
  std::vector<std::int64_t> begin;
  for (int r = 0; r <= local.shares().ranks(); ++r) begin.push_back(local.shares().at(r, rows, at.rows) * row);
  return begin;
}

// True if the gathered value is in shared memory and this rank computes its rows in place. Outputs of the plan are
// never in shared memory (assign_memory.cc).
bool lies_in_shared_memory(const Expr& value, const Schedule& schedule) {
  const int all = schedule.memory.locate(value, schedule.local()).buffer;
  return schedule.memory[all].kind == Buffer::kShared &&
         schedule.memory.locate(value.input(0), schedule.local()).buffer == all;
}

// Marks the task and its value's memory.
void read_in_place(Task& transfer, Schedule& schedule) {
  transfer.in_place = true;
  schedule.memory[schedule.memory.locate(transfer.nodes[0], schedule.local()).buffer].leased = true;
}

// Returns true if the gather is in place.
bool gather_in_place(Task& gather, std::span<const int> readers, Schedule& schedule) {
  const Expr& value = gather.nodes[0];
  const std::vector<std::int64_t> begin = parts_of(value, schedule.local());
  if (begin.empty() || !lies_in_shared_memory(value, schedule)) return false;
  // A program supports one partition of its elements.
  const bool by_rank = std::all_of(readers.begin(), readers.end(), [&](int t) {
    const Task& reader = schedule.tasks[static_cast<std::size_t>(t)];
    return reads_elements(reader, value, schedule) && (reader.by_rank.empty() || reader.by_rank == begin);
  });
  if (!by_rank) return false;
  read_in_place(gather, schedule);
  for (const int t : readers) schedule.tasks[static_cast<std::size_t>(t)].by_rank = begin;
  return true;
}

// True if the task reads each element of this rank's rows of a sum once. Depends on the global shapes only: all ranks
// must decide alike.
bool adds_elements(const Task& task, const Expr& sum, const LocalView& local) {
  const Space space = space_of(sum, local);
  if (task.kind != Task::kFused || space_of_program(task, local) != space) return false;
  const auto is_sum = [&](const Expr& value) { return local.resolve(value).base == sum; };
  return std::none_of(task.strided_views.begin(), task.strided_views.end(),
                      [&](const Expr& view) { return is_sum(view.input(0)); }) &&
         std::all_of(task.reads.begin(), task.reads.end(),
                     [&](const Expr& read) { return !is_sum(read) || space_of(read, local) == space; });
}

// Returns true if the sum is in place.
bool add_in_place(Task& scatter, std::span<const int> readers, Schedule& schedule) {
  const LocalView local = schedule.local();
  const Expr& sum = scatter.nodes[0];
  const RowShares& shares = local.shares();
  if (shares.node.ranks < shares.ranks() || shares.ranks() > TermSum::kMostRanks) return false;
  if (schedule.memory[schedule.memory.locate(sum, local).buffer].kind != Buffer::kShared) return false;
  const auto task = [&](int t) -> const Task& { return schedule.tasks[static_cast<std::size_t>(t)]; };
  if (!std::all_of(readers.begin(), readers.end(), [&](int t) { return adds_elements(task(t), sum, local); }))
    return false;
  read_in_place(scatter, schedule);
  for (const int t : readers) {
    kernels::FusedProgram& program = schedule.programs[static_cast<std::size_t>(task(t).program)];
    for (std::size_t i = 0; i < task(t).reads.size(); ++i)
      if (local.resolve(task(t).reads[i]).base == sum) kernels::compute_by_blocks(program, i, shares.ranks());
  }
  return true;
}

}  // namespace

Schedule lease(Schedule schedule) {
  if (schedule.transfers == 0) return schedule;
  const Uses uses(schedule);
  int last_reader = kNoTask, last_transfer = kNoTask;
  for (int t = 0; t < std::ssize(schedule.tasks); ++t) {
    Task& task = schedule.tasks[static_cast<std::size_t>(t)];
    if (task.guards.empty() && (task.starts_transfer() || task.kind == Task::kBarrier)) last_transfer = t;
    if (task.kind != Task::kAllGather && task.kind != Task::kReduceScatter) continue;
    const Use& use = uses.of(task.nodes[0]);
    if (use.root || use.readers.empty()) continue;
    const bool in_place = task.kind == Task::kAllGather ? gather_in_place(task, use.readers, schedule)
                                                        : add_in_place(task, use.readers, schedule);
    if (in_place) last_reader = std::max(last_reader, use.readers.back());
  }
  schedule.leases_end = last_reader != kNoTask && last_transfer > last_reader;
  return schedule;
}

RankParts rank_parts(const Task& task, const Schedule& schedule) {
  const LocalView local = schedule.local();
  RankParts parts;
  parts.begin = task.by_rank;
  parts.in.resize(task.reads.size());
  for (std::size_t i = 0; i < task.reads.size(); ++i) {
    const Location at = schedule.memory.locate(task.reads[i], local);
    if (!schedule.memory[at.buffer].leased || !local.resolve(task.reads[i]).base.is<AllGather>()) continue;
    parts.operands.push_back(i);
    parts.offsets.push_back(schedule.memory.shared_offset(at));
  }
  return parts;
}

}  // namespace syncline
