// A group of elementwise ops over one iteration space. It runs block by block, so intermediate results stay in the
// first-level cache. Every elementwise op runs through this interface, alone or in a group.
//
// `fuse` creates a program once. Running a program allocates nothing, checks nothing and needs 0.25 MiB of stack,
// besides what its sources need; several threads may run it with different buffers. An output may share the buffer of
// an input of equal size if FusedSpec::overwrites declares it.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "ops/graph/op.h"
#include "ops/kernels/epilogue.h"

namespace syncline::kernels {

// An operand that is computed a block at a time (FusedProgram::Input::kComputed).
class BlockSource {
 public:
  virtual ~BlockSource() = default;
  // Writes elements [begin, begin + count). Several threads may call it at the same time.
  virtual void read(std::int64_t begin, std::int64_t count, void* to) const = 0;
};

struct FusedProgram {
  // How an operand maps to the iteration space.
  struct Input {
    enum Spread : std::uint8_t {
      kFull,      // element by element
      kScalar,    // one broadcast element
      kPeriodic,  // its elements repeat (a bias over rows)
      kStrided,   // any other broadcast, or a strided view
      kComputed,  // element by element; the operand is a BlockSource
    };
    Spread spread = kFull;
    std::uint8_t element = 4;          // bytes
    std::int64_t offset = 0;           // position of its first element
    int buffer = -1;                   // buffer for expanded blocks; -1: read in place
    std::int64_t period = 1;           // kPeriodic: elements
    int terms = 1;                     // kComputed: values that each element is the sum of, for `work_of`
    std::int64_t step = -1;            // elements from one block to the next, or -1 if it varies
    std::vector<std::int64_t> dims;    // kStrided: the collapsed iteration space ...
    std::vector<std::int64_t> stride;  // ... and the operand's steps in it (0: broadcast)
  };
  // One op of a chain (chain.h).
  struct Link {
    std::uint8_t code = 0;
    std::int16_t in = -1;     // register of the second operand, or -1
    std::int16_t other = -1;  // of the third one
    std::int16_t out = 0;
  };
  struct Instruction {
    BlockFn fn = nullptr;
    std::array<std::int16_t, 3> in{};  // registers
    std::int16_t out = 0;
    std::vector<Link> links{};  // replaces fn: a chain of ops on in[0]
    DType dtype{};              // of a chain
  };
  // Registers: the inputs, then one per op result.
  struct Result {
    int buffer = -1;  // a temporary buffer, or
    int output = -1;  // an output that is written directly; both -1: passed on inside a chain
    std::uint8_t element = 4;
    Input place{};  // position of the elements within the output
  };
  // A copy at the end of a block: for outputs whose memory holds an operand until then, and for parts of larger
  // outputs.
  struct Store {
    int reg = 0;
    int output = 0;
    Input place{};  // position of the elements within the output
  };

  // An operand of a reduction: a result or an input, each kFull. Exactly one of the indices is not -1.
  struct Reduced {
    int output = -1;
    bool stored = false;  // whether the output is one of the program's own; otherwise only the reduction reads it
    int input = -1;
  };

  std::int64_t size = 0;   // elements of the iteration space
  std::int64_t block = 0;  // elements of a block
  double cost = 1;         // nanoseconds per element
  std::vector<Input> inputs;
  std::vector<Instruction> code;
  std::vector<Result> results;
  std::vector<Store> stores;
  std::vector<Reduced> reduced;  // set by the caller of `fuse`; outputs that are not stored are the last ones
};

inline constexpr int kFusedBuffers = 56;       // temporaries and expanded operands of one program
inline constexpr int kFusedBlockBytes = 4096;  // of one buffer
inline constexpr int kFusedRegisters = 96;
inline constexpr std::size_t kMostReduced = 4;  // operands of reductions

// The operands of an elementwise op: results of earlier ops (>= 0) or inputs (~index). A fourth one throws
// std::out_of_range.
class FusedOperands {
 public:
  FusedOperands() = default;
  FusedOperands(std::initializer_list<int> operands) {
    for (const int operand : operands) push_back(operand);
  }
  void push_back(int operand) { operands_.at(count_++) = operand; }
  std::size_t size() const { return count_; }
  int operator[](std::size_t i) const { return operands_[i]; }
  int* begin() { return operands_.data(); }
  int* end() { return begin() + count_; }
  const int* begin() const { return operands_.data(); }
  const int* end() const { return begin() + count_; }

 private:
  std::array<int, 3> operands_{};
  std::size_t count_ = 0;
};

// One elementwise op of the group.
struct FusedNode {
  const OpDef* op = nullptr;
  std::shared_ptr<const void> attrs;
  FusedOperands operands;
  Meta out;
};

struct FusedSpec {
  Shape space;               // the iteration space: the shape of every node's value
  std::vector<Meta> inputs;  // local metas; they broadcast to `space`
  // The position of each input that is a strided view onto a larger value; its elements are contiguous along the last
  // axis with more than one element. Empty, or one entry per input; an entry without strides means C order.
  std::vector<StridedView> strided_views{};
  std::vector<FusedNode> nodes;
  std::vector<int> outputs;  // indices of nodes; -1: assembled from `parts`
  // The input whose memory output j overwrites, or -1. Empty: no output overwrites an input.
  std::vector<int> overwrites;
  // A node that writes a part of a larger output. The elements are contiguous along the last axis with more than one
  // element.
  struct Part {
    int node = 0;
    int output = 0;
    StridedView view;
  };
  std::vector<Part> parts{};

  const Meta& meta_of(int operand) const {
    return operand >= 0 ? nodes[static_cast<std::size_t>(operand)].out : inputs[static_cast<std::size_t>(~operand)];
  }
};

// Creates the program of `spec`. Throws InternalError if it needs more than kFusedBuffers buffers or kFusedRegisters
// registers; plans keep groups below these limits.
FusedProgram fuse(FusedSpec spec);

// The program's operand, which has its elements one by one, becomes kComputed. Call it before the first run.
void compute_by_blocks(FusedProgram& program, std::size_t operand, int terms);

// True if a program over `space` takes the operand as it lies in memory: whole, one number, a row for all rows, or one
// number a long row. A program expands other operands block by block, which takes about as long as to read them.
bool is_read_in_place(const Meta& operand, const Shape& space);

void run_fused(const FusedProgram& program, const void* const* in, void* const* out);

// Computes elements [begin, end). `out`: where element 0 of each output lies or would lie.
void run_fused(const FusedProgram& program, const void* const* in, void* const* out, std::int64_t begin,
               std::int64_t end);

// The epilogue that runs a program. Borrows the program and the arrays of its operands and outputs.
class ProgramEpilogue final : public Epilogue {
 public:
  ProgramEpilogue(const FusedProgram& program, const void* const* in, void* const* out)
      : program_(program), in_(in), out_(out) {}
  void run(std::int64_t begin, std::int64_t end) const override { run_fused(program_, in_, out_, begin, end); }

 private:
  const FusedProgram& program_;
  const void* const* in_;
  void* const* out_;
};

// Of one run over all elements, with its reductions but without their results.
Work work_of(const FusedProgram& program);

// True if element i of the outputs depends on element i of the operands only, at that index in their memory: every
// operand and output is a single element or is C-ordered like the iteration space.
bool by_element(const FusedProgram& program);

}  // namespace syncline::kernels
