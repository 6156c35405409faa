// The checks of `syncline doctor` that one process makes by itself. Each checks one thing and returns its findings; it
// leaves out what it cannot read. The checks do not throw for what they find, and clean up what they change.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "syncline/distributed/keras_json.h"
#include "syncline/distributed/launch.h"
#include "tools/doctor/finding.h"

namespace syncline::tools {

// Who started this process, and whether its ranks fit the tasks of its batch job.
Findings check_launch_environment(const comm::Getenv& getenv, const comm::Launch& launch);
// The batch scheduler, and how much of the job's time is left at `now` (seconds since 1970).
Findings check_scheduler(const comm::Getenv& getenv, std::int64_t now);
// The processors that this process may use, against its threads and what its task was promised.
Findings check_processors(const comm::Getenv& getenv, int processors, int threads, std::optional<double> quota);
// The room for memory that the ranks of this node share.
Findings check_shared_memory(const std::string& directory, int ranks_of_node, std::int64_t bucket_bytes);
// Whether a folder can hold checkpoints: the kind and abilities of its file system. Makes the folder if it is missing.
Findings check_folder(const std::string& folder);
// `several_nodes`: the job has ranks on other nodes.
Findings check_limits(bool several_nodes);
inline constexpr const char* kInstructions = "instructions";
Findings check_versions();  // and the instruction set, as kInstructions
// The texts of check_versions(), one a line.
std::string describe_versions();
// keras.json and the variables that override it; the defaults if they are wrong, which check_settings() reports.
const KerasJson& settings();
Findings check_settings();
// Whether this number of ranks can share the parts of a batch, which keras.json or SYNCLINE_PARTS sets, and how evenly.
Findings check_parts(int parts, int ranks);
// GPUs and NCCL, as this rank sees them.
Findings check_gpus(const comm::Launch& launch);

// The number of processors that this process's control groups allow, such as 1.5; empty if there is no limit. `proc` is
// the text of /proc/self/cgroup, `root` the folder in which control groups are mounted.
std::optional<double> processor_quota(const std::string& proc, const std::string& root);

// "rank 3", "ranks 0-2, 5", "processors 0-7". `what` is the singular; `numbers` ascend.
std::string name_numbers(const std::string& what, const std::vector<int>& numbers);

}  // namespace syncline::tools
