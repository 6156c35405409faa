#include "benchmarks/collectives/contenders.h"

#include <mpi.h>
#include <sched.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "comm/mpi/mpi_session.h"
#include "syncline/error.h"

namespace syncline::benchmarks {
namespace {

using comm::check_mpi;

class Syncline : public Contender {
 public:
  Syncline(comm::Communicator& comm, float* shared, std::int64_t bytes)
      : comm_(comm), elsewhere_(shared == nullptr ? bytes / sizeof(float) : 0) {
    data_ = shared == nullptr ? elsewhere_.data() : shared;
  }
  float* data() override { return data_; }
  void call(std::int64_t count) override {
    comm_.wait(comm_.all_reduce({}, data_, count, DType::kFloat32, comm::Reduce::kSum));
  }

 protected:
  comm::Communicator& comm_;

 private:
  std::vector<float> elsewhere_;
  float* data_ = nullptr;
};

class Gather : public Syncline {
 public:
  using Syncline::Syncline;
  void call(std::int64_t count) override {
    const std::int64_t ranks = comm_.size(), each = count / ranks;
    counts_.assign(static_cast<std::size_t>(ranks), each * static_cast<std::int64_t>(sizeof(float)));
    comm_.wait(comm_.all_gather({}, data() + comm_.rank() * each, data(), counts_));
  }

 private:
  std::vector<std::int64_t> counts_;
};

class RawMpi : public Contender {
 public:
  explicit RawMpi(std::int64_t bytes) : data_(bytes / sizeof(float)) {}
  float* data() override { return data_.data(); }
  void call(std::int64_t count) override {
    check_mpi(MPI_Allreduce(MPI_IN_PLACE, data_.data(), static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD),
              "MPI_Allreduce", "timing");
  }

 private:
  const std::shared_ptr<comm::MpiSession> session_ = comm::MpiSession::join();
  std::vector<float> data_;
};

// One cache line per rank.
struct alignas(64) Arrived {
  std::atomic<std::int64_t> times{0};
};

// Elements of a tile. Each tile is summed in the first-level cache, then written to all buffers.
constexpr std::int64_t kTile = 2048;

#define SYNCLINE_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))

SYNCLINE_CLONES void add_two(float* __restrict a, float* __restrict b, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float sum = a[i] + b[i];
    a[i] = sum;
    b[i] = sum;
  }
}

SYNCLINE_CLONES void add_to(float* __restrict sum, const float* __restrict more, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) sum[i] += more[i];
}

void add_all(const std::vector<float*>& buffers, std::int64_t first, std::int64_t last) {
  if (buffers.size() == 2) return add_two(buffers[0] + first, buffers[1] + first, last - first);
  float tile[kTile];
  for (; first < last; first += kTile) {
    const std::int64_t count = std::min(kTile, last - first);
    const auto bytes = static_cast<std::size_t>(count) * sizeof(float);
    std::memcpy(tile, buffers[0] + first, bytes);
    for (std::size_t r = 1; r < buffers.size(); ++r) add_to(tile, buffers[r] + first, count);
    for (float* buffer : buffers) std::memcpy(buffer + first, tile, bytes);
  }
}

class Window : public Contender {
 public:
  Window(MPI_Comm node, std::int64_t bytes);
  ~Window() override {
    MPI_Win_free(&window_);
    MPI_Comm_free(&node_);
  }
  float* data() override { return buffers_[rank_]; }
  void call(std::int64_t count) override {
    meet();
    const auto slice = [&](std::int64_t r) { return std::min(count, (count * r / size_ + 15) / 16 * 16); };
    add_all(buffers_, slice(rank_), rank_ + 1 == size_ ? count : slice(rank_ + 1));
    meet();
  }

 private:
  void meet();

  const std::shared_ptr<comm::MpiSession> session_ = comm::MpiSession::join();
  MPI_Comm node_;
  MPI_Win window_ = MPI_WIN_NULL;
  int rank_ = 0, size_ = 0;
  std::int64_t meetings_ = 0;
  std::vector<float*> buffers_;
  std::vector<Arrived*> arrived_;
};

Window::Window(MPI_Comm node, std::int64_t bytes) : node_(node) {
  check_mpi(MPI_Comm_rank(node_, &rank_), "MPI_Comm_rank", "the window");
  check_mpi(MPI_Comm_size(node_, &size_), "MPI_Comm_size", "the window");
  MPI_Info info = MPI_INFO_NULL;
  check_mpi(MPI_Info_create(&info), "MPI_Info_create", "the window");
  check_mpi(MPI_Info_set(info, "alloc_shared_noncontig", "true"), "MPI_Info_set", "the window");
  // MPI does not align a rank's part; each rank rounds its start up to a page.
  constexpr std::uintptr_t kPage = 4096;
  void* own = nullptr;
  check_mpi(MPI_Win_allocate_shared(bytes + 2 * kPage, 1, info, node_, &own, &window_), "MPI_Win_allocate_shared",
            "the window");
  check_mpi(MPI_Info_free(&info), "MPI_Info_free", "the window");
  for (int r = 0; r < size_; ++r) {
    MPI_Aint part_bytes = 0;
    int unit = 0;
    void* part = nullptr;
    check_mpi(MPI_Win_shared_query(window_, r, &part_bytes, &unit, &part), "MPI_Win_shared_query", "the window");
    // A part has the same offset within a page on every rank, so all ranks round it to the same byte.
    auto* page = reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(part) + kPage - 1) / kPage * kPage);
    arrived_.push_back(r == rank_ ? new (page) Arrived : reinterpret_cast<Arrived*>(page));
    buffers_.push_back(reinterpret_cast<float*>(page + kPage));
  }
  check_mpi(MPI_Barrier(node_), "MPI_Barrier", "the window");
}

// A barrier: each rank publishes how many barriers it has reached and waits for the others. A waiting rank yields,
// because there may be more ranks than cores.
void Window::meet() {
  ++meetings_;
  arrived_[rank_]->times.store(meetings_, std::memory_order_release);
  for (Arrived* other : arrived_)
    for (int looks = 0; other->times.load(std::memory_order_acquire) < meetings_; ++looks)
      if (looks > 1000) sched_yield();
}

// True if /dev/shm, where Open MPI keeps windows, has `bytes` free; collective. The allocation of a larger window would
// block some ranks forever.
bool fits(MPI_Comm node, std::int64_t bytes) {
  struct statvfs there {};
  const bool known = statvfs("/dev/shm", &there) == 0;
  int here = known && static_cast<std::int64_t>(there.f_bavail * there.f_frsize) > bytes ? 1 : 0, everywhere = 0;
  check_mpi(MPI_Allreduce(&here, &everywhere, 1, MPI_INT, MPI_MIN, node), "MPI_Allreduce", "the window");
  return everywhere == 1;
}

}  // namespace

std::unique_ptr<Contender> make_syncline(comm::Communicator& comm, std::int64_t bytes) {
  auto* shared = reinterpret_cast<float*>(comm.shared_memory(static_cast<std::size_t>(bytes)));
  return std::make_unique<Syncline>(comm, shared, bytes);
}

std::unique_ptr<Contender> make_copied(comm::Communicator& comm, std::int64_t bytes) {
  return std::make_unique<Syncline>(comm, nullptr, bytes);
}

std::unique_ptr<Contender> make_gather(comm::Communicator& comm, std::int64_t bytes) {
  auto* shared = reinterpret_cast<float*>(comm.shared_memory(static_cast<std::size_t>(bytes)));
  return std::make_unique<Gather>(comm, shared, bytes);
}

std::unique_ptr<Contender> make_mpi(std::int64_t bytes) { return std::make_unique<RawMpi>(bytes); }

std::unique_ptr<Contender> make_window(std::int64_t bytes) {
  MPI_Comm node = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node), "MPI_Comm_split_type",
            "the window");
  int here = 0, all = 0;
  check_mpi(MPI_Comm_size(node, &here), "MPI_Comm_size", "the window");
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &all), "MPI_Comm_size", "the window");
  if (here < all || !fits(node, (bytes + (1 << 20)) * all)) {
    check_mpi(MPI_Comm_free(&node), "MPI_Comm_free", "the window");
    return nullptr;
  }
  return std::make_unique<Window>(node, bytes);
}

void barrier() { check_mpi(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier", "timing"); }

double largest(double value) {
  double most = 0;
  check_mpi(MPI_Allreduce(&value, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD), "MPI_Allreduce", "timing");
  return most;
}

}  // namespace syncline::benchmarks
