"""float16, integers and bool for functions whose other cases are in the modules of their groups. This module is imported after
those, so that its cases follow theirs."""

import numpy as np

from generate.oracle import array, case, real, shares, truth, whole

NAN, INF = np.nan, np.inf
INTEGERS = ["uint8", "int8", "int16", "int32", "int64"]
SIGNED = INTEGERS[1:]


def half(*shape, low=-2.0, high=2.0):
    return real(*shape, dtype="float16", low=low, high=high)


def extremes(dtype):
    """The limits of an integer dtype and numbers around 0."""
    info = np.iinfo(dtype)
    return array([info.min, info.min + 1, 0, 1, 2, 7, info.max - 1, info.max], dtype)


# ---- elementwise ----
for name in ("square", "abs", "sqrt", "exp", "log", "round", "sign", "sin", "cos", "relu", "elu", "softplus", "softsign",
             "sigmoid", "hard_sigmoid", "tanh"):
    positive = name in ("sqrt", "log")
    case(name, [half(3, 5, low=0.1 if positive else -3.0, high=3.0)], label="float16", tolerance="loose")
    if name not in ("sin", "cos"):
        case(name, [array([0.0, -0.0, INF, NAN, 1.0] + ([] if positive else [-INF, -1.0]), "float16")],
             label="float16_special", tolerance="loose")
case("square", [array([300.0, -255.9, 2e-4, 1e-5], "float16")], label="float16_range")
case("exp", [array([11.0, 11.1, -17.0, -20.0], "float16")], label="float16_range", tolerance="loose")
for name in ("square", "abs", "sign", "round", "relu"):
    for dtype in SIGNED if name in ("abs", "sign") else INTEGERS:
        case(name, [extremes(dtype)], label=dtype)
for dtype in INTEGERS:
    case("clip", [whole(3, 4, dtype=dtype, low=0, high=9)], label=dtype, min_value=2, max_value=7)
case("clip", [half(3, 4)], label="float16", min_value=-1.0, max_value=0.5)
for dtype in SIGNED:
    case("pow", [extremes(dtype)], label=f"{dtype}_wraps", a=3)
    case("pow", [whole(3, 4, dtype=dtype), whole(3, 4, dtype=dtype, low=0, high=5)], label=dtype)
case("pow", [half(3, 4, low=0.2), half(3, 4)], label="float16", tolerance="loose")
for name in ("maximum", "minimum"):
    for dtype in INTEGERS:
        case(name, [whole(3, 4, dtype=dtype, low=0, high=3), whole(4, dtype=dtype, low=0, high=3)], label=dtype)
    case(name, [half(3, 4), half(3, 1)], label="float16")
    case(name, [array([1.0, NAN, INF, -0.0], "float16"), array([NAN, 1.0, 2.0, 0.0], "float16")], label="float16_special")
for name in ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal"):
    for dtype in INTEGERS:
        case(name, [whole(3, 4, dtype=dtype, low=0, high=2), whole(4, dtype=dtype, low=0, high=2)], label=dtype)
    case(name, [array([1.0, NAN, INF, 0.0, 2.0], "float16"), array([1.0, NAN, INF, -0.0, 1.0], "float16")],
         label="float16")
for name in ("equal", "not_equal"):
    case(name, [truth(3, 4), truth(3, 4)], label="bool")

# ---- casts ----
NUMBERS = [NAN, INF, -INF, 3e9, -3e9, 300, -1, 200, 1e20, -1e20, 2.9, -2.9, 40000, 0.5, 65519, 65520, 0.0, -0.0, 1e-8]
DTYPES = ["bool", *INTEGERS, "float16", "float32", "float64"]


def narrowed(x, dtype):
    """Truncates to int32 (out of range: the lowest int32), then keeps the low bits."""
    fits = np.abs(x.astype("float64")) < 2**31
    return np.where(fits, np.trunc(np.where(fits, x, 0).astype("float64")), -2**31).astype("int64").astype(dtype)


with np.errstate(all="ignore"):
    for source in ("float16", "float32", "float64"):
        for dtype in DTYPES:
            # TensorFlow does this for few elements and saturates for more.
            narrow = narrowed if dtype in ("uint8", "int8", "int16") else None
            case("cast", [array(NUMBERS, "float64").astype(source)], label=f"{source}_to_{dtype}", oracle=narrow,
                 gradient=False if narrow else None, dtype=dtype)
for source in ["bool", *INTEGERS]:
    values = array([0, 1, 1], source) if source == "bool" else extremes(source)
    for dtype in DTYPES:
        case("cast", [values], label=f"{source}_to_{dtype}", dtype=dtype)


def tensor_to_floatx(K, x, floatx, tensor):
    before = K.floatx()
    K.set_floatx(floatx)
    y = K.cast_to_floatx(x)
    K.set_floatx(before)
    return y


for dtype in DTYPES:
    for floatx in ("float16", "float64"):
        case("cast_to_floatx", [whole(2, 3, dtype=dtype, low=0, high=1)], label=f"{dtype}_tensor", call=tensor_to_floatx,
             gradient=False, floatx=floatx, tensor=True)
for floatx in ("float16", "float32", "float64"):
    case("cast_to_floatx", label="number", oracle=lambda floatx, number: np.asarray(number, floatx), floatx=floatx,
         number=0.1)

# ---- configuration ----
for name in ("floatx", "set_floatx"):
    case(name, oracle=lambda values: ["float32", *values], values=["float16", "float64", "float16"])
FORMATS = {"tf": "channels_last", "th": "channels_first"}
for values in ([], ["tf"], ["th"], ["th", "tf"], ["tf", "th", "th"]):
    case("set_image_dim_ordering", oracle=lambda values: ["channels_last", *[FORMATS[v] for v in values]], values=values)
    case("image_dim_ordering", oracle=lambda values: ["tf", *["tf" if v == "channels_last" else "th" for v in values]],
         values=[FORMATS[v] for v in values])

# ---- reductions ----
REDUCTIONS = ("sum", "prod", "max", "min")
for name in REDUCTIONS:
    for dtype in INTEGERS:
        low = 0 if dtype == "uint8" else -4
        case(name, [whole(4, 6, dtype=dtype, low=low, high=4)], label=dtype, axis=0)
        case(name, [whole(2, 3, 2, dtype=dtype, low=low, high=4)], label=f"{dtype}_all")
for name in (*REDUCTIONS, "mean", "var", "std", "logsumexp"):
    case(name, [half(4, 6)], label="float16", axis=1, tolerance="loose")
    case(name, [half(4, 6)], label="float16_all", keepdims=True, tolerance="loose")
for name in ("max", "min"):
    case(name, [array([[1.0, NAN], [INF, -INF]], "float16")], label="float16_special", axis=1)
case("mean", [array(np.full((1000,), 500.0), "float16")], label="float16_large_sum",
     oracle=lambda x: x.astype("float32").mean().astype("float16"))
for name in ("mean", "var", "std"):
    case(name, [truth(4, 6)], label="bool", axis=0)
for name in ("any", "all"):
    for dtype in ("bool", *INTEGERS, "float16"):
        case(name, [whole(4, 3, dtype=dtype, low=0, high=1)], label=dtype, axis=1)
for name in ("argmax", "argmin"):
    for dtype in ("bool", *INTEGERS, "float16"):
        case(name, [whole(4, 5, dtype=dtype, low=0, high=1 if dtype == "bool" else 9)], label=dtype, axis=1)
for name in ("cumsum", "cumprod"):
    for dtype in INTEGERS:
        case(name, [whole(3, 4, dtype=dtype, low=0, high=5)], label=dtype, axis=1)
    case(name, [half(3, 6)], label="float16", axis=1, tolerance="loose")

# ---- activations and losses over axes ----
for name in ("softmax", "l2_normalize"):
    case(name, [half(3, 6)], label="float16", axis=-1, tolerance="loose")
case("categorical_crossentropy", [shares(3, 5, dtype="float16"), shares(3, 5, dtype="float16")], label="float16",
     tolerance="loose")
case("binary_crossentropy", [shares(3, 5, dtype="float16"), half(3, 5, low=0.1, high=0.9)], label="float16",
     tolerance="loose")
for dtype in DTYPES:
    case("sparse_categorical_crossentropy", [whole(4, dtype=dtype, low=0, high=1), shares(4, 3)], label=f"{dtype}_targets")
case("sparse_categorical_crossentropy", [whole(4, low=0, high=4), shares(4, 5, dtype="float16")], label="float16",
     tolerance="loose")

# ---- products ----
for dtype in ("int32", "int64"):
    case("dot", [whole(3, 4, dtype=dtype), whole(4, 5, dtype=dtype)], label=dtype)
    case("dot", [whole(2, 3, 4, dtype=dtype), whole(3, 4, 2, dtype=dtype)], label=f"{dtype}_many")
case("dot", [half(3, 4), half(4, 5)], label="float16")
case("dot", [half(2, 200, low=0.0), half(200, 3, low=0.0)], label="float16_long", tolerance="loose")

# ---- functions that only move elements ----
MOVES = [
    ("transpose", [(2, 3)], {}),
    ("permute_dimensions", [(2, 3, 2)], {"pattern": [2, 0, 1]}),
    ("reverse", [(3, 2)], {"axes": 0}),
    ("flatten", [(2, 3)], {}),
    ("batch_flatten", [(2, 3, 2)], {}),
    ("reshape", [(2, 6)], {"shape": [3, 4]}),
    ("expand_dims", [(2, 3)], {"axis": 1}),
    ("squeeze", [(2, 1, 3)], {"axis": 1}),
    ("repeat_elements", [(2, 3)], {"rep": 2, "axis": 1}),
    ("repeat", [(2, 3)], {"n": 2}),
    ("tile", [(2, 3)], {"n": [2, 2]}),
]
for name, shapes, arguments in MOVES:
    for dtype in ("bool", *INTEGERS, "float16"):
        case(name, [whole(*shape, dtype=dtype, low=0, high=1) for shape in shapes], label=dtype, open_batch=False,
             **arguments)
for dtype in ("bool", *INTEGERS, "float16"):
    pair = [whole(2, 3, dtype=dtype, low=0, high=1), whole(2, 3, dtype=dtype, low=0, high=1)]
    case("concatenate", [pair], label=dtype, axis=1)
    case("stack", [pair], label=dtype, axis=0)
    case("gather", [whole(4, 3, dtype=dtype, low=0, high=1), whole(2, 2, low=0, high=3)], label=dtype)
