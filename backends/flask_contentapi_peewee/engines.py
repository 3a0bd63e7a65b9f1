"""What is different from one database to the next."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, ClassVar

import orjson
import peewee
from peewee import SQL, fn

from flask_contentapi.search import TITLE_WEIGHT
from flask_contentapi_peewee.clauses import sum_of
from flask_contentapi_peewee.columns import Clause, StoredField
from flask_contentapi_peewee.connections import Pool
from flask_contentapi_peewee.conversions import Conversion

__all__ = ["INDEXED", "Engine", "Words"]

#: How many characters of a text an index has where it cannot have all.
INDEXED = 190

#: How many entries the databases make an array of.
MOST_ENTRIES = 90

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
    #: Whether words that are loaded may be found a moment later than the rest.
    words_come_late: ClassVar[bool] = False
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

    def array(self, fields: Sequence[StoredField]) -> Clause:
        """Columns of a row as a JSON array, or many as an array of such.

        Where numbers would lose digits, they are texts.
        """
        entries = [self.entry(field) for field in fields]
        starts = range(0, len(entries), MOST_ENTRIES)
        parts = [self.json_array(*entries[start : start + MOST_ENTRIES]) for start in starts]
        return parts[0] if len(parts) == 1 else self.json_array(*parts)

    @abstractmethod
    def json_array(self, *entries: Clause) -> Clause:
        """Values as a JSON array."""

    def entry(self, field: StoredField) -> Clause:
        """A column as it goes into a JSON array."""
        return field

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
