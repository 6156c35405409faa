#include "syncline/distributed/launch.h"

#include <gtest/gtest.h>

#include <map>

#include "syncline/error.h"

namespace syncline::comm {
namespace {

using Variables = std::map<std::string, std::string>;

Launch read(const Variables& variables) {
  return read_launch_environment([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

void expect_launch(const Variables& variables, const std::string& launcher, int size, int rank, int local_rank,
                   int local_size) {
  const Launch launch = read(variables);
  EXPECT_EQ(launch.launcher, launcher);
  EXPECT_EQ(launch.size, size) << launcher;
  EXPECT_EQ(launch.rank, rank) << launcher;
  EXPECT_EQ(launch.local_rank, local_rank) << launcher;
  EXPECT_EQ(launch.local_size, local_size) << launcher;
}

const Variables kSlurmBatch{{"SLURM_JOB_ID", "7"},      {"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"},
                            {"SLURM_LOCALID", "0"},     {"SLURM_NODEID", "0"}, {"SLURM_TASKS_PER_NODE", "4(x2)"},
                            {"SLURM_CPUS_ON_NODE", "4"}};
const Variables kOpenMpi{{"OMPI_COMM_WORLD_SIZE", "4"},
                         {"OMPI_COMM_WORLD_RANK", "3"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                         {"PMIX_RANK", "3"}};
const Variables kSrun{{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "6"},
                      {"SLURM_PROCID", "5"},  {"SLURM_LOCALID", "1"},
                      {"SLURM_NODEID", "3"},  {"SLURM_STEP_TASKS_PER_NODE", "1,1(x2),3"}};

Variables merge(Variables a, const Variables& b) {
  for (const auto& [name, value] : b) a[name] = value;
  return a;
}

TEST(Launch, PlainProcessIsAlone) {
  expect_launch({}, "", 1, 0, 0, 1);
  expect_launch({{"PBS_NODEFILE", "/tmp/n"}, {"PBS_NP", "8"}, {"PBS_ENVIRONMENT", "PBS_BATCH"}}, "", 1, 0, 0, 1);
}

TEST(Launch, BatchScriptOfSlurmLaunchesNothing) { expect_launch(kSlurmBatch, "", 1, 0, 0, 1); }

TEST(Launch, ReadsEachLauncher) {
  expect_launch(kOpenMpi, "mpirun of Open MPI", 4, 3, 1, 2);
  expect_launch({{"PMI_SIZE", "4"}, {"PMI_RANK", "2"}, {"MPI_LOCALNRANKS", "3"}, {"MPI_LOCALRANKID", "2"}},
                "mpirun of MPICH or Intel MPI", 4, 2, 2, 3);
  expect_launch({{"MV2_COMM_WORLD_SIZE", "2"}, {"MV2_COMM_WORLD_RANK", "1"}, {"MV2_COMM_WORLD_LOCAL_SIZE", "2"}},
                "mpirun of MVAPICH", 2, 1, 0, 2);
  expect_launch({{"PALS_RANKID", "1"}, {"PMI_SIZE", "2"}, {"PMI_RANK", "1"}, {"PALS_LOCAL_RANKID", "1"}},
                "mpiexec of PALS", 2, 1, 1, 1);
  expect_launch(kSrun, "srun", 6, 5, 1, 3);
  expect_launch({{"PMI_SIZE", "2"}, {"PMI_RANK", "1"}}, "a PMI launcher", 2, 1, 0, 1);
  expect_launch({{"PMIX_RANK", "1"}}, "a PMIx launcher", 0, 1, 0, 1);
}

TEST(Launch, TheCloserLauncherWins) {
  expect_launch(merge(kSlurmBatch, kOpenMpi), "mpirun of Open MPI", 4, 3, 1, 2);
  // mpirun starts one daemon a node with srun, whose variables the ranks inherit.
  expect_launch(merge(kSrun, kOpenMpi), "mpirun of Open MPI", 4, 3, 1, 2);
  // srun --mpi=pmi2 sets PMI's variables beside its own; only its own describe the node.
  expect_launch(merge(kSrun, {{"PMI_SIZE", "6"}, {"PMI_RANK", "5"}}), "srun", 6, 5, 1, 3);
  expect_launch(merge(kSlurmBatch, kSrun), "srun", 6, 5, 1, 3);
}

TEST(Launch, InteractiveStepOfSlurmIsAlone) {
  expect_launch({{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}, "srun", 1, 0, 0, 1);
}

TEST(Launch, RefusesNonsense) {
  EXPECT_THROW(read({{"OMPI_COMM_WORLD_SIZE", "two"}, {"OMPI_COMM_WORLD_RANK", "0"}}), CommError);
  EXPECT_THROW(read({{"PMI_SIZE", "2"}, {"PMI_RANK", "-1"}}), CommError);
  EXPECT_THROW(read({{"PMI_SIZE", "2"}, {"PMI_RANK", "2"}}), CommError);
}

std::string refusal(const Launch& launch, int mpi_size) {
  try {
    check_launch(launch, mpi_size);
  } catch (const CommError& error) {
    return error.what();
  }
  return "";
}

TEST(CheckLaunch, RefusesLonelySingletons) {
  const std::string text = refusal(read(kSrun), 1);
  EXPECT_NE(text.find("srun started 6 ranks, but each is alone in MPI"), text.npos) << text;
  EXPECT_NE(text.find("srun --mpi=pmix"), text.npos) << text;
  EXPECT_NE(refusal(read(kOpenMpi), 3).find("MPI sees 3"), text.npos);
}

TEST(CheckLaunch, AcceptsWhatFits) {
  EXPECT_EQ(refusal(read(kOpenMpi), 4), "");
  EXPECT_EQ(refusal(read({}), 1), "");
  EXPECT_EQ(refusal(read({}), 2), "");
  EXPECT_EQ(refusal(read(kSlurmBatch), 1), "");
  EXPECT_EQ(refusal(read({{"PMIX_RANK", "1"}}), 3), "");
}

}  // namespace
}  // namespace syncline::comm
