// with_nccl: adds NCCL for large all-reduces to a wire.
#pragma once

#include <memory>

#include "comm/nccl/nccl_options.h"
#include "comm/worker/worker.h"

namespace syncline::comm {

// Collective, before any other collective of the wire. The ranks exchange reports, make the same decision and start
// NCCL together. If a rank cannot use NCCL or its start fails, throws CommError on every rank. If a rank does not come,
// throws StallError. `inner` is closed before either is thrown.
std::unique_ptr<Wire> with_nccl(std::unique_ptr<Wire> inner, const NcclOptions& options);

}  // namespace syncline::comm
