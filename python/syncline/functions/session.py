"""The session's names, uids and learning phase."""

from __future__ import annotations

from syncline import _core
from syncline.types import Any

# The learning phase: None (not used yet), a placeholder, or the number set by set_learning_phase.
_phase = None

# clear_session calls these functions. A module that keeps something adds one that drops it.
at_clear = []


def get_uid(prefix: str = "") -> int:
    """Numbers for the names of layers: each call with a prefix returns the next number of that prefix.

    Args:
        prefix: str: the name to number.
    Returns:
        int: 1, 2, 3, ...
    Raises:
        TypeError: the prefix is not a str.
    See: runtime/session/config.cc
    Example:
        >>> K.reset_uids()
        >>> K.get_uid('dense'), K.get_uid('dense'), K.get_uid('conv')
        (1, 2, 1)
    """
    return _core.get_uid(prefix)


def reset_uids() -> None:
    """Restarts the numbers of get_uid for all prefixes.

    Returns:
        None.
    See: runtime/session/config.cc
    """
    _core.reset_uids()


def clear_session() -> None:
    """Resets names, uids and the learning phase. Tensors, variables and functions that are still referenced stay usable;
    others are already freed, because the session owns no graph.

    Returns:
        None.
    See: runtime/session/config.cc
    Example:
        >>> K.clear_session()
        >>> K.zeros((2,), name='weights').name
        'weights:0'
    """
    global _phase
    _phase = None
    for clear in at_clear:
        clear()
    _core.clear_session()


def manual_variable_initialization(value: bool) -> None:
    """Sets whether the program initializes variables itself. It has no effect, because a variable always has its initial
    value; it exists for programs that call it.

    Args:
        value: bool.
    Returns:
        None.
    Raises:
        TypeError: the value is a tensor, which has no truth value.
        ValueError: the value is an array of several elements.
    See: runtime/session/config.cc
    """
    _core.manual_variable_initialization(bool(value))


def learning_phase() -> Any:
    """Whether the model is training (1) or testing (0).

    Returns:
        The int given to set_learning_phase; if that was not called, a bool placeholder of shape (). A function with this
        placeholder among its inputs is fed with it; for other functions it is 0.
    See: runtime/execution/function.cc
    Example:
        >>> K.clear_session()
        >>> y = K.in_train_phase(K.constant([1.]), K.constant([2.]))
        >>> K.function([K.learning_phase()], [y])([1])
        [array([1.], dtype=float32)]
    """
    global _phase
    if _phase is None:
        _phase = _core.learning_phase()
        _phase._uses_learning_phase = True
    return _phase


def set_learning_phase(value: int) -> None:
    """Fixes the learning phase for graphs built later.

    Args:
        value: int: 0 (testing) or 1 (training).
    Returns:
        None.
    Raises:
        ValueError: any other value.
    See: runtime/execution/function.cc
    Example:
        >>> K.set_learning_phase(1)
        >>> K.learning_phase()
        1
    """
    global _phase
    if value not in (0, 1):
        raise ValueError(f"set_learning_phase: value is {value!r}; give 0 (testing) or 1 (training)")
    _phase = int(value)


class name_scope:
    """Context manager: variables and placeholders made inside are named 'name/...'. Scopes nest."""

    _stack = []

    def __init__(self, name, default_name=None, values=None):
        self.name = name or default_name or ""

    def __enter__(self):
        self._stack.append(self.name)
        return "/".join(self._stack) + "/"

    def __exit__(self, *exception):
        self._stack.pop()

    @classmethod
    def scoped(cls, name):
        """`name` with the names of the open scopes as prefix."""
        return "/".join([scope for scope in cls._stack if scope] + [name])


class control_dependencies:
    """Context manager: inside it, reading a variable that one of the updates changes gives its new value.

    Args:
        control_inputs: results of update, update_add, update_sub or moving_average_update, or (nested) lists of them;
            other tensors have no effect.
    """

    def __init__(self, control_inputs: Any):
        self._updates = list(_updates_among(control_inputs))

    def __enter__(self):
        _core.push_updates(self._updates)
        return self

    def __exit__(self, *exception):
        _core.pop_updates()


def _updates_among(values):
    if isinstance(values, _core.Update):
        yield values
    elif isinstance(values, (list, tuple)):
        for value in values:
            yield from _updates_among(value)
