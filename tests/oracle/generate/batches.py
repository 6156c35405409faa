"""Batches without rows and of one row: two cases for each function with a batch (functions.tsv)."""

import numpy as np

from generate import control, ctc, oracle, random, rnn, session, shape, variables, windows
from generate.oracle import array, case, flat, mapped, real, shares, truth, whole


def batches(function, operands, **options):
    """Adds both cases; operands(n) returns the operands of a batch of n rows."""
    for n, label in enumerate(("no_rows", "one_row")):
        case(function, operands(n), label=label, **options)


def refused(function, operands, call=None, gradient=None, **options):
    """For functions where TensorFlow accepts one row, but rejects a batch without rows or leaves the gradients of other operands
    unset. The expected result without rows is the result of one row cut to no rows; the gradients of the empty loss are 0."""

    def nothing(*inputs, **args):
        one = [None if a is None else np.ones((1, *a.shape[1:]), a.dtype) if 0 in a.shape[:1] else a for a in flat(list(inputs))]
        row = dict(function=function, inputs=mapped(list(inputs), iter(one)), call=call, gradient=False, args=args)
        return [y[:0] for y in oracle.compute_tensorflow(row, one)[0]]

    def flat_slope(weights, *inputs):
        return [np.zeros_like(a) if a is not None and a.dtype.kind == "f" else None for a in flat(list(inputs))]

    case(function, operands(0), label="no_rows", oracle=nothing, gradient=flat_slope if gradient is None else gradient, **options)
    case(function, operands(1), label="one_row", call=call, gradient=gradient, **options)


# ---- elementwise ----
for name in ("abs", "sign", "square", "sqrt", "exp", "log", "round", "sin", "cos", "sigmoid", "hard_sigmoid", "tanh", "softplus",
             "softsign", "elu", "relu", "softmax"):
    batches(name, lambda n: [real(n, 3, low=0.1)])
batches("pow", lambda n: [real(n, 3)], a=3)
batches("pow", lambda n: [real(n, 3, low=0.1), real(3)], open_batch=[0])
batches("clip", lambda n: [real(n, 3)], min_value=-1.0, max_value=0.5)
batches("cast", lambda n: [real(n, 3)], dtype="float64")
for name in ("maximum", "minimum", "equal", "not_equal", "greater", "greater_equal", "less", "less_equal"):
    batches(name, lambda n: [real(n, 3), real(n, 3)])
    batches(name, lambda n: [real(n, 3), real(3)], open_batch=[0])

# ---- losses ----
for logits in (False, True):
    batches("binary_crossentropy", lambda n: [shares(n, 3), shares(n, 3)], from_logits=logits)
    batches("categorical_crossentropy", lambda n: [shares(n, 3), shares(n, 3)], from_logits=logits)
    batches("sparse_categorical_crossentropy", lambda n: [whole(n, low=0, high=2), shares(n, 3)], from_logits=logits)
batches("in_top_k", lambda n: [real(n, 4), whole(n, low=0, high=3)], k=2)

# ---- reductions ----
for axis in (0, 1, None):
    for name in ("sum", "prod", "max", "min", "mean", "var", "std", "logsumexp"):
        batches(name, lambda n: [real(n, 3)], axis=axis)
    for name in ("any", "all"):
        batches(name, lambda n: [truth(n, 3)], axis=axis)
for name in ("argmax", "argmin"):
    batches(name, lambda n: [real(n, 3)], axis=1)
for axis in (0, 1):
    for name in ("cumsum", "cumprod"):
        batches(name, lambda n: [real(n, 3)], axis=axis)
    batches("l2_normalize", lambda n: [real(n, 3)], axis=axis)
    batches("reverse", lambda n: [real(n, 3)], axes=axis)
    (batches if axis else refused)("repeat_elements", lambda n: [real(n, 3)], rep=2, axis=axis)
    batches("expand_dims", lambda n: [real(n, 3)], axis=axis)
    batches("stack", lambda n: [[real(n, 3), real(n, 3)]], axis=axis)
    batches("concatenate", lambda n: [[real(n, 3), real(n, 3)]], axis=axis)

# ---- products ----
batches("dot", lambda n: [real(n, 3), real(3, 2)], open_batch=[0])
batches("dot", lambda n: [real(n, 2, 3), real(3, 2)], open_batch=[0])
batches("batch_dot", lambda n: [real(n, 3), real(n, 3)], axes=1)
batches("batch_dot", lambda n: [real(n, 2, 3), real(n, 3, 2)], axes=[2, 1])
batches("gather", lambda n: [real(4, 2), whole(n, low=0, high=3)])

# ---- functions that move elements ----
batches("transpose", lambda n: [real(n, 3)])
batches("reshape", lambda n: [real(n, 6)], shape=(-1, 2, 3))
batches("permute_dimensions", lambda n: [real(n, 2, 3)], pattern=(0, 2, 1))
batches("repeat", lambda n: [real(n, 3)], n=2)
batches("tile", lambda n: [real(n, 3)], n=[2, 2])
batches("flatten", lambda n: [real(n, 3)])
batches("batch_flatten", lambda n: [real(n, 2, 3)])
batches("squeeze", lambda n: [real(n, 1, 3)], axis=1)
batches("one_hot", lambda n: [whole(n, low=0, high=2)], num_classes=3)
batches("slice", lambda n: [real(n, 3)], oracle=shape.cut, gradient=shape.uncut([0, 1], [-1, 2]), start=[0, 1], size=[-1, 2])
batches("temporal_padding", lambda n: [real(n, 2, 3)], padding=(1, 0))
batches("spatial_2d_padding", lambda n: [real(n, 2, 1, 2)], padding=((1, 0), (0, 1)))
batches("spatial_3d_padding", lambda n: [real(n, 2, 1, 2, 1)], padding=((1, 0), (0, 1), (0, 0)))
batches("resize_images", lambda n: [real(n, 2, 3, 1)], height_factor=2, width_factor=2, data_format=windows.LAST)
batches("resize_images", lambda n: [real(n, 2, 3, 1)], call=windows.bilinear, height_factor=2, width_factor=2,
        data_format=windows.LAST, interpolation="bilinear")
batches("resize_volumes", lambda n: [real(n, 1, 2, 2, 1)], depth_factor=2, height_factor=1, width_factor=2,
        data_format=windows.LAST)

# ---- normalization, convolution, pooling ----
batches("batch_normalization", lambda n: [real(n, 3), real(3), real(3, low=0.2), real(3), real(3)], open_batch=[0])
batches("normalize_batch_in_training", lambda n: [real(n, 3), real(3), real(3)], open_batch=[0], reduction_axes=[0])
batches("normalize_batch_in_training", lambda n: [real(n, 4, 3), real(4), real(4)], open_batch=[0], reduction_axes=[0, 2])
batches("bias_add", lambda n: [real(n, 2, 3), real(3)], open_batch=[0])
batches("conv1d", lambda n: [real(n, 5, 2), real(3, 2, 2)], call=windows.conv1d, open_batch=[0], padding="same")
batches("conv2d", lambda n: [real(n, 4, 3, 2), real(3, 2, 2, 2)], open_batch=[0], strides=(2, 1))
batches("conv3d", lambda n: [real(n, 3, 2, 2, 1), real(2, 2, 1, 1, 2)], call=windows.conv3d, open_batch=[0])
batches("conv2d_transpose", lambda n: [real(n, 2, 2, 2), real(2, 2, 1, 2)], call=windows.transposed, open_batch=[0],
        output_shape=(None, 4, 4, 1), strides=(2, 2), padding="valid", data_format=windows.LAST)
batches("conv3d_transpose", lambda n: [real(n, 2, 1, 2, 1), real(2, 2, 1, 2, 1)], open_batch=[0], output_shape=(None, 3, 2, 2, 2),
        call=lambda K, x, kernel, output_shape: K.conv3d_transpose(x, kernel, (x.shape[0], *output_shape[1:])))
refused("depthwise_conv2d", lambda n: [real(n, 3, 3, 2), real(2, 2, 2, 2)], open_batch=[0])
refused("separable_conv1d", lambda n: [real(n, 4, 2), real(2, 2, 1), real(1, 2, 3)], call=windows.separable_1d, open_batch=[0])
refused("separable_conv2d", lambda n: [real(n, 3, 3, 2), real(2, 2, 2, 1), real(1, 1, 2, 3)], call=windows.separable,
        open_batch=[0])
batches("local_conv1d", lambda n: [real(n, 5, 2), real(4, 4, 2)], open_batch=[0], kernel_size=[2], strides=[1])
batches("local_conv2d", lambda n: [real(n, 3, 3, 1), real(4, 4, 2)], open_batch=[0], kernel_size=(2, 2), strides=(1, 1),
        output_shape=(2, 2))
for mode in ("max", "avg"):
    batches("pool2d", lambda n: [real(n, 3, 4, 2)], pool_size=(2, 2), pool_mode=mode)
    batches("pool3d", lambda n: [real(n, 2, 3, 2, 1)], pool_size=(2, 2, 1), pool_mode=mode)

# ---- control flow ----
for kind in ("tensors", "functions"):
    batches("switch", lambda n: [array(True, "bool"), real(n, 2), real(n, 2)], call=control.choose, kind=kind)
    batches("switch", lambda n: [truth(n, 1), real(n, 2), real(n, 2)], call=control.choose, kind=kind)
for name in ("in_train_phase", "in_test_phase"):
    batches(name, lambda n: [real(n, 3), real(n, 3)], call=session.in_phase(name), phase=1)
for kind in ("square", "sum"):
    batches("map_fn", lambda n: [real(n, 3), None, None], call=control.mapped, kind=kind)
for name in ("foldl", "foldr"):
    batches(name, lambda n: [real(n, 3), None, real(3), None], call=control.folded(name), open_batch=[0], kind="decay")
for kind in ("simple", "lstm"):
    for n in (0, 1):
        rnn.add(kind, n=n, label="one_row" if n else "no_rows")

# ---- ctc ----
refused("ctc_batch_cost", lambda n: [whole(n, 2, low=0, high=1), shares(n, 5, 3), whole(n, 1, low=5, high=5),
                                     whole(n, 1, low=2, high=2)], **ctc.SINGLE)
refused("ctc_decode", lambda n: [shares(n, 4, 3), whole(n, low=4, high=4)], gradient=False)
refused("ctc_decode", lambda n: [shares(n, 4, 3), whole(n, low=4, high=4)], call=ctc.beam_search, gradient=False, greedy=False,
        beam_width=5, top_paths=2, **ctc.SINGLE)
batches("ctc_label_dense_to_sparse", lambda n: [whole(n, 3, low=1, high=9), whole(n, low=2, high=2)])

# ---- variables, functions, properties of tensors ----
for name in ("variable", "get_value"):
    batches(name, lambda n: [real(n, 3)], script=lambda K, x: K.get_value(K.variable(x)))
batches("eval", lambda n: [real(n, 3)], script=lambda K, x: K.eval(K.constant(x) * 2))
batches("set_value", lambda n: [real(n, 3), real(n, 3)], script=variables.set_value)
batches("batch_set_value", lambda n: [real(n, 3), real(n, 3)], script=variables.batch_set_value)
batches("batch_get_value", lambda n: [real(n, 3), real(n, 2)], script=variables.batch_get_value)
for name, (rule, options) in variables.UPDATES.items():
    batches(name, lambda n: [real(n, 3), real(n, 3)], oracle=variables.by_hand(rule), **options[0])
for name in ("identity", "zeros_like", "ones_like"):
    batches(name, lambda n: [real(n, 3)])
batches("stop_gradient", lambda n: [real(n, 3)], call=lambda K, x: x * x + K.stop_gradient(x * x) * x)
batches("dtype", lambda n: [real(n, 3)], call=lambda K, x: K.dtype(x), ranks=False)
batches("is_sparse", lambda n: [real(n, 3)], oracle=lambda x, how: np.array(True), how="variable")
batches("to_dense", lambda n: [real(n, 3)], call=lambda K, x, how: K.to_dense(x), how="dense")
for loss in ("square", "elements", "twice"):
    batches("gradients", lambda n: [real(n, 3)], call=session.differentiated, loss=loss)
for kind in ("outputs", "same", "update"):
    batches("function", lambda n: [real(n, 3), real(n, 3)], script=session.called, kind=kind)
batches("dropout", lambda n: [real(n, 5, low=1.0)], oracle=random.dropped, tolerance="statistic", level=0.25)
batches("print_tensor", lambda n: [real(n, 3)], oracle=lambda x, message, through: x,
        gradient=lambda weights, x: [weights[0].astype(x.dtype)], message="through", through=True)
