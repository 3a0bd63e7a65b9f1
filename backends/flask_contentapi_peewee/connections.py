"""Connections to databases, which may break at any time.

Connections are pooled and lent to one request at a time. The first statement on a connection that
broke while idle fails; the caller gets :class:`ConnectionLost` and may try again.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import sqlite3
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from decimal import Decimal
from functools import lru_cache, partial
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit

import peewee
from playhouse.pool import (
    MaxConnectionsExceeded,
    PoolConnection,
    PooledDatabase,
    PooledMySQLDatabase,
    PooledPostgresqlDatabase,
    PooledSqliteDatabase,
)

from flask_contentapi.backend import ContentChanged

#: All errors of databases. SQLite fetches rows lazily, where peewee does not convert its errors.
DATABASE_ERRORS = (
    peewee.DatabaseError,
    peewee.InterfaceError,
    sqlite3.DatabaseError,
    MaxConnectionsExceeded,
)
#: The errors of a database that does not answer, and the exact types of errors of one that cannot
#: be read at all.
_OUTAGES = (
    peewee.OperationalError,
    peewee.InterfaceError,
    sqlite3.OperationalError,
    MaxConnectionsExceeded,
)
_BROKEN = (peewee.DatabaseError, sqlite3.DatabaseError)
#: How databases say that nothing can be written (PostgreSQL's states, MariaDB's and SQLite's
#: numbers), and that an account may not do something.
_READ_ONLY = {"25006", 1290, 1792, 1836, sqlite3.SQLITE_READONLY}
_FORBIDDEN = {"42501", 1142}
#: How many bytes of each key MariaDB compares when it sorts (by default 1,024), and how much memory
#: it has at least, which must hold some rows with all their keys.
SORTED_BYTES, SORT_BUFFER = 8192, 16 << 20
#: How long to wait before watching again after a failure, in s.
PAUSE = 1


class ConnectionLost(ContentChanged):
    """A connection broke that worked before; another one may work."""


class ReadOnly(peewee.OperationalError):
    """A database can only be read."""


class Pool(PooledDatabase):  # type: ignore[misc]  # peewee has no types
    """A pool of connections.

    :param recheck: for how long changes by other processes may go unnoticed, in s.
    """

    def __init__(self, *args: Any, recheck: float = 0.0, **options: Any) -> None:
        super().__init__(*args, **options)
        self._recheck = recheck
        self.renew()
        _pools.add(self)

    def mark(self, question: str) -> object:
        """A mark that stays the same as long as nothing has changed, or changes may go unnoticed;
        None if this is unknown.

        :param question: the statement for the version of the content.
        """
        if self._recheck > 0:
            return time.monotonic() // self._recheck
        return self._watch.ask(question)

    def connect_outside_pool(self) -> Any:
        """A connection that is not in the pool."""
        return super(PooledDatabase, self)._connect()

    def prepared_query(self, connection: Any, question: str) -> Callable[[], object]:
        """A function that asks the same on a connection, which is used for nothing else, each
        time."""
        cursor = connection.cursor()

        def ask() -> object:
            cursor.execute(question)
            return cursor.fetchall()

        return ask

    def is_good(self, connection: Any, since: float) -> bool:
        """Whether a connection is open and not too old.

        :param since: when it was opened, as :func:`time.time`.
        """
        return not (self._is_closed(connection) or (self._stale_timeout and self._is_stale(since)))

    def confirm(self, error: BaseException | None) -> None:
        """Confirms that what this thread's connection has read belongs together.

        :param error: the error that ended the reading, if there is one.
        :raises ConnectionLost: if the error broke the connection, or it has read something else.
        """
        if error is not None and not self.is_closed() and self._is_closed(self.connection()):
            # If one is broken, others probably are too.
            self.close_idle()
            raise ConnectionLost(reason(error)) from error

    def connect(self, reuse_if_open: bool = False) -> bool:
        if not self._may_connect.is_set():
            self._may_connect.wait()
        # All that peewee does for a new connection takes longer than most statements.
        if self.server_version is not None and self._state.closed and self._lend():
            return True
        connected: bool = super().connect(reuse_if_open)
        return connected

    def _lend(self) -> bool:
        with self._pool_lock:
            while self._connections:
                since, _, connection = self._connections.pop()
                if self.is_good(connection, since):
                    self._in_use[id(connection)] = PoolConnection(since, connection, since)
                    self._state.set_connection(connection)
                    return True
                self._close_raw(connection)
        return False

    def close(self) -> bool:
        return self._take_back() or bool(super().close())

    def _take_back(self) -> bool:
        state = self._state
        if state.transactions or self._stale_timeout or not state.conn:
            return False
        with self._pool_lock:
            lent = self._in_use.get(id(state.conn))
            if self._to_close_on_return or not (lent and self._can_reuse(lent.connection)):
                return False
            del self._in_use[id(lent.connection)]
            self._heap_counter += 1
            self._connections.append((lent.timestamp, self._heap_counter, lent.connection))
            self._pool_available.notify()
        state.reset()
        return True

    def close_idle(self) -> None:
        with self._pool_lock:
            # The list is shared with those that are apart.
            while self._connections:
                self._close_raw(self._connections.pop()[-1])
        self._watch.end()

    def close_all(self) -> None:
        """Closes idle connections and that of this thread. Those of other threads and of
        transactions are closed on return to the pool, because drivers must not be interrupted."""
        if not self.in_transaction():
            self.close()
        with self._pool_lock:
            self.close_idle()
            self._to_close_on_return |= self._in_use.keys()

    def _close(self, conn: Any, close_conn: bool = False) -> None:
        key = self.conn_key(conn)
        super()._close(conn, close_conn or key in self._to_close_on_return)
        self._to_close_on_return.discard(key)

    def hold(self) -> None:
        """Lets other threads return their connections, closes all, and keeps others from
        connecting until :meth:`release`.

        A process forked while another thread connects or reads may wait for ever: for locks of
        the driver, or of what is read.
        """
        self._may_connect.clear()
        self._pool_lock.acquire()
        end = time.monotonic() + PAUSE
        # This thread may be within a request itself, and keeps its connection.
        while len(self._in_use) > (not self.is_closed()) and time.monotonic() < end:
            self._pool_available.wait(PAUSE / 100)
        self._watch.lock.acquire(timeout=PAUSE)
        self.close_idle()

    def release(self) -> None:
        """Lets others connect again."""
        self._watch = _VersionWatch(self)
        self._pool_lock.release()
        self._may_connect.set()

    def renew(self) -> None:
        """Makes anew what a forked process does not share with its parent."""
        self._lock = threading.Lock()
        self._may_connect = threading.Event()
        self._may_connect.set()
        self._pool_lock = threading.RLock()
        self._pool_available = threading.Condition(self._pool_lock)
        self._in_use: dict[Any, Any] = {}
        self._to_close_on_return: set[Any] = set()
        self._watch = _VersionWatch(self)


class _VersionWatch:
    """A connection outside the pool, used only to find out whether the content has changed.

    Requests that need nothing else do not have to borrow one.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self.lock = threading.RLock()
        self._connection: Any = None
        self._query: Callable[[], object] | None = None
        self._since = self._not_before = 0.0

    def ask(self, question: str) -> object:
        """The result, together with the connection's query function; None if not available now."""
        # Rather than wait for another thread, the caller can borrow a connection.
        if not self.lock.acquire(blocking=False):
            return None
        try:
            if self._connection is None or not self._pool.is_good(self._connection, self._since):
                self._connect(question)
            return self._query and (self._query, self._query())
        except Exception:
            # Whatever its driver raises, the caller can borrow a connection.
            self._close()
            self._not_before = time.time() + PAUSE
            return None
        finally:
            self.lock.release()

    def _connect(self, question: str) -> None:
        self._close()
        if time.time() >= self._not_before:
            self._since = time.time()
            self._connection = self._pool.connect_outside_pool()
            self._query = self._pool.prepared_query(self._connection, question)

    def end(self) -> None:
        """Closes the connection, unless another thread uses it for too long."""
        if self.lock.acquire(timeout=PAUSE):
            self._close()
            self.lock.release()

    def _close(self) -> None:
        if self._connection is not None:
            with suppress(Exception):
                self._connection.close()
        self._connection = self._query = None


_pools: weakref.WeakSet[Pool] = weakref.WeakSet()
#: The pools held during a fork, by one thread at a time.
_held_pools: list[Pool] = []
_forking = threading.RLock()


def _hold_pools() -> None:
    _forking.acquire()
    _held_pools.extend(_pools)
    for pool in _held_pools:
        pool.hold()


def _go_on(with_pool: Callable[[Pool], None]) -> None:
    while _held_pools:
        with_pool(_held_pools.pop())
    _forking.release()


if hasattr(os, "register_at_fork"):
    # Processes cannot share connections, as the workers of a server would if it loads the site
    # before it forks.
    os.register_at_fork(
        before=_hold_pools,
        after_in_parent=partial(_go_on, Pool.release),
        after_in_child=partial(_go_on, Pool.renew),
    )


class Connected:
    """Opens a connection if there is none, and then returns it to the pool at the end.

    :param late: whether the first statement opens it.
    :raises ConnectionLost: in place of an error caused by a broken connection of a pool.
    """

    __slots__ = ("_database", "_late", "_opened_here")

    def __init__(self, database: peewee.Database, late: bool = False) -> None:
        self._database, self._late = database, late

    def __enter__(self) -> None:
        self._opened_here = self._database.is_closed()
        if not (self._late and self._database.autoconnect):
            self._database.connect(reuse_if_open=True)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        database = self._database
        try:
            is_of_database = error is None or isinstance(error, DATABASE_ERRORS)
            if is_of_database and isinstance(database, Pool):
                database.confirm(error)
        finally:
            if self._opened_here and not database.is_closed():
                # A broken connection cannot always be closed.
                with suppress(*DATABASE_ERRORS):
                    database.close()


def apart(database: peewee.Database) -> peewee.Database:
    """The same database, with a connection that is none of the present thread.

    So a thread can answer other requests, and change content, while it reads a snapshot, and
    another one can go on reading it.
    """
    own: Any = copy(database)
    own._state = peewee._ConnectionState()
    # Garbage collection may close it at any moment, also while its thread connects.
    own._lock = threading.Lock()
    return own  # type: ignore[no-any-return]


@contextmanager
def atomic(database: peewee.Database, *args: Any) -> Iterator[None]:
    """A transaction, or a savepoint inside one.

    If it fails, the first error is the one that is raised. Rolling back may fail as well: SQLite
    has done so by itself if a disk is full, MariaDB after a deadlock, and a database that is gone
    cannot.
    """
    failure: BaseException | None = None
    around = sys.exc_info()[1]
    try:
        with database.atomic(*args):
            try:
                yield
            except BaseException as error:
                failure = error
                raise
    except DATABASE_ERRORS as error:
        first: BaseException = error
        while isinstance(first.__context__, DATABASE_ERRORS) and first.__context__ is not around:
            first = first.__context__
        raise failure or first from None


def is_outage(error: BaseException) -> bool:
    """Whether an error means that a database does not do what it is asked to, and not that a
    statement is wrong."""
    if isinstance(error, _OUTAGES) or type(error) in _BROKEN:
        return True
    return refuses_writing(error) or bool(_codes_of(error) & _FORBIDDEN)


def refuses_writing(error: BaseException) -> bool:
    """Whether an error means that a database can only be read."""
    return isinstance(error, ReadOnly) or bool(_codes_of(error) & _READ_ONLY)


def _codes_of(error: BaseException) -> set[object]:
    """The codes that SQLite or a server has for an error."""
    original = getattr(error, "orig", None) or error
    of_file = getattr(original, "sqlite_errorcode", 0) & _PRIMARY
    return {getattr(original, "sqlstate", None), of_file, *original.args[:1]}


def reason(error: BaseException) -> str:
    """The first line of a database's error message, which has no passwords."""
    said = next((part for part in reversed(error.args) if isinstance(part, str)), str(error))
    return said.strip().partition("\n")[0].rstrip(".")


# Kinds of databases.


#: The part of SQLite's error codes without the details.
_PRIMARY = 0xFF
#: The errors of a file that cannot be written, which may be readable all the same.
_UNWRITABLE = (
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
)
#: The errors of a file that others are changing.
_IN_USE = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_PROTOCOL)


class _FileConnection(sqlite3.Connection):
    """A connection that knows its file, because another file may take the same name.

    :ivar obstacle: why it can only read, as a part of a sentence, or "".
    :ivar is_unchanging: whether it relies on nobody changing the file.
    """

    def __init__(self, name: str, *args: Any, **options: Any) -> None:
        file = file_of(name)
        self._file = file and str(file)
        self.is_unchanging = "immutable=1" in name
        self.obstacle = ""
        # Before opening, so that a file that replaces it meanwhile is not mistaken for it.
        self._state = self._state_of_file()
        super().__init__(name, *args, **options)

    @property
    def is_current(self) -> bool:
        """Whether it reads what its file has now, and writes if that is possible."""
        return self._state_of_file() == self._state

    def _state_of_file(self) -> object:
        """What differs between files with the same name; None if there is no file."""
        file = self._file
        if file is None:
            return ()
        try:
            status = os.stat(file)
        except OSError:
            return None
        identity = (status.st_dev, status.st_ino)
        if self.is_unchanging:
            return *identity, status.st_size, status.st_mtime_ns, _is_in_transit(file)
        return identity


class _File(peewee.SqliteDatabase):
    """A file, which is only read where it cannot be written, such as on a full disk."""

    @property
    def _file(self) -> Path:
        return cast(Path, file_of(self.database))

    def _connect(self) -> _FileConnection:
        connection = self._open("mode=rw")
        try:
            try:
                # A file that is still empty gets pages with room for several documents.
                connection.execute("PRAGMA page_size = 8192")
                # It needs files beside the database, even for reading.
                self._use_wal(connection)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & _PRIMARY not in _UNWRITABLE:
                    raise
                try:
                    connection.execute("PRAGMA schema_version").fetchall()
                except sqlite3.OperationalError:
                    connection.close()
                    connection = self._open_unchanging(error)
                connection.obstacle = _obstacle(self._file) or reason(error)
            else:
                connection.obstacle = "" if _may_write(self._file) else _obstacle(self._file)
            self._add_conn_hooks(connection)  # type: ignore[attr-defined]
        except BaseException:
            connection.close()
            raise
        return connection

    def _use_wal(self, connection: _FileConnection) -> None:
        # SQLite's own waiting ends where several change the mode of a new file at once.
        end = time.monotonic() + self.timeout
        while True:
            try:
                connection.execute("PRAGMA journal_mode = wal")
                return
            except sqlite3.OperationalError as error:
                code = error.sqlite_errorcode & _PRIMARY
                if code not in _IN_USE or time.monotonic() > end:
                    raise
            time.sleep(0.01)

    def _open(self, options: str) -> _FileConnection:
        name, timeout = f"{self.database}?{options}", self.timeout
        return _FileConnection(name, timeout=timeout, isolation_level=None, **self.connect_params)

    def _open_unchanging(self, error: sqlite3.OperationalError) -> _FileConnection:
        if not self._file.is_file():
            raise error
        if _is_in_transit(self._file):
            raise sqlite3.OperationalError(
                "the latest changes are in a second file beside it, whose name ends in -wal or "
                "-journal and which cannot be merged here; open both once where they can be written"
            ) from error
        return self._open("mode=ro&immutable=1")


def _is_in_transit(file: Path | str) -> bool:
    """Whether there are changes beside a database file that it does not have yet."""
    beside = (f"{file}-wal", f"{file}-journal")
    return any(os.path.exists(name) and os.path.getsize(name) for name in beside)


class SQLitePool(Pool, PooledSqliteDatabase, _File):  # type: ignore[misc]
    """Connections to a file, which can itself tell whether it has changed."""

    def mark(self, question: str) -> object:
        # It changes when other connections change the file.
        return self._watch.ask("PRAGMA data_version")

    def connect_outside_pool(self) -> _FileConnection:
        connection: _FileConnection = super().connect_outside_pool()
        # Not knowing is better than waiting.
        connection.execute("PRAGMA busy_timeout = 0")
        return connection

    def prepare_to_write(self) -> None:
        """Replaces this thread's connection if it could only read and no transaction uses it.

        :raises ReadOnly: if the file cannot be written now either.
        """
        if not self._connection.obstacle or self.in_transaction():
            return
        self.manual_close()
        self.close_idle()
        self.connect()
        if self._connection.obstacle:
            raise ReadOnly(self._connection.obstacle)

    def confirm(self, error: BaseException | None) -> None:
        if error is not None:
            super().confirm(error)
            return
        connection = None if self.is_closed() else self._connection
        if connection and connection.is_unchanging and not connection.is_current:
            raise ConnectionLost("the file has been changed while it was read")

    @property
    def _connection(self) -> _FileConnection:
        connection: _FileConnection = self.connection()  # type: ignore[no-untyped-call]
        return connection

    def _is_closed(self, conn: _FileConnection) -> bool:
        if conn.is_current:
            return False
        self._close_raw(conn)
        return True


def _obstacle(file: Path) -> str:
    """Why a database file can only be read, as a part of a sentence; "" if that is unknown."""
    if hasattr(os, "statvfs") and os.statvfs(file).f_flag & os.ST_RDONLY:
        return "its file system is read-only"
    if not _may_write(file):
        return "it is write-protected"
    if not _may_write(file.parent):
        return "no files can be made in its folder"
    return "" if shutil.disk_usage(file.parent).free else "its disk is full"


def _may_write(path: Path) -> bool:
    by_effective = {"effective_ids": True} if os.access in os.supports_effective_ids else {}
    return os.access(path, os.W_OK, **by_effective)


@lru_cache
def file_of(name: str) -> Path | None:
    """The file of an SQLite database with a name; None if it is in memory."""
    if name == ":memory:" or "mode=memory" in name:
        return None
    return Path(unquote(urlsplit(name).path) if name.startswith("file:") else name)


#: How many statements are prepared at most in a connection.
MOST_PREPARED = 100
#: The types of parameters; PostgreSQL finds out that of others, which are texts.
_OIDS = {bool: 16, int: 20, float: 701, Decimal: 1700}


@lru_cache(512)
def _numbered(text: str) -> bytes:
    """A statement with numbers in place of ``%s``, as the server has it."""
    numbers = count(1)
    signs = re.sub("%[s%]", lambda m: f"${next(numbers)}" if m[0] == "%s" else "%", text)
    return signs.encode()


class _Statements:
    """The reading statements of a connection to PostgreSQL; those that are frequent are prepared.

    The driver's cursors would take as long as the server.
    """

    def __init__(self, connection: Any) -> None:
        self._connection, self._server = connection, connection.pgconn
        self._psycopg = import_module("psycopg")
        self._execute = import_module("psycopg.generators").execute
        self._reader = import_module("psycopg.adapt").Transformer(connection)
        # Proxies lend connections on whose servers others have prepared theirs.
        prefix = f"contentapi_{os.urandom(6).hex()}_"
        self._names = (f"{prefix}{number}".encode() for number in count())
        #: By text and types of parameters the name of each, and how often it was asked.
        self._known: dict[tuple[bytes, tuple[int, ...]], tuple[bytes, int]] = {}

    def all(self, text: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        """All rows of a statement."""
        question, errors = _numbered(text), self._psycopg.errors
        types = tuple([_OIDS.get(type(value), 0) for value in parameters])
        values = [None if value is None else str(value).encode() for value in parameters]
        try:
            result = self._ask(question, types, values)
        except (errors.InvalidSqlStatementName, errors.FeatureNotSupported):
            # The driver lets the server forget all of them after some of its own statements. Those
            # with columns that have got another type cannot be asked any more.
            self._known.clear()
            self._server.send_query_params(question, values, types)
            result = self._result()
        self._reader.set_pgresult(result)
        rows: list[tuple[Any, ...]] = self._reader.load_rows(0, result.ntuples, tuple)
        return rows

    def _ask(self, question: bytes, types: tuple[int, ...], values: Sequence[bytes | None]) -> Any:
        """The result of a statement, which is prepared if it is frequent."""
        server, found = self._server, self._known.pop((question, types), None)
        name, asked = found or (next(self._names), 0)
        self._known[question, types] = name, asked + 1
        # The driver's own option: from how often on; None: never.
        often = self._connection.prepare_threshold
        if len(self._known) > MOST_PREPARED:
            oldest, times = self._known.pop(next(iter(self._known)))
            if often is not None and times > often:
                server.send_query(b"DEALLOCATE %s" % oldest)
                self._result()
        if often is None or asked < often:
            server.send_query_params(question, values, types)
            return self._result()
        if asked == often:
            server.send_prepare(name, question, types)
            self._result()
        server.send_query_prepared(name, values)
        return self._result()

    def _result(self) -> Any:
        (result,) = self._connection.wait(self._execute(self._server))
        status = self._psycopg.pq.ExecStatus
        if result.status not in (status.TUPLES_OK, status.COMMAND_OK):
            raise self._psycopg.errors.error_from_result(result)
        return result


class PostgreSQLPool(Pool, PooledPostgresqlDatabase):  # type: ignore[misc]
    """Connections to PostgreSQL, whose client library supports several hosts."""

    def all(self, text: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        """All rows of a statement that only reads."""
        connection, adapter = self.connection(), self._adapter
        # Only peewee tells its hooks, and an error must not break a transaction.
        if self.query_hooks or adapter.txn_status(connection) != adapter.txn_idle:
            found: list[tuple[Any, ...]] = self.execute_sql(text, parameters).fetchall()
            return found
        own = vars(connection)
        statements = own.get("_statements") or _Statements(connection)
        own["_statements"] = statements
        self._log_query(text, parameters)
        with peewee.__exception_wrapper__:  # type: ignore[attr-defined]
            return statements.all(text, parameters)

    def prepared_query(self, connection: Any, question: str) -> Callable[[], object]:
        # The driver's cursor would take longer than the server.
        psycopg = import_module("psycopg")
        server, name = connection.pgconn, b"contentapi_version"
        if connection.prepare_threshold is None:
            execute = partial(server.exec_params, question.encode())
        else:
            server.prepare(name, question.encode())
            execute = partial(server.exec_prepared, name)

        def ask() -> object:
            result = execute(None)
            if result.status != psycopg.pq.ExecStatus.TUPLES_OK:
                raise psycopg.OperationalError(result.get_error_message())
            return result.get_value(0, 0)

        return ask

    def _is_closed(self, conn: Any) -> bool:
        return bool(conn.closed)


class _Hosts(peewee.MySQLDatabase):
    """A database on several hosts.

    The option ``hosts`` has the options of each; the last is used if all others fail.
    """

    def _connect(self) -> Any:
        *others, last = self.connect_params["hosts"]
        for host in random.sample(others, len(others)):
            with suppress(pymysql().OperationalError):
                return self._connect_to(host)
        return self._connect_to(last)

    def _connect_to(self, host: Mapping[str, Any]) -> Any:
        options = {**self.connect_params, **host}
        del options["hosts"]
        connection = pymysql().connect(database=self.database, autocommit=True, **options)
        connection.query(
            f"SET SESSION max_sort_length = {SORTED_BYTES}, "
            f"sort_buffer_size = GREATEST(@@sort_buffer_size, {SORT_BUFFER})"
        )
        return connection


def pymysql() -> Any:
    """The driver for MariaDB, imported late because other sites need not install it."""
    return import_module("pymysql")


class MariaDBPool(Pool, PooledMySQLDatabase, _Hosts):  # type: ignore[misc]
    """Connections to MariaDB or MySQL."""

    def _is_closed(self, conn: Any) -> bool:
        return not conn.open

    def _can_reuse(self, conn: Any) -> bool:
        # The driver has no method for whether a transaction is open, so peewee would send a
        # rollback each time.
        in_transaction = import_module("pymysql.constants.SERVER_STATUS").SERVER_STATUS_IN_TRANS
        return not conn.server_status & in_transaction or super()._can_reuse(conn)
