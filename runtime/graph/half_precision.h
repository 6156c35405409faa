// float16 is a storage type: ops compute in float32. Every plan replaces an op on float16 by cast -> op on float32 ->
// cast. Ops that only move, create or convert elements set kTakesFloat16 (ops/graph/op.h) and run unchanged. Results
// are rounded to float16 after each op, as in TensorFlow, not within an op. The replacement precedes placement, so that
// sums over ranks are float32 and are rounded once.
#pragma once

#include "syncline/expr.h"

namespace syncline {

bool computes_on_float16(const Node& node);

// Applies the node's op to its inputs, with float16 inputs cast to float32. float16 outputs become float32; the caller
// casts them back.
Expr on_float32(const Node& node);

}  // namespace syncline
