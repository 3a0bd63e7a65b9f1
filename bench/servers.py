"""The servers that are measured: the extension on each backend, and the hand-written APIs."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

from bench.content import HOST
from tests.servers import free_port

__all__ = ["BY_HAND", "CONSTANT", "PRODUCT", "SERVERS", "Running", "Server", "pinned"]

ROOT = Path(__file__).resolve().parent.parent
#: How long to wait for the first answer of a server, in seconds.
PATIENCE = 900


@dataclass(frozen=True)
class Server:
    """A server to measure.

    :param name: its name.
    :param label: its name in tables and messages.
    :param factory: the function that makes its application, as ``module:function``.
    :param storage: where its content is stored.
    """

    name: str
    label: str
    factory: str
    storage: str


#: The extension on each backend.
PRODUCT = [
    Server(name, label, "bench.magazine:create_app", name)
    for name, label in (
        ("memory", "memory"),
        ("jsonfiles", "JSON files"),
        ("sqlite", "SQLite"),
        ("postgresql", "PostgreSQL"),
        ("mariadb", "MariaDB"),
    )
]
_DICTS = Server("hand-dicts", "by hand, dicts", "bench.peers.dicts:create_app", "records")
_SQLITE = Server("hand-sqlite", "by hand, SQLite", "bench.peers.sql:create_app", "sqlite")
_POSTGRESQL = Server(
    "hand-postgresql", "by hand, PostgreSQL", "bench.peers.sql:create_app", "postgresql"
)
#: The hand-written API that each backend is compared with.
BY_HAND: Mapping[str, Server] = {
    "memory": _DICTS,
    "jsonfiles": _DICTS,
    "sqlite": _SQLITE,
    "postgresql": _POSTGRESQL,
}
CONSTANT = Server("constant", "a constant body", "bench.peers.constant:create_app", "answer")
SERVERS = {server.name: server for server in (*PRODUCT, *BY_HAND.values(), CONSTANT)}


@contextmanager
def pinned(core: int) -> Iterator[None]:
    """Lets processes that are started meanwhile run on one core only.

    :param core: its index among the available ones; counted from the end if negative.
    """
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, [sorted(cores)[core]])
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


class Running:
    """A running server, with one worker, on the first core; it is stopped with this process.

    :param server: the server.
    :param pages: the number of its pages.
    :param arguments: the arguments of its factory.
    """

    def __init__(self, server: Server, pages: int, arguments: Sequence[str]) -> None:
        self.server = server
        self.pages = pages
        self.port = free_port()
        call = "{}({})".format(server.factory, ", ".join(map(repr, arguments)))
        command = [sys.executable, "-m", "gunicorn", "--workers=1", "--timeout=0"]
        command += ["--log-level=error", f"--bind=127.0.0.1:{self.port}", call]
        self._begin = time.monotonic()
        with pinned(0):
            self._process = subprocess.Popen(command, cwd=ROOT)
        atexit.register(self.stop)

    def first(self, path: str) -> float:
        """Repeats a request until it is answered. Returns the seconds since the server's start."""
        while True:
            try:
                self.get(path)
            except ConnectionError:
                if self._process.poll() is not None or self._age > PATIENCE:
                    raise SystemExit(f"{self.server.label} does not start.") from None
                time.sleep(0.005)
            else:
                return self._age

    @property
    def _age(self) -> float:
        return time.monotonic() - self._begin

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        """The answer to a request."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.request("GET", path, headers={"Host": HOST, **(headers or {})})
        return Answer(connection.getresponse())

    @property
    def peak(self) -> int:
        """The peak memory of its worker so far, in bytes."""
        return max(map(_peak, _family(self._process.pid)))

    def stop(self) -> None:
        """Stops it."""
        atexit.unregister(self.stop)
        self._process.terminate()
        self._process.wait()


class Answer:
    """An answer that has been read.

    :param response: the response to read.
    """

    def __init__(self, response: HTTPResponse) -> None:
        self.status = response.status
        self.tag = response.getheader("ETag", "")
        self.location = response.getheader("Location", "")
        self.body = response.read()
        response.close()


def _family(process: int) -> Iterator[int]:
    """A process and all its descendants."""
    yield process
    children = Path(f"/proc/{process}/task/{process}/children").read_text()
    for child in map(int, children.split()):
        yield from _family(child)


def _peak(process: int) -> int:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
