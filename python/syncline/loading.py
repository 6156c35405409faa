"""Loads the extension module and NumPy, and with them OpenBLAS, which each of them has.

OpenBLAS starts a thread for each core when it is loaded. Where memory is limited (ulimit -v, ulimit -d) and has no room for a thread's
buffer, the thread tries again for ever, and the process never ends. So OpenBLAS starts no threads then; Syncline calls it from its own.
"""

import os
import resource

_VARIABLE = "OPENBLAS_NUM_THREADS"

if all(resource.getrlimit(limit)[0] == resource.RLIM_INFINITY for limit in (resource.RLIMIT_AS, resource.RLIMIT_DATA)):
    import syncline._core  # noqa: F401
else:
    _before = os.environ.get(_VARIABLE)
    os.environ[_VARIABLE] = "1"
    try:
        import numpy  # noqa: F401
        import syncline._core  # noqa: F401
    finally:
        if _before is None:
            del os.environ[_VARIABLE]
        else:
            os.environ[_VARIABLE] = _before
