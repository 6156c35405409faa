"""Functions that rearrange elements."""

from generate.oracle import case, real, truth, whole

for dtype in ("float32", "float64"):
    case("concatenate", [[real(2, 3, dtype=dtype), real(2, 1, dtype=dtype)]])
    case("concatenate", [[real(2, 3, dtype=dtype), real(4, 3, dtype=dtype)]], axis=0)
case("concatenate", [[whole(2, 1, 2), whole(2, 3, 2), whole(2, 2, 2)]], axis=-2)
case("concatenate", [[truth(3), truth(2)]], axis=0)
