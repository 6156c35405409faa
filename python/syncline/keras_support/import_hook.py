"""Runs a function on a module right after its import, or at once if it is imported already.

A finder in front of sys.meta_path lets the other finders find the module and gives the loader they return one more thing to do. Nothing
is imported here that is not asked for, an import that fails stays failed, and a module that is reloaded is mended again.
"""

import sys

__all__ = ["after_import"]

_actions = {}


class _AfterImport:
    """The finder. Thread-safe as far as imports are: Python holds the module's lock while it looks for it."""

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
        # The loader becomes what it was: others look at module.__loader__.
        loader.__dict__.pop("exec_module", None)
        original(module)
        for action in _actions[name]:
            action(module)

    try:
        loader.exec_module = exec_module
    except AttributeError:
        pass  # a class or an extension type as loader: built in or frozen, none of which we mend


def after_import(name, action):
    """Calls action(module) when the module `name` has been executed, after the actions that were given for it before."""
    _actions.setdefault(name, []).append(action)
    if not any(isinstance(finder, _AfterImport) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AfterImport())
    module = sys.modules.get(name)
    # A module that is just being imported gets its action here too: it is not found again.
    if module is not None:
        action(module)
