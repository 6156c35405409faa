// with_nccl: a wire that uses NCCL for large all-reduces, where all ranks can.
#pragma once

#include <memory>

#include "comm/nccl/nccl_options.h"
#include "comm/worker/worker.h"

namespace syncline::comm {

// Collective, before any other job of the wire: the ranks exchange what they have, decide alike, and start NCCL
// together. Returns `inner` itself where NCCL is not used. Where it was only hoped for (not options.required), a start
// that fails on a rank is no error either: no rank then uses it. Otherwise throws CommError, on every rank, or
// StallError if a rank does not come; `inner` is then closed.
std::unique_ptr<Wire> with_nccl(std::unique_ptr<Wire> inner, const NcclOptions& options);

}  // namespace syncline::comm
