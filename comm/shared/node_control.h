// NodeControl: a node's control block, the part of its shared memory that coordinates its ranks. It holds each rank's
// progress counters, the headers of its collectives, small payloads, and two halves of staging memory per rank for data
// outside the shared region.
//
// Counters only grow. Round data are double-buffered: other ranks read what a rank writes for round n until they arrive
// at round n + 1. The summary has one buffer: local rank 0 writes it after all ranks of the node have arrived. A rank
// writes only its own part, with one exception: it writes results of reductions to the staging memory of all parts,
// after all ranks have staged the chunk and before it counts the chunk as reduced.
//
// Ownership: a control block owns its window. Threads: publish, leave and the queries that name ranks use only atomics;
// any thread may call them at any time. Only the thread that drives the wire makes the other calls.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "comm/shared/node.h"
#include "comm/shared/process_state.h"
#include "comm/worker/collective.h"
#include "comm/worker/worker.h"

namespace syncline::comm {

// How a rank left the job.
enum class Left : std::uint32_t { kNo, kGaveUp, kClosed, kExited };

// One rank's counters. Zeroed memory is the initial state.
struct RankControl {
  alignas(64) std::atomic<std::uint64_t> arrived;  // rounds that it has reached; publishes the next three members
  std::atomic<std::int64_t> arrival_ns[2];         // by Network::now
  std::uint64_t offset[2];                         // offset of its data in the shared region, plus 1; 0: elsewhere
  Header header[2];
  alignas(64) std::atomic<std::uint64_t> staged;   // chunks that it has staged
  alignas(64) std::atomic<std::uint64_t> reduced;  // chunks whose share of work it has finished
  alignas(64) std::atomic<std::uint64_t> met;      // rounds in which the nodes have met; kept by local rank 0
  std::atomic<std::uint64_t> moved;                // see Wire::moved; any rank of the node may wait for its progress
  std::atomic<std::int32_t> awaited;               // 1 + a node whose message it lacks in a stalled round; 0: none
  std::atomic<std::int64_t> polled_ns;             // when it last polled a stalled round, about; by Network::now
  alignas(64) std::atomic<Left> left;
  std::atomic<std::uint64_t> process_id, process_start, process_space;
  std::atomic<std::uint64_t> position[sizeof(Position) / 8];
};

// A waiting rank polls more often than this.
inline constexpr std::chrono::seconds kSilence{3};

// "rank 1 (stopped by a signal or a debugger, in step 7 of plan 12ab at conv2d)"
std::string describe_rank(int rank, ProcessState state, const Position& position);
// "rank 1 has come", "rank 1, rank 2 have come" for the verbs "has come" and "have come"; "" for no ranks.
std::string say_of(const std::vector<std::string>& ranks, std::string_view of_one, std::string_view of_several);

inline constexpr std::string_view kDoesNotContinue = "does not continue it", kDoNotContinue = "do not continue it";

// What the headers of a run of ranks have in common.
struct Summary {
  Header header;                // of the first rank
  Header other;                 // of the first rank that differs from it
  std::uint32_t first = 0;      // rank
  std::uint32_t differing = 0;  // the first rank that differs, or 0
  std::uint32_t direct = 1;     // 0 if data of some rank need staging

  bool agrees() const { return differing == 0; }
  // Adds the ranks that follow this run.
  void append(const Summary& next);
};

class NodeControl {
 public:
  // `topology` must live as long as this object. `half_bytes`: size of each of a rank's two staging halves.
  NodeControl(std::unique_ptr<Window> window, const Topology& topology, std::size_t half_bytes);
  ~NodeControl();
  NodeControl(const NodeControl&) = delete;
  NodeControl& operator=(const NodeControl&) = delete;
  static std::size_t bytes_a_rank(std::size_t half_bytes);

  int ranks() const { return topology_.local_size(); }
  RankControl& of(int l) const { return *controls_[static_cast<std::size_t>(l)]; }
  RankControl& own() const { return of(topology_.local); }
  std::byte* payload(int l, std::uint64_t round) const { return payload_[static_cast<std::size_t>(l)] + parity(round); }
  std::byte* answer(std::uint64_t round) const { return answer_ + parity(round); }
  // Of all ranks; local rank 0's counter `met` publishes it, and the answer.
  Summary& summary() const { return *summary_; }
  std::byte* staging(int l, std::uint64_t chunk) const {
    return staging_[static_cast<std::size_t>(l)] + (chunk % 2) * half_bytes_;
  }
  std::size_t half_bytes() const { return half_bytes_; }

  // Call it after all ranks have made their control blocks. Notes which processes this one can see: if one of them is
  // gone later, its rank counts as dead. A process that it cannot see counts as running.
  void look_around();

  // Whether every rank's counter, or that of local rank l, is at least `value`. If not, checks from time to time
  // whether the rank lives. Throws RankGone for a rank that will never come.
  bool all(std::atomic<std::uint64_t> RankControl::*counter, std::uint64_t value, const Collective& collective);
  bool reached(int l, std::atomic<std::uint64_t> RankControl::*counter, std::uint64_t value,
               const Collective& collective);
  // Throws RankGone if a rank gave up after it had arrived at the round.
  void check_nobody_gave_up(std::uint64_t round, const Collective& collective) const;
  // Whether this rank is the lowest one that runs, does not hang, and waits for the round. Only that rank prints.
  bool is_reporter(std::uint64_t round, Moment now) const;
  // The ranks that have not come to the round; "" if there are none.
  Missing missing(std::uint64_t round) const;
  // The ranks that have come to the round, but hang, have left, or do not run; "" if there are none.
  std::string stuck(std::uint64_t round, Moment now) const;
  // The ranks that have staged or worked on fewer chunks than this one; they may wait for others. "" if there are none.
  std::string behind() const;
  // The ranks that have not left; "" if there are none. may_come is false if a rank gave up, called exit() or does not
  // run: the job then ends with an error.
  Missing not_ended() const;
  // Whether no lower rank of the node runs. A rank that gave up counts as running: its program does the work that one
  // rank must do.
  bool lowest_living() const;
  ProcessState state_of(int l) const;
  // The node whose message the rank lacks in a stalled round; -1: none, or the rank does not run.
  int awaited_by(int l) const;
  void set_awaited(int node) const;  // by this rank
  // Whether a rank has come to its newest round, but has not polled it for kSilence.
  bool hangs(int l, Moment now) const;
  void note_poll(Moment now) const;  // by this rank
  Position position_of(int l) const;
  void publish(const Position& position) const;
  // Keeps only the first reason. Does nothing in a child that the rank has forked.
  void leave(Left how) const;

 private:
  int number_of(int l) const { return topology_.shown(topology_.own()[static_cast<std::size_t>(l)]); }  // in texts
  std::string describe(int l) const;
  ProcessName process_of(int l) const;
  bool runs(int l) const { return state_of(l) == ProcessState::kRuns; }
  static std::size_t parity(std::uint64_t round) { return round % 2 * static_cast<std::size_t>(kSmallBytes); }
  [[noreturn]] void fail_without(int l, const Collective& collective) const;

  const Topology& topology_;
  const std::size_t half_bytes_;
  const std::unique_ptr<Window> window_;
  const ProcessName self_ = this_process();
  std::vector<RankControl*> controls_;
  std::vector<std::byte*> payload_, staging_;
  std::byte* answer_ = nullptr;
  Summary* summary_ = nullptr;
  std::vector<std::atomic<bool>> visible_;  // by local rank: this process sees its process
  std::vector<std::uint64_t> missed_;       // by local rank: how often it had not come
};

}  // namespace syncline::comm
