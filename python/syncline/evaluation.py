"""The part of TensorFlow 1's session that programs for Keras 2 use: `K.get_session().run(fetches, feed_dict)`, `tensor.eval(feed_dict)`."""

from __future__ import annotations

from functools import lru_cache
from itertools import count

from syncline import _core
from syncline.functions import session
from syncline.functions.tensors import is_tensor
from syncline.types import Any, Optional, Tensor
from syncline.functions.variables import _flat, _packer, function


@lru_cache(maxsize=32)  # making a function takes longer than a call of it
def _function(inputs, outputs):
    return function(list(inputs), list(outputs), name="Session.run")


session.at_clear.append(_function.cache_clear)


class Session:
    """Computes tensors. It has no other state: a tensor owns the graph that it is computed from."""

    def run(self, fetches: Any, feed_dict: Optional[dict] = None, options: Any = None, run_metadata: Any = None) -> Any:
        """Computes the values of tensors in one step, which also applies updates among them.

        Args:
            fetches: tensor of any shape and dtype, or nested lists, tuples and dicts of tensors.
            feed_dict: dict {tensor: its value} of placeholders and computed tensors; or None.
            options, run_metadata: ignored.
        Returns:
            NumPy array of the tensor's shape and dtype; for a nested structure, the same structure of arrays.
        Raises:
            TypeError: a fetch or a key of feed_dict is not a tensor.
            ValueError: a placeholder is not fed, or a value does not fit its tensor.
        """
        feeds, wanted = dict(feed_dict or {}), list(_flat(fetches))
        for what, given in (("fetches", wanted), ("feed_dict", feeds)):
            for x in given:
                if not is_tensor(x):
                    raise TypeError(
                        f"Session.run: {x!r} in {what} is not a tensor; give tensors and updates, not TensorFlow names or operations"
                    )
        return _packer(fetches, count())(_function(tuple(feeds), tuple(wanted))(list(feeds.values())))

    def close(self) -> None:
        """Does nothing."""

    def as_default(self) -> Session:
        """Returns the session, for `with`. It is always the default."""
        return self

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass

    def __getattr__(self, name):
        raise AttributeError(
            f"the session has no attribute {name!r}, only run(fetches, feed_dict): Syncline has no TensorFlow graph, operations or devices."
            " Give tensors to run or to K.function; K.plot_graph(function) shows the computation"
        )


_session = Session()


def get_session() -> Session:
    """The session for programs written for TensorFlow 1: `get_session().run(fetches, feed_dict)`.

    Returns:
        Session: the same object at each call.
    Example:
        >>> x = K.placeholder((None,))
        >>> K.get_session().run(2 * x, feed_dict={x: [1., 2.]})
        array([2., 4.], dtype=float32)
    """
    return _session


def _eval(self, feed_dict=None, session=None):
    """The tensor's value. feed_dict is {tensor: its value} or None."""
    return _session.run(self, feed_dict) if feed_dict else _core.eval(self)


Tensor.eval = _eval
