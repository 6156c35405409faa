// Beam search over label sequences (Graves, 2012). Each step keeps the `width` most likely sequences, each with the log
// probability of the alignments that end in a blank and of those that end in a label.
//
// Sequences share their prefixes in a tree in the caller's memory; the search allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>

namespace syncline::ctc {

class BeamSearch {
 public:
  // Bytes that the constructor's `memory` needs for up to `time` steps.
  static std::size_t memory(std::int64_t time, std::int64_t classes, std::int64_t width);

  BeamSearch(void* memory, std::int64_t time, std::int64_t classes, std::int64_t width);

  // One step. `scores`: the log probability of each class, the blank last.
  void advance(const double* scores);
  // Number of kept sequences. Sequence 0 is the most likely.
  std::int64_t size() const { return leaves_count_; }
  double log_probability(std::int64_t number) const;
  // Writes the labels of a sequence and returns their number. `merge_repeated` merges equal neighbours.
  std::int64_t labels(std::int64_t number, bool merge_repeated, std::int64_t* to) const;

 private:
  struct Node {
    std::int32_t parent, label, first_child, sibling;
    double old_blank, old_total;  // before the step: alignments that end in a blank; all
    double blank, ended, total;   // after the step; `ended`: alignments that end in the last label
    bool active;                  // in the beam
  };
  // A candidate for the beam: a node, or (node < 0) a new child of `parent`.
  struct Candidate {
    double total;
    std::int32_t order, node, parent, label;
  };

  static bool better(const Candidate& a, const Candidate& b) {
    return a.total != b.total ? a.total > b.total : a.order < b.order;
  }
  std::int32_t add_node(std::int32_t parent, std::int32_t label);
  std::int32_t child(std::int32_t parent, std::int32_t label);
  void stay(Node& node, const double* scores);
  bool can_enter(double total) const;
  void offer(Candidate candidate);
  void grow(std::int32_t parent, const double* scores);
  void keep();

  std::int64_t classes_, width_, leaves_count_ = 0, heap_count_ = 0;
  std::int32_t nodes_count_ = 0, order_ = 0;
  Node* nodes_;
  Candidate* heap_;        // a heap, the worst candidate first
  std::int32_t* leaves_;   // the most likely first
  std::uint8_t* is_leaf_;  // by label, in grow(): whether that child is in the beam
};

}  // namespace syncline::ctc
