"""batch_dot over ranks, axes, dtypes and empty dimensions."""

import numpy as np

from generate.oracle import array, case, real


def by_einsum(x, y, axes=None):
    """batch_dot by the documentation, for arguments that TensorFlow rejects."""
    if axes is None:
        axes = (x.ndim - 1, y.ndim - (1 if y.ndim == 2 else 2))
    a, b = (axes, axes) if isinstance(axes, int) else axes
    a, b = a % x.ndim, b % y.ndim
    of_x, of_y = list("aijklm"[: x.ndim]), list("apqrst"[: y.ndim])
    of_x[a] = of_y[b] = "z"
    result = [letter for letter in of_x if letter != "z"] + [letter for letter in of_y[1:] if letter != "z"]
    product = np.einsum(f"{''.join(of_x)},{''.join(of_y)}->{''.join(result)}", x, y)
    return product[:, None] if product.ndim == 1 else product


AXES = [
    ((2, 3), (2, 3), 1), ((2, 3), (2, 3), None), ((2, 3), (2, 3), [1, 1]), ((2, 3), (2, 3), -1),
    ((2, 3), (2, 4, 3), [1, 2]), ((2, 3), (2, 3, 4), [1, 1]), ((2, 3), (2, 3, 4), None), ((2, 4, 3), (2, 3), [2, 1]),
    ((2, 3, 4), (2, 3), [1, 1]), ((2, 4, 3), (2, 3), None),
    ((2, 3, 4), (2, 4, 5), [2, 1]), ((2, 3, 4), (2, 4, 5), None), ((2, 4, 3), (2, 4, 5), 1), ((2, 3, 4), (2, 5, 4), 2),
    ((2, 3, 4), (2, 5, 4), [-1, -1]), ((2, 4, 3), (2, 5, 4), [1, 2]),
    ((2, 3, 2, 4), (2, 4, 5), [3, 1]), ((2, 3, 4), (2, 2, 4, 3), None), ((2, 3, 2, 4), (2, 2, 4, 3), [3, 2]),
    ((2, 3, 4, 2), (2, 2, 4, 3), [2, 2]), ((2, 4, 2, 3), (2, 4, 2), [1, 1]), ((2, 2, 2, 2, 3), (2, 3, 2), [4, 1]),
    ((1, 1), (1, 1), 1), ((3, 5, 1), (3, 6, 5), [1, 2]),
]
for x, y, axes in AXES:
    for dtype in ("float32", "float64"):
        case("batch_dot", [real(*x, dtype=dtype), real(*y, dtype=dtype)], axes=axes)
for x, y, axes in [((0, 3), (0, 3), 1), ((2, 0), (2, 0), 1), ((2, 0, 3), (2, 3, 4), [2, 1]), ((2, 3, 0), (2, 0, 4), None)]:
    case("batch_dot", [real(*x, dtype="float64"), real(*y, dtype="float64")], oracle=by_einsum, label="empty", axes=axes)
case("batch_dot", [array([[np.inf, 1.0], [np.nan, 0.0]]), array([[1.0, 2.0], [3.0, 4.0]])], label="special", axes=1)
