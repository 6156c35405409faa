// A plugin: the table of mpi_library.h for the MPI library whose mpi.h is compiled here. It depends on that library
// only, not on libsyncline. See mpi_library.h for the contract of each function.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "comm/mpi/mpi_library.h"

// The kind that CMake has found; it names the file.
#if defined(OMPI_MAJOR_VERSION) != SYNCLINE_OPEN_MPI
#error "mpi.h is not that of the MPI library for which this plugin is built; look at CPATH"
#endif

#define SYNCLINE_TEXT(x) #x
#define SYNCLINE_NUMBER(x) SYNCLINE_TEXT(x)

namespace syncline::comm {
namespace {

#ifdef OMPI_MAJOR_VERSION
constexpr const char* kBuilt = "Open MPI " SYNCLINE_NUMBER(OMPI_MAJOR_VERSION) "." SYNCLINE_NUMBER(
    OMPI_MINOR_VERSION) "." SYNCLINE_NUMBER(OMPI_RELEASE_VERSION);
#else
constexpr const char* kBuilt = "MPICH " MPICH_VERSION;
#endif

// A handle is a pointer or an int.
template <class Native>
std::intptr_t bits_of(Native handle) {
  if constexpr (std::is_pointer_v<Native>) return reinterpret_cast<std::intptr_t>(handle);
  else return static_cast<std::intptr_t>(handle);
}
template <class Native>
Native from_bits(std::intptr_t bits) {
  if constexpr (std::is_pointer_v<Native>) return reinterpret_cast<Native>(bits);
  else return static_cast<Native>(bits);
}

template <class Opaque, class Native>
Opaque opaque(Native handle, Native null) {
  return handle == null ? Opaque::kNull : static_cast<Opaque>(bits_of(handle));
}
template <class Native, class Opaque>
Native native(Opaque handle, Native null) {
  return handle == Opaque::kNull ? null : from_bits<Native>(static_cast<std::intptr_t>(handle));
}

MPI_Comm native(MpiComm comm) { return native(comm, MPI_COMM_NULL); }
MPI_Request native(MpiRequest request) { return native(request, MPI_REQUEST_NULL); }

// For calls that make a communicator.
int give(int code, MPI_Comm made, MpiComm* comm) {
  *comm = opaque<MpiComm>(made, MPI_COMM_NULL);
  if (code != MPI_SUCCESS || made == MPI_COMM_NULL) return code;
  return MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
}
int give(int code, MPI_Request made, MpiRequest* request) {
  *request = opaque<MpiRequest>(made, MPI_REQUEST_NULL);
  return code;
}

int give_text(int code, const char* found, char* text, int room) {
  std::strncpy(text, found, static_cast<std::size_t>(room) - 1);
  text[room - 1] = '\0';
  return code;
}

int state(int* initialized, int* finalized) {
  const int code = MPI_Initialized(initialized);
  return code != MPI_SUCCESS ? code : MPI_Finalized(finalized);
}

int initialize(int* serialized) {
  // Ranks that wait inside Open MPI yield the core to other threads. A user's own setting wins.
  ::setenv("OMPI_MCA_mpi_yield_when_idle", "1", /*overwrite=*/0);
  ::setenv("OMPI_MCA_btl_base_warn_component_unused", "0", /*overwrite=*/0);
  int level = MPI_THREAD_SINGLE;
  const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
  *serialized = level >= MPI_THREAD_SERIALIZED ? 1 : 0;
  return code;
}

int query_thread(int* serialized) {
  int level = MPI_THREAD_SINGLE;
  const int code = MPI_Query_thread(&level);
  *serialized = level >= MPI_THREAD_SERIALIZED ? 1 : 0;
  return code;
}

int abort(int exit_code) { return MPI_Abort(MPI_COMM_WORLD, exit_code); }

int error_string(int code, char* text, int room) {
  char found[MPI_MAX_ERROR_STRING] = "unknown error";
  int length = 0;
  const int result = MPI_Error_string(code, found, &length);
  return give_text(result, found, text, room);
}

// "Open MPI v4.1.4, package: Debian OpenMPI, ident: ..."; "MPICH Version:\t4.0.2\nMPICH Release date:..."
int version(char* text, int room) {
  char found[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  const int code = MPI_Get_library_version(found, &length);
  std::string line = found;
  line = line.substr(0, line.find_first_of(",\n"));
  for (const char* mark : {" v", " Version:", "\t"})
    if (const std::size_t at = line.find(mark); at != line.npos) {
      line[at] = ' ';
      line.erase(at + 1, std::strlen(mark) - 1);
    }
  line.erase(std::unique(line.begin(), line.end(), [](char a, char b) { return a == ' ' && b == ' '; }), line.end());
  return give_text(code, line.c_str(), text, room);
}

int control_variable(const char* name, char* text, int room) {
  text[0] = '\0';
  int level = 0, index = 0, count = 0;
  if (const int code = MPI_T_init_thread(MPI_THREAD_SINGLE, &level); code != MPI_SUCCESS) return code;
  MPI_T_cvar_handle handle;
  if (MPI_T_cvar_get_index(name, &index) == MPI_SUCCESS &&
      MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count) == MPI_SUCCESS) {
    std::vector<char> found(static_cast<std::size_t>(count) + 1, '\0');
    if (MPI_T_cvar_read(handle, found.data()) == MPI_SUCCESS) give_text(MPI_SUCCESS, found.data(), text, room);
    MPI_T_cvar_handle_free(&handle);
  }
  return MPI_T_finalize();
}

int world_size(int* size) { return MPI_Comm_size(MPI_COMM_WORLD, size); }

int duplicate_world(MpiComm* copy) {
  MPI_Comm made = MPI_COMM_NULL;
  const int code = MPI_Comm_dup(MPI_COMM_WORLD, &made);
  return give(code, made, copy);
}

int split_by_node(MpiComm comm, int key, MpiComm* node) {
  MPI_Comm made = MPI_COMM_NULL;
  const int code = MPI_Comm_split_type(native(comm), MPI_COMM_TYPE_SHARED, key, MPI_INFO_NULL, &made);
  return give(code, made, node);
}

int group(MpiComm comm, const int* ranks, int count, MpiComm* group) {
  MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
  MPI_Comm made = MPI_COMM_NULL;
  int code = MPI_Comm_group(native(comm), &all);
  if (code == MPI_SUCCESS) code = MPI_Group_incl(all, count, ranks, &some);
  if (code == MPI_SUCCESS) code = MPI_Comm_create_group(native(comm), some, MpiLibrary::kGroupTag, &made);
  if (code == MPI_SUCCESS) code = MPI_Group_free(&some);
  if (code == MPI_SUCCESS) code = MPI_Group_free(&all);
  return give(code, made, group);
}

int free_comm(MpiComm* comm) {
  MPI_Comm freed = native(*comm);
  *comm = MpiComm::kNull;
  return MPI_Comm_free(&freed);
}

int comm_rank(MpiComm comm, int* rank) { return MPI_Comm_rank(native(comm), rank); }
int comm_size(MpiComm comm, int* size) { return MPI_Comm_size(native(comm), size); }

int broadcast(void* data, int bytes, int root, MpiComm comm) {
  return MPI_Bcast(data, bytes, MPI_BYTE, root, native(comm));
}

int all_gather(const void* own, int bytes, void* all, MpiComm comm) {
  return MPI_Allgather(own, bytes, MPI_BYTE, all, bytes, MPI_BYTE, native(comm));
}

int all_reduce_min(int* value, MpiComm comm) {
  return MPI_Allreduce(MPI_IN_PLACE, value, 1, MPI_INT, MPI_MIN, native(comm));
}

int send(const void* data, int bytes, int rank, int tag, MpiComm comm, MpiRequest* request) {
  MPI_Request made = MPI_REQUEST_NULL;
  const int code = MPI_Isend(data, bytes, MPI_BYTE, rank, tag, native(comm), &made);
  return give(code, made, request);
}

int send_synchronous(const void* data, int bytes, int rank, int tag, MpiComm comm, MpiRequest* request) {
  MPI_Request made = MPI_REQUEST_NULL;
  const int code = MPI_Issend(data, bytes, MPI_BYTE, rank, tag, native(comm), &made);
  return give(code, made, request);
}

int receive(void* data, int bytes, int rank, int tag, MpiComm comm, MpiRequest* request) {
  MPI_Request made = MPI_REQUEST_NULL;
  const int code = MPI_Irecv(data, bytes, MPI_BYTE, rank, tag, native(comm), &made);
  return give(code, made, request);
}

int probe(int rank, int tag, MpiComm comm, int* there, int* bytes, int* from) {
  MPI_Status status;
  const int source = rank == MpiLibrary::kAnySource ? MPI_ANY_SOURCE : rank;
  const int code = MPI_Iprobe(source, tag, native(comm), there, &status);
  if (code != MPI_SUCCESS || *there == 0) return code;
  *from = status.MPI_SOURCE;
  return MPI_Get_count(&status, MPI_BYTE, bytes);
}

int receive_probed(void* data, int bytes, int rank, int tag, MpiComm comm) {
  return MPI_Recv(data, bytes, MPI_BYTE, rank, tag, native(comm), MPI_STATUS_IGNORE);
}

int start_broadcast(void* data, int bytes, int root, MpiComm comm, MpiRequest* request) {
  MPI_Request made = MPI_REQUEST_NULL;
  const int code = MPI_Ibcast(data, bytes, MPI_BYTE, root, native(comm), &made);
  return give(code, made, request);
}

int start_barrier(MpiComm comm, MpiRequest* request) {
  MPI_Request made = MPI_REQUEST_NULL;
  const int code = MPI_Ibarrier(native(comm), &made);
  return give(code, made, request);
}

int test(MpiRequest* request, int* done) {
  MPI_Request tested = native(*request);
  const int code = MPI_Test(&tested, done, MPI_STATUS_IGNORE);
  return give(code, tested, request);
}

int cancel(MpiRequest request) {
  MPI_Request cancelled = native(request);
  return MPI_Cancel(&cancelled);
}

const MpiPlugin kPlugin{
    .built = kBuilt,
    .mpi_initialized = reinterpret_cast<const void*>(&MPI_Initialized),
    .library =
        {
            .state = state,
            .initialize = initialize,
            .query_thread = query_thread,
            .finalize = MPI_Finalize,
            .abort = abort,
            .error_string = error_string,
            .version = version,
            .control_variable = control_variable,
            .world_size = world_size,
            .duplicate_world = duplicate_world,
            .split_by_node = split_by_node,
            .group = group,
            .free_comm = free_comm,
            .comm_rank = comm_rank,
            .comm_size = comm_size,
            .broadcast = broadcast,
            .all_gather = all_gather,
            .all_reduce_min = all_reduce_min,
            .send = send,
            .send_synchronous = send_synchronous,
            .receive = receive,
            .probe = probe,
            .receive_probed = receive_probed,
            .start_broadcast = start_broadcast,
            .start_barrier = start_barrier,
            .test = test,
            .cancel = cancel,
        },
};

}  // namespace
}  // namespace syncline::comm

extern "C" __attribute__((visibility("default"))) const syncline::comm::MpiPlugin* syncline_mpi_plugin_3() {
  return &syncline::comm::kPlugin;
}
