#include "tests/comm/collective_checks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>

namespace syncline::comm {
namespace {

constexpr std::array kDTypes{DType::kUint8, DType::kInt8,    DType::kInt16,  DType::kInt32,
                             DType::kInt64, DType::kFloat32, DType::kFloat64};

// Small whole numbers: their sums are exact in every dtype.
template <class T>
T value_of(std::int64_t index, int rank) {
  const auto value = static_cast<int>((index * 7 + rank * 5) % 13);
  return static_cast<T>(std::is_unsigned_v<T> ? value : value - 6);
}

template <class T>
T expected_of(std::int64_t index, int size, Reduce reduce) {
  T total = value_of<T>(index, 0);
  for (int r = 1; r < size; ++r) {
    const T next = value_of<T>(index, r);
    if (reduce == Reduce::kSum) total = static_cast<T>(total + next);
    else total = reduce == Reduce::kMax ? std::max(total, next) : std::min(total, next);
  }
  return total;
}

template <class T>
void check_one_all_reduce(Communicator& comm, DType dtype, Reduce reduce, std::int64_t count) {
  std::vector<T> data(static_cast<std::size_t>(count) + 1, T{99});
  for (std::int64_t i = 0; i < count; ++i) data[i] = value_of<T>(i, comm.rank());
  comm.wait(comm.all_reduce(Tag{1, 2, 3}, data.data(), count, dtype, reduce));
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < count; ++i) wrong += data[i] != expected_of<T>(i, comm.size(), reduce);
  EXPECT_EQ(wrong, 0) << dtype << " x " << count << " on rank " << comm.rank();
  EXPECT_EQ(data.back(), T{99}) << "written beyond the end";
}

std::vector<float> rounding_values(int rank, std::size_t count) {
  std::vector<float> values(count);
  std::uint32_t state = 12345u + 977u * static_cast<std::uint32_t>(rank);
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) * 1.37e-7f - 0.5f;
  }
  return values;
}

std::byte byte_of(int rank, std::int64_t index) { return static_cast<std::byte>((index * 31 + rank * 101 + 7) & 0xff); }

void check_one_gather(Communicator& comm, const std::vector<std::int64_t>& counts, bool in_place) {
  const std::int64_t total = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  const std::int64_t offset = std::accumulate(counts.begin(), counts.begin() + comm.rank(), std::int64_t{0});
  const std::int64_t own = counts[comm.rank()];
  std::vector<std::byte> receive(static_cast<std::size_t>(total) + 1), elsewhere(static_cast<std::size_t>(own) + 1);
  std::byte* send = in_place ? receive.data() + offset : elsewhere.data();
  for (std::int64_t i = 0; i < own; ++i) send[i] = byte_of(comm.rank(), i);
  comm.wait(comm.all_gather({}, send, receive.data(), counts));
  std::int64_t wrong = 0, at = 0;
  for (int r = 0; r < comm.size(); ++r)
    for (std::int64_t i = 0; i < counts[r]; ++i) wrong += receive[at++] != byte_of(r, i);
  EXPECT_EQ(wrong, 0) << total << " bytes on rank " << comm.rank();
}

}  // namespace

void check_all_reduce(Communicator& comm, std::vector<std::int64_t> counts) {
  for (const std::int64_t count : counts)
    for (const DType dtype : kDTypes)
      for (const Reduce reduce : {Reduce::kSum, Reduce::kMax, Reduce::kMin})
        with_dtype(dtype, [&]<class T>(T) {
          if constexpr (!std::is_same_v<T, bool>) check_one_all_reduce<T>(comm, dtype, reduce, count);
        });
}

void check_equal_bits(Communicator& comm) {
  for (const std::size_t count : {1ul, 3ul, 1000ul, 16384ul, 16385ul, 262145ul, 1000003ul}) {
    std::vector<float> first = rounding_values(comm.rank(), count), second = first;
    const auto n = static_cast<std::int64_t>(count);
    comm.wait(comm.all_reduce({}, first.data(), n, DType::kFloat32, Reduce::kSum));
    comm.wait(comm.all_reduce({}, second.data(), n, DType::kFloat32, Reduce::kSum));
    EXPECT_EQ(std::memcmp(first.data(), second.data(), 4 * count), 0) << count << " floats, second run";
    std::vector<float> of_root = first;
    comm.wait(comm.broadcast({}, of_root.data(), 4 * n, 0));
    EXPECT_EQ(std::memcmp(first.data(), of_root.data(), 4 * count), 0) << count << " floats, rank " << comm.rank();
  }
}

std::size_t left_half(std::size_t ranks) {
  const std::size_t most = std::bit_floor(ranks);
  return ranks == most || 2 * (ranks - most) < most ? most / 2 : most;
}

std::vector<float> sum_in_pairs(std::vector<std::vector<float>> terms) {
  if (terms.size() == 1) return std::move(terms[0]);
  const auto middle = terms.begin() + static_cast<std::ptrdiff_t>(left_half(terms.size()));
  std::vector<float> sum = sum_in_pairs({terms.begin(), middle});
  const std::vector<float> right = sum_in_pairs({middle, terms.end()});
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += right[i];
  return sum;
}

void check_order_of_sums(Communicator& comm) {
  for (const std::size_t count : {3ul, 16384ul, 500003ul}) {
    std::vector<std::vector<float>> terms;
    for (int r = 0; r < comm.size(); ++r) terms.push_back(rounding_values(r, count));
    std::vector<float> data = terms[static_cast<std::size_t>(comm.rank())];
    comm.wait(comm.all_reduce({}, data.data(), static_cast<std::int64_t>(count), DType::kFloat32, Reduce::kSum));
    const std::vector<float> sum = sum_in_pairs(std::move(terms));
    EXPECT_EQ(std::memcmp(data.data(), sum.data(), 4 * count), 0) << count << " floats, rank " << comm.rank();
  }
}

void check_all_gather(Communicator& comm) {
  for (const std::int64_t unit : {0, 1, 1000, 70001, 1500007}) {
    std::vector<std::int64_t> growing(comm.size()), last_only(comm.size(), 0);
    for (int r = 0; r < comm.size(); ++r) growing[r] = r * unit;
    last_only.back() = unit;
    for (const bool in_place : {false, true}) {
      check_one_gather(comm, growing, in_place);
      check_one_gather(comm, last_only, in_place);
      check_one_gather(comm, std::vector<std::int64_t>(comm.size(), unit), in_place);
    }
  }
}

void check_broadcast(Communicator& comm) {
  for (const std::int64_t bytes : {0, 1, 65536, 65537, 3000001})
    for (int root = 0; root < comm.size(); ++root) {
      std::vector<std::byte> data(static_cast<std::size_t>(bytes) + 1);
      for (std::int64_t i = 0; i < bytes; ++i) data[i] = byte_of(comm.rank(), i);
      comm.wait(comm.broadcast(Tag{0, 0, 9}, data.data(), bytes, root));
      std::int64_t wrong = 0;
      for (std::int64_t i = 0; i < bytes; ++i) wrong += data[i] != byte_of(root, i);
      EXPECT_EQ(wrong, 0) << bytes << " bytes from " << root << " on rank " << comm.rank();
    }
}

void check_many_tickets(Communicator& comm) {
  constexpr int kCollectives = 3000;
  const auto count_of = [](int i) { return i % 100 == 99 ? 20000 : i % 7; };
  std::vector<std::vector<std::int32_t>> data(kCollectives);
  std::vector<Ticket> tickets(kCollectives);
  for (int i = 0; i < kCollectives; ++i) {
    data[i].assign(count_of(i) + 1, i + comm.rank());
    const Tag tag{5, static_cast<std::uint64_t>(i), static_cast<std::uint32_t>(i % 3)};
    if (i % 2 == 0) tickets[i] = comm.broadcast(tag, data[i].data(), 4 * count_of(i), i % comm.size());
    else tickets[i] = comm.all_reduce(tag, data[i].data(), count_of(i), DType::kInt32, Reduce::kSum);
    EXPECT_TRUE(i == 0 || tickets[i] == tickets[i - 1] + 1);
  }
  comm.wait(tickets[kCollectives / 2]);
  comm.wait(tickets[3]);
  comm.wait(tickets.back());
  const int size = comm.size();
  for (int i = 0; i < kCollectives; ++i) {
    EXPECT_TRUE(comm.done(tickets[i]));
    if (count_of(i) == 0) continue;
    const int expected = i % 2 == 0 ? i + i % size : size * i + size * (size - 1) / 2;
    ASSERT_EQ(data[i].front(), expected) << "collective " << i;
    ASSERT_EQ(data[i][count_of(i) - 1], expected) << "collective " << i;
  }
}

void check_notes(Communicator& comm) {
  EXPECT_EQ(comm.take_note(), std::nullopt);
  comm.barrier();
  for (const std::uint64_t note : {7u, 5u, 7u}) comm.post_note(note + static_cast<std::uint64_t>(comm.rank()));
  comm.barrier();
  if (comm.rank() == 0) EXPECT_EQ(comm.take_note(), std::nullopt);
  else
    for (const std::uint64_t expected : {7u, 5u}) {
      std::optional<std::uint64_t> note;
      for (int i = 0; i < 5000 && !(note = comm.take_note()); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      EXPECT_EQ(note, expected);
    }
  comm.barrier();
}

void check_end_of_program(Communicator& comm) {
  if (comm.size() == 1) return;
  std::int32_t value = 0;
  const bool ends = comm.rank() == comm.size() - 1;
  const Tag tag = ends ? Tag{.plan = kEndOfProgram} : Tag{1, 2, 3};
  const Ticket ticket = comm.all_reduce(tag, &value, 1, DType::kInt32, Reduce::kMax);
  try {
    comm.wait(ticket);
    ADD_FAILURE() << "no error";
  } catch (const CommError& error) {
    const std::string text =
        "the program of rank " + std::to_string(comm.size() - 1) + " has ended, while rank 0 goes on";
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

void check_done(Communicator& comm) {
  for (const std::int64_t count : {1, 100000}) {
    std::vector<std::int64_t> data(static_cast<std::size_t>(count), 1);
    const Ticket ticket = comm.all_reduce({}, data.data(), count, DType::kInt64, Reduce::kSum);
    while (!comm.done(ticket)) std::this_thread::sleep_for(std::chrono::microseconds(100));
    EXPECT_EQ(data.front(), comm.size());
    EXPECT_EQ(data.back(), comm.size());
  }
}

void check_node_memory(std::unique_ptr<Communicator> comm) {
  const NodePlace place = comm->node_place();
  const int first = comm->rank() - place.index;  // of the node: ranks are numbered by node
  const std::vector<std::size_t> sizes{1, 100000, 3000001};
  std::vector<NodeBlock> blocks;
  const auto mark = [&](std::size_t block, int rank) {
    return static_cast<std::byte>(rank * 8 + static_cast<int>(block) + 1);
  };
  // Each rank writes every count-th byte of each block.
  const auto check = [&](std::size_t b, const auto& wanted) {
    for (std::size_t i = 0; i < sizes[b]; ++i)
      if (blocks[b].begin[i] != wanted(static_cast<int>(i % static_cast<std::size_t>(place.ranks)))) {
        ADD_FAILURE() << "block " << b << " byte " << i;
        return;
      }
  };
  for (std::size_t b = 0; b < sizes.size(); ++b) {
    blocks.push_back(comm->node_memory(sizes[b]));
    ASSERT_NE(blocks[b].begin, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(blocks[b].begin) % 4096, 0u);
    check(b, [](int) { return std::byte{}; });
    comm->barrier();
    for (std::size_t i = static_cast<std::size_t>(place.index); i < sizes[b];
         i += static_cast<std::size_t>(place.ranks))
      blocks[b].begin[i] = mark(b, comm->rank());
  }
  comm->barrier();
  comm.reset();
  for (std::size_t b = 0; b < sizes.size(); ++b) check(b, [&](int index) { return mark(b, first + index); });
}

void check_gather_on_nodes(Communicator& comm) {
  for (const std::int64_t unit : {3, comm.size() > 8 ? 50 : 5000, comm.size() > 8 ? 5000 : 400001}) {
    std::vector<std::int64_t> counts;
    for (int r = 0; r < comm.size(); ++r) counts.push_back(r == 1 ? 0 : unit * (r + 1) / 2);
    const std::int64_t total = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
    const NodeBlock block = comm.node_memory(static_cast<std::size_t>(total));
    ASSERT_NE(block.begin, nullptr);
    const auto value = [&](std::int64_t i, int round) { return static_cast<std::byte>(i * 7 + i / 251 + 31 * round); };
    const std::int64_t begin = std::accumulate(counts.begin(), counts.begin() + comm.rank(), std::int64_t{0});
    for (int round = 0; round < 3; ++round) {
      for (std::int64_t i = begin; i < begin + counts[static_cast<std::size_t>(comm.rank())]; ++i)
        block.begin[i] = value(i, round);
      comm.wait(comm.gather_on_nodes({}, block.begin, counts));
      for (std::int64_t i = 0; i < total; ++i)
        if (block.begin[i] != value(i, round)) {
          ADD_FAILURE() << "round " << round << ", unit " << unit << ", byte " << i;
          break;
        }
      comm.barrier();
    }
  }
}

const std::vector<Mismatch>& mismatches() {
  using Data = std::vector<float>;
  static const std::int64_t counts[2][8] = {{8, 4, 0, 0}, {4, 8, 0, 0}};
  const auto reduce = [](auto tag, auto count, auto dtype, auto op) {
    return [=](Communicator& c, Data& d) {
      const int odd = c.rank() == c.size() - 1 ? 1 : 0;
      return c.all_reduce(tag(odd), d.data(), count(odd), dtype(odd), op(odd));
    };
  };
  const auto tag = [](int) { return Tag{0x12ab, 3, 1}; };
  const auto count = [](int) { return 100; };
  const auto dtype = [](int) { return DType::kFloat32; };
  const auto sum = [](int) { return Reduce::kSum; };
  static const std::vector<Mismatch> all{
      {"Kind", "the kind",
       [=](Communicator& c, Data& d) {
         if (c.rank() < c.size() - 1) return c.all_reduce(tag(0), d.data(), 100, DType::kFloat32, Reduce::kSum);
         return c.broadcast(tag(0), d.data(), 100, 0);
       }},
      {"Plan", "the plan",
       reduce(
           [](int odd) {
             return Tag{0x12abu + odd, 3, 1};
           },
           count, dtype, sum)},
      {"Step", "the step",
       reduce(
           [](int odd) {
             return Tag{0x12ab, 3u + odd, 1};
           },
           count, dtype, sum)},
      {"Bucket", "the bucket",
       reduce(
           [](int odd) {
             return Tag{0x12ab, 3, 1u + odd};
           },
           count, dtype, sum)},
      {"DType", "the dtype",
       reduce(
           tag, count, [](int odd) { return odd == 0 ? DType::kFloat32 : DType::kInt32; }, sum)},
      {"Reduction", "the reduction",
       reduce(tag, count, dtype, [](int odd) { return odd == 0 ? Reduce::kSum : Reduce::kMax; })},
      {"Count", "the count",
       reduce(
           tag, [](int odd) { return 100 + odd; }, dtype, sum)},
      {"LargeCount", "the count",
       reduce(
           tag, [](int odd) { return 100000 * (1 + odd); }, dtype, sum)},
      {"Root", "the root",
       [=](Communicator& c, Data& d) { return c.broadcast(tag(0), d.data(), 100, c.rank() == c.size() - 1 ? 1 : 0); }},
      {"GatherCounts", "the byte counts", [=](Communicator& c, Data& d) {
         const auto& mine = counts[c.rank() == c.size() - 1 ? 1 : 0];
         return c.all_gather(tag(0), d.data() + 1000, d.data(), {mine, static_cast<std::size_t>(c.size())});
       }}};
  return all;
}

void check_mismatch(Communicator& comm, const Mismatch& mismatch) {
  std::vector<float> data(200000, 1.5f);
  std::string text;
  try {
    comm.wait(mismatch.call(comm, data));
  } catch (const CommError& error) {
    text = error.what();
  }
  EXPECT_NE(text.find("ranks disagree about " + mismatch.difference), text.npos) << text;
  EXPECT_NE(text.find("plan 12ab step 3 bucket 1"), text.npos) << text;
  EXPECT_NE(text.find(" on rank 0, but "), text.npos) << text;
  EXPECT_NE(text.find(join_text(" on rank ", comm.size() - 1, ";")), text.npos) << text;
  EXPECT_EQ(std::count(data.begin(), data.end(), 1.5f), static_cast<std::ptrdiff_t>(data.size()));
  std::int32_t one = 1;
  EXPECT_THROW(comm.all_reduce({}, &one, 1, DType::kInt32, Reduce::kSum), CommError);
  EXPECT_THROW(comm.wait(1), CommError);
  EXPECT_THROW(comm.done(1), CommError);
}

}  // namespace syncline::comm
