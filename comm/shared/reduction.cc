#include "comm/shared/reduction.h"

#include <algorithm>
#include <cstring>

namespace syncline::comm {
namespace {

// Open MPI moves pieces of this size faster than larger ones: they stay in the cache.
constexpr std::int64_t kPieceBytes = std::int64_t{1} << 20;

std::size_t bytes(std::int64_t count) { return static_cast<std::size_t>(count); }

}  // namespace

Range part_of(std::int64_t count, int i, int n) {
  const std::int64_t each = count / n, rest = count % n;
  const std::int64_t begin = i * each + std::min<std::int64_t>(i, rest);
  return {begin, begin + each + (i < rest ? 1 : 0)};
}

// The collective under way. A chunk's elements lie at `place(l, k)` in local rank l's memory.
struct Reduction::Run {
  const Collective& collective;
  std::span<std::byte* const> parts;
  NodeControl& control;
  std::uint64_t& done;
  const Wait& wait;
  std::int64_t width = static_cast<std::int64_t>(size_of(collective.dtype));
  std::int64_t chunk = collective.count;  // elements
  std::uint64_t first = done;

  bool staged() const { return parts.empty(); }
  std::int64_t chunks() const { return (collective.count + chunk - 1) / chunk; }
  Range range(std::int64_t k) const { return {k * chunk, std::min((k + 1) * chunk, collective.count)}; }
  std::uint64_t number(std::int64_t k) const { return first + static_cast<std::uint64_t>(k); }
  std::byte* place(int l, std::int64_t k) const {
    return staged() ? control.staging(l, number(k)) : parts[static_cast<std::size_t>(l)] + k * chunk * width;
  }
  std::byte* data(std::int64_t element) const { return static_cast<std::byte*>(collective.data) + element * width; }

  void stage(int local, std::int64_t k) const {
    if (!staged() || k >= chunks()) return;
    std::memcpy(place(local, k), data(range(k).begin), bytes(range(k).size() * width));
    control.of(local).staged.store(number(k) + 1, std::memory_order_release);
  }
  void unstage(int local, std::int64_t k) const {
    if (staged()) std::memcpy(data(range(k).begin), place(local, k), bytes(range(k).size() * width));
  }
  void wait_for(std::atomic<std::uint64_t> RankControl::*counter, std::int64_t k) const {
    wait([&] { return control.all(counter, number(k) + 1, collective); });
  }
  void tell_worked(int local, std::int64_t k) const {
    control.of(local).reduced.store(number(k) + 1, std::memory_order_release);
  }
};

Reduction::Reduction(const Topology& topology, const SumTree& tree, NodeControl& control, Network& network,
                     WireFormat format)
    : topology_(topology), tree_(tree), control_(control), network_(network), format_(format) {
  buffers_.resize(static_cast<std::size_t>(control_.ranks()));
  terms_.resize(std::max(static_cast<std::size_t>(tree.blocks()), buffers_.size()));
  if (topology_.node_count() == 1 || topology_.local >= topology_.rails()) return;
  // A node's part may be an element longer than the slice divided by the nodes.
  const std::size_t slice = std::max(bytes(kPieceBytes), control_.half_bytes()) + 8 * topology_.nodes.size();
  const std::size_t part = slice / topology_.nodes.size() + 8;
  for (PipelineSlot& slot : slots_) {
    for (auto* memory : {&slot.sums, &slot.outbox}) memory->resize(bytes(tree.own_blocks()) * slice);
    slot.inbox.resize(bytes(tree.blocks()) * part);
  }
  wide_.resize(2 * bytes(tree.blocks()) * part);
  messages_.reserve(topology_.nodes.size());
}

void Reduction::run(const Collective& collective, std::span<std::byte* const> parts, bool direct, std::uint64_t& done,
                    const Wait& wait) {
  Run run{collective, parts, control_, done, wait};
  const bool one_node = topology_.node_count() == 1;
  if (!direct) run.chunk = static_cast<std::int64_t>(control_.half_bytes()) / run.width;
  else if (!one_node) run.chunk = topology_.rails() * (kPieceBytes / run.width);
  if (!one_node) between_nodes(run);
  else if (collective.kind == Kind::kReduceScatter) scatter_on_node(run);
  else on_node(run);
}

void Reduction::on_node(Run& run) {
  const int local = topology_.local;
  run.stage(local, 0);
  for (std::int64_t k = 0; k < run.chunks(); ++k) {
    if (run.staged()) run.wait_for(&RankControl::staged, k);
    const Range mine = part_of(run.range(k).size(), local, control_.ranks());
    for (int l = 0; l < control_.ranks(); ++l)
      buffers_[static_cast<std::size_t>(l)] = run.place(l, k) + mine.begin * run.width;
    reduce_in_place(run.collective.dtype, run.collective.reduce, tree_.own.front(), buffers_, mine.size());
    run.tell_worked(local, k);
    run.stage(local, k + 1);  // into the other half, which all ranks have finished with
    run.wait_for(&RankControl::reduced, k);
    run.unstage(local, k);
  }
  run.done = run.number(run.chunks());
}

// A chunk has a piece of every rank's part, so that all ranks have work in each chunk.
void Reduction::scatter_on_node(Run& run) {
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
    run.wait_for(&RankControl::staged, k);
    const std::int64_t own = begin[static_cast<std::size_t>(local)] + k * piece;
    for (int l = 0; l < ranks; ++l)
      terms_[static_cast<std::size_t>(l)] = run.staged()
                                                ? control_.staging(l, run.number(k)) + local * piece * run.width
                                                : run.parts[static_cast<std::size_t>(l)] + own * run.width;
    reduce_into(run.collective.dtype, run.collective.reduce, tree_.own.front(), terms_, run.data(own),
                size_of_piece(local, k));
    run.tell_worked(local, k);
    run.wait_for(&RankControl::reduced, k);
  }
  run.done = run.number(chunks);
}

void Reduction::between_nodes(Run& run) {
  const int local = topology_.local;
  const std::int64_t chunks = run.chunks();
  for (std::int64_t k = 0; k <= chunks; ++k) {
    if (k < chunks) {
      run.stage(local, k);
      if (run.staged()) run.wait_for(&RankControl::staged, k);
      if (local < topology_.rails()) exchange(run, k);
    }
    if (k > 0) finish(run, k - 1);
  }
  run.done = run.number(chunks);
}

Reduction::Cut Reduction::cut(const Run& run, std::int64_t k) const {
  const Range slice = part_of(run.range(k).size(), topology_.local, topology_.rails());
  const Range own = part_of(slice.size(), topology_.node, topology_.node_count());
  return {slice, own, wire_width_of(run)};
}

// Only sums are rounded: a maximum is one of the ranks' numbers.
std::int64_t Reduction::wire_width_of(const Run& run) const {
  return run.collective.reduce == Reduce::kSum ? wire_width(run.collective.dtype, format_) : run.width;
}

bool Reduction::in_place(const Run& run) const { return control_.ranks() == 1 && wire_width_of(run) == run.width; }

// A rank that is alone on its node sends its data from their place.
std::byte* Reduction::outbox(const Run& run, std::int64_t k) {
  return in_place(run) ? run.place(0, k) : slots_[static_cast<std::size_t>(k % 2)].outbox.data();
}

// The slice's sums over all ranks, in the wire's format.
std::byte* Reduction::result(const Run& run, std::int64_t k) {
  return in_place(run) ? run.place(0, k) : slots_[static_cast<std::size_t>(k % 2)].sums.data();
}

// Writes the sums of the node's blocks of ranks, in the order of the outbox.
void Reduction::add_blocks(Run& run, std::int64_t k, std::byte* sums) {
  const Range slice = cut(run, k).slice;
  const int blocks = tree_.own_blocks(), parts = blocks == 1 ? 1 : topology_.node_count();
  for (int p = 0; p < parts; ++p) {
    const Range part = part_of(slice.size(), p, parts);
    for (int l = 0; l < control_.ranks(); ++l)
      terms_[static_cast<std::size_t>(l)] = run.place(l, k) + (slice.begin + part.begin) * run.width;
    for (int b = 0; b < blocks; ++b)
      reduce_into(run.collective.dtype, run.collective.reduce, tree_.own[static_cast<std::size_t>(b)], terms_,
                  sums + (blocks * part.begin + b * part.size()) * run.width, part.size());
  }
}

// Sums this rank's slice over the node's blocks of ranks, and sends each node its part.
void Reduction::exchange(Run& run, std::int64_t k) {
  PipelineSlot& slot = slots_[static_cast<std::size_t>(k % 2)];
  const auto [slice, own, wire] = cut(run, k);
  const int blocks = tree_.own_blocks();
  std::byte* const out = outbox(run, k);
  std::byte* sums = wire == run.width ? out : slot.sums.data();
  if (!in_place(run)) add_blocks(run, k, sums);
  if (wire != run.width)
    to_wire(format_, reinterpret_cast<const float*>(sums), reinterpret_cast<std::uint16_t*>(out),
            blocks * slice.size());
  const int nodes = topology_.node_count();
  messages_.clear();
  for (int n = 0; n < nodes; ++n) {
    const Range theirs = part_of(slice.size(), n, nodes);
    if (n == topology_.node) continue;
    messages_.sends.push_back({n, out + blocks * theirs.begin * wire, bytes(blocks * theirs.size() * wire)});
    messages_.receives.push_back({n, received(slot, n, own.size() * wire), bytes(tree_.blocks(n) * own.size() * wire)});
  }
  network_.start(kExchange + static_cast<int>(k % 2), messages_);
}

// The sums of the node's blocks in this node's part, one behind the other.
std::byte* Reduction::received(PipelineSlot& slot, int node, std::int64_t part_bytes) const {
  return slot.inbox.data() + tree_.first_block[static_cast<std::size_t>(node)] * part_bytes;
}

// Sums this node's part of the slice over all blocks of ranks, into the result.
void Reduction::add_up(Run& run, std::int64_t k) {
  PipelineSlot& slot = slots_[static_cast<std::size_t>(k % 2)];
  const auto [slice, own, wire] = cut(run, k);
  std::byte* const kept = result(run, k) + own.begin * wire;
  for (int n = 0, block = 0; n < topology_.node_count(); ++n) {
    const std::byte* sums = n == topology_.node ? outbox(run, k) + tree_.own_blocks() * own.begin * wire
                                                : received(slot, n, own.size() * wire);
    for (int b = 0; b < tree_.blocks(n); ++b, ++block) {
      const std::byte* term = sums + b * own.size() * wire;
      if (wire != run.width) {
        float* wide = reinterpret_cast<float*>(wide_.data()) + block * own.size();
        from_wire(format_, reinterpret_cast<const std::uint16_t*>(term), wide, own.size());
        term = reinterpret_cast<const std::byte*>(wide);
      }
      terms_[static_cast<std::size_t>(block)] = term;
    }
  }
  std::byte* const sum = wire == run.width ? kept : wide_.data();
  reduce_into(run.collective.dtype, run.collective.reduce, tree_.all, terms_, sum, own.size());
  if (wire != run.width)
    to_wire(format_, reinterpret_cast<const float*>(sum), reinterpret_cast<std::uint16_t*>(kept), own.size());
}

// Sends every node's part to every node, and copies the whole slice to all ranks of this node.
void Reduction::bring_back(Run& run, std::int64_t k) {
  const int nodes = topology_.node_count(), channel = kReturn + static_cast<int>(k % 2);
  const auto [slice, own, wire] = cut(run, k);
  std::byte* const sums = result(run, k);
  messages_.clear();
  for (int n = 0; n < nodes; ++n) {
    const Range theirs = part_of(slice.size(), n, nodes);
    if (n == topology_.node) continue;
    messages_.sends.push_back({n, sums + own.begin * wire, bytes(own.size() * wire)});
    messages_.receives.push_back({n, sums + theirs.begin * wire, bytes(theirs.size() * wire)});
  }
  network_.start(channel, messages_);
  run.wait([&] { return network_.test(channel); });
  for (int l = 0; !in_place(run) && l < control_.ranks(); ++l) {
    std::byte* const place = run.place(l, k) + slice.begin * run.width;
    if (wire == run.width) std::memcpy(place, sums, bytes(slice.size() * run.width));
    else
      from_wire(format_, reinterpret_cast<const std::uint16_t*>(sums), reinterpret_cast<float*>(place), slice.size());
  }
}

void Reduction::finish(Run& run, std::int64_t k) {
  if (topology_.local < topology_.rails()) {
    run.wait([&] { return network_.test(kExchange + static_cast<int>(k % 2)); });
    add_up(run, k);
    bring_back(run, k);
  }
  run.tell_worked(topology_.local, k);
  run.wait_for(&RankControl::reduced, k);
  run.unstage(topology_.local, k);
}

}  // namespace syncline::comm
