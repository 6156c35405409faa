// A chain of elementwise ops over one iteration space, run block by block so that what lies between the ops never
// leaves the first-level cache. Every elementwise op runs through this, alone or in company.
//
// A program is made once (fuse) and run many times; running allocates nothing, checks nothing, and may be done by
// several threads with different buffers. Outputs may be the buffers of inputs of the same size (in place) where
// `in_place_safe` says so.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ops/graph/op.h"

namespace syncline::kernels {

struct FusedProgram {
  // How an operand covers the iteration space.
  struct Input {
    enum Spread : std::uint8_t {
      kFull,      // element by element
      kScalar,    // one element for all
      kPeriodic,  // its elements again and again (a bias over rows)
      kStrided,   // any other broadcast, or a window
    };
    Spread spread = kFull;
    std::uint8_t element = 4;          // bytes
    std::int64_t offset = 0;           // of its first element
    int buffer = -1;                   // where blocks of it are laid out, if not read in place
    std::int64_t period = 1;           // kPeriodic: elements
    std::int64_t step = -1;            // elements from each block to the next, if always as many
    std::vector<std::int64_t> dims;    // kStrided: the collapsed iteration space ...
    std::vector<std::int64_t> stride;  // ... and the operand's steps in it (0: broadcast)
  };
  // One op of a chain (chain.h).
  struct Link {
    std::uint8_t code = 0;
    std::int16_t in = -1;  // the register that it takes beside the chain's value, or -1
    std::int16_t out = 0;
  };
  struct Instruction {
    BlockFn fn = nullptr;
    std::shared_ptr<const void> attrs;
    std::array<std::int16_t, 3> in{};  // registers
    std::int16_t out = 0;
    std::vector<Link> links{};  // instead of fn: a chain of ops on in[0]
    DType dtype{};              // of a chain
  };
  // Registers: the inputs, then one for each op's result.
  struct Result {
    int buffer = -1;  // a temporary, or
    int output = -1;  // written where it belongs; neither: handed on within a chain
    std::uint8_t element = 4;
    Input place{};  // of an output: how the elements cover it
  };
  // Copied at the end of a block: outputs in whose memory an operand is read until then, and parts of larger outputs.
  struct Store {
    int reg = 0;
    int output = 0;
    Input place{};  // how the elements cover the output
  };

  std::int64_t size = 0;   // elements of the iteration space
  std::int64_t block = 0;  // elements of a block
  double cost = 1;         // nanoseconds an element
  std::vector<Input> inputs;
  std::vector<Instruction> code;
  std::vector<Result> results;
  std::vector<Store> stores;
};

inline constexpr int kFusedBuffers = 56;       // temporaries and laid-out operands of one program
inline constexpr int kFusedBlockBytes = 4096;  // of one of them
inline constexpr int kFusedRegisters = 96;

// One elementwise op of the chain: operands are results of earlier ones (>= 0) or inputs (~index).
struct FusedNode {
  const OpDef* op = nullptr;
  std::shared_ptr<const void> attrs;
  std::vector<int> operands;
  Meta out;
};

struct FusedSpec {
  Shape space;               // the iteration space: the shape of every node's value
  std::vector<Meta> inputs;  // local metas; they broadcast to `space`
  // Of an input that is a window onto a larger value: where its elements lie there (along the last axis of more than
  // one element side by side). Empty, or one an input; without strides: as C-ordered.
  std::vector<StridedWindow> windows{};
  std::vector<FusedNode> nodes;
  std::vector<int> outputs;  // indices of nodes; -1: made of parts
  // The input whose memory output j will overwrite, or -1. Empty: none does.
  std::vector<int> overwrites;
  // Parts of larger outputs: where the elements of a node lie in one of them, side by side along the last axis of more
  // than one element.
  struct Part {
    int node = 0;
    int output = 0;
    StridedWindow window;
  };
  std::vector<Part> parts{};
};

// How many buffers a chain of so many nodes and inputs may need at most; a plan keeps groups below kFusedBuffers.
FusedProgram fuse(const FusedSpec& spec);

void run_fused(const FusedProgram& program, const void* const* in, void* const* out);

// Elements [begin, end) of the iteration space alone, of a program that is by_element: its operands are single elements
// or lie as the iteration space does, and so do its outputs.
bool by_element(const FusedProgram& program);
void run_fused(const FusedProgram& program, const void* const* in, void* const* out, std::int64_t begin,
               std::int64_t end);

}  // namespace syncline::kernels
