"""Connections to databases, which may be gone at any time.

Connections are kept in pools and lent for a request each. One that broke while it lay there is
found out by the first statement on it; whoever has it then gets :class:`ConnectionLost` and may
begin anew.
"""

from __future__ import annotations

import os
import random
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import peewee
from playhouse.pool import (
    MaxConnectionsExceeded,
    PooledDatabase,
    PooledMySQLDatabase,
    PooledPostgresqlDatabase,
    PooledSqliteDatabase,
)

__all__ = [
    "DATABASE_ERRORS",
    "ConnectionLost",
    "MariaDBPool",
    "Pool",
    "PostgreSQLPool",
    "SQLitePool",
    "complaint",
    "connected",
    "file_of",
    "is_gone",
    "lent",
    "pymysql",
    "reason",
]

#: All that a database complains of. Rows are taken from SQLite when they are looked at, which is
#: behind peewee's back.
DATABASE_ERRORS = (
    peewee.DatabaseError,
    peewee.InterfaceError,
    sqlite3.DatabaseError,
    MaxConnectionsExceeded,
)
#: What is raised where a database does not answer, and the exact type of what is raised where it
#: cannot be read at all.
_GONE = (
    peewee.OperationalError,
    peewee.InterfaceError,
    sqlite3.OperationalError,
    MaxConnectionsExceeded,
)
_BROKEN = (peewee.DatabaseError, sqlite3.DatabaseError)


class ConnectionLost(Exception):
    """A connection broke that was good once; another one may be had."""


class Pool(PooledDatabase):  # type: ignore[misc]  # peewee has no types
    """Connections that are used again and again.

    :param recheck: for how long it need not be known that others have changed something, in s.
    """

    def __init__(self, *args: Any, recheck: float = 0.0, **options: Any) -> None:
        super().__init__(*args, **options)
        self._recheck = recheck
        _pools.add(self)

    def mark(self) -> object:
        """What is the same as long as it need not be asked whether others have changed something;
        None if it is to be asked each time."""
        return time.monotonic() // self._recheck if self._recheck > 0 else None

    def has_lost(self) -> bool:
        """Whether the connection that this thread has open is none any more."""
        return not self.is_closed() and self._is_closed(self.connection())

    def begin_anew(self) -> None:
        """Forgets, in a process that has just been forked, what belongs to the other one."""
        self._lock = threading.Lock()
        self._pool_lock = threading.RLock()
        self._pool_available = threading.Condition(self._pool_lock)
        self._in_use: dict[Any, Any] = {}


_pools: weakref.WeakSet[Pool] = weakref.WeakSet()


def _close_idle() -> None:
    for pool in list(_pools):
        pool.close_idle()


def _begin_anew() -> None:
    for pool in list(_pools):
        pool.begin_anew()


if hasattr(os, "register_at_fork"):
    # Two processes cannot share a connection, as the workers of a server would that loads the
    # site before it forks.
    os.register_at_fork(before=_close_idle, after_in_child=_begin_anew)


@contextmanager
def connected(database: peewee.Database) -> Iterator[None]:
    """A connection that is given back if it was not there before.

    :raises ConnectionLost: instead of an error that comes from a connection of a pool that broke.
    """
    with lent(database):
        database.connect(reuse_if_open=True)
        yield


@contextmanager
def lent(database: peewee.Database) -> Iterator[None]:
    """A connection that the first statement opens, if it is not there, and that is given back then.

    :raises ConnectionLost: as :func:`connected`.
    """
    opens = database.is_closed()
    if not database.autoconnect:
        database.connect(reuse_if_open=True)
    try:
        yield
    except DATABASE_ERRORS as error:
        if isinstance(database, Pool) and database.has_lost():
            # Where one broke others have as well.
            database.close_idle()
            raise ConnectionLost(reason(error)) from error
        raise
    finally:
        if opens and not database.is_closed():
            # One that is broken cannot always be closed.
            with suppress(*DATABASE_ERRORS):
                database.close()


def is_gone(error: BaseException) -> bool:
    """Whether a database does not answer, and it is not that a statement is wrong."""
    return isinstance(error, _GONE) or type(error) in _BROKEN


def complaint(error: BaseException) -> str:
    """What a database says, as a sentence."""
    return f"The database cannot be used: {reason(error)}."


def reason(error: BaseException) -> str:
    """The first line of what a database says; passwords are not in it."""
    said = next((part for part in reversed(error.args) if isinstance(part, str)), str(error))
    return said.strip().partition("\n")[0].rstrip(".")


# Kinds of databases.


class _FileConnection(sqlite3.Connection):
    """A connection that knows which file it is to; there can be another one under its name."""

    file: tuple[int, int] | None = None


class SQLitePool(Pool, PooledSqliteDatabase):  # type: ignore[misc]
    """Connections to a file, and one more that only tells whether any of the others, of this
    process or of another one, has changed it."""

    def __init__(self, name: str, **options: Any) -> None:
        self._watching: _FileConnection | None = None
        self._watch_lock = threading.Lock()
        super().__init__(name, factory=_FileConnection, check_same_thread=False, **options)

    def mark(self) -> object:
        with self._watch_lock, suppress(sqlite3.Error):
            if self._watching is None or self._watching.file != self._identity():
                self._end_watching()
                # Past the pool, which would lend it.
                self._watching = super(PooledDatabase, self)._connect()
                # Where one would have to wait, it is as good not to know.
                self._watching.execute("PRAGMA busy_timeout = 0")
            ((version,),) = self._watching.execute("PRAGMA data_version").fetchall()
            # Each connection counts by itself.
            return self._watching, version
        return None

    def _end_watching(self) -> None:
        if self._watching is not None:
            self._watching.close()
        self._watching = None

    def close_idle(self) -> None:
        super().close_idle()
        with self._watch_lock:
            self._end_watching()

    def begin_anew(self) -> None:
        super().begin_anew()
        self._watching, self._watch_lock = None, threading.Lock()

    def _add_conn_hooks(self, conn: _FileConnection) -> None:
        super()._add_conn_hooks(conn)
        conn.file = self._identity()

    def _is_closed(self, conn: _FileConnection) -> bool:
        if conn.file == self._identity():
            return False
        self._close_raw(conn)
        return True

    def _identity(self) -> tuple[int, int] | None:
        file = file_of(self)
        try:
            status = os.stat(file) if file else None
        except OSError:
            return None
        return status and (status.st_dev, status.st_ino)


def file_of(database: peewee.Database) -> Path | None:
    """The file of an SQLite database, unless all is in memory."""
    return _file_named(str(database.database))


@lru_cache
def _file_named(name: str) -> Path | None:
    if name == ":memory:" or "mode=memory" in name:
        return None
    return Path(unquote(urlsplit(name).path) if name.startswith("file:") else name)


class PostgreSQLPool(Pool, PooledPostgresqlDatabase):  # type: ignore[misc]
    """Connections to PostgreSQL; its library knows about several hosts."""

    def _is_closed(self, conn: Any) -> bool:
        return bool(conn.closed)


class _Hosts(peewee.MySQLDatabase):
    """A database that several hosts have.

    :param name: its name.
    :param hosts: how to reach each; the last one is connected to when all others are gone.
    """

    def __init__(self, name: str, *, hosts: Sequence[Mapping[str, Any]], **options: Any) -> None:
        self._hosts = hosts
        super().__init__(name, **options)

    def _connect(self) -> Any:
        *others, last = self._hosts
        for host in random.sample(others, len(others)):
            with suppress(pymysql().OperationalError):
                return self._connect_to(host)
        return self._connect_to(last)

    def _connect_to(self, host: Mapping[str, Any]) -> Any:
        options = {**self.connect_params, **host}
        return pymysql().connect(database=self.database, autocommit=True, **options)


def pymysql() -> Any:
    """The driver for MariaDB; a site without one need not have it."""
    return import_module("pymysql")


class MariaDBPool(Pool, PooledMySQLDatabase, _Hosts):  # type: ignore[misc]
    """Connections to MariaDB or MySQL."""

    def _is_closed(self, conn: Any) -> bool:
        return not conn.open

    def _can_reuse(self, conn: Any) -> bool:
        # The driver does not tell whether a transaction is open, so that one would be ended each
        # time, by a statement.
        in_transaction = import_module("pymysql.constants.SERVER_STATUS").SERVER_STATUS_IN_TRANS
        return not conn.server_status & in_transaction or super()._can_reuse(conn)
