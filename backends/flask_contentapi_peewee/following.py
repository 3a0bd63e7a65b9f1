"""Follows a site's own models: copies their rows into the content and keeps the copies in step.

Whether a model has changed is asked before each answer, with one statement for all models: the mark
of a model (the greatest value of its column ``changed``, and the number of rows) is compared with
the one from when its rows were last copied. Only rows that may have changed are read then. Rows
that are saved through peewee's signals are noted in the site's own transaction and read as well.

A row that cannot be copied is left out, and remembered with its problems; it is read again when it
changes or, if it may fit now, when something else does.
"""

from __future__ import annotations

import json
import secrets
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

import peewee
from peewee import SQL, fn
from playhouse import signals

from flask_contentapi.errors import ConfigurationError, ContentError, Problem
from flask_contentapi.logs import log
from flask_contentapi.query import Row
from flask_contentapi.records import Place, RecordReader
from flask_contentapi.signals import MOST_NAMED
from flask_contentapi.writer import StoredObject, Writer
from flask_contentapi_peewee.documents import batches
from flask_contentapi_peewee.followed import Followed, Source
from flask_contentapi_peewee.reader import DatabaseReader
from flask_contentapi_peewee.tables import Tables
from flask_contentapi_peewee.writing import DatabaseTransaction

#: How many rows that are left out are logged at a time; the command ``check`` names all.
MOST_LOGGED = 20
#: Why a row is in the table of followed rows: it was saved; it may fit when something else has
#: changed; it fits only when it has itself changed.
NOTED, WAITING, LEFT_OUT = range(3)


#: An object that a row stands for: its columns, and its record.
Fitting = tuple[Row, dict[str, Any]]


class AlreadyCopied(Exception):
    """Another process has copied what has changed."""


class Following:
    """All followed models of a backend.

    :param follow: copies what has changed, without waiting for the next answer.
    :param logs: whether to log which rows are left out.
    :raises ConfigurationError: if a model cannot be followed so.
    """

    def __init__(
        self,
        followed: Sequence[Followed],
        tables: Tables,
        follow: Callable[[], None],
        logs: bool,
    ) -> None:
        self._logs = logs
        self._tables, self._database = tables, tables.engine.database
        self._table = tables.followed
        declared = {
            known.content_class: known
            for endpoint in tables.registry.endpoints.values()
            for known in endpoint.types.values()
        }
        self.sources: dict[str, Source] = {}
        for one in followed:
            known = declared.get(one.type)
            if known is None:
                raise ConfigurationError(f"{one}: {one.type.__name__} is none of the types.")
            if known.label in self.sources:
                raise ConfigurationError(f"{one}: another model gives {known.label} already.")
            if one.model._meta.database is not self._database:
                raise ConfigurationError(f"{one}: it must be in the database of the backend.")
            self.sources[known.label] = Source(one, known, followed, self._tables)
            self._tables.followed_types[known.label] = (
                f"{known.label} has the rows of {one.model.__name__} and changes only with them"
            )
        noted = self._rows(SQL("1")).where(self._table["standing"] == NOTED).limit(1)
        columns = [noted]
        for source in self.sources.values():
            columns += [tables.state_of(source.state_key), *source.questions()]
        self._question = peewee.Select(columns=columns).bind(self._database).sql()
        self._has_table = False
        self._follow = follow
        self._hear()

    def _rows(self, *columns: Any) -> Any:
        return self._table.select(*columns).where(self._table["type"].in_([*self.sources]))

    # Marks.

    def marks(self) -> tuple[bool, dict[str, tuple[str | None, str]]]:
        """Whether rows may have changed since they were copied, and for each followed type the mark
        of the rows as they were copied, and their mark now."""
        ((noted, *found),) = self._database.execute_sql(*self._question).fetchall()
        marks = {}
        for place, (label, source) in enumerate(self.sources.items()):
            stored, *answers = found[3 * place : 3 * place + 3]
            marks[label] = stored, source.mark(answers)
        return noted is not None or any(stored != now for stored, now in marks.values()), marks

    # Signals.

    def _hear(self) -> None:
        this, name = weakref.ref(self), f"flask_contentapi {id(self)}"

        def hear(sender: Any, instance: Any, **_: Any) -> None:
            following = this()
            if following is not None:
                following.note(type(instance), instance._pk)

        def stop() -> None:
            for signal, model in places:
                signal.disconnect(name=name, sender=model)

        models = {source.model for source in self.sources.values() if source.has_signals}
        places = [(s, m) for s in (signals.post_save, signals.post_delete) for m in models]
        for signal, model in places:
            signal.connect(hear, name, model)
        #: Stops noting rows.
        self.close = weakref.finalize(self, stop)

    def note(self, model: type[peewee.Model], key: int) -> None:
        """Notes a row that has been saved or deleted, in the transaction in which that was done."""
        self._has_table = self._has_table or self._database.table_exists(self._table.name)
        if not self._has_table:
            return
        sources = self.sources.items()
        self._note((label, key) for label, source in sources if issubclass(model, source.model))
        if not self._database.in_transaction():
            self._follow()

    def _note(self, rows: Iterable[tuple[str, int]]) -> None:
        # Transactions of the site must not wait for each other, so each adds rows of its own.
        noted = [(secrets.randbits(62), label, key, NOTED, None) for label, key in rows]
        self._tables.engine.insert(self._table.name, self._table.fields, noted)

    # Copying.

    def copy(self, transaction: DatabaseTransaction, writer: Writer, *, whole: bool = False) -> int:
        """Copies what has changed.

        :returns: how many objects were written or removed.
        :raises AlreadyCopied: if another process has copied everything meanwhile.
        :raises ConfigurationError: if there are objects of a followed type that no row gave.
        """
        is_outdated, marks = self.marks()
        if not (whole or is_outdated):
            raise AlreadyCopied
        copying = Copying(self.sources, transaction, writer)
        for label, (stored, now) in marks.items():
            copying.copy_changed(self.sources[label], stored, now, whole)
        copying.copy_waiting()
        if self._logs:
            copying.log_left_out()
        return copying.written

    def note_waiting(self, reader: DatabaseReader) -> None:
        """Notes rows that may fit now because other content has changed."""
        waiting = self._rows("type", "row").where(self._table["standing"] == WAITING)
        self._note(reader.all(waiting.distinct()))

    def problems(self, reader: DatabaseReader) -> Iterator[Problem]:
        """Why rows are left out."""
        query = self._rows("problems").where(self._table["standing"] > NOTED)
        for text in reader.values(query.order_by(self._table["type"], self._table["row"])):
            yield from (Problem(*parts) for parts in json.loads(text))


class Copying:
    """Copies rows within one transaction.

    :param sources: the followed models, by the labels of their types.
    :ivar written: how many objects were written or removed.
    """

    def __init__(
        self, sources: Mapping[str, Source], transaction: DatabaseTransaction, writer: Writer
    ) -> None:
        self._sources, self._transaction, self._writer = sources, transaction, writer
        self._reader, self._tables = transaction.reader, transaction.tables
        self._table = transaction.tables.followed
        #: How many more rows are known, as objects or left out, than before.
        self._growth = 0
        self.written = 0
        #: The rows to write that are left out, and the problems that were not known before.
        self._left_out: list[list[Any]] = []
        self._before: dict[int, str] = {}
        self._to_log: dict[tuple[str, int], list[str]] = {}

    def log_left_out(self) -> None:
        """Logs which rows are left out now that were not before."""
        problems = [*chain.from_iterable(self._to_log.values())]
        for problem in problems[:MOST_LOGGED]:
            log.warning("%s", problem)
        if len(problems) > MOST_LOGGED:
            log.warning("More rows are left out; flask contentapi check names them.")

    def copy_changed(self, source: Source, stored: str | None, now: str, whole: bool) -> None:
        """Copies the rows of a model that may have changed.

        :param stored: the mark of the rows as they were copied.
        """
        if stored is None:
            self._refuse_others(source)
        greatest, before, own = json.loads(stored) if stored else (None, 0, None)
        _, number, own_now = json.loads(now)
        # Where rows were counted in another way, the marks tell nothing of what has changed.
        whole = whole or (before is None) != (number is None)
        # Before the rows are read, so that what is noted meanwhile is read the next time.
        noted = self._take_notes(source)
        self._growth = 0
        if whole or stored != now:
            for keys in source.keys_since(None if whole else greatest):
                self._copy(source, keys)
        for some in batches(noted):
            self._copy(source, some)
        for find in (self._keys_without_row, self._new_keys):
            differs = whole or (
                own != own_now if number is None else number != before + self._growth
            )
            if differs and (whole or stored != now):
                for some in batches(find(source)):
                    self._copy(source, some)
        if stored != now:
            self._tables.write_state(**{source.state_key: now})

    def copy_waiting(self) -> None:
        """Copies rows that fit now because something else has changed."""
        query = self._table.select("type", "row")
        query = query.where(self._table["standing"] == WAITING)
        known = None
        while (waiting := {*self._reader.all(query)}) != known:
            known = waiting
            for label, source in self._sources.items():
                for keys in batches(sorted(key for name, key in waiting if name == label)):
                    self._copy(source, keys)

    # Which rows.

    def _refuse_others(self, source: Source) -> None:
        query = source.base.select(fn.COUNT(SQL("1"))).where(source.is_own)
        number = self._reader.first(query)
        if number:
            raise ConfigurationError(
                f"{source.followed}: there are {number} objects of {source.label} already, which "
                f"are no rows of {source.model.__name__}. Delete them, or give the rows a type of "
                "their own."
            )

    def _take_notes(self, source: Source) -> list[int]:
        """The keys of noted rows, which are not noted any longer."""
        query = self._table.select("id", "row")
        noted = query.where(self._table["type"] == source.label, self._table["standing"] == NOTED)
        found = self._reader.all(noted)
        for some in batches([note for note, _ in found]):
            self._table.model.delete().where(self._table["id"].in_(some)).execute()
        return sorted({key for _, key in found})

    def _keys_without_row(self, source: Source) -> list[int]:
        """The keys of objects, and of what is left out, that are no rows any longer."""
        key, row = source.base["id"] - source.ids_from, source.rows(SQL("1"))
        gone = source.base.select(key).where(source.is_own)
        gone = gone.where(~fn.EXISTS(row.where(source.key == key)))
        left = self._table.select("row").where(self._is_left_out(source))
        left = left.where(~fn.EXISTS(row.where(source.key == self._table["row"])))
        return [int(key) for query in (gone, left) for key in self._reader.values(query)]

    def _new_keys(self, source: Source) -> list[int]:
        """The keys of rows that are neither copied nor left out."""
        copied = source.base.select(SQL("1")).where(
            source.is_own, source.base["id"] == source.key + source.ids_from
        )
        left = self._table.select(SQL("1")).where(
            self._is_left_out(source), self._table["row"] == source.key
        )
        query = source.rows(source.key).where(~fn.EXISTS(copied), ~fn.EXISTS(left))
        return self._reader.values(query)

    def _is_left_out(self, source: Source) -> Any:
        return (self._table["type"] == source.label) & (self._table["standing"] > NOTED)

    # Copying.

    def _copy(self, source: Source, keys: Sequence[int]) -> None:
        self._before = self._take_left_out(source, keys)
        rows = source.fetch(keys)
        fitting = self._read(source, rows)
        ids = [key + source.ids_from for key in keys]
        stored: dict[int, StoredObject] = {}
        for known in self._transaction.find_all(source.endpoint.name, ids):
            identity, label, *_ = known.row
            if label == source.label:
                stored[identity] = known
            elif fitting.pop(identity, None):
                why = "another object has this id already; give another ids_from"
                self._refuse_for(source, identity, "id", why)
        self._growth += len(rows) - len(
            self._before.keys() | {identity - source.ids_from for identity in stored}
        )
        self._remove(source, [i for i in stored if i not in fitting], stored, ids)
        for identity, one in [*fitting.items()]:
            try:
                if identity in stored:
                    self._replace(source, stored[identity], one)
            except ContentError as error:
                self._remove(source, [identity], stored, ids)
                del fitting[identity]
                self._refuse(source, identity, *error.problems)
        new = {identity: row for identity, (row, _) in fitting.items() if identity not in stored}
        for identity, name, message in [*self._misfits(source, new)]:
            if new.pop(identity, None):
                self._refuse_for(source, identity, name, message)
        self._insert(source, [*new.values()])
        if self._left_out:
            table = self._table
            self._transaction.engine.insert(table.name, table.fields, self._left_out)
            self._left_out.clear()

    def _read(self, source: Source, rows: Mapping[int, Any]) -> dict[int, Fitting]:
        reader = RecordReader(self._transaction.registry, logs=False)
        read: dict[int, Fitting] = {}
        for key, row in rows.items():
            identity, known = key + source.ids_from, len(reader.problems)
            why, record = row if isinstance(row, str) else None, {}
            try:
                if why is None:
                    record = {**source.record_of(row), "id": identity, "type": source.label}
            except Exception as error:
                # A site's own function may fail in any way.
                why = repr(error)
            if why is not None:
                self._refuse_for(source, identity, "", f"cannot be read: {why}", LEFT_OUT)
                continue
            entry = reader.read_entry(source.endpoint.name, -1, record)
            if entry is not None:
                documents = self._transaction.documents[source.endpoint.name]
                locales = self._transaction.records("locales")
                read[identity] = documents.in_language(entry[0], locales), record
                continue
            problems = reader.problems[known:]
            # The id of a child object may be free when another row has changed.
            standing = WAITING if any(problem.field == "id" for problem in problems) else LEFT_OUT
            self._refuse(source, identity, *problems, standing=standing)
        return read

    def _misfits(self, source: Source, new: Mapping[int, Row]) -> Iterator[tuple[int, str, str]]:
        places, endpoint = source.declared.places, source.endpoint
        locales = self._transaction.records("locales")
        collections = {known["id"] for known in self._transaction.records("collections")}
        for identity, row in new.items():
            locale = row[places["locale"]] if endpoint.tree else None
            if locales and locale is not None and locale not in locales:
                yield identity, "locale", f"{locale!r} is none of {', '.join(locales)}"
            collection = row[places["collection"]] if endpoint.collections else None
            if collection is not None and collection not in collections:
                yield identity, "collection", f"there is no collection {collection}"
        for name, column in source.declared.columns.items():
            if column.child is not None:
                owners = {child[0]: i for i, row in new.items() for child in row[places[name]]}
                for child, _ in self._transaction.owners(column.child, [*owners]):
                    message = f"the id {child} stands in another object already"
                    yield owners[child], name, message

    def _replace(self, source: Source, old: StoredObject, fitting: Fitting) -> None:
        name, documents = source.endpoint.name, self._transaction.documents[source.endpoint.name]
        row, record = fitting
        if old.row == row and documents.stored(*old) == documents.stored(row, {}):
            return
        if source.endpoint.tree:
            parent = source.declared.places["parent"]
            if old.row[parent] != row[parent]:
                self._writer.move(row[0], row[parent])
        # Fields that the record leaves out have their defaults again.
        self._writer.update(name, row[0], **{**source.nothing, **record})
        self.written += 1

    def _insert(self, source: Source, rows: list[Row]) -> None:
        refuse = partial(self._refuse_for, source)
        while rows:
            ready, rows = rows, []
            if source.endpoint.tree:
                parent, ids = source.declared.places["parent"], {row[0] for row in ready}
                rows = [row for row in ready if row[parent] in ids]
                ready = [row for row in ready if row[parent] not in ids]
            if not ready:
                for row in rows:
                    refuse(row[0], "parent", "the pages above it form a circle")
                return
            added = self._transaction.insert_all(source.endpoint.name, ready, refuse)
            self._note(source, added)

    def _remove(
        self,
        source: Source,
        ids: Sequence[int],
        stored: dict[int, StoredObject],
        batch: Collection[int],
    ) -> None:
        """Deletes objects, and the copies of rows below them, which wait to be copied again.

        :param stored: the objects of the batch, of which deleted ones are taken out.
        :param batch: the ids of all objects that are being copied.
        """
        for identity in ids:
            if identity not in stored:
                # It was below another one.
                continue
            is_page, tree = source.endpoint.tree, self._transaction.page_tree
            below: dict[int, str] = tree.below(identity, "type") if is_page else {}
            if not self._sources.keys() >= {*below.values()}:
                why = "cannot go, because pages below it are no rows; move or delete these"
                self._refuse_for(source, identity, "", why)
                continue
            doomed = [identity, *below]
            self._note(source, doomed)
            self._transaction.clear(source.endpoint.name, doomed)
            for page, label in below.items():
                if page not in batch:
                    self._refuse(self._sources[label], page)
            for page in doomed:
                stored.pop(page, None)

    def _note(self, source: Source, ids: Collection[int]) -> None:
        self.written += len(ids)
        self._writer.note(source.endpoint.name, ids)

    # What is left out.

    def _take_left_out(self, source: Source, keys: Sequence[int]) -> dict[int, str]:
        among = self._is_left_out(source) & self._table["row"].in_(keys)
        query = self._table.select("row", "problems").where(among)
        found = dict(self._reader.all(query))
        if found:
            self._table.model.delete().where(among).execute()
        for key in keys:
            self._to_log.pop((source.label, key), None)
        return found

    def _refuse_for(
        self, source: Source, identity: int, name: str, message: str, standing: int = WAITING
    ) -> None:
        place = Place(source.endpoint.name, -1, source.name_of(identity))
        self._refuse(source, identity, place.problem(name, message), standing=standing)

    def _refuse(
        self, source: Source, identity: int, *problems: Problem, standing: int = WAITING
    ) -> None:
        """Leaves out the row of an object.

        :param problems: why; none if it is to be copied again soon.
        :param standing: when it is read again.
        """
        key, own = identity - source.ids_from, source.name_of(identity)
        parts = []
        for problem in problems:
            where = problem.where.removeprefix(own)
            where = own + where.removeprefix(f"{source.endpoint.name} {identity}")
            parts.append((where, problem.field, f"{problem.message}; the row is left out"))
        text = json.dumps(parts)
        self._left_out.append([secrets.randbits(62), source.label, key, standing, text])
        if text != self._before.get(key) and len(self._to_log) < MOST_NAMED:
            self._to_log[source.label, key] = [str(Problem(*part)) for part in parts]
