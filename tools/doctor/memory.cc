#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include "comm/shared/node_control.h"
#include "comm/shared/node_wire.h"
#include "tools/doctor/checks.h"

namespace syncline::tools {
namespace {

constexpr const char* kMemory = "shared memory";
constexpr const char* kLimits = "limits";
constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr rlim_t kFewFiles = 1024;

void check_limit(Findings& found, int resource, const char* name, const char* why) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  found.push_back({Level::kWarn, kLimits, fmt::format("{} is {} KiB: {}", name, limit.rlim_cur >> 10, why),
                   "raise it with ulimit, or ask the administrators"});
}

}  // namespace

Findings check_shared_memory(const std::string& directory, int ranks_of_node, std::int64_t bucket_bytes) {
  struct statvfs room {};
  if (::statvfs(directory.c_str(), &room) != 0)
    return {{Level::kWarn, kMemory, fmt::format("cannot check {}", directory),
             "ranks of a node exchange messages, which is slower than shared memory; mount a tmpfs there"}};
  const std::int64_t ranks = ranks_of_node;
  const auto free_bytes = static_cast<std::int64_t>(room.f_bavail * room.f_frsize);
  const auto control_bytes =
      static_cast<std::int64_t>(comm::NodeControl::bytes_a_rank(comm::NodeWireOptions{}.staging_bytes / 2));
  const std::int64_t for_gradients = free_bytes / ranks - control_bytes;
  const std::string text =
      fmt::format("{} has {} MiB free: room for {} MiB of gradients per rank, ranks on the node {}", directory,
                  free_bytes / kMiB, for_gradients > 0 ? for_gradients / kMiB : 0, ranks);
  if (ranks > 1 && for_gradients < bucket_bytes)
    return {{Level::kWarn, kMemory, text,
             "gradients beyond that size are copied, which is slower; enlarge it (docker run --shm-size=8g)"}};
  return {{Level::kOk, kMemory, text, ""}};
}

Findings check_limits(bool several_nodes) {
  Findings found;
  check_limit(found, RLIMIT_FSIZE, "RLIMIT_FSIZE", "a larger checkpoint cannot be written");
  check_limit(found, RLIMIT_AS, "RLIMIT_AS", "a process cannot have more memory, including memory that it only maps");
  if (several_nodes)
    check_limit(found, RLIMIT_MEMLOCK, "RLIMIT_MEMLOCK", "InfiniBand and similar networks need to lock memory");
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < kFewFiles)
    found.push_back({Level::kWarn, kLimits, fmt::format("RLIMIT_NOFILE allows {} open files", files.rlim_cur),
                     "raise it with ulimit -n 4096"});
  if (found.empty()) found.push_back({Level::kOk, kLimits, "none that matter", ""});
  return found;
}

}  // namespace syncline::tools
