// Rendezvous: POSIX shared memory in which the ranks of one communicator of the stand-in sum their data.
//
// Ranks may be threads or processes. Data moves in chunks: a rank writes its chunk n to its area when all ranks have
// read chunk n-1, and reads all areas when all ranks have written chunk n. Sums are in rank order.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace stand_in {

inline constexpr int kMostRanks = 16;
inline constexpr std::size_t kChunkBytes = 64 << 10;

// The arguments that must be equal on all ranks.
struct Sum {
  std::uint64_t count = 0;
  int dtype = 0, reduction = 0;
  friend bool operator==(const Sum&, const Sum&) = default;
};

class Rendezvous {
 public:
  // The first rank with this name makes the memory, the last one removes the name.
  Rendezvous(const std::string& name, int rank, int size, int gpu);
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  bool all_have_come() const;
  bool gpu_is_shared() const;
  // In place. Returns an error or "". Ends early, with undefined data, once stop() is true.
  std::string all_reduce(const Sum& sum, void* data, const std::function<bool()>& stop);

 private:
  struct Place {
    std::atomic<int> gpu;  // its number + 1; 0: the rank has not come
    std::atomic<std::uint64_t> written, read;
    Sum sum;
    alignas(64) std::byte chunk[kChunkBytes];
  };

  bool wait_for(std::atomic<std::uint64_t> Place::*counter, std::uint64_t value, const std::function<bool()>& stop);

  const std::string name_;
  const int rank_, size_;
  Place* places_ = nullptr;
  std::uint64_t chunks_ = 0;
};

std::size_t width_of(int dtype);

}  // namespace stand_in
