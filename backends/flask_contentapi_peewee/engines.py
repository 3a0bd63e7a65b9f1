"""The differences between databases."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from operator import add
from pathlib import Path
from typing import Any, ClassVar

import orjson
import peewee
from peewee import SQL

from flask_contentapi.search import TITLE_WEIGHT
from flask_contentapi_peewee.columns import Clause, StoredField, balanced
from flask_contentapi_peewee.connections import Pool, atomic, reason, refuses_writing
from flask_contentapi_peewee.words import server_tokens

#: How many characters of a text are indexed if an index cannot hold all.
INDEXED = 190

#: An object's words: its id, the tokens of its title, and those of the rest, separated by spaces.
Words = tuple[int, str, str]


class Engine(ABC):
    """One kind of database.

    :param reading: separate connections for reading, if there are any.
    :cvar ordered_join: the join that keeps the order of the first table's rows.
    :cvar sql_types: the column type for each kind of value, for ``key`` (short ASCII text) and
        for ``path`` (ASCII text that can be indexed in full).
    """

    ordered_join: ClassVar[str] = peewee.JOIN.INNER
    sql_types: ClassVar[Mapping[str, str]]
    #: What updates the statistics of a table.
    analyzing: ClassVar[str] = "ANALYZE"
    #: The columns of tables of words: the id, and two with tokens.
    words_columns: ClassVar[tuple[str, str, str]] = ("id", "title", "rest")
    #: What is behind a token that is the beginning of another one.
    prefix: ClassVar[str] = "*"
    #: Whether words are no part of transactions: loaded ones may become searchable a moment after
    #: the rest, and searches within :meth:`snapshot` find what others have changed.
    words_are_apart: ClassVar[bool] = False
    #: The isolation in which all reads of a transaction are consistent, if there are several.
    isolation: ClassVar[Sequence[str]] = ("REPEATABLE READ",)

    def __init__(self, database: peewee.Database, reading: peewee.Database | None = None) -> None:
        self.database = database
        self.reading = reading or database

    @classmethod
    @abstractmethod
    def connect(cls, address: str, root: Path) -> Engine:
        """The database at an address.

        :param address: what follows the name of the backend and a colon.
        :param root: the folder that relative paths start from.
        :raises ConfigurationError: if the address cannot be used.
        """

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return "The database"

    def sentence(self, error: BaseException) -> str:
        """An error of the database as a sentence."""
        trouble = "can only be read" if refuses_writing(error) else "cannot be used"
        return f"{self.name} {trouble}: {reason(error)}."

    def require_there(self) -> None:  # noqa: B027 - most are
        """Makes sure that there may be a database to connect to.

        :raises ConfigurationError: if there is none, with the remedy.
        """

    @contextmanager
    def creation(self) -> Iterator[None]:
        """Makes the database itself where a program can, and removes it if what follows fails."""
        yield

    def require_suitable(self, database: peewee.Database) -> None:  # noqa: B027 - most are
        """Makes sure that content can be stored in the database.

        :raises ConfigurationError: if it cannot.
        """

    def close(self) -> None:
        """Closes all connections, except those of a database that the site opens itself."""
        for database in {self.database, self.reading}:
            if isinstance(database, Pool):
                database.close_all()

    def mark(self, question: str) -> object:
        """A mark that stays the same as long as the version read last is valid; None if only a
        query on this thread's connection can tell.

        :param question: the statement for the version.
        """
        if not isinstance(self.reading, Pool) or not self.reading.is_closed():
            # An open connection may have uncommitted changes.
            return None
        return self.reading.mark(question)

    @abstractmethod
    def among(self, column: Clause, values: SQL) -> Clause:
        """The condition that a column is one of some integers or texts."""

    def array(self, values: Iterable[int] | Iterable[str]) -> Any:
        """Integers or texts as one parameter of a statement."""
        return orjson.dumps(list(values)).decode()

    def indexed(self, field: Clause) -> Clause:
        """The expression that an index on a column contains."""
        return field

    def indexes(self, field: StoredField) -> Sequence[Sequence[Clause]]:
        """The keys of the indexes needed to filter and order by a column."""
        return [[self.indexed(field)]]

    def is_long(self, field: Clause) -> bool:
        """Whether a column may hold more than an index can."""
        return getattr(field, "field_type", "") == self.sql_types["text"]

    def unindexed(self, field: Clause) -> Clause:
        """A column for which the planner must not use an index, if it would choose wrongly."""
        return field

    def quoted(self, name: str) -> str:
        """The quoted name of a table or an index."""
        return str(self.database.get_sql_context().sql(peewee.Entity(name)).query()[0])

    def analyze(self, tables: Iterable[str], words: Iterable[str]) -> None:
        """Updates the planner's statistics of tables, after many changes.

        :param tables: the names of all tables, including tables of words.
        :param words: the names of the tables of words.
        """
        for table in tables:
            self.database.execute_sql(f"{self.analyzing} {self.quoted(table)}")

    def compare(self, field: Clause, operator: str, value: Clause) -> Clause:
        """The condition that a column is, or is below or above, a value, in a form that uses its
        index.

        :param operator: ``=``, ``<``, ``<=``, ``>`` or ``>=``.
        """
        return peewee.Expression(field, operator, value)

    def one_of(self, field: Clause, values: Sequence[Clause]) -> Clause:
        """The condition that a column has one of some values, in a form that uses its index."""
        return field.in_(values)

    def sort_keys(self, field: Clause, descending: bool) -> Sequence[Clause]:
        """The sort keys for a column: missing values first ascending, last descending."""
        return [field.desc() if descending else field.asc()]

    def drop_table(self, table: str) -> None:
        """Drops a table, if it exists."""
        self.database.execute_sql(f"DROP TABLE IF EXISTS {self.quoted(table)}")

    def insert(self, table: str, columns: Iterable[str], rows: Sequence[Sequence[Any]]) -> None:
        """Inserts many rows into a table."""
        names = [self.quoted(name) for name in columns]
        values = ", ".join([self.database.param] * len(names))
        sql = f"INSERT INTO {self.quoted(table)} ({', '.join(names)}) VALUES ({values})"  # noqa: S608
        with peewee.__exception_wrapper__:  # type: ignore[attr-defined]
            self.database.cursor().executemany(sql, rows)

    @contextmanager
    def filling(self, models: Iterable[type[peewee.Model]]) -> Iterator[None]:
        """A context, within a transaction, in which empty tables get all their rows."""
        yield

    def transaction(self) -> AbstractContextManager[Any]:
        """A transaction for writing; other writers wait for its end."""
        return atomic(self.database)

    def test_writing(self, table: str) -> None:
        """Changes nothing in a table, which fails if the database can only be read.

        It does not wait for writers.
        """
        self.database.execute_sql(f"DELETE FROM {self.quoted(table)} WHERE 1 = 0")  # noqa: S608

    def schema_lock(self) -> AbstractContextManager[Any]:
        """A context for creating or changing tables; others that do so wait for its end.

        It is a transaction if DDL is transactional.
        """
        return self.transaction()

    def snapshot(self, database: peewee.Database) -> AbstractContextManager[None]:
        """A context in which reads are consistent, even if others write."""
        return atomic(database, *self.isolation)

    def all(
        self, database: peewee.Database, text: str, parameters: Sequence[Any]
    ) -> list[tuple[Any, ...]]:
        """All rows of a statement that only reads."""
        found: list[tuple[Any, ...]] = database.execute_sql(text, parameters).fetchall()
        return found

    def rows(
        self, database: peewee.Database, text: str, parameters: Sequence[Any]
    ) -> Iterator[tuple[Any, ...]]:
        """The rows of a statement, few of which are in memory at a time."""
        yield from database.execute_sql(text, parameters)

    # Full text. Words are tokens, which the engine indexes unchanged.

    @staticmethod
    def tokens(words: str) -> str:
        """The tokens of some words, both separated by spaces; those of the last word are the last.

        The last token of a word belongs to no longer word, and is the beginning of a token of each
        that the word is the beginning of.
        """
        return server_tokens(words)

    @abstractmethod
    def create_words(self, table: str) -> None:
        """Creates the table of words of an endpoint's objects, by id."""

    def clear_words(self, table: str) -> None:
        """Empties the table of words."""
        peewee.Table(table).bind(self.database).delete().execute()

    def delete_words(
        self, table: str, ids: Sequence[int], words: Callable[[], Iterable[Words]]
    ) -> None:
        """Removes objects from the table of words.

        :param words: gives the words that these objects have in it.
        """
        known = peewee.Table(table).bind(self.database)
        known.delete().where(self.words_id(known).in_(ids)).execute()

    def put_words(self, table: str, rows: Iterable[Words]) -> None:
        """Adds the words of objects that have none in the table."""
        self.insert(table, self.words_columns, [*rows])

    def words_id(self, table: peewee.Table) -> Clause:
        """The column with the id of the object whose words a row has."""
        return getattr(table.c, self.words_columns[0])

    @abstractmethod
    def matches(self, table: peewee.Table, query: Clause) -> Clause:
        """The condition that an object has the words of a query."""

    def rank(self, table: peewee.Table, words: Sequence[SQL], every: bool) -> Clause:
        """The sort key that puts the best matches first, with the weights of
        :func:`flask_contentapi.search.words_of`.

        :param every: whether all matches have every word.
        """
        counted = [TITLE_WEIGHT * self.has(table, word, in_title=True) for word in words]
        if not every:
            counted += [self.has(table, word) for word in words]
        return balanced(add, counted).desc()

    @abstractmethod
    def has(self, table: peewee.Table, word: SQL, *, in_title: bool = False) -> Clause:
        """Whether a match has a word, as 0 or 1."""

    #: What stands between tokens of which every one has to be there, or any.
    joining: ClassVar[tuple[str, str]] = (" AND ", " OR ")

    def query(self, searches: Iterable[tuple[Sequence[str], bool]]) -> str:
        """The parameter of a search for objects that meet several conditions.

        :param searches: for each condition some tokens, and whether an object must have every one
            of them, or any.
        """
        every_one, any_one = self.joining
        parts = [(every_one if every else any_one).join(tokens) for tokens, every in searches]
        return every_one.join(f"({part})" for part in parts)
