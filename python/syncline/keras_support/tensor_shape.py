"""The shape of a tensor."""


class TensorShape(tuple):
    """A tuple of sizes; None for a size that is fed. It has the methods of TensorFlow's shapes that Keras programs use."""

    __slots__ = ()

    def as_list(self):
        """The sizes as a list."""
        return list(self)

    @property
    def ndims(self):
        """The number of axes."""
        return len(self)

    rank = ndims

    def __getitem__(self, key):
        part = tuple.__getitem__(self, key)
        return TensorShape(part) if isinstance(key, slice) else part
