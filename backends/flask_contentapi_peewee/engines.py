"""What is different from one database to the next."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, ClassVar, cast

import orjson
import peewee
from peewee import SQL, Value, fn

from flask_contentapi import kinds
from flask_contentapi.errors import ConfigurationError
from flask_contentapi.search import TITLE_WEIGHT
from flask_contentapi_peewee import addresses
from flask_contentapi_peewee.clauses import sum_of
from flask_contentapi_peewee.columns import Clause, StoredField, md5
from flask_contentapi_peewee.connections import Pool, file_of
from flask_contentapi_peewee.conversions import (
    Conversion,
    MariaDBConversion,
    PostgreSQLConversion,
    SQLiteConversion,
)
from flask_contentapi_peewee.names import index_name

__all__ = ["Engine", "MariaDB", "PostgreSQL", "SQLite", "Words"]

#: How long somebody who writes waits for others that do, in s, where that is up to us.
WAIT_TO_WRITE = 60
#: The same of who changes the tables, in s, where one has to say it.
WAIT_FOR_TABLES = 86_400
#: How many characters of a text an index has where it cannot have all.
INDEXED = 190

#: An object's words: its id, the tokens of its title, and those of the rest.
Words = tuple[int, Sequence[str], Sequence[str]]


class Engine(ABC):
    """One kind of database.

    :param database: its connections.
    :param reading: the connections for what only reads, where they are others.
    :cvar ordered_join: joins a second table, for each row of the first in the first one's order.
    :cvar sql_types: the column type for each kind of value, for ``key`` (short ASCII text) and
        for ``path`` (ASCII text with an index on all of it).
    """

    ordered_join: ClassVar[str] = peewee.JOIN.INNER
    sql_types: ClassVar[Mapping[str, str]]
    conversion_class: ClassVar[type[Conversion]]

    def __init__(self, database: peewee.Database, reading: peewee.Database | None = None) -> None:
        self.database = database
        self.reading = reading or database
        self.conversion = self.conversion_class(self.sql_types)

    @classmethod
    @abstractmethod
    def connect(cls, address: str, root: Path) -> Engine:
        """The database at an address.

        :param address: what follows the name of the backend and a colon.
        :param root: the folder that relative paths start at.
        :raises ConfigurationError: if the address cannot be used.
        """

    def create(self) -> None:  # noqa: B027 - most are made by the people who run the server
        """Makes the database itself, if it can be made here."""

    def close(self) -> None:
        """Closes all connections but those of a database that is the site's own."""
        for database in {self.database, self.reading}:
            if isinstance(database, Pool):
                database.close_all()

    def mark(self, question: str, parameters: Sequence[Any]) -> object:
        """What is the same as long as what was read last is still good; None if asking for the
        version by a connection of this thread's is the only way to know.

        :param question: the statement for the version.
        :param parameters: its parameters.
        """
        if not isinstance(self.reading, Pool) or not self.reading.is_closed():
            # A connection that is open may have changes that nobody else sees yet.
            return None
        return self.reading.mark(question, parameters)

    def all(self, database: peewee.Database, ask: Callable[[], list[Any]]) -> list[Any]:
        """All rows that a query gives.

        :param database: its connections.
        :param ask: asks for them.
        """
        return ask()

    def as_integer(self, value: Clause) -> Clause:
        """A text as the number that it is."""
        return value.cast("INTEGER")

    def as_text(self, value: Clause) -> Clause:
        """A number as text."""
        return value.cast("TEXT")

    @abstractmethod
    def among(self, column: Clause, values: SQL) -> Clause:
        """Whether a column is one of some integers.

        :param values: the place of a parameter made by :meth:`integers`.
        """

    def integers(self, values: Iterable[int]) -> Any:
        """Integers as one parameter of a statement."""
        return orjson.dumps(list(values)).decode()

    def random(self) -> Clause:
        """A random number for each row."""
        return fn.RANDOM()

    def indexed(self, field: Clause) -> Clause:
        """What an index has of a column."""
        return field

    def indexes(self, field: StoredField) -> Sequence[Sequence[Clause]]:
        """The keys of each index that is needed to filter and order by a column."""
        return [[self.indexed(field)]]

    def is_long(self, field: Clause) -> bool:
        """Whether a column may hold more than an index takes."""
        return getattr(field, "field_type", "") == self.sql_types["text"]

    def unindexed(self, field: Clause) -> Clause:
        """A column that no index shall be looked for, where the planner cannot know better."""
        return field

    def quoted(self, name: str) -> str:
        """The name of a table or an index as it stands in a statement."""
        return str(self.database.get_sql_context().sql(peewee.Entity(name)).query()[0])

    def analyze(self, tables: Iterable[str], words: Iterable[str]) -> None:
        """Lets the planner know what tables are like, after much has changed.

        :param tables: the names of tables, those of words among them.
        :param words: the names of those of words.
        """
        for statement in self._analyzing([self.quoted(table) for table in tables]):
            self.database.execute_sql(statement)

    def _analyzing(self, tables: Sequence[str]) -> Iterable[str]:
        """The statements for it.

        :param tables: the names of tables as they stand in a statement.
        """
        return [f"ANALYZE {', '.join(tables)}"]

    def equals(self, field: Clause, value: Clause) -> Clause:
        """Whether a column has a value, so that its index helps."""
        return field == value

    def one_of(self, field: Clause, values: Sequence[Clause]) -> Clause:
        """Whether a column has one of some values, likewise."""
        return field.in_(values)

    def sort_keys(self, field: Clause, descending: bool) -> Sequence[Clause]:
        """What to order by for a column: missing values first ascending, last descending."""
        return [field.desc() if descending else field.asc()]

    @abstractmethod
    def array(self, fields: Sequence[StoredField]) -> Clause:
        """Columns of a row as a JSON array; where numbers would lose digits, they are texts."""

    def drop_table(self, table: str) -> None:
        """Takes a table away, if it is there."""
        self.database.execute_sql(f"DROP TABLE IF EXISTS {self.quoted(table)}")

    def insert(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Inserts many rows by one statement."""
        self.database.cursor().executemany(sql, rows)

    def transaction(self) -> AbstractContextManager[Any]:
        """A transaction for writing; others that write wait for its end."""
        return self.database.atomic()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """A time in which tables are made or changed; others that do so wait for its end.

        Where tables are part of transactions it is one.
        """
        with self.transaction():
            yield

    def begin_again(self) -> None:  # noqa: B027 - tables are part of most transactions
        """Begins a transaction anew, where a change of tables has ended it."""

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """A time in which what is read does not change, whoever writes."""
        with self.reading.atomic():
            yield

    # Full text. Words are tokens of ASCII letters and digits, which every engine takes as they
    # are; they are neither so short nor so common that one would leave them out.

    @abstractmethod
    def create_words(self, table: str) -> None:
        """Makes the table of words of an endpoint's objects, by id."""

    def clear_words(self, table: str) -> None:
        """Takes everything out of the table of words."""
        peewee.Table(table).bind(self.database).delete().execute()

    def delete_words(self, table: str, ids: Sequence[int]) -> None:
        """Takes objects out of the table of words."""
        words = peewee.Table(table).bind(self.database)
        words.delete().where(self.words_id(words).in_(ids)).execute()

    @abstractmethod
    def put_words(self, table: str, rows: Iterable[Words]) -> None:
        """Adds the words of objects that have none in the table."""

    @abstractmethod
    def words_id(self, table: peewee.Table) -> Clause:
        """The id of the object that a row of the table is about."""

    @abstractmethod
    def matches(self, table: peewee.Table, query: Clause) -> Clause:
        """Whether an object has the words of a query.

        :param query: the place of a parameter made by :meth:`query`.
        """

    def rank(self, table: peewee.Table, words: Sequence[SQL], every: bool) -> Clause:
        """What to order by so that the best come first, by what
        :func:`flask_contentapi.search.words_of` counts.

        :param words: the places of the single tokens.
        :param every: whether all that is found has every one.
        """
        counted = [TITLE_WEIGHT * self.has(table, word, in_title=True) for word in words]
        if not every:
            counted += [self.has(table, word) for word in words]
        return sum_of(counted).desc()

    @abstractmethod
    def has(self, table: peewee.Table, word: SQL, *, in_title: bool = False) -> Clause:
        """Whether an object that is found has a word, as 0 or 1.

        :param word: the place of its token.
        """

    @abstractmethod
    def query(self, tokens: Sequence[str], every: bool) -> str:
        """A query for objects with every token, or one of them, as a parameter."""


class SQLite(Engine):
    """SQLite, with FTS5; its file is written ahead (WAL), so that readers never wait."""

    ordered_join = peewee.JOIN.CROSS
    conversion_class = SQLiteConversion
    sql_types = {
        **dict.fromkeys(("text", "key", "path", "date", "time", "datetime"), "TEXT"),
        **dict.fromkeys(("json", "blocks", "decimal"), "TEXT"),
        **dict.fromkeys(("integer", "boolean", "relation"), "INTEGER"),
        "float": "REAL",
    }

    def __init__(self, database: peewee.Database) -> None:
        super().__init__(database)
        known = cast(peewee.SqliteDatabase, database)
        known.register_function(md5, "md5", 1)
        cast(SQLiteConversion, self.conversion).register(known)

    @classmethod
    def connect(cls, address: str, root: Path) -> SQLite:
        return cls(addresses.sqlite(address, root))

    def create(self) -> None:
        file = file_of(self.database)
        if file is None:
            return
        try:
            file.touch()
        except OSError as error:
            raise ConfigurationError(
                f"The database file {file} cannot be made: {error.strerror}."
            ) from error

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._wait_for_locks(WAIT_TO_WRITE)
        try:
            # A transaction that begins with reading could not go on to write after another has.
            with self.database.atomic("IMMEDIATE"):
                yield
        finally:
            self._wait_for_locks(cast(peewee.SqliteDatabase, self.database).timeout)

    def _wait_for_locks(self, seconds: float) -> None:
        """How long the present connection waits for others."""
        self.database.execute_sql(f"PRAGMA busy_timeout = {int(seconds * 1000)}")

    def all(self, database: peewee.Database, ask: Callable[[], list[Any]]) -> list[Any]:
        try:
            return ask()
        except (peewee.OperationalError, sqlite3.OperationalError) as error:
            if _NO_UTF8 not in str(error):
                raise
        connection = database.connection()
        usual = connection.text_factory
        connection.text_factory = _escaped
        try:
            return ask()
        finally:
            connection.text_factory = usual

    def among(self, column: Clause, values: SQL) -> Clause:
        return column.in_(peewee.Select(columns=[SQL("value")]).from_(fn.json_each(values)))

    def unindexed(self, field: Clause) -> Clause:
        # The planner takes every range for narrow.
        return peewee.NodeList((SQL("+"), field), glue="")

    def _analyzing(self, tables: Sequence[str]) -> Iterable[str]:
        return [f"ANALYZE {table}" for table in tables]

    def clear_words(self, table: str) -> None:
        # Taking the rows out one by one would take as long as putting them in.
        self.drop_table(table)
        self.create_words(table)

    def array(self, fields: Sequence[StoredField]) -> Clause:
        # JSON itself has no more than 15 digits of a number.
        floats = {field for field in fields if isinstance(field.kind, kinds.Float)}
        return fn.json_array(*(_digits(f) if f in floats else _plain(f) for f in fields))

    def create_words(self, table: str) -> None:
        self.database.execute_sql(
            f"CREATE VIRTUAL TABLE {self.quoted(table)} USING fts5(title, rest, tokenize=ascii)"
        )

    def put_words(self, table: str, rows: Iterable[Words]) -> None:
        texts = ((identity, " ".join(title), " ".join(rest)) for identity, title, rest in rows)
        sql = f"INSERT INTO {self.quoted(table)} (rowid, title, rest) VALUES (?, ?, ?)"  # noqa: S608
        self.database.cursor().executemany(sql, texts)

    def words_id(self, table: peewee.Table) -> Clause:
        return table.c.rowid

    def matches(self, table: peewee.Table, query: Clause) -> Clause:
        return peewee.Expression(self._whole(table), "MATCH", query)

    def has(self, table: peewee.Table, word: SQL, *, in_title: bool = False) -> Clause:
        # What bm25 gives depends on other objects, hidden ones among them.
        other = peewee.Table(table.__name__)
        wanted = Value("title:").concat(word) if in_title else word
        found = other.select(other.c.rowid).where(self.matches(other, wanted))
        return table.c.rowid.in_(found)

    @staticmethod
    def _whole(table: peewee.Table) -> Clause:
        """The hidden column that stands for all columns."""
        return getattr(table.c, table.__name__)

    def query(self, tokens: Sequence[str], every: bool) -> str:
        return (" AND " if every else " OR ").join(f'"{token}"' for token in tokens)


#: What SQLite's driver says of text that is not UTF-8.
_NO_UTF8 = "Could not decode to UTF-8"


def _escaped(text: bytes) -> str:
    """Text in which half surrogate pairs stand for what is not UTF-8."""
    return text.decode(errors="surrogateescape")


def _plain(field: StoredField) -> Clause:
    """A text or an integer; where somebody else's column has what JSON cannot have, a fraction,
    which is neither."""
    fits = fn.typeof(field).in_(["integer", "text", "null"])
    return peewee.Case(None, [(fits, field)], 0.5)


def _digits(field: StoredField) -> Clause:
    """A number as text that has all its digits."""
    return peewee.Case(None, [(field.is_null(False), fn.printf("%!.20g", field))])


class PostgreSQL(Engine):
    """PostgreSQL; with several hosts in the address, standbys are read from."""

    conversion_class = PostgreSQLConversion
    sql_types = {
        **dict.fromkeys(("text", "json", "blocks"), 'TEXT COLLATE "C"'),
        **dict.fromkeys(("key", "path", "date", "time", "datetime"), 'VARCHAR COLLATE "C"'),
        **dict.fromkeys(("integer", "relation"), "BIGINT"),
        "boolean": "BOOLEAN",
        "decimal": "NUMERIC",
        "float": "DOUBLE PRECISION",
    }

    @classmethod
    def connect(cls, address: str, root: Path) -> PostgreSQL:
        return cls(*addresses.postgresql(address))

    @contextmanager
    def alone(self) -> Iterator[None]:
        with super().alone():
            self.database.execute_sql("SELECT pg_advisory_xact_lock(hashtext('contentapi'))")
            yield

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        with super().snapshot():
            self.reading.execute_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            yield

    def among(self, column: Clause, values: SQL) -> Clause:
        return peewee.Expression(column, "=", fn.ANY(values))

    def analyze(self, tables: Iterable[str], words: Iterable[str]) -> None:
        super().analyze(tables, words)
        # What an index has not yet taken in is searched row by row.
        for table in words:
            clean = "SELECT gin_clean_pending_list(CAST(%s AS REGCLASS))"
            self.database.execute_sql(clean, (self._words_index(table),))

    def _words_index(self, table: str) -> str:
        """The name of the index of a table of words as it stands in a statement."""
        return self.quoted(index_name(table, "words"))

    def integers(self, values: Iterable[int]) -> Any:
        return f"{{{','.join(map(str, values))}}}"

    def indexed(self, field: Clause) -> Clause:
        # Longer values do not fit the pages of an index.
        return fn.LEFT(field, SQL(str(INDEXED))) if self.is_long(field) else field

    def indexes(self, field: StoredField) -> Sequence[Sequence[Clause]]:
        return [[self.indexed(field).asc(nulls="FIRST")]]

    def equals(self, field: Clause, value: Clause) -> Clause:
        if not self.is_long(field):
            return field == value
        start = fn.LEFT(value, SQL(str(INDEXED)))
        return (self.indexed(field) == start) & (field == value)

    def one_of(self, field: Clause, values: Sequence[Clause]) -> Clause:
        if not self.is_long(field):
            return field.in_(values)
        starts = [fn.LEFT(value, SQL(str(INDEXED))) for value in values]
        return self.indexed(field).in_(starts) & field.in_(values)

    def sort_keys(self, field: Clause, descending: bool) -> Sequence[Clause]:
        keys = [self.indexed(field), field] if self.is_long(field) else [field]
        if getattr(field, "primary_key", False):
            return [field.desc() if descending else field.asc()]
        if descending:
            return [key.desc(nulls="LAST") for key in keys]
        return [key.asc(nulls="FIRST") for key in keys]

    def array(self, fields: Sequence[StoredField]) -> Clause:
        decimals = {field for field in fields if isinstance(field.kind, kinds.Decimal)}
        entries = (f.cast("text") if f in decimals else f for f in fields)
        return fn.json_build_array(*entries).cast("text")

    def create_words(self, table: str) -> None:
        name, index = self.quoted(table), self._words_index(table)
        self.database.execute_sql(
            f"CREATE TABLE {name} (id BIGINT PRIMARY KEY, words TSVECTOR NOT NULL)"
        )
        self.database.execute_sql(f"CREATE INDEX {index} ON {name} USING GIN (words)")

    def put_words(self, table: str, rows: Iterable[Words]) -> None:
        sql = f"INSERT INTO {self.quoted(table)} (id, words) VALUES (%s, CAST(%s AS TSVECTOR))"  # noqa: S608
        vectors = ((identity, _vector(title, rest)) for identity, title, rest in rows)
        self.database.cursor().executemany(sql, vectors)

    def words_id(self, table: peewee.Table) -> Clause:
        return table.c.id

    def matches(self, table: peewee.Table, query: Clause) -> Clause:
        return peewee.Expression(table.c.words, "@@", query.cast("tsquery"))

    def has(self, table: peewee.Table, word: SQL, *, in_title: bool = False) -> Clause:
        wanted = word.cast("text").concat(":A" if in_title else "").cast("tsquery")
        return peewee.Expression(table.c.words, "@@", wanted).cast("integer")

    def query(self, tokens: Sequence[str], every: bool) -> str:
        return (" & " if every else " | ").join(f"'{token}'" for token in tokens)


class MariaDB(Engine):
    """MariaDB and MySQL; of several hosts in the address the first that answers is read from."""

    ordered_join = "STRAIGHT_JOIN"
    conversion_class = MariaDBConversion
    sql_types = {
        **dict.fromkeys(
            ("text", "json", "blocks"), "LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"
        ),
        **dict.fromkeys(
            ("key", "date", "time", "datetime"),
            "VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin",
        ),
        "path": "VARCHAR(1500) CHARACTER SET ascii COLLATE ascii_nopad_bin",
        **dict.fromkeys(("integer", "relation"), "BIGINT"),
        "boolean": "BOOL",
        "decimal": f"DECIMAL({2 * kinds.DECIMAL_DIGITS}, {kinds.DECIMAL_DIGITS})",
        "float": "DOUBLE",
    }

    @classmethod
    def connect(cls, address: str, root: Path) -> MariaDB:
        return cls(*addresses.mariadb(address))

    @contextmanager
    def alone(self) -> Iterator[None]:
        # The names of locks are those of the whole server.
        name = "CONCAT(DATABASE(), '.contentapi')"
        taken = self.database.execute_sql(f"SELECT GET_LOCK({name}, {WAIT_FOR_TABLES})")
        if taken.fetchall() != ((1,),):
            raise peewee.OperationalError("Others have changed the tables for too long")
        try:
            yield
        finally:
            self.database.execute_sql(f"SELECT RELEASE_LOCK({name})")

    def among(self, column: Clause, values: SQL) -> Clause:
        table = fn.JSON_TABLE(
            peewee.NodeList((values, SQL(", '$[*]' COLUMNS (value BIGINT PATH '$')")))
        )
        return column.in_(peewee.Select(columns=[SQL("j.value")]).from_(table.alias("j")))

    def as_integer(self, value: Clause) -> Clause:
        return value.cast("SIGNED")

    def as_text(self, value: Clause) -> Clause:
        return value.cast("CHAR")

    def begin_again(self) -> None:
        self.database.execute_sql("START TRANSACTION")

    def random(self) -> Clause:
        return fn.RAND()

    def indexed(self, field: Clause) -> Clause:
        if not self.is_long(field):
            return field
        return peewee.NodeList((peewee.Entity(field.column_name), SQL(f"({INDEXED})")), glue="")

    def indexes(self, field: StoredField) -> Sequence[Sequence[Clause]]:
        # An index is not read backwards where what follows is ascending.
        return [[self.indexed(field)], *([] if self.is_long(field) else [[field.desc()]])]

    def _analyzing(self, tables: Sequence[str]) -> Iterable[str]:
        return [f"ANALYZE TABLE {', '.join(tables)}"]

    def array(self, fields: Sequence[StoredField]) -> Clause:
        decimals = {field for field in fields if isinstance(field.kind, kinds.Decimal)}
        return fn.JSON_ARRAY(*(f.cast("CHAR") if f in decimals else f for f in fields))

    def create_words(self, table: str) -> None:
        text = "LONGTEXT CHARACTER SET ascii NOT NULL"
        self.database.execute_sql(
            f"CREATE TABLE {self.quoted(table)} (id BIGINT PRIMARY KEY, title {text}, rest {text}, "
            "FULLTEXT (title), FULLTEXT (title, rest))"
        )

    def put_words(self, table: str, rows: Iterable[Words]) -> None:
        texts = [(identity, " ".join(title), " ".join(rest)) for identity, title, rest in rows]
        sql = f"INSERT INTO {self.quoted(table)} (id, title, rest) VALUES (%s, %s, %s)"  # noqa: S608
        self.database.cursor().executemany(sql, texts)

    def words_id(self, table: peewee.Table) -> Clause:
        return table.c.id

    def matches(self, table: peewee.Table, query: Clause) -> Clause:
        return _against([table.c.title, table.c.rest], query)

    def has(self, table: peewee.Table, word: SQL, *, in_title: bool = False) -> Clause:
        columns = [table.c.title] if in_title else [table.c.title, table.c.rest]
        return _against(columns, word) > 0

    def query(self, tokens: Sequence[str], every: bool) -> str:
        return " ".join(f"+{token}" if every else token for token in tokens)


def _against(columns: Sequence[Clause], query: SQL) -> Clause:
    return peewee.NodeList((fn.MATCH(*columns), SQL("AGAINST ("), query, SQL("IN BOOLEAN MODE)")))


def _vector(title: Sequence[str], rest: Sequence[str]) -> str:
    """Tokens as PostgreSQL reads a text search vector: each with its places and weights."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for place, token in enumerate(title, 1):
        places[token].append(f"{place}A")
    for place, token in enumerate(rest, len(title) + 1):
        places[token].append(str(place))
    return " ".join(f"'{token}':{','.join(found)}" for token, found in places.items())
