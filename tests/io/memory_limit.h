// A limit of the address space, for tests of programs that run out of memory.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <stdexcept>

namespace syncline::io {

// Sanitizers map terabytes.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kLimitMemory = false;
#else
inline constexpr bool kLimitMemory = true;
#endif

// Of the whole process, until lift() or the end.
class MemoryLimit {
 public:
  MemoryLimit() { ::getrlimit(RLIMIT_AS, &before_); }
  ~MemoryLimit() { lift(); }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

  // From now on the process can allocate so many bytes more.
  void set(std::size_t bytes) const {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlimit limit{pages * static_cast<std::size_t>(::getpagesize()) + bytes, before_.rlim_max};
    if (::setrlimit(RLIMIT_AS, &limit) != 0) throw std::runtime_error("setrlimit failed");
  }
  void lift() const { ::setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_{};
};

}  // namespace syncline::io
