#include "base/affinity.h"

#include <sched.h>

#include <cerrno>

namespace syncline {

std::vector<int> allowed_processors() {
  // The system refuses masks that are shorter than its own.
  for (std::size_t sets = 1; sets <= 64; sets *= 2) {
    std::vector<cpu_set_t> mask(sets);
    const std::size_t bytes = sets * sizeof(cpu_set_t);
    if (::sched_getaffinity(0, bytes, mask.data()) != 0) {
      if (errno == EINVAL) continue;
      break;
    }
    std::vector<int> processors;
    for (int i = 0; i < static_cast<int>(sets) * CPU_SETSIZE; ++i)
      if (CPU_ISSET_S(i, bytes, mask.data())) processors.push_back(i);
    return processors;
  }
  return {};
}

}  // namespace syncline
