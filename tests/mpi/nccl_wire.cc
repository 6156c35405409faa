// Ranks as processes with large all-reduces over NCCL: `mpirun -np N nccl_wire [HOW]`. It uses the machine's GPUs, or
// the stand-in (tests/comm/nccl_stand_in) if SYNCLINE_NCCL_LIBRARY and SYNCLINE_CUDART_LIBRARY name it.
//
// HOW is `check` (the default): the checks of tests/comm. `time`: these, and the bandwidths with and without NCCL.
// `auto` or another transport: three all-reduces as in a program, with a short wait limit. `group`: one in a group of
// all ranks but the first. `check` and `time` exit with 77 if NCCL cannot be used.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "comm/mpi/mpi_communicator.h"
#include "syncline/distributed/exit_codes.h"
#include "syncline/distributed/make_communicator.h"
#include "syncline/distributed/settings.h"
#include "tests/comm/collective_checks.h"

namespace syncline::comm {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr int kCannot = 77;

std::unique_ptr<Communicator> make(UseNccl nccl) {
  MpiOptions options;
  options.worker.wait_limit = 60s;
  options.nccl = nccl;
  options.verbose = true;
  return make_mpi_communicator(options);
}

TEST(NcclWire, AllReduce) { check_all_reduce(*make(UseNccl::kRequired), {1, 300007, 1200011}); }
TEST(NcclWire, EqualBits) { check_equal_bits(*make(UseNccl::kRequired)); }
TEST(NcclWire, DoneWithoutWait) { check_done(*make(UseNccl::kRequired)); }
TEST(NcclWire, SharedMemory) {
  const auto comm = make(UseNccl::kRequired);
  for (const std::int64_t count : {1 << 20, 3 << 20, 1 << 19}) {
    auto* data = reinterpret_cast<float*>(comm->shared_memory(static_cast<std::size_t>(count) * sizeof(float)));
    ASSERT_NE(data, nullptr);
    std::fill_n(data, count, 1.f);
    comm->wait(comm->all_reduce({}, data, count, DType::kFloat32, Reduce::kSum));
    EXPECT_EQ(std::count(data, data + count, static_cast<float>(comm->size())), count);
  }
}
TEST(NcclWire, OtherCollectives) {
  const auto comm = make(UseNccl::kRequired);
  check_all_gather(*comm);
  check_broadcast(*comm);
  check_many_tickets(*comm);
}

// The median time of nine all-reduces, in seconds.
double seconds_of(Communicator& comm, float* data, std::int64_t count) {
  std::vector<double> times;
  for (int i = 0; i < 9; ++i) {
    std::fill_n(data, count, 1.f);
    comm.barrier();
    const auto begin = Clock::now();
    comm.wait(comm.all_reduce({}, data, count, DType::kFloat32, Reduce::kSum));
    times.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    if (data[count - 1] != static_cast<float>(comm.size())) fail<CommError>("nccl_wire: wrong sum ", data[count - 1]);
  }
  std::nth_element(times.begin(), times.begin() + 4, times.end());
  return times[4];
}

// Prints the GB/s of all-reduces in shared memory and in ordinary memory.
void time_all(const char* name, UseNccl nccl) {
  const auto comm = make(nccl);
  for (const std::int64_t mebibytes : {1, 4, 16, 64, 256}) {
    const std::int64_t count = mebibytes << 18;
    std::vector<float> ordinary(static_cast<std::size_t>(count));
    auto* shared = reinterpret_cast<float*>(comm->shared_memory(ordinary.size() * sizeof(float)));
    const double gigabytes = static_cast<double>(count) * 4e-9;
    const double copied = gigabytes / seconds_of(*comm, ordinary.data(), count);
    const double direct = shared == nullptr ? copied : gigabytes / seconds_of(*comm, shared, count);
    if (comm->rank() == 0)
      std::printf("all_reduce of %3d MiB %s NCCL: %8.2f GB/s in shared memory, %8.2f GB/s in other memory\n",
                  static_cast<int>(mebibytes), name, direct, copied);
  }
}

int run_as_program(const std::string& transport) {
  CommOptions options;
  options.transport = parse_transport(transport);
  options.verbose = true;
  options.worker.wait_limit = 6s;
  const auto time = [](Communicator& comm) {
    if (comm.rank() == 0) std::printf("[%s; %d share variables]\n", comm.layout().c_str(), comm.node_place().most);
    for (int i = 0; i < 3; ++i) {
      std::vector<float> data(1 << 20, 1.f);
      comm.wait(comm.all_reduce(Tag{0xbeef, 4, 2}, data.data(), 1 << 20, DType::kFloat32, Reduce::kSum));
      if (data.back() != static_cast<float>(comm.size())) fail<CommError>("nccl_wire: wrong sum ", data.back());
    }
  };
  return run_job(
      "nccl_wire", [&] { return options; }, time);
}

int run_in_group() {
  const auto job = make(UseNccl::kRequired);
  if (job->rank() == 0) return 0;
  std::vector<int> others(static_cast<std::size_t>(job->size()) - 1);
  std::iota(others.begin(), others.end(), 1);
  std::vector<float> data(1 << 20, 1.f);
  const auto group = job->group(others);
  group->wait(group->all_reduce({}, data.data(), 1 << 20, DType::kFloat32, Reduce::kSum));
  return 0;
}

int run(const std::string& how) {
  if (how == "group") return run_in_group();
  if (how != "check" && how != "time") return run_as_program(how);
  const auto world = make(UseNccl::kNever);  // keeps MPI alive between the tests
  try {
    make(UseNccl::kRequired);
  } catch (const CommError& error) {
    if (world->rank() == 0) std::fprintf(stderr, "nccl_wire: %s\n", error.what());
    return kCannot;
  }
  if (world->rank() != 0) GTEST_FLAG_SET(brief, true);
  if (const int code = RUN_ALL_TESTS(); code != 0) return code;
  if (how == "time") {
    time_all("with", UseNccl::kRequired);
    time_all("without", UseNccl::kNever);
  }
  return 0;
}

}  // namespace
}  // namespace syncline::comm

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  try {
    return syncline::comm::run(argc < 2 ? "check" : argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "nccl_wire: %s\n", error.what());
    return syncline::exit_code_of(error);
  }
}
