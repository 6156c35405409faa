#include "comm/worker/collective.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <sstream>
#include <string_view>

namespace syncline::comm {
namespace {

constexpr std::array kKindNames{"all_reduce",    "all_gather",  "broadcast",      "reduce_scatter",
                                "shared_memory", "node_memory", "gather_on_nodes"};
constexpr std::array kReduceNames{"sum", "max", "min"};

// A rank of another byte order sends numbers out of range.
bool is_readable(const Header& header) {
  return (header.what & 0xff) < kKindNames.size() &&
         (header.what >> 8 & 0xff) <= static_cast<std::uint32_t>(DType::kFloat64) &&
         header.what >> 16 < kReduceNames.size();
}
Kind kind_of(const Header& header) { return static_cast<Kind>(header.what & 0xff); }
DType dtype_of(const Header& header) { return static_cast<DType>(header.what >> 8 & 0xff); }
Reduce reduce_of(const Header& header) { return static_cast<Reduce>(header.what >> 16 & 0xff); }

std::uint32_t pack_what(const Collective& collective) {
  return static_cast<std::uint32_t>(collective.kind) | static_cast<std::uint32_t>(collective.dtype) << 8 |
         static_cast<std::uint32_t>(collective.reduce) << 16;
}

void fill_header(Collective& collective, const Tag& tag) {
  collective.header.what = pack_what(collective);
  collective.header.root = static_cast<std::uint32_t>(collective.root);
  collective.header.plan = tag.plan;
  collective.header.step = tag.step;
  collective.header.bucket = tag.bucket;
  collective.header.names = tag.names;
  collective.header.count = static_cast<std::uint64_t>(collective.count);
}

void check_buffer(const char* where, const void* data, std::int64_t bytes) {
  if (bytes > 0 && data == nullptr) fail(where, ": the buffer of ", bytes, " bytes is a null pointer");
}

bool has_ended(const Header& header) { return header.plan == kEndOfProgram; }

// FNV-1a over the counts. The final step mixes high bits into low ones, for short lists.
std::uint64_t digest_of(std::span<const std::int64_t> counts) {
  std::uint64_t digest = 0xcbf29ce484222325;
  for (const std::int64_t count : counts) digest = (digest ^ static_cast<std::uint64_t>(count)) * 0x100000001b3;
  return digest ^ digest >> 29;
}

std::int64_t total_of(const char* where, std::span<const std::int64_t> counts, int size) {
  if (static_cast<int>(counts.size()) != size)
    fail(where, ": ", counts.size(), " counts are given for ", size, " ranks; give one per rank");
  std::int64_t total = 0;
  for (const std::int64_t count : counts) {
    if (count < 0) fail(where, ": the count ", count, " is negative; give 0 or more");
    if (__builtin_add_overflow(total, count, &total)) fail(where, ": the sum of the counts of all ranks is too large");
  }
  return total;
}

Collective make_reduction(Kind kind, const Tag& tag, void* data, std::int64_t count, DType dtype, Reduce reduce) {
  const char* where = kKindNames.at(static_cast<std::size_t>(kind));
  if (dtype == DType::kBool) fail<DTypeError>(where, ": bool has no reduction; pass the data as uint8");
  if (dtype == DType::kFloat16) fail<DTypeError>(where, ": float16 has no reduction; add up float32 and round once");
  const auto width = static_cast<std::int64_t>(size_of(dtype));
  if (count < 0 || count > std::numeric_limits<std::int64_t>::max() / width)
    fail(where, ": the count ", count, " of ", dtype, " elements is negative or too large");
  Collective collective;
  collective.kind = kind;
  collective.dtype = dtype;
  collective.reduce = reduce;
  collective.count = count;
  collective.bytes = count * width;
  collective.data = data;
  check_buffer(where, data, collective.bytes);
  fill_header(collective, tag);
  return collective;
}

std::string name_difference(const Header& a, const Header& b) {
  if (kind_of(a) != kind_of(b)) return "the kind";
  if (a.plan != b.plan) return "the plan";
  if (a.step != b.step) return "the step";
  if (a.names != b.names) return "the purpose";
  if (a.bucket != b.bucket) return "the bucket";
  if (dtype_of(a) != dtype_of(b)) return "the dtype";
  if (reduce_of(a) != reduce_of(b)) return "the reduction";
  if (a.count != b.count) return "the count";
  if (a.root != b.root) return "the root";
  return kind_of(a) == Kind::kAllGather || kind_of(a) == Kind::kGatherOnNodes ? "the byte counts of the ranks"
                                                                              : "the counts of the ranks";
}

Collective make_gather(Kind kind, const Tag& tag, const void* send, void* receive,
                       std::span<const std::int64_t> byte_counts, int size) {
  Collective collective;
  collective.kind = kind;
  collective.bytes = collective.count = total_of(name_of(kind), byte_counts, size);
  collective.send = send;
  collective.data = receive;
  collective.counts = byte_counts;
  check_buffer(name_of(kind), receive, collective.bytes);
  fill_header(collective, tag);
  collective.header.counts_digest = digest_of(byte_counts);
  return collective;
}

}  // namespace

Collective make_all_reduce(const Tag& tag, void* data, std::int64_t count, DType dtype, Reduce reduce) {
  return make_reduction(Kind::kAllReduce, tag, data, count, dtype, reduce);
}

Collective make_reduce_scatter(const Tag& tag, void* data, std::span<const std::int64_t> counts, DType dtype,
                               Reduce reduce, int size) {
  Collective collective =
      make_reduction(Kind::kReduceScatter, tag, data, total_of("reduce_scatter", counts, size), dtype, reduce);
  collective.counts = counts;
  collective.header.counts_digest = digest_of(counts);
  return collective;
}

Collective make_memory(Kind kind, std::size_t bytes) {
  Collective collective;
  collective.kind = kind;
  collective.bytes = collective.count = static_cast<std::int64_t>(bytes);
  fill_header(collective, {});
  return collective;
}

Collective make_all_gather(const Tag& tag, const void* send, void* receive, std::span<const std::int64_t> byte_counts,
                           int rank, int size) {
  const Collective collective = make_gather(Kind::kAllGather, tag, send, receive, byte_counts, size);
  check_buffer("all_gather", send, byte_counts[static_cast<std::size_t>(rank)]);
  return collective;
}

Collective make_gather_on_nodes(const Tag& tag, void* data, std::span<const std::int64_t> byte_counts, int size) {
  return make_gather(Kind::kGatherOnNodes, tag, nullptr, data, byte_counts, size);
}

Collective make_broadcast(const Tag& tag, void* data, std::int64_t bytes, int root, int size) {
  if (root < 0 || root >= size) fail("broadcast: root ", root, " is not one of the ranks 0 to ", size - 1);
  if (bytes < 0) fail("broadcast: the size of ", bytes, " bytes is negative");
  Collective collective;
  collective.kind = Kind::kBroadcast;
  collective.root = root;
  collective.count = bytes;
  collective.bytes = bytes;
  collective.data = data;
  check_buffer("broadcast", data, bytes);
  fill_header(collective, tag);
  return collective;
}

const char* name_of(Kind kind) { return kKindNames.at(static_cast<std::size_t>(kind)); }

int place_in_group(std::span<const int> ranks, int rank, int size) {
  int place = -1;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] < 0 || ranks[i] >= size)
      fail("group: rank ", ranks[i], " does not exist; the ranks are 0 to ", size - 1);
    if (i > 0 && ranks[i] <= ranks[i - 1])
      fail("group: rank ", ranks[i], " follows rank ", ranks[i - 1], "; give ascending ranks, each once");
    if (ranks[i] == rank) place = static_cast<int>(i);
  }
  if (place < 0) fail("group: rank ", rank, " is not among the group's ranks; only the group's ranks may call group");
  return place;
}

std::string describe(const Header& header) {
  if (!is_readable(header))
    return join_text("an unreadable call (", std::hex, header.what,
                     ") from a processor with another byte order or from another version of Syncline");
  if (has_ended(header)) return "the other ranks' programs to end";
  const Kind kind = kind_of(header);
  std::ostringstream text;
  text << name_of(kind) << " of plan " << std::hex << header.plan << std::dec << " step " << header.step << " bucket "
       << header.bucket;
  if (header.names != 0) text << " (" << names_of(header.names) << ')';
  text << ", ";
  if (kind == Kind::kAllReduce || kind == Kind::kReduceScatter)
    text << kReduceNames.at(static_cast<std::size_t>(reduce_of(header))) << " of " << dtype_of(header) << " x "
         << header.count;
  else text << header.count << " bytes";
  if (kind == Kind::kBroadcast) text << " from rank " << header.root;
  return text.str();
}

std::string describe_position(const Position& position) {
  if (position.plan == 0) return "";
  const std::string_view what(position.what.data(), strnlen(position.what.data(), position.what.size()));
  std::ostringstream text;
  text << (what.empty() ? ", after step " : ", in step ") << position.step << " of plan " << std::hex << position.plan;
  if (!what.empty()) text << " at " << what;
  return text.str();
}

std::string describe_mismatch(const Header& first, const Header& other, int first_rank, int rank) {
  SYNCLINE_CHECK(first != other);
  if (has_ended(first) || has_ended(other)) {
    const auto [ended, goes_on] = has_ended(first) ? std::pair(first_rank, rank) : std::pair(rank, first_rank);
    return join_text("the program of rank ", ended, " has ended, while rank ", goes_on, " goes on with ",
                     describe(has_ended(first) ? other : first),
                     "; every rank must run the same functions in the same order");
  }
  return join_text("ranks disagree about ", name_difference(first, other), " of a collective: ", describe(first),
                   " on rank ", first_rank, ", but ", describe(other), " on rank ", rank,
                   "; every rank must run the same functions in the same order on equal graphs");
}

}  // namespace syncline::comm
