#include "comm/shared/node_wire.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/worker/backoff.h"

namespace syncline::comm {
namespace {

std::int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

bool is_reduction(const Job& job) { return job.kind == Kind::kAllReduce || job.kind == Kind::kReduceScatter; }
bool is_small(const Job& job) { return job.bytes <= kSmallBytes && job.kind != Kind::kSharedMemory; }

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
      board_(std::move(parts.board), topology_, options.staging_bytes / 2),
      reduction_(topology_, board_, *network_, options.format),
      reports_(topology_, *network_, board_) {
  terms_.resize(std::max<std::size_t>(topology_.nodes.size(), bytes(board_.ranks())));
  if (!one_node() && leads()) values_.resize(topology_.nodes.size() * bytes(kSmallBytes));
  parcels_.reserve(topology_.nodes.size());
}

void NodeWire::begin(const Job& job) {
  const std::uint64_t round = ++round_;
  RankBoard& own = board_.own();
  own.header[round % 2] = job.header;
  own.place[round % 2] = place_of(job);
  if (is_small(job) && is_reduction(job)) move_bytes(board_.payload(topology_.local, round), job.data, job.bytes);
  if (is_small(job) && job.kind == Kind::kAllGather)
    move_bytes(board_.payload(topology_.local, round), job.send, job.counts[bytes(rank())]);
  if (is_small(job) && job.kind == Kind::kBroadcast && job.root == rank())
    move_bytes(board_.payload(topology_.local, round), job.data, job.bytes);
  own.arrival_ns[round % 2] = now_ns();
  own.arrived.store(round, std::memory_order_release);
  phase_ = Phase::kArriving;
}

std::uint64_t NodeWire::place_of(const Job& job) const {
  if (region_ == nullptr || (!is_reduction(job) && job.kind != Kind::kAllGather)) return 0;
  const auto* data = static_cast<const std::byte*>(job.data);
  const std::byte* region = region_->part(topology_.local);
  if (data < region || data + job.bytes > region + region_bytes_) return 0;
  return static_cast<std::uint64_t>(data - region) + 1;
}

Wire::Meeting NodeWire::poll(const Job& job) {
  if (cancelled_) fail<CommError>(comm::describe(job.header), ": given up");
  if (asked_) reports_.exchange(round_);
  if (phase_ == Phase::kArriving || phase_ == Phase::kMeeting) {
    if (!meet(job)) return Meeting::kWaiting;
    board_.check_nobody_gave_up(round_, job);
    if (round_ == 1) board_.look_around();
    phase_ = Phase::kAgreed;
    asked_ = false;
    if (job.bytes == 0 && job.kind != Kind::kSharedMemory) return Meeting::kDone;
  }
  return is_small(job) ? small(job) : Meeting::kReady;
}

// Whether every rank has come. Throws if their headers differ.
bool NodeWire::meet(const Job& job) {
  if (phase_ == Phase::kArriving) {
    if (!board_.all(&RankBoard::arrived, round_, job)) return false;
    note_last_arrival();
    if (one_node()) {
      agree_on_node();
      return true;
    }
    if (leads()) send_header();
    phase_ = Phase::kMeeting;
  }
  if (leads()) {
    if (!network_->test(kHeaders)) return false;
    board_.own().met.store(round_, std::memory_order_release);
  }
  if (!board_.reached(0, &RankBoard::met, round_, job)) return false;
  agree_between_nodes();
  return true;
}

void NodeWire::note_last_arrival() {
  last_arrival_ = Arrival{};
  for (int l = 0; l < board_.ranks(); ++l)
    if (const std::int64_t at = board_.of(l).arrival_ns[round_ % 2]; at > last_arrival_->time)
      last_arrival_ = Arrival{topology_.own()[bytes(l)], at};
}

void NodeWire::agree_on_node() {
  const std::size_t parity = round_ % 2;
  const RankBoard& first = board_.of(0);
  direct_ = first.place[parity] != 0;
  bool agree = true;
  for (int l = 1; l < board_.ranks(); ++l) {
    direct_ = direct_ && board_.of(l).place[parity] == first.place[parity];
    agree = agree && board_.of(l).header[parity] == first.header[parity];
  }
  if (agree) return;
  std::vector<Header> headers;
  for (int l = 0; l < board_.ranks(); ++l) headers.push_back(board_.of(l).header[parity]);
  fail<DisagreementError>(describe_mismatch(headers));
}

// The first rank of a node sends a summary of its ranks' headers to the other nodes.
void NodeWire::send_header() {
  const std::size_t parity = round_ % 2;
  const RankBoard& first = board_.of(0);
  NodeHeader& own = board_.node_headers()[topology_.node];
  own = NodeHeader{
      .header = first.header[parity], .other = {}, .direct = board_.ranks() == 1 || first.place[parity] != 0 ? 1u : 0u};
  for (int l = board_.ranks() - 1; l > 0; --l) {
    if (board_.of(l).place[parity] != first.place[parity]) own.direct = 0;
    if (board_.of(l).header[parity] == first.header[parity]) continue;
    own.differing = static_cast<std::uint32_t>(l);
    own.other = board_.of(l).header[parity];
  }
  header_sent_ = own;  // a copy: all ranks of the node read the one on the board
  parcels_.clear();
  for (int n = 0; n < topology_.node_count(); ++n)
    if (n != topology_.node)
      parcels_.push_back({n, &header_sent_, &board_.node_headers()[n], sizeof(NodeHeader), sizeof(NodeHeader)});
  network_->start(kHeaders, parcels_);
}

void NodeWire::agree_between_nodes() {
  const NodeHeader* nodes = board_.node_headers();
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

Wire::Meeting NodeWire::small(const Job& job) {
  if (one_node()) {
    if (is_reduction(job)) reduce_on_board(job, job.data);
    else spread_on_board(job);
    return Meeting::kDone;
  }
  if (is_reduction(job)) return answer_between_nodes(job) ? Meeting::kDone : Meeting::kWaiting;
  if (phase_ == Phase::kAgreed) start_spreading(job);
  phase_ = Phase::kSpreading;
  return network_->test_all() ? Meeting::kDone : Meeting::kWaiting;
}

void NodeWire::reduce_on_board(const Job& job, void* to) {
  for (int l = 0; l < board_.ranks(); ++l) terms_[bytes(l)] = board_.payload(l, round_);
  reduce_into(job.dtype, job.reduce, std::span(terms_).first(bytes(board_.ranks())), to, job.count);
}

// The first ranks of the nodes exchange their nodes' sums, and each adds up all sums for its node.
bool NodeWire::answer_between_nodes(const Job& job) {
  if (leads()) {
    const int nodes = topology_.node_count();
    const auto value_of = [&](int n) { return values_.data() + bytes(n) * bytes(kSmallBytes); };
    if (phase_ == Phase::kAgreed) {
      reduce_on_board(job, value_of(topology_.node));
      parcels_.clear();
      for (int n = 0; n < nodes; ++n)
        if (n != topology_.node)
          parcels_.push_back({n, value_of(topology_.node), value_of(n), bytes(job.bytes), bytes(job.bytes)});
      network_->start(kSmallValues, parcels_);
      phase_ = Phase::kAnswering;
    }
    if (!network_->test(kSmallValues)) return false;
    for (int n = 0; n < nodes; ++n) terms_[bytes(n)] = value_of(n);
    reduce_into(job.dtype, job.reduce, std::span(terms_).first(bytes(nodes)), board_.answer(round_), job.count);
    board_.own().answered.store(round_, std::memory_order_release);
  } else if (!board_.reached(0, &RankBoard::answered, round_, job)) {
    return false;
  }
  move_bytes(job.data, board_.answer(round_), job.bytes);
  return true;
}

void NodeWire::spread_on_board(const Job& job) {
  if (job.kind == Kind::kBroadcast) return move_bytes(job.data, board_.payload(job.root, round_), job.bytes);
  auto* to = static_cast<std::byte*>(job.data);
  for (int l = 0; l < board_.ranks(); to += job.counts[bytes(l++)])
    move_bytes(to, board_.payload(l, round_), job.counts[bytes(l)]);
}

void NodeWire::start_spreading(const Job& job) {
  if (job.kind == Kind::kBroadcast) network_->start_broadcast(job.data, job.bytes, job.root);
  else network_->start_gather(job.send, job.data, job.counts);
}

void NodeWire::transfer(const Job& job) {
  if (is_reduction(job)) {
    parts_.clear();
    if (board_.ranks() == 1) parts_.push_back(static_cast<std::byte*>(job.data));
    for (int l = 0; direct_ && board_.ranks() > 1 && l < board_.ranks(); ++l)
      parts_.push_back(region_->part(l) + board_.own().place[round_ % 2] - 1);
    return reduction_.run(job, parts_, direct_, chunks_, [&](const auto& condition) { wait_until(job, condition); });
  }
  if (job.kind == Kind::kSharedMemory) return make_region(job);
  if (one_node()) return job.kind == Kind::kBroadcast ? broadcast_on_node(job) : gather_on_node(job);
  start_spreading(job);
  wait_until(job, [&] { return network_->test_all(); });
}

void NodeWire::gather_on_node(const Job& job) {
  parts_.assign(1, static_cast<std::byte*>(job.data));
  for (const std::int64_t count : job.counts) parts_.push_back(parts_.back() + count);
  if (direct_) return gather_in_region(job);
  const auto half = static_cast<std::int64_t>(board_.half_bytes());
  const std::int64_t most = *std::max_element(job.counts.begin(), job.counts.end());
  for (std::int64_t first = 0; first < most; first += half) {
    const auto here = [&](int l) { return std::clamp<std::int64_t>(job.counts[bytes(l)] - first, 0, half); };
    const auto* send = static_cast<const std::byte*>(job.send) + first;
    move_bytes(board_.staging(topology_.local, chunks_), send, here(topology_.local));
    pass(&RankBoard::staged, job);
    move_bytes(parts_[bytes(topology_.local)] + first, send, here(topology_.local));
    for (int l = 0; l < board_.ranks(); ++l)
      if (l != topology_.local) move_bytes(parts_[bytes(l)] + first, board_.staging(l, chunks_), here(l));
    pass(&RankBoard::worked, job);
    ++chunks_;
  }
}

// Every rank writes its part to its own memory, and the others copy it from there.
void NodeWire::gather_in_region(const Job& job) {
  const int local = topology_.local;
  move_bytes(parts_[bytes(local)], job.send, job.counts[bytes(local)]);
  pass(&RankBoard::staged, job);
  for (int l = 0; l < board_.ranks(); ++l)
    if (l != local)
      move_bytes(parts_[bytes(l)], region_->part(l) + (parts_[bytes(l)] - region_->part(local)), job.counts[bytes(l)]);
  pass(&RankBoard::worked, job);
  ++chunks_;
}

void NodeWire::broadcast_on_node(const Job& job) {
  const auto half = static_cast<std::int64_t>(board_.half_bytes());
  for (std::int64_t first = 0; first < job.bytes; first += half) {
    auto* data = static_cast<std::byte*>(job.data) + first;
    const std::int64_t here = std::min(half, job.bytes - first);
    if (rank() == job.root) move_bytes(board_.staging(topology_.local, chunks_), data, here);
    pass(&RankBoard::staged, job);
    if (rank() != job.root) move_bytes(data, board_.staging(job.root, chunks_), here);
    pass(&RankBoard::worked, job);
    ++chunks_;
  }
}

// Publishes this rank's progress with the current chunk, and waits until all ranks have come as far.
void NodeWire::pass(std::atomic<std::uint64_t> RankBoard::*counter, const Job& job) {
  (board_.own().*counter).store(chunks_ + 1, std::memory_order_release);
  wait_until(job, [&] { return board_.all(counter, chunks_ + 1, job); });
}

void NodeWire::make_region(const Job& job) {
  region_.reset();  // first, so that the old and the new region do not exist together
  region_bytes_ = 0;
  if (board_.ranks() > 1) region_ = memory_->allocate(bytes(job.bytes));
  if (region_) region_bytes_ = bytes(job.bytes);
  else if (board_.ranks() > 1 && leads())
    std::fprintf(stderr,
                 "syncline: rank %d: no shared memory for %lld bytes a rank (%s): all-reduces copy their data\n",
                 rank(), static_cast<long long>(job.bytes), memory_->why().c_str());
}

// Blocks, but reacts to cancel() and ask_around().
void NodeWire::wait_until(const Job& job, const std::function<bool()>& condition) {
  for (Pauses pauses; !condition(); pauses.next()) {
    if (cancelled_) fail<CommError>(comm::describe(job.header), ": given up");
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
  Missing missing = board_.missing(round_);
  if (missing.text.empty()) missing = reports_.missing(round_);
  if (missing.text.empty()) missing = {board_.behind()};
  if (missing.text.empty()) missing = {"every rank that is heard of has called it"};
  missing.speaks = board_.speaks(round_);
  return missing;
}

void NodeWire::cancel() noexcept {
  cancelled_ = true;
  board_.leave(Left::kGaveUp);
}

bool NodeWire::close(bool clean) noexcept {
  board_.leave(Left::kClosed);
  return network_->close(clean, [this] { return board_.not_ended(); });
}

}  // namespace syncline::comm
