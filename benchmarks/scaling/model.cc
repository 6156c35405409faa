#include "benchmarks/scaling/model.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <tuple>
#include <vector>

#include "comm/rounds/algorithms.h"
#include "comm/rounds/meeting_rounds.h"
#include "comm/rounds/reduce_rounds.h"
#include "comm/shared/node_control.h"
#include "comm/shared/reduction.h"
#include "comm/worker/worker.h"
#include "syncline/error.h"

namespace syncline::comm {
namespace {

// The chunks whose messages are followed one by one.
constexpr double kFirstChunks = 3;

// A round of one node, on one of its rails.
struct Round {
  struct Message {
    int node = 0;
    double bytes = 0;
  };
  std::vector<Message> sends;
  std::vector<Message> receives;
};
using Rounds = std::vector<std::vector<Round>>;  // by node

double sum_of(const std::vector<Round::Message>& messages) {
  double sum = 0;
  for (const Round::Message& message : messages) sum += message.bytes;
  return sum;
}

double busy_sending(const Round& round, const VirtualLink& link) {
  return sum_of(round.sends) / link.bandwidth + link.overhead * static_cast<double>(round.sends.size());
}

// Chunks, each of a slice for every rail, that go through the rounds of all nodes. A node's link carries one message
// after the other, in both directions.
class Chunks {
 public:
  Chunks(const Rounds& rounds, const VirtualLink& link, int rails, int count)
      : rounds_(rounds), link_(link), rails_(rails), slices_(count * rails) {
    nodes_.resize(rounds.size());
    for (int n = 0; n < std::ssize(rounds); ++n) {
      nodes_[index(n)].slices.resize(index(slices_));
      for (int i = 0; i < std::min(slices_, starts_at_once(n)); ++i) start_round(n, i);
    }
    for (; !events_.empty(); events_.pop()) {
      const Event event = events_.top();
      now_ = event.time;
      if (event.kind == Event::kArrives) arrive(event);
      else end_rounds(event);
    }
    for (int n = 0; n < std::ssize(rounds); ++n)  // else a node waits for ever
      for (const Slice& slice : nodes_[index(n)].slices) SYNCLINE_CHECK(slice.next == rounds[index(n)].size());
  }
  double seconds() const { return now_; }

 private:
  // A message arrives at a node's link; has come; or all messages of a node's round have left it.
  struct Event {
    enum Kind : std::uint8_t { kArrives, kHasCome, kLeft };
    double time = 0;
    std::uint64_t number = 0;
    Kind kind = kLeft;
    int node = 0, slice = 0, from = 0;
    double bytes = 0;
    bool operator>(const Event& other) const { return std::tie(time, number) > std::tie(other.time, other.number); }
  };
  struct Slice {
    std::size_t next = 0;   // the present round
    bool left = false;      // the round's messages
    std::vector<int> come;  // senders of messages that no round has ended with
  };
  struct Node {
    double out_free = 0, in_free = 0;  // when its link can carry another message
    std::vector<Slice> slices;         // by chunk, then by rail
  };

  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  // Those of further chunks begin when that of the chunk before has ended a round (Reduction::may_begin).
  int starts_at_once(int node) const { return rounds_[index(node)].size() > 2 ? 2 * rails_ : slices_; }

  void add(Event event) {
    event.number = ++events_added_;
    events_.push(event);
  }

  void start_round(int n, int i) {
    Node& node = nodes_[index(n)];
    Slice& slice = node.slices[index(i)];
    if (slice.next == rounds_[index(n)].size()) return;
    double leaves = now_;
    for (const Round::Message& message : rounds_[index(n)][slice.next].sends) {
      const double begins = std::max(node.out_free, now_) + link_.overhead;
      leaves = node.out_free = begins + message.bytes / link_.bandwidth;
      add({begins + link_.latency, 0, Event::kArrives, message.node, i, n, message.bytes});
    }
    slice.left = false;
    add({leaves, 0, Event::kLeft, n, i});
  }

  void arrive(const Event& event) {
    double& busy = nodes_[index(event.node)].in_free;
    busy = std::max(now_, busy) + event.bytes / link_.bandwidth;
    add({busy, 0, Event::kHasCome, event.node, event.slice, event.from});
  }

  void end_rounds(const Event& event) {
    Slice& slice = nodes_[index(event.node)].slices[index(event.slice)];
    if (event.kind == Event::kHasCome) slice.come.push_back(event.from);
    else slice.left = true;
    const std::vector<Round>& rounds = rounds_[index(event.node)];
    if (!slice.left || slice.next == rounds.size()) return;
    const std::vector<Round::Message>& awaited = rounds[slice.next].receives;
    std::vector<int> come = slice.come;
    for (const Round::Message& message : awaited) {
      const auto found = std::ranges::find(come, message.node);
      if (found == come.end()) return;
      come.erase(found);
    }
    slice.come = std::move(come);
    ++slice.next;
    start_round(event.node, event.slice);
    const int next = event.slice + rails_;
    if (slice.next == 1 && next < slices_ && next >= starts_at_once(event.node)) start_round(event.node, next);
  }

  const Rounds& rounds_;
  const VirtualLink& link_;
  const int rails_, slices_;
  std::vector<Node> nodes_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t events_added_ = 0;
  double now_ = 0;
};

// Of a collective whose message carries `bytes` of values for each block of ranks that its sender knows.
Rounds meeting_of(int nodes, int ranks_a_node, double bytes) {
  const auto bytes_of = [&](const NodeRun& run) {
    const int first = run.begin * ranks_a_node, end = run.end * ranks_a_node;
    return sizeof(Summary) + bytes * static_cast<double>(blocks_of_ranks(first, end - 1, nodes * ranks_a_node).size());
  };
  Rounds rounds(static_cast<std::size_t>(nodes));
  for (int n = 0; n < nodes; ++n) {
    NodeRun known{n, n + 1};
    for (const MeetingRound& meeting : meeting_rounds(n, nodes, choose(AlgorithmTable().meetings, nodes, 0))) {
      Round& round = rounds[static_cast<std::size_t>(n)].emplace_back();
      for (const int to : meeting.to) round.sends.push_back({to, bytes_of(known)});
      for (const MeetingRound::Message& message : meeting.from)
        round.receives.push_back({message.node, bytes_of(message.tells)});
      known = known_after(meeting, known);
    }
  }
  return rounds;
}

SumTree tree_of(int nodes, int ranks_a_node) {
  std::vector<int> node_of_rank(static_cast<std::size_t>(nodes * ranks_a_node));
  for (std::size_t r = 0; r < node_of_rank.size(); ++r) node_of_rank[r] = static_cast<int>(r) / ranks_a_node;
  return SumTree(make_topology(0, node_of_rank));
}

// Of a slice of `count` elements of float32.
Rounds reduction_of(const SumTree& tree, std::int64_t count, Algorithm algorithm) {
  Rounds rounds;
  for (const ReduceRounds& reduce : reduce_rounds(tree, {0, tree.node_count()}, algorithm)) {
    const auto add = [&](const std::vector<ReduceRound::Message>& from, std::vector<Round::Message>& to) {
      for (const ReduceRound::Message& m : from) {
        to.push_back({m.node, 4 * static_cast<double>(elements_of(count, m.parts, reduce.parts()).size())});
      }
    };
    std::vector<Round>& of_node = rounds.emplace_back();
    for (const auto* phase : {&reduce.sums, &reduce.returns})
      for (const ReduceRound& one : *phase) {
        Round& round = of_node.emplace_back();
        add(one.sends, round.sends);
        add(one.receives, round.receives);
      }
  }
  return rounds;
}

// The time in which the busiest link moves a slice.
double busiest(const Rounds& rounds, const VirtualLink& link) {
  double most = 0;
  for (const std::vector<Round>& node : rounds) {
    double out = 0, in = 0;
    for (const Round& round : node) {
      out += busy_sending(round, link);
      in += sum_of(round.receives) / link.bandwidth;
    }
    most = std::max({most, out, in});
  }
  return most;
}

}  // namespace

double predicted_seconds(int nodes, int ranks_a_node, std::int64_t bytes, const VirtualLink& link) {
  if (nodes == 1) return 0;
  const bool small = bytes <= kSmallBytes;
  const Rounds headers = meeting_of(nodes, ranks_a_node, small ? static_cast<double>(bytes) : 0);
  const double meeting = Chunks(headers, link, 1, 1).seconds();
  if (small) return meeting;
  const std::int64_t of_rank = (bytes / 4 + ranks_a_node - 1) / ranks_a_node;
  const SumTree tree = tree_of(nodes, ranks_a_node);
  const std::int64_t slice = slice_bytes(tree.most_blocks());
  const std::int64_t chunk = std::min(bytes, 4 * ranks_a_node * even_slice(of_rank, slice / 4));
  const Algorithm algorithm = choose(AlgorithmTable().sums, nodes, bytes / (nodes * ranks_a_node));
  const Rounds rounds = reduction_of(tree, chunk / 4 / ranks_a_node, algorithm);
  const double chunks = static_cast<double>(bytes) / static_cast<double>(chunk);
  const int first = static_cast<int>(std::min(chunks, kFirstChunks));
  const double alone = Chunks(rounds, link, ranks_a_node, 1).seconds();
  const double further = std::max(ranks_a_node * busiest(rounds, link), alone / kChunksInFlight);
  return meeting + Chunks(rounds, link, ranks_a_node, first).seconds() + (chunks - first) * further;
}

}  // namespace syncline::comm
