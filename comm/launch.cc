#include "syncline/distributed/launch.h"

#include <array>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "syncline/error.h"

namespace syncline::comm {
namespace {

// The variables of one launcher. Only that launcher sets `mark`; a missing variable is nullptr.
struct Row {
  const char* launcher;
  const char* mark;
  const char* size;
  const char* rank;
  const char* local_rank;
  const char* local_size;
};

constexpr std::array kRows{
    Row{"mpirun of Open MPI", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    Row{"mpirun of MVAPICH", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK",
        "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE"},
    Row{"mpiexec of PALS", "PALS_RANKID", "PMI_SIZE", "PALS_RANKID", "PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE"},
    Row{"mpirun of MPICH or Intel MPI", "MPI_LOCALNRANKS", "PMI_SIZE", "PMI_RANK", "MPI_LOCALRANKID",
        "MPI_LOCALNRANKS"},
    Row{"srun", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_LOCALID", nullptr},
    Row{"a PMI launcher", "PMI_SIZE", "PMI_SIZE", "PMI_RANK", nullptr, nullptr},
    Row{"a PMIx launcher", "PMIX_RANK", nullptr, "PMIX_RANK", nullptr, nullptr},
};

std::optional<int> read_number(const Getenv& getenv, const char* name) {
  const char* value = name == nullptr ? nullptr : getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  const std::string_view text = value;
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0)
    fail<CommError>("environment: ", name, "='", text,
                    "' is not a number of ranks; unset it, or start the program from a fresh shell");
  return number;
}

// Launchers nest: mpirun may start its helpers with srun, which leaves its variables behind. So the rows are ordered
// from the innermost launcher outwards, and a row counts if both its mark and its rank are set.
bool matches(const Getenv& getenv, const Row& row) {
  return read_number(getenv, row.mark).has_value() && read_number(getenv, row.rank).has_value();
}

// The list "2(x3),1" means 2, 2, 2, 1 tasks per node. SLURM_NODEID is the index.
int tasks_on_node(std::string_view list, int node) {
  while (!list.empty()) {
    int tasks = 0, times = 1;
    const char* end = list.data() + list.size();
    const char* at = std::from_chars(list.data(), end, tasks).ptr;
    if (const std::string_view rest(at, end - at); rest.starts_with("(x")) at = std::from_chars(at + 2, end, times).ptr;
    if (node < times) return tasks;
    node -= times;
    const std::size_t comma = list.find(',');
    list = comma == list.npos ? std::string_view() : list.substr(comma + 1);
  }
  return 1;
}

int slurm_local_size(const Getenv& getenv) {
  const char* list = getenv("SLURM_STEP_TASKS_PER_NODE");
  return list == nullptr ? 1 : tasks_on_node(list, read_number(getenv, "SLURM_NODEID").value_or(0));
}

}  // namespace

Launch read_launch_environment(const Getenv& getenv) {
  for (const Row& row : kRows) {
    if (!matches(getenv, row)) continue;
    Launch launch;
    launch.launcher = row.launcher;
    launch.size = read_number(getenv, row.size).value_or(0);
    launch.rank = read_number(getenv, row.rank).value_or(0);
    launch.local_rank = read_number(getenv, row.local_rank).value_or(0);
    launch.local_size = read_number(getenv, row.local_size).value_or(1);
    if (row.launcher == std::string_view("srun")) launch.local_size = slurm_local_size(getenv);
    if (launch.size > 0 && launch.rank >= launch.size)
      fail<CommError>("environment: ", row.rank, "=", launch.rank, " does not fit ", row.size, "=", launch.size,
                      "; the variables of two launchers are mixed: start the program from a fresh shell");
    return launch;
  }
  return {};
}

Launch read_launch_environment() {
  return read_launch_environment([](const char* name) -> const char* { return std::getenv(name); });
}

void check_launch(const Launch& launch, int mpi_size) {
  if (launch.launcher.empty() || launch.size == 0 || launch.size == mpi_size) return;
  if (mpi_size == 1)
    fail<CommError>("launch: ", launch.launcher, " started ", launch.size,
                    " ranks, but each is alone in MPI; the launcher belongs to another MPI library than the one that "
                    "was loaded. 'syncline doctor' names the loaded library, and SYNCLINE_MPI selects another "
                    "(openmpi, mpich); with Slurm use 'srun --mpi=pmix' (or pmi2), if 'srun --mpi=list' lists it");
  fail<CommError>("launch: ", launch.launcher, " started ", launch.size, " ranks, but MPI sees ", mpi_size,
                  "; start the program once, with one launcher");
}

}  // namespace syncline::comm
