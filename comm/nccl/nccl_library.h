// NcclLibrary: the functions of NCCL and of the CUDA runtime that we call, looked up when the program runs.
//
// Nothing is linked, so one build serves machines with and without GPUs, and a stand-in can take the libraries' place
// by name. What is declared here is a part of their documented C interface (NCCL 2.14 and later, CUDA 11 and later);
// where CMake finds the toolkit's headers, cuda_interface_check.cc and nccl_interface_check.cc compare it with them.
//
// A table of plain pointers, freely copied. The libraries stay loaded until the process ends.
#pragma once

#include <climits>
#include <cstddef>
#include <string>

// The tags of the libraries' own opaque types.
struct ncclComm;
struct CUstream_st;
struct CUevent_st;

namespace syncline::comm {

inline constexpr int kCudaSuccess = 0;
inline constexpr int kCudaNotReady = 600;
inline constexpr int kCudaHostToDevice = 1;
inline constexpr int kCudaDeviceToHost = 2;
inline constexpr unsigned kCudaHostAllocDefault = 0;
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

// The configuration as of NCCL 2.14. Later libraries take it by its version and use their own values for the rest.
struct NcclConfig {
  std::size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = 0;
  int not_set = INT_MIN;  // fills the struct up; reads as "not set" where later versions have a field
};

struct NcclLibrary {
  int (*cudaGetDeviceCount)(int* count);
  int (*cudaSetDevice)(int device);
  int (*cudaDeviceGetPCIBusId)(char* text, int length, int device);
  int (*cudaHostAlloc)(void** memory, std::size_t bytes, unsigned flags);
  int (*cudaFreeHost)(void* memory);
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

// Each loads one library, of this name or, for "", of the usual ones, and fills its part of the table. They throw
// CommError, with the loader's own text. (NCCL's is large: it is not worth loading where CUDA finds no GPU.)
void load_cudart(NcclLibrary& library, const std::string& name);
void load_nccl(NcclLibrary& library, const std::string& name);

}  // namespace syncline::comm
