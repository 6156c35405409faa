// A chain of elementwise ops: each op takes the result of the previous one. One pass over a block keeps that result in
// vector registers. Every op rounds as it does alone.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "syncline/dtype.h"

namespace syncline::kernels {

inline constexpr int kLongestChain = 16;  // links

// The operands of a link beside the chain's value, and their sides.
enum class Beside : std::uint8_t {
  kNothing,
  kBlock,        // value op block
  kBlockFirst,   // block op value
  kNumber,       // value op number
  kNumberFirst,  // number op value
  kItself,       // value op value
  kBlocks,       // value ? block : block
  kBlockNumber,  // value ? block : number
  kNumberBlock,  // value ? number : block
  kNumbers,      // value ? number : number
};

// True if ops of that name and dtype can be links of a chain.
bool is_chain_op(std::string_view op, DType dtype);
// True if the op compares. Its result is a link's value if the next link is `select` with that condition: a mask, which
// fills as many bytes as an operand. The operands are float32 or float64.
bool gives_mask(std::string_view op);
// True for `select`, a link only behind such a comparison.
bool takes_mask(std::string_view op);
// The time that a chain op takes for an element, in additions. Undefined for other ops.
int chain_op_additions(std::string_view op);
// Returns the code of a link. Undefined for other ops.
std::uint8_t chain_code(std::string_view op, Beside beside);

struct ChainLink {  // no initializers: arrays of links are created for every block
  std::uint8_t code;
  const void* x;  // a block's elements, a number, or null
  const void* y;  // of select: where the condition is false
  void* store;    // destination of this link's results, or null
};

// Applies the links (at most kLongestChain) in order to the n elements of `first`, of dtype float32 or float64. `store`
// may equal `first` or an operand of the same or an earlier link.
void run_chain(DType dtype, const void* first, std::span<const ChainLink> links, std::int64_t n);

}  // namespace syncline::kernels
