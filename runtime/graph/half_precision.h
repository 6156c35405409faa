// float16's one rule: elements are stored in float16 and computed in float32. An op that computes on float16 becomes,
// in every plan, cast -> the op on float32 -> cast; ops that only move, make or convert elements say so (kTakesFloat16
// in ops/graph/op.h) and run as they are. Results are rounded to float16 after each op, as TensorFlow does, not within
// one. The replacement comes before placement, so that sums over ranks are float32 and rounded once.
#pragma once

#include "syncline/expr.h"

namespace syncline {

bool computes_on_float16(const Node& node);

// The node's op on its inputs, those of float16 cast to float32: outputs that were float16 are float32, to be cast
// back.
Expr on_float32(const Node& node);

}  // namespace syncline
