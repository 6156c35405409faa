#include "tests/comm/nccl_stand_in/rendezvous.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <type_traits>

namespace stand_in {
namespace {

template <class T>
T combine(int reduction, T a, T b) {
  if (reduction == 2) return std::max(a, b);
  if (reduction == 3) return std::min(a, b);
  if constexpr (std::is_floating_point_v<T>) return a + b;
  else return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

template <class T>
void add(int reduction, void* total, const std::byte* more, std::size_t count) {
  auto* t = static_cast<T*>(total);
  const auto* m = reinterpret_cast<const T*>(more);
  for (std::size_t i = 0; i < count; ++i) t[i] = combine(reduction, t[i], m[i]);
}

void add_any(const Sum& sum, void* total, const std::byte* more, std::size_t count) {
  switch (sum.dtype) {
    case 0: return add<std::int8_t>(sum.reduction, total, more, count);
    case 1: return add<std::uint8_t>(sum.reduction, total, more, count);
    case 2: return add<std::int32_t>(sum.reduction, total, more, count);
    case 4: return add<std::int64_t>(sum.reduction, total, more, count);
    case 7: return add<float>(sum.reduction, total, more, count);
    case 8: return add<double>(sum.reduction, total, more, count);
  }
}

}  // namespace

std::size_t width_of(int dtype) {
  constexpr std::array<std::size_t, 9> widths{1, 1, 4, 4, 8, 8, 2, 4, 8};
  return dtype >= 0 && dtype < static_cast<int>(widths.size()) ? widths[static_cast<std::size_t>(dtype)] : 0;
}

Rendezvous::Rendezvous(const std::string& name, int rank, int size, int gpu) : name_(name), rank_(rank), size_(size) {
  const std::size_t bytes = sizeof(Place) * static_cast<std::size_t>(size);
  const int file = shm_open(name.c_str(), O_CREAT | O_RDWR, 0600);
  void* memory = MAP_FAILED;
  if (file >= 0 && ftruncate(file, static_cast<off_t>(bytes)) == 0)
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) {
    std::perror("stand-in: shared memory");
    std::_Exit(70);
  }
  close(file);
  places_ = static_cast<Place*>(memory);
  places_[rank].gpu = gpu + 1;
  if (all_have_come()) shm_unlink(name.c_str());
}

Rendezvous::~Rendezvous() {
  shm_unlink(name_.c_str());  // if some ranks never came
  munmap(places_, sizeof(Place) * static_cast<std::size_t>(size_));
}

bool Rendezvous::all_have_come() const {
  return std::all_of(places_, places_ + size_, [](const Place& place) { return place.gpu != 0; });
}

bool Rendezvous::gpu_is_shared() const {
  for (int a = 0; a < size_; ++a)
    for (int b = 0; b < a; ++b)
      if (places_[a].gpu == places_[b].gpu) return true;
  return false;
}

bool Rendezvous::wait_for(std::atomic<std::uint64_t> Place::*counter, std::uint64_t value,
                          const std::function<bool()>& stop) {
  for (int looks = 0; !stop(); ++looks) {
    if (std::all_of(places_, places_ + size_, [&](const Place& place) { return place.*counter >= value; })) return true;
    if (looks < 50) std::this_thread::yield();
    else std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return false;
}

std::string Rendezvous::all_reduce(const Sum& sum, void* data, const std::function<bool()>& stop) {
  const std::size_t width = width_of(sum.dtype), most = kChunkBytes / width;
  auto* bytes = static_cast<std::byte*>(data);
  for (std::size_t first = 0; first < sum.count; first += most) {
    const std::size_t count = std::min<std::size_t>(most, sum.count - first);
    if (!wait_for(&Place::read, chunks_, stop)) return "";
    Place& own = places_[rank_];
    own.sum = sum;
    std::memcpy(own.chunk, bytes + first * width, count * width);
    own.written = ++chunks_;
    if (!wait_for(&Place::written, chunks_, stop)) return "";
    std::memcpy(bytes + first * width, places_[0].chunk, count * width);
    for (int r = 0; r < size_; ++r) {
      if (places_[r].sum != sum) return "ncclAllReduce: the ranks' arguments differ";
      if (r > 0) add_any(sum, bytes + first * width, places_[r].chunk, count);
    }
    own.read = chunks_;
  }
  return "";
}

}  // namespace stand_in
