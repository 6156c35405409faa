// A beam search over label sequences (Graves, 2012): after each step the `width` likeliest sequences stay, each with
// the probability of the alignments that end in a blank and of those that do not.
//
// Sequences share their beginnings in a tree, which lies in memory of the caller: nothing is allocated.
#pragma once

#include <cstddef>
#include <cstdint>

namespace syncline::ctc {

class BeamSearch {
 public:
  // Bytes of memory for sequences of up to `time` steps.
  static std::size_t memory(std::int64_t time, std::int64_t classes, std::int64_t width);

  BeamSearch(void* memory, std::int64_t time, std::int64_t classes, std::int64_t width);

  // One more step, of which `scores` are the classes' log probabilities; the blank comes last.
  void advance(const double* scores);
  // How many sequences there are. Number 0 is the likeliest.
  std::int64_t size() const { return leaves_count_; }
  double log_probability(std::int64_t number) const;
  // Writes the sequence's labels and returns how many they are. With `merge_repeated` equal neighbours become one.
  std::int64_t labels(std::int64_t number, bool merge_repeated, std::int64_t* to) const;

 private:
  struct Node {
    std::int32_t parent, label, first_child, sibling;
    double old_blank, old_total;  // before the step: of alignments that end in a blank, and of all
    double blank, ended, total;   // after it; `ended`: those that end in the last label
    bool active;                  // among the sequences that stay
  };
  // A sequence that may stay: a node, or a child that is not one yet.
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
  Candidate* heap_;        // its first is the worst
  std::int32_t* leaves_;   // the likeliest first
  std::uint8_t* is_leaf_;  // of a parent's child, by its label
};

}  // namespace syncline::ctc
