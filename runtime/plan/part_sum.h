// A sum over the rows of a batch by an op that knows no parts: the op runs once for each part of this rank's rows, and
// the results are added along the tree of ops/kernels/part_tree.h.
//
// Made with the plan; a run allocates nothing. One thread at a time runs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ops/graph/op.h"

namespace syncline {

// The elements before `row` of a dimension whose size is a multiple of the number of rows.
constexpr std::int64_t elements_before(std::int64_t row, std::int64_t rows, std::int64_t size) {
  return rows == 0 ? 0 : size / rows * row;
}

class PartSum {
 public:
  // `in`, `out`: the op's metas on this rank; it has one output. `axes`: the axis of each input that has the rows, or
  // -1. `begin`: where the parts begin among this rank's rows, then the number of rows; there are at least two parts.
  PartSum(const OpDef& op, const void* attrs, std::span<const Meta> in, const Meta& out, std::vector<int> axes,
          std::vector<std::int64_t> begin);

  std::size_t scratch_bytes() const { return scratch_bytes_; }
  // `args`: of all rows, with `scratch_bytes` of scratch memory.
  void run(const KernelArgs& args);

 private:
  const void* cut(std::size_t input, std::size_t part, const KernelArgs& args) const;
  std::size_t parts() const { return begin_.size() - 1; }

  const OpDef& op_;
  const void* const attrs_;
  const std::vector<int> axes_;
  const std::vector<std::int64_t> begin_;
  const Meta out_;
  std::vector<std::vector<Meta>> in_;   // of each part
  std::vector<std::size_t> copies_at_;  // in the scratch: of each input, its rows of a part if they must be copied
  std::size_t op_scratch_at_ = 0;       // the op's scratch
  std::size_t scratch_bytes_ = 0;
  std::vector<const void*> pointers_;  // of the part's inputs; set by each run
};

}  // namespace syncline
