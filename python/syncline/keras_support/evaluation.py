"""What programs for Keras 2 on TensorFlow 1 ask a session for: `K.get_session().run(fetches, feed_dict)` and `tensor.eval(feed_dict)`."""

from __future__ import annotations

from functools import lru_cache
from itertools import count

from syncline import _core
from syncline.functions.tensors import is_tensor
from syncline.types import Any, Optional, Tensor
from syncline.functions.variables import _flat, _packer, function


@lru_cache(maxsize=32)  # they are asked for again and again, and making one takes longer than a call
def _function(inputs, outputs):
    return function(list(inputs), list(outputs), name="Session.run")


class Session:
    """Computes tensors. There is nothing else to a session here: a tensor itself owns the graph that it is computed from."""

    def run(self, fetches: Any, feed_dict: Optional[dict] = None, options: Any = None, run_metadata: Any = None) -> Any:
        """The values of tensors, computed in one step; updates among them are carried out.

        Args:
            fetches: tensor of any shape and dtype, or nested lists, tuples and dicts of such.
            feed_dict: dict: {tensor: its value}, for placeholders and for tensors that are computed; or None.
            options, run_metadata: not looked at.
        Returns:
            NumPy array of the tensor's shape and dtype; of a nest, one of the same form.
        Raises:
            TypeError: a fetch or a key of feed_dict is no tensor.
            ValueError: a placeholder is not fed, or a value does not fit.
        """
        feeds, wanted = dict(feed_dict or {}), list(_flat(fetches))
        for what, given in (("fetches", wanted), ("feed_dict", feeds)):
            for x in given:
                if not is_tensor(x):
                    raise TypeError(f"Session.run: {x!r} in {what} is no tensor; give tensors and updates, not names or operations of TensorFlow")
        return _packer(fetches, count())(_function(tuple(feeds), tuple(wanted))(list(feeds.values())))

    def close(self) -> None:
        """Does nothing."""

    def as_default(self) -> Session:
        """The session itself, which is the default always: for `with`."""
        return self

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass

    def __getattr__(self, name):
        raise AttributeError(
            f"the session has no {name!r}: it has run(fetches, feed_dict), and Syncline keeps no graph, operations or devices of TensorFlow. "
            "Give tensors to run, or to K.function; K.plot_graph(function) shows what is computed"
        )


_session = Session()


def get_session() -> Session:
    """What computes tensors for programs that were written for TensorFlow's session: `get_session().run(fetches, feed_dict)`.

    Returns:
        Session: always the same one.
    Example:
        >>> x = K.placeholder((None,))
        >>> K.get_session().run(2 * x, feed_dict={x: [1., 2.]})
        array([2., 4.], dtype=float32)
    """
    return _session


def _eval(self, feed_dict=None, session=None):
    """The tensor's value, with what feed_dict gives: {tensor: its value}, or None."""
    return _session.run(self, feed_dict) if feed_dict else _core.eval(self)


Tensor.eval = _eval
