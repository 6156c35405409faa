// All functions of the Keras 2 backend, under Keras's names. Programs that use Syncline include this header.
#pragma once

#include "syncline/backend/config.h"
#include "syncline/backend/control.h"
#include "syncline/backend/convolution.h"
#include "syncline/backend/core.h"
#include "syncline/backend/ctc.h"
#include "syncline/backend/function.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "syncline/backend/sparse.h"
#include "syncline/backend/sparse_variable.h"
#include "syncline/backend/variable.h"
