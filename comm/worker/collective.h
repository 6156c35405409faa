// Collective: one submitted collective as plain data. Header: the part of it that must be equal on all ranks.
//
// Both are values without ownership; the communicator's caller owns a collective's buffers.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include "syncline/distributed/communicator.h"

namespace syncline::comm {

enum class Kind : std::uint8_t {
  kAllReduce,
  kAllGather,
  kBroadcast,
  kReduceScatter,
  kSharedMemory,
  kNodeMemory,
  kGatherOnNodes,
};
const char* name_of(Kind kind);

// Fixed-width words without padding, so that a wire can compare headers as numbers or as bytes.
struct Header {
  std::uint32_t what = 0;  // kind, dtype and reduction, a byte each
  std::uint32_t root = 0;
  std::uint64_t plan = 0;
  std::uint64_t step = 0;
  std::uint64_t bucket = 0;
  std::uint64_t count = 0;          // elements of a reduction, bytes on all ranks otherwise
  std::uint64_t names = 0;          // the tag's
  std::uint64_t counts_digest = 0;  // digest of the counts by rank
  friend bool operator==(const Header&, const Header&) = default;
};
inline constexpr int kHeaderWords = 7;
using HeaderWords = std::array<std::uint64_t, kHeaderWords>;
static_assert(sizeof(Header) == sizeof(HeaderWords) && std::has_unique_object_representations_v<Header>);

struct Collective {
  Header header;
  Kind kind = Kind::kAllReduce;
  DType dtype = DType::kUint8;
  Reduce reduce = Reduce::kSum;
  int root = 0;
  std::int64_t count = 0;  // as in the header
  std::int64_t bytes = 0;  // all bytes that move: the whole receive buffer of an all_gather
  const void* send = nullptr;
  void* data = nullptr;
  std::span<const std::int64_t> counts;  // by rank: bytes of a gather, elements of a reduce_scatter
};
inline bool allocates(const Collective& collective) {
  return collective.kind == Kind::kSharedMemory || collective.kind == Kind::kNodeMemory;
}
inline bool is_reduction(const Collective& collective) {
  return collective.kind == Kind::kAllReduce || collective.kind == Kind::kReduceScatter;
}

// They throw ValueError or DTypeError for arguments that are wrong regardless of the other ranks.
Collective make_all_reduce(const Tag& tag, void* data, std::int64_t count, DType dtype, Reduce reduce);
Collective make_all_gather(const Tag& tag, const void* send, void* receive, std::span<const std::int64_t> byte_counts,
                           int rank, int size);
Collective make_gather_on_nodes(const Tag& tag, void* data, std::span<const std::int64_t> byte_counts, int size);
Collective make_reduce_scatter(const Tag& tag, void* data, std::span<const std::int64_t> counts, DType dtype,
                               Reduce reduce, int size);
// Moves no data; the wire allocates memory. `kind`: kSharedMemory or kNodeMemory.
Collective make_memory(Kind kind, std::size_t bytes);
Collective make_broadcast(const Tag& tag, void* data, std::int64_t bytes, int root, int size);

// This rank's index in `ranks`. Throws ValueError if `ranks` are not ascending ranks of the job, or lack this rank.
int place_in_group(std::span<const int> ranks, int rank, int size);

// "all_reduce of plan 12ab step 3 bucket 1, sum of float32 x 100"
std::string describe(const Header& header);

// ", in step 7 of plan 12ab at conv2d"; ", after step 7 of plan 12ab" if nothing is under way; "" if no position was
// published.
std::string describe_position(const Position& position);

// The error text for a rank whose header differs from that of the first rank: names the difference. If one of their
// programs has ended, says so.
std::string describe_mismatch(const Header& first, const Header& other, int first_rank, int rank);

}  // namespace syncline::comm
