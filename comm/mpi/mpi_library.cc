#include "comm/mpi/mpi_library.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <system_error>
#include <vector>

#include "syncline/distributed/launch.h"
#include "syncline/error.h"

namespace syncline::comm {
namespace {

// An MPI library that has a plugin.
struct Kind {
  std::string_view name;                   // value of SYNCLINE_MPI; empty for an unknown plugin
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

// A plugin's file is of the kind whose plugin has its name, or else of none.
Kind kind_of_file(const char* path) {
  const std::string_view name = std::string_view(path).substr(std::string_view(path).rfind('/') + 1);
  const auto* found = std::find_if(kKinds.begin(), kKinds.end(), [&](const Kind& kind) { return kind.plugin == name; });
  Kind kind = found != kKinds.end() ? *found : Kind{};
  kind.plugin = path;
  return kind;
}

// The kinds to try, in order. `loaded`: those that the program has loaded.
std::vector<Kind> choose_kinds(const std::vector<Kind>& loaded) {
  if (const char* wanted = std::getenv("SYNCLINE_MPI"); wanted != nullptr && *wanted != '\0') {
    for (const Kind& kind : kKinds)
      if (kind.name == wanted) return {kind};
    if (std::string_view(wanted).find('/') == std::string_view::npos)
      fail<CommError>("environment: SYNCLINE_MPI='", wanted,
                      "' is neither openmpi, nor mpich, nor the path of a plugin");
    return {kind_of_file(wanted)};
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
  link_map* module = nullptr;
  if (dladdr1(reinterpret_cast<const void*>(&own_folder), &found, reinterpret_cast<void**>(&module), RTLD_DL_LINKMAP) ==
      0)
    return "";
  std::string path = module->l_name;
  std::error_code error;
  if (path.empty()) path = std::filesystem::read_symlink("/proc/self/exe", error);  // the program itself
  return path.substr(0, path.rfind('/') + 1);
}

// The plugin beside this library, else as the loader finds it. A sanitizer's dlopen knows no RUNPATH.
void* open_plugin(const std::string& name) {
  const std::string beside = own_folder() + name;
  const bool found = name.find('/') == name.npos && ::access(beside.c_str(), F_OK) == 0;
  return dlopen((found ? beside : name).c_str(), RTLD_NOW | RTLD_LOCAL);
}

// A plugin that is linked with no MPI library, as a wheel's, runs with the one that this function makes visible to it:
// that of the program, or else of the Python environment (in lib, three folders above the package), or else the
// system's. Returns false with the loader's reason in `problem` if there is none.
bool provide_library(const Kind& kind, std::string& problem) {
  for (const char* name : kind.libraries)
    if (name != nullptr && dlopen(name, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD) != nullptr) return true;
  for (const std::string& folder : {own_folder() + "../../../", std::string()})
    for (const char* name : kind.libraries)
      if (name != nullptr && dlopen((folder + name).c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) return true;
  problem = dlerror();
  return false;
}

// The plugin's table, or null with the reason in `problem`.
const MpiPlugin* open_table(const Kind& kind, std::string& problem) {
  const bool provides = !SYNCLINE_LINK_MPI && !kind.name.empty();
  if (provides && !provide_library(kind, problem)) return nullptr;
  void* handle = open_plugin(kind.plugin);
  if (handle == nullptr) {
    problem = dlerror();
    // The plugin of another kind would take the functions of the library that is visible now.
    if (provides) fail<CommError>("MPI: the plugin cannot be loaded (", problem, "); install Syncline again");
    return nullptr;
  }
  const auto get = reinterpret_cast<GetMpiPlugin*>(dlsym(handle, kGetMpiPlugin));
  if (get != nullptr) return get();
  problem = join_text(kind.plugin, " has no ", kGetMpiPlugin, ": it is no plugin of this version of Syncline");
  dlclose(handle);
  return nullptr;
}

bool calls(const MpiPlugin& plugin, const Kind& kind) {
  void* library = loaded_library(kind);
  return library != nullptr && dlsym(library, "MPI_Initialized") == plugin.mpi_initialized;
}

// Two MPI libraries in one process would each have a world of their own, and each has handles of its own.
void require_its_library(const MpiPlugin& plugin, const Kind& kind, const std::vector<Kind>& loaded) {
  for (const Kind& other : loaded)
    if (!calls(plugin, other))
      fail<CommError>("MPI: the program has loaded another MPI library than that of ", kind.plugin, " (", plugin.built,
                      "); use one MPI library for both, or build a plugin for the program's");
  for (const Kind& other : kKinds)
    if (!kind.name.empty() && other.name != kind.name && calls(plugin, other))
      fail<CommError>("MPI: the program's MPI library has taken the place of that of ", kind.plugin, " (", plugin.built,
                      "); set SYNCLINE_MPI=", other.name);
}

const MpiPlugin& load() {
  std::vector<Kind> loaded;  // by the program
  std::copy_if(kKinds.begin(), kKinds.end(), std::back_inserter(loaded), loaded_library);
  std::string problems;
  for (const Kind& kind : choose_kinds(loaded)) {
    std::string problem;
    if (const MpiPlugin* table = open_table(kind, problem); table != nullptr) {
      require_its_library(*table, kind, loaded);
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

std::timed_mutex& calls_mutex() {
  static std::timed_mutex mutex;
  return mutex;
}

}  // namespace

LockedMpi::LockedMpi() : library_(plugin().library), lock_(calls_mutex()) {}
LockedMpi::LockedMpi(std::chrono::seconds limit) : library_(plugin().library), lock_(calls_mutex(), limit) {}

void check_mpi(int code, const char* call, std::string_view doing) {
  if (code == 0) return;
  std::array<char, 512> text{};
  plugin().library.error_string(code, text.data(), static_cast<int>(text.size()));
  fail<CommError>(call, " failed during ", doing, ": ", text.data(), " (code ", code, ")");
}

bool mpi_is_initialized() {
  if (std::none_of(kKinds.begin(), kKinds.end(), loaded_library)) return false;
  int initialized = 0, finalized = 0;
  try {
    return plugin().library.state(&initialized, &finalized) == 0 && initialized != 0;
  } catch (const CommError&) {
    return false;  // make_communicator() reports it, if this process is one of several
  }
}

MpiVersion mpi_version() {
  MpiVersion version;
  version.built = plugin().built;
  std::array<char, 256> text{};
  if (plugin().library.version(text.data(), static_cast<int>(text.size())) == 0) version.loaded = text.data();
  return version;
}

}  // namespace syncline::comm
