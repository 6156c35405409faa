#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tools/doctor/checks.h"

namespace syncline::tools {
namespace {

constexpr const char* kProcessors = "processors";

// The quota of one control group; empty if it has no limit of its own.
std::optional<double> quota_of(const std::string& group) {
  double quota = -1, period = 0;
  if (std::ifstream both(group + "/cpu.max"); both) {  // "max 100000" or "150000 100000"
    std::string text;
    if (both >> text >> period && text != "max") quota = std::atof(text.c_str());
  } else if (std::ifstream limit(group + "/cpu.cfs_quota_us"), of(group + "/cpu.cfs_period_us"); limit && of) {
    limit >> quota;
    of >> period;
  }
  if (quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

// The folder of the group that a line of /proc/self/cgroup names ("4:cpu,cpuacct:/job" or "0::/job"); empty if the
// group cannot limit processors.
std::optional<std::string> group_of(const std::string& line, const std::string& root) {
  const std::size_t first = line.find(':'), second = line.find(':', first + 1);
  if (first == line.npos || second == line.npos) return std::nullopt;
  const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
  if (controllers.empty()) return root + path;
  if ((',' + controllers + ',').find(",cpu,") == std::string::npos) return std::nullopt;
  return root + '/' + controllers + path;
}

}  // namespace

std::optional<double> processor_quota(const std::string& proc, const std::string& root) {
  std::optional<double> least;
  std::istringstream lines(proc);
  for (std::string line; std::getline(lines, line);) {
    std::optional<std::string> group = group_of(line, root);
    // The limits of parent groups apply too.
    while (group && group->size() >= root.size()) {
      if (const auto quota = quota_of(*group)) least = std::min(least.value_or(*quota), *quota);
      group->resize(group->find_last_of('/'));
    }
  }
  return least;
}

Findings check_processors(const comm::Getenv& getenv, int processors, int threads, std::optional<double> quota) {
  Findings found{
      {Level::kOk, kProcessors, fmt::format("processors {} and threads {} per rank", processors, threads), ""}};
  if (quota && *quota < threads)
    found.push_back({Level::kWarn, kProcessors,
                     fmt::format("the control group allows {:.1f} processors for {} threads", *quota, threads),
                     "give the job or container more processors, or the program fewer threads"});
  const char* promised = getenv("SLURM_CPUS_PER_TASK");
  if (promised != nullptr && std::atoi(promised) > processors)
    found.push_back({Level::kWarn, kProcessors,
                     fmt::format("the task has {} processors, but the rank may use {}", promised, processors),
                     fmt::format("bind ranks to their processors: mpirun --map-by slot:PE={0} --bind-to core, with "
                                 "MPICH mpiexec -bind-to core:{0}, or srun --cpus-per-task={0}",
                                 promised)});
  return found;
}

std::string name_numbers(const std::string& what, const std::vector<int>& numbers) {
  std::string text = what + (numbers.size() == 1 ? " " : "s ");
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (i > 0) text += ", ";
    text += last == i ? fmt::format("{}", numbers[i]) : fmt::format("{}-{}", numbers[i], numbers[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace syncline::tools
