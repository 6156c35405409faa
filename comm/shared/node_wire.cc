#include "comm/shared/node_wire.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/worker/backoff.h"

namespace syncline::comm {
namespace {

std::int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

bool is_reduction(const Collective& collective) {
  return collective.kind == Kind::kAllReduce || collective.kind == Kind::kReduceScatter;
}
bool is_small(const Collective& collective) {
  return collective.bytes <= kSmallBytes && collective.kind != Kind::kSharedMemory;
}

std::size_t bytes(std::int64_t count) { return static_cast<std::size_t>(count); }

void move_bytes(void* to, const void* from, std::int64_t count) {
  if (count > 0 && to != from) std::memmove(to, from, bytes(count));
}

}  // namespace

NodeWire::NodeWire(NodeParts parts, const NodeWireOptions& options)
    : topology_(std::move(parts.topology)),
      format_(options.format),
      size_(topology_.size()),
      memory_(std::move(parts.memory)),
      network_(std::move(parts.network)),
      control_(std::move(parts.control), topology_, options.staging_bytes / 2),
      reduction_(topology_, control_, *network_, options.format),
      reports_(topology_, *network_, control_) {
  terms_.resize(std::max<std::size_t>(topology_.nodes.size(), bytes(control_.ranks())));
  if (!one_node() && leads()) values_.resize(topology_.nodes.size() * bytes(kSmallBytes));
  exchanges_.reserve(topology_.nodes.size());
}

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
  own.arrival_ns[round % 2] = now_ns();
  own.arrived.store(round, std::memory_order_release);
  phase_ = Phase::kArriving;
}

std::uint64_t NodeWire::offset_of(const Collective& collective) const {
  if (region_ == nullptr || (!is_reduction(collective) && collective.kind != Kind::kAllGather)) return 0;
  const auto* data = static_cast<const std::byte*>(collective.data);
  const std::byte* region = region_->part(topology_.local);
  if (data < region || data + collective.bytes > region + region_bytes_) return 0;
  return static_cast<std::uint64_t>(data - region) + 1;
}

Wire::Progress NodeWire::poll(const Collective& collective) {
  if (cancelled_) fail<CommError>(comm::describe(collective.header), ": cancelled");
  if (asked_) reports_.exchange(round_);
  if (phase_ == Phase::kArriving || phase_ == Phase::kAgreeing) {
    if (!agree(collective)) return Progress::kWaiting;
    control_.check_nobody_gave_up(round_, collective);
    if (round_ == 1) control_.look_around();
    phase_ = Phase::kAgreed;
    asked_ = false;
    if (collective.bytes == 0 && collective.kind != Kind::kSharedMemory) return Progress::kDone;
  }
  return is_small(collective) ? small(collective) : Progress::kReady;
}

// Whether every rank has come. Throws if their headers differ.
bool NodeWire::agree(const Collective& collective) {
  if (phase_ == Phase::kArriving) {
    if (!control_.all(&RankControl::arrived, round_, collective)) return false;
    note_last_arrival();
    if (one_node()) {
      agree_on_node();
      return true;
    }
    if (leads()) send_header();
    phase_ = Phase::kAgreeing;
  }
  if (leads()) {
    if (!network_->test(kHeaders)) return false;
    control_.own().met.store(round_, std::memory_order_release);
  }
  if (!control_.reached(0, &RankControl::met, round_, collective)) return false;
  agree_between_nodes();
  return true;
}

void NodeWire::note_last_arrival() {
  last_arrival_ = Arrival{};
  for (int l = 0; l < control_.ranks(); ++l)
    if (const std::int64_t at = control_.of(l).arrival_ns[round_ % 2]; at > last_arrival_->time)
      last_arrival_ = Arrival{topology_.own()[bytes(l)], at};
}

void NodeWire::agree_on_node() {
  const std::size_t parity = round_ % 2;
  const RankControl& first = control_.of(0);
  direct_ = first.offset[parity] != 0;
  bool agree = true;
  for (int l = 1; l < control_.ranks(); ++l) {
    direct_ = direct_ && control_.of(l).offset[parity] == first.offset[parity];
    agree = agree && control_.of(l).header[parity] == first.header[parity];
  }
  if (agree) return;
  std::vector<Header> headers;
  for (int l = 0; l < control_.ranks(); ++l) headers.push_back(control_.of(l).header[parity]);
  fail<DisagreementError>(describe_mismatch(headers));
}

// The first rank of a node sends a summary of its ranks' headers to the other nodes.
void NodeWire::send_header() {
  const std::size_t parity = round_ % 2;
  const RankControl& first = control_.of(0);
  NodeHeader& own = control_.node_headers()[topology_.node];
  own = NodeHeader{.header = first.header[parity],
                   .other = {},
                   .direct = control_.ranks() == 1 || first.offset[parity] != 0 ? 1u : 0u};
  for (int l = control_.ranks() - 1; l > 0; --l) {
    if (control_.of(l).offset[parity] != first.offset[parity]) own.direct = 0;
    if (control_.of(l).header[parity] == first.header[parity]) continue;
    own.differing = static_cast<std::uint32_t>(l);
    own.other = control_.of(l).header[parity];
  }
  header_sent_ = own;  // a copy: all ranks of the node read the one in the control block
  exchanges_.clear();
  for (int n = 0; n < topology_.node_count(); ++n)
    if (n != topology_.node)
      exchanges_.push_back({n, &header_sent_, &control_.node_headers()[n], sizeof(NodeHeader), sizeof(NodeHeader)});
  network_->start(kHeaders, exchanges_);
}

void NodeWire::agree_between_nodes() {
  const NodeHeader* nodes = control_.node_headers();
  direct_ = true;
  bool agree = true;
  for (int n = 0; n < topology_.node_count(); ++n) {
    direct_ = direct_ && nodes[n].direct != 0;
    agree = agree && nodes[n].differing == 0 && nodes[n].header == nodes[0].header;
  }
  if (agree) return;
  std::vector<Header> headers(bytes(size_));
  for (int n = 0; n < topology_.node_count(); ++n) {
    const std::vector<int>& ranks = topology_.nodes[bytes(n)];
    for (const int r : ranks) headers[bytes(r)] = nodes[n].header;
    if (nodes[n].differing != 0) headers[bytes(ranks[nodes[n].differing])] = nodes[n].other;
  }
  fail<DisagreementError>(describe_mismatch(headers));
}

Wire::Progress NodeWire::small(const Collective& collective) {
  if (one_node()) {
    if (is_reduction(collective)) reduce_small(collective, collective.data);
    else spread_small(collective);
    return Progress::kDone;
  }
  if (is_reduction(collective)) return answer_between_nodes(collective) ? Progress::kDone : Progress::kWaiting;
  if (phase_ == Phase::kAgreed) start_spreading(collective);
  phase_ = Phase::kSpreading;
  return network_->test_all() ? Progress::kDone : Progress::kWaiting;
}

void NodeWire::reduce_small(const Collective& collective, void* to) {
  for (int l = 0; l < control_.ranks(); ++l) terms_[bytes(l)] = control_.payload(l, round_);
  reduce_into(collective.dtype, collective.reduce, std::span(terms_).first(bytes(control_.ranks())), to,
              collective.count);
}

// The first ranks of the nodes exchange their nodes' sums, and each adds up all sums for its node.
bool NodeWire::answer_between_nodes(const Collective& collective) {
  if (leads()) {
    const int nodes = topology_.node_count();
    const auto value_of = [&](int n) { return values_.data() + bytes(n) * bytes(kSmallBytes); };
    if (phase_ == Phase::kAgreed) {
      reduce_small(collective, value_of(topology_.node));
      exchanges_.clear();
      for (int n = 0; n < nodes; ++n)
        if (n != topology_.node)
          exchanges_.push_back(
              {n, value_of(topology_.node), value_of(n), bytes(collective.bytes), bytes(collective.bytes)});
      network_->start(kSmallValues, exchanges_);
      phase_ = Phase::kAnswering;
    }
    if (!network_->test(kSmallValues)) return false;
    for (int n = 0; n < nodes; ++n) terms_[bytes(n)] = value_of(n);
    reduce_into(collective.dtype, collective.reduce, std::span(terms_).first(bytes(nodes)), control_.answer(round_),
                collective.count);
    control_.own().answered.store(round_, std::memory_order_release);
  } else if (!control_.reached(0, &RankControl::answered, round_, collective)) {
    return false;
  }
  move_bytes(collective.data, control_.answer(round_), collective.bytes);
  return true;
}

void NodeWire::spread_small(const Collective& collective) {
  if (collective.kind == Kind::kBroadcast)
    return move_bytes(collective.data, control_.payload(collective.root, round_), collective.bytes);
  auto* to = static_cast<std::byte*>(collective.data);
  for (int l = 0; l < control_.ranks(); to += collective.counts[bytes(l++)])
    move_bytes(to, control_.payload(l, round_), collective.counts[bytes(l)]);
}

void NodeWire::start_spreading(const Collective& collective) {
  if (collective.kind == Kind::kBroadcast)
    network_->start_broadcast(collective.data, collective.bytes, collective.root);
  else network_->start_gather(collective.send, collective.data, collective.counts);
}

void NodeWire::transfer(const Collective& collective) {
  if (is_reduction(collective)) {
    parts_.clear();
    if (control_.ranks() == 1) parts_.push_back(static_cast<std::byte*>(collective.data));
    for (int l = 0; direct_ && control_.ranks() > 1 && l < control_.ranks(); ++l)
      parts_.push_back(region_->part(l) + control_.own().offset[round_ % 2] - 1);
    return reduction_.run(collective, parts_, direct_, chunks_,
                          [&](const auto& condition) { wait_until(collective, condition); });
  }
  if (collective.kind == Kind::kSharedMemory) return make_region(collective);
  if (one_node())
    return collective.kind == Kind::kBroadcast ? broadcast_on_node(collective) : gather_on_node(collective);
  start_spreading(collective);
  wait_until(collective, [&] { return network_->test_all(); });
}

void NodeWire::gather_on_node(const Collective& collective) {
  parts_.assign(1, static_cast<std::byte*>(collective.data));
  for (const std::int64_t count : collective.counts) parts_.push_back(parts_.back() + count);
  if (direct_) return gather_in_region(collective);
  const auto half = static_cast<std::int64_t>(control_.half_bytes());
  const std::int64_t most = *std::max_element(collective.counts.begin(), collective.counts.end());
  for (std::int64_t first = 0; first < most; first += half) {
    const auto here = [&](int l) { return std::clamp<std::int64_t>(collective.counts[bytes(l)] - first, 0, half); };
    const auto* send = static_cast<const std::byte*>(collective.send) + first;
    move_bytes(control_.staging(topology_.local, chunks_), send, here(topology_.local));
    pass(&RankControl::staged, collective);
    move_bytes(parts_[bytes(topology_.local)] + first, send, here(topology_.local));
    for (int l = 0; l < control_.ranks(); ++l)
      if (l != topology_.local) move_bytes(parts_[bytes(l)] + first, control_.staging(l, chunks_), here(l));
    pass(&RankControl::reduced, collective);
    ++chunks_;
  }
}

// Every rank writes its part to its own memory, and the others copy it from there.
void NodeWire::gather_in_region(const Collective& collective) {
  const int local = topology_.local;
  move_bytes(parts_[bytes(local)], collective.send, collective.counts[bytes(local)]);
  pass(&RankControl::staged, collective);
  for (int l = 0; l < control_.ranks(); ++l)
    if (l != local)
      move_bytes(parts_[bytes(l)], region_->part(l) + (parts_[bytes(l)] - region_->part(local)),
                 collective.counts[bytes(l)]);
  pass(&RankControl::reduced, collective);
  ++chunks_;
}

void NodeWire::broadcast_on_node(const Collective& collective) {
  const auto half = static_cast<std::int64_t>(control_.half_bytes());
  for (std::int64_t first = 0; first < collective.bytes; first += half) {
    auto* data = static_cast<std::byte*>(collective.data) + first;
    const std::int64_t here = std::min(half, collective.bytes - first);
    if (rank() == collective.root) move_bytes(control_.staging(topology_.local, chunks_), data, here);
    pass(&RankControl::staged, collective);
    if (rank() != collective.root) move_bytes(data, control_.staging(collective.root, chunks_), here);
    pass(&RankControl::reduced, collective);
    ++chunks_;
  }
}

// Publishes this rank's progress with the current chunk, and waits until all ranks have come as far.
void NodeWire::pass(std::atomic<std::uint64_t> RankControl::*counter, const Collective& collective) {
  (control_.own().*counter).store(chunks_ + 1, std::memory_order_release);
  wait_until(collective, [&] { return control_.all(counter, chunks_ + 1, collective); });
}

void NodeWire::make_region(const Collective& collective) {
  region_.reset();  // first, so that the old and the new region do not exist together
  region_bytes_ = 0;
  if (control_.ranks() > 1) region_ = memory_->allocate(bytes(collective.bytes));
  if (region_) region_bytes_ = bytes(collective.bytes);
  else if (control_.ranks() > 1 && leads())
    std::fprintf(stderr,
                 "syncline: rank %d: no shared memory for %lld bytes per rank (%s): all-reduces copy their data\n",
                 rank(), static_cast<long long>(collective.bytes), memory_->why().c_str());
}

// Blocks, but reacts to cancel() and ask_around().
void NodeWire::wait_until(const Collective& collective, const std::function<bool()>& condition) {
  for (Backoff backoff; !condition(); backoff.next()) {
    if (cancelled_) fail<CommError>(comm::describe(collective.header), ": cancelled");
    if (asked_) reports_.exchange(round_);
  }
  asked_ = false;
}

std::string NodeWire::describe() const {
  const int nodes = topology_.machines;
  std::string text = join_text(size_, size_ == 1 ? " rank on " : " ranks on ", nodes, nodes == 1 ? " node" : " nodes");
  if (topology_.node_count() == size_ && nodes < size_) return text + ", messages between all ranks";
  if (topology_.node_count() > nodes) return text + ", shared memory within some nodes, messages between other ranks";
  if (size_ > nodes) text += ", shared memory within a node";
  if (nodes > 1) text += ", messages between nodes";
  return text;
}

std::string NodeWire::layout() const {
  if (format_ == WireFormat::kSame || one_node()) return topology_.describe();
  return topology_.describe() + (format_ == WireFormat::kFloat16 ? ", float16" : ", bfloat16") + " between nodes";
}

Missing NodeWire::missing() const {
  Missing missing = control_.missing(round_);
  if (missing.text.empty()) missing = reports_.missing(round_);
  if (missing.text.empty()) missing = {control_.behind()};
  if (missing.text.empty()) missing = {"every rank that answers has called it"};
  missing.is_reporter = control_.is_reporter(round_);
  return missing;
}

void NodeWire::cancel() noexcept {
  cancelled_ = true;
  control_.leave(Left::kGaveUp);
}

bool NodeWire::close(bool clean) noexcept {
  control_.leave(Left::kClosed);
  return network_->close(clean, [this] { return control_.not_ended(); });
}

}  // namespace syncline::comm
