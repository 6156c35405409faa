#include "comm/settings.h"

#include "base/error.h"

namespace syncline::comm {

Transport parse_transport(std::string_view name) {
  if (name == "auto") return Transport::kAuto;
  if (name == "shared") return Transport::kShared;
  if (name == "mpi") return Transport::kMpi;
  if (name == "nccl") return Transport::kNccl;
  fail("give auto, shared, mpi or nccl");
}

WireFormat parse_wire_format(std::string_view name) {
  if (name == "float32") return WireFormat::kSame;
  if (name == "float16") return WireFormat::kFloat16;
  if (name == "bfloat16") return WireFormat::kBfloat16;
  fail("give float32, float16 or bfloat16");
}

}  // namespace syncline::comm
