// Launch: what the environment says about how this process was started, before any MPI call.
//
// Pure functions over a getenv-like callable. They throw CommError for an environment that contradicts itself or the
// MPI that the program runs with.
#pragma once

#include <functional>
#include <string>

namespace syncline::comm {

struct Launch {
  int size = 1;  // 0: launched, but the launcher does not say how many
  int rank = 0;
  int local_rank = 0;  // among the ranks of this node
  int local_size = 1;
  std::string launcher;  // "" when nothing launched the process as one of several
};

// nullptr for a variable that is not set.
using Getenv = std::function<const char*(const char*)>;

// Knows the variables of Open MPI, MVAPICH, PALS (on PBS), MPICH's and Intel's hydra, a Slurm step (srun), PMI and
// PMIx, in this order: mpirun inside a Slurm or PBS job counts as mpirun. What a batch script sees (SLURM_NTASKS with
// SLURM_PROCID, PBS_NODEFILE) launches nothing.
Launch read_launch_environment(const Getenv& getenv);
Launch read_launch_environment();

// Throws CommError if the launcher started several ranks, but MPI sees another number: most often each process sees
// itself alone, because the launcher belongs to another MPI.
void check_launch(const Launch& launch, int mpi_size);

}  // namespace syncline::comm
