"""Python values as JSON text and arrays, and the attributes of an object that have such values.

Plain values are None, numbers, texts, NumPy's scalars and arrays, random generators of Python and NumPy, and lists, tuples and dicts of
plain values.
"""

import contextlib
import json
import random
import zlib

import numpy as np

_BIT_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")


def encode(value, arrays):
    """Returns a value for json.dumps, and appends the arrays in `value` to `arrays`. Raises TypeError if the value is not plain, and what
    a value raises that another thread changes meanwhile."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, np.generic) and value.dtype.kind in "biuf" and value.dtype.itemsize <= 8:
        return {"scalar": [value.dtype.str, value.item()]}
    if type(value) is np.ndarray and value.dtype.kind in "biufc" and value.dtype.char not in "gG":
        arrays.append(value)
        return {"array": len(arrays) - 1}
    if type(value) in (list, tuple):
        entries = [encode(entry, arrays) for entry in value]
        return entries if type(value) is list else {"tuple": entries}
    if type(value) is dict:
        return {"dict": [[encode(key, arrays), encode(entry, arrays)] for key, entry in list(value.items())]}
    if type(value) is random.Random:
        return {"Random": encode(value.getstate(), arrays)}
    if type(value) is np.random.RandomState:
        return {"RandomState": encode(value.get_state(legacy=False), arrays)}
    if type(value) is np.random.Generator and type(value.bit_generator).__name__ in _BIT_GENERATORS:
        return {"Generator": encode(value.bit_generator.state, arrays)}
    raise TypeError(f"{type(value).__name__} is not a plain type")


def decode(value, arrays):
    """The value that `encode` was given."""
    if isinstance(value, list):
        return [decode(entry, arrays) for entry in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "scalar":
        return np.dtype(content[0]).type(content[1])
    if kind == "array":
        return arrays[content]
    if kind == "tuple":
        return tuple(decode(entry, arrays) for entry in content)
    if kind == "dict":
        return {decode(key, arrays): decode(entry, arrays) for key, entry in content}
    return _generator(kind, decode(content, arrays))


def _generator(kind, state):
    if kind == "Random":
        generator = random.Random()
        generator.setstate(state)
        return generator
    name = state["bit_generator"]
    if name not in _BIT_GENERATORS:
        raise ValueError(f"'{name}' is not a bit generator of NumPy")
    bits = getattr(np.random, name)()
    if kind == "Generator":
        bits.state = state
        return np.random.Generator(bits)
    generator = np.random.RandomState(bits)
    generator.set_state(state)
    return generator


def checksum(value):
    """A checksum of a plain value. Raises as encode does."""
    arrays = []
    return checksum_of(json.dumps(encode(value, arrays)), arrays)


def checksum_of(text, arrays):
    """That of a value from what `encode` has made of it."""
    mark = zlib.crc32(text.encode())
    for each in arrays:
        mark = zlib.crc32(np.ascontiguousarray(each), zlib.crc32(f"{each.dtype.str}{each.shape}".encode(), mark))
    return mark


def is_larger(value, limit):
    """Whether a value has more than `limit` bytes. An entry of a list, tuple or dict counts as 1,000, because it takes as long as these."""
    if limit == float("inf"):
        return False
    left, unseen = limit, [value]
    while unseen and left >= 0:
        each = unseen.pop()
        left -= each.nbytes if isinstance(each, np.ndarray) else len(each) if isinstance(each, str) else 1000
        if isinstance(each, (list, tuple, dict)) and left >= 1000 * len(each):
            unseen += [*each.keys(), *each.values()] if isinstance(each, dict) else each
        elif isinstance(each, (list, tuple, dict)):
            return True
    return left < 0


def put(it, attributes):
    """Sets attributes of an object. A list, dict or array that has the attribute's type is changed in place, because others may hold it."""
    for name, value in attributes.items():
        old = vars(it).get(name)
        if type(old) is type(value) is list:
            old[:] = value
        elif type(old) is type(value) is dict:
            old.clear()
            old.update(value)
        elif type(old) is type(value) is np.ndarray and (old.shape, old.dtype) == (value.shape, value.dtype) and old.flags.writeable:
            old[...] = value
        else:
            vars(it)[name] = value


class ChangedAttributes:
    """The plain attributes of an object that change from now on.

    Args:
        of: the object.
        without: names of attributes that do not count.
        largest: bytes of the largest attribute that counts.
    """

    def __init__(self, of, without=(), largest=float("inf")):
        self._without, self._largest = without, largest
        self._initial = {name: mark for name, _, mark in self._marked(of)}

    def of(self, it):
        """{name: value} of the attributes of `it`, which is the object or a copy, that have changed."""
        return {name: value for name, value, mark in self._marked(it) if self._initial.get(name) != mark}

    def _marked(self, it):
        for name, value in list(getattr(it, "__dict__", {}).items()):
            if name not in self._without:
                with contextlib.suppress(Exception):  # not plain, endless, or changed by another thread meanwhile
                    if not is_larger(value, self._largest):
                        yield name, value, checksum(value)
