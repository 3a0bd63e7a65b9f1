"""Database servers for tests: private ones, on loopback only, which are stopped after the run.

They are started when a test first needs one, if PostgreSQL or MariaDB is installed. The variables
``CONTENTAPI_TEST_POSTGRESQL`` and ``CONTENTAPI_TEST_MARIADB`` can name the addresses of running
servers instead, with an account that may create databases.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from glob import glob
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import peewee
from flask import Flask
from werkzeug.serving import make_server

from flask_contentapi_peewee import MariaDBBackend, PeeweeBackend, PostgreSQLBackend
from tests.temporary import new_folder

__all__ = [
    "SERVERS",
    "Daemon",
    "Server",
    "answers",
    "free_port",
    "mariadb",
    "new_mariadb",
    "new_postgresql",
    "pgbouncer",
    "postgresql",
    "served",
    "standby_of",
    "start",
    "stop",
    "variable_of",
    "why_missing",
]

#: How long to wait for a server to answer, in seconds.
PATIENCE = 60


class Server:
    """A running server.

    :param address: its address, without the name of a database.
    :param backend: the backend for its databases.
    :param first: an existing database.
    """

    def __init__(self, address: str, backend: type[PeeweeBackend], first: str) -> None:
        self.address = address
        self._backend = backend
        self._first = first

    def create_database(self, name: str) -> None:
        """Creates an empty database."""
        address = f"{self.address.partition(':')[2]}/{self._first}"
        backend = self._backend.from_address(address, Path())
        _connect(backend.engine.database)
        backend.engine.database.execute_sql(f"CREATE DATABASE {name}")
        backend.close()


def _connect(database: peewee.Database) -> None:
    """Connects to a server, which may listen for a while before it accepts connections."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            database.connect(reuse_if_open=True)
            return
        except peewee.OperationalError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def share(names: Iterable[str]) -> None:
    """Starts servers that child processes share."""
    for name in names:
        server = SERVERS[name]()
        if server is not None:
            os.environ[variable_of(name)] = server.address


def variable_of(name: str) -> str:
    """The environment variable for the address of a running server."""
    return f"CONTENTAPI_TEST_{name.upper()}"


def why_missing(name: str) -> str:
    """Why there is no server of a kind, or "" if there is one."""
    return "" if SERVERS[name]() else f"{name} is not installed"


@cache
def postgresql() -> Server | None:
    """PostgreSQL, or None if it is not installed."""
    given = os.environ.get(variable_of("postgresql"))
    if given:
        return Server(given, PostgreSQLBackend, "postgres")
    return _started(new_postgresql())


@cache
def mariadb() -> Server | None:
    """MariaDB, or None if it is not installed."""
    given = os.environ.get(variable_of("mariadb"))
    if given:
        return Server(given, MariaDBBackend, "mysql")
    return _started(new_mariadb())


def _started(daemon: Daemon | None) -> Server | None:
    if daemon is None:
        return None
    daemon.start()
    return daemon.server


class Daemon:
    """A test's own server, which can be stopped and started; initially it is stopped.

    :param server: the server, with its address.
    :param command: the command that starts it.
    :param pid_file: a file whose first line is its process id.
    :param end: the signal for a clean shutdown, whoever is connected.
    :param crash: the signal that ends it as a power failure would.
    """

    def __init__(
        self,
        server: Server,
        command: Sequence[object],
        pid_file: Path,
        *,
        end: signal.Signals,
        crash: signal.Signals,
    ) -> None:
        self.server = server
        self.port = int(server.address.rpartition(":")[2])
        self._command = command
        self._pid_file = pid_file
        self._end, self._crash = end, crash
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts the server, if it is stopped."""
        if self._process is None:
            self._process = start(self._command, self.port)

    def stop(self) -> None:
        """Shuts the server down cleanly, if it is running."""
        self._stop(self._end)

    def crash(self) -> None:
        """Crashes the server, if it is running."""
        self._stop(self._crash)

    def _stop(self, how: signal.Signals) -> None:
        if self._process is not None:
            os.kill(int(self._pid_file.read_text().split()[0]), how)
            stop(self._process)
            self._process = None


def new_postgresql() -> Daemon | None:
    """A new PostgreSQL server, or None if it is not installed."""
    initdb = _postgresql_program("initdb")
    if initdb is None:
        return None
    folder, as_user = _home("postgres")
    # Results must not depend on the database's collation, so it is not code point order.
    locale = ["--locale-provider=icu", "--icu-locale=en", "--locale=C.UTF-8"]
    where = ["-D", folder / "data"]
    _run([*as_user, initdb, *where, "-A", "trust", "-U", "contentapi", "-E", "UTF8", *locale])
    return _postgresql_in(folder, as_user)


def standby_of(primary: Daemon) -> Daemon:
    """A PostgreSQL standby of a running server."""
    folder, as_user = _home("postgres")
    program = _postgresql_program("pg_basebackup")
    source = ["-h", "127.0.0.1", "-p", primary.port, "-U", "contentapi"]
    _run([*as_user, program, *source, "-D", folder / "data", "-R", "-c", "fast"])
    return _postgresql_in(folder, as_user)


def _postgresql_program(name: str) -> Path | None:
    return _program(name, "/usr/lib/postgresql/*/bin", "/usr/local/pgsql/bin")


def _postgresql_in(folder: Path, as_user: list[str]) -> Daemon:
    """A PostgreSQL server with existing files."""
    port = free_port()
    command = [
        *as_user,
        _postgresql_program("postgres"),
        *("-D", folder / "data", "-p", str(port), "-k", folder),
        *("-c", "listen_addresses=127.0.0.1", "-c", "max_connections=200"),
        *("-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off"),
        *("-c", "min_wal_size=32MB", "-c", "max_wal_size=64MB"),
    ]
    server = Server(f"postgresql://contentapi@127.0.0.1:{port}", PostgreSQLBackend, "postgres")
    pid_file = folder / "data" / "postmaster.pid"
    return Daemon(server, command, pid_file, end=signal.SIGINT, crash=signal.SIGQUIT)


_POOLER = """
[databases]
* = {behind}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 2
pidfile = {folder}/pid
"""


def pgbouncer(behind: Server) -> Daemon | None:
    """PgBouncer, which lends connections to PostgreSQL for one transaction each; None if it is not
    installed."""
    program = _program("pgbouncer", "/usr/sbin")
    if program is None:
        return None
    (folder, as_user), own, parts = _home("postgres"), free_port(), urlsplit(behind.address)
    named = {"host": parts.hostname, "port": parts.port, "user": parts.username}
    named |= {"password": parts.password} if parts.password else {}
    known = " ".join(f"{name}={value}" for name, value in named.items())
    text = _POOLER.format(behind=known, own=own, folder=folder)
    (folder / "pgbouncer.ini").write_text(text)
    server = Server(f"postgresql://127.0.0.1:{own}", PostgreSQLBackend, "postgres")
    command = [*as_user, program, folder / "pgbouncer.ini"]
    end = signal.SIGINT
    return Daemon(server, command, folder / "pid", end=end, crash=signal.SIGKILL)


def new_mariadb() -> Daemon | None:
    """A new MariaDB server, or None if it is not installed."""
    install = _program("mariadb-install-db")
    daemon = _program("mariadbd", "/usr/sbin", "/usr/libexec")
    if install is None or daemon is None:
        return None
    folder, as_user = _home("mysql")
    data, port = folder / "data", free_port()
    _run(
        [
            *as_user,
            install,
            "--no-defaults",
            f"--datadir={data}",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
        ]
    )
    command = [
        *as_user,
        daemon,
        "--no-defaults",
        f"--datadir={data}",
        f"--port={port}",
        "--bind-address=127.0.0.1",
        f"--socket={folder}/socket",
        f"--pid-file={folder}/pid",
        # A server deletes the temporary files of others in the same folder when it starts.
        f"--tmpdir={folder}",
        "--innodb-flush-log-at-trx-commit=0",
        "--innodb-file-per-table=0",
        "--innodb-doublewrite=0",
        "--innodb-flush-method=nosync",
        "--innodb-log-file-size=16M",
        "--skip-log-bin",
        "--max-connections=200",
    ]
    server = Server(f"mariadb://root@127.0.0.1:{port}", MariaDBBackend, "mysql")
    pid_file = folder / "pid"
    return Daemon(server, command, pid_file, end=signal.SIGTERM, crash=signal.SIGKILL)


#: The functions that start each kind of server, or find a running one.
SERVERS: dict[str, Callable[[], Server | None]] = {"postgresql": postgresql, "mariadb": mariadb}


def _program(name: str, *folders: str) -> Path | None:
    found = shutil.which(name)
    places = [found] if found else []
    for folder in folders:
        places += sorted(glob(f"{folder}/{name}"), reverse=True)
    return Path(places[-1]).resolve() if places else None


def _home(user: str) -> tuple[Path, list[str]]:
    """A folder for a server, and the command prefix to run as its owner, who must not be root."""
    folder = new_folder("server-")
    if os.name == "nt" or os.geteuid() != 0:
        return folder, []
    shutil.chown(folder, user)
    return folder, ["runuser", "-u", user, "--"]


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _run(command: Sequence[object]) -> None:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command} failed:\n{done.stdout}\n{done.stderr}")


def start(command: Sequence[object], port: int, **options: Any) -> subprocess.Popen[bytes]:
    """Starts a server, which is stopped when this process ends, however it ends.

    :param port: the port that it will listen on.
    :param options: as for :class:`subprocess.Popen`.
    """
    script = '"$@" & server=$!; cat; kill $server; wait $server'
    process = subprocess.Popen(
        ["sh", "-c", script, "sh", *map(str, command)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **options,
    )
    atexit.register(stop, process)
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if answers(port):
            return process
        time.sleep(0.1)
    raise RuntimeError(f"{command} does not answer")


def answers(port: int) -> bool:
    """Whether something listens on a port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def stop(process: subprocess.Popen[bytes]) -> None:
    """Stops a server started with :func:`start`."""
    assert process.stdin is not None
    process.stdin.close()
    process.wait(PATIENCE)


@contextmanager
def served(app: Flask) -> Iterator[int]:
    """Serves an application in a thread; gives its port."""
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()
