#include "comm/shared/node_control.h"

#include <unistd.h>

#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <set>
#include <utility>

#include "syncline/distributed/ending.h"

namespace syncline::comm {
namespace {

// How often a rank is missed between two looks at its process. Looking up a process costs a few system calls, reading
// the counters nanoseconds.
constexpr std::uint64_t kLooksAProcess = 2048;

// A program that calls exit() does not destroy a living communicator. This handler tells the other ranks. It does
// nothing in a forked child.
class NodeControlsAtExit {
 public:
  static NodeControlsAtExit& instance() {
    static auto* controls = new NodeControlsAtExit;  // never destroyed: exit handlers run in any order
    return *controls;
  }
  void add(const NodeControl* control) {
    const std::lock_guard lock(mutex_);
    controls_.insert(control);
  }
  void remove(const NodeControl* control) {
    const std::lock_guard lock(mutex_);
    controls_.erase(control);
  }

 private:
  NodeControlsAtExit() {
    std::atexit([] {
      const std::lock_guard lock(instance().mutex_);
      for (const NodeControl* control : instance().controls_) control->leave(Left::kExited);
    });
  }
  std::mutex mutex_;
  std::set<const NodeControl*> controls_;
};

}  // namespace

void Summary::append(const Summary& next) {
  direct &= next.direct;
  if (!agrees()) return;
  if (next.header != header) {
    other = next.header;
    differing = next.first;
  } else {
    other = next.other;
    differing = next.differing;
  }
}

std::size_t NodeControl::bytes_a_rank(std::size_t half_bytes) {
  return in_pages(sizeof(RankControl) + sizeof(Summary)) + 4 * static_cast<std::size_t>(kSmallBytes) + 2 * half_bytes;
}

NodeControl::NodeControl(std::unique_ptr<Window> window, const Topology& topology, std::size_t half_bytes)
    : topology_(topology),
      half_bytes_(half_bytes),
      window_(std::move(window)),
      visible_(topology.own().size()),
      missed_(topology.own().size()) {
  const std::size_t small = static_cast<std::size_t>(kSmallBytes);
  for (int l = 0; l < ranks(); ++l) {
    std::byte* at = window_->part(l);
    controls_.push_back(std::launder(reinterpret_cast<RankControl*>(at)));
    if (l == 0) summary_ = std::launder(reinterpret_cast<Summary*>(at + sizeof(RankControl)));
    at += in_pages(sizeof(RankControl) + sizeof(Summary));
    if (l == 0) answer_ = at + 2 * small;
    payload_.push_back(at);
    staging_.push_back(at + 4 * small);
  }
  own().process_start = self_.start;
  own().process_space = self_.space;
  own().process_id = self_.id;
  NodeControlsAtExit::instance().add(this);
}

void NodeControl::look_around() {
  for (int l = 0; l < ranks(); ++l)
    visible_[static_cast<std::size_t>(l)] = process_state(process_of(l), self_) != ProcessState::kGone;
}

NodeControl::~NodeControl() { NodeControlsAtExit::instance().remove(this); }

bool NodeControl::all(std::atomic<std::uint64_t> RankControl::*counter, std::uint64_t value,
                      const Collective& collective) {
  bool all = true;
  for (int l = 0; l < ranks(); ++l) all = reached(l, counter, value, collective) && all;
  return all;
}

bool NodeControl::reached(int l, std::atomic<std::uint64_t> RankControl::*counter, std::uint64_t value,
                          const Collective& collective) {
  const auto there = [&] { return (of(l).*counter).load(std::memory_order_acquire) >= value; };
  if (there()) return true;
  const bool look = ++missed_[static_cast<std::size_t>(l)] % kLooksAProcess == 0;
  const bool gone = of(l).left.load() != Left::kNo || (look && state_of(l) == ProcessState::kGone);
  if (!gone) return false;
  if (there()) return true;  // it may have set the counter just before it left
  fail_without(l, collective);
}

void NodeControl::check_nobody_gave_up(std::uint64_t round, const Collective& collective) const {
  for (int l = 0; l < ranks(); ++l)
    if (of(l).left == Left::kGaveUp && of(l).arrived == round) fail_without(l, collective);
}

void NodeControl::fail_without(int l, const Collective& collective) const {
  const char* how = "has died: its process is gone";
  if (of(l).left == Left::kGaveUp || of(l).left == Left::kClosed) how = "has left the job; see its own error";
  if (of(l).left == Left::kExited) how = "has left the job: its program called exit()";
  fail<RankGone>("rank ", number_of(topology_.local), " waits for ", comm::describe(collective.header), ", but rank ",
                 number_of(l), " ", how);
}

bool NodeControl::is_reporter(std::uint64_t round, Moment now) const {
  for (int l = 0; l < topology_.local; ++l)
    if (of(l).arrived >= round && state_of(l) == ProcessState::kRuns && !hangs(l, now)) return false;
  return true;
}

bool NodeControl::lowest_living() const {
  for (int l = 0; l < topology_.local; ++l) {
    const Left left = of(l).left;
    if ((left == Left::kNo || left == Left::kGaveUp) && state_of(l) == ProcessState::kRuns) return false;
  }
  return true;
}

ProcessState NodeControl::state_of(int l) const {
  if (!visible_[static_cast<std::size_t>(l)]) return ProcessState::kRuns;
  return process_state(process_of(l), self_);
}

ProcessName NodeControl::process_of(int l) const {
  return {of(l).process_id.load(), of(l).process_start.load(), of(l).process_space.load()};
}

std::string describe_rank(int rank, ProcessState state, const Position& position) {
  const char* how = "running";
  if (state == ProcessState::kGone) how = "its process is gone";
  if (state == ProcessState::kStopped) how = "stopped by a signal or a debugger";
  return join_text("rank ", rank, " (", how, describe_position(position), ')');
}

std::string NodeControl::describe(int l) const {
  const int rank = number_of(l);
  if (of(l).left == Left::kExited) return join_text("rank ", rank, " (its program called exit())");
  if (of(l).left != Left::kNo) return join_text("rank ", rank, " (has left the job)");
  return describe_rank(rank, state_of(l), position_of(l));
}

std::string say_of(const std::vector<std::string>& ranks, std::string_view of_one, std::string_view of_several) {
  std::string text;
  for (const std::string& rank : ranks) text += (text.empty() ? "" : ", ") + rank;
  return text.empty() ? text : join_text(text, ' ', ranks.size() == 1 ? of_one : of_several);
}

Missing NodeControl::missing(std::uint64_t round) const {
  std::vector<std::string> late;
  bool may_come = true;
  for (int l = 0; l < ranks(); ++l) {
    if (of(l).arrived >= round) continue;
    late.push_back(describe(l));
    may_come = may_come && of(l).left == Left::kNo && runs(l);
  }
  return {.text = say_of(late, "has not called it", "have not called it"), .may_come = may_come};
}

std::string NodeControl::stuck(std::uint64_t round, Moment now) const {
  std::vector<std::string> stuck;
  for (int l = 0; l < ranks(); ++l)
    if (l != topology_.local && of(l).arrived >= round && (of(l).left != Left::kNo || !runs(l) || hangs(l, now)))
      stuck.push_back(describe(l));
  return say_of(stuck, kDoesNotContinue, kDoNotContinue);
}

std::string NodeControl::behind() const {
  std::vector<std::string> slow;
  for (int l = 0; l < ranks(); ++l)
    if (of(l).staged < own().staged || of(l).reduced < own().reduced) slow.push_back(describe(l));
  return say_of(slow, kDoesNotContinue, kDoNotContinue);
}

Missing NodeControl::not_ended() const {
  std::vector<std::string> late;
  bool may_come = true;
  for (int l = 0; l < ranks(); ++l) {
    const Left left = of(l).left;
    if (left == Left::kNo) late.push_back(describe(l));
    may_come = may_come && (left == Left::kNo || left == Left::kClosed) && runs(l);
  }
  return {.text = say_of(late, "has not ended", "have not ended"), .may_come = may_come};
}

int NodeControl::awaited_by(int l) const {
  return of(l).left == Left::kNo && runs(l) ? of(l).awaited.load(std::memory_order_relaxed) - 1 : -1;
}

void NodeControl::set_awaited(int node) const {
  std::atomic<std::int32_t>& awaited = own().awaited;
  // Most calls change nothing: other ranks poll this line.
  if (awaited.load(std::memory_order_relaxed) != node + 1) awaited.store(node + 1, std::memory_order_relaxed);
}

bool NodeControl::hangs(int l, Moment now) const {
  const std::uint64_t round = of(l).arrived;
  if (round == 0 || round < own().arrived) return false;
  const std::chrono::nanoseconds seen{std::max(of(l).arrival_ns[round % 2].load(std::memory_order_relaxed),
                                               of(l).polled_ns.load(std::memory_order_relaxed))};
  return now.time_since_epoch() - seen > kSilence;
}

void NodeControl::note_poll(Moment now) const {
  own().polled_ns.store(std::chrono::nanoseconds(now.time_since_epoch()).count(), std::memory_order_relaxed);
}

Position NodeControl::position_of(int l) const {
  std::array<std::uint64_t, sizeof(Position) / 8> words{};
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = of(l).position[i].load(std::memory_order_relaxed);
  return std::bit_cast<Position>(words);
}

void NodeControl::publish(const Position& position) const {
  const auto words = std::bit_cast<std::array<std::uint64_t, sizeof(Position) / 8>>(position);
  for (std::size_t i = 0; i < words.size(); ++i) own().position[i].store(words[i], std::memory_order_relaxed);
}

void NodeControl::leave(Left how) const {
  if (self_.id != static_cast<std::uint64_t>(::getpid())) return;
  Left not_yet = Left::kNo;
  own().left.compare_exchange_strong(not_yet, how);
}

}  // namespace syncline::comm
