// NcclLibrary: the NCCL and CUDA runtime functions that Syncline calls, looked up at run time.
//
// Nothing is linked: one build serves machines with and without GPUs, and a stand-in can replace the libraries by name.
// The declarations are part of the documented C interface (NCCL 2.14 and later, CUDA 11 and later). Where CMake finds
// the toolkit's headers, cuda_interface_check.cc and nccl_interface_check.cc compare the declarations with them.
//
// A table of plain pointers; copy it freely. The libraries stay loaded until the process ends.
#pragma once

#include <climits>
#include <cstddef>
#include <string>

// Opaque types of the libraries.
struct ncclComm;
struct CUstream_st;
struct CUevent_st;

namespace syncline::comm {

inline constexpr int kCudaSuccess = 0;
inline constexpr int kCudaNotReady = 600;
inline constexpr int kCudaHostToDevice = 1;
inline constexpr int kCudaDeviceToHost = 2;
inline constexpr unsigned kCudaHostAllocDefault = 0;
inline constexpr unsigned kCudaHostRegisterDefault = 0;
inline constexpr unsigned kCudaStreamNonBlocking = 1;
inline constexpr unsigned kCudaEventDisableTiming = 2;

inline constexpr int kNcclSuccess = 0;
inline constexpr int kNcclInProgress = 7;
inline constexpr int kNcclSum = 0;
inline constexpr int kNcclMax = 2;
inline constexpr int kNcclMin = 3;
inline constexpr int kNcclInt8 = 0;
inline constexpr int kNcclUint8 = 1;
inline constexpr int kNcclInt32 = 2;
inline constexpr int kNcclInt64 = 4;
inline constexpr int kNcclFloat32 = 7;
inline constexpr int kNcclFloat64 = 8;

struct NcclUniqueId {
  char internal[128];
};

// The configuration of NCCL 2.14. Later libraries accept this version and use defaults for newer fields.
struct NcclConfig {
  std::size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = 0;
  int not_set = INT_MIN;  // padding: later versions read it as a field that is not set
};

struct NcclLibrary {
  int (*cudaGetDeviceCount)(int* count);
  int (*cudaSetDevice)(int device);
  int (*cudaDeviceGetPCIBusId)(char* text, int length, int device);
  int (*cudaHostAlloc)(void** memory, std::size_t bytes, unsigned flags);
  int (*cudaFreeHost)(void* memory);
  int (*cudaHostRegister)(void* memory, std::size_t bytes, unsigned flags);
  int (*cudaHostUnregister)(void* memory);
  int (*cudaMalloc)(void** memory, std::size_t bytes);
  int (*cudaFree)(void* memory);
  int (*cudaStreamCreateWithFlags)(CUstream_st** stream, unsigned flags);
  int (*cudaStreamSynchronize)(CUstream_st* stream);
  int (*cudaStreamWaitEvent)(CUstream_st* stream, CUevent_st* event, unsigned flags);
  int (*cudaStreamDestroy)(CUstream_st* stream);
  int (*cudaEventCreateWithFlags)(CUevent_st** event, unsigned flags);
  int (*cudaEventRecord)(CUevent_st* event, CUstream_st* stream);
  int (*cudaEventQuery)(CUevent_st* event);
  int (*cudaEventDestroy)(CUevent_st* event);
  int (*cudaMemcpyAsync)(void* to, const void* from, std::size_t bytes, int direction, CUstream_st* stream);
  const char* (*cudaGetErrorName)(int code);
  const char* (*cudaGetErrorString)(int code);

  int (*ncclGetVersion)(int* version);
  int (*ncclGetUniqueId)(NcclUniqueId* id);
  int (*ncclCommInitRankConfig)(ncclComm** comm, int size, NcclUniqueId id, int rank, NcclConfig* config);
  int (*ncclCommGetAsyncError)(ncclComm* comm, int* code);
  int (*ncclAllReduce)(const void* send, void* receive, std::size_t count, int dtype, int reduction, ncclComm* comm,
                       CUstream_st* stream);
  int (*ncclCommFinalize)(ncclComm* comm);
  int (*ncclCommDestroy)(ncclComm* comm);
  int (*ncclCommAbort)(ncclComm* comm);
  const char* (*ncclGetErrorString)(int code);
  const char* (*ncclGetLastError)(ncclComm* comm);
};

// Each function loads one library and fills its part of the table. `name` is a name or path; "": the usual names. Both
// throw CommError with the loader's text. NCCL is large: load it only if CUDA finds a GPU.
void load_cudart(NcclLibrary& library, const std::string& name);
void load_nccl(NcclLibrary& library, const std::string& name);

}  // namespace syncline::comm
