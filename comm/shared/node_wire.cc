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
      tree_(topology_),
      memory_(std::move(parts.memory)),
      network_(std::move(parts.network)),
      control_(std::move(parts.control), topology_, options.staging_bytes / 2),
      reduction_(topology_, tree_, control_, *network_, options.format),
      gather_(topology_, control_, *network_),
      reports_(topology_, *network_, control_) {
  terms_.resize(bytes(std::max(tree_.blocks(), control_.ranks())));
  if (!one_node() && leads()) values_.resize(bytes(tree_.blocks()) * bytes(kSmallBytes));
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
    if (is_reduction(collective)) reduce_small(collective, tree_.own.front(), collective.data);
    else spread_small(collective);
    return Progress::kDone;
  }
  if (collective.kind != Kind::kBroadcast)
    return answer_between_nodes(collective) ? Progress::kDone : Progress::kWaiting;
  if (phase_ == Phase::kAgreed) network_->start_broadcast(collective.data, collective.bytes, collective.root);
  phase_ = Phase::kAnswering;
  return network_->test_broadcast() ? Progress::kDone : Progress::kWaiting;
}

void NodeWire::reduce_small(const Collective& collective, const SumOrder& order, void* to) {
  for (int l = 0; l < control_.ranks(); ++l) terms_[bytes(l)] = control_.payload(l, round_);
  reduce_into(collective.dtype, collective.reduce, order, terms_, to, collective.count);
}

// The first ranks of the nodes exchange the sums of their nodes' blocks of ranks, or what their ranks gather, and each
// makes the answer for its node.
bool NodeWire::answer_between_nodes(const Collective& collective) {
  if (leads()) {
    if (phase_ == Phase::kAgreed) {
      exchanges_.clear();
      if (is_reduction(collective)) exchange_sums(collective);
      else exchange_parts(collective);
      network_->start(kSmallValues, exchanges_);
      phase_ = Phase::kAnswering;
    }
    if (!network_->test(kSmallValues)) return false;
    if (is_reduction(collective)) {
      for (int b = 0; b < tree_.blocks(); ++b) terms_[bytes(b)] = values_.data() + b * collective.bytes;
      reduce_into(collective.dtype, collective.reduce, tree_.all, terms_, control_.answer(round_), collective.count);
    }
    control_.own().answered.store(round_, std::memory_order_release);
  } else if (!control_.reached(0, &RankControl::answered, round_, collective)) {
    return false;
  }
  move_bytes(collective.data, control_.answer(round_), collective.bytes);
  return true;
}

void NodeWire::exchange_sums(const Collective& collective) {
  const auto values_of = [&](int n) { return values_.data() + tree_.first_block[bytes(n)] * collective.bytes; };
  const int blocks = tree_.own_blocks();
  for (int b = 0; b < blocks; ++b)
    reduce_small(collective, tree_.own[bytes(b)], values_of(topology_.node) + b * collective.bytes);
  for (int n = 0; n < topology_.node_count(); ++n)
    if (n != topology_.node)
      exchanges_.push_back({n, values_of(topology_.node), values_of(n), bytes(blocks * collective.bytes),
                            bytes(tree_.blocks(n) * collective.bytes)});
}

// The parts of a node's ranks are neighbours in the answer.
void NodeWire::exchange_parts(const Collective& collective) {
  find_parts_of_nodes(topology_, collective.counts, begin_);
  std::byte* const answer = control_.answer(round_);
  const auto size_of = [&](int n) { return bytes(begin_[bytes(n) + 1] - begin_[bytes(n)]); };
  std::byte* const own = answer + begin_[bytes(topology_.node)];
  std::byte* to = own;
  for (int l = 0; l < control_.ranks(); ++l) {
    const std::int64_t count = collective.counts[bytes(topology_.own()[bytes(l)])];
    move_bytes(to, control_.payload(l, round_), count);
    to += count;
  }
  for (int n = 0; n < topology_.node_count(); ++n)
    if (n != topology_.node)
      exchanges_.push_back({n, own, answer + begin_[bytes(n)], size_of(topology_.node), size_of(n)});
}

void NodeWire::spread_small(const Collective& collective) {
  if (collective.kind == Kind::kBroadcast)
    return move_bytes(collective.data, control_.payload(collective.root, round_), collective.bytes);
  auto* to = static_cast<std::byte*>(collective.data);
  for (int l = 0; l < control_.ranks(); to += collective.counts[bytes(l++)])
    move_bytes(to, control_.payload(l, round_), collective.counts[bytes(l)]);
}

void NodeWire::transfer(const Collective& collective) {
  const auto wait = [&](const auto& condition) { wait_until(collective, condition); };
  if (is_reduction(collective)) {
    parts_.clear();
    if (control_.ranks() == 1) parts_.push_back(static_cast<std::byte*>(collective.data));
    for (int l = 0; direct_ && control_.ranks() > 1 && l < control_.ranks(); ++l)
      parts_.push_back(region_->part(l) + control_.own().offset[round_ % 2] - 1);
    return reduction_.run(collective, parts_, direct_, chunks_, wait);
  }
  if (collective.kind == Kind::kSharedMemory) return make_region(collective);
  if (collective.kind == Kind::kAllGather)
    return gather_.run(collective, direct_ ? region_.get() : nullptr, chunks_, wait);
  if (one_node()) return gather_.broadcast_on_node(collective, chunks_, wait);
  network_->start_broadcast(collective.data, collective.bytes, collective.root);
  wait_until(collective, [&] { return network_->test_broadcast(); });
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
    if (!backoff.hot()) control_.own().moved.store(steps_ + network_->moved(), std::memory_order_relaxed);
  }
  asked_ = false;
  control_.own().moved.store(++steps_ + network_->moved(), std::memory_order_relaxed);
}

std::uint64_t NodeWire::moved() const noexcept {
  std::uint64_t moved = network_->moved();  // of a small collective too
  for (int l = 0; l < control_.ranks(); ++l) moved += control_.of(l).moved.load(std::memory_order_relaxed);
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
