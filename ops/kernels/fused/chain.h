// Elementwise ops each of which takes the result of the one before: one pass over a block, in which that result stays
// in vector registers. Every op rounds as it does alone.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "syncline/dtype.h"

namespace syncline::kernels {

inline constexpr int kLongestChain = 16;  // links

// What an op of a chain takes beside the chain's value, and on which side.
enum class Beside : std::uint8_t {
  kNothing,
  kBlock,        // value op block
  kBlockFirst,   // block op value
  kNumber,       // value op number
  kNumberFirst,  // number op value
  kItself,       // value op value
};

// Whether ops of that name and dtype can be links of a chain.
bool is_chain_op(std::string_view op, DType dtype);
// The link's code. Undefined where is_chain_op says no.
std::uint8_t chain_code(std::string_view op, Beside beside);

struct ChainLink {  // without initial values: arrays of them are made for every block
  std::uint8_t code;
  const void* x;  // a block's elements, a number, or null
  void* store;    // where this link's results are wanted, or null
};

// Applies the links (at most kLongestChain) one after the other to the n elements of `first`, of the dtype float32 or
// float64. A `store` may be `first` or the x of the same or an earlier link.
void run_chain(DType dtype, const void* first, std::span<const ChainLink> links, std::int64_t n);

}  // namespace syncline::kernels
