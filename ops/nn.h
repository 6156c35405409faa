// Activations, losses, normalization, convolution and pooling of the Keras backend.
#pragma once

#include "ops/expr.h"

namespace syncline {

Expr sigmoid(const Expr& x);
Expr tanh(const Expr& x);
Expr softplus(const Expr& x);  // log(1 + exp(x))

}  // namespace syncline
