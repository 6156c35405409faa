#include <algorithm>

#include "runtime/passes/passes.h"
#include "runtime/placement/collectives.h"
#include "runtime/schedule/space.h"
#include "runtime/schedule/uses.h"

// A gather in place copies nothing: if only elementwise programs read the value and it lies in shared memory, they read
// each rank's rows in that rank's memory, and the gather is only a barrier. The memory is leased to the other ranks
// until a later transfer completes.
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

}  // namespace

Schedule lease(Schedule schedule) {
  const auto is_gather = [](const Task& task) { return task.kind == Task::kAllGather; };
  if (std::none_of(schedule.tasks.begin(), schedule.tasks.end(), is_gather)) return schedule;
  const LocalView local = schedule.local();
  const Uses uses(schedule);
  for (Task& gather : schedule.tasks) {
    if (gather.kind != Task::kAllGather) continue;
    const Expr& value = gather.nodes[0];
    const std::vector<std::int64_t> begin = parts_of(value, local);
    if (begin.empty() || !lies_in_shared_memory(value, schedule)) continue;
    const std::span<const int> readers = uses.of(value).readers;
    // A program supports one partition of its elements.
    const bool by_rank = std::all_of(readers.begin(), readers.end(), [&](int t) {
      const Task& reader = schedule.tasks[static_cast<std::size_t>(t)];
      return reads_elements(reader, value, schedule) && (reader.by_rank.empty() || reader.by_rank == begin);
    });
    if (!by_rank) continue;
    gather.in_place = true;
    schedule.memory[schedule.memory.locate(value, local).buffer].leased = true;
    for (const int t : readers) schedule.tasks[static_cast<std::size_t>(t)].by_rank = begin;
  }
  return schedule;
}

}  // namespace syncline
