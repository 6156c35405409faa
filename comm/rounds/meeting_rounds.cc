#include "comm/rounds/meeting_rounds.h"

#include <algorithm>

#include "comm/rounds/topology.h"
#include "syncline/distributed/communicator.h"

namespace syncline::comm {
namespace {

// The nodes whose first places are in a block of the tree over the nodes.
NodeRun nodes_in(int begin, int width, int nodes) {
  const auto first_at = [&](int place) {
    int first = 0;
    for (int end = nodes; first < end;) {
      const int middle = (first + end) / 2;
      if (first_place(middle, nodes) < place) first = middle + 1;
      else end = middle;
    }
    return first;
  };
  return {first_at(begin), first_at(begin + width)};
}

std::vector<MeetingRound> direct(int node, int nodes) {
  MeetingRound round;
  for (int i = 1; i < nodes; ++i) {
    const int n = other_node(node, i, nodes);
    round.to.push_back(n);
    round.from.push_back({n, {n, n + 1}});
  }
  return {round};
}

// Each node of a half gets the other half from one of its nodes. A half has at most twice as many nodes as the other.
std::vector<MeetingRound> by_halves(int node, int nodes) {
  std::vector<MeetingRound> rounds;
  const int place = first_place(node, nodes);
  for (int half = 1; half < first_place(nodes, nodes); half *= 2) {
    const int begin = place - place % half, sibling = place % (2 * half) < half ? begin + half : begin - half;
    const NodeRun own = nodes_in(begin, half, nodes), other = nodes_in(sibling, half, nodes);
    if (other.size() == 0) continue;
    MeetingRound& round = rounds.emplace_back();
    const int number = node - own.begin;
    for (int i = number; i < other.size(); i += own.size()) round.to.push_back(other.begin + i);
    round.from.push_back({other.begin + number % other.size(), other});
  }
  return rounds;
}

}  // namespace

std::vector<MeetingRound> meeting_rounds(int node, int nodes, Algorithm algorithm) {
  if (nodes == 1) return {};
  return algorithm == Algorithm::kDirect ? direct(node, nodes) : by_halves(node, nodes);
}

NodeRun known_after(const MeetingRound& round, NodeRun known) {
  for (const MeetingRound::Message& message : round.from)
    known = {std::min(known.begin, message.tells.begin), std::max(known.end, message.tells.end)};
  return known;
}

}  // namespace syncline::comm
