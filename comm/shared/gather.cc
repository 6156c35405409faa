#include "comm/shared/gather.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace syncline::comm {
namespace {

// What nodes send in a step: enough to hide its latency, in messages whose cost is that of their bytes. A message is
// the progress that a waiting rank sees.
constexpr std::int64_t kStepOfNodes = 4 << 20, kLeastMessage = 64 << 10;

std::size_t bytes(std::int64_t count) { return static_cast<std::size_t>(count); }

// At most `most` bytes of a slice, from its byte `at` on.
Range piece_of(const Range& slice, std::int64_t at, std::int64_t most) {
  return {std::min(slice.begin + at, slice.end), std::min(slice.begin + at + most, slice.end)};
}

}  // namespace

Gather::Gather(const Topology& topology, AlgorithmRows algorithms, NodeControl& control, Network& network)
    : topology_(topology),
      first_rail_(topology.first_rail(topology.local)),
      end_rail_(topology.first_rail(topology.local + 1)),
      control_(control),
      network_(network),
      algorithms_(algorithms) {
  const int nodes = topology.node_count();
  if (has_rail() && may_choose(algorithms, nodes, Algorithm::kHalves))
    rounds_ = meeting_rounds(topology.node, nodes, Algorithm::kHalves);
}

// Carries out copies_.
Steps Gather::copy() {
  std::int64_t left = kStepBytes;  // before it returns to its driver
  for (const Copy& copy : copies_)
    for (std::int64_t at = 0, piece = 0; at < copy.size && copy.to != copy.from; at += piece, left -= piece) {
      if (left == 0) {
        co_await std::suspend_always{};
        left = kStepBytes;
      }
      piece = std::min(left, copy.size - at);
      std::memcpy(copy.to + at, copy.from + at, bytes(piece));
    }
}

struct Gather::Run {
  const Collective& collective;
  const Window* region;
  std::uint64_t& done;
  bool on_nodes = false;  // the ranks of a node have one result
  std::byte* data(std::int64_t at) const { return static_cast<std::byte*>(collective.data) + at; }
};

// Whether this rank's messages of a step have completed on all of its rails.
bool Gather::exchanged(std::int64_t step) {
  bool all = true;
  for (int rail = first_rail_; rail < end_rail_; ++rail)
    if (!network_.test(exchange_channel(rail, step))) all = false;
  return all;
}

bool Gather::arrived(std::int64_t step) {
  bool& open = open_[bytes(step % 2)];
  if (open && exchanged(step % 2)) open = false;
  return !open;
}

// This rank tells the others of its node that it has come here, and waits for them.
auto Gather::pass(const Run& run, std::atomic<std::uint64_t> RankControl::*counter) {
  (control_.own().*counter).store(run.done + 1, std::memory_order_release);
  return until([this, &run, counter] {
    arrived(0);  // messages of the next step go on meanwhile
    arrived(1);
    return control_.all(counter, run.done + 1, run.collective);
  });
}

Steps Gather::run(const Collective& collective, const Window* region, std::uint64_t& done) {
  const Run run{collective, region, done};
  open_ = {};
  find_parts_of_nodes(topology_, collective.counts, begin_);
  runs_.resize(bytes(control_.ranks()));
  std::int64_t begin = begin_[bytes(topology_.node)];
  for (int l = 0; l < control_.ranks(); ++l) {
    const std::int64_t end = begin + collective.counts[bytes(topology_.own()[bytes(l)])];
    runs_[bytes(l)].assign(1, {begin, end});
    begin = end;
  }
  const Range own = runs_[bytes(topology_.local)].front();
  copies_.assign(1, {run.data(own.begin), static_cast<const std::byte*>(collective.send), own.size()});
  co_await copy();
  co_await share(run);
  if (topology_.node_count() > 1) co_await exchange(run);
}

Steps Gather::run_on_nodes(const Collective& collective, std::uint64_t& done) {
  const Run run{collective, nullptr, done, true};
  if (topology_.node_count() == 1) co_return;
  open_ = {};
  find_parts_of_nodes(topology_, collective.counts, begin_);
  co_await exchange(run);
  co_await pass(run, &RankControl::reduced);
  ++run.done;
}

Steps Gather::broadcast_on_node(const Collective& collective, std::uint64_t& done) {
  runs_.assign(bytes(control_.ranks()), {});
  runs_[bytes(collective.root)].push_back({0, collective.bytes});
  const Run run{collective, nullptr, done};
  co_await share(run);
}

Range Gather::slice_of(int node, int rail) const {
  const std::int64_t first = begin_[bytes(node)];
  const Range slice = part_of(begin_[bytes(node) + 1] - first, rail, topology_.rails);
  return {first + slice.begin, first + slice.end};
}

// What the rails have received: of each slice of the other nodes, at most these bytes.
void Gather::find_others(std::int64_t at, std::int64_t most) {
  for (int l = 0; l < control_.ranks(); ++l) {
    std::vector<Range>& runs = runs_[bytes(l)];
    runs.clear();
    for (int rail = topology_.first_rail(l); rail < topology_.first_rail(l + 1); ++rail)
      for (int n = 0; n < topology_.node_count(); ++n)
        if (n != topology_.node) runs.push_back(piece_of(slice_of(n, rail), at, most));
  }
}

Steps Gather::exchange(const Run& run) {
  const int nodes = topology_.node_count();
  const std::int64_t of_rail = run.collective.bytes / topology_.rails;
  const bool halves = of_rail * topology_.most_rails_of_a_rank() <= AlgorithmTable::kMostPacked &&
                      choose(algorithms_, nodes, of_rail / nodes) == Algorithm::kHalves;
  return halves ? exchange_by_halves(run) : exchange_in_steps(run);
}

Steps Gather::exchange_in_steps(const Run& run) {
  std::int64_t longest = 0;
  for (int n = 0; n < topology_.node_count(); ++n) longest = std::max(longest, slice_of(n, 0).size());
  piece_ = std::max(kStepOfNodes / topology_.node_count(), kLeastMessage);
  const std::int64_t steps = (longest + piece_ - 1) / piece_;
  if (steps > 0) start(run, 0);
  for (std::int64_t step = 0; step < steps; ++step) {
    if (step + 1 < steps) start(run, step + 1);
    co_await until([this, step] { return arrived(step); });
    if (run.on_nodes) continue;
    find_others(step * piece_, piece_);
    co_await share(run);
  }
}

void Gather::start(const Run& run, std::int64_t step) {
  for (int rail = first_rail_; rail < end_rail_; ++rail) {
    const auto piece_of_node = [&](int n) { return piece_of(slice_of(n, rail), step * piece_, piece_); };
    const Range own = piece_of_node(topology_.node);
    messages_.clear();
    for (int i = 1; i < topology_.node_count(); ++i) {
      const int n = other_node(topology_.node, i, topology_.node_count());
      const Range theirs = piece_of_node(n);
      messages_.sends.push_back({n, run.data(own.begin), bytes(own.size())});
      messages_.receives.push_back({n, run.data(theirs.begin), bytes(theirs.size())});
    }
    network_.start(exchange_channel(rail, step % 2), messages_);
    open_[bytes(step % 2)] = true;
  }
}

// The slices of neighbouring nodes are packed, one behind the other, for each rail.
Steps Gather::exchange_by_halves(const Run& run) {
  const int nodes = topology_.node_count(), node = topology_.node;
  packed_at_.assign(1, 0);
  for (int rail = first_rail_; rail < end_rail_; ++rail)
    for (int n = 0; n < nodes; ++n) packed_at_.push_back(packed_at_.back() + slice_of(n, rail).size());
  packed_.resize(bytes(packed_at_.back()));
  const auto begin_of = [&](int rail, int n) { return packed_at_[bytes((rail - first_rail_) * nodes + n)]; };
  const auto packed = [&](int rail, int n) { return packed_.data() + begin_of(rail, n); };
  const auto size_of = [&](int rail, const NodeRun& of) {
    return bytes(begin_of(rail, of.end) - begin_of(rail, of.begin));
  };
  NodeRun known{node, node + 1};
  copies_.clear();
  for (int rail = first_rail_; rail < end_rail_; ++rail) {
    const Range own = slice_of(node, rail);
    copies_.push_back({packed(rail, node), run.data(own.begin), own.size()});
  }
  co_await copy();
  for (const MeetingRound& round : rounds_) {
    for (int rail = first_rail_; rail < end_rail_; ++rail) {
      messages_.clear();
      for (const int n : round.to) messages_.sends.push_back({n, packed(rail, known.begin), size_of(rail, known)});
      for (const auto& [n, tells] : round.from)
        messages_.receives.push_back({n, packed(rail, tells.begin), size_of(rail, tells)});
      network_.start(exchange_channel(rail, 0), messages_);
    }
    co_await until([this] { return exchanged(0); });
    known = known_after(round, known);
  }
  copies_.clear();
  for (int rail = first_rail_; rail < end_rail_; ++rail)
    for (int n = 0; n < nodes; ++n)
      if (const Range slice = slice_of(n, rail); n != node)
        copies_.push_back({run.data(slice.begin), packed(rail, n), slice.size()});
  co_await copy();
  if (run.on_nodes) co_return;
  find_others(0, run.collective.bytes);
  co_await share(run);
}

template <class Visit>
void Gather::for_chunk(int local, std::int64_t at, std::int64_t size, const Visit& visit) const {
  std::int64_t before = 0;  // bytes of earlier runs
  for (const Range& run : runs_[bytes(local)]) {
    const std::int64_t begin = std::max(before, at), end = std::min(before + run.size(), at + size);
    if (begin < end) visit(Range{run.begin + begin - before, run.begin + end - before}, begin - at);
    before += run.size();
  }
}

// Each rank copies what the others have, from the region or, chunk by chunk, through the staging memory.
Steps Gather::share(const Run& run) {
  const int local = topology_.local, ranks = control_.ranks();
  if (ranks == 1) co_return;
  std::int64_t most = 0;
  for (const std::vector<Range>& runs : runs_)
    most = std::max(most, std::accumulate(runs.begin(), runs.end(), std::int64_t{0},
                                          [](std::int64_t sum, const Range& r) { return sum + r.size(); }));
  const auto chunk = run.region != nullptr ? most : static_cast<std::int64_t>(control_.half_bytes());
  for (std::int64_t at = 0; at < most; at += chunk) {
    const auto stage = [&](const Range& own, std::int64_t to) {
      std::memcpy(control_.staging(local, run.done) + to, run.data(own.begin), bytes(own.size()));
    };
    if (run.region == nullptr) for_chunk(local, at, chunk, stage);
    co_await pass(run, &RankControl::staged);
    copies_.clear();
    for (int l = 0; l < ranks; ++l) {
      const auto add = [&](const Range& theirs, std::int64_t from) {
        std::byte* const to = run.data(theirs.begin);
        copies_.push_back({to,
                           run.region != nullptr ? run.region->part(l) + (to - run.region->part(local))
                                                 : control_.staging(l, run.done) + from,
                           theirs.size()});
      };
      if (l != local) for_chunk(l, at, chunk, add);
    }
    co_await copy();
    co_await pass(run, &RankControl::reduced);
    ++run.done;
  }
}

}  // namespace syncline::comm
