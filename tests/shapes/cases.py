"""Calls that were findings, as printed by shapes.py. They run before all others."""

from calls import Call, Operand, Size, Vector  # noqa: F401

CALLS = [
    # bias_add broadcast a fed bias with one position.
    Call("bias_add", Operand((2, 2, 2), open=(0, 1, 2)), Operand((2, 2)), "channels_first", others=[[(2, 1, 2), (2, 2)]]),
    Call("bias_add", Operand((1, 5), open=(0, 1)), Operand((5,), open=(0,)), "channels_last", others=[[(4, 5), (5,)], [(1, 5), (1,)]]),
    # switch broadcast fed expressions and conditions.
    Call("switch", Operand((7,)), Operand((7,)), Operand((8,), open=(0,)), others=[[(7,), (7,), (5,)], [(7,), (7,), (1,)]]),
    Call("switch", Operand((3,), open=(0,)), Operand((1,), open=(0,)), Operand((1,), open=(0,)), others=[[(3,), (1,), (1,)]]),
    # matmul did not broadcast the leading axes, or only if one was known to be 1. The last case has no rows.
    Call("matmul", Operand((2, 3, 1, 1, 2)), Operand((1, 3, 1, 2, 2))),
    Call("matmul", Operand((1, 3, 5), open=(0,)), Operand((2, 5, 1), open=(0,)), others=[[(2, 3, 5), (1, 5, 1)]], gradient=True),
    Call("matmul", Operand((2,), open=(0,)), Operand((5, 2, 1), open=(0,)), gradient=True),
    Call("matmul", Operand((2, 3, 0, 4)), Operand((2, 3, 4, 5))),
    # The pointwise convolution rejected an image that is empty after padding 'same'.
    Call("separable_conv2d", Operand((2, 0, 7, 1)), Operand((4, 4, 1, 2), fixed=True), Operand((1, 1, 2, 4), fixed=True), (1, 1), "same",
         "channels_last", (1, 3), gradient=True),
    # With a multiplier of 0, fed channels that disagree with the kernel were not rejected.
    Call("depthwise_conv2d", Operand((2, 2, 9, 9), open=(1,)), Operand((1, 1, 2, 0), fixed=True), (1, 2), "valid", "channels_first", 2,
         others=[[(2, 0, 9, 9), (1, 1, 2, 0)]]),
    # The rows of output_shape were not compared with the fed rows.
    Call("conv2d_transpose", Operand((2, 2, 0, 5), open=(0, 1)), Operand((3, 4, 2, 2), fixed=True), (Size(2), None, Size(0), Size(9)),
         (1, 2), "same", "channels_first", 1, others=[[(7, 2, 0, 5), (3, 4, 2, 2)]]),
    Call("conv3d_transpose", Operand((3, 1, 3, 3, 3), open=(0,)), Operand((3, 4, 2, 1, 3), fixed=True),
         (Size(4), Size(3), Size(9), None, Size(1)), (3, 2, 1), "valid", "channels_last"),
    # Images fed without rows to an open size could not be interpolated.
    Call("resize_images", Operand((4, 1, 4, 2), open=(0, 1, 2, 3)), 2, 3, "channels_last", "bilinear",
         others=[[(3, 0, 3, 3)]], gradient=True),
    # The documentation requires a noise_shape that broadcasts.
    Call("dropout", Operand((5, 2), open=(0,)), 0.5, (2,), others=[[(2, 2)]]),
    # A target with more axes than the output changed the axis of the classes.
    Call("categorical_crossentropy", Operand((1, 2)), Operand((1,)), True, 0),
    Call("categorical_crossentropy", Operand((5, 3), open=(1,)), Operand((5,), open=(0,)), True, 0, others=[[(5, 2), (2,)]], gradient=True),
    # Several open axes, or an open axis beside an empty one; weights without the shape of x's remaining axes.
    Call("normalize_batch_in_training", Operand((2, 3, 4), open=(0, 1, 2)), None, Operand((2, 3), open=(0, 1)), [2],
         others=[[(0, 0, 4), (0, 0)]]),
    Call("normalize_batch_in_training", Operand((2, 2, 0), open=(0,)), None, None, [1], others=[[(7, 2, 0)]]),
    Call("normalize_batch_in_training", Operand((3, 2), open=(0,)), None, Operand((3,)), [1], others=[[(1, 2), (3,)]]),
    Call("normalize_batch_in_training", Operand((2,)), None, None, []),
    # A parameter enlarged the requested shape.
    Call("random_normal", Vector(()), Operand((2,))),
    Call("random_binomial", (Size(1),), Operand((3,), open=(0,)), others=[[(1,)]]),
]  # fmt: skip
