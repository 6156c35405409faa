#include "ops/ctc/beam.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/alignment.h"

namespace syncline::ctc {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();
constexpr std::int32_t kNone = -1;

double log_add(double a, double b) {
  const double top = std::max(a, b);
  return top == kNever ? kNever : top + std::log1p(std::exp(std::min(a, b) - top));
}

// The empty sequence, and at most `width` new nodes per step.
std::int64_t most_nodes(std::int64_t time, std::int64_t width) { return 1 + time * width; }

}  // namespace

std::size_t BeamSearch::memory(std::int64_t time, std::int64_t classes, std::int64_t width) {
  const auto nodes = static_cast<std::size_t>(most_nodes(time, width)), leaves = static_cast<std::size_t>(width);
  const std::size_t bytes = nodes * sizeof(Node) + (leaves + 1) * sizeof(Candidate) + leaves * sizeof(std::int32_t) +
                            static_cast<std::size_t>(classes);
  return aligned(bytes);
}

BeamSearch::BeamSearch(void* memory, std::int64_t time, std::int64_t classes, std::int64_t width)
    : classes_(classes),
      width_(width),
      nodes_(static_cast<Node*>(memory)),
      heap_(reinterpret_cast<Candidate*>(nodes_ + most_nodes(time, width))),
      leaves_(reinterpret_cast<std::int32_t*>(heap_ + width + 1)),
      is_leaf_(reinterpret_cast<std::uint8_t*>(leaves_ + width)) {
  std::fill_n(is_leaf_, classes, std::uint8_t{0});
  leaves_[leaves_count_++] = add_node(kNone, kNone);
  nodes_[0].blank = nodes_[0].total = 0;
  nodes_[0].active = true;
}

std::int32_t BeamSearch::add_node(std::int32_t parent, std::int32_t label) {
  const std::int32_t sibling = parent == kNone ? kNone : nodes_[parent].first_child;
  nodes_[nodes_count_] = {parent, label, kNone, sibling, kNever, kNever, kNever, kNever, kNever, false};
  if (parent != kNone) nodes_[parent].first_child = nodes_count_;
  return nodes_count_++;
}

// A dropped sequence may return. It reuses its node, which keeps the links to its children.
std::int32_t BeamSearch::child(std::int32_t parent, std::int32_t label) {
  for (std::int32_t c = nodes_[parent].first_child; c != kNone; c = nodes_[c].sibling)
    if (nodes_[c].label == label) return c;
  return add_node(parent, label);
}

// The same sequence after one more step: a blank, its last label again, or the parent's sequence plus its last label.
void BeamSearch::stay(Node& node, const double* scores) {
  if (node.parent != kNone) {
    const Node& parent = nodes_[node.parent];
    if (parent.active) {
      const double before = node.label == parent.label ? parent.old_blank : parent.old_total;
      node.ended = log_add(node.ended, before);
    }
    node.ended += scores[node.label];
  }
  node.blank = node.old_total + scores[classes_ - 1];
  node.total = log_add(node.blank, node.ended);
}

bool BeamSearch::can_enter(double total) const {
  return total > kNever && (heap_count_ < width_ || total > heap_[0].total);
}

void BeamSearch::offer(Candidate candidate) {
  candidate.order = order_++;
  heap_[heap_count_++] = candidate;
  std::push_heap(heap_, heap_ + heap_count_, better);
  if (heap_count_ <= width_) return;
  std::pop_heap(heap_, heap_ + heap_count_, better);
  --heap_count_;
  if (heap_[heap_count_].node != kNone) nodes_[heap_[heap_count_].node].active = false;
}

void BeamSearch::grow(std::int32_t parent, const double* scores) {
  const Node& from = nodes_[parent];
  for (std::int32_t c = from.first_child; c != kNone; c = nodes_[c].sibling) {
    Node& child = nodes_[c];
    is_leaf_[child.label] = child.active;
    // As in TensorFlow, a child that has just left the beam does not grow in this step.
    if (!child.active) child.old_total = kNever;
  }
  for (std::int32_t label = 0; label + 1 < classes_; ++label) {
    if (is_leaf_[label] != 0) continue;
    const double total = scores[label] + (label == from.label ? from.old_blank : from.old_total);
    if (can_enter(total)) offer({total, 0, kNone, parent, label});
  }
  for (std::int32_t c = from.first_child; c != kNone; c = nodes_[c].sibling) is_leaf_[nodes_[c].label] = 0;
}

void BeamSearch::keep() {
  std::sort(heap_, heap_ + heap_count_, better);
  for (std::int64_t i = 0; i < leaves_count_; ++i) nodes_[leaves_[i]].active = false;
  for (leaves_count_ = 0; leaves_count_ < heap_count_; ++leaves_count_) {
    const Candidate& candidate = heap_[leaves_count_];
    std::int32_t node = candidate.node;
    if (node == kNone) {
      node = child(candidate.parent, candidate.label);
      nodes_[node].blank = kNever;
      nodes_[node].ended = nodes_[node].total = candidate.total;
    }
    nodes_[node].active = true;
    leaves_[leaves_count_] = node;
  }
  heap_count_ = 0;
}

void BeamSearch::advance(const double* scores) {
  for (std::int64_t i = 0; i < leaves_count_; ++i) {
    Node& node = nodes_[leaves_[i]];
    node.old_blank = node.blank;
    node.old_total = node.total;
  }
  order_ = 0;
  for (std::int64_t i = 0; i < leaves_count_; ++i) {
    Node& node = nodes_[leaves_[i]];
    stay(node, scores);
    if (can_enter(node.total)) offer({node.total, 0, leaves_[i], kNone, kNone});
  }
  // A child is not more likely than its parent was before the step.
  for (std::int64_t i = 0; i < leaves_count_; ++i)
    if (can_enter(nodes_[leaves_[i]].old_total)) grow(leaves_[i], scores);
  keep();
}

double BeamSearch::log_probability(std::int64_t number) const { return nodes_[leaves_[number]].total; }

std::int64_t BeamSearch::labels(std::int64_t number, bool merge_repeated, std::int64_t* to) const {
  std::int64_t count = 0;
  std::int32_t behind = kNone;
  for (std::int32_t n = leaves_[number]; nodes_[n].parent != kNone; n = nodes_[n].parent) {
    if (!merge_repeated || nodes_[n].label != behind) to[count++] = nodes_[n].label;
    behind = nodes_[n].label;
  }
  std::reverse(to, to + count);
  return count;
}

}  // namespace syncline::ctc
