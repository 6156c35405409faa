#include "comm/mpi/mpi_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <string_view>
#include <vector>

#include "syncline/distributed/launch.h"
#include "syncline/error.h"

namespace syncline::comm {
namespace {

// An MPI library that has a plugin.
struct Kind {
  std::string_view name;                   // value of SYNCLINE_MPI
  const char* plugin;                      // name of the file, or its path; see open_plugin
  std::array<const char*, 2> libraries;    // names under which the MPI library is loaded
  std::array<std::string_view, 3> starts;  // launchers that start ranks of this library only
};

constexpr std::array kKinds{
    Kind{"openmpi", "libsyncline_mpi_openmpi.so", {"libmpi.so.40", "libmpi.so.20"}, {"mpirun of Open MPI"}},
    Kind{"mpich",
         "libsyncline_mpi_mpich.so",
         {"libmpich.so.12", "libmpi.so.12"},
         {"mpirun of MPICH or Intel MPI", "mpirun of MVAPICH", "mpiexec of PALS"}},
};

// The loaded MPI library of this kind, or null. The handle needs no dlclose: MPI stays loaded.
void* loaded_library(const Kind& kind) {
  for (const char* name : kind.libraries)
    if (void* handle = dlopen(name, RTLD_LAZY | RTLD_NOLOAD); handle != nullptr) return handle;
  return nullptr;
}

bool starts(const Kind& kind, const Launch& launch) {
  return !launch.launcher.empty() &&
         std::find(kind.starts.begin(), kind.starts.end(), launch.launcher) != kind.starts.end();
}

// The kinds to try, in order. `loaded`: those that the program has loaded.
std::vector<Kind> choose_kinds(const std::vector<Kind>& loaded) {
  if (const char* wanted = std::getenv("SYNCLINE_MPI"); wanted != nullptr && *wanted != '\0') {
    for (const Kind& kind : kKinds)
      if (kind.name == wanted) return {kind};
    if (std::string_view(wanted).find('/') == std::string_view::npos)
      fail<CommError>("environment: SYNCLINE_MPI='", wanted,
                      "' is neither openmpi, nor mpich, nor the path of a plugin");
    return {{wanted, wanted, {}, {}}};
  }
  if (!loaded.empty()) return {loaded.front()};
  const Launch launch = read_launch_environment();
  for (const Kind& kind : kKinds)
    if (starts(kind, launch)) return {kind};
  return {kKinds.begin(), kKinds.end()};
}

// The folder of the library, module or program that contains this function.
std::string own_folder() {
  Dl_info found{};
  if (dladdr(reinterpret_cast<const void*>(&own_folder), &found) == 0 || found.dli_fname == nullptr) return "";
  const std::string path = found.dli_fname;
  return path.substr(0, path.rfind('/') + 1);
}

// The plugin beside this library, else as the loader finds it. A sanitizer's dlopen knows no RUNPATH.
void* open_plugin(const std::string& name) {
  const std::string beside = own_folder() + name;
  const bool found = name.find('/') == name.npos && ::access(beside.c_str(), F_OK) == 0;
  return dlopen((found ? beside : name).c_str(), RTLD_NOW | RTLD_LOCAL);
}

// Makes an MPI library's functions visible to a plugin that is linked with none: a wheel's, which runs with the MPI
// library of the Python environment (in lib, three folders above the package) or else with the system's.
bool provide_library(const Kind& kind) {
  for (const char* name : kind.libraries)
    for (const std::string& folder : {own_folder() + "../../../", std::string()})
      if (name != nullptr && dlopen((folder + name).c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) return true;
  return false;
}

// The plugin's table, or null with the reason in `problem`.
const MpiPlugin* open_table(const Kind& kind, std::string& problem) {
  void* handle = open_plugin(kind.plugin);
  if (handle == nullptr) {
    problem = dlerror();
    if (provide_library(kind)) {
      handle = open_plugin(kind.plugin);
    } else if (kind.libraries.front() != nullptr) {
      problem += join_text(" (no ", kind.libraries.front(), " was found)");
    }
  }
  if (handle == nullptr) return nullptr;
  const auto get = reinterpret_cast<GetMpiPlugin*>(dlsym(handle, kGetMpiPlugin));
  if (get != nullptr) return get();
  problem = join_text(kind.plugin, " has no ", kGetMpiPlugin, ": it is no plugin of this version of Syncline");
  dlclose(handle);
  return nullptr;
}

// Two MPI libraries in one process would each have a world of their own.
void require_loaded(const MpiPlugin& plugin, const Kind& kind, const std::vector<Kind>& loaded) {
  for (const Kind& other : loaded)
    if (dlsym(loaded_library(other), "MPI_Initialized") != plugin.mpi_initialized)
      fail<CommError>("MPI: the program has loaded another MPI library than that of ", kind.plugin, " (", plugin.built,
                      "); use one MPI library for both, or build a plugin for the program's");
}

const MpiPlugin& load() {
  std::vector<Kind> loaded;  // by the program
  std::copy_if(kKinds.begin(), kKinds.end(), std::back_inserter(loaded), loaded_library);
  std::string problems;
  for (const Kind& kind : choose_kinds(loaded)) {
    std::string problem;
    if (const MpiPlugin* table = open_table(kind, problem); table != nullptr) {
      require_loaded(*table, kind, loaded);
      return *table;
    }
    problems += (problems.empty() ? "" : "; ") + problem;
  }
  fail<CommError>("MPI: no plugin can be loaded (", problems,
                  "); install Syncline's plugin for the MPI of the launcher, or name one in SYNCLINE_MPI (openmpi, "
                  "mpich or a path)");
}

const MpiPlugin& plugin() {
  static const MpiPlugin& loaded = load();
  return loaded;
}

}  // namespace

const MpiLibrary& mpi() { return plugin().library; }

bool mpi_is_initialized() {
  if (std::none_of(kKinds.begin(), kKinds.end(), loaded_library)) return false;
  int initialized = 0, finalized = 0;
  try {
    return mpi().state(&initialized, &finalized) == 0 && initialized != 0;
  } catch (const CommError&) {
    return false;  // make_communicator() reports it, if this process is one of several
  }
}

MpiVersion mpi_version() {
  MpiVersion version;
  version.built = plugin().built;
  std::array<char, 256> text{};
  if (mpi().version(text.data(), static_cast<int>(text.size())) == 0) version.loaded = text.data();
  return version;
}

}  // namespace syncline::comm
