#include "tests/comm/nccl_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "comm/local/local_communicator.h"
#include "comm/nccl/with_nccl.h"

namespace syncline::comm {

NcclOptions stand_in_options() {
  return {.nccl_library = SYNCLINE_STAND_IN,
          .cudart_library = SYNCLINE_STAND_IN,
          .limit = std::chrono::seconds(20),
          .smallest_bytes = kSmallBytes + 1,
          .piece_bytes = 24000,
          .slots = 3};
}

std::vector<RankEnd> run_nccl_ranks(int size, const NcclOptions& options,
                                    const std::function<void(Communicator&)>& body, const WorkerOptions& worker) {
  std::vector<std::unique_ptr<Wire>> wires = make_local_wires(size);
  std::vector<RankEnd> ends(static_cast<std::size_t>(size));
  const auto run = [&](int rank) {
    RankEnd& end = ends[static_cast<std::size_t>(rank)];
    NcclOptions own = options;
    own.local_rank = rank;
    own.tell = [&](const std::string& line) { end.told += line + "\n"; };
    try {
      WorkerCommunicator comm(with_nccl(std::move(wires[static_cast<std::size_t>(rank)]), own), worker);
      body(comm);
    } catch (const std::exception& error) {
      end.error = error.what();
      end.comm = dynamic_cast<const CommError*>(&error) != nullptr;
      end.stall = dynamic_cast<const StallError*>(&error) != nullptr;
    }
  };
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r) threads.emplace_back(run, r);
  for (std::thread& thread : threads) thread.join();
  return ends;
}

namespace {

void check_sum_at(float* data, Communicator& comm, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) data[i] = static_cast<float>(i % 1000) + static_cast<float>(comm.rank());
  comm.wait(comm.all_reduce(Tag{0xbeef, 4, 2}, data, count, DType::kFloat32, Reduce::kSum));
  const auto size = static_cast<float>(comm.size());
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < count; ++i)
    wrong += data[i] != static_cast<float>(i % 1000) * size + size * (size - 1) / 2;
  EXPECT_EQ(wrong, 0) << "of " << count << " on rank " << comm.rank();
}

}  // namespace

void check_sum(Communicator& comm, std::int64_t count) {
  check_sum_at(std::vector<float>(static_cast<std::size_t>(count)).data(), comm, count);
}

void check_shared_sum(Communicator& comm, std::int64_t count) {
  std::byte* memory = comm.shared_memory(static_cast<std::size_t>(count) * sizeof(float));
  ASSERT_NE(memory, nullptr);
  check_sum_at(reinterpret_cast<float*>(memory), comm, count);
}

}  // namespace syncline::comm
