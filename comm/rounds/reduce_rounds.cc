#include "comm/rounds/reduce_rounds.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace syncline::comm {
namespace {

// A leaf sends its sums of some parts to another leaf, which adds them.
struct Handover {
  int height = 0;  // of the vertex of the tree at which the leaves' sums meet
  int from = 0, to = 0;
  Range parts;            // of 2^height
  bool of_block = false;  // the sender's sums are of its leaf alone
};

// What the leaves of a subtree have after its sums: owners[p] has part p of 2^height parts.
struct Subtree {
  int height = 0;
  std::vector<int> owners;
};

// The owners of 2^height parts.
std::vector<int> owners_of_parts(const Subtree& tree, int height) {
  std::vector<int> owners;
  for (const int owner : tree.owners) owners.insert(owners.end(), std::size_t{1} << (height - tree.height), owner);
  return owners;
}

class Halving {
 public:
  explicit Halving(const SumTree& tree) {
    root_ = add_up({tree.terms.data(), tree.terms.size()}, 0);
    std::ranges::stable_sort(handovers_, {}, &Handover::height);
  }

  const std::vector<Handover>& handovers() const { return handovers_; }
  const Subtree& root() const { return root_; }
  // In parts of the root.
  Range parts_of(const Handover& h) const {
    const int finer = root_.height - h.height;
    return {h.parts.begin << finer, h.parts.end << finer};
  }

 private:
  Subtree add_up(std::span<const Block> leaves, int first) {
    if (leaves.size() == 1) return {0, {first}};
    const std::size_t left = left_terms(leaves);
    return join(add_up(leaves.first(left), first), add_up(leaves.subspan(left), first + static_cast<int>(left)));
  }

  // Runs of parts that two leaves have in common are halved between them. Which half a leaf keeps: that next to its
  // other parts, so that it sends few messages.
  Subtree join(const Subtree& a, const Subtree& b) {
    const int height = std::max(a.height, b.height);
    const std::vector<int> in_a = owners_of_parts(a, height), in_b = owners_of_parts(b, height);
    Subtree joined{height + 1, {}};
    for (std::size_t begin = 0, end = 0; begin < in_a.size(); begin = end) {
      const int leaf_a = in_a[begin], leaf_b = in_b[begin];
      while (end < in_a.size() && in_a[end] == leaf_a && in_b[end] == leaf_b) ++end;
      const bool has_left_of_b = begin > 0 && joined.owners.back() == leaf_b;
      const bool a_goes_on = end < in_a.size() && in_a[end] == leaf_a && (begin == 0 || joined.owners.back() != leaf_a);
      const Range whole{static_cast<std::int64_t>(2 * begin), static_cast<std::int64_t>(2 * end)};
      const std::int64_t middle = (whole.begin + whole.end) / 2;
      const Range left{whole.begin, middle}, right{middle, whole.end};
      const bool b_first = has_left_of_b || a_goes_on;
      handovers_.push_back({joined.height, leaf_b, leaf_a, b_first ? right : left, b.height == 0});
      handovers_.push_back({joined.height, leaf_a, leaf_b, b_first ? left : right, a.height == 0});
      joined.owners.insert(joined.owners.end(), end - begin, b_first ? leaf_b : leaf_a);
      joined.owners.insert(joined.owners.end(), end - begin, b_first ? leaf_a : leaf_b);
    }
    return joined;
  }

  std::vector<Handover> handovers_;
  Subtree root_;
};

// What a node has of the sums over all ranks, in parts.
class Returned {
 public:
  explicit Returned(std::int64_t parts) : has_(static_cast<std::size_t>(parts), false) {}
  // Adds the range, and returns what was missing of it.
  std::vector<Range> add(const Range& range) {
    std::vector<Range> missing;
    for (std::int64_t p = range.begin; p < range.end; ++p) {
      if (has_[static_cast<std::size_t>(p)]) continue;
      has_[static_cast<std::size_t>(p)] = true;
      if (!missing.empty() && missing.back().end == p) ++missing.back().end;
      else missing.push_back({p, p + 1});
    }
    return missing;
  }

 private:
  std::vector<bool> has_;
};

std::vector<ReduceRounds::Place> places_of(const std::vector<int>& owners, int nodes) {
  std::vector<int> parts(static_cast<std::size_t>(nodes), 0);
  std::vector<ReduceRounds::Place> places;
  for (const int owner : owners) places.push_back({parts[static_cast<std::size_t>(owner)]++});
  for (std::size_t p = 0; p < owners.size(); ++p) places[p].parts = parts[static_cast<std::size_t>(owners[p])];
  return places;
}

void add_sum(const SumTree& tree, int node, const Handover& h, const Range& parts, ReduceRound& round) {
  const int first = tree.first_of(node);
  const int received = tree.blocks(node) + static_cast<int>(round.receives.size()) - 1;
  const int own = h.to - first, other = tree.node_of(h.from) == node ? h.from - first : received;
  ReduceRound::Sum sum{parts, {own, other}, {0, 1, kAdd}, own};
  if (h.from < h.to) std::swap(sum.terms[0], sum.terms[1]);
  round.sums.push_back(std::move(sum));
}

ReduceRounds direct_rounds_of(const SumTree& tree, int node) {
  const int nodes = tree.node_count();
  const Range own{node, node + 1};
  ReduceRound sum, give;
  ReduceRound::Sum total{own, {}, tree.all, 0};
  for (int b = 0; b < tree.blocks(); ++b) {
    const int owner = tree.node_of(b);
    total.terms.push_back(owner == node ? b - tree.first_of(node)
                                        : tree.blocks(node) + static_cast<int>(sum.receives.size()));
    if (owner != node) sum.receives.push_back({owner, own, true});
  }
  sum.sums.push_back(std::move(total));
  for (int i = 1; i < nodes; ++i) {
    const int n = other_node(node, i, nodes);
    for (int b = 0; b < tree.blocks(node); ++b) sum.sends.push_back({n, {n, n + 1}, true, b});
    give.sends.push_back({n, own});
    give.receives.push_back({n, {n, n + 1}});
  }
  std::vector<int> owners(static_cast<std::size_t>(nodes));
  std::iota(owners.begin(), owners.end(), 0);
  std::vector<ReduceRounds::Place> places(owners.size());
  return {std::move(owners), std::move(places), {std::move(sum)}, {std::move(give)}};
}

std::vector<ReduceRounds> direct_rounds(const SumTree& tree, Range nodes) {
  std::vector<ReduceRounds> rounds;
  for (std::int64_t n = nodes.begin; n < nodes.end; ++n) rounds.push_back(direct_rounds_of(tree, static_cast<int>(n)));
  return rounds;
}

std::vector<ReduceRounds> halving_rounds(const SumTree& tree, Range nodes) {
  const Halving halving(tree);
  const std::vector<Handover>& handovers = halving.handovers();
  const auto height = static_cast<std::size_t>(halving.root().height);
  std::vector<ReduceRounds> rounds(static_cast<std::size_t>(nodes.size()),
                                   {{}, {}, std::vector<ReduceRound>(height), std::vector<ReduceRound>(height)});
  const auto of = [&](int node) {
    const bool wanted = nodes.begin <= node && node < nodes.end;
    return wanted ? &rounds[static_cast<std::size_t>(node - nodes.begin)] : nullptr;
  };
  for (const Handover& h : handovers) {
    const auto number = static_cast<std::size_t>(h.height - 1);
    const int from = tree.node_of(h.from), to = tree.node_of(h.to);
    if (ReduceRounds* const sender = of(from); sender != nullptr && to != from)
      sender->sums[number].sends.push_back({to, halving.parts_of(h), h.of_block, h.from - tree.first_of(from)});
    if (of(to) == nullptr) continue;
    ReduceRound& round = of(to)->sums[number];
    if (from != to) round.receives.push_back({from, halving.parts_of(h), h.of_block});
    add_sum(tree, to, h, halving.parts_of(h), round);
    if (h.height == halving.root().height) round.sums.back().to = 0;
  }
  // The way back: each node gets each part once.
  std::vector<int> owners;
  for (const int leaf : halving.root().owners) owners.push_back(tree.node_of(leaf));
  const auto parts = std::ssize(owners);
  std::vector<Returned> returned(static_cast<std::size_t>(tree.node_count()), Returned(parts));
  for (std::int64_t p = 0; p < parts; ++p)
    returned[static_cast<std::size_t>(owners[static_cast<std::size_t>(p)])].add({p, p + 1});
  for (auto h = handovers.rbegin(); h != handovers.rend(); ++h) {
    const auto number = height - static_cast<std::size_t>(h->height);
    const int from = tree.node_of(h->to), to = tree.node_of(h->from);
    for (const Range& missing : returned[static_cast<std::size_t>(to)].add(halving.parts_of(*h))) {
      if (of(from) != nullptr) of(from)->returns[number].sends.push_back({to, missing});
      if (of(to) != nullptr) of(to)->returns[number].receives.push_back({from, missing});
    }
  }
  const auto is_empty = [](const ReduceRound& round) {
    return round.sends.empty() && round.receives.empty() && round.sums.empty();
  };
  for (ReduceRounds& one : rounds) {
    one.owners = owners;
    one.places = places_of(owners, tree.node_count());
    std::erase_if(one.sums, is_empty);
    std::erase_if(one.returns, is_empty);
  }
  return rounds;
}

}  // namespace

Range part_of(std::int64_t count, std::int64_t i, std::int64_t n) {
  const std::int64_t each = count / n, rest = count % n;
  const std::int64_t begin = i * each + std::min(i, rest);
  return {begin, begin + each + (i < rest ? 1 : 0)};
}

Range elements_of(std::int64_t count, const Range& parts, std::int64_t n) {
  return {part_of(count, parts.begin, n).begin, part_of(count, parts.end - 1, n).end};
}

std::vector<ReduceRounds> reduce_rounds(const SumTree& tree, Range nodes, Algorithm algorithm) {
  std::vector<ReduceRounds> rounds =
      algorithm == Algorithm::kHalves ? halving_rounds(tree, nodes) : direct_rounds(tree, nodes);
  for (ReduceRounds& one : rounds) {
    one.algorithm = algorithm;
    one.most_blocks = tree.most_blocks();
  }
  return rounds;
}

}  // namespace syncline::comm
