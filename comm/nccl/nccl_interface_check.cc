// Compiled if CMake finds NCCL's header, never linked: compares the declarations of nccl_library.h with the header.
#include <nccl.h>

#include <cstddef>

#include "comm/nccl/interface_check.h"
#include "comm/nccl/nccl_library.h"

namespace syncline::comm {

static_assert(kNcclSuccess == ncclSuccess && kNcclInProgress == ncclInProgress);
static_assert(kNcclSum == ncclSum && kNcclMax == ncclMax && kNcclMin == ncclMin);
static_assert(kNcclInt8 == ncclInt8 && kNcclUint8 == ncclUint8 && kNcclInt32 == ncclInt32);
static_assert(kNcclInt64 == ncclInt64 && kNcclFloat32 == ncclFloat32 && kNcclFloat64 == ncclFloat64);

static_assert(sizeof(NcclUniqueId) == sizeof(ncclUniqueId) && alignof(NcclUniqueId) == alignof(ncclUniqueId));
static_assert(offsetof(NcclConfig, size) == offsetof(ncclConfig_t, size));
static_assert(offsetof(NcclConfig, magic) == offsetof(ncclConfig_t, magic));
static_assert(offsetof(NcclConfig, version) == offsetof(ncclConfig_t, version));
static_assert(offsetof(NcclConfig, blocking) == offsetof(ncclConfig_t, blocking));
static_assert(sizeof(NcclConfig) <= sizeof(ncclConfig_t));
constexpr ncclConfig_t kTheirs = NCCL_CONFIG_INITIALIZER;
constexpr NcclConfig kOurs;
static_assert(kOurs.magic == kTheirs.magic && kOurs.not_set == NCCL_CONFIG_UNDEF_INT);
static_assert(kOurs.version == NCCL_VERSION(2, 14, 0) && kOurs.version <= kTheirs.version);

template <>
inline constexpr bool kSameRecord<NcclUniqueId, ncclUniqueId> = true;
template <>
inline constexpr bool kSameRecord<NcclConfig, ncclConfig_t> = true;

#define SYNCLINE_SAME_INTERFACE(name) static_assert(kSameInterface<decltype(NcclLibrary::name), decltype(&::name)>)
SYNCLINE_SAME_INTERFACE(ncclGetVersion);
SYNCLINE_SAME_INTERFACE(ncclGetUniqueId);
SYNCLINE_SAME_INTERFACE(ncclCommInitRankConfig);
SYNCLINE_SAME_INTERFACE(ncclCommGetAsyncError);
SYNCLINE_SAME_INTERFACE(ncclAllReduce);
SYNCLINE_SAME_INTERFACE(ncclCommFinalize);
SYNCLINE_SAME_INTERFACE(ncclCommDestroy);
SYNCLINE_SAME_INTERFACE(ncclCommAbort);
SYNCLINE_SAME_INTERFACE(ncclGetErrorString);
SYNCLINE_SAME_INTERFACE(ncclGetLastError);
#undef SYNCLINE_SAME_INTERFACE

}  // namespace syncline::comm
