"""The engine for MariaDB and MySQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import peewee
from peewee import SQL, fn

from flask_contentapi import kinds
from flask_contentapi_peewee import addresses
from flask_contentapi_peewee.columns import Clause, StoredField
from flask_contentapi_peewee.connections import DATABASE_ERRORS
from flask_contentapi_peewee.conversions import Conversion, Converter
from flask_contentapi_peewee.engines import INDEXED, Engine, Words

__all__ = ["MariaDB"]

#: How long to wait for others that change the tables, in s; a timeout is required.
WAIT_FOR_TABLES = 86_400


class MariaDBConversion(Conversion):
    """Conversions for MariaDB and MySQL."""

    def typed(self, name: str, value: Clause) -> Clause:
        sql_type, _, characters = self.sql_types[name].partition(" CHARACTER SET ")
        charset, _, collation = characters.partition(" COLLATE ")
        if name == "path":
            # The maximum length in a recursive query, where the first row determines the length.
            cast = peewee.Cast(value, f"CHAR(1500) CHARACTER SET {charset}")
            return peewee.NodeList((cast, SQL(f"COLLATE {collation}")))
        if charset:
            converted = peewee.NodeList((value, SQL(f"USING {charset}")))
            return peewee.NodeList((fn.CONVERT(converted), SQL(f"COLLATE {collation}")))
        return peewee.Cast(value, sql_type) if name in ("decimal", "float") else value

    @property
    def converters(self) -> dict[str, Converter]:
        return {
            **super().converters,
            "date": self._date,
            "time": self._time,
            "datetime": self._datetime,
        }

    def _date(self, field: StoredField, column: Clause) -> Clause:
        return self._whole(column, fn.DATE_FORMAT(column, "%Y-%m-%d"))

    def _time(self, field: StoredField, column: Clause) -> Clause:
        text = fn.TIME_FORMAT(column, "%H:%i:%s.%f")
        return peewee.Case(None, [((column >= "00:00:00") & (column < "24:00:00"), text)])

    def _datetime(self, field: StoredField, column: Clause) -> Clause:
        return self._whole(column, fn.DATE_FORMAT(column, "%Y-%m-%dT%H:%i:%s.%fZ"))

    @staticmethod
    def _whole(date: Clause, text: Clause) -> Clause:
        """The text of a date, if it has a day, a month and a year."""
        is_whole = (fn.YEAR(date) > 0) & (fn.MONTH(date) > 0) & (fn.DAYOFMONTH(date) > 0)
        return peewee.Case(None, [(is_whole, text)])

    def step(self, identity: Clause) -> Clause:
        return fn.CONCAT("9", fn.LPAD(identity, 19, "0"))

    def address(self, value: Clause) -> Clause:
        # In a recursive query the first row determines the maximum length.
        return self.typed("text", peewee.Cast(value, "CHAR(16000) CHARACTER SET utf8mb4"))

    def moment(self, column: Clause) -> Clause:
        moment = fn.TIMESTAMPDIFF(SQL("MICROSECOND"), "1970-01-01", column)
        # The database accepts the year 0.
        return peewee.Case(None, [(fn.YEAR(column) > 0, moment)])

    def is_null(self, column: Clause) -> Clause:
        # In a column that is NOT NULL, IS NULL also matches '0000-00-00'.
        return peewee.Expression(column, "<=>", SQL("NULL"))


class MariaDB(Engine):
    """MariaDB and MySQL. With several hosts in the address, it reads from one that answers."""

    ordered_join = "STRAIGHT_JOIN"
    words_come_late = True
    conversion_class = MariaDBConversion
    sql_types = {
        **dict.fromkeys(
            ("text", "json", "blocks"), "LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"
        ),
        **dict.fromkeys(
            ("key", "date", "time", "datetime"),
            "VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin",
        ),
        # As long as an index together with a "key" can be.
        "path": "VARCHAR(2000) CHARACTER SET ascii COLLATE ascii_nopad_bin",
        **dict.fromkeys(("integer", "relation"), "BIGINT"),
        "boolean": "BOOL",
        "decimal": f"DECIMAL({2 * kinds.DECIMAL_DIGITS}, {kinds.DECIMAL_DIGITS})",
        "float": "DOUBLE",
    }

    @classmethod
    def connect(cls, address: str, root: Path) -> MariaDB:
        return cls(*addresses.mariadb(address))

    @contextmanager
    def schema_lock(self) -> Iterator[None]:
        # Lock names are global on the server.
        name = "CONCAT(DATABASE(), '.contentapi')"
        taken = self.database.execute_sql(f"SELECT GET_LOCK({name}, {WAIT_FOR_TABLES})")
        if taken.fetchall() != ((1,),):
            raise peewee.OperationalError("Others have changed the tables for too long")
        try:
            yield
        finally:
            # A connection that is lost has released it.
            with suppress(*DATABASE_ERRORS):
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

    def begin_after_ddl(self) -> None:
        self.database.execute_sql("START TRANSACTION")

    def random(self) -> Clause:
        return fn.RAND()

    def indexed(self, field: Clause) -> Clause:
        if not self.is_long(field):
            return field
        return peewee.NodeList((peewee.Entity(field.column_name), SQL(f"({INDEXED})")), glue="")

    def indexes(self, field: StoredField) -> Sequence[Sequence[Clause]]:
        # An index is not read backwards if the keys after the column are ascending.
        return [[self.indexed(field)], *([] if self.is_long(field) else [[field.desc()]])]

    def _analyzing(self, tables: Sequence[str]) -> Iterable[str]:
        return [f"ANALYZE TABLE {', '.join(tables)}"]

    def json_array(self, *entries: Clause) -> Clause:
        return fn.JSON_ARRAY(*entries)

    def entry(self, field: StoredField) -> Clause:
        return field.cast("CHAR") if isinstance(field.kind, kinds.Decimal) else field

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
