#include "comm/shared/node_wire.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <utility>

namespace syncline::comm {
namespace {

// How often a waiting rank polls between two looks at the clock of reports. Ranks that share a core poll rarely.
constexpr std::uint64_t kLooksAReport = 16;

std::size_t bytes(std::int64_t count) { return static_cast<std::size_t>(count); }

void move_bytes(void* to, const void* from, std::int64_t count) {
  if (count > 0 && to != from) std::memmove(to, from, bytes(count));
}

}  // namespace

NodeWire::NodeWire(NodeParts parts, const NodeWireOptions& options)
    : topology_(std::move(parts.topology)),
      format_(options.format),
      algorithms_(options.algorithms),
      size_(topology_.size()),
      tree_(topology_),
      memory_(std::move(parts.memory)),
      network_(std::move(parts.network)),
      control_(std::move(parts.control), topology_, options.staging_bytes / 2),
      meeting_(topology_, tree_, algorithms_.meetings, control_, *network_),
      reduction_(topology_, tree_, algorithms_.sums, control_, *network_, options.format),
      gather_(topology_, algorithms_.gathers, control_, *network_),
      reports_(topology_, *network_, control_) {}

void NodeWire::begin(const Collective& collective) {
  const std::uint64_t round = ++round_;
  RankControl& own = control_.own();
  own.header[round % 2] = collective.header;
  own.offset[round % 2] = offset_of(collective);
  if (is_small(collective) && is_reduction(collective))
    move_bytes(control_.payload(topology_.local, round), collective.data, collective.bytes);
  if (is_small(collective) && collective.kind == Kind::kAllGather)
    move_bytes(control_.payload(topology_.local, round), collective.send, collective.counts[bytes(rank())]);
  if (is_small(collective) && collective.kind == Kind::kBroadcast && collective.root == rank())
    move_bytes(control_.payload(topology_.local, round), collective.data, collective.bytes);
  const std::chrono::nanoseconds now = network_->now().time_since_epoch();
  own.arrival_ns[round % 2].store(now.count(), std::memory_order_relaxed);
  own.arrived.store(round, std::memory_order_release);
  node_here_ = false;
}

std::uint64_t NodeWire::offset_of(const Collective& collective) const {
  if (region_ == nullptr || (!is_reduction(collective) && collective.kind != Kind::kAllGather)) return 0;
  const auto* data = static_cast<const std::byte*>(collective.data);
  const std::byte* region = region_->part(topology_.local);
  if (data < region || data + collective.bytes > region + region_bytes_) return 0;
  return static_cast<std::uint64_t>(data - region) + 1;
}

Wire::Progress NodeWire::poll(const Collective& collective) try {
  if (cancelled_) fail<CommError>(comm::describe(collective.header), ": cancelled");
  answer();
  if (!transfer_) {
    if (!agrees(collective)) return Progress::kWaiting;
    end_stall();
    if (!arrange(collective)) return Progress::kDone;
  }
  const auto seen = [&] { return Steps::resumed() + network_->moved(); };
  const std::uint64_t before = seen();
  const bool done = transfer_->advance();
  const bool moves = seen() != before;
  if (moves || done) control_.own().moved.store(network_->moved(), std::memory_order_relaxed);
  if (!done) return moves ? Progress::kMoving : Progress::kStill;
  end_stall();
  transfer_.reset();
  return Progress::kDone;
} catch (const DisagreementError&) {
  disagreed_ = true;
  throw;
} catch (...) {
  if (transfer_ || allocates(collective)) network_->abandon();  // the caller frees its memory
  transfer_.reset();
  throw;
}

// Called once all ranks have come. Finishes a collective that needs no transfer; otherwise makes the transfer and
// returns true.
bool NodeWire::arrange(const Collective& collective) {
  control_.check_nobody_gave_up(round_, collective);
  if (round_ == 1) control_.look_around();
  if (collective.kind == Kind::kSharedMemory) {
    make_region(collective);
  } else if (collective.kind == Kind::kNodeMemory) {
    make_node_memory(collective);
  } else if (!is_small(collective)) {
    transfer_.emplace(steps(collective));
    return true;
  } else if (one_node()) {
    meeting_.write_values(collective, round_, static_cast<std::byte*>(collective.data));
  } else {
    move_bytes(collective.data, control_.answer(round_), collective.bytes);
  }
  return false;
}

// Other nodes may ask this one while it waits, also if it has not waited for long.
void NodeWire::answer() {
  if (asked_ || ++looks_ % kLooksAReport == 0) reports_.exchange(round_, asked_);
}

void NodeWire::end_stall() {
  asked_ = false;
  control_.set_awaited(-1);
}

// Whether every rank has come. Throws if their headers differ.
bool NodeWire::agrees(const Collective& collective) {
  if (!node_here_) {
    if (!control_.all(&RankControl::arrived, round_, collective)) return false;
    note_last_arrival();
    if (!one_node() && leads()) meeting_.begin(collective, round_);
    node_here_ = true;
  }
  if (!one_node()) {
    if (leads() && control_.own().met < round_) {
      if (!meeting_.progress()) return false;
      control_.own().met.store(round_, std::memory_order_release);
    }
    if (!control_.reached(0, &RankControl::met, round_, collective)) return false;
  }
  const Summary summary = one_node() ? meeting_.summary_of_node(round_) : control_.summary();
  direct_ = summary.direct != 0;
  if (!summary.agrees())
    fail<DisagreementError>(
        describe_mismatch(summary.header, summary.other, shown(0), shown(static_cast<int>(summary.differing))));
  return true;
}

void NodeWire::note_last_arrival() {
  last_arrival_ = Arrival{};
  for (int l = 0; l < control_.ranks(); ++l)
    if (const std::int64_t at = control_.of(l).arrival_ns[round_ % 2].load(std::memory_order_relaxed);
        at > last_arrival_->time)
      last_arrival_ = Arrival{shown(topology_.own()[bytes(l)]), at};
}

Steps NodeWire::steps(const Collective& collective) {
  const bool direct_on_node = meeting_.direct_on_node(round_);
  if (is_reduction(collective) || (collective.kind == Kind::kBroadcast && !one_node())) {
    parts_.clear();
    if (control_.ranks() == 1) parts_.push_back(static_cast<std::byte*>(collective.data));
    for (int l = 0; direct_on_node && control_.ranks() > 1 && l < control_.ranks(); ++l)
      parts_.push_back(region_->part(l) + control_.own().offset[round_ % 2] - 1);
    return reduction_.run(collective, parts_, direct_, chunks_);
  }
  if (collective.kind == Kind::kGatherOnNodes) return gather_.run_on_nodes(collective, chunks_);
  if (collective.kind == Kind::kAllGather)
    return gather_.run(collective, direct_on_node ? region_.get() : nullptr, chunks_);
  return gather_.broadcast_on_node(collective, chunks_);
}

void NodeWire::make_region(const Collective& collective) {
  region_.reset();  // first, so that the old and the new region do not exist together
  region_bytes_ = 0;
  if (control_.ranks() > 1) region_ = memory_->allocate(bytes(collective.bytes));
  if (region_) region_bytes_ = bytes(collective.bytes);
  else if (control_.ranks() > 1 && leads())
    std::fprintf(stderr,
                 "syncline: rank %d: no shared memory for %lld bytes per rank (%s): all-reduces copy their data\n",
                 shown(rank()), static_cast<long long>(collective.bytes), memory_->why().c_str());
}

void NodeWire::make_node_memory(const Collective& collective) {
  const auto ranks = static_cast<std::size_t>(control_.ranks());
  const std::size_t a_rank = (bytes(collective.bytes) + ranks - 1) / ranks;
  std::string why;
  try {
    node_memory_ = ranks > 1 ? memory_->allocate(a_rank) : make_private_window(a_rank);
    if (!node_memory_) why = memory_->why();
  } catch (const std::bad_alloc&) {
    why = "there is too little memory";
  }
  if (!why.empty() && leads())
    std::fprintf(stderr, "syncline: rank %d: no shared memory for variables (%s): each rank keeps its own\n",
                 shown(rank()), why.c_str());
}

NodeBlock NodeWire::take_node_memory() {
  NodeBlock block;
  if (node_memory_) block.begin = node_memory_->part(0);
  block.memory = std::move(node_memory_);
  return block;
}

NodePlace NodeWire::node_place() const {
  NodePlace place{topology_.local, topology_.local_size()};
  for (const std::vector<int>& node : topology_.nodes) place.most = std::max(place.most, static_cast<int>(node.size()));
  return place;
}

std::uint64_t NodeWire::moved() const noexcept {
  std::uint64_t moved = network_->moved();  // of a small collective too
  for (int l = 0; l < control_.ranks(); ++l)
    for (const auto* counter : {&control_.of(l).moved, &control_.of(l).staged, &control_.of(l).reduced})
      moved += counter->load(std::memory_order_relaxed);
  return moved;
}

std::string NodeWire::describe() const {
  const int nodes = topology_.machines;
  std::string text = join_text(size_, size_ == 1 ? " rank on " : " ranks on ", nodes, nodes == 1 ? " node" : " nodes");
  if (topology_.node_count() == size_ && nodes < size_) return text + ", messages between all ranks";
  if (topology_.node_count() > nodes) return text + ", shared memory within some nodes, messages between other ranks";
  if (size_ > nodes) text += ", shared memory within a node";
  if (nodes > 1) text += ", messages between nodes";
  if (topology_.renumbered) text += ", numbered by node";
  return text;
}

std::string NodeWire::layout() const {
  std::string text = size_ == 1 ? "ranks 0" : join_text("ranks 0-", size_ - 1);
  if (size_ > 3) text += " in pairs";  // earlier versions summed four and more ranks one after the other
  if (format_ == WireFormat::kSame || one_node()) return text;
  return join_text(text, format_ == WireFormat::kFloat16 ? ", float16" : ", bfloat16",
                   " between nodes: ", topology_.describe());
}

Missing NodeWire::missing() const {
  Missing missing;
  for (const Missing& some : {control_.missing(round_), reports_.missing(round_)}) missing.append(some);
  missing.append({control_.stuck(round_, network_->now())});
  if (missing.text.empty()) missing.text = control_.behind();
  if (missing.text.empty()) missing.text = "all ranks that answer have called it";
  missing.is_reporter = control_.is_reporter(round_, network_->now());
  return missing;
}

void NodeWire::cancel() noexcept {
  cancelled_ = true;
  control_.leave(Left::kGaveUp);
}

bool NodeWire::close(bool clean) noexcept {
  control_.leave(Left::kClosed);
  // All ranks disagree together. After any other error, some may never come to their end.
  if (transfer_ || (cancelled_ && !disagreed_)) network_->abandon();
  transfer_.reset();
  return network_->close(clean, [this] { return control_.not_ended(); });
}

}  // namespace syncline::comm
