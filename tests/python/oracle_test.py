"""Compares the documented functions, called from Python, with the fixtures of tests/oracle: every case whose arguments are those of
the documented signature."""

import base64
import inspect
import json
import pathlib
import re

import numpy as np
import pytest

import syncline as K

ORACLE = pathlib.Path(__file__).parent.parent / "oracle"

# Their first operand is a list.
TAKES_LIST = {"concatenate", "stack", "batch_get_value"}
# Their fixtures come from scripts of several calls (tests/oracle/generate). Other tests in this folder call them.
SCRIPTED = {
    "backend", "epsilon", "set_epsilon", "floatx", "set_floatx", "cast_to_floatx", "image_data_format",
    "set_image_data_format", "image_dim_ordering", "set_image_dim_ordering", "reset_uids", "get_uid", "clear_session",
    "manual_variable_initialization", "learning_phase", "set_learning_phase", "function", "gradients", "print_tensor",
    "variable", "is_keras_tensor", "is_tensor", "placeholder", "is_placeholder", "eval", "update", "update_add",
    "update_sub", "moving_average_update", "get_value", "batch_get_value", "set_value", "batch_set_value",
    "random_uniform_variable", "random_normal_variable", "random_normal", "random_uniform", "random_binomial",
    "truncated_normal", "dropout", "rnn", "switch", "in_train_phase", "in_test_phase", "map_fn", "foldl", "foldr",
    "is_sparse", "stop_gradient", "to_dense", "ctc_label_dense_to_sparse", "int_shape", "get_variable_shape", "ndim", "dtype",
    "count_params", "zeros", "ones", "eye", "constant", "arange",
}  # fmt: skip


def tolerance(kind, dtype):
    """Reads the tolerance from the table in tests/oracle/tolerances.h."""
    if not np.issubdtype(dtype, np.floating):
        return 0
    table = re.findall(r'\{"(\w*)", "(\w+)", ([0-9.e-]+)\}', (ORACLE / "tolerances.h").read_text())
    return {(k, d): float(value) for k, d, value in table}[kind, str(dtype)]


def array(stored):
    if stored is None:
        return None
    data = np.frombuffer(base64.b64decode(stored["data"]), np.dtype(stored["dtype"]).newbyteorder("<"))
    return data.reshape(stored["shape"])


def flat(value):
    return [leaf for entry in value for leaf in flat(entry)] if isinstance(value, (list, tuple)) else [value]


def is_direct(function, case):
    parameters = list(inspect.signature(getattr(K, function)).parameters)
    named = set(case["args"]) <= set(parameters)
    operands = 1 if function in TAKES_LIST else len(case["inputs"])
    return named and not set(parameters[:operands]) & set(case["args"]) and operands <= len(parameters)


def direct_cases():
    for path in sorted((ORACLE / "fixtures").glob("*.json")):
        function = path.stem
        if function not in SCRIPTED:
            cases = [c for c in json.loads(path.read_text())["cases"] if is_direct(function, c)]
            yield pytest.param(function, cases, id=function)


def check(function, case):
    values = [array(stored) for stored in case["inputs"]]
    operands = [v if v is None else K.placeholder(v.shape, dtype=v.dtype) for v in values]
    args = [operands] if function in TAKES_LIST else operands
    outputs = flat(getattr(K, function)(*args, **{k: number(v) for k, v in case["args"].items()}))
    fed = [i for i, v in enumerate(values) if v is not None]
    results = K.function([operands[i] for i in fed], outputs)([values[i] for i in fed])
    wanted = [array(stored) for stored in case["outputs"]]
    assert len(results) == len(wanted)
    for result, expected in zip(results, wanted):
        assert (str(result.dtype), result.shape) == (str(expected.dtype), expected.shape)
        close(result, expected, case.get("tolerance", ""))


def close(result, expected, kind):
    limit = tolerance(kind, expected.dtype)
    if limit == 0:
        np.testing.assert_array_equal(result, expected)
    else:
        # The difference may be `limit` times the larger of the wanted magnitude and 1 (at edges, the smallest normal number).
        # Infinities and NaN must be equal.
        least = np.finfo(expected.dtype).tiny if kind == "edge" else 1
        np.testing.assert_array_equal(np.isfinite(result), np.isfinite(expected))
        finite = np.isfinite(expected)
        np.testing.assert_array_equal(result[~finite], expected[~finite])
        difference = np.abs(result[finite].astype(float) - expected[finite])
        assert np.all(difference <= limit * np.maximum(least, np.abs(expected[finite].astype(float)))), difference.max()


def number(value):
    return float(value) if value in ("inf", "-inf", "nan") else value


@pytest.mark.parametrize("function, cases", direct_cases())
def test_fixtures(function, cases):
    assert len(cases) >= 3, "too few direct cases: add some, or name the function in SCRIPTED"
    for case in cases:
        try:
            check(function, case)
        except Exception as error:
            raise AssertionError(f"{function}, case {case['name']}, {case['args']}: {error}") from error


def test_most_fixtures_are_direct():
    assert sum(len(p.values[1]) for p in direct_cases()) > 2500
