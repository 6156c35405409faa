"""Products and gathered rows."""

import numpy as np

from generate.oracle import array, case, real, whole

FLOATS = ("float32", "float64")

DOTS = [((2, 3), (3, 4)), ((1, 1), (1, 1)), ((4, 5), (5, 1)), ((1, 7), (7, 3)), ((2, 3, 4), (4, 5)), ((2, 2, 3, 2), (2, 3)),
        ((2, 3), (2, 3, 4)), ((2, 3, 4), (5, 4, 2)), ((2, 2, 3), (2, 2, 3, 2)), ((0, 3), (3, 2)), ((2, 3), (3, 0)), ((2, 0), (0, 3)),
        ((17, 33), (33, 9))]
for x, y in DOTS:
    for dtype in FLOATS:
        case("dot", [real(*x, dtype=dtype), real(*y, dtype=dtype)], open_batch=len(y) < 3 or [0])
case("dot", [array([[np.inf, 1.0], [np.nan, 0.0]]), array([[1.0, 2.0], [3.0, 4.0]])], label="special")

for reference in ((4,), (4, 3), (5, 2, 2), (1, 6), (33, 2)):
    for indices in ((3,), (2, 2), (), (0,), (2, 1, 3)):
        dtype = "float64" if len(indices) == 2 else "float32"
        case("gather", [real(*reference, dtype=dtype), whole(*indices, low=0, high=reference[0] - 1)])
for dtype in ("int64", "int32"):
    case("gather", [real(5, 3, dtype="float64"), array([4, 4, 0, 4], dtype)], label="repeated")
for dtype in ("int32", "int64", "uint8", "bool"):
    case("gather", [whole(5, 3, dtype=dtype, low=0, high=1), array([[1, 2], [0, 4]], "int32")])
case("gather", [real(3, 0), array([0, 2], "int32")], label="empty_rows")
