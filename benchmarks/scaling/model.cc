#include "benchmarks/scaling/model.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "comm/shared/meeting_rounds.h"
#include "comm/shared/node_control.h"
#include "comm/shared/reduce_rounds.h"
#include "comm/shared/reduction.h"
#include "comm/worker/worker.h"
#include "syncline/error.h"

namespace syncline::comm {
namespace {

// A round of one node. Bytes are those of all its rails together.
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

// The time at which the last node ends its last round. Several chunks go through a round together: the next round
// starts when the first of them has come, and the link is free of all.
class CriticalPath {
 public:
  CriticalPath(const Rounds& rounds, const VirtualLink& link, double chunks = 1)
      : rounds_(rounds), link_(link), chunks_(chunks), nodes_(rounds.size()) {
    for (int n = 0; n < size(); ++n) send(n);
    for (bool moved = true; moved;) {
      moved = false;
      for (int n = 0; n < size(); ++n)
        while (end_round(n)) moved = true;
    }
    for (int n = 0; n < size(); ++n) SYNCLINE_CHECK(round_of(n) == nullptr);  // else a node waits for ever
  }
  double seconds() const {
    double last = 0;
    for (const State& node : nodes_) last = std::max({last, node.now, node.in_free});
    return last;
  }

 private:
  struct State {
    double now = 0;        // begin of the present round
    double in_free = 0;    // when the link has received everything
    std::size_t next = 0;  // the present round
  };
  struct Arrival {
    double begins = 0, bytes = 0;
  };

  int size() const { return static_cast<int>(nodes_.size()); }
  State& state(int node) { return nodes_[static_cast<std::size_t>(node)]; }
  const Round* round_of(int node) {
    const auto& rounds = rounds_[static_cast<std::size_t>(node)];
    return state(node).next < rounds.size() ? &rounds[state(node).next] : nullptr;
  }
  // Starts the node's present round: its messages leave one after the other.
  void send(int node) {
    const Round* const round = round_of(node);
    double leaves = state(node).now;
    for (std::size_t i = 0; round != nullptr && i < round->sends.size(); ++i) {
      const Round::Message& message = round->sends[i];
      leaves += link_.overhead;
      arrivals_[{node, message.node}].push_back({leaves + link_.latency, message.bytes});
      leaves += message.bytes / link_.bandwidth;
    }
  }
  // False if a message has not been sent yet.
  bool end_round(int node) {
    const Round* const round = round_of(node);
    if (round == nullptr) return false;
    const auto waits = [&](const Round::Message& m) { return arrivals_[{m.node, node}].empty(); };
    if (std::ranges::any_of(round->receives, waits)) return false;
    std::vector<Arrival> come;
    for (const Round::Message& message : round->receives) {
      std::deque<Arrival>& queue = arrivals_[{message.node, node}];
      come.push_back(queue.front());
      queue.pop_front();
    }
    std::ranges::sort(come, {}, &Arrival::begins);
    State& own = state(node);
    own.now += chunks_ * busy_sending(*round, link_);
    for (const Arrival& one : come) own.in_free = std::max(own.in_free, one.begins) + one.bytes / link_.bandwidth;
    if (!come.empty()) own.now = std::max(own.now, own.in_free);
    own.in_free += (chunks_ - 1) * sum_of(round->receives) / link_.bandwidth;
    ++own.next;
    send(node);
    return true;
  }

  const Rounds& rounds_;
  const VirtualLink& link_;
  const double chunks_;
  std::vector<State> nodes_;
  std::map<std::pair<int, int>, std::deque<Arrival>> arrivals_;
};

Rounds meeting_of(int nodes, double bytes) {
  Rounds rounds(static_cast<std::size_t>(nodes));
  for (int n = 0; n < nodes; ++n)
    for (const MeetingRound& meeting : meeting_rounds(n, nodes)) {
      Round& round = rounds[static_cast<std::size_t>(n)].emplace_back();
      for (const int to : meeting.to) round.sends.push_back({to, bytes});
      for (const MeetingRound::Message& message : meeting.from) round.receives.push_back({message.node, bytes});
    }
  return rounds;
}

// Of a chunk whose slices have `count` elements, `bytes` in all.
Rounds reduction_of(int nodes, int ranks_a_node, std::int64_t count, double bytes) {
  std::vector<int> node_of_rank(static_cast<std::size_t>(nodes * ranks_a_node));
  for (std::size_t r = 0; r < node_of_rank.size(); ++r) node_of_rank[r] = static_cast<int>(r) / ranks_a_node;
  Rounds rounds;
  for (const ReduceRounds& reduce : reduce_rounds(SumTree(make_topology(0, node_of_rank)), {0, nodes})) {
    const auto add = [&](const std::vector<ReduceRound::Message>& from, std::vector<Round::Message>& to) {
      for (const ReduceRound::Message& m : from) {
        const auto elements = static_cast<double>(elements_of(count, m.parts, reduce.parts()).size());
        to.push_back({m.node, bytes * elements / static_cast<double>(count)});
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

// The time in which the busiest link moves a chunk.
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
  const double values = static_cast<double>(sizeof(Summary) + (small ? static_cast<std::size_t>(bytes) : 0));
  const double meeting = CriticalPath(meeting_of(nodes, values), link).seconds();
  if (small) return meeting;
  const std::int64_t chunk = std::min(bytes, ranks_a_node * kSliceBytes);
  const Rounds rounds = reduction_of(nodes, ranks_a_node, chunk / 4 / ranks_a_node, static_cast<double>(chunk));
  const double chunks = static_cast<double>(bytes) / static_cast<double>(chunk);
  const double in_flight = std::min<double>(chunks, kChunksInFlight);
  VirtualLink of_rails = link;
  of_rails.overhead *= ranks_a_node;  // each rank of a node sends its part of a message
  const double alone = CriticalPath(rounds, of_rails).seconds();
  const double further = std::max(busiest(rounds, of_rails), alone / kChunksInFlight);
  return meeting + CriticalPath(rounds, of_rails, in_flight).seconds() + (chunks - in_flight) * further;
}

}  // namespace syncline::comm
