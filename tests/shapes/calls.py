"""A call of a function of the backend, whose shape is compared with a model's.

A call's arguments are Python values that contain operands and sizes. An axis of an operand may be open: unknown while the graph
is built. A size may be fed: a tensor computed from the shape of a placeholder. `others` holds further shapes of the operands,
which differ from the first on open axes only; the same graph runs with each of them. A call prints as the expression that
makes it.
"""

import operator

import numpy as np
import scipy.sparse

OPERATORS = {
    name: getattr(operator, name)
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "lt", "le", "gt", "ge", "matmul", "getitem")
}
OPERATORS["power"] = operator.pow


class Operand:
    """A tensor. The shape of a `fixed` tensor is always known, for example a kernel's."""

    def __init__(self, shape, dtype="float32", open=(), fixed=False, constant=False, sparse=False):
        self.shape, self.dtype, self.open, self.fixed = tuple(shape), dtype, tuple(open), fixed
        self.constant, self.sparse = constant and not sparse, sparse

    def with_open(self, open, constant=False):
        return Operand(self.shape, self.dtype, open, self.fixed, constant, self.sparse)

    def value(self, shape):
        if self.sparse:
            return scipy.sparse.csr_matrix(shape, dtype=self.dtype)
        return np.full(shape, 0 if self.dtype.startswith("int") else 0.5, self.dtype)

    def __repr__(self):
        text = f"Operand({self.shape}"
        text += f", dtype={self.dtype!r}" if self.dtype != "float32" else ""
        text += f", open={self.open}" if self.open else ""
        text += "".join(f", {name}=True" for name in ("fixed", "constant", "sparse") if getattr(self, name))
        return text + ")"


class Size:
    """A number that may be given as a tensor."""

    def __init__(self, number, fed=False):
        self.number, self.fed = number, fed

    def __repr__(self):
        return f"Size({self.number}, fed=True)" if self.fed else f"Size({self.number})"


class Vector:
    """Numbers that may be given as one tensor."""

    def __init__(self, numbers, fed=False):
        self.numbers, self.fed = tuple(numbers), fed

    def __repr__(self):
        return f"Vector({self.numbers}, fed=True)" if self.fed else f"Vector({self.numbers})"


def replaced(value, leaf):
    """The value with each operand, size and vector replaced by the result of leaf()."""
    if isinstance(value, (Operand, Size, Vector)):
        return leaf(value)
    if isinstance(value, (list, tuple)):
        return type(value)(replaced(entry, leaf) for entry in value)
    if isinstance(value, slice):
        return slice(*(replaced(entry, leaf) for entry in (value.start, value.stop, value.step)))
    return value


class Call:
    def __init__(self, function, *arguments, others=(), gradient=False):
        self.function, self.arguments, self.others, self.gradient = function, arguments, list(others), gradient

    def leaves(self, kind):
        found = []
        replaced(self.arguments, lambda leaf: found.append(leaf) if isinstance(leaf, kind) else None)
        return found

    def shapes(self):
        return [operand.shape for operand in self.leaves(Operand)]

    def is_known(self):
        """Whether all shapes and sizes are known while the graph is built."""
        return not any(x.open for x in self.leaves(Operand)) and not any(n.fed for n in self.leaves((Size, Vector)))

    def __repr__(self):
        text = f"Call({self.function!r}, " + ", ".join(repr(argument) for argument in self.arguments)
        text += f", others={self.others}" if self.others else ""
        return text + (", gradient=True)" if self.gradient else ")")


class Built:
    """A call as a graph: its results, and the feeds for given shapes of its operands."""

    def __init__(self, K, call):
        self.K, self.inputs, self.tensors, self.feeders = K, [], [], []
        function = OPERATORS.get(call.function) or getattr(K, call.function)
        result = function(*replaced(call.arguments, self.leaf))
        self.outputs = list(result) if isinstance(result, (list, tuple)) else [result]

    def leaf(self, leaf):
        if isinstance(leaf, Operand):
            return self.operand(leaf)
        if isinstance(leaf, Vector):
            return self.shape_of(leaf.numbers) if leaf.fed else leaf.numbers
        return self.shape_of((leaf.number,))[0] if leaf.fed else leaf.number

    def operand(self, operand):
        if operand.constant:
            x = self.K.constant(operand.value(operand.shape), dtype=operand.dtype)
        else:
            shape = tuple(None if axis in operand.open else n for axis, n in enumerate(operand.shape))
            number = len(self.tensors)
            x = self.fed(shape, operand.dtype, lambda shapes: operand.value(shapes[number]), sparse=operand.sparse)
        self.tensors.append(x)
        return x

    def shape_of(self, numbers):
        """Numbers as a tensor computed from the shape of a placeholder, with a subtraction for negative numbers."""
        more = max(0, -min(numbers, default=0))
        shape = self.K.shape(
            self.fed((None,) * len(numbers), "int8", lambda shapes: np.zeros([n + more for n in numbers], "int8"))
        )
        return shape - more if more else shape

    def fed(self, shape, dtype, feeder, sparse=False):
        x = self.K.placeholder(shape=shape, dtype=dtype, sparse=sparse)
        self.inputs.append(x)
        self.feeders.append(feeder)
        return x

    def gradients(self):
        """(index of the operand, gradient) for each dense float32 operand with a gradient, if the result is dense float32."""
        y = self.outputs[0]
        smooth = [i for i, x in enumerate(self.tensors) if self.K.dtype(x) == "float32" and not self.K.is_sparse(x)]
        if self.K.dtype(y) != "float32" or self.K.is_sparse(y) or not smooth:
            return []
        found = self.K.gradients(self.K.sum(y), [self.tensors[i] for i in smooth])
        return [(i, dx) for i, dx in zip(smooth, found) if dx is not None]

    def feeds(self, shapes):
        return [feeder(shapes) for feeder in self.feeders]
