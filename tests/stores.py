"""Fresh stores for tests, one of each backend."""

from __future__ import annotations

import atexit
import shutil
import tempfile

#: The names of all backends that the tests run on.
BACKENDS = ("memory", "jsonfiles")


def fresh_address(backend: str) -> str:
    """What ``CMSAPI_BACKEND`` is for a store of the named backend with nothing in it."""
    if backend == "jsonfiles":
        return f"jsonfiles:{_folder()}"
    return backend


def _folder() -> str:
    folder = tempfile.mkdtemp(prefix="contentapi-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
