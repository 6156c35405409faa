#include "comm/shared/meeting_rounds.h"

#include <algorithm>

#include "comm/shared/node.h"

namespace syncline::comm {
namespace {

// Up to this number, messages of all to all take less time than two rounds.
constexpr int kDirect = 4;
// How many messages a node sends in the time of a round or two.
constexpr int kMostMessages = 32;

// The half of a run of 2 * half nodes in which the node is, and the other half; cut at the number of nodes.
struct Halves {
  NodeRun own, other;
};
Halves halves_of(int node, int half, int nodes) {
  const auto cut = [&](int begin) { return NodeRun{std::min(begin, nodes), std::min(begin + half, nodes)}; };
  const int begin = node - node % half;
  return {cut(begin), cut(node % (2 * half) < half ? begin + half : begin - half)};
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

// Each node of a half gets the other half from one of its nodes. If the halves differ in length, the nodes of the
// shorter one serve several.
std::vector<MeetingRound> by_halves(int node, int nodes) {
  std::vector<MeetingRound> rounds;
  for (int half = 1; half < nodes; half *= 2) {
    const auto [own, other] = halves_of(node, half, nodes);
    if (other.size() == 0) continue;
    MeetingRound& round = rounds.emplace_back();
    const int place = node - own.begin;
    for (int p = place; p < other.size(); p += own.size()) round.to.push_back(other.begin + p);
    round.from.push_back({other.begin + place % other.size(), other});
  }
  return rounds;
}

std::vector<MeetingRound> through_first(int node, int nodes) {
  std::vector<MeetingRound> rounds;
  int half = 1;
  for (; half < nodes && node % (2 * half) == 0; half *= 2)
    if (node + half < nodes) rounds.push_back({{}, {{node + half, {node + half, std::min(node + 2 * half, nodes)}}}});
  if (node > 0) rounds.push_back({{node - half}, {{node - half, {0, nodes}}}});
  MeetingRound spread;
  for (half /= 2; half > 0; half /= 2)
    if (node + half < nodes) spread.to.push_back(node + half);
  if (!spread.to.empty()) rounds.push_back(std::move(spread));
  return rounds;
}

// How many nodes one node serves at most in by_halves().
int most_messages(int nodes) {
  int most = 1;
  for (int half = 1; half < nodes; half *= 2)
    if (const int rest = nodes % (2 * half) - half; rest > 0) most = std::max(most, (half + rest - 1) / rest);
  return most;
}

}  // namespace

std::vector<MeetingRound> meeting_rounds(int node, int nodes) {
  if (nodes == 1) return {};
  if (nodes <= kDirect) return direct(node, nodes);
  return most_messages(nodes) <= kMostMessages ? by_halves(node, nodes) : through_first(node, nodes);
}

NodeRun known_after(const MeetingRound& round, NodeRun known) {
  for (const MeetingRound::Message& message : round.from)
    known = {std::min(known.begin, message.tells.begin), std::max(known.end, message.tells.end)};
  return known;
}

}  // namespace syncline::comm
