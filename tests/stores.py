"""Fresh stores for tests, one of each backend."""

from __future__ import annotations

import atexit
import secrets
import shutil
import tempfile

from tests.servers import SERVERS, why_missing

#: The names of all backends that the tests run on.
BACKENDS = ("memory", "jsonfiles")


def fresh_address(backend: str) -> str:
    """What ``CMSAPI_BACKEND`` is for a store of the named backend with nothing in it."""
    if backend == "jsonfiles":
        return f"jsonfiles:{_folder()}"
    if backend == "sqlite":
        return f"sqlite:///{_folder()}/content.db"
    if backend in ("postgresql", "mariadb"):
        return _fresh_database(backend)
    return backend


def _fresh_database(backend: str) -> str:
    server = SERVERS[backend]()
    if server is None:
        raise RuntimeError(why_missing(backend))
    name = f"contentapi_{secrets.token_hex(6)}"
    server.create_database(name)
    return f"{server.address}/{name}"


def _folder() -> str:
    folder = tempfile.mkdtemp(prefix="contentapi-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
