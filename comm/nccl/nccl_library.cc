#include "comm/nccl/nccl_library.h"

#include <dlfcn.h>

#include <vector>

#include "syncline/error.h"

namespace syncline::comm {
namespace {

struct Loaded {
  void* handle = nullptr;
  std::string name;
};

// Loads the first of the names that can be loaded.
Loaded open_library(const std::vector<std::string>& names, const char* variable) {
  std::string problems;
  for (const std::string& name : names) {
    if (void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL); handle != nullptr) return {handle, name};
    problems += (problems.empty() ? "" : "; ") + std::string(dlerror());
  }
  fail<CommError>("NCCL: cannot load ", names.front(), " (", problems, "); ", variable, " can name another file");
}

template <class Function>
void find(Function& function, const char* symbol, const Loaded& library) {
  function = reinterpret_cast<Function>(dlsym(library.handle, symbol));
  if (function == nullptr)
    fail<CommError>("NCCL: ", library.name, " has no ", symbol,
                    "; NCCL 2.14 and CUDA 11 are the oldest supported versions");
}

void find_cuda(NcclLibrary& f, const Loaded& library) {
  find(f.cudaGetDeviceCount, "cudaGetDeviceCount", library);
  find(f.cudaSetDevice, "cudaSetDevice", library);
  find(f.cudaDeviceGetPCIBusId, "cudaDeviceGetPCIBusId", library);
  find(f.cudaHostAlloc, "cudaHostAlloc", library);
  find(f.cudaFreeHost, "cudaFreeHost", library);
  find(f.cudaHostRegister, "cudaHostRegister", library);
  find(f.cudaHostUnregister, "cudaHostUnregister", library);
  find(f.cudaMalloc, "cudaMalloc", library);
  find(f.cudaFree, "cudaFree", library);
  find(f.cudaStreamCreateWithFlags, "cudaStreamCreateWithFlags", library);
  find(f.cudaStreamSynchronize, "cudaStreamSynchronize", library);
  find(f.cudaStreamWaitEvent, "cudaStreamWaitEvent", library);
  find(f.cudaStreamDestroy, "cudaStreamDestroy", library);
  find(f.cudaEventCreateWithFlags, "cudaEventCreateWithFlags", library);
  find(f.cudaEventRecord, "cudaEventRecord", library);
  find(f.cudaEventQuery, "cudaEventQuery", library);
  find(f.cudaEventDestroy, "cudaEventDestroy", library);
  find(f.cudaMemcpyAsync, "cudaMemcpyAsync", library);
  find(f.cudaGetErrorName, "cudaGetErrorName", library);
  find(f.cudaGetErrorString, "cudaGetErrorString", library);
}

void find_nccl(NcclLibrary& f, const Loaded& library) {
  find(f.ncclGetVersion, "ncclGetVersion", library);
  find(f.ncclGetUniqueId, "ncclGetUniqueId", library);
  find(f.ncclCommInitRankConfig, "ncclCommInitRankConfig", library);
  find(f.ncclCommGetAsyncError, "ncclCommGetAsyncError", library);
  find(f.ncclAllReduce, "ncclAllReduce", library);
  find(f.ncclCommFinalize, "ncclCommFinalize", library);
  find(f.ncclCommDestroy, "ncclCommDestroy", library);
  find(f.ncclCommAbort, "ncclCommAbort", library);
  find(f.ncclGetErrorString, "ncclGetErrorString", library);
  find(f.ncclGetLastError, "ncclGetLastError", library);
}

}  // namespace

void load_cudart(NcclLibrary& library, const std::string& name) {
  std::vector<std::string> names{"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"};
  if (!name.empty()) names = {name};
  find_cuda(library, open_library(names, "SYNCLINE_CUDART_LIBRARY"));
}

void load_nccl(NcclLibrary& library, const std::string& name) {
  find_nccl(library, open_library({name.empty() ? "libnccl.so.2" : name}, "SYNCLINE_NCCL_LIBRARY"));
}

}  // namespace syncline::comm
