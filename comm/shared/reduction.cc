#include "comm/shared/reduction.h"

#include <algorithm>
#include <cstring>

namespace syncline::comm {
namespace {

std::size_t bytes(std::int64_t count) { return static_cast<std::size_t>(count); }

}  // namespace

std::int64_t even_slice(std::int64_t count, std::int64_t most) {
  constexpr std::int64_t kStep = 1024;  // keeps slices aligned
  const std::int64_t slices = std::max<std::int64_t>((count + most - 1) / most, 1);
  const std::int64_t steps = (count + slices * kStep - 1) / (slices * kStep);
  return std::clamp<std::int64_t>(steps * kStep, 1, most);
}

// The collective under way. A chunk's elements lie at `place(l, k)` in local rank l's memory.
struct Reduction::Run {
  const Collective& collective;
  std::span<std::byte* const> parts;
  NodeControl& control;
  std::uint64_t& done;
  std::int64_t width = static_cast<std::int64_t>(size_of(collective.dtype));
  std::int64_t chunk = collective.count;  // elements
  std::uint64_t first = done;
  std::int64_t begun = 0, ended = 0;  // chunks between nodes

  bool staged() const { return parts.empty(); }
  // Staging memory has two halves.
  std::int64_t in_flight() const { return staged() ? 2 : kChunksInFlight; }
  std::int64_t chunks() const { return (collective.count + chunk - 1) / chunk; }
  Range range(std::int64_t k) const { return {k * chunk, std::min((k + 1) * chunk, collective.count)}; }
  std::uint64_t number(std::int64_t k) const { return first + static_cast<std::uint64_t>(k); }
  std::byte* place(int l, std::int64_t k) const {
    return staged() ? control.staging(l, number(k)) : parts[static_cast<std::size_t>(l)] + k * chunk * width;
  }
  // Elements of each of the node's buffers.
  std::int64_t step() const { return std::max<std::int64_t>(kStepBytes / (width * control.ranks()) / 1024, 1) * 1024; }
  std::byte* data(std::int64_t element) const { return static_cast<std::byte*>(collective.data) + element * width; }

  // Of a broadcast, only the root has data.
  bool has_data(int rank) const { return collective.kind != Kind::kBroadcast || collective.root == rank; }
  void stage(const Topology& topology, std::int64_t k) const {
    if (!staged() || k >= chunks()) return;
    const int local = topology.local;
    if (has_data(topology.rank)) std::memcpy(place(local, k), data(range(k).begin), bytes(range(k).size() * width));
    control.of(local).staged.store(number(k) + 1, std::memory_order_release);
  }
  void unstage(const Topology& topology, std::int64_t k) const {
    const int local = topology.local, rank = topology.rank;
    const bool has_it = collective.kind == Kind::kBroadcast && has_data(rank);  // its memory may be read-only
    if (staged() && !has_it) std::memcpy(data(range(k).begin), place(local, k), bytes(range(k).size() * width));
  }
  void tell_worked(int local, std::int64_t k) const {
    control.of(local).reduced.store(number(k) + 1, std::memory_order_release);
  }
};

Reduction::Reduction(const Topology& topology, const SumTree& tree, NodeControl& control, Network& network,
                     WireFormat format)
    : topology_(topology),
      tree_(tree),
      control_(control),
      network_(network),
      format_(format),
      rails_(topology.rails()),
      rounds_(has_rail() ? reduce_rounds(tree, {topology.node, topology.node + 1}).front() : ReduceRounds{}) {
  buffers_.resize(static_cast<std::size_t>(control_.ranks()));
  terms_.resize(std::max(static_cast<std::size_t>(tree.blocks()), buffers_.size()));
  if (topology_.node_count() == 1 || !has_rail()) return;
  const std::int64_t slice = std::max(kSliceBytes, static_cast<std::int64_t>(control_.half_bytes())) + 8;
  std::int64_t most = 0;
  for (const ReduceRound& round : rounds_.sums) {
    std::int64_t received = 0;
    for (const ReduceRound::Message& message : round.receives)
      received += 8 * message.parts.size() * (slice / 8 / rounds_.parts() + 1) + 8;
    most = std::max(most, received);
  }
  for (PipelineSlot& slot : slots_) {
    slot.sums = std::make_unique_for_overwrite<std::byte[]>(bytes(tree.own_blocks() * slice));
    slot.inbox = std::make_unique_for_overwrite<std::byte[]>(bytes(most));
    if (format == WireFormat::kSame) continue;
    slot.narrow = std::make_unique_for_overwrite<std::byte[]>(bytes(tree.own_blocks() * slice / 2));
    slot.wide = std::make_unique_for_overwrite<std::byte[]>(bytes(most));
  }
}

Steps Reduction::run(const Collective& collective, std::span<std::byte* const> parts, bool direct,
                     std::uint64_t& done) {
  Run run{collective, parts, control_, done};
  const bool one_node = topology_.node_count() == 1;
  if (!direct) run.chunk = static_cast<std::int64_t>(control_.half_bytes()) / run.width;
  else if (!one_node)
    run.chunk = rails_ * even_slice((collective.count + rails_ - 1) / rails_, kSliceBytes / run.width);
  if (!one_node) co_await between_nodes(run);
  else if (collective.kind == Kind::kReduceScatter) co_await scatter_on_node(run);
  else co_await on_node(run);
}

// Works on all chunks between nodes. True if the oldest is over.
bool Reduction::progress_all(Run& run) {
  if (!has_rail() || run.ended == run.begun) return false;
  for (std::int64_t k = run.ended + 1; k < run.begun; ++k) progress(run, k);
  return progress(run, run.ended);
}

// A rank that waits for those of its node goes on with its messages.
auto Reduction::counted(Run& run, std::atomic<std::uint64_t> RankControl::*counter, std::int64_t k) {
  return until([this, &run, counter, k] {
    progress_all(run);
    return control_.all(counter, run.number(k) + 1, run.collective);
  });
}

Steps Reduction::on_node(Run& run) {
  const int local = topology_.local;
  run.stage(topology_, 0);
  for (std::int64_t k = 0; k < run.chunks(); ++k) {
    if (run.staged()) co_await counted(run, &RankControl::staged, k);
    const Range mine = part_of(run.range(k).size(), local, control_.ranks());
    for (std::int64_t at = mine.begin; at < mine.end; at += run.step()) {
      if (at > mine.begin) co_await std::suspend_always{};
      for (int l = 0; l < control_.ranks(); ++l)
        buffers_[static_cast<std::size_t>(l)] = run.place(l, k) + at * run.width;
      reduce_in_place(run.collective.dtype, run.collective.reduce, tree_.own.front(), buffers_,
                      std::min(run.step(), mine.end - at));
    }
    run.tell_worked(local, k);
    run.stage(topology_, k + 1);  // into the other half, which all ranks have finished with
    co_await counted(run, &RankControl::reduced, k);
    run.unstage(topology_, k);
  }
  run.done = run.number(run.chunks());
}

// A chunk has a piece of every rank's part, so that all ranks have work in each chunk.
Steps Reduction::scatter_on_node(Run& run) {
  const int local = topology_.local, ranks = control_.ranks();
  const std::vector<std::int64_t> counts(run.collective.counts.begin(), run.collective.counts.end());
  std::int64_t piece = *std::max_element(counts.begin(), counts.end());
  if (run.staged()) piece = std::min(piece, run.chunk / ranks);
  const std::int64_t chunks = (*std::max_element(counts.begin(), counts.end()) + piece - 1) / piece;
  const auto size_of_piece = [&](int l, std::int64_t k) {
    return std::clamp<std::int64_t>(counts[static_cast<std::size_t>(l)] - k * piece, 0, piece);
  };
  std::vector<std::int64_t> begin(counts.size(), 0);
  for (std::size_t l = 1; l < counts.size(); ++l) begin[l] = begin[l - 1] + counts[l - 1];
  for (std::int64_t k = 0; k < chunks; ++k) {
    for (int l = 0; run.staged() && l < ranks; ++l)
      std::memcpy(control_.staging(local, run.number(k)) + l * piece * run.width,
                  run.data(begin[static_cast<std::size_t>(l)] + k * piece), bytes(size_of_piece(l, k) * run.width));
    control_.own().staged.store(run.number(k) + 1, std::memory_order_release);
    co_await counted(run, &RankControl::staged, k);
    const std::int64_t own = begin[static_cast<std::size_t>(local)] + k * piece, size = size_of_piece(local, k);
    for (std::int64_t at = 0; at < size; at += run.step()) {
      if (at > 0) co_await std::suspend_always{};
      for (int l = 0; l < ranks; ++l)
        terms_[static_cast<std::size_t>(l)] =
            run.staged() ? control_.staging(l, run.number(k)) + (local * piece + at) * run.width
                         : run.parts[static_cast<std::size_t>(l)] + (own + at) * run.width;
      reduce_into(run.collective.dtype, run.collective.reduce, tree_.own.front(), terms_, run.data(own + at),
                  std::min(run.step(), size - at));
    }
    run.tell_worked(local, k);
    co_await counted(run, &RankControl::reduced, k);
  }
  run.done = run.number(chunks);
}

// If there are many rounds, a chunk after the second begins when the one before it has ended its first round. So the
// messages of later rounds need not queue behind those of many new chunks.
bool Reduction::may_begin(Run& run, std::int64_t k) {
  progress_all(run);
  return rounds_.sums.size() < 2 || k < 2 || slot_of(k - 1).next > 0;
}

Steps Reduction::between_nodes(Run& run) {
  const std::int64_t chunks = run.chunks(), before = run.in_flight() - 1;
  for (std::int64_t k = 0; k < chunks + before; ++k) {
    if (k < chunks) {
      run.stage(topology_, k);
      if (run.staged()) co_await counted(run, &RankControl::staged, k);
      co_await until([this, &run, k] { return may_begin(run, k); });
      if (has_rail()) begin(run, k);
      run.begun = k + 1;
    }
    if (k >= before) co_await finish(run, k - before);
  }
  run.done = run.number(chunks);
}

bool Reduction::is_broadcast(const Run& run) { return run.collective.kind == Kind::kBroadcast; }

// Only sums are rounded: a maximum is one of the ranks' numbers.
bool Reduction::is_narrow(const Run& run) const {
  return !is_broadcast(run) && run.collective.reduce == Reduce::kSum &&
         wire_width(run.collective.dtype, format_) != run.width;
}

Range Reduction::slice_of(const Run& run, std::int64_t k) const {
  return part_of(run.range(k).size(), topology_.local, rails_);
}

// The sums of a block of ranks at an element of the slice. A rank that is alone on its node has its data as sums, and
// the root of a broadcast on its node.
std::byte* Reduction::sums(const Run& run, std::int64_t k, int block, std::int64_t element) {
  if (in_place(run)) return run.place(0, k) + element * run.width;
  const int root = run.collective.root - topology_.own().front();
  if (is_broadcast(run) && root >= 0 && root < control_.ranks())
    return run.place(root, k) + (slice_of(run, k).begin + element) * run.width;
  return slot_of(k).sums.get() + (block * slice_of(run, k).size() + element) * run.width;
}

std::byte* Reduction::narrow(const Run& run, std::int64_t k, int block, std::int64_t element) {
  return slot_of(k).narrow.get() + (block * slice_of(run, k).size() + element) * 2;
}

// Adds up this node's blocks of ranks, and starts the first round.
void Reduction::begin(Run& run, std::int64_t k) {
  slot_of(k).next = 0;
  if (!is_broadcast(run)) add_blocks(run, k);
  start_round(run, k);
}

void Reduction::add_blocks(Run& run, std::int64_t k) {
  const Range slice = slice_of(run, k);
  const int blocks = tree_.own_blocks();
  for (int l = 0; l < control_.ranks(); ++l)
    terms_[static_cast<std::size_t>(l)] = run.place(l, k) + slice.begin * run.width;
  for (int b = 0; b < blocks && !in_place(run); ++b)
    reduce_into(run.collective.dtype, run.collective.reduce, tree_.own[static_cast<std::size_t>(b)], terms_,
                sums(run, k, b, 0), slice.size());
  if (!is_narrow(run)) return;
  // Also what stays here is rounded, so that a sum does not depend on which node adds it.
  auto* const wide = reinterpret_cast<float*>(sums(run, k, 0, 0));
  auto* const narrow = reinterpret_cast<std::uint16_t*>(this->narrow(run, k, 0, 0));
  to_wire(format_, wide, narrow, blocks * slice.size());
  from_wire(format_, narrow, wide, blocks * slice.size());
}

// Goes on as far as it can without waiting. True at the end of the chunk.
bool Reduction::progress(Run& run, std::int64_t k) {
  std::size_t& next = slot_of(k).next;
  for (; next < rounds_before_returns(run) + rounds_.returns.size(); ++next, start_round(run, k)) {
    if (!network_.test(channel_of(k))) return false;
    if (next < rounds_before_returns(run) && !is_broadcast(run)) add_up(run, k, rounds_.sums[next]);
  }
  return true;
}

void Reduction::start_round(Run& run, std::int64_t k) {
  const std::size_t next = slot_of(k).next, before = rounds_before_returns(run);
  if (next == before + rounds_.returns.size()) return;
  messages_.clear();
  if (next >= before) add_returns(run, k, rounds_.returns[next - before]);
  else if (is_broadcast(run)) add_parts_of_root(run, k);
  else add_sums(run, k, rounds_.sums[next]);
  network_.start(channel_of(k), messages_);
}

// The root of a broadcast sends every part to its owner.
void Reduction::add_parts_of_root(Run& run, std::int64_t k) {
  const bool on_this_node = std::ranges::binary_search(topology_.own(), run.collective.root);
  for (std::size_t begin = 0, end = 0; begin < rounds_.owners.size(); begin = end) {
    const int owner = rounds_.owners[begin];
    while (end < rounds_.owners.size() && rounds_.owners[end] == owner) ++end;
    const Range parts{static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end)};
    const Range elements = elements_of(slice_of(run, k).size(), parts, rounds_.parts());
    std::byte* const memory = sums(run, k, 0, elements.begin);
    if (on_this_node && owner != topology_.node) messages_.sends.push_back({owner, memory, bytes(elements.size())});
    if (!on_this_node && owner == topology_.node)
      messages_.receives.push_back({topology_.node_of(run.collective.root), memory, bytes(elements.size())});
  }
}

void Reduction::add_sums(Run& run, std::int64_t k, const ReduceRound& round) {
  PipelineSlot& slot = slot_of(k);
  const std::int64_t size = slice_of(run, k).size();
  const auto width_of = [&](const ReduceRound::Message& m) { return is_narrow(run) && m.of_block ? 2 : run.width; };
  for (const ReduceRound::Message& m : round.sends) {
    const Range elements = elements_of(size, m.parts, rounds_.parts());
    const std::byte* from =
        is_narrow(run) && m.of_block ? narrow(run, k, m.block, elements.begin) : sums(run, k, m.block, elements.begin);
    messages_.sends.push_back({m.node, from, bytes(elements.size() * width_of(m))});
  }
  slot.come.clear();
  std::byte* place = slot.inbox.get();
  for (const ReduceRound::Message& m : round.receives) {
    const std::int64_t length = elements_of(size, m.parts, rounds_.parts()).size() * width_of(m);
    messages_.receives.push_back({m.node, place, bytes(length)});
    slot.come.push_back(place);
    place += (length + 7) / 8 * 8;
  }
}

// Sums over all ranks go from their places to the same places of other nodes.
void Reduction::add_returns(Run& run, std::int64_t k, const ReduceRound& round) {
  const std::int64_t size = slice_of(run, k).size();
  if (is_narrow(run) && &round == &rounds_.returns.front())
    for (std::int64_t p = 0; p < rounds_.parts(); ++p) {
      if (rounds_.owners[static_cast<std::size_t>(p)] != topology_.node) continue;
      const Range elements = part_of(size, p, rounds_.parts());
      to_wire(format_, reinterpret_cast<const float*>(sums(run, k, 0, elements.begin)),
              reinterpret_cast<std::uint16_t*>(narrow(run, k, 0, elements.begin)), elements.size());
    }
  const auto memory_of = [&](const ReduceRound::Message& m) {
    const Range elements = elements_of(size, m.parts, rounds_.parts());
    return is_narrow(run) ? std::pair(narrow(run, k, 0, elements.begin), bytes(elements.size() * 2))
                          : std::pair(sums(run, k, 0, elements.begin), bytes(elements.size() * run.width));
  };
  const int root = is_broadcast(run) ? topology_.node_of(run.collective.root) : -1;  // needs nothing
  for (const ReduceRound::Message& m : round.sends)
    if (m.node != root) messages_.sends.push_back({m.node, memory_of(m).first, memory_of(m).second});
  for (const ReduceRound::Message& m : round.receives)
    if (topology_.node != root) messages_.receives.push_back({m.node, memory_of(m).first, memory_of(m).second});
}

void Reduction::add_up(Run& run, std::int64_t k, const ReduceRound& round) {
  const std::int64_t size = slice_of(run, k).size();
  widen(run, k, round);
  for (const ReduceRound::Sum& sum : round.sums) {
    const Range elements = elements_of(size, sum.parts, rounds_.parts());
    for (std::size_t t = 0; t < sum.terms.size(); ++t) {
      const int received = sum.terms[t] - tree_.own_blocks();
      terms_[t] = received < 0 ? sums(run, k, sum.terms[t], elements.begin)
                               : slot_of(k).come[static_cast<std::size_t>(received)];
    }
    reduce_into(run.collective.dtype, run.collective.reduce, sum.order, terms_, sums(run, k, sum.to, elements.begin),
                elements.size());
  }
}

// Finds the received sums, those in the wire's format widened.
void Reduction::widen(Run& run, std::int64_t k, const ReduceRound& round) {
  PipelineSlot& slot = slot_of(k);
  std::byte* wide = slot.wide.get();
  for (std::size_t i = 0; i < round.receives.size(); ++i) {
    if (!is_narrow(run) || !round.receives[i].of_block) continue;
    const std::int64_t count = elements_of(slice_of(run, k).size(), round.receives[i].parts, rounds_.parts()).size();
    from_wire(format_, static_cast<const std::uint16_t*>(slot.come[i]), reinterpret_cast<float*>(wide), count);
    slot.come[i] = std::exchange(wide, wide + 4 * count);
  }
}

// Copies the result to all ranks of this node.
void Reduction::spread(Run& run, std::int64_t k) {
  const Range slice = slice_of(run, k);
  for (int l = 0; !in_place(run) && l < control_.ranks(); ++l) {
    std::byte* const place = run.place(l, k) + slice.begin * run.width;
    if (place == sums(run, k, 0, 0)) continue;  // the root of a broadcast
    if (!is_narrow(run)) std::memcpy(place, sums(run, k, 0, 0), bytes(slice.size() * run.width));
    else
      from_wire(format_, reinterpret_cast<const std::uint16_t*>(narrow(run, k, 0, 0)), reinterpret_cast<float*>(place),
                slice.size());
  }
}

Steps Reduction::finish(Run& run, std::int64_t k) {
  if (has_rail()) {
    co_await until([&] { return progress_all(run); });
    spread(run, k);
  }
  run.ended = k + 1;
  run.tell_worked(topology_.local, k);
  co_await counted(run, &RankControl::reduced, k);
  run.unstage(topology_, k);
}

}  // namespace syncline::comm
