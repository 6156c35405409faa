#include "runtime/data_parallel.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "base/digest.h"
#include "runtime/placer.h"

namespace syncline {
namespace {

using comm::Tag;

// Tags of what is not a bucket of a step.
enum : std::uint32_t { kShare = 1u << 30, kAgree, kBroadcast };

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
    return place_graph(roots, leaves, shares, wanted);
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
