#include "syncline/distributed/data_parallel.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "ops/graph/attrs.h"
#include "ops/kernels/product/gemm.h"
#include "runtime/placement/faults.h"
#include "runtime/placement/placer.h"

namespace syncline {
namespace {

using comm::Tag;

// Buckets in the tags of messages outside a step.
enum : std::uint32_t { kShare = 1u << 30, kAgree, kBroadcast, kReclaim };

// The ticket of a transfer that a fault delays.
constexpr std::uint64_t kHeld = ~std::uint64_t{0};

class DataParallel : public Strategy {
 public:
  DataParallel(comm::Communicator& communicator, DataParallelOptions options)
      : communicator_(communicator), node_(communicator.node_place()), options_(options) {
    if (size() <= comm::RankSum::kMostRanks) sum_.emplace(size());
    if (splits_variables() && node_.most == 0)
      fail<ValueError>("distribute: the optimizer state is to be split (SYNCLINE_OPTIMIZER_STATE), but with NCCL each ",
                       "rank keeps all variables; choose another transport, or optimizer_state auto");
    if (options_.parts == 0) return;
    first_part_ = first_parts(size(), options_.parts);
    if (!communicator_.adds_along_tree())
      fail<ValueError>("distribute: there are ", options_.parts,
                       " parts of a batch, but with NCCL or a 16-bit wire format sums ",
                       "depend on the ranks; set SYNCLINE_PARTS=0, or another transport or wire format");
    kept_row_bits_.emplace();
  }

  int rank() const override { return communicator_.rank(); }
  int size() const override { return communicator_.size(); }
  bool feeds_are_local() const override { return options_.local_feeds; }
  void set_feeds_local(bool local) override { options_.local_feeds = local; }

  RowShares share(std::span<Meta> feeds, std::span<std::int64_t> most, std::vector<bool>& split, bool& local) override {
    local = options_.local_feeds;
    RowShares shares{
        .begin = std::vector<std::int64_t>(static_cast<std::size_t>(size()) + 1), .rank = rank(), .node = node_};
    shares.variables_split = splits_variables();
    std::vector<std::int64_t> own;
    for (const Meta& feed : feeds) own.push_back(feed.shape.ndim() > 0 ? feed.shape[0] : -1);
    auto leading = std::vector<std::vector<std::int64_t>>{own};
    if (local) {
      // A digest stands for the shapes: few numbers travel with the headers, also of a thousand ranks.
      std::uint64_t shapes = 0;
      for (const Meta& feed : feeds)
        for (const std::int64_t size : feed.shape) shapes = attrs::mix(shapes, static_cast<std::uint64_t>(size));
      own.push_back(static_cast<std::int64_t>(shapes));
      own.insert(own.end(), most.begin(), most.end());
      leading = gather_rows(own);
      for (auto& numbers : leading) {
        for (std::size_t i = 0; i < most.size(); ++i) most[i] = std::max(most[i], numbers[feeds.size() + 1 + i]);
        for (std::size_t i = 0; i <= feeds.size(); ++i)
          shares.digest = attrs::mix(shares.digest, static_cast<std::uint64_t>(numbers[i]));
        numbers.resize(feeds.size());
      }
    }
    split = feeds_with_rows(leading);
    const auto first = static_cast<std::size_t>(std::find(split.begin(), split.end(), true) - split.begin());
    if (first == split.size()) return shares;
    for (int r = 0; r < size(); ++r) {
      const auto i = static_cast<std::size_t>(r);
      if (local) shares.begin[i + 1] = shares.begin[i] + leading[i][first];
      else if (options_.parts > 0) shares.begin[i + 1] = own[first] * first_part_[i + 1] / options_.parts;
      else if (own[first] >= size()) shares.begin[i + 1] = own[first] * (r + 1) / size();
    }
    if (shares.total() == 0) split.assign(feeds.size(), false);  // too few rows to split
    for (std::size_t i = 0; i < feeds.size(); ++i)
      if (split[i]) feeds[i].shape[0] = shares.total();
    if (options_.parts > 0) set_parts(shares);
    return shares;
  }
  int parts() const override { return options_.parts; }

  PlacedGraph place(std::span<const Expr> roots, const PlacementMap& leaves, const RowShares& shares,
                    std::span<const Placement> wanted) override {
    // A sum of this size would fill the first bucket by itself.
    const PlacementLimits limits{.by_rows_from = options_.by_rows_from, .scatter_from = options_.first_bucket};
    return place_graph(roots, leaves, shares, wanted, limits, options_.parts > 0);
  }

  std::vector<int> bucket(std::span<const std::pair<DType, std::int64_t>> ready) const override {
    struct Open {
      int index;
      std::int64_t bytes;
    };
    std::map<DType, Open> open;
    std::vector<int> result;
    int buckets = 0, closed = 0;
    for (const auto& [dtype, bytes] : ready) {
      auto [it, fresh] = open.try_emplace(dtype, Open{buckets, 0});
      if (fresh) ++buckets;
      result.push_back(it->second.index);
      it->second.bytes += bytes;
      if (it->second.bytes < (closed == 0 ? options_.first_bucket : options_.later_buckets)) continue;
      open.erase(it);
      ++closed;
    }
    return result;
  }

  std::string describe() const override {
    const std::string parts = options_.parts > 0 ? join_text(options_.parts) : "no";
    const bool replicated = options_.optimizer_state == OptimizerState::kReplicated;
    const char* const state = splits_variables() ? "split" : replicated ? "replicated" : "auto";
    return join_text("buckets of ", options_.first_bucket, " and ", options_.later_buckets,
                     " bytes\ngradients by rows from ", options_.by_rows_from, " bytes\nsharing variables from ",
                     options_.share_from, " bytes\ncomparing variables every ", options_.check_steps, " steps\n", parts,
                     " parts of a batch\noptimizer state ", state);
  }
  std::uint64_t check_steps() const override { return options_.check_steps; }

  void gather(std::string_view purpose, const void* send, void* receive,
              std::span<const std::int64_t> byte_counts) override {
    finish(communicator_.all_gather(tag(kAgree, purpose), send, receive, byte_counts));
  }

  void broadcast(std::string_view purpose, void* data, std::size_t bytes) override {
    finish(communicator_.broadcast(tag(kBroadcast, purpose), data, static_cast<std::int64_t>(bytes), 0));
  }

  std::uint64_t name(const std::string& text) override { return comm::remember_names(text); }
  void inject(Faults& faults) override { faults_ = &faults; }

  std::byte* shared_memory(std::size_t bytes) override {
    leased_ = 0;  // collective: ends all leases
    return communicator_.shared_memory(bytes);
  }
  const std::byte* shared_memory_of(int rank) const override { return communicator_.shared_memory_of(rank); }

  void add_terms(DType dtype, std::span<const void* const> terms, void* sum, std::int64_t count) const override {
    sum_.value()(dtype, terms, sum, count);
  }

  std::int64_t share_from() const override {
    const bool shares = options_.optimizer_state != OptimizerState::kReplicated && has_variable_memory_;
    return shares && (node_.most > 1 || splits_variables()) ? options_.share_from : INT64_MAX;
  }
  bool splits_variables() const override {
    return options_.optimizer_state == OptimizerState::kSplit && node_.ranks < size();
  }
  comm::NodeBlock variable_memory(std::size_t bytes) override {
    leased_ = 0;  // collective
    comm::NodeBlock block = communicator_.node_memory(bytes);
    has_variable_memory_ = block.begin != nullptr;  // equal on all ranks, which do not ask again
    return block;
  }

  void lease(std::size_t bytes) override {
    leased_ = std::max(leased_, bytes);
    leased_at_ = last_;
  }
  std::size_t leased() const override { return leased_; }
  void reclaim() override { finish(start_barrier(tag(kReclaim, "memory that other ranks have read"))); }

  void publish(std::uint64_t plan, std::uint64_t step, std::string_view what) override {
    communicator_.publish({plan, step, what});
  }

  std::uint64_t start(const Transfer& transfer, std::uint64_t plan, std::uint64_t step, const void* send,
                      void* receive) override {
    const Sent sent{&transfer, {plan, step, transfer.bucket, transfer.names}, send, receive};
    if (faults_ != nullptr) return start_with_faults(sent);
    return submit(sent);
  }

  void wait(std::uint64_t ticket) override {
    if (ticket == kHeld) ticket = delayed_ != 0 ? std::exchange(delayed_, 0) : submit(std::exchange(held_, {}));
    finish(ticket);
  }

 private:
  void set_parts(RowShares& shares) const {
    const auto count = static_cast<std::int64_t>(options_.parts);
    for (std::int64_t part = 0; part <= count; ++part) shares.parts.push_back(shares.total() * part / count);
    for (std::size_t r = 0; r < first_part_.size(); ++r)
      if (const std::int64_t border = shares.parts[static_cast<std::size_t>(first_part_[r])]; shares.begin[r] != border)
        fail<ValueError>("function: under local_feeds the rows of rank ", r, " begin at ", shares.begin[r],
                         " of the batch's ", shares.total(), ", but at ", border, " if the batch has ", count,
                         " parts; give each rank the rows of its parts, or set SYNCLINE_PARTS=0");
    const auto own = static_cast<std::size_t>(rank());
    shares.first_part = first_part_[own];
    shares.part_count = first_part_[own + 1] - first_part_[own];
  }

  // The feeds that hold the batch's rows: the largest group of feeds with equal leading dimensions on every rank; the
  // first such group in a tie. Equal on all ranks. leading[r][i]: leading dimension of feed i on rank r; -1 for a
  // scalar.
  static std::vector<bool> feeds_with_rows(const std::vector<std::vector<std::int64_t>>& leading) {
    const std::size_t feeds = leading[0].size();
    auto alike = [&](std::size_t a, std::size_t b) {
      return leading[0][a] >= 0 &&
             std::all_of(leading.begin(), leading.end(), [&](const auto& l) { return l[a] == l[b]; });
    };
    std::vector<bool> best(feeds, false);
    for (std::size_t i = 0; i < feeds; ++i) {
      std::vector<bool> same(feeds, false);
      for (std::size_t j = 0; j < feeds; ++j) same[j] = alike(i, j);
      if (std::count(same.begin(), same.end(), true) > std::count(best.begin(), best.end(), true)) best = same;
    }
    return best;
  }

  Tag tag(std::uint32_t bucket, std::string_view purpose) {
    return {0, messages_++, bucket, comm::remember_names(purpose)};
  }

  struct Sent {
    const Transfer* transfer = nullptr;
    Tag tag;
    const void* send = nullptr;
    void* receive = nullptr;
  };

  std::uint64_t submit(const Sent& sent) { return last_ = submit_to_wire(sent); }

  std::uint64_t submit_to_wire(const Sent& sent) {
    const Transfer& transfer = *sent.transfer;
    if (transfer.kind == Transfer::kAllReduce) {
      const comm::Reduce reduce = transfer.from == Placement::kLargest    ? comm::Reduce::kMax
                                  : transfer.from == Placement::kSmallest ? comm::Reduce::kMin
                                                                          : comm::Reduce::kSum;
      return communicator_.all_reduce(sent.tag, sent.receive, transfer.count, transfer.dtype, reduce);
    }
    if (is_in_place(transfer) || transfer.kind == Transfer::kBarrier) return start_barrier(sent.tag);
    if (transfer.kind == Transfer::kReduceScatter)
      return communicator_.reduce_scatter(sent.tag, sent.receive, transfer.counts, transfer.dtype, comm::Reduce::kSum);
    if (transfer.on_nodes) return communicator_.gather_on_nodes(sent.tag, sent.receive, transfer.counts);
    return communicator_.all_gather(sent.tag, sent.send, sent.receive, transfer.counts);
  }

  bool is_in_place(const Transfer& transfer) const {
    return transfer.in_place && communicator_.shared_memory_of(0) != nullptr;
  }

  // A barrier: completes when every rank has submitted it.
  comm::Ticket start_barrier(const Tag& tag) {
    return communicator_.all_reduce(tag, &nothing_, 1, DType::kInt32, comm::Reduce::kMax);
  }

  void finish(comm::Ticket ticket) {
    communicator_.wait(ticket);
    if (ticket > leased_at_) leased_ = 0;
  }

  // Delays a swapped transfer until the other one has started.
  std::uint64_t start_with_faults(const Sent& sent) {
    const Fault* fault = faults_->of_transfers(sent.tag.step);
    if (fault == nullptr) return submit(sent);
    if (fault->kind != Fault::kSwap) return start_wrongly(sent, *fault);
    if (sent.tag.bucket == fault->numbers[0]) {
      held_ = sent;
      return kHeld;
    }
    const std::uint64_t ticket = submit(sent);
    if (held_.transfer == nullptr || sent.tag.bucket != fault->numbers[1]) return ticket;
    delayed_ = submit(std::exchange(held_, {}));
    faults_->spend(*fault);
    return ticket;
  }

  std::uint64_t start_wrongly(const Sent& sent, const Fault& fault) {
    const Transfer& transfer = *sent.transfer;
    const auto width = static_cast<std::int64_t>(size_of(transfer.dtype));
    const bool scatters = transfer.kind == Transfer::kReduceScatter;
    const bool sums = scatters || (transfer.kind == Transfer::kAllReduce && transfer.from == Placement::kPartial);
    const std::int64_t count = scatters ? std::reduce(transfer.counts.begin(), transfer.counts.end()) : transfer.count;
    if (!sums || is_in_place(transfer) || count < 2 || width < 4) return submit(sent);
    const Fault::Kind kind = fault.kind;
    faults_->spend(fault);
    if (kind == Fault::kCollective) return communicator_.broadcast(sent.tag, sent.receive, count * width, 0);
    const DType integer = width == 8 ? DType::kInt64 : DType::kInt32;
    return communicator_.all_reduce(sent.tag, sent.receive, kind == Fault::kCount ? count / 2 : count,
                                    kind == Fault::kDType ? integer : transfer.dtype,
                                    kind == Fault::kReduce ? comm::Reduce::kMax : comm::Reduce::kSum);
  }

  // All-gathers `own`: one row per rank.
  std::vector<std::vector<std::int64_t>> gather_rows(const std::vector<std::int64_t>& own) {
    const auto ranks = static_cast<std::size_t>(size());
    std::vector<std::int64_t> all(ranks * own.size());
    const std::vector<std::int64_t> bytes(ranks, static_cast<std::int64_t>(own.size() * sizeof(std::int64_t)));
    finish(communicator_.all_gather(tag(kShare, "shapes of the feeds"), own.data(), all.data(), bytes));
    std::vector<std::vector<std::int64_t>> leading;
    for (std::size_t r = 0; r < ranks; ++r) {
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(r * own.size());
      leading.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(own.size()));
    }
    return leading;
  }

  comm::Communicator& communicator_;
  const comm::NodePlace node_;
  DataParallelOptions options_;
  std::optional<comm::RankSum> sum_;
  std::optional<kernels::KeptRowBits> kept_row_bits_;  // with parts
  std::vector<int> first_part_;                        // of each rank; last: the number of parts
  std::uint64_t messages_ = 0;
  comm::Ticket last_ = 0;       // the last transfer of a step
  comm::Ticket leased_at_ = 0;  // peers may read leased memory until any later ticket completes
  std::size_t leased_ = 0;
  bool has_variable_memory_ = true;
  std::int32_t nothing_ = 0;
  Faults* faults_ = nullptr;
  Sent held_;                  // delayed by a fault
  std::uint64_t delayed_ = 0;  // ticket of the delayed transfer
};

}  // namespace

std::vector<int> first_parts(int ranks, std::int64_t parts) {
  constexpr int kMost = KerasJson::kMostParts;
  if (ranks < 1) fail<ValueError>("first_parts: there are ", ranks, " ranks; give a positive number");
  std::vector<int> first(static_cast<std::size_t>(ranks) + 1);
  std::iota(first.begin(), first.end(), 0);
  if (parts == 0) return first;
  if (parts < 1 || parts > kMost || !std::has_single_bit(static_cast<std::uint64_t>(parts)))
    fail<ValueError>("the number of parts is ", parts, "; give a power of two up to ", kMost, ", or 0 for none");
  if (parts < ranks)
    fail<ValueError>(ranks, " ranks cannot share ", parts,
                     " parts of a batch; set a number of parts (SYNCLINE_PARTS) that is a power of two and at least ",
                     "the number of ranks");
  const auto of_a_place = static_cast<int>(parts) / comm::first_place(ranks, ranks);
  for (int& part : first) part = of_a_place * comm::first_place(part, ranks);
  return first;
}

OwnedStrategy make_data_parallel(comm::Communicator& communicator, DataParallelOptions options) {
  return OwnedStrategy(new DataParallel(communicator, options));
}

}  // namespace syncline
