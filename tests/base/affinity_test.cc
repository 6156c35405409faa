#include "base/affinity.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace syncline {
namespace {

// The mask of the thread counts, not the machine's processors.
TEST(Affinity, IsThatOfTheThread) {
  const std::vector<int> all = allowed_processors();
  ASSERT_FALSE(all.empty());
  std::vector<int> of_thread;
  std::thread([&] {
    cpu_set_t last;
    CPU_ZERO(&last);
    CPU_SET(static_cast<std::size_t>(all.back()), &last);
    ASSERT_EQ(sched_setaffinity(0, sizeof last, &last), 0);
    of_thread = allowed_processors();
  }).join();
  EXPECT_EQ(of_thread, std::vector<int>{all.back()});
  EXPECT_EQ(allowed_processors(), all);
}

}  // namespace
}  // namespace syncline
