#include "runtime/schedule/dump.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <fstream>

#include "syncline/error.h"

namespace syncline {
namespace {

// A value's name: the op that makes it, and its node's number.
std::string name_of_value(const Expr& value, const LocalView& local) {
  const Node& node = value.node();
  std::string text = join_text(node.name.empty() ? std::string(node.op->name) : node.name, '.', node.id);
  if (node.outputs.size() > 1) text += join_text(':', value.output());
  text += join_text(' ', local.meta(value));
  if (const Placement at = local.placement(value); !at.is_replicated()) text += join_text(' ', at);
  return text;
}

std::string memory_of(const Expr& value, const Schedule& schedule) {
  const LocalView local = schedule.local();
  if (!schedule.memory.has(local.resolve(value).base)) return {};
  static constexpr const char* kKinds[] = {"arena", "shared", "fixed", "feed", "variable"};
  const Location at = schedule.memory.locate(value, local);
  const Buffer& buffer = schedule.memory[at.buffer];
  std::string text = join_text(" @", kKinds[buffer.kind], ' ', at.buffer);
  if (buffer.kind == Buffer::kArena || buffer.kind == Buffer::kShared)
    text += join_text('+', buffer.life.offset + static_cast<std::size_t>(at.offset));
  if (buffer.kind == Buffer::kVariable) text += join_text(buffer.next ? " next+" : " now+", at.offset);
  return buffer.leased ? text + " leased" : text;
}

void append(std::string& text, const char* what, const std::vector<Expr>& values, const Schedule& schedule) {
  for (const Expr& value : values)
    text += join_text("    ", what, ' ', name_of_value(value, schedule.local()), memory_of(value, schedule), '\n');
}

std::string head_of(const Task& task) {
  static constexpr std::array kKinds{"kernel",     "fused", "reduce",  "all_reduce", "reduce_scatter",
                                     "all_gather", "wait",  "barrier", "loop"};
  static_assert(kKinds.size() == Task::kLoop + 1);
  std::string text = kKinds[task.kind];
  if (task.kind <= Task::kReduce)
    for (const Expr& node : task.nodes) text += join_text(' ', node.op().name);
  if (task.transfer >= 0) text += join_text(" transfer ", task.transfer);
  if (task.bucketed) text += " bucket";
  if (task.late) text += " late";
  if (task.in_place) text += " in place";
  if (task.epilogue) text += " epilogue";
  if (!task.by_rank.empty()) text += " by rank";
  if (task.has_transfers) text += " with transfers";
  if (task.may_throw) text += " may throw";
  for (const Guard& guard : task.guards)
    text += join_text(guard.needed_if ? " if " : " unless ", guard.condition.node().id);
  return text;
}

}  // namespace

std::string to_text(const Schedule& schedule) {
  std::string text;
  for (std::size_t t = 0; t < schedule.tasks.size(); ++t) {
    const Task& task = schedule.tasks[t];
    text += join_text(t, ": ", head_of(task), '\n');
    append(text, "<-", task.reads, schedule);
    append(text, "strided view", task.strided_views, schedule);
    append(text, "->", task.writes, schedule);
    append(text, "passing", task.passing, schedule);
  }
  append(text, "root", schedule.roots, schedule);
  if (schedule.memory.arena_bytes() + schedule.memory.shared_bytes() > 0)
    text += join_text("arena ", schedule.memory.arena_bytes(), " bytes, shared ", schedule.memory.shared_bytes(),
                      " bytes, of these leased ", schedule.memory.leased_bytes(),
                      schedule.leases_end ? " until the last transfer\n" : "\n");
  return text;
}

Dump::Dump(const Schedule& schedule) {
  const char* folder = std::getenv("SYNCLINE_DUMP_PLAN");
  if (folder == nullptr || *folder == '\0') return;
  thread_local int plans = 0;  // per thread: ranks that are threads get equal numbers
  const Strategy* ranks = schedule.request.strategy;
  std::string name = schedule.request.name.empty() ? "function" : schedule.request.name;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  folder_ = std::filesystem::path(folder) / join_text(ranks == nullptr ? 0 : ranks->rank(), '-', plans++, '-', name);
  std::filesystem::create_directories(folder_);
}

void Dump::write(const char* pass, const Schedule& schedule) {
  if (folder_.empty()) return;
  const int number = passes_++;
  const std::filesystem::path path = folder_ / join_text(number < 10 ? "0" : "", number, '-', pass, ".txt");
  std::ofstream file(path);
  file << to_text(schedule);
  if (!file.flush()) fail<IoError>("SYNCLINE_DUMP_PLAN: cannot write ", path.string());
}

}  // namespace syncline
