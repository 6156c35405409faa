// Compiled if CMake finds the CUDA toolkit, never linked: compares the declarations of nccl_library.h with CUDA's
// header. It includes only the C interface, because <cuda_runtime.h> adds overloads.
#include <cuda_runtime_api.h>

#include "comm/nccl/interface_check.h"
#include "comm/nccl/nccl_library.h"

namespace syncline::comm {
namespace {

static_assert(kCudaSuccess == cudaSuccess && kCudaNotReady == cudaErrorNotReady);
static_assert(kCudaHostToDevice == cudaMemcpyHostToDevice && kCudaDeviceToHost == cudaMemcpyDeviceToHost);
static_assert(kCudaHostAllocDefault == cudaHostAllocDefault && kCudaStreamNonBlocking == cudaStreamNonBlocking);
static_assert(kCudaHostRegisterDefault == cudaHostRegisterDefault);
static_assert(kCudaEventDisableTiming == cudaEventDisableTiming);

#define SYNCLINE_SAME_INTERFACE(name) static_assert(kSameInterface<decltype(NcclLibrary::name), decltype(&::name)>)
SYNCLINE_SAME_INTERFACE(cudaGetDeviceCount);
SYNCLINE_SAME_INTERFACE(cudaSetDevice);
SYNCLINE_SAME_INTERFACE(cudaDeviceGetPCIBusId);
SYNCLINE_SAME_INTERFACE(cudaHostAlloc);
SYNCLINE_SAME_INTERFACE(cudaFreeHost);
SYNCLINE_SAME_INTERFACE(cudaHostRegister);
SYNCLINE_SAME_INTERFACE(cudaHostUnregister);
SYNCLINE_SAME_INTERFACE(cudaMalloc);
SYNCLINE_SAME_INTERFACE(cudaFree);
SYNCLINE_SAME_INTERFACE(cudaStreamCreateWithFlags);
SYNCLINE_SAME_INTERFACE(cudaStreamSynchronize);
SYNCLINE_SAME_INTERFACE(cudaStreamWaitEvent);
SYNCLINE_SAME_INTERFACE(cudaStreamDestroy);
SYNCLINE_SAME_INTERFACE(cudaEventCreateWithFlags);
SYNCLINE_SAME_INTERFACE(cudaEventRecord);
SYNCLINE_SAME_INTERFACE(cudaEventQuery);
SYNCLINE_SAME_INTERFACE(cudaEventDestroy);
SYNCLINE_SAME_INTERFACE(cudaMemcpyAsync);
SYNCLINE_SAME_INTERFACE(cudaGetErrorName);
SYNCLINE_SAME_INTERFACE(cudaGetErrorString);
#undef SYNCLINE_SAME_INTERFACE

}  // namespace
}  // namespace syncline::comm
