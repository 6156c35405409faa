// Everything that the Keras 2 backend documents, under its own names: what a program that uses Syncline includes.
#pragma once

#include "ops/control.h"
#include "ops/convolution.h"
#include "ops/core.h"
#include "ops/ctc.h"
#include "ops/gradients.h"
#include "ops/linalg.h"
#include "ops/math.h"
#include "ops/nn.h"
#include "ops/reduce.h"
#include "ops/shape.h"
#include "ops/sparse.h"
#include "runtime/config.h"
#include "runtime/function.h"
#include "runtime/sparse_variable.h"
#include "runtime/variable.h"
