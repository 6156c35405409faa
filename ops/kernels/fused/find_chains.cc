#include "ops/kernels/fused/find_chains.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <utility>

#include "ops/kernels/fused/chain.h"

namespace syncline::kernels {
namespace {

bool reads_block(const FusedNode& node, const std::vector<bool>& is_number) {
  return std::any_of(node.operands.begin(), node.operands.end(),
                     [&](int operand) { return operand >= 0 || !is_number[static_cast<std::size_t>(~operand)]; });
}

template <class T>
using ByNode = std::array<T, kFusedRegisters>;

class ChainFinder {
 public:
  ChainFinder(const FusedSpec& spec, const std::vector<bool>& is_number)
      : spec_(spec), is_number_(is_number), readers_{} {
    for (const FusedNode& node : spec.nodes) {
      for (std::size_t k = 0; k < node.operands.size(); ++k) {
        const bool again = k > 0 && node.operands[k] == node.operands[0];
        if (node.operands[k] >= 0 && !again) ++readers_[static_cast<std::size_t>(node.operands[k])];
      }
    }
    for (std::size_t i = 0; i < spec.nodes.size(); ++i) {
      const FusedNode& node = spec.nodes[i];
      if (!takes_mask(node.op->name) || !passes_mask(node.operands[0], node.out.dtype)) continue;
      has_mask_.set(i).set(static_cast<std::size_t>(node.operands[0]));
    }
  }

  // A chain runs at the position of its last node: all operands are ready there, and no other node reads its inner
  // nodes. Returns the lengths of the chains, and sets the nodes' places.
  std::vector<int> run(ByNode<int>& place) const {
    const std::size_t nodes = spec_.nodes.size();
    ByNode<int> before;              // the node's predecessor in its chain, or -1
    std::vector<int> length(nodes);  // of the chain up to the node; 0 if the chain goes on
    for (std::size_t i = 0; i < nodes; ++i) {
      before[i] = link_before(static_cast<int>(i), length);
      length[i] = before[i] < 0 ? 1 : 1 + std::exchange(length[static_cast<std::size_t>(before[i])], 0);
    }
    int end = 0;
    for (std::size_t i = 0; i < nodes; ++i) {
      end += length[i];
      int next = end;
      for (int node = length[i] > 0 ? static_cast<int>(i) : -1; node >= 0;
           node = before[static_cast<std::size_t>(node)])
        place[static_cast<std::size_t>(node)] = --next;
    }
    std::erase(length, 0);
    return length;
  }

 private:
  // True if the node compares values of the dtype only for the select that reads it.
  bool passes_mask(int i, DType dtype) const {
    if (i < 0 || readers_[static_cast<std::size_t>(i)] != 1) return false;
    const FusedNode& node = spec_.nodes[static_cast<std::size_t>(i)];
    const auto is_part = [&](const FusedSpec::Part& part) { return part.node == i; };
    return gives_mask(node.op->name) && (dtype == DType::kFloat32 || dtype == DType::kFloat64) &&
           spec_.meta_of(node.operands[0]).dtype == dtype && spec_.meta_of(node.operands[1]).dtype == dtype &&
           reads_block(node, is_number_) &&
           std::find(spec_.outputs.begin(), spec_.outputs.end(), i) == spec_.outputs.end() &&
           std::none_of(spec_.parts.begin(), spec_.parts.end(), is_part);
  }

  // Returns the operand whose chain node i continues, or -1. A select continues its condition's. Prefers the later of
  // two operands, which is more likely to be in registers.
  int link_before(int i, const std::vector<int>& length) const {
    if (!can_be_link(i)) return -1;
    const FusedNode& node = spec_.nodes[static_cast<std::size_t>(i)];
    if (takes_mask(node.op->name)) return node.operands[0];
    const int longest = gives_mask(node.op->name) ? kLongestChain - 1 : kLongestChain;  // room for the select
    int best = -1;
    for (const int operand : node.operands) {
      if (operand < 0 || readers_[static_cast<std::size_t>(operand)] != 1 || !can_be_link(operand)) continue;
      if (length[static_cast<std::size_t>(operand)] < longest) best = std::max(best, operand);
    }
    return best;
  }

  bool can_be_link(int i) const {
    return has_mask_[static_cast<std::size_t>(i)] ||
           kernels::can_be_link(spec_.nodes[static_cast<std::size_t>(i)], is_number_);
  }

  const FusedSpec& spec_;
  const std::vector<bool>& is_number_;
  ByNode<int> readers_;                    // number of nodes that read the node
  std::bitset<kFusedRegisters> has_mask_;  // the node is a comparison that only a select reads, or that select
};

}  // namespace

bool can_be_link(const FusedNode& node, const std::vector<bool>& is_number) {
  return is_chain_op(node.op->name, node.out.dtype) && reads_block(node, is_number);
}

std::vector<int> order_by_chains(FusedSpec& spec, const std::vector<bool>& is_number) {
  if (spec.nodes.size() == 1) return {1};
  ByNode<int> place;
  std::vector<int> lengths = ChainFinder(spec, is_number).run(place);
  std::vector<FusedNode> ordered(spec.nodes.size());
  for (std::size_t i = 0; i < ordered.size(); ++i)
    ordered[static_cast<std::size_t>(place[i])] = std::move(spec.nodes[i]);
  spec.nodes = std::move(ordered);
  auto move = [&](int& node) {
    if (node >= 0) node = place[static_cast<std::size_t>(node)];
  };
  for (FusedNode& node : spec.nodes)
    for (int& operand : node.operands) move(operand);
  for (int& output : spec.outputs) move(output);
  for (FusedSpec::Part& part : spec.parts) move(part.node);
  return lengths;
}

}  // namespace syncline::kernels
