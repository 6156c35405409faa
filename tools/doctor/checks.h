// The checks of `syncline doctor` that a process makes by itself. Each looks at one thing and says what it finds; what
// cannot be looked up is left out. They throw nothing for what they find, and change nothing but what they clean up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "syncline/distributed/launch.h"
#include "tools/doctor/finding.h"

namespace syncline::tools {

// Who started this process, and whether that fits the batch job that it runs in: ranks against tasks.
Findings check_launch_environment(const comm::Getenv& getenv, const comm::Launch& launch);
// The batch scheduler: which, how much of the job's time is left at `now` (seconds since 1970).
Findings check_scheduler(const comm::Getenv& getenv, std::int64_t now);
// Processors that this process may use, against threads and against what its task was promised.
Findings check_processors(const comm::Getenv& getenv, int processors, int threads, std::optional<double> quota);
// Room for what the ranks of this node share.
Findings check_shared_memory(const std::string& directory, int ranks_of_node, std::int64_t bucket_bytes);
// Whether a folder can hold checkpoints: what its file system is and can do. Makes the folder if it is missing.
Findings check_folder(const std::string& folder);
// `several_nodes`: the job's ranks are not all on this one.
Findings check_limits(bool several_nodes);
Findings check_versions();
// keras.json and the variables that override it.
Findings check_settings();
// GPUs and NCCL, as this rank sees them.
Findings check_gpus(const comm::Launch& launch);

// The processors that the control groups of this process allow it, 1.5 for one and a half; nothing if that is not
// limited. `proc` is the text of /proc/self/cgroup, `root` where control groups are mounted.
std::optional<double> processor_quota(const std::string& proc, const std::string& root);

// "rank 3", "ranks 0-2, 5", "processors 0-7": names what is counted. `numbers` ascend.
std::string name_numbers(const std::string& what, const std::vector<int>& numbers);

}  // namespace syncline::tools
