"""Activations, losses and normalization."""

import numpy as np

from generate.oracle import array, case, real

INF, NAN = np.inf, np.nan

for dtype in ("float32", "float64"):
    for axis in (-1, 0, 1):
        case("softmax", [real(3, 4, dtype=dtype)], axis=axis)
    case("softmax", [real(2, 3, 4, dtype=dtype)], axis=1)
case("softmax", [array([[1000.0, 1001.0, 0.0], [-1000.0, -1000.0, -1000.0]])], label="large")
case("softmax", [array([[-INF, 0.0, 1.0], [NAN, 0.0, 1.0]])], label="special")
case("softmax", [real(0, 4)], label="empty")
