// Compares ranks with tasks. Common faults: one process works in a job of 8 tasks, or 8 processes each run alone.
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>

#include "tools/doctor/checks.h"

namespace syncline::tools {
namespace {

constexpr const char* kLaunch = "launch";
constexpr const char* kScheduler = "scheduler";
constexpr std::int64_t kLittleTime = 600;  // seconds

// The number of ranks that the batch job has room for; 0 if unknown.
int tasks_of_job(const comm::Getenv& getenv) {
  if (getenv("SLURM_JOB_ID") != nullptr) {
    const char* tasks = getenv("SLURM_NTASKS");
    return tasks == nullptr ? 0 : std::atoi(tasks);
  }
  const char* nodes = getenv("PBS_NODEFILE");
  if (nodes == nullptr) return 0;
  std::ifstream file(nodes);
  int lines = 0;
  for (std::string line; std::getline(file, line);) ++lines;
  return lines;
}

}  // namespace

Findings check_launch_environment(const comm::Getenv& getenv, const comm::Launch& launch) {
  const int tasks = tasks_of_job(getenv);
  if (launch.launcher.empty()) {
    if (tasks > 1)
      return {{Level::kWarn, kLaunch, fmt::format("one process, in a batch job of {} tasks", tasks),
               "start the program with mpirun, or with srun --mpi=pmix"}};
    return {{Level::kOk, kLaunch, "one process, started without a launcher", ""}};
  }
  if (launch.size == 0) return {{Level::kOk, kLaunch, fmt::format("started by {}", launch.launcher), ""}};
  const std::string started =
      fmt::format("{} rank{}, started by {}", launch.size, launch.size == 1 ? "" : "s", launch.launcher);
  // Without PMI, Open MPI ends the process in MPI_Init, or each process is alone.
  if (launch.size > 1 && launch.launcher == "srun" && getenv("PMIX_RANK") == nullptr && getenv("PMI_RANK") == nullptr)
    return {{Level::kFail, kLaunch, started + " without PMI: they cannot connect",
             "use srun --mpi=pmix, if 'srun --mpi=list' lists it; otherwise mpirun"}};
  if (tasks > 0 && tasks != launch.size)
    return {{Level::kWarn, kLaunch, fmt::format("{}, in a batch job of {} tasks", started, tasks),
             fmt::format("leave out mpirun's -n, or ask for {} tasks", launch.size)}};
  return {{Level::kOk, kLaunch, started, ""}};
}

Findings check_scheduler(const comm::Getenv& getenv, std::int64_t now) {
  if (const char* job = getenv("SLURM_JOB_ID"); job != nullptr) {
    const char* restarts = getenv("SLURM_RESTART_COUNT");
    std::string text = fmt::format("Slurm job {}, {} restarts", job, restarts == nullptr ? "0" : restarts);
    if (const char* end = getenv("SLURM_JOB_END_TIME"); end != nullptr) {
      const std::int64_t left = std::atoll(end) - now;
      text += fmt::format(", {} min left", left / 60);
      if (left < kLittleTime) return {{Level::kWarn, kScheduler, text, "ask for more time, or expect a requeue soon"}};
    }
    return {{Level::kOk, kScheduler, text + "; grace period: scontrol show config | grep -E 'KillWait|preempt'", ""}};
  }
  if (const char* job = getenv("PBS_JOBID"); job != nullptr)
    return {{Level::kOk, kScheduler, fmt::format("PBS job {}; only scripts/pbs/train.pbs warns it before its end", job),
             ""}};
  return {{Level::kOk, kScheduler, "none: not in a job of Slurm or PBS", ""}};
}

}  // namespace syncline::tools
