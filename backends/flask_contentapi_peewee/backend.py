"""The backend that keeps content in a database, by peewee."""

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
    ConnectionLost,
    Lent,
    complaint,
    connected,
    file_of,
    is_gone,
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
    :param models: models of the site's own in it whose rows are served as well.
    """

    engine_class: ClassVar[type[Engine]]

    def __init__(self, engine: Engine, models: Sequence[MappedModel] = ()) -> None:
        self.engine = engine
        self._models = tuple(models)
        self._registry: Registry | None = None
        self._tables: Tables | None = None
        self._statements: Statements | None = None
        self._structure: Structure | None = None
        self._ready = False
        self._here = threading.local()

    @classmethod
    def from_address(cls, address: str, root: Path) -> PeeweeBackend:
        backend = cls(cls.engine_class.connect(address, root))
        # Drivers complain of connections that are forgotten while they are open.
        weakref.finalize(backend, backend.engine.close)
        return backend

    @staticmethod
    def on(database: peewee.Database, models: Sequence[MappedModel] = ()) -> PeeweeBackend:
        """The backend in a database that the site has open itself, or opens.

        A connection that is open is used, and left open.

        :param database: the database.
        :param models: models of the site's own in it whose rows are served as well.
        :raises ConfigurationError: if it is of no known kind.
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
        why = self.not_ready() if logs else ""
        if why:
            _log.error("%s", why)

    def close(self) -> None:
        self.engine.close()

    @property
    def tables(self) -> Tables:
        """The tables."""
        return _opened(self._tables)

    @property
    def statements(self) -> Statements:
        """The statements."""
        return _opened(self._statements)

    @property
    def registry(self) -> Registry:
        """The declared types."""
        return _opened(self._registry)

    # Set-up.

    def not_ready(self) -> str:
        """Why the database cannot be served from, in sentences; "" if it can."""
        try:
            return self._not_ready(self.engine.reading)
        except DATABASE_ERRORS as error:
            return complaint(error, self._name)

    def _not_ready(self, database: peewee.Database) -> str:
        """The same of the connections for reading or for writing; the database answers to them."""
        for _ in range(2):
            with suppress(ConnectionLost):
                return self._not_made(database) or self._unfit(database)
        raise peewee.OperationalError("connections break as soon as they are used")

    def _not_made(self, database: peewee.Database) -> str:
        """Why there are no tables that this version knows."""
        missing = self._missing()
        if missing:
            return missing
        with connected(database):
            schema = self._read_schema(database)
        return f"The tables are not there. {_MAKE}" if schema is None else _unknown(schema)

    @property
    def _name(self) -> str:
        """What the database is called."""
        return "The database"

    def _missing(self) -> str:
        """Why there is nothing to connect to, and what helps, in sentences; "" if there may be."""
        return ""

    def _unfit(self, database: peewee.Database) -> str:
        """Why the tables are not those of the declared types."""
        with connected(database):
            steps = list(self._migration(database).steps())
            if steps:
                before, now = (
                    stored_layout(self.tables, database).places,
                    layout_of(self.tables).places,
                )
                return " ".join([_UNFIT, *steps, _CHANGE, *_by_module_alone(before, now)])
            return self.statements.tables.missing(database)

    def create(self) -> None:
        """Makes the tables, if there are none; the file as well, where that is the database.

        :raises ConfigurationError: if they cannot be made, if nothing answers where the database
            should be, or if the tables there are of another version.
        :raises BackendUnavailable: if the database ceases to answer meanwhile.
        """
        self.engine.create()
        database = self.engine.database
        try:
            with self._answering(), connected(database):
                schema = self._read_schema(database)
                if schema is None:
                    self._create_tables()
        except DATABASE_ERRORS as error:
            raise ConfigurationError(complaint(error, self._name)) from error
        if schema is not None and _unknown(schema):
            raise ConfigurationError(_unknown(schema))

    def _create_tables(self) -> None:
        """Makes all tables, unless somebody else does so just now."""
        with self.engine.alone(), self.engine.transaction():
            if self._read_schema(self.engine.database) is None:
                self._make_tables()

    def _make_tables(self) -> None:
        """Makes all tables; the state is the first of them, and is filled when all are there."""
        # Where tables are not part of a transaction there may be some from an attempt that was
        # interrupted, with nothing in them.
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
        """Changes the tables so that they are those of the declared types.

        :returns: what is done, each in a sentence.
        :raises ContentError: if something that is kept cannot fit; nothing is changed then.
        :raises ConfigurationError: if there are no tables, or those of another version.
        :raises BackendUnavailable: if the database does not answer, or others write for too long.
        :raises RuntimeError: if :meth:`dump` is under way in this thread.
        """
        database = self.engine.database
        with self._answering():
            why = self._not_made(database)
            if why:
                raise ConfigurationError(why)
            with connected(database):
                steps = list(self._migration(database).steps())
                return self._migrate() if steps else []

    def _migrate(self) -> list[str]:
        """Changes the tables, unless somebody else has done so meanwhile."""
        with self.engine.alone():
            migration = self._migration(self.engine.database)
            steps = list(migration.steps())
            if steps:
                self._run(migration)
        return steps

    def _run(self, migration: Migration) -> None:
        with self._transaction(migrating=True):
            migration.change_tables()
            self.engine.begin_again()
            # Others that write wait from here on, where the tables have ended the transaction.
            self._write_state("stamp", secrets.token_hex(8))
            migration.move_objects()
            reader = self._writing_reader()
            for label in migration.reindexed:
                reindex(reader, *ids_of(reader, label))
            # Where this is no transaction, what has changed was seen under the first new stamp.
            self._write_state("stamp", secrets.token_hex(8))
            self._write_state("layout", orjson.dumps(migration.layout.write()).decode())
        self._ready = False

    def _migration(self, database: peewee.Database) -> Migration:
        """What is to be done so that the tables are those of the declared types."""
        return Migration(self.tables, self.registry, stored_layout(self.tables, database), database)

    def _write_state(self, key: str, value: str) -> None:
        state = self.tables.state
        update = state.model.update({state.fields["value"]: value})
        update.where(state.fields["key"] == key).execute()

    def _read_schema(self, database: peewee.Database) -> str | None:
        """The version of the tables' layout; None if they are not there."""
        if not database.table_exists(self.tables.state.model._meta.table_name):
            return None
        return self.tables.read_state("schema", database)

    # Reading.

    @contextmanager
    def reader(self) -> Iterator[DatabaseReader]:
        database = self.engine.reading
        self._require_ready()
        try:
            with Lent(database):
                reader = self._present(database)
                try:
                    yield reader
                except (*DATABASE_ERRORS, ContentChanged):
                    raise
                except Exception:
                    # Why something has failed has to be true as well.
                    reader.settle()
                    raise
                reader.settle()
        except ContentChanged:
            self._structure = None
            raise
        except ConnectionLost as error:
            raise ContentChanged from error
        except DATABASE_ERRORS as error:
            self._ready = False
            why = complaint(error, self._name) if is_gone(error) else self.not_ready()
            if not why:
                raise
            raise BackendUnavailable(why) from error

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """Says what is wrong with the database where something is."""
        try:
            yield
        except ConnectionLost as error:
            raise BackendUnavailable(f"The database is gone: {error}.") from error
        except DATABASE_ERRORS as error:
            if not is_gone(error):
                raise
            raise BackendUnavailable(complaint(error, self._name)) from error

    def _require_ready(self) -> None:
        if not self._ready:
            why = self.not_ready()
            if why:
                raise BackendUnavailable(why)
            self._ready = True

    def _present(self, database: peewee.Database) -> DatabaseReader:
        """Reads the present version, of whose structure as much is there as is known."""
        # What a block has changed so far and what it will have changed are one version.
        within = getattr(self._here, "writing", False)
        versioned = self.statements.tables.versioned and not within
        structure = self._structure if versioned else None
        if structure is None:
            structure = self._read_structure(database)
        if versioned:
            self._structure = structure
        return DatabaseReader(database, self.statements, structure, versioned)

    def _read_structure(self, database: peewee.Database) -> Structure:
        tables = self.statements.tables
        return Structure(tables, database, tables.read_version(database))

    # Writing.

    @contextmanager
    def write(self) -> Iterator[Writer]:
        """Changes the content in one transaction; others that write wait for its end.

        An error that leaves the ``with`` block leaves the content as it was. Who asks within the
        block sees what it has changed so far, and that answer has no tag.

        :raises ConfigurationError: if the tables are not there, or not those of the declared types.
        :raises BackendUnavailable: if the database does not answer, or others write for too long.
        :raises RuntimeError: if :meth:`dump` is under way in this thread.
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
        """Reads what a transaction has changed."""
        database = self.engine.database
        return DatabaseReader(database, self.statements, self._read_structure(database))

    def reload(self) -> None:
        """Has the rows of the site's own models searched and told of as they are now.

        :raises ConfigurationError: if the tables are not there, or not those of the declared types.
        :raises BackendUnavailable: if the database does not answer, or others write for too long.
        :raises RuntimeError: if :meth:`dump` is under way in this thread.
        """
        if self._models:
            with self.write() as content:
                content.refresh()
            self._analyze()

    def load(self, content: Mapping[str, Iterable[Any]]) -> None:
        """Replaces the whole content in one transaction; others that write wait for its end.

        :param content: the records of each section, which can be gone through once.
        :raises ContentError: with every problem that the records have.
        :raises ConfigurationError: if the tables are not there, or not those of the declared types.
        :raises BackendUnavailable: if the database does not answer, or others write for too long.
        :raises RuntimeError: if :meth:`dump` is under way in this thread.
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
                # A new version, as what was not found in this one may have been kept.
                pass
        content_changed.send(self, tags=frozenset([EVERYTHING]))

    def _clear_unused(self) -> None:
        """Takes everything out of the tables that no type declares any longer."""
        migration = self._migration(self.engine.database)
        for table in migration.unused:
            peewee.Table(table).bind(self.engine.database).delete().execute()
        for table in migration.unused_words:
            self.engine.clear_words(table)

    def _analyze(self) -> None:
        """Lets the database see how much it holds now, so that it finds the quickest ways."""
        with self._answering(), connected(self.engine.database):
            self.engine.analyze(self.tables.names, self.tables.words)

    @contextmanager
    def _transaction(self, *, migrating: bool = False) -> Iterator[None]:
        """A transaction in which the content becomes another version."""
        if getattr(self._here, "reading", False):
            raise RuntimeError(
                "What is being dumped is not changed meanwhile; take all of it first."
            )
        database = self.engine.database
        with self._answering():
            why = "" if migrating else self._not_ready(database)
            if why:
                raise ConfigurationError(why)
            with connected(database), self.engine.transaction():
                # Whoever writes as well waits here, so that one builds on what the other did.
                self._write_state("stamp", secrets.token_hex(8))
                within, self._here.writing = getattr(self._here, "writing", False), True
                try:
                    yield
                finally:
                    self._here.writing = within
        self._structure = None

    def dump(self) -> Iterator[tuple[str, Any]]:
        """The whole content as it is when the first record is asked for.

        :raises BackendUnavailable: if the tables are not those of the declared types, if the
            database does not answer, or if rows of the site's own models change meanwhile.
        :raises RuntimeError: if the content is being changed in this thread.
        """
        with self._snapshot() as reader:
            yield from dump(reader)

    @contextmanager
    def _snapshot(self) -> Iterator[DatabaseReader]:
        """Reads the content as it is now, for as long as it takes."""
        database = self.engine.reading
        if database.in_transaction():
            raise RuntimeError("Content is not dumped while it is changed; end the change first.")
        self._require_ready()
        try:
            with self._answering(), connected(database), self.engine.snapshot():
                self._here.reading = True
                reader = DatabaseReader(database, self.statements, self._read_structure(database))
                yield reader
                reader.settle()
        except ContentChanged as error:
            raise BackendUnavailable("The content changes while it is read.") from error
        finally:
            self._here.reading = False

    def check(self) -> Iterator[Problem]:
        """What is wrong with the content, or only why the database cannot be served from.

        :raises BackendUnavailable: as :meth:`dump`.
        :raises RuntimeError: if the content is being changed in this thread.
        """
        why = self.not_ready()
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
        if not self.not_ready():
            with self._snapshot():
                yield from self._migration(self.engine.reading).left_over()


class SQLiteBackend(PeeweeBackend):
    """The backend for SQLite; its address is as ``sqlite:///site.db``."""

    engine_class = SQLite

    @property
    def _name(self) -> str:
        file = file_of(self.engine.database)
        return "The database" if file is None else f"The database file {str(file)!r}"

    def create(self) -> None:
        if no_folder := self._no_folder():
            raise ConfigurationError(no_folder)
        super().create()

    def _missing(self) -> str:
        file = file_of(self.engine.database)
        if file is None or file.exists():
            return ""
        return self._no_folder() or f"There is no database file {str(file)!r}. {_PUT}"

    def _no_folder(self) -> str:
        file = file_of(self.engine.database)
        if file is None or file.parent.is_dir():
            return ""
        return f"There is no folder {str(file.parent)!r} for {file.name}; create it."


class PostgreSQLBackend(PeeweeBackend):
    """The backend for PostgreSQL; its address is as ``postgresql://user@host/name``."""

    engine_class = PostgreSQL


class MariaDBBackend(PeeweeBackend):
    """The backend for MariaDB and MySQL; its address is as ``mariadb://user@host/name``."""

    engine_class = MariaDB


#: What serves from which kind of database.
_KINDS: Sequence[tuple[type[peewee.Database], type[PeeweeBackend]]] = (
    (peewee.SqliteDatabase, SQLiteBackend),
    (peewee.PostgresqlDatabase, PostgreSQLBackend),
    (peewee.MySQLDatabase, MariaDBBackend),
)


def _opened(part: Part | None) -> Part:
    """A part that there is as soon as the backend is open."""
    if part is None:
        raise RuntimeError("The backend is not open yet; ContentAPI.init_app opens it.")
    return part


def _unknown(schema: str) -> str:
    """Why tables with a layout of some version cannot be used; "" if they can."""
    if schema == SCHEMA:
        return ""
    return (
        f"The tables have the layout {schema}, but this version of flask_contentapi knows "
        f"{SCHEMA}. Update flask_contentapi, or load the content into an empty database."
    )


def _by_module_alone(before: Collection[str], now: Collection[str]) -> Iterator[str]:
    """What helps where a type may be another one only because its module has another name."""
    added = {label.rpartition(".")[2] for label in now if label not in before}
    for label in before:
        app_label, _, name = label.rpartition(".")
        if name in added and label not in now:
            yield f"If only the module of {name} is another, set app_label = {app_label!r} instead."


_PUT = "Put it there, or make an empty one with the command: flask contentapi init-db."
_MAKE = "Make what is missing with the command: flask contentapi init-db."
_UNFIT = "The tables are not those of the declared types."
_CHANGE = "Change the tables with the command: flask contentapi migrate."
