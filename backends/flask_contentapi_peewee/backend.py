"""The backend that stores content in a database, through peewee."""

from __future__ import annotations

import atexit
import secrets
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import peewee

from flask_contentapi.backend import Backend, ContentChanged, Reader
from flask_contentapi.errors import BackendUnavailable, ConfigurationError, Problem
from flask_contentapi.logs import log
from flask_contentapi.registry import Registry
from flask_contentapi.signals import EVERYTHING, content_changed
from flask_contentapi.writer import Writer
from flask_contentapi_peewee.connections import (
    DATABASE_ERRORS,
    Connected,
    ConnectionLost,
    apart,
    is_outage,
    refuses_writing,
)
from flask_contentapi_peewee.engines import Engine
from flask_contentapi_peewee.followed import Followed
from flask_contentapi_peewee.following import AlreadyCopied, Following
from flask_contentapi_peewee.loading import check, dump, load
from flask_contentapi_peewee.mariadb import MariaDB
from flask_contentapi_peewee.postgresql import PostgreSQL
from flask_contentapi_peewee.reader import DatabaseReader
from flask_contentapi_peewee.setup import Setup
from flask_contentapi_peewee.sqlite import SQLite
from flask_contentapi_peewee.statements import Statements
from flask_contentapi_peewee.structure import Structure
from flask_contentapi_peewee.tables import Tables, is_derived
from flask_contentapi_peewee.writing import DatabaseTransaction

#: After how many copied rows the statistics of the database are updated.
MANY = 5000


class PeeweeBackend(Backend):
    """Serves content from the tables of a database.

    :param engine: the database.
    :param followed: the site's own models whose rows are served too.
    """

    engine_class: ClassVar[type[Engine]]

    def __init__(self, engine: Engine, followed: Sequence[Followed] = ()) -> None:
        if not isinstance(engine, Engine):
            raise TypeError("PeeweeBackend.on(database) makes the backend for a site's database.")
        self.engine = engine
        self._followed = tuple(followed)
        self._following: Following | None = None
        self._is_read_only = False
        self._setup: Setup | None = None
        self._structure: Structure | None = None
        self._is_ready = False
        self._thread = threading.local()

    @classmethod
    def from_address(cls, address: str, root: Path) -> PeeweeBackend:
        backend = cls(cls.engine_class.connect(address, root))
        # Drivers warn about connections that are garbage-collected while open.
        weakref.finalize(backend, backend.engine.close)
        return backend

    @staticmethod
    def on(database: peewee.Database, followed: Sequence[Followed] = ()) -> PeeweeBackend:
        """The backend for a database that the site opens itself.

        An open connection is used, and left open.

        :param database: the database.
        :param followed: the site's own models in it whose rows are served too.
        :raises ConfigurationError: if the kind of database is not supported.
        """
        for kind, backend in _KINDS:
            if isinstance(database, kind):
                return backend(backend.engine_class(database), followed)
        raise ConfigurationError(
            f"{type(database).__name__} is none of SqliteDatabase, PostgresqlDatabase and "
            "MySQLDatabase."
        )

    def open(self, registry: Registry, *, debug: bool = False, logs: bool = True) -> None:
        tables = Tables(registry, self.engine)
        self._setup, self._statements = Setup(tables), Statements(tables)
        if self._followed:
            self._following = Following(self._followed, tables, self.follow, logs)
        if logs:
            try:
                self._require_ready()
            except BackendUnavailable as error:
                log.error("%s", error)

    def close(self) -> None:
        if self._following is not None:
            self._following.close()
        self.engine.close()

    @property
    def setup(self) -> Setup:
        """What makes the tables."""
        if self._setup is None:
            raise RuntimeError("The backend is not open yet; ContentAPI.init_app opens it.")
        return self._setup

    @property
    def tables(self) -> Tables:
        """The tables."""
        return self.setup.tables

    # Set-up.

    def _require_ready(self) -> None:
        if not self._is_ready:
            try:
                self._require(self.setup.require_ready, self.engine.reading)
            except ConfigurationError as error:
                raise BackendUnavailable(str(error)) from error
            except DATABASE_ERRORS as error:
                raise BackendUnavailable(self.engine.sentence(error)) from error
            self._is_ready = True

    def _require(
        self, check: Callable[[peewee.Database], object], database: peewee.Database
    ) -> None:
        """Makes a check of a database, again if its connection broke while nobody used it."""
        self.engine.require_there()
        with self._reporting_outages():
            for _ in range(2):
                with suppress(ConnectionLost), Connected(database):
                    check(database)
                    return
            raise peewee.OperationalError("connections break as soon as they are used")

    def create(self) -> None:
        """Creates the tables if there are none, and the file if the database is one."""
        try:
            with (
                self.engine.creation(),
                self._reporting_outages(),
                Connected(self.engine.database),
            ):
                self.setup.create()
        except DATABASE_ERRORS as error:
            raise ConfigurationError(self.engine.sentence(error)) from error

    def migrate(self, *, forget: bool = False) -> list[str]:
        """Makes what is derived from the content anew, if the declared types have changed.

        :param forget: whether to delete what is stored of fields that types once had, and objects
            of endpoints that are not declared any longer.
        """
        self.require_no_writing("migrated")
        database = self.engine.database
        self.engine.require_there()
        with self._reporting_outages(), Connected(database):
            steps = self.setup.changes(database)
            # A migration that was killed may have left tables that it had replaced.
            if steps or any(map(is_derived, self.setup.others(database))):
                with self.setup.remaking() as missing:
                    # Another process may have done it meanwhile.
                    steps = self.setup.changes(database)
                    if steps:
                        with self._transaction() as reader:
                            self.setup.refill(reader, missing)
                            self._copy_all(reader)
                self.engine.analyze(self.tables.names, self.tables.words)
            if forget:
                with self._transaction() as reader:
                    former = self.setup.former(reader, forget=True)
                steps += [f"{label}.{n} is forgotten." for label in former for n in former[label]]
                for name in self.setup.others(database):
                    self.engine.drop_table(name)
                    steps.append(f"The table {name} is dropped.")
        return steps

    # Reading.

    @contextmanager
    def reader(self) -> Iterator[DatabaseReader]:
        database = self.engine.database if self.is_writing else self.engine.reading
        self._require_ready()
        try:
            with Connected(database, late=True):
                self._follow()
                reader = self._current_reader(database)
                try:
                    yield reader
                except Exception as error:
                    # Other errors too must be based on a single version.
                    if not isinstance(error, (*DATABASE_ERRORS, ContentChanged)):
                        reader.confirm_version()
                    raise
                reader.confirm_version()
        except ContentChanged:
            self._structure = None
            raise
        except DATABASE_ERRORS:
            self._is_ready = False
            # Of a table that is missing, the error names no remedy.
            self._require_ready()
            with self._reporting_outages():
                raise

    def snapshot_reader(self) -> AbstractContextManager[Reader]:
        # Other threads do not see what this one is writing.
        if self.is_writing:
            return self.reader()
        snapshot = self._snapshot(apart(self.engine.reading))
        _snapshots.add(snapshot)
        return snapshot

    def _require_version(self, stamp: str) -> None:
        database = apart(self.engine.reading)
        with Connected(database):
            if self._read_structure(database).stamp != stamp:
                raise ContentChanged

    def mark(self) -> object:
        # Rows of followed models are copied by a reader alone.
        if not self._is_ready or self.is_writing or self._following is not None:
            return None
        return self.engine.mark(self._statements.version.text)

    @contextmanager
    def _reporting_outages(self) -> Iterator[None]:
        try:
            yield
        except ConnectionLost as error:
            raise BackendUnavailable(f"The database is gone: {error}.") from error
        except DATABASE_ERRORS as error:
            if not is_outage(error):
                raise
            raise BackendUnavailable(self.engine.sentence(error)) from error

    def _current_reader(self, database: peewee.Database) -> DatabaseReader:
        # Within a write() block the version is the same before and after each change.
        if getattr(self._thread, "writing", False):
            structure = self._read_structure(database)
            return DatabaseReader(database, self._statements, structure, versioned=False)
        structure = self._structure = self._structure or self._read_structure(database)
        return DatabaseReader(database, self._statements, structure)

    def _read_structure(self, database: peewee.Database) -> Structure:
        tables = self.tables
        query = peewee.Select(columns=[tables.version, tables.state_of("declared")])
        ((stamp, declared),) = tables.all(query.bind(database), database)
        if declared != tables.declared:
            self._is_ready = False
            raise ContentChanged
        return Structure(tables, database, str(stamp))

    # Writing.

    @contextmanager
    def transaction(self) -> Iterator[DatabaseTransaction]:
        database = self.engine.database
        self._require(_ask if self._is_ready else self.setup.require_ready, database)
        self._catch_up()
        with self._transaction() as reader:
            # Others may have made other tables meanwhile.
            if self.tables.read_state(database)["declared"] != self.tables.declared:
                self.setup.require_ready(database)
            copies = getattr(self._thread, "following", False)
            transaction = DatabaseTransaction(reader, copies)
            self._thread.transaction = transaction
            try:
                yield transaction
            finally:
                del self._thread.transaction
            if self._following is not None and not copies:
                self._following.note_waiting(reader)
        self.follow()

    # Following.

    def follow(self) -> None:
        """Copies rows of followed models that have changed, rather than before the next answer.

        A failure is only logged, as the next answer tries again.
        """
        try:
            self._catch_up()
        except BackendUnavailable as error:
            log.warning("Changed rows are not copied yet: %s", error)

    def reload(self) -> None:
        """Copies all rows of followed models, even if no change is known."""
        if self._following is not None:
            self._require_ready()
        self._catch_up(whole=True)

    def _catch_up(self, *, whole: bool = False) -> None:
        if self._following is not None:
            with self._reporting_outages(), Connected(self.engine.database):
                self._follow(whole=whole)

    def _follow(self, *, whole: bool = False) -> None:
        following, thread = self._following, self._thread
        if following is None or any(vars(thread).values()):
            return
        if not (whole or following.marks()[0]):
            return
        thread.following = True
        try:
            with self.write() as writer:
                number = following.copy(thread.transaction, writer, whole=whole)
        except AlreadyCopied:
            return
        except ConfigurationError as error:
            raise BackendUnavailable(str(error)) from error
        except BackendUnavailable as error:
            if not refuses_writing(error.__cause__ or error):
                raise
            if not self._is_read_only:
                log.warning("Changed rows are not copied: %s", error)
            self._is_read_only = True
            return
        finally:
            thread.following = False
        self._is_read_only = False
        if number > MANY:
            self._refresh()

    def _copy_all(self, reader: DatabaseReader) -> None:
        if self._following is not None:
            transaction = DatabaseTransaction(reader, copies=True)
            self._following.copy(transaction, Writer(transaction), whole=True)

    def _refresh(self) -> None:
        try:
            with self._reporting_outages(), Connected(self.engine.database):
                self.engine.analyze(self.tables.names, self.tables.words)
            if self.engine.words_are_apart:
                with self._transaction():
                    # A new version, as searches that missed late words may have been cached.
                    pass
        except BackendUnavailable as error:
            # The content has been changed all the same.
            log.warning("The content is loaded, but not all is ready for it: %s", error)

    def load(self, content: Mapping[str, Iterable[Any]]) -> None:
        """Replaces the whole content in one transaction; other writers wait for its end."""
        self.require_no_writing("loaded")
        database = self.engine.database
        self._require(self.setup.require_tables, database)
        with (
            self._reporting_outages(),
            Connected(database),
            self.setup.remaking(replacing=True),
            self._transaction() as reader,
        ):
            load(content, self._statements)
            self.tables.write_state(declared=self.tables.declared)
            self._copy_all(reader)
        self._is_ready = False
        try:
            self._refresh()
        finally:
            content_changed.send(self, tags=frozenset([EVERYTHING]))

    @contextmanager
    def _transaction(self) -> Iterator[DatabaseReader]:
        """A transaction that gives the content a new version.

        :returns: a reader that sees the changes of the transaction.
        """
        if getattr(self._thread, "reading", False):
            raise RuntimeError(
                "What is being dumped is not changed meanwhile; take all of it first."
            )
        database = self.engine.database
        with self._reporting_outages(), Connected(database), self.engine.transaction():
            # Other writers wait here, so that each builds on the changes of the one before.
            stamp = secrets.token_hex(8)
            self.tables.write_state(stamp=stamp)
            within, self._thread.writing = getattr(self._thread, "writing", False), True
            try:
                structure = Structure(self.tables, database, stamp)
                yield DatabaseReader(database, self._statements, structure, versioned=False)
            finally:
                self._thread.writing = within
        self._structure = None

    def dump(self) -> Iterator[tuple[str, Any]]:
        """The whole content, as it is when the first record is requested."""
        with self._unchanged() as reader:
            yield from dump(reader)

    @contextmanager
    def _unchanged(self) -> Iterator[DatabaseReader]:
        """A snapshot, while which the thread changes nothing."""
        database = self.engine.reading
        if self.is_writing or database.in_transaction():
            raise RuntimeError("Content is not dumped while it is changed; end the change first.")
        try:
            with self._reporting_outages(), self._snapshot(database) as reader:
                self._thread.reading = True
                try:
                    yield reader
                finally:
                    self._thread.reading = False
        except ContentChanged as error:
            self._require_ready()
            raise BackendUnavailable("The content changes while it is read.") from error

    @contextmanager
    def _snapshot(self, database: peewee.Database) -> Iterator[DatabaseReader]:
        self._require_ready()
        self._catch_up()
        try:
            with Connected(database), self.engine.snapshot(database):
                structure = self._read_structure(database)
                reader = DatabaseReader(database, self._statements, structure)
                if self.engine.words_are_apart:
                    reader.confirm_search = partial(self._require_version, structure.stamp)
                yield reader
                reader.confirm_version()
        except DATABASE_ERRORS:
            # Not around all of it: a lost connection may succeed with another one.
            with self._reporting_outages():
                raise

    def check(self, *, values: bool = True) -> Iterator[Problem]:
        """The problems of the content, or only why the database cannot be served from."""
        try:
            self._is_ready = False
            self._require_ready()
            self._catch_up()
        except BackendUnavailable as error:
            yield Problem("database", "", str(error))
            return
        with self._unchanged() as reader:
            yield from check(reader, values=values)
            if self._following is not None:
                yield from self._following.problems(reader)

    def notes(self) -> Iterator[str]:
        """Fields that types once had and that are still stored, and whether all is read-only."""
        try:
            self._require_ready()
        except BackendUnavailable:
            # The check says so.
            return
        with self._unchanged() as reader:
            for label, names in self.setup.former(reader).items():
                yield (
                    f"{label} once had {', '.join(names)}, which is still stored, but in no dump; "
                    "flask contentapi migrate --forget deletes it."
                )
            for name in self.setup.others(self.engine.reading):
                yield (
                    f"The table {name} belongs to no declared endpoint; "
                    "flask contentapi migrate --forget drops it."
                )
        try:
            with Connected(self.engine.database):
                self.engine.test_writing(self.tables.state.name)
        except (*DATABASE_ERRORS, ConnectionLost) as error:
            if refuses_writing(error):
                yield self.engine.sentence(error)


class SQLiteBackend(PeeweeBackend):
    """The backend for SQLite, with an address such as ``sqlite:///site.db``."""

    engine_class = SQLite


class PostgreSQLBackend(PeeweeBackend):
    """The backend for PostgreSQL, with an address such as ``postgresql://user@host/name``."""

    engine_class = PostgreSQL


class MariaDBBackend(PeeweeBackend):
    """The backend for MariaDB and MySQL, with an address such as ``mariadb://user@host/name``."""

    engine_class = MariaDB


#: The backend for each kind of database.
_KINDS: Sequence[tuple[type[peewee.Database], type[PeeweeBackend]]] = (
    (peewee.SqliteDatabase, SQLiteBackend),
    (peewee.PostgresqlDatabase, PostgreSQLBackend),
    (peewee.MySQLDatabase, MariaDBBackend),
)

#: The snapshots that may be open at the end of the program.
_snapshots: weakref.WeakSet[AbstractContextManager[Reader]] = weakref.WeakSet()


@atexit.register
def _close_snapshots() -> None:
    # Later, what closing needs is gone.
    for snapshot in [*_snapshots]:
        with suppress(Exception):
            snapshot.__exit__(None, None, None)


def _ask(database: peewee.Database) -> None:
    database.execute_sql("SELECT 1")
