"""Functions that rearrange elements, and small tensors made from numbers."""

import numpy as np

from generate.oracle import array, case, real, truth, whole

FLOATS = ("float32", "float64")
KINDS = ("int32", "int64", "uint8", "int8")


def other_dtypes(function, *shape, **args):
    for dtype in KINDS:
        case(function, [whole(*shape, dtype=dtype, low=0)], **args)
    case(function, [truth(*shape)], **args)


for dtype in FLOATS:
    case("concatenate", [[real(2, 3, dtype=dtype), real(2, 1, dtype=dtype)]])
    case("concatenate", [[real(2, 3, dtype=dtype), real(4, 3, dtype=dtype)]], axis=0)
    case("concatenate", [[real(2, 3, 2, dtype=dtype), real(2, 1, 2, dtype=dtype), real(2, 2, 2, dtype=dtype)]], axis=1)
    case("concatenate", [[real(2, 3, 2, dtype=dtype), real(2, 1, 2, dtype=dtype)]], axis=-2)
    case("concatenate", [[real(3, dtype=dtype), real(2, dtype=dtype), real(1, dtype=dtype)]], axis=0)
    case("concatenate", [[real(2, 3, dtype=dtype), real(2, 0, dtype=dtype)]], axis=1)
    case("concatenate", [[real(0, 3, dtype=dtype), real(2, 3, dtype=dtype)]], axis=0)
    case("concatenate", [[real(2, 3, dtype=dtype)]], axis=0)
    case("concatenate", [[real(1, 2, 2, 3, dtype=dtype), real(1, 2, 2, 1, dtype=dtype)]], axis=3)
for dtype in KINDS:
    case("concatenate", [[whole(2, 3, dtype=dtype, low=0), whole(2, 2, dtype=dtype, low=0)]])
case("concatenate", [[truth(3), truth(2)]], axis=0)

for dtype in FLOATS:
    for shape, axis in (((3,), 0), ((3,), 1), ((3,), -1), ((2, 3), 0), ((2, 3), 1), ((2, 3), 2), ((2, 3), -2), ((), 0), ((0, 2), 1)):
        case("stack", [[real(*shape, dtype=dtype) for _ in range(3)]], axis=axis)
    case("stack", [[real(2, 2, dtype=dtype)]])
for dtype in KINDS:
    case("stack", [[whole(2, 3, dtype=dtype, low=0), whole(2, 3, dtype=dtype, low=0)]], axis=1)
case("stack", [[truth(3), truth(3)]])

RESHAPES = [((6,), (2, 3)), ((2, 3), (6,)), ((2, 3), (3, 2)), ((2, 3, 4), (2, 12)), ((2, 3, 4), (-1, 4)), ((2, 3, 4), (2, -1)),
            ((2, 3, 4), (-1,)), ((1,), ()), ((), (1, 1)), ((0, 3), (3, 0)), ((0, 3), (0, 1, 3)), ((4, 6), (2, 2, 3, 2)),
            ((4, 6), (8, 3)), ((5, 1, 2), (5, 2))]
for shape, target in RESHAPES:
    for dtype in FLOATS:
        case("reshape", [real(*shape, dtype=dtype)], shape=target)
other_dtypes("reshape", 2, 3, shape=(3, -1))

for shape, pattern in (((2, 3), (1, 0)), ((2, 3), (0, 1)), ((2, 3, 4), (0, 2, 1)), ((2, 3, 4), (2, 0, 1)), ((2, 3, 4), (1, 2, 0)),
                       ((2, 3, 4), (2, 1, 0)), ((2, 1, 3, 2), (0, 3, 1, 2)), ((5,), (0,)), ((0, 3), (1, 0)), ((9, 17), (1, 0))):
    for dtype in FLOATS:
        case("permute_dimensions", [real(*shape, dtype=dtype)], pattern=pattern)
other_dtypes("permute_dimensions", 2, 3, 2, pattern=(2, 0, 1))

for shape in ((2, 3), (4,), (2, 3, 4), (1, 5), (0, 3), (2, 1, 2, 3)):
    for dtype in FLOATS:
        case("transpose", [real(*shape, dtype=dtype)])
other_dtypes("transpose", 3, 4)

for shape, rep, axis in (((3,), 2, 0), ((2, 3), 2, 0), ((2, 3), 3, 1), ((2, 3), 2, -1), ((2, 3, 2), 2, 1), ((2, 3, 2), 1, 2),
                         ((1, 1), 5, 0), ((2, 0), 2, 0)):
    for dtype in FLOATS:
        case("repeat_elements", [real(*shape, dtype=dtype)], rep=rep, axis=axis)
other_dtypes("repeat_elements", 2, 3, rep=2, axis=1)

for shape, n in (((2, 3), 2), ((2, 3), 1), ((1, 4), 5), ((0, 3), 2), ((3, 1), 3)):
    for dtype in FLOATS:
        case("repeat", [real(*shape, dtype=dtype)], n=n)
other_dtypes("repeat", 2, 3, n=2)

for shape, n in (((3,), [2]), ((2, 3), [2, 1]), ((2, 3), [1, 3]), ((2, 3), [2, 2]), ((2, 1, 3), [1, 4, 2]), ((2, 2), [1, 1]),
                 ((2, 3), [0, 1]), ((0, 3), [2, 2])):
    for dtype in FLOATS:
        case("tile", [real(*shape, dtype=dtype)], n=n)
other_dtypes("tile", 2, 3, n=[2, 3])

for shape in ((4,), (2, 3), (2, 3, 4), (1, 2, 1, 3), (0, 3)):
    for dtype in FLOATS:
        case("flatten", [real(*shape, dtype=dtype)])
        if len(shape) > 1 and 0 not in shape:
            case("batch_flatten", [real(*shape, dtype=dtype)])
other_dtypes("flatten", 2, 3)
other_dtypes("batch_flatten", 2, 3, 2)

for shape, axis in (((3,), 0), ((3,), 1), ((3,), -1), ((2, 3), 0), ((2, 3), 1), ((2, 3), 2), ((2, 3), -1), ((2, 3), -2), ((), 0),
                    ((0,), 1)):
    for dtype in FLOATS:
        case("expand_dims", [real(*shape, dtype=dtype)], axis=axis)
other_dtypes("expand_dims", 2, 3, axis=1)

for shape, axis in (((1, 3), 0), ((3, 1), 1), ((3, 1), -1), ((2, 1, 3), 1), ((2, 1, 3), -2), ((1,), 0), ((1, 0), 0)):
    for dtype in FLOATS:
        case("squeeze", [real(*shape, dtype=dtype)], axis=axis)
other_dtypes("squeeze", 2, 1, 3, axis=1)

for shape, axes in (((4,), 0), ((4,), [0]), ((2, 3), 0), ((2, 3), 1), ((2, 3), [0, 1]), ((2, 3, 4), [-1]), ((2, 3, 4), [0, 2]),
                    ((0, 3), 0), ((1, 5), [1])):
    for dtype in FLOATS:
        case("reverse", [real(*shape, dtype=dtype)], axes=axes)
other_dtypes("reverse", 3, 2, axes=[0])

for padding in ((1, 1), (0, 0), (2, 0), (0, 3), (1, 2)):
    for dtype in FLOATS:
        case("temporal_padding", [real(2, 3, 2, dtype=dtype)], padding=padding)
case("temporal_padding", [real(2, 3, 4)])
case("temporal_padding", [real(0, 3, 4)], label="empty", padding=(1, 1))
other_dtypes_3d = [whole(2, 3, 2, dtype=d) for d in ("int32", "int64")]
for operand in other_dtypes_3d:
    case("temporal_padding", [operand], padding=(1, 0))

for padding in (((1, 1), (1, 1)), ((0, 0), (0, 0)), ((2, 0), (1, 3)), ((0, 1), (2, 0))):
    for data_format in ("channels_last", "channels_first"):
        for dtype in FLOATS:
            case("spatial_2d_padding", [real(2, 3, 2, 2, dtype=dtype)], padding=padding, data_format=data_format)
case("spatial_2d_padding", [real(1, 2, 2, 3)])
case("spatial_2d_padding", [whole(1, 2, 2, 3)], padding=((1, 0), (0, 1)))
case("spatial_2d_padding", [real(0, 2, 2, 3)], label="empty")

for shape in ((4,), (2, 3), (2, 1, 2), (), (0,)):
    for dtype in ("int32", "int64", "uint8"):
        case("one_hot", [whole(*shape, dtype=dtype, low=0, high=3)], num_classes=4)
case("one_hot", [array([-1, 0, 3, 4], "int32")], label="outside", num_classes=4)
case("one_hot", [array([0, 0], "int32")], label="one_class", num_classes=1)


def cut(x, start, size):
    """slice in NumPy, because TensorFlow's copy of the backend has no such function."""
    return x[tuple(np.s_[b: b + n if n >= 0 else None] for b, n in zip(start, size))]


def uncut(start, size):
    def slope(weights, x):
        whole_slope = np.zeros_like(x)
        whole_slope[tuple(np.s_[b: b + n if n >= 0 else None] for b, n in zip(start, size))] = weights[0]
        return [whole_slope]

    return slope


for shape, start, size in (((5,), [1], [3]), ((5,), [2], [-1]), ((5,), [0], [5]), ((5,), [5], [0]), ((3, 4), [0, 1], [2, 2]),
                           ((3, 4), [1, 0], [-1, 3]), ((3, 4), [1, 1], [-1, -1]), ((2, 3, 4), [0, 1, 2], [2, 1, 2]),
                           ((2, 3, 4), [1, 0, 0], [1, -1, 0])):
    case("slice", [real(*shape)], oracle=cut, start=start, size=size)
    case("slice", [real(*shape, dtype="float64")], oracle=cut, gradient=uncut(start, size), start=start, size=size)
for dtype in KINDS:
    case("slice", [whole(3, 4, dtype=dtype, low=0)], oracle=cut, start=[1, 1], size=[2, -1])

for args in (dict(start=5), dict(start=0), dict(start=2, stop=7), dict(start=0, stop=10, step=3), dict(start=10, stop=0, step=-2),
             dict(start=-3, stop=3), dict(start=1, stop=2, step=5)):
    case("arange", **args)
    for dtype in ("int64", "float32", "float64"):
        case("arange", **args, dtype=dtype)
for dtype in ("int32", "float32"):
    case("arange", label="none", oracle=lambda start, stop, dtype: np.arange(start, stop, dtype=dtype), start=5, stop=2,
         dtype=dtype)
for args in (dict(start=0.0, stop=1.0, step=0.25), dict(start=1.5, stop=-1.0, step=-0.5)):
    for dtype in FLOATS:
        case("arange", **args, dtype=dtype)

for size in (0, 1, 2, 3, 7):
    case("eye", size=size)
    for dtype in ("float32", "float64", "int32"):
        case("eye", size=size, dtype=dtype)
