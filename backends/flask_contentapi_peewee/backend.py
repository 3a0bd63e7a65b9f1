"""The backend that stores content in a database, through peewee."""

from __future__ import annotations

import logging
import secrets
import threading
import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import orjson
import peewee

from flask_contentapi.backend import Backend, ContentChanged
from flask_contentapi.errors import BackendUnavailable, ConfigurationError, Problem
from flask_contentapi.registry import Registry
from flask_contentapi.signals import EVERYTHING, content_changed
from flask_contentapi.sites import Site
from flask_contentapi_peewee.checking import check
from flask_contentapi_peewee.connections import (
    DATABASE_ERRORS,
    BorrowedConnection,
    ConnectionLost,
    connected,
    error_sentence,
    file_of,
    is_outage,
)
from flask_contentapi_peewee.engines import Engine
from flask_contentapi_peewee.layouts import layout_of, stored_layout
from flask_contentapi_peewee.loading import dump, ids_of, load, reindex
from flask_contentapi_peewee.mapped_tables import MappedTables
from flask_contentapi_peewee.mapping import MappedModel
from flask_contentapi_peewee.mariadb import MariaDB
from flask_contentapi_peewee.migrating import Migration
from flask_contentapi_peewee.postgresql import PostgreSQL
from flask_contentapi_peewee.reader import DatabaseReader
from flask_contentapi_peewee.sqlite import SQLite
from flask_contentapi_peewee.statements import Statements
from flask_contentapi_peewee.structure import Structure
from flask_contentapi_peewee.tables import Tables
from flask_contentapi_peewee.writing import Writer

__all__ = ["MariaDBBackend", "PeeweeBackend", "PostgreSQLBackend", "SQLiteBackend"]

_log = logging.getLogger("flask_contentapi")

Part = TypeVar("Part")

#: The version of the tables' layout.
SCHEMA = "3"


class PeeweeBackend(Backend):
    """Serves content from the tables of a database.

    :param engine: the database.
    :param models: the site's own models in it whose rows are served as well.
    """

    engine_class: ClassVar[type[Engine]]

    def __init__(self, engine: Engine, models: Sequence[MappedModel] = ()) -> None:
        self.engine = engine
        self._models = tuple(models)
        self._registry: Registry | None = None
        self._tables: Tables | None = None
        self._statements: Statements | None = None
        self._structure: Structure | None = None
        self._is_ready = False
        #: The stored layout when the tables were last found to fit.
        self._layout: str | None = None
        self._thread = threading.local()

    @classmethod
    def from_address(cls, address: str, root: Path) -> PeeweeBackend:
        backend = cls(cls.engine_class.connect(address, root))
        # Drivers warn about connections that are garbage-collected while open.
        weakref.finalize(backend, backend.engine.close)
        return backend

    @staticmethod
    def on(database: peewee.Database, models: Sequence[MappedModel] = ()) -> PeeweeBackend:
        """The backend for a database that the site opens itself.

        An open connection is used, and left open.

        :param database: the database.
        :param models: the site's own models in it whose rows are served as well.
        :raises ConfigurationError: if the kind of database is not supported.
        """
        for kind, backend in _KINDS:
            if isinstance(database, kind):
                return backend(backend.engine_class(database), models)
        raise ConfigurationError(
            f"{type(database).__name__} is none of SqliteDatabase, PostgresqlDatabase and "
            "MySQLDatabase."
        )

    def open(self, registry: Registry, *, debug: bool = False, logs: bool = True) -> None:
        self._registry = registry
        self._tables = Tables(registry, self.engine)
        mapped = self._models and MappedTables(self._tables, registry, self._models)
        self._statements = Statements(mapped or self._tables)
        why = self.why_not_ready() if logs else ""
        if why:
            _log.error("%s", why)

    def close(self) -> None:
        self.engine.close()

    @property
    def tables(self) -> Tables:
        """The tables."""
        return _require_open(self._tables)

    @property
    def statements(self) -> Statements:
        """The statements."""
        return _require_open(self._statements)

    @property
    def registry(self) -> Registry:
        """The declared types."""
        return _require_open(self._registry)

    # Set-up.

    def why_not_ready(self) -> str:
        """Why the database cannot be served from, in sentences; "" if it can."""
        try:
            return self._why_unusable(self.engine.reading)
        except DATABASE_ERRORS as error:
            return error_sentence(error, self._name)

    def _why_unusable(self, database: peewee.Database) -> str:
        """The same, through connections for reading or for writing; the database must answer."""
        for _ in range(2):
            with suppress(ConnectionLost):
                return self._why_no_tables(database) or self._why_unfit(database)
        raise peewee.OperationalError("connections break as soon as they are used")

    def _why_no_tables(self, database: peewee.Database) -> str:
        """Why there are no tables of this version; "" if there are."""
        missing = self._why_no_database()
        if missing:
            return missing
        with connected(database):
            unsuitable = self.engine.unsuitable(database)
            schema = self._read_schema(database)
        made = f"The tables are not there. {_MAKE}" if schema is None else _why_unknown(schema)
        return unsuitable or made

    @property
    def _name(self) -> str:
        """The name of the database in messages."""
        return "The database"

    def _why_no_database(self) -> str:
        """Why there is no database to connect to, and the remedy, in sentences; "" if there may
        be one."""
        return ""

    def _why_unfit(self, database: peewee.Database) -> str:
        """Why the tables do not fit the declared types; "" if they do."""
        with connected(database):
            layout = self.tables.read_state("layout", database)
            steps = list(self._migration(database).steps())
            if steps and self._layout is not None:
                return f"{_UNFIT} {_RESTART}"
            if steps:
                before, now = (
                    stored_layout(self.tables, database).locations,
                    layout_of(self.tables).locations,
                )
                return " ".join([_UNFIT, *steps, _CHANGE, *_app_label_hints(before, now)])
            self._layout = layout
            return self.statements.tables.missing_message(database)

    def create(self) -> None:
        """Creates the tables if there are none, and the file if the database is one.

        :raises ConfigurationError: if they cannot be created, if no database answers, or if the
            existing tables have another version.
        :raises BackendUnavailable: if the database stops answering meanwhile.
        """
        self.engine.create()
        database = self.engine.database
        try:
            with self._reporting_outages(), connected(database):
                if unsuitable := self.engine.unsuitable(database):
                    raise ConfigurationError(unsuitable)
                schema = self._read_schema(database)
                if schema is None:
                    self._create_tables()
        except DATABASE_ERRORS as error:
            raise ConfigurationError(error_sentence(error, self._name)) from error
        if schema is not None and _why_unknown(schema):
            raise ConfigurationError(_why_unknown(schema))

    def _create_tables(self) -> None:
        """Creates all tables, unless another process has just done so."""
        with self.engine.schema_lock(), self.engine.transaction():
            if self._read_schema(self.engine.database) is None:
                self._make_tables()

    def _make_tables(self) -> None:
        """Creates all tables. The state table is created first and filled last."""
        # If DDL is not transactional, there may be empty tables from an interrupted attempt.
        if self.engine.database.table_exists(self.tables.state.model._meta.table_name):
            for name in reversed([*self.tables.names]):
                self.engine.drop_table(name)
        for model in self.tables.models:
            model.create_table()
        for endpoint in self.tables.endpoints.values():
            self.engine.create_words(endpoint.words)
        layout = orjson.dumps(layout_of(self.tables).write()).decode()
        key, value = (self.tables.state.fields[name] for name in ("key", "value"))
        values = {"schema": SCHEMA, "stamp": "", "layout": layout}
        rows = [{key: name, value: text} for name, text in values.items()]
        self.tables.state.model.insert_many(rows).execute()

    def migrate(self) -> list[str]:
        """Changes the tables to fit the declared types.

        :returns: the steps taken, each in a sentence.
        :raises ContentError: if stored content does not fit the types; then nothing is changed.
        :raises ConfigurationError: if there are no tables, or those of another version.
        :raises BackendUnavailable: if the database does not answer, or others write for too long.
        :raises RuntimeError: if :meth:`dump` is running in this thread.
        """
        database = self.engine.database
        with self._reporting_outages():
            why = self._why_no_tables(database)
            if why:
                raise ConfigurationError(why)
            with connected(database):
                steps = list(self._migration(database).steps())
                return self._migrate() if steps else []

    def _migrate(self) -> list[str]:
        """Changes the tables, unless another process has done so meanwhile."""
        with self.engine.schema_lock():
            migration = self._migration(self.engine.database)
            steps = list(migration.steps())
            if steps:
                self._run(migration)
        return steps

    def _run(self, migration: Migration) -> None:
        with self._transaction(migrating=True):
            migration.change_tables()
            self.engine.begin_after_ddl()
            # If DDL has ended the transaction, other writers wait only from here on.
            self._write_state("stamp", secrets.token_hex(8))
            migration.move_objects()
            reader = self._writing_reader()
            for label in migration.reindexed:
                reindex(reader, *ids_of(reader, label))
            # Without a transaction, readers may have seen changes under the first new stamp.
            self._write_state("stamp", secrets.token_hex(8))
            self._write_state("layout", orjson.dumps(migration.layout.write()).decode())
        self._is_ready = False

    def _migration(self, database: peewee.Database) -> Migration:
        """The migration of the tables to the declared types."""
        return Migration(self.tables, self.registry, stored_layout(self.tables, database), database)

    def _write_state(self, key: str, value: str) -> None:
        state = self.tables.state
        update = state.model.update({state.fields["value"]: value})
        update.where(state.fields["key"] == key).execute()

    def _read_schema(self, database: peewee.Database) -> str | None:
        """The version of the tables' layout; None if there are no tables."""
        if not database.table_exists(self.tables.state.model._meta.table_name):
            return None
        return self.tables.read_state("schema", database)

    # Reading.

    @contextmanager
    def reader(self) -> Iterator[DatabaseReader]:
        database = self.engine.reading
        self._require_ready()
        try:
            with BorrowedConnection(database):
                reader = self._current_reader(database)
                try:
                    yield reader
                except (*DATABASE_ERRORS, ContentChanged):
                    raise
                except Exception:
                    # Errors too must be based on a single version.
                    reader.confirm_version()
                    raise
                reader.confirm_version()
        except ContentChanged:
            self._structure = None
            raise
        except ConnectionLost as error:
            raise ContentChanged from error
        except DATABASE_ERRORS as error:
            self._is_ready = False
            why = error_sentence(error, self._name) if is_outage(error) else self.why_not_ready()
            if not why:
                raise
            raise BackendUnavailable(why) from error

    @contextmanager
    def _reporting_outages(self) -> Iterator[None]:
        """Turns errors of an unreachable database into BackendUnavailable."""
        try:
            yield
        except ConnectionLost as error:
            raise BackendUnavailable(f"The database is gone: {error}.") from error
        except DATABASE_ERRORS as error:
            if not is_outage(error):
                raise
            raise BackendUnavailable(error_sentence(error, self._name)) from error

    def _require_ready(self) -> None:
        if not self._is_ready:
            why = self.why_not_ready()
            if why:
                raise BackendUnavailable(why)
            self._is_ready = True

    def _current_reader(self, database: peewee.Database) -> DatabaseReader:
        """A reader of the present version, with what is known of its structure."""
        # Within a write() block the version is the same before and after each change.
        within = getattr(self._thread, "writing", False)
        versioned = self.statements.tables.versioned and not within
        structure = self._structure if versioned else None
        if structure is None:
            structure = self._read_fitting_structure(database)
        if versioned:
            self._structure = structure
        return DatabaseReader(database, self.statements, structure, versioned)

    def _read_fitting_structure(self, database: peewee.Database) -> Structure:
        """Reads the structure, if the tables are still those that were found to fit.

        :raises ContentChanged: if they have been migrated since.
        """
        tables = self.statements.tables
        query = peewee.Select(columns=[tables.version(), tables.state_of("layout")])
        ((stamp, layout),) = tables.all(query, database)
        if layout != self._layout:
            self._is_ready = False
            raise ContentChanged
        return Structure(tables, database, str(stamp))

    def _read_structure(self, database: peewee.Database) -> Structure:
        tables = self.statements.tables
        return Structure(tables, database, tables.read_version(database))

    # Writing.

    @contextmanager
    def write(self) -> Iterator[Any]:
        """Changes the content in one transaction; other writers wait for its end.

        If an error leaves the ``with`` block, the transaction is rolled back. Requests within the
        block see its changes so far, and their responses have no ``ETag``.

        :raises ConfigurationError: if there are no tables, or they do not fit the declared types.
        :raises BackendUnavailable: if the database does not answer, or others write for too long.
        :raises RuntimeError: if :meth:`dump` is running in this thread.
        """
        with self._transaction():
            reader = self._writing_reader()
            writer = Writer(self.tables, self.registry, reader)
            sites = self._sites() if content_changed.receivers else None
            try:
                yield writer
            finally:
                writer.is_over = True
            tags = frozenset() if sites is None else writer.tags()
            if tags and sites != self._sites():
                tags = frozenset([EVERYTHING])
        if tags:
            content_changed.send(self, tags=tags)

    def _sites(self) -> list[Site]:
        """All sites with their home pages, as they are now."""
        return list(Structure(self.tables, self.engine.database, "").sites)

    def _writing_reader(self) -> DatabaseReader:
        """A reader that sees the changes of the transaction."""
        database = self.engine.database
        return DatabaseReader(database, self.statements, self._read_structure(database))

    def reload(self) -> None:
        """Updates the search index of the site's own models and announces their changes.

        :raises ConfigurationError: if there are no tables, or they do not fit the declared types.
        :raises BackendUnavailable: if the database does not answer, or others write for too long.
        :raises RuntimeError: if :meth:`dump` is running in this thread.
        """
        if self._models:
            with self.write() as content:
                content.refresh()
            self._analyze()

    def load(self, content: Mapping[str, Iterable[Any]]) -> None:
        """Replaces the whole content in one transaction; other writers wait for its end.

        :param content: the records of each section, as iterables that may be exhausted by one
            pass.
        :raises ContentError: with every problem in the records.
        :raises ConfigurationError: if there are no tables, or they do not fit the declared types.
        :raises BackendUnavailable: if the database does not answer, or others write for too long.
        :raises RuntimeError: if :meth:`dump` is running in this thread.
        """
        with self._transaction():
            foreign = self.statements.tables.foreign
            load(content, self.registry, self.tables, foreign)
            self._clear_unused()
            reader = self._writing_reader()
            for label in foreign:
                reindex(reader, *ids_of(reader, label))
        self._analyze()
        if self.engine.words_come_late:
            with self._transaction():
                # A new version, as searches that missed late words may have been cached.
                pass
        content_changed.send(self, tags=frozenset([EVERYTHING]))

    def _clear_unused(self) -> None:
        """Empties the tables that no type declares any longer."""
        migration = self._migration(self.engine.database)
        for table in migration.unused:
            peewee.Table(table).bind(self.engine.database).delete().execute()
        for table in migration.unused_words:
            self.engine.clear_words(table)

    def _analyze(self) -> None:
        """Updates the statistics of the database, so that it chooses good query plans."""
        with self._reporting_outages(), connected(self.engine.database):
            self.engine.analyze(self.tables.names, self.tables.words)

    @contextmanager
    def _transaction(self, *, migrating: bool = False) -> Iterator[None]:
        """A transaction that gives the content a new version."""
        if getattr(self._thread, "reading", False):
            raise RuntimeError(
                "What is being dumped is not changed meanwhile; take all of it first."
            )
        database = self.engine.database
        with self._reporting_outages():
            why = "" if migrating else self._why_unusable(database)
            if why:
                raise ConfigurationError(why)
            with connected(database), self.engine.transaction():
                # Other writers wait here, so that each builds on the changes of the one before.
                self._write_state("stamp", secrets.token_hex(8))
                within, self._thread.writing = getattr(self._thread, "writing", False), True
                try:
                    yield
                finally:
                    self._thread.writing = within
        self._structure = None

    def dump(self) -> Iterator[tuple[str, Any]]:
        """The whole content, as it is when the first record is requested.

        :raises BackendUnavailable: if the tables do not fit the declared types, if the database
            does not answer, or if rows of the site's own models change meanwhile.
        :raises RuntimeError: if the content is being changed in this thread.
        """
        with self._snapshot() as reader:
            yield from dump(reader)

    @contextmanager
    def _snapshot(self) -> Iterator[DatabaseReader]:
        """A reader of the content as it is now, for as long as reading takes."""
        database = self.engine.reading
        if database.in_transaction():
            raise RuntimeError("Content is not dumped while it is changed; end the change first.")
        self._require_ready()
        try:
            with self._reporting_outages(), connected(database), self.engine.snapshot():
                self._thread.reading = True
                reader = DatabaseReader(
                    database, self.statements, self._read_fitting_structure(database)
                )
                yield reader
                reader.confirm_version()
        except ContentChanged as error:
            self._require_ready()
            raise BackendUnavailable("The content changes while it is read.") from error
        finally:
            self._thread.reading = False

    def check(self) -> Iterator[Problem]:
        """The problems of the content, or only why the database cannot be served from.

        :raises BackendUnavailable: as :meth:`dump`.
        :raises RuntimeError: if the content is being changed in this thread.
        """
        why = self.why_not_ready()
        if why:
            yield Problem("database", "", why)
            return
        with self._snapshot() as reader:
            yield from check(reader, self.registry)

    def notes(self) -> Iterator[str]:
        """Tables and columns that no type declares any longer.

        :raises BackendUnavailable: as :meth:`dump`.
        :raises RuntimeError: if the content is being changed in this thread.
        """
        if not self.why_not_ready():
            with self._snapshot():
                yield from self._migration(self.engine.reading).left_over()


class SQLiteBackend(PeeweeBackend):
    """The backend for SQLite, with an address such as ``sqlite:///site.db``."""

    engine_class = SQLite

    @property
    def _name(self) -> str:
        file = file_of(self.engine.database)
        return "The database" if file is None else f"The database file {str(file)!r}"

    def create(self) -> None:
        if no_folder := self._why_no_folder():
            raise ConfigurationError(no_folder)
        super().create()

    def _why_no_database(self) -> str:
        file = file_of(self.engine.database)
        if file is None or file.exists():
            return ""
        return self._why_no_folder() or f"There is no database file {str(file)!r}. {_PUT}"

    def _why_no_folder(self) -> str:
        file = file_of(self.engine.database)
        if file is None or file.parent.is_dir():
            return ""
        return f"There is no folder {str(file.parent)!r} for {file.name}; create it."


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


def _require_open(part: Part | None) -> Part:
    """A part that exists once the backend is open."""
    if part is None:
        raise RuntimeError("The backend is not open yet; ContentAPI.init_app opens it.")
    return part


def _why_unknown(schema: str) -> str:
    """Why tables of a layout version cannot be used; "" if they can."""
    if schema == SCHEMA:
        return ""
    return (
        f"The tables have the layout {schema}, but this version of flask_contentapi knows "
        f"{SCHEMA}. Update flask_contentapi, or load the content into an empty database."
    )


def _app_label_hints(before: Collection[str], now: Collection[str]) -> Iterator[str]:
    """The remedy if a type may have a new label only because its module was renamed."""
    added = {label.rpartition(".")[2] for label in now if label not in before}
    for label in before:
        app_label, _, name = label.rpartition(".")
        if name in added and label not in now:
            yield f"If only the module of {name} is another, set app_label = {app_label!r} instead."


_PUT = "Put it there. An empty one for the site is made by the command: flask contentapi init-db."
_MAKE = "Make what is missing with the command: flask contentapi init-db."
_UNFIT = "The tables are not those of the declared types."
_CHANGE = "Change the tables with the command: flask contentapi migrate."
_RESTART = "They were changed after this process had been started; restart it."
