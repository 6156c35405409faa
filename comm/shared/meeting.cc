#include "comm/shared/meeting.h"

#include <algorithm>
#include <cstring>

#include "comm/shared/sum.h"

namespace syncline::comm {
namespace {

static_assert(sizeof(Summary) % 64 == 0, "values lie behind a summary");

std::byte* copy_to(std::byte* to, const void* from, std::int64_t count) {
  if (count > 0) std::memcpy(to, from, static_cast<std::size_t>(count));
  return to + count;
}

}  // namespace

Meeting::Meeting(const Topology& topology, const SumTree& tree, AlgorithmRows algorithms, NodeControl& control,
                 Network& network)
    : topology_(topology),
      tree_(tree),
      control_(control),
      network_(network),
      own_(known_of({topology.node, topology.node + 1})) {
  terms_.resize(index(std::max(tree.blocks(), control.ranks())));
  if (topology.local != 0 || topology.node_count() == 1) return;
  int most_blocks = own_.blocks;
  std::size_t most_messages = 0;
  const int nodes = topology.node_count();
  for (const MeetingRound& messages : meeting_rounds(topology.node, nodes, choose(algorithms, nodes, 0))) {
    rounds_.push_back(round_of(messages, rounds_.empty() ? own_.nodes : rounds_.back().known.nodes));
    for (const auto& [_, part] : rounds_.back().parts) most_blocks = std::max(most_blocks, part.blocks);
    most_messages = std::max(most_messages, messages.from.size());
  }
  capacity_ = sizeof(Summary) + index(most_blocks) * static_cast<std::size_t>(kSmallBytes);
  inbox_.resize(most_messages);
  for (Memory& buffer : buffers_) buffer = std::make_unique_for_overwrite<std::byte[]>(capacity_);
  for (Memory& buffer : inbox_) buffer = std::make_unique_for_overwrite<std::byte[]>(capacity_);
}

std::vector<Block> Meeting::blocks_in(NodeRun nodes) const {
  const int first = topology_.nodes[index(nodes.begin)].front(), last = topology_.nodes[index(nodes.end - 1)].back();
  return blocks_of_ranks(first, last, topology_.size());
}

Meeting::Known Meeting::known_of(NodeRun nodes) const { return {nodes, static_cast<int>(blocks_in(nodes).size())}; }

Meeting::Round Meeting::round_of(const MeetingRound& messages, NodeRun known) const {
  Round round{messages, {{0, known_of(known)}}, {}, known_of(known_after(messages, known))};
  for (const MeetingRound::Message& message : messages.from)
    round.parts.emplace_back(static_cast<int>(round.parts.size()), known_of(message.tells));
  std::ranges::sort(round.parts, {}, [](const auto& part) { return part.second.nodes.begin; });
  std::vector<Block> terms;
  for (const auto& [_, part] : round.parts) {
    const std::vector<Block> blocks = blocks_in(part.nodes);
    terms.insert(terms.end(), blocks.begin(), blocks.end());
  }
  std::size_t first = 0;
  for (const Block& block : blocks_in(round.known.nodes)) {
    std::size_t last = first;
    while (terms[last].end != block.end) ++last;
    round.sums.push_back(order_of(std::span(terms).subspan(first, last + 1 - first), static_cast<int>(first)));
    first = last + 1;
  }
  return round;
}

bool Meeting::direct_on_node(std::uint64_t round) const {
  const std::uint64_t offset = control_.of(0).offset[round % 2];
  bool same = true;
  for (int l = 1; l < control_.ranks(); ++l) same = same && control_.of(l).offset[round % 2] == offset;
  return control_.ranks() == 1 || (same && offset != 0);
}

Summary Meeting::summary_of_node(std::uint64_t round) const {
  const std::size_t parity = round % 2;
  const auto rank_of = [&](int l) { return static_cast<std::uint32_t>(topology_.own()[index(l)]); };
  Summary summary{.header = control_.of(0).header[parity], .other = {}, .first = rank_of(0)};
  summary.direct = direct_on_node(round) ? 1 : 0;
  for (int l = 1; l < control_.ranks(); ++l) {
    const RankControl& rank = control_.of(l);
    if (rank.header[parity] != summary.header)
      summary.append({.header = rank.header[parity], .other = {}, .first = rank_of(l)});
  }
  return summary;
}

void Meeting::write_values(const Collective& collective, std::uint64_t round, std::byte* to) {
  if (is_reduction(collective)) {
    for (int l = 0; l < control_.ranks(); ++l) terms_[index(l)] = control_.payload(l, round);
    for (int b = 0; b < tree_.own_blocks(); ++b)
      reduce_into(collective.dtype, collective.reduce, tree_.own[index(b)], terms_, to + b * collective.bytes,
                  collective.count);
    return;
  }
  for (int l = 0; l < control_.ranks(); ++l) {
    const int rank = topology_.own()[index(l)];
    const std::int64_t of_broadcast = rank == collective.root ? collective.bytes : 0;
    to = copy_to(to, control_.payload(l, round),
                 collective.kind == Kind::kBroadcast ? of_broadcast : collective.counts[index(rank)]);
  }
}

void Meeting::begin(const Collective& collective, std::uint64_t round) {
  collective_ = &collective;
  number_ = round;
  next_ = 0;
  known_ = own_;
  if (collective.kind == Kind::kAllGather) find_parts_of_nodes(topology_, collective.counts, begin_);
  summary() = summary_of_node(round);
  if (bytes_of(known_) > 0) write_values(collective, round, buffer() + sizeof(Summary));
  start_round();
}

bool Meeting::progress() {
  while (next_ < rounds_.size()) {
    if (!network_.test(kMeeting)) return false;
    combine(rounds_[next_]);
    known_ = rounds_[next_++].known;
    start_round();
  }
  control_.summary() = summary();
  copy_to(control_.answer(number_), buffer() + sizeof(Summary), static_cast<std::int64_t>(bytes_of(known_)));
  return true;
}

// The size of the values.
std::size_t Meeting::bytes_of(const Known& known) const {
  const Collective& collective = *collective_;
  if (!is_small(collective)) return 0;
  if (is_reduction(collective)) return index(known.blocks) * static_cast<std::size_t>(collective.bytes);
  if (collective.kind == Kind::kAllGather)
    return static_cast<std::size_t>(begin_[index(known.nodes.end)] - begin_[index(known.nodes.begin)]);
  const bool has_root = topology_.nodes[index(known.nodes.begin)].front() <= collective.root &&
                        collective.root <= topology_.nodes[index(known.nodes.end - 1)].back();
  return has_root ? static_cast<std::size_t>(collective.bytes) : 0;
}

void Meeting::start_round() {
  if (next_ == rounds_.size()) return;
  const MeetingRound& round = rounds_[next_].messages;
  messages_.clear();
  const std::size_t size = sizeof(Summary) + (summary().agrees() ? bytes_of(known_) : 0);
  for (const int node : round.to) messages_.sends.push_back({node, buffer(), size});
  for (std::size_t i = 0; i < round.from.size(); ++i)
    messages_.receives.push_back({round.from[i].node, inbox_[i].get(), capacity_});
  network_.start(kMeeting, messages_);
}

void Meeting::combine(const Round& round) {
  std::byte* const to = buffers_[1 - filled_].get();
  Summary& joined = *reinterpret_cast<Summary*>(to);
  for (const auto& [number, known] : round.parts) {
    const Summary& next = *reinterpret_cast<const Summary*>(part(number));
    if (&known == &round.parts.front().second) joined = next;
    else joined.append(next);
  }
  if (joined.agrees()) combine_values(round, to + sizeof(Summary));
  filled_ = 1 - filled_;
}

void Meeting::combine_values(const Round& round, std::byte* to) {
  const bool sums = is_small(*collective_) && is_reduction(*collective_);
  std::size_t terms = 0;
  for (const auto& [number, known] : round.parts) {
    const std::byte* values = part(number) + sizeof(Summary);
    for (int b = 0; sums && b < known.blocks; ++b) terms_[terms++] = values + b * collective_->bytes;
    if (!sums) to = copy_to(to, values, static_cast<std::int64_t>(bytes_of(known)));
  }
  for (std::size_t b = 0; sums && b < round.sums.size(); ++b)
    reduce_into(collective_->dtype, collective_->reduce, round.sums[b], terms_,
                to + static_cast<std::int64_t>(b) * collective_->bytes, collective_->count);
}

}  // namespace syncline::comm
