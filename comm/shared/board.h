// Board: the part of a node's shared memory in which its ranks meet: how far each one is, the headers of their
// collectives, small payloads, and two halves of staging memory a rank for data that lie elsewhere.
//
// Counters only grow. What a rank writes for its round n is read by others until they have arrived at round n + 1, so
// everything is there twice, for odd and even rounds. A rank writes to its own part; only results of reductions are
// written to all parts' staging memory, after their owners have staged the chunk and before anybody has worked on it.
//
// Ownership: a board owns its window. Threads: the calls that name ranks read atomic counters only and may come from
// any thread at any time; the others belong to whoever drives the wire.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "comm/shared/node.h"
#include "comm/shared/process_state.h"
#include "comm/worker/job.h"
#include "comm/worker/worker.h"

namespace syncline::comm {

// Why a rank is no longer there.
enum class Left : std::uint32_t { kNo, kGaveUp, kClosed, kExited };

// One rank's counters. All zero is the beginning.
struct RankBoard {
  alignas(64) std::atomic<std::uint64_t> arrived;  // rounds that it has come to; the three lines below belong to it
  std::int64_t arrival_ns[2];                      // CLOCK_MONOTONIC
  std::uint64_t place[2];                          // where its data lie in the shared region, plus 1; 0: elsewhere
  Header header[2];
  alignas(64) std::atomic<std::uint64_t> staged;  // chunks that it has staged
  alignas(64) std::atomic<std::uint64_t> worked;  // chunks that it has done its part of
  alignas(64) std::atomic<std::uint64_t> met;     // rounds in which the nodes have met (kept by local rank 0, as is
  std::atomic<std::uint64_t> answered;            // the next) and those whose small result is there
  alignas(64) std::atomic<Left> left;
  std::atomic<std::uint32_t> process;
  std::atomic<std::uint64_t> position[sizeof(Position) / 8];
};

// "rank 1 (stopped by a signal or a debugger, in step 7 of plan 12ab at conv2d)"
std::string describe_rank(int rank, ProcessState state, const Position& position);
// "rank 1 has come", "rank 1, rank 2 have come": for "has come" and "have come". "" for none.
std::string say_of(const std::vector<std::string>& ranks, std::string_view of_one, std::string_view of_several);

// What a node says of itself when nodes meet.
struct NodeHeader {
  Header header;                // of its first rank
  Header other;                 // of the first rank that differs from it
  std::uint32_t differing = 0;  // that rank's local number, or 0
  std::uint32_t direct = 0;     // whether its ranks' data need no staging
};

class Board {
 public:
  // So much staging memory a rank, in each of two halves.
  Board(std::unique_ptr<Window> window, const Topology& topology, std::size_t half_bytes);
  ~Board();
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;
  static std::size_t bytes_a_rank(std::size_t half_bytes, int nodes);

  int ranks() const { return topology_.local_size(); }
  RankBoard& of(int l) const { return *boards_[static_cast<std::size_t>(l)]; }
  RankBoard& own() const { return of(topology_.local); }
  std::byte* payload(int l, std::uint64_t round) const { return payload_[static_cast<std::size_t>(l)] + parity(round); }
  std::byte* answer(std::uint64_t round) const { return answer_ + parity(round); }
  NodeHeader* node_headers() const { return node_headers_; }
  std::byte* staging(int l, std::uint64_t chunk) const {
    return staging_[static_cast<std::size_t>(l)] + (chunk % 2) * half_bytes_;
  }
  std::size_t half_bytes() const { return half_bytes_; }

  // Once all ranks have made theirs: from now on a process that is gone is a rank that died, unless it was hidden from
  // this one from the beginning.
  void look_around();

  // Whether every rank's counter, or that of one rank, is at least `value`. If not, now and then looks whether it still
  // lives. Throws RankGone for a rank that will never come.
  bool all(std::atomic<std::uint64_t> RankBoard::*counter, std::uint64_t value, const Job& job);
  bool reached(int l, std::atomic<std::uint64_t> RankBoard::*counter, std::uint64_t value, const Job& job);
  // Throws RankGone if a rank has given the round up, though it had come.
  void check_nobody_gave_up(std::uint64_t round, const Job& job) const;
  // Whether it is the lowest of those that wait for the round, so that one rank speaks for all.
  bool speaks(std::uint64_t round) const;
  // The ranks that have not come to the round; "" if there is none.
  Missing missing(std::uint64_t round) const;
  // Of those that have, the ones that are not as far as this one, or do not run; "" if there is none.
  std::string behind() const;
  // The ranks that have not left; "" if there is none. One that has given up, or whose process does not run, does not
  // come to its end in good order.
  Missing not_ended() const;
  // Whether no rank of the node below this one runs. One that gave up has its program still do what is to be done.
  bool lowest_living() const;
  ProcessState state_of(int l) const;
  Position position_of(int l) const;
  void publish(const Position& position) const;
  // The first reason stays. Does nothing in a child that the rank has forked.
  void leave(Left how) const;

 private:
  std::string describe(int l) const;
  bool runs(int l) const { return state_of(l) == ProcessState::kRuns; }
  static std::size_t parity(std::uint64_t round) { return round % 2 * static_cast<std::size_t>(kSmallBytes); }
  [[noreturn]] void fail_without(int l, const Job& job) const;

  const Topology topology_;
  const std::size_t half_bytes_;
  const std::unique_ptr<Window> window_;
  std::vector<RankBoard*> boards_;
  std::vector<std::byte*> payload_, staging_;
  std::byte* answer_ = nullptr;
  NodeHeader* node_headers_ = nullptr;
  std::vector<std::atomic<bool>> visible_;  // by local rank: its process
  std::uint64_t looks_ = 0;
};

}  // namespace syncline::comm
