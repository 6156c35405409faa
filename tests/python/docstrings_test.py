"""The docstrings of the documented functions are complete, list the errors that occur, and have examples that run.

A docstring has a summary; Args, each with its type, tensors with shape and dtype; Returns; Raises, if wrong arguments raise;
See, the file of the implementation; Example.
"""

import doctest
import inspect
import pathlib
import re

import numpy as np
import pytest

import syncline as K
from syncline import _core

ROOT = pathlib.Path(__file__).parent.parent.parent
NAMES = [row.split("\t")[0] for row in (ROOT / "tests/oracle/functions.tsv").read_text().splitlines()[1:]]
SECTIONS = ["Args", "Returns", "Raises", "See", "Example"]
SHAPE = r"([Tt]ensors?|Variables?) \([\w.*+,:/ ]*\)|shape|scalar|axes|axis"
DTYPE = r"dtype|floating|integer|\bbool\b|\b(int|float)(32|64)\b"
# Patterns that a description must contain, by annotation; the first annotation that matches counts.
WORDS = [
    (r"StepFunction|Callable", [r"function of ", SHAPE, DTYPE]),
    (r"Parameter", [r"\bfloat\b", r"\btensor\b", SHAPE, DTYPE]),
    (r"Side", [r"\btensor\b", r"function without arguments", SHAPE, DTYPE]),
    (r"Sequence\[(TensorLike|Tensor|Variable)\]", [r"list of (tensors|placeholders|Variables)"]),
    (r"TensorLike|\bTensor\b", [r"\btensors?\b", SHAPE, DTYPE]),
    (r"Updates|Tuple\[Variable", [r"list of|pairs"]),
    (r"\bVariable\b", [r"\bVariable\b", r"shape", r"dtype"]),
    (r"Value", [r"number, list or NumPy array", r"shape"]),
    (r"DType", [r"\bstr\b"]),
    (r"Sizes|Sequence", [r"\bints\b|\bone int\b"]),
    (r"Axis|Size|\bint\b", [r"\bints?\b"]),
    (r"\bfloat\b", [r"\bfloat\b"]),
    (r"\bbool\b", [r"\bbool\b"]),
    (r"\bstr\b", [r"\bstr\b"]),
    (r"Any", [r"any object|number|tensor|int"]),
]
RETURNED = [
    (r"^None$", [r"^None\.$"]),
    (r"^Tensor$", [r"[Tt]ensor", SHAPE, DTYPE]),
    (r"^Variable$", [r"Variable", SHAPE, DTYPE]),
    (r"^Tuple", [r"Tuple"]),
    (r"^List", [r"List"]),
    (r"^(bool|int|str|float)$", [r"^(bool|int|str|float)[.:]"]),
    (r"", [r"\w"]),
]


def sections(name):
    """Returns {title: text} of a docstring; the summary has the title ''."""
    parts = re.split(rf"(?m)^({'|'.join(SECTIONS)}):", inspect.getdoc(getattr(K, name)))
    assert parts[1::2] == [title for title in SECTIONS if title in parts[1::2]], "sections in another order, or twice"
    return dict(zip([""] + parts[1::2], (inspect.cleandoc("\n" + text) for text in parts[::2])))


def entries(text):
    """Returns {name: description} of the entries of a section."""
    return {m[1]: " ".join(m[2].split()) for m in re.finditer(r"(?m)^(\w+): ((?:.*\n?)(?:^ +.*\n?)*)", text)}


def parameters(name):
    every = inspect.signature(getattr(K, name)).parameters.values()
    return [p for p in every if p.kind is not inspect.Parameter.VAR_KEYWORD]


def wanted(table, annotation):
    return next(words for pattern, words in table if re.search(pattern, annotation))


@pytest.mark.parametrize("name", NAMES)
def test_arguments_and_result(name):
    found = sections(name)
    assert re.match(r"\S.*[^ ]\.", found[""], re.S), "a summary of whole sentences"
    arguments = entries(found.get("Args", ""))
    assert list(arguments) == [p.name for p in parameters(name)]
    for p in parameters(name):
        for words in wanted(WORDS, p.annotation):
            assert re.search(words, arguments[p.name]), f"{p.name} ({p.annotation}): no {words}"
    returned = inspect.signature(getattr(K, name)).return_annotation
    if any("shape broadcasts with" in text for text in arguments.values()):
        assert "broadcast" in found["Returns"]
    for words in wanted(RETURNED, returned):
        assert re.search(words, found["Returns"]), f"Returns ({returned}): no {words}"


@pytest.mark.parametrize("name", NAMES)
def test_source_exists(name):
    paths = re.findall(r"[\w/]+\.(?:cc|py)\b", sections(name)["See"])
    assert paths
    for path in paths:
        assert (ROOT / path).is_file(), path


@pytest.fixture
def configuration():
    yield
    K.set_floatx("float32")
    K.set_epsilon(1e-7)
    K.set_image_data_format("channels_last")
    K.manual_variable_initialization(False)
    K.clear_session()


class Checker(doctest.OutputChecker):
    """Ignores white space, because NumPy's versions break lines at different places."""

    def check_output(self, want, got, optionflags):
        return "".join(want.split()) == "".join(got.split())


@pytest.mark.parametrize("name", [name for name in NAMES if "Example" in sections(name)])
def test_example(name, configuration):
    text = inspect.getdoc(getattr(K, name))
    test = doctest.DocTestParser().get_doctest(text, {"K": K, "np": np}, name, None, None)
    assert test.examples
    output = []
    doctest.DocTestRunner(Checker()).run(test, out=output.append)
    assert not output, "".join(output)


def tensor(*shape, dtype=None):
    return K.placeholder(shape, dtype=dtype)


# Arguments of a valid call: values by the parameter's name, then those of single functions.
USUAL = dict(
    x=(2, 3), y=(2, 3), tensor=(2, 3), target=(2, 3), output=(2, 3), predictions=(2, 3), elems=(2, 3), alt=(2, 3), reference=(2, 3),
    then_expression=(2, 3), else_expression=(2, 3), loss=(2, 3), value=[1.0], shape=[2], dtype="float32", name="name", seed=1, axis=0,
    axes=0, keepdims=False, constraint=None, ndim=1, sparse=False, size=2, momentum=0.5, mean=0.0, stddev=1.0, scale=1.0, low=0.0,
    high=1.0, minval=0.0, maxval=1.0, p=0.5, level=0.5, noise_shape=[2, 1], a=2, min_value=0.0, max_value=1.0, alpha=0.5, threshold=0.0,
    epsilon=1e-3, from_logits=False, k=1, message="message", prefix="prefix", e=1e-7, floatx="float32", data_format=None, strides=1,
    padding="valid", dilation_rate=1, pool_mode="max", rep=2, n=2, start=0, stop=3, step=1, num_classes=3, height_factor=2, width_factor=2,
    depth_factor=2, interpolation="nearest", dim_ordering="tf", training=(), condition=(), fn=lambda *x: x[0], greedy=True, beam_width=9,
    top_paths=1, merge_repeated=False, mask=None, constants=None, unroll=False, input_length=None, go_backwards=False, initializer=(3,),
    step_function=lambda x, states: (x, states),
)  # fmt: skip
IMAGE, VOLUME, LENGTHS = (1, 5, 5, 2), (1, 5, 5, 5, 2), np.ones((2, 1), "int32")
KERNEL, POINTS = dict(kernel=(2, 2, 2, 3)), dict(pointwise_kernel=(1, 1, 6, 4))
OWN = {
    "set_image_data_format": dict(data_format="channels_last"), "manual_variable_initialization": dict(value=False),
    "set_learning_phase": dict(value=0), "function": dict(inputs=[], outputs=[], updates=[]), "gradients": dict(variables=[]),
    "stop_gradient": dict(variables=(2, 3)), "eval": dict(x=[1.0]), "cast_to_floatx": dict(x=[1.0]), "dot": dict(y=(3, 4)),
    "batch_dot": dict(y=(2, 3), axes=1), "gather": dict(indices=[0, 1]), "concatenate": dict(tensors=[[1.0], [2.0]]),
    "reshape": dict(shape=[3, 2]), "permute_dimensions": dict(pattern=[1, 0]), "resize_images": dict(x=IMAGE),
    "resize_volumes": dict(x=VOLUME), "squeeze": dict(x=(1, 3)), "temporal_padding": dict(x=(1, 2, 3), padding=[1, 1]),
    "spatial_2d_padding": dict(x=IMAGE, padding=[[1, 1], [1, 1]]), "spatial_3d_padding": dict(x=VOLUME, padding=[[1, 1]] * 3),
    "stack": dict(x=[[1.0], [2.0]]), "one_hot": dict(indices=[0, 1]), "slice": dict(start=[0, 0], size=[1, 1]), "tile": dict(n=[2, 1]),
    "normalize_batch_in_training": dict(gamma=(3,), beta=(3,), reduction_axes=[0]),
    "batch_normalization": dict(mean=(3,), var=(3,), beta=(3,), gamma=(3,), axis=-1), "in_top_k": dict(targets=[0, 1]),
    "categorical_crossentropy": dict(axis=-1), "sparse_categorical_crossentropy": dict(target=[0.0, 1.0], axis=-1),
    "rnn": dict(inputs=(2, 3, 4), initial_states=[np.ones((2, 4), "float32")]), "conv1d": dict(x=(1, 5, 2), kernel=(2, 2, 3)),
    "conv2d": dict(x=IMAGE, **KERNEL), "conv2d_transpose": dict(x=(1, 5, 5, 3), output_shape=[1, 6, 6, 2], **KERNEL),
    "conv3d": dict(x=VOLUME, kernel=(2, 2, 2, 2, 3)),
    "conv3d_transpose": dict(x=(1, 5, 5, 5, 3), kernel=(2, 2, 2, 2, 3), output_shape=[1, 6, 6, 6, 2]),
    "separable_conv1d": dict(x=(1, 5, 2), depthwise_kernel=(2, 2, 3), pointwise_kernel=(1, 6, 4)),
    "separable_conv2d": dict(x=IMAGE, depthwise_kernel=(2, 2, 2, 3), **POINTS),
    "depthwise_conv2d": dict(x=IMAGE, depthwise_kernel=(2, 2, 2, 3)), "pool2d": dict(x=IMAGE, pool_size=2),
    "pool3d": dict(x=VOLUME, pool_size=2), "bias_add": dict(bias=(3,)),
    "local_conv1d": dict(inputs=(1, 5, 2), kernel=(4, 4, 3), kernel_size=2),
    "local_conv2d": dict(inputs=(1, 3, 3, 2), kernel=(4, 8, 3), kernel_size=2, output_shape=[2, 2]),
    "ctc_label_dense_to_sparse": dict(labels=(2, 3), label_lengths=LENGTHS),
    "ctc_batch_cost": dict(y_true=(2, 3), y_pred=(2, 5, 4), input_length=LENGTHS, label_length=LENGTHS),
    "ctc_decode": dict(y_pred=(2, 5, 4), input_length=LENGTHS, greedy=False), "get_value": dict(x=K.zeros((2, 3))),
    "update": dict(new_x=1.0), "update_add": dict(increment=1.0), "update_sub": dict(decrement=1.0), "batch_get_value": dict(ops=[]),
    "batch_set_value": dict(tuples=[]), "placeholder": dict(shape=None), "set_value": dict(value=np.ones((2, 3))),
}  # fmt: skip


def right_call(name):
    """Returns valid arguments of the function. Tuples are shapes and become placeholders or variables."""
    values = {p.name: {**USUAL, **OWN.get(name, {})}[p.name] for p in parameters(name)}
    for p in parameters(name):
        if isinstance(values[p.name], tuple):
            values[p.name] = K.zeros(values[p.name]) if p.annotation == "Variable" else tensor(*values[p.name])
    return values


# The dtypes that a description claims; the first match counts. Three integer dtypes stand for all.
INTEGERS, FLOATING = {"uint8", "int16", "int64"}, {"float16", "float32", "float64"}
EVERY = INTEGERS | FLOATING | {"bool"}
CLAIMS = [("any dtype but bool", INTEGERS | FLOATING), ("any (shape and )?dtype", EVERY), ("floating", FLOATING)]


def takes(name, parameter, dtype, followers):
    call = right_call(name)
    for p in [parameter, *followers]:
        make = K.zeros if isinstance(call[p], _core.Variable) else K.placeholder
        call[p] = make(call[p].shape, dtype=dtype)
    try:
        getattr(K, name)(**{p: int(v) if type(v) is float else v for p, v in call.items()})
    except TypeError:
        return False
    return True


@pytest.mark.parametrize("name", NAMES)
def test_dtypes_are_those_documented(name, configuration):
    described, call = entries(sections(name).get("Args", "")), right_call(name)
    tensors = [p for p in described if K.is_tensor(call[p])]
    for p in tensors:
        followers = [other for other in tensors if re.search(rf"\b{p}'s? .*dtype", described[other])]
        for claim, dtypes in CLAIMS:
            if re.search(claim, described[p]):
                taken = {d for d in EVERY if takes(name, p, d, followers)}
                assert taken == dtypes, f"{p}: {claim}"
                break


def of_the_dtype_of(described):
    """Triples of an argument, the argument (or "result") whose dtype it must have, and whether it is cast to that dtype."""
    for p, text in described.items():
        for cast, other in re.findall(r"(cast to )?\b(?:the )?(\w+)'s (?:shape(?:,| and) )?dtype", text):
            if other in described or other == "result":
                yield p, other, bool(cast)


@pytest.mark.parametrize("name", NAMES)
def test_a_tensor_of_another_dtype_is_refused_or_cast_as_documented(name, configuration):
    call = right_call(name)
    for p, other, cast in of_the_dtype_of(entries(sections(name).get("Args", ""))):
        own = call["dtype"] if other == "result" else K.dtype(call[other])
        shape = call[p].shape if K.is_tensor(call[p]) else np.shape(call[p])
        for dtype in EVERY - {own}:
            raised = error_of(name, p, K.ones(shape, dtype=dtype))
            assert raised == (None if cast else "TypeError"), f"{p} of {dtype} beside {other}: {raised}"


# Functions whose parameters may be tensors, with the integer operand that they belong to.
PARAMETERS = [
    (name, p.name)
    for name in NAMES
    for p in parameters(name)
    if "Parameter" in p.annotation and "cast to a floating dtype" not in entries(sections(name)["Args"])[p.name]
]


@pytest.mark.parametrize("name, parameter", PARAMETERS)
def test_parameters_of_integers_are_integers(name, parameter, configuration):
    """A floating tensor and a fraction are refused where x holds integers, with the error that the docstring names."""
    call, raises = right_call(name), entries(sections(name)["Raises"])
    whole = {p: 1 if type(v) is float else v for p, v in call.items()}
    if "x" in whole:
        whole["x"] = (K.zeros if isinstance(call["x"], _core.Variable) else K.placeholder)((2, 3), dtype="int32")
    else:
        whole.update(dtype="int32")
    for value in (0.5, [0.5, 1.5, 2.5], tensor(dtype="float32"), K.variable([0.5, 1.0, 2.0])):
        with pytest.raises(TypeError):
            getattr(K, name)(**{**whole, parameter: value})
    assert re.search(r"integer|fraction|floating", raises["TypeError"])


def wrong_values(name, annotation):
    yield object()
    if annotation == "Optional[str]":
        return
    if name == "batch_flatten":
        yield 1.0
    if annotation.startswith("Sequence"):
        yield from ([tensor(2, 3)], [(tensor(2, 3), 1.0)])
    yield from ("text", np.ones((7, 5, 3), "float32"), tensor(2, 3, dtype="bool"), tensor(None, 3))
    yield K.placeholder((2, 3), sparse=True)
    if not re.search("Tensor|Side", annotation):
        yield from (-7, 2.5, [9, 9])


def error_of(name, parameter, value):
    """The type of the error that a call with this value, which is right but for it, raises; None: it raises none."""
    try:
        getattr(K, name)(**{**right_call(name), parameter: value})
    except Exception as error:  # of any type: each one is to be documented
        return type(error).__name__
    return None


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from NumPy, for wrong dtypes
@pytest.mark.parametrize("name", NAMES)
def test_errors_are_those_documented(name, configuration):
    getattr(K, name)(**right_call(name))
    raised = {
        error: f"{p.name}={value!r}"
        for p in parameters(name)
        for value in wrong_values(name, p.annotation)
        if (error := error_of(name, p.name, value)) is not None
    }
    assert set(raised) == set(entries(sections(name).get("Raises", ""))), raised


# Values of a wrong kind, and values of the right kind that are out of range, by an argument's annotation and description.
# Each has the error that they must raise and what the text of this error in the docstring must mention; NAME is the argument's name.
NO_NUMBER, NO_INT = ["a", object()], [1.5, "a", object(), [1.5], np.array(1.5)]
WRONG = [
    (r"^(Optional\[)?int\b|Sequence\[int|Sequence\[Seq|Axis|Size", r"\bints?\b", NO_INT, "TypeError", r"\bints?\b|integers?\b"),
    (r"^(Optional\[)?(float\b|Parameter)", r"\bfloat\b", NO_NUMBER, "TypeError", r"numbers?\b|numeric"),
    (r"^(Optional\[)?(TensorLike|Tensor|Side)\b", r": (scalar |number or )?tensor", NO_NUMBER, "TypeError", r""),
    (r"^(Callable|StepFunction)", r": function", [3, "a"], "TypeError", r"not a function"),
    (r"DType", r"dtype", ["a", object()], "TypeError", r"dtype"),
    (r"\bstr\b", r"'\w+'", ["a"], "ValueError", r"unknown|other|NAME"),
    (r"\bVariable\]?$", r"Variable", [3, "a", object()], "ValueError", r"not a [vV]ariable"),
    (r"Axis|\bint\b", r"^(axis|axes|reduction_axes): ", [99, 2**40], "ValueError", r"axis|axes|pair"),
    (r"\bint\b|\bSize$", r": int >= 0", [-1], "ValueError", r"negative"),
    (r"\bint\b|Sequence", r"ints? >= 1|int from 1", [0, -1], "ValueError", r"below 1"),
    (r"Sequence|Sizes", r": tuple of ints >= 0", [[-7], (-7, 2)], "ValueError", r"negative"),
    (r"float|Parameter", r": float >= 0|: float: finite, 0 or more", [-1, -0.5], "ValueError", r"negative|interval"),
    (r"float|Parameter", r": float (from 0 to|in \[0,) 1", [-0.5, 1.5, float("nan")], "ValueError", r"\[0, 1"),
]
# A function that reads a text as a number, as Keras's does.
READS_TEXT = {"set_epsilon"}


def documented_error(name, error, mentioned, parameter):
    """The type of the error that the docstring promises for such a fault; None: none. The text must mention the fault."""
    raises = entries(sections(name).get("Raises", ""))
    if any("any other" in text for text in raises.values()):  # which is all that the argument does not permit
        return next(iter(raises))
    if not mentioned and error not in raises:  # takes any object
        return None
    return error if re.search(mentioned.replace("NAME", parameter), raises.get(error, "")) else f"{error} for {mentioned!r}"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", NAMES)
def test_each_kind_of_wrong_value_raises_its_documented_error(name, configuration):
    described, faults = entries(sections(name).get("Args", "")), []
    for p in parameters(name):
        for annotation, description, values, error, mentioned in WRONG:
            if not (re.search(annotation, p.annotation) and re.search(description, f"{p.name}: {described[p.name]}")):
                continue
            for value in values:
                reads = name in READS_TEXT and isinstance(value, str)
                fault = ("ValueError", "text") if reads else (error, mentioned)
                raised, promised = error_of(name, p.name, value), documented_error(name, *fault, p.name)
                if raised != promised:
                    faults.append(f"{p.name}={value!r}: {raised}, but {promised} is documented")
    assert not faults, "\n".join(faults)
