// Launch: what the environment says about how this process was started, before any MPI call.
//
// Pure functions over a getenv-like callable. They throw CommError if the environment contradicts itself or the
// program's MPI library.
#pragma once

#include <functional>
#include <string>

#pragma GCC visibility push(default)
namespace syncline::comm {

struct Launch {
  int size = 1;  // 0: launched, but the launcher does not give the number
  int rank = 0;
  int local_rank = 0;  // among the ranks of this node
  int local_size = 1;
  std::string launcher;  // "" if this process is not one of several
};

// Returns nullptr for a variable that is not set.
using Getenv = std::function<const char*(const char*)>;

// Reads the variables of Open MPI, MVAPICH, PALS (on PBS), MPICH's and Intel's hydra, a Slurm step (srun), PMI and
// PMIx, in this order: mpirun inside a Slurm or PBS job counts as mpirun. The variables of a batch script (SLURM_NTASKS
// with SLURM_PROCID, PBS_NODEFILE) do not count as a launch.
Launch read_launch_environment(const Getenv& getenv);
Launch read_launch_environment();

// Throws CommError if the launcher started several ranks but MPI reports another number. The usual cause is a launcher
// of another MPI: each process then is alone in its MPI world.
void check_launch(const Launch& launch, int mpi_size);

}  // namespace syncline::comm
#pragma GCC visibility pop
