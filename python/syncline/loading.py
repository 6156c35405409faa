"""Loads the extension module and with it OpenBLAS.

OpenBLAS starts a thread for each core when it is loaded. Where the address space is limited (ulimit -v) and has no room for a thread's
buffer, the thread tries again for ever, and the process never ends. Syncline calls OpenBLAS from its own threads, so none is started then.
"""

import os
import resource

_VARIABLE = "OPENBLAS_NUM_THREADS"

if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
    import syncline._core  # noqa: F401
else:
    _before = os.environ.get(_VARIABLE)
    os.environ[_VARIABLE] = "1"
    try:
        import syncline._core  # noqa: F401
    finally:
        if _before is None:
            del os.environ[_VARIABLE]
        else:
            os.environ[_VARIABLE] = _before
