#include "runtime/data_parallel.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <unordered_set>

#include "base/digest.h"
#include "ops/op.h"
#include "runtime/collectives.h"

namespace syncline {
namespace {

using comm::Tag;

// Tags of what is not a bucket of a step.
enum : std::uint32_t { kShare = 1u << 30, kAgree, kBroadcast };

using ExprSet = std::unordered_set<Expr, ExprHash>;

// Walks a graph once, asks every op for its rule, and puts in what turns one placement into another. Values in `early`
// are summed over the ranks as soon as they are there.
class Placer {
 public:
  Placer(const PlacementMap& leaves, const RowShares& shares, const ExprSet& early)
      : leaves_(leaves), shares_(shares), early_(early) {}

  PlacedGraph run(std::span<const Expr> roots, std::span<const Placement> wanted) {
    for (const auto& node : nodes_under(roots)) place(node);
    PlacedGraph graph;
    for (std::size_t i = 0; i < roots.size(); ++i)
      graph.roots.push_back(convert(done_.at(roots[i]), wanted.empty() ? Placement::replicated() : wanted[i]));
    graph.placement = placement_;
    return graph;
  }

  // The partial values that somebody needed whole. Each may as well be whole for all its users; and where an operation
  // on one partial value (scaling it, say) gave it, that operand, unless it is larger: what follows is then one pass.
  ExprSet wanted_whole() const {
    ExprSet result;
    for (Expr value : summed_) {
      for (Expr operand = partial_operand(value); operand; operand = partial_operand(value)) value = operand;
      result.insert(value);
    }
    return result;
  }

 private:
  Expr partial_operand(const Expr& value) const {
    Expr found;
    for (const Expr& input : value.node().inputs) {
      if (!at(done_.at(input)).is_partial() || input == found) continue;
      if (found || bytes(input) > bytes(value)) return {};
      found = input;
    }
    return found;
  }

  static std::int64_t bytes(const Expr& e) { return e.shape().size() * static_cast<std::int64_t>(size_of(e.dtype())); }

  Placement at(const Expr& e) const {
    const auto found = placement_.find(e);
    return found == placement_.end() ? Placement::replicated() : found->second;
  }

  void set(const Expr& e, Placement p) {
    if (!p.is_replicated()) placement_[e] = p;
  }

  void place(const std::shared_ptr<const Node>& node) {
    std::vector<Expr> inputs;
    std::vector<Placement> placements;
    std::vector<Meta> metas;
    bool all_replicated = true;
    for (const Expr& input : node->inputs) {
      inputs.push_back(done_.at(input));
      placements.push_back(at(inputs.back()));
      metas.push_back(input.meta());
      all_replicated = all_replicated && placements.back().is_replicated();
    }
    Placed placed;
    if (node->inputs.empty()) {
      const auto leaf = leaves_.find(Expr(node));
      placed.out = {leaf == leaves_.end() ? Placement::replicated() : leaf->second};
    } else if (all_replicated) {
      placed.out.assign(node->outputs.size(), Placement::replicated());
    } else {
      placed = node->op->place(node->attrs.get(), {metas, node->outputs, placements, shares_.total()});
      SYNCLINE_CHECK(placed.in.size() == inputs.size() && placed.out.size() == node->outputs.size());
      for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = convert(inputs[i], placed.in[i]);
    }
    const auto fresh = inputs == node->inputs ? node : make_node(*node->op, node->attrs, inputs, node->name);
    for (int i = 0; i < static_cast<int>(node->outputs.size()); ++i) {
      const Expr old(node, i), now(fresh, i);
      set(now, placed.out[static_cast<std::size_t>(i)]);
      old_[now] = old;
      done_[old] = at(now).is_partial() && early_.contains(old) ? whole(now, at(now)) : now;
    }
  }

  Expr convert(const Expr& e, Placement wanted) {
    const Placement now = at(e);
    if (now == wanted) return e;
    auto& known = converted_[e];
    for (const auto& [placement, result] : known)
      if (placement == wanted) return result;
    const Expr result = wanted.is_split() ? own_rows(convert(e, Placement::replicated()), wanted.axis) : whole(e, now);
    if (!(at(result) == wanted))
      fail<InternalError>("placement: ", e.op().name, " of shape ", e.shape(), " cannot be turned from ", now, " to ",
                          wanted);
    converted_[e].emplace_back(wanted, result);
    return result;
  }

  Expr own_rows(const Expr& e, int axis) {
    const Expr rows = apply<OwnRows>({e}, {axis, shares_.own_begin(e.shape()[axis])});
    set(rows, Placement::split(axis));
    return rows;
  }

  Expr whole(const Expr& e, Placement now) {
    if (now.is_partial()) {
      summed_.push_back(old_.at(e));
      return apply<AllReduce>({e});
    }
    const Expr parts = apply<AllGather>({e});
    if (e.shape().product(0, now.axis) == 1) return parts;
    Interleave::Attrs attrs{now.axis, {}};
    for (int r = 0; r < static_cast<int>(shares_.begin.size()); ++r)
      attrs.begin.push_back(shares_.at(r, e.shape()[now.axis]));
    return apply<Interleave>({parts}, std::move(attrs));
  }

  const PlacementMap& leaves_;
  const RowShares& shares_;
  const ExprSet& early_;
  PlacementMap placement_;
  std::unordered_map<Expr, Expr, ExprHash> done_, old_;  // from the old graph to the new one, and back
  std::vector<Expr> summed_;                             // of the old graph
  std::unordered_map<Expr, std::vector<std::pair<Placement, Expr>>, ExprHash> converted_;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

class DataParallel : public Distributor {
 public:
  DataParallel(comm::Communicator& wire, DataParallelOptions options) : wire_(wire), options_(options) {}

  int rank() const override { return wire_.rank(); }
  int size() const override { return wire_.size(); }
  bool feeds_are_local() const override { return options_.local_feeds; }
  void set_feeds_local(bool local) override { options_.local_feeds = local; }

  RowShares share(std::span<Meta> feeds, std::span<std::int64_t> most, std::vector<bool>& split, bool& local) override {
    local = options_.local_feeds;
    RowShares shares{.begin = std::vector<std::int64_t>(static_cast<std::size_t>(size()) + 1), .rank = rank()};
    std::vector<std::int64_t> own;
    for (const Meta& feed : feeds) own.push_back(feed.shape.ndim() > 0 ? feed.shape[0] : -1);
    auto leading = std::vector<std::vector<std::int64_t>>{own};
    if (local) {
      own.insert(own.end(), most.begin(), most.end());
      leading = gather_rows(own);
      for (auto& numbers : leading) {
        for (std::size_t i = 0; i < most.size(); ++i) most[i] = std::max(most[i], numbers[feeds.size() + i]);
        numbers.resize(feeds.size());
      }
    }
    split = feeds_with_rows(leading);
    const auto first = static_cast<std::size_t>(std::find(split.begin(), split.end(), true) - split.begin());
    if (first == split.size()) return shares;
    for (int r = 0; r < size(); ++r) {
      const auto i = static_cast<std::size_t>(r);
      if (local) shares.begin[i + 1] = shares.begin[i] + leading[i][first];
      else if (own[first] >= size()) shares.begin[i + 1] = own[first] * (r + 1) / size();
    }
    if (shares.total() == 0) split.assign(feeds.size(), false);  // too few rows to split
    for (std::size_t i = 0; i < feeds.size(); ++i)
      if (split[i]) feeds[i].shape[0] = shares.total();
    return shares;
  }

  PlacedGraph place(std::span<const Expr> roots, const PlacementMap& leaves, const RowShares& shares,
                    std::span<const Placement> wanted) override {
    // A loop's body hands partial values over as they are; what it sums for itself must not change them.
    const bool fixed = std::find(wanted.begin(), wanted.end(), Placement::partial()) != wanted.end();
    ExprSet early;
    while (true) {
      Placer placer(leaves, shares, early);
      PlacedGraph graph = placer.run(roots, wanted);
      const std::size_t before = early.size();
      early.merge(placer.wanted_whole());
      if (fixed || early.size() == before) return graph;
    }
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

  std::uint64_t agree(const std::string& description) override {
    const std::uint64_t own = digest_bytes(description.data(), description.size());
    std::vector<std::uint64_t> all(static_cast<std::size_t>(size()));
    gather(&own, all.data(), std::vector<std::int64_t>(all.size(), sizeof own));
    if (std::any_of(all.begin(), all.end(), [&](std::uint64_t h) { return h != all[0]; })) explain(description, all);
    return own;
  }

  void broadcast(void* data, std::size_t bytes) override {
    wire_.wait(wire_.broadcast(tag(kBroadcast), data, static_cast<std::int64_t>(bytes), 0));
  }

  std::uint64_t start(const Transfer& transfer, std::uint64_t plan, std::uint64_t step, const void* send,
                      void* receive) override {
    const Tag tag{plan, step, transfer.bucket};
    if (transfer.kind == Transfer::kAllReduce)
      return wire_.all_reduce(tag, receive, transfer.count, transfer.dtype, comm::Reduce::kSum);
    return wire_.all_gather(tag, send, receive, transfer.byte_counts);
  }

  void wait(std::uint64_t ticket) override { wire_.wait(ticket); }

 private:
  // The feeds that hold the batch's rows: those whose leading dimensions (on every rank) most feeds have in common, or
  // the first of such. Every rank decides alike. leading[r][i]: of feed i on rank r; -1 for a scalar.
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

  Tag tag(std::uint32_t bucket) { return {0, messages_++, bucket}; }

  void gather(const void* send, void* receive, const std::vector<std::int64_t>& bytes) {
    wire_.wait(wire_.all_gather(tag(kAgree), send, receive, bytes));
  }

  // Every rank's leading dimensions.
  std::vector<std::vector<std::int64_t>> gather_rows(const std::vector<std::int64_t>& own) {
    const auto ranks = static_cast<std::size_t>(size());
    std::vector<std::int64_t> all(ranks * own.size());
    const std::vector<std::int64_t> bytes(ranks, static_cast<std::int64_t>(own.size() * sizeof(std::int64_t)));
    wire_.wait(wire_.all_gather(tag(kShare), own.data(), all.data(), bytes));
    std::vector<std::vector<std::int64_t>> leading;
    for (std::size_t r = 0; r < ranks; ++r) {
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(r * own.size());
      leading.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(own.size()));
    }
    return leading;
  }

  // Every rank sends its description, so that every rank can name the first difference.
  [[noreturn]] void explain(const std::string& description, const std::vector<std::uint64_t>& hashes) {
    const auto length = static_cast<std::int64_t>(description.size());
    std::vector<std::int64_t> lengths(hashes.size());
    gather(&length, lengths.data(), std::vector<std::int64_t>(hashes.size(), sizeof length));
    std::int64_t total = 0;
    for (const std::int64_t bytes : lengths) total += bytes;
    std::string text(static_cast<std::size_t>(total), '\0');
    gather(description.data(), text.data(), lengths);
    std::size_t other = 1;
    while (hashes[other] == hashes[0]) ++other;
    std::vector<std::string> parts;
    for (std::size_t r = 0, at = 0; r < lengths.size(); at += static_cast<std::size_t>(lengths[r++]))
      parts.push_back(text.substr(at, static_cast<std::size_t>(lengths[r])));
    const auto a = lines_of(parts[0]), b = lines_of(parts[other]);
    std::size_t line = 0;
    while (line < a.size() && line < b.size() && a[line] == b[line]) ++line;
    const std::string nothing = "nothing";
    fail<DisagreementError>("ranks 0 and ", other, " built different functions; the first difference (line ", line + 1,
                    "): rank 0 has ", line < a.size() ? a[line] : nothing, ", rank ", other, " has ",
                    line < b.size() ? b[line] : nothing, "; every rank must run the same program");
  }

  comm::Communicator& wire_;
  DataParallelOptions options_;
  std::uint64_t messages_ = 0;
};

}  // namespace

std::unique_ptr<Distributor> make_data_parallel(comm::Communicator& communicator, DataParallelOptions options) {
  return std::make_unique<DataParallel>(communicator, options);
}

}  // namespace syncline
