#include "comm/mpi/mpi_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "syncline/distributed/launch.h"
#include "syncline/error.h"

namespace syncline::comm {
namespace {

// The MPI libraries that have a plugin.
struct Kind {
  std::string_view name;                   // value of SYNCLINE_MPI
  const char* plugin;                      // name of the file; see open_plugin
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

// The plugins to try, in order.
std::vector<std::string> choose_plugins() {
  if (const char* wanted = std::getenv("SYNCLINE_MPI"); wanted != nullptr && *wanted != '\0') {
    for (const Kind& kind : kKinds)
      if (kind.name == wanted) return {kind.plugin};
    if (std::string_view(wanted).find('/') == std::string_view::npos)
      fail<CommError>("environment: SYNCLINE_MPI='", wanted,
                      "' is neither openmpi, nor mpich, nor the path of a plugin");
    return {wanted};
  }
  for (const Kind& kind : kKinds)
    if (loaded_library(kind) != nullptr) return {kind.plugin};
  const Launch launch = read_launch_environment();
  std::vector<std::string> all;
  for (const Kind& kind : kKinds) {
    if (starts(kind, launch)) return {kind.plugin};
    all.emplace_back(kind.plugin);
  }
  return all;
}

// Where an installed plugin lies: the folder of the library or module that contains this function.
std::string own_folder() {
  Dl_info found{};
  if (dladdr(reinterpret_cast<const void*>(&own_folder), &found) == 0 || found.dli_fname == nullptr) return "";
  const std::string path = found.dli_fname;
  return path.substr(0, path.rfind('/') + 1);
}

// First beside this library, then like a library that this one is linked with. A sanitizer's dlopen knows no RUNPATH.
void* open_plugin(const std::string& name) {
  if (name.find('/') == name.npos)
    if (void* handle = dlopen((own_folder() + name).c_str(), RTLD_NOW | RTLD_LOCAL); handle != nullptr) return handle;
  return dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
}

// Two MPI libraries in one process would each have a world of their own.
void require_loaded(const MpiPlugin& plugin, const std::string& name, const std::vector<void*>& loaded) {
  for (void* library : loaded)
    if (dlsym(library, "MPI_Initialized") != plugin.mpi_initialized)
      fail<CommError>("MPI: the program has loaded another MPI library than that of ", name, " (", plugin.built,
                      "); use one MPI library for both, or build a plugin for the program's");
}

const MpiPlugin& load() {
  std::vector<void*> loaded;  // by the program
  for (const Kind& kind : kKinds)
    if (void* library = loaded_library(kind); library != nullptr) loaded.push_back(library);
  std::string problems;
  for (const std::string& name : choose_plugins()) {
    if (!problems.empty()) problems += "; ";
    void* handle = open_plugin(name);
    if (handle == nullptr) {
      problems += dlerror();
      continue;
    }
    const auto get = reinterpret_cast<GetMpiPlugin*>(dlsym(handle, kGetMpiPlugin));
    if (get != nullptr) {
      require_loaded(*get(), name, loaded);
      return *get();
    }
    problems += join_text(name, " has no ", kGetMpiPlugin, ": it is no plugin of this version of Syncline");
    dlclose(handle);
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
