// MpiLibrary: the MPI functions that Syncline calls, looked up at run time.
//
// Nothing is linked: one build runs without MPI, and with each MPI library for which a plugin was built. MPI fixes no
// binary interface (a communicator is a pointer in Open MPI and an int in MPICH), so plugin.cc is compiled once per
// library and fills this table. The launcher decides which plugin is loaded.
//
// Handles are opaque; 0 is the null handle. The functions return MPI's error codes, 0 for success; check_mpi() throws.
// Only LockedMpi reaches them: several threads call MPI, one at a time. The functions of this header that are not of
// LockedMpi call what MPI allows at any time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace syncline::comm {

enum class MpiComm : std::intptr_t { kNull = 0 };
enum class MpiRequest : std::intptr_t { kNull = 0 };

struct MpiLibrary {
  static constexpr int kAnySource = -1;
  static constexpr int kGroupTag = 0;  // of messages of `group`: no other message may have it

  // The process. `serialized`: whether several threads may call MPI, one at a time.
  int (*state)(int* initialized, int* finalized);
  int (*initialize)(int* serialized);
  int (*query_thread)(int* serialized);
  int (*finalize)();
  int (*abort)(int exit_code);
  int (*error_string)(int code, char* text, int room);
  int (*version)(char* text, int room);
  // The value of one of the library's configuration variables, "" if it has none of this name.
  int (*control_variable)(const char* name, char* text, int room);

  // Communicators; the new ones return errors instead of ending the job. `group` is collective over the given ranks.
  int (*world_size)(int* size);
  int (*duplicate_world)(MpiComm* copy);
  int (*split_by_node)(MpiComm comm, int key, MpiComm* node);
  int (*group)(MpiComm comm, const int* ranks, int count, MpiComm* group);
  int (*free_comm)(MpiComm* comm);
  int (*comm_rank)(MpiComm comm, int* rank);
  int (*comm_size)(MpiComm comm, int* size);

  // Blocking; used at the start.
  int (*broadcast)(void* data, int bytes, int root, MpiComm comm);
  int (*all_gather)(const void* own, int bytes, void* all, MpiComm comm);
  int (*all_reduce_min)(int* value, MpiComm comm);

  // Messages. `test` sets a completed request to the null request; it is true for the null request.
  int (*send)(const void* data, int bytes, int rank, int tag, MpiComm comm, MpiRequest* request);
  int (*send_synchronous)(const void* data, int bytes, int rank, int tag, MpiComm comm, MpiRequest* request);
  int (*receive)(void* data, int bytes, int rank, int tag, MpiComm comm, MpiRequest* request);
  int (*probe)(int rank, int tag, MpiComm comm, int* there, int* bytes, int* from);
  int (*receive_probed)(void* data, int bytes, int rank, int tag, MpiComm comm);
  int (*start_broadcast)(void* data, int bytes, int root, MpiComm comm, MpiRequest* request);
  int (*start_barrier)(MpiComm comm, MpiRequest* request);
  int (*test)(MpiRequest* request, int* done);
  // Of a receive. `test` completes it soon, cancelled or with its message.
  int (*cancel)(MpiRequest request);
};

struct MpiPlugin {
  const char* built;            // "Open MPI 4.1.4": from the headers
  const void* mpi_initialized;  // the address of MPI_Initialized: identifies the loaded library
  MpiLibrary library;
};
// The function that a plugin exports. The number in its name counts versions of the two structs, so that a plugin of
// another version is refused.
using GetMpiPlugin = const MpiPlugin*();
inline constexpr const char* kGetMpiPlugin = "syncline_mpi_plugin_3";

// MPI for one thread: the others wait until this object is destroyed. Hold it only for calls that return at once, or
// that all ranks make together. A thread that holds one must not make another.
//
// The first object loads the plugin. The choice, by the first that applies: SYNCLINE_MPI ("openmpi", "mpich" or the
// path of a plugin); the MPI that the program has loaded; the launcher; the first that can be loaded. Throws CommError
// with the loader's text if there is none, or if the program has loaded another MPI library than the plugin's.
class LockedMpi {
 public:
  LockedMpi();
  // Waits up to this time; then the object is false and must not be called.
  explicit LockedMpi(std::chrono::seconds limit);
  explicit operator bool() const { return lock_.owns_lock(); }
  const MpiLibrary* operator->() const { return &library_; }

 private:
  const MpiLibrary& library_;
  const std::unique_lock<std::timed_mutex> lock_;
};

// Throws CommError with MPI's error text unless code is 0. `call` is MPI's name of the function, `doing` names the
// operation. Any thread may call it.
void check_mpi(int code, const char* call, std::string_view doing);

// Whether MPI is initialised, by the program or by a communicator. Loads no plugin if the process has no MPI.
bool mpi_is_initialized();

struct MpiVersion {
  std::string built;   // "Open MPI 4.1.4": from the headers of the plugin
  std::string loaded;  // the same from the loaded library
};
// Any thread may call it, also before MPI is initialised. Throws as LockedMpi() does.
MpiVersion mpi_version();

}  // namespace syncline::comm
