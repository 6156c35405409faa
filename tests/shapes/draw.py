"""Draws the arguments of calls: shapes, axes and other numbers, some of them wrong."""

import math
import random

from calls import Call, Operand, Size, Vector, replaced

SIZES = (0, 1, 1, 2, 2, 2, 3, 3, 4, 5, 7)
MOST = 2048  # elements


class Draw:
    """Arguments that are mostly right; `wrong` decides which are not."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.integer = self.random.randint
        self.choice = self.random.choice

    def chance(self, share):
        return self.random.random() < share

    def wrong(self, share=0.1):
        return self.chance(share)

    def sizes(self, n):
        sizes = [self.choice(SIZES) for _ in range(n)]
        while math.prod(sizes) > MOST:
            sizes[self.random.randrange(n)] = self.integer(1, 2)
        return tuple(sizes)

    def rank(self, least, most):
        """A rank from least to most, sometimes a wrong one of at most 6."""
        others = [n for n in range(7) if not least <= n <= most]
        return self.choice(others) if others and self.wrong() else self.integer(least, most)

    def operand(self, least=0, most=6, **options):
        return Operand(self.sizes(self.rank(least, most)), **options)

    def numbers(self, numbers):
        """Several sizes: one by one, or as a vector."""
        return Vector(numbers) if self.chance(0.3) else tuple(Size(n) for n in numbers)

    def axis(self, ndim, wrong=0.2):
        """An axis of a tensor with ndim axes, possibly negative, sometimes wrong."""
        if ndim == 0 or self.wrong(wrong):
            return self.choice([ndim, -ndim - 1, ndim + 2, -ndim - 5])
        return self.integer(-ndim, ndim - 1)

    def axes(self, ndim, wrong=0.1):
        """None, one axis, or a list of axes in any order, which may be empty or name an axis twice."""
        way = self.integer(0, 4)
        if way == 0:
            return None
        if way <= 2:
            return self.axis(ndim, wrong)
        axes = self.random.sample(range(ndim), self.integer(0, ndim))
        axes = [axis - ndim if self.chance(0.3) else axis for axis in axes]
        if self.wrong(wrong):
            axes.append(self.axis(ndim, 0.5))
        if axes and self.wrong(wrong):
            axes.append(self.choice(axes))
        return axes

    def changed(self, shape, axes=None):
        """The shape with another size on one axis."""
        axes = list(range(len(shape)) if axes is None else axes)
        if not axes:
            return tuple(shape) + (2,)
        sizes = list(shape)
        sizes[self.choice(axes)] += self.choice([1, 2, 5])
        return tuple(sizes)

    def reranked(self, shape):
        return tuple(shape[1:]) if shape and self.chance(0.5) else tuple(shape) + (self.choice(SIZES),)

    def damaged(self, shape, share=0.2):
        """The shape or, with the probability `share`, one of another size or rank."""
        if not self.wrong(share):
            return tuple(shape)
        return self.changed(shape) if self.chance(0.7) else self.reranked(shape)

    def broadcasting(self, shape):
        """A shape that broadcasts with the given one."""
        sizes = [1 if self.chance(0.3) else n for n in shape]
        return tuple(sizes[self.integer(0, len(sizes)) :] if self.chance(0.3) else sizes)

    def opened(self, call):
        """The call with some axes open and some sizes fed, and further shapes for the open axes."""

        def leaf(leaf):
            if isinstance(leaf, Size):
                return Size(leaf.number, fed=self.chance(0.5))
            if isinstance(leaf, Vector):
                return Vector(leaf.numbers, fed=self.chance(0.5))
            way = self.integer(0, 5)
            if leaf.fixed or way == 0:
                return leaf.with_open((), constant=self.chance(0.5))
            if way == 1:
                return leaf.with_open((0,) if leaf.shape else ())  # rows, as in Keras's placeholders
            share = self.choice([0.3, 0.6, 1])
            return leaf.with_open([axis for axis in range(len(leaf.shape)) if self.chance(share)])

        opened = Call(call.function, *replaced(call.arguments, leaf))
        operands = opened.leaves(Operand)
        if any(x.open for x in operands):
            new = {n: self.choice(SIZES) for n in SIZES + (6, 8, 9)}
            some = lambda n: self.choice(SIZES) if self.chance(0.3) else n
            opened.others = [
                [tuple(change(n) if axis in x.open else n for axis, n in enumerate(x.shape)) for x in operands]
                for change in (lambda n: new.get(n, n), some)
            ]
        return opened
