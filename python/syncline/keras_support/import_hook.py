"""Calls a function with a module right after its import, or at once if it is already imported.

A finder in front of sys.meta_path lets the other finders find the module and extends the loader that they return. The hook imports no
modules itself, a failed import stays failed, and a reloaded module is patched again.
"""

import sys

__all__ = ["after_import"]

_actions = {}


class _AfterImport:
    """The finder. Thread-safe, because Python holds the module's lock while it searches for it."""

    def find_spec(self, name, path=None, target=None):
        if name not in _actions:
            return None
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = find and find(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    _extend(spec.loader, name)
                return spec
        return None


def _extend(loader, name):
    original = loader.exec_module

    def exec_module(module):
        # Restores the loader, which is visible as module.__loader__.
        loader.__dict__.pop("exec_module", None)
        original(module)
        for action in _actions[name]:
            action(module)

    try:
        loader.exec_module = exec_module
    except AttributeError:
        pass  # the loader is a class or extension type (built-in and frozen modules, which are not patched)


def after_import(name, action):
    """Calls action(module) when the module `name` has been executed, after the actions registered for it earlier."""
    _actions.setdefault(name, []).append(action)
    if not any(isinstance(finder, _AfterImport) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AfterImport())
    module = sys.modules.get(name)
    # A module whose import is in progress gets its action now too: the finder does not see it again.
    if module is not None:
        action(module)
