#include "comm/shared/gather.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace syncline::comm {
namespace {

// Messages between nodes: MPI counts are ints, and a message is the progress that a waiting rank sees.
constexpr std::int64_t kPieceBytes = 16 << 20;

std::size_t bytes(std::int64_t count) { return static_cast<std::size_t>(count); }

}  // namespace

// Carries out copies_.
Steps Gather::copy() {
  std::int64_t left = kStepBytes;  // before it returns to its driver
  for (const Copy& copy : copies_)
    for (std::int64_t at = 0, piece = 0; at < copy.size && copy.to != copy.from; at += piece, left -= piece) {
      if (left == 0) {
        co_await std::suspend_always{};
        left = kStepBytes;
      }
      piece = std::min(left, copy.size - at);
      std::memcpy(copy.to + at, copy.from + at, bytes(piece));
    }
}

struct Gather::Run {
  const Collective& collective;
  const Window* region;
  std::uint64_t& done;
  std::byte* data() const { return static_cast<std::byte*>(collective.data); }
};

Steps Gather::run(const Collective& collective, const Window* region, std::uint64_t& done) {
  const Run run{collective, region, done};
  find_parts_of_nodes(topology_, collective.counts, begin_);
  const auto counts = collective.counts.subspan(bytes(topology_.own().front()), bytes(control_.ranks()));
  std::byte* const own = run.data() + begin_[bytes(topology_.node)];
  copies_ = {{own + std::accumulate(counts.begin(), counts.begin() + topology_.local, std::int64_t{0}),
              static_cast<const std::byte*>(collective.send), counts[bytes(topology_.local)]}};
  co_await copy();
  co_await share(run, own, counts);
  if (topology_.node_count() == 1) co_return;
  co_await exchange_slices(run);
  slices_of_ranks_.assign(bytes(control_.ranks()), 0);
  for (int n = 0; n < topology_.node_count(); ++n) {
    for (int l = 0; l < topology_.rails(); ++l)
      slices_of_ranks_[bytes(l)] = part_of(begin_[bytes(n) + 1] - begin_[bytes(n)], l, topology_.rails()).size();
    if (n != topology_.node) co_await share(run, run.data() + begin_[bytes(n)], slices_of_ranks_);
  }
}

Steps Gather::broadcast_on_node(const Collective& collective, std::uint64_t& done) {
  root_only_.assign(bytes(control_.ranks()), 0);
  root_only_[bytes(collective.root)] = collective.bytes;
  const Run run{collective, nullptr, done};
  co_await share(run, run.data(), root_only_);
}

Steps Gather::exchange_slices(const Run& run) {
  if (topology_.local >= topology_.rails()) co_return;
  const int nodes = topology_.node_count();
  slices_.clear();
  std::int64_t longest = 0;
  for (int n = 0; n < nodes; ++n) {
    const std::int64_t first = begin_[bytes(n)];
    const Range slice = part_of(begin_[bytes(n) + 1] - first, topology_.local, topology_.rails());
    slices_.push_back({first + slice.begin, first + slice.end});
    longest = std::max(longest, slice.size());
  }
  for (std::int64_t at = 0; at < longest; at += kPieceBytes) {
    const auto piece_of = [&](int n) {
      const Range slice = slices_[bytes(n)];
      return Range{std::min(slice.begin + at, slice.end), std::min(slice.begin + at + kPieceBytes, slice.end)};
    };
    const Range own = piece_of(topology_.node);
    messages_.clear();
    for (int i = 1; i < nodes; ++i) {
      const int n = other_node(topology_.node, i, nodes);
      const Range theirs = piece_of(n);
      messages_.sends.push_back({n, run.data() + own.begin, bytes(own.size())});
      messages_.receives.push_back({n, run.data() + theirs.begin, bytes(theirs.size())});
    }
    network_.start(kExchange, messages_);
    co_await until([&] { return network_.test(kExchange); });
  }
}

// Local rank l has counts[l] bytes, behind those of the ranks before it; they begin at `first` in each rank's result.
// Each copies what the others have, from the region or, chunk by chunk, through the staging memory.
Steps Gather::share(const Run& run, std::byte* first, std::span<const std::int64_t> counts) {
  const int local = topology_.local, ranks = control_.ranks();
  if (ranks == 1) co_return;
  parts_.clear();
  for (std::byte* part = first; std::ssize(parts_) < ranks; part += counts[parts_.size() - 1]) parts_.push_back(part);
  const auto pass = [&](std::atomic<std::uint64_t> RankControl::*counter) {
    (control_.own().*counter).store(run.done + 1, std::memory_order_release);
    return until([&, counter] { return control_.all(counter, run.done + 1, run.collective); });
  };
  const std::int64_t most = *std::max_element(counts.begin(), counts.end());
  const auto chunk = run.region != nullptr ? most : static_cast<std::int64_t>(control_.half_bytes());
  for (std::int64_t at = 0; at < most; at += chunk) {
    const auto here = [&](int l) { return std::clamp<std::int64_t>(counts[bytes(l)] - at, 0, chunk); };
    if (run.region == nullptr && here(local) > 0)
      std::memcpy(control_.staging(local, run.done), parts_[bytes(local)] + at, bytes(here(local)));
    co_await pass(&RankControl::staged);
    copies_.clear();
    for (int l = 0; l < ranks; ++l) {
      std::byte* const to = parts_[bytes(l)] + at;
      const std::byte* from =
          run.region != nullptr ? run.region->part(l) + (to - run.region->part(local)) : control_.staging(l, run.done);
      if (l != local) copies_.push_back({to, from, here(l)});
    }
    co_await copy();
    co_await pass(&RankControl::reduced);
    ++run.done;
  }
}

}  // namespace syncline::comm
