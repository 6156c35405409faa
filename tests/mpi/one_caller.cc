// A plugin that passes every call on to Open MPI's, and ends the process with exit code 88 if two threads call MPI at
// once: MPI is initialized for one caller at a time, which LockedMpi sees to. Each call lasts at least 20 microseconds.
#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "comm/mpi/mpi_library.h"

namespace syncline::comm {
namespace {

MpiLibrary real;
std::atomic<int> callers = 0;

class Call {
 public:
  Call() {
    if (callers.fetch_add(1) != 0) {
      std::fputs("two threads call MPI at once\n", stderr);
      std::_Exit(88);
    }
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(20);
    while (std::chrono::steady_clock::now() < end) {
    }
  }
  ~Call() { callers.fetch_sub(1); }
};

template <auto member>
struct Guarded;
template <class... Args, int (*MpiLibrary::*member)(Args...)>
struct Guarded<member> {
  static int call(Args... args) {
    const Call one;
    return (real.*member)(args...);
  }
};

template <auto... members>
void guard(MpiLibrary& library) {
  ((library.*members = Guarded<members>::call), ...);
}

const MpiPlugin* load() {
  void* handle = dlopen(SYNCLINE_REAL_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    std::fputs(dlerror(), stderr);
    std::_Exit(89);
  }
  static MpiPlugin plugin = *reinterpret_cast<GetMpiPlugin*>(dlsym(handle, kGetMpiPlugin))();
  real = plugin.library;
  using L = MpiLibrary;
  // Any thread may ask MPI for its state, its version and an error's text. The process ends within `abort`.
  guard<&L::initialize, &L::query_thread, &L::finalize, &L::control_variable, &L::world_size, &L::duplicate_world,
        &L::split_by_node, &L::group, &L::free_comm, &L::comm_rank, &L::comm_size, &L::broadcast, &L::all_gather,
        &L::all_reduce_min, &L::send, &L::send_synchronous, &L::receive, &L::probe, &L::receive_probed,
        &L::start_broadcast, &L::start_barrier, &L::test, &L::cancel>(plugin.library);
  return &plugin;
}

}  // namespace
}  // namespace syncline::comm

extern "C" __attribute__((visibility("default"))) const syncline::comm::MpiPlugin* syncline_mpi_plugin_3() {
  static const syncline::comm::MpiPlugin* plugin = syncline::comm::load();
  return plugin;
}
