#include "comm/shared/reduction.h"

#include <algorithm>
#include <cstring>

namespace syncline::comm {
namespace {

// Memory of a rank's slices in flight. It limits their number where a slice needs much: if the node's ranks are several
// blocks of the sums' tree, or if sums travel in 16 bits.
constexpr std::int64_t kMostBytes = std::int64_t{13} << 20;

std::size_t bytes(std::int64_t count) { return static_cast<std::size_t>(count); }

}  // namespace

// The collective under way.
struct Reduction::Run {
  const Collective& collective;
  const ReduceRounds& rounds;
  ReduceChunks chunks;
  std::int64_t width = chunks.width();
  std::int64_t begun = 0, ended = 0;  // of this rank's slices between nodes
};

Reduction::Reduction(const Topology& topology, const SumTree& tree, AlgorithmRows algorithms, NodeControl& control,
                     Network& network, WireFormat format)
    : topology_(topology),
      tree_(tree),
      control_(control),
      network_(network),
      format_(format),
      first_rail_(topology.first_rail(topology.local)),
      end_rail_(topology.first_rail(topology.local + 1)),
      algorithms_(algorithms) {
  for (const Algorithm algorithm : {Algorithm::kDirect, Algorithm::kHalves})
    if (may_choose(algorithms, topology.node_count(), algorithm))
      rounds_.push_back(reduce_rounds(tree, {topology.node, topology.node + 1}, algorithm).front());
  buffers_.resize(static_cast<std::size_t>(control_.ranks()));
  terms_.resize(std::max(static_cast<std::size_t>(tree.blocks()), buffers_.size()));
  if (topology_.node_count() == 1 || !has_rail()) return;
  const std::int64_t slice =
      std::max(slice_bytes(tree.most_blocks()), static_cast<std::int64_t>(control_.half_bytes())) + 8;
  const bool narrow = format != WireFormat::kSame;
  const std::int64_t sums = tree.own_blocks() * slice, inbox = most_received(slice);
  const std::int64_t a_slot = sums + inbox + (narrow ? sums / 2 : 0), rest = narrow ? inbox : 0;
  slots_.resize(bytes(std::clamp<std::int64_t>((kMostBytes - rest) / a_slot, 2, kChunksInFlight)));
  for (PipelineSlot& slot : slots_) {
    slot.sums = std::make_unique_for_overwrite<std::byte[]>(bytes(sums));
    slot.inbox = std::make_unique_for_overwrite<std::byte[]>(bytes(inbox));
    if (narrow) slot.narrow = std::make_unique_for_overwrite<std::byte[]>(bytes(sums / 2));
  }
  if (narrow) wide_ = std::make_unique_for_overwrite<std::byte[]>(bytes(inbox));
}

// Bytes that a round receives, each message aligned to 8 bytes. `slice`: of a slice.
std::int64_t Reduction::most_received(std::int64_t slice) const {
  std::int64_t most = 0;
  for (const ReduceRounds& rounds : rounds_)
    for (const ReduceRound& round : rounds.sums) {
      std::int64_t received = 0;
      for (const ReduceRound::Message& message : round.receives)
        received += 8 * message.parts.size() * (slice / 8 / rounds.parts() + 1) + 8;
      most = std::max(most, received);
    }
  return most;
}

Steps Reduction::run(const Collective& collective, std::span<std::byte* const> parts, bool direct,
                     std::uint64_t& done) {
  const ReduceRounds& rounds = rounds_for(collective);
  Run run{collective, rounds, ReduceChunks(collective, topology_, control_, rounds, parts, direct, done)};
  if (topology_.node_count() > 1) co_await between_nodes(run);
  else if (collective.kind == Kind::kReduceScatter) co_await scatter_on_node(run);
  else co_await on_node(run);
  done = run.chunks.number(run.chunks.count());
}

const ReduceRounds& Reduction::rounds_for(const Collective& collective) const {
  const int nodes = topology_.node_count();
  const Algorithm chosen = choose(algorithms_, nodes, collective.bytes / (nodes * topology_.rails));
  return *std::ranges::find(rounds_, chosen, &ReduceRounds::algorithm);
}

// Works on all slices between nodes. True if the oldest is over.
bool Reduction::progress_all(Run& run) {
  if (run.ended == run.begun || !has_rail()) return run.ended < run.begun;
  for (std::int64_t i = run.ended + 1; i < run.begun; ++i) progress(run, slot_of(i));
  return progress(run, slot_of(run.ended));
}

// Waits for the ranks of the node; meanwhile goes on with the messages between nodes.
auto Reduction::counted(Run& run, std::atomic<std::uint64_t> RankControl::*counter, std::int64_t k) {
  return until([this, &run, counter, k] {
    progress_all(run);
    return control_.all(counter, run.chunks.number(k) + 1, run.collective);
  });
}

// Elements of each rank's memory that one step adds up.
std::int64_t Reduction::step_of(const Run& run) const {
  return std::max<std::int64_t>(kStepBytes / (run.width * control_.ranks()) / 1024, 1) * 1024;
}

Steps Reduction::on_node(Run& run) {
  const ReduceChunks& chunks = run.chunks;
  const std::int64_t step = step_of(run);
  chunks.stage(0);
  for (std::int64_t k = 0; k < chunks.count(); ++k) {
    if (chunks.staged()) co_await counted(run, &RankControl::staged, k);
    const Range mine = part_of(chunks.range(k).size(), topology_.local, control_.ranks());
    for (std::int64_t at = mine.begin; at < mine.end; at += step) {
      if (at > mine.begin) co_await std::suspend_always{};
      for (int l = 0; l < control_.ranks(); ++l)
        buffers_[static_cast<std::size_t>(l)] = chunks.place(l, k) + at * run.width;
      reduce_in_place(run.collective.dtype, run.collective.reduce, tree_.own.front(), buffers_,
                      std::min(step, mine.end - at));
    }
    chunks.tell_worked(k);
    chunks.stage(k + 1);  // into the other half, which all ranks have finished with
    co_await counted(run, &RankControl::reduced, k);
    chunks.unstage(k);
  }
}

// Each rank adds up its own piece only: there is no result to distribute.
Steps Reduction::scatter_on_node(Run& run) {
  const ReduceChunks& chunks = run.chunks;
  const int local = topology_.local;
  const std::int64_t step = step_of(run);
  for (std::int64_t k = 0; k < chunks.count(); ++k) {
    chunks.stage(k);
    if (chunks.staged()) co_await counted(run, &RankControl::staged, k);
    const Range mine = chunks.piece(k, local);
    for (std::int64_t at = 0; at < mine.size(); at += step) {
      if (at > 0) co_await std::suspend_always{};
      for (int l = 0; l < control_.ranks(); ++l)
        terms_[static_cast<std::size_t>(l)] = chunks.place(l, k) + (chunks.piece_begin(k, local) + at) * run.width;
      reduce_into(run.collective.dtype, run.collective.reduce, tree_.own.front(), terms_, chunks.data(mine.begin + at),
                  std::min(step, mine.size() - at));
    }
    chunks.tell_worked(k);
    co_await counted(run, &RankControl::reduced, k);
  }
}

std::int64_t Reduction::most_in_flight(const Run& run) const {
  const std::int64_t slots = has_rail() ? std::ssize(slots_) : kChunksInFlight;
  // Staging memory has two halves: a chunk is staged when the one before the last has ended.
  return run.chunks.staged() ? std::min(slices_a_chunk() + 1, slots) : slots;
}

// If there are many rounds, a slice of the third chunk or a later one begins when that of the chunk before has ended
// its first round. So the messages of later rounds need not queue behind those of many new slices.
bool Reduction::may_begin(const Run& run) {
  if (run.begun == run.chunks.count() * slices_a_chunk() || run.begun - run.ended == most_in_flight(run)) return false;
  const std::int64_t before = run.begun - slices_a_chunk();
  return !has_rail() || run.rounds.sums.size() < 2 || before < std::max(slices_a_chunk(), run.ended) ||
         slot_of(before).next > 0;
}

// All ranks work on their slices in one order: by chunk, then by rail. They do not wait for each other for ever,
// because each rank of a slice's rail comes to it once all slices before it are over:
// - A rank that may not begin a slice finishes the oldest one.
// - It begins before it finishes, and has room for two slices. So a rank that waits at the end of a chunk for its node
//   has staged the next chunk.
Steps Reduction::between_nodes(Run& run) {
  while (run.ended < run.chunks.count() * slices_a_chunk()) {
    co_await until([this, &run] {
      const bool is_over = progress_all(run);
      return is_over || may_begin(run);
    });
    if (may_begin(run)) co_await begin(run);
    else co_await finish(run);
    co_await std::suspend_always{};
  }
}

bool Reduction::is_broadcast(const Run& run) { return run.collective.kind == Kind::kBroadcast; }

// Only sums are rounded: a maximum is one of the ranks' numbers.
bool Reduction::is_narrow(const Run& run) const {
  return !is_broadcast(run) && run.collective.reduce == Reduce::kSum &&
         wire_width(run.collective.dtype, format_) != run.width;
}

// A rank that is alone on its node has its data as sums. A reduce_scatter's pieces are brought together first.
bool Reduction::in_place(const Run& run) const {
  return control_.ranks() == 1 && !is_narrow(run) && !run.chunks.scatters();
}

std::size_t Reduction::rounds_before_returns(const Run& run) { return is_broadcast(run) ? 1 : run.rounds.sums.size(); }

std::size_t Reduction::all_rounds(const Run& run) {
  return rounds_before_returns(run) + (run.chunks.scatters() ? 0 : run.rounds.returns.size());
}

// The sums of a block of ranks at an element of the slice. The root of a broadcast has its data as sums on its node.
std::byte* Reduction::sums(const Run& run, const PipelineSlot& slot, int block, std::int64_t element) {
  const int root = is_broadcast(run) ? run.collective.root - topology_.own().front() : -1;
  const bool has_root = root >= 0 && root < control_.ranks();
  if (in_place(run) || has_root)
    return run.chunks.place(has_root ? root : 0, slot.chunk) + (slot.slice.pieces.front().memory + element) * run.width;
  return slot.sums.get() + (block * slot.slice.size() + element) * run.width;
}

std::byte* Reduction::narrow(const PipelineSlot& slot, int block, std::int64_t element) {
  return slot.narrow.get() + (block * slot.slice.size() + element) * 2;
}

// Adds up this node's blocks of ranks, and starts the first round.
Steps Reduction::begin(Run& run) {
  const std::int64_t i = run.begun, k = i / slices_a_chunk();
  const int rail = first_rail_ + static_cast<int>(i % slices_a_chunk());
  if (i % slices_a_chunk() == 0) {
    run.chunks.stage(k);
    if (run.chunks.staged()) co_await counted(run, &RankControl::staged, k);
  }
  ++run.begun;
  if (!has_rail()) co_return;
  PipelineSlot& slot = slot_of(i);
  slot.chunk = k;
  slot.channel = exchange_channel(rail, k);
  slot.next = 0;
  run.chunks.find_slice(k, rail, run.rounds, slot.slice);
  if (!is_broadcast(run)) add_blocks(run, slot);
  start_round(run, slot);
}

void Reduction::add_blocks(Run& run, PipelineSlot& slot) {
  const Slice& slice = slot.slice;
  const int blocks = tree_.own_blocks();
  for (const Slice::Piece& piece : slice.pieces) {
    for (int l = 0; l < control_.ranks(); ++l)
      terms_[static_cast<std::size_t>(l)] = run.chunks.place(l, slot.chunk) + piece.memory * run.width;
    for (int b = 0; b < blocks && !in_place(run); ++b)
      reduce_into(run.collective.dtype, run.collective.reduce, tree_.own[static_cast<std::size_t>(b)], terms_,
                  sums(run, slot, b, piece.begin), piece.size);
  }
  if (!is_narrow(run)) return;
  // Also what stays here is rounded, so that a sum does not depend on which node adds it.
  auto* const wide = reinterpret_cast<float*>(sums(run, slot, 0, 0));
  auto* const narrow = reinterpret_cast<std::uint16_t*>(this->narrow(slot, 0, 0));
  to_wire(format_, wide, narrow, blocks * slice.size());
  from_wire(format_, narrow, wide, blocks * slice.size());
}

// Goes on as far as it can without waiting. True at the end of the slice.
bool Reduction::progress(Run& run, PipelineSlot& slot) {
  std::size_t& next = slot.next;
  for (; next < all_rounds(run); ++next, start_round(run, slot)) {
    if (!network_.test(slot.channel)) return false;
    if (next < rounds_before_returns(run) && !is_broadcast(run)) add_up(run, slot, run.rounds.sums[next]);
  }
  return true;
}

void Reduction::start_round(Run& run, PipelineSlot& slot) {
  const std::size_t next = slot.next, before = rounds_before_returns(run);
  if (next == before && is_narrow(run)) round_own_parts(run, slot);
  if (next == all_rounds(run)) return;
  messages_.clear();
  if (next >= before) add_returns(run, slot, run.rounds.returns[next - before]);
  else if (is_broadcast(run)) add_parts_of_root(run, slot);
  else add_sums(run, slot, run.rounds.sums[next]);
  network_.start(slot.channel, messages_);
}

// The root of a broadcast sends every part to its owner.
void Reduction::add_parts_of_root(Run& run, PipelineSlot& slot) {
  const bool on_this_node = std::ranges::binary_search(topology_.own(), run.collective.root);
  for (std::size_t begin = 0, end = 0; begin < run.rounds.owners.size(); begin = end) {
    const int owner = run.rounds.owners[begin];
    while (end < run.rounds.owners.size() && run.rounds.owners[end] == owner) ++end;
    const Range parts{static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end)};
    const Range elements = slot.slice.elements(parts);
    std::byte* const memory = sums(run, slot, 0, elements.begin);
    if (on_this_node && owner != topology_.node) messages_.sends.push_back({owner, memory, bytes(elements.size())});
    if (!on_this_node && owner == topology_.node)
      messages_.receives.push_back({topology_.node_of(run.collective.root), memory, bytes(elements.size())});
  }
}

void Reduction::add_sums(Run& run, PipelineSlot& slot, const ReduceRound& round) {
  const auto width_of = [&](const ReduceRound::Message& m) { return is_narrow(run) && m.of_block ? 2 : run.width; };
  for (const ReduceRound::Message& m : round.sends) {
    const Range elements = slot.slice.elements(m.parts);
    const std::byte* from =
        is_narrow(run) && m.of_block ? narrow(slot, m.block, elements.begin) : sums(run, slot, m.block, elements.begin);
    messages_.sends.push_back({m.node, from, bytes(elements.size() * width_of(m))});
  }
  slot.come.clear();
  std::byte* place = slot.inbox.get();
  for (const ReduceRound::Message& m : round.receives) {
    const std::int64_t length = slot.slice.elements(m.parts).size() * width_of(m);
    messages_.receives.push_back({m.node, place, bytes(length)});
    slot.come.push_back(place);
    place += (length + 7) / 8 * 8;
  }
}

void Reduction::round_own_parts(Run& run, PipelineSlot& slot) {
  for (std::int64_t p = 0; p < run.rounds.parts(); ++p) {
    if (run.rounds.owners[static_cast<std::size_t>(p)] != topology_.node) continue;
    const Range elements = slot.slice.elements({p, p + 1});
    to_wire(format_, reinterpret_cast<const float*>(sums(run, slot, 0, elements.begin)),
            reinterpret_cast<std::uint16_t*>(narrow(slot, 0, elements.begin)), elements.size());
  }
}

// Sums over all ranks go from their places to the same places of other nodes.
void Reduction::add_returns(Run& run, PipelineSlot& slot, const ReduceRound& round) {
  const auto memory_of = [&](const ReduceRound::Message& m) {
    const Range elements = slot.slice.elements(m.parts);
    return is_narrow(run) ? std::pair(narrow(slot, 0, elements.begin), bytes(elements.size() * 2))
                          : std::pair(sums(run, slot, 0, elements.begin), bytes(elements.size() * run.width));
  };
  const int root = is_broadcast(run) ? topology_.node_of(run.collective.root) : -1;  // needs nothing
  for (const ReduceRound::Message& m : round.sends)
    if (m.node != root) messages_.sends.push_back({m.node, memory_of(m).first, memory_of(m).second});
  for (const ReduceRound::Message& m : round.receives)
    if (topology_.node != root) messages_.receives.push_back({m.node, memory_of(m).first, memory_of(m).second});
}

void Reduction::add_up(Run& run, PipelineSlot& slot, const ReduceRound& round) {
  widen(run, slot, round);
  for (const ReduceRound::Sum& sum : round.sums) {
    const Range elements = slot.slice.elements(sum.parts);
    for (std::size_t t = 0; t < sum.terms.size(); ++t) {
      const int received = sum.terms[t] - tree_.own_blocks();
      terms_[t] =
          received < 0 ? sums(run, slot, sum.terms[t], elements.begin) : slot.come[static_cast<std::size_t>(received)];
    }
    reduce_into(run.collective.dtype, run.collective.reduce, sum.order, terms_, sums(run, slot, sum.to, elements.begin),
                elements.size());
  }
}

// Finds the received sums, those in the wire's format widened.
void Reduction::widen(Run& run, PipelineSlot& slot, const ReduceRound& round) {
  std::byte* wide = wide_.get();
  for (std::size_t i = 0; i < round.receives.size(); ++i) {
    if (!is_narrow(run) || !round.receives[i].of_block) continue;
    const std::int64_t count = slot.slice.elements(round.receives[i].parts).size();
    from_wire(format_, static_cast<const std::uint16_t*>(slot.come[i]), reinterpret_cast<float*>(wide), count);
    slot.come[i] = std::exchange(wide, wide + 4 * count);
  }
}

// Copies the result to the ranks of this node.
void Reduction::spread(Run& run, PipelineSlot& slot) {
  if (in_place(run)) return;
  run.chunks.for_results(slot.chunk, slot.slice, [&](std::byte* place, std::int64_t element, std::int64_t count) {
    if (place == sums(run, slot, 0, element)) return;  // the root of a broadcast
    if (!is_narrow(run)) std::memcpy(place, sums(run, slot, 0, element), bytes(count * run.width));
    else
      from_wire(format_, reinterpret_cast<const std::uint16_t*>(narrow(slot, 0, element)),
                reinterpret_cast<float*>(place), count);
  });
}

Steps Reduction::finish(Run& run) {
  const std::int64_t i = run.ended, k = i / slices_a_chunk();
  if (has_rail()) spread(run, slot_of(i));
  ++run.ended;
  if (run.ended % slices_a_chunk() != 0) co_return;
  run.chunks.tell_worked(k);
  co_await counted(run, &RankControl::reduced, k);
  run.chunks.unstage(k);
}

}  // namespace syncline::comm
