"""The tables that store content, as peewee models.

Each endpoint has two tables that hold its content: one with the fields that all objects of its kind
have and the place in the tree, and ``..._documents`` with the other fields as JSON. Its other
tables are derived from these and hold nothing that these do not hold: one for each type with the
fields that lists can be filtered or ordered by, one with the terms of objects (tags, and the ids of
what they point to and of their child objects), and one with their words. The name of a derived
table ends with a digest of the declarations that it depends on, so a table never has to be changed;
it is made anew. Languages, sites and collections are entries of the state, as JSON.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import peewee
from peewee import SQL

from flask_contentapi import kinds
from flask_contentapi.declarations import Column, Endpoint, ObjectType
from flask_contentapi.errors import DeclarationError
from flask_contentapi.fields import RichText
from flask_contentapi.registry import SECTIONS, Registry
from flask_contentapi.types import Content
from flask_contentapi_peewee.columns import Clause, StoredField, md5
from flask_contentapi_peewee.engines import Engine
from flask_contentapi_peewee.words import VERSION

#: The prefix of all table names, so that the tables can coexist with a site's own.
PREFIX = "contentapi_"
#: The maximum length of the name of a table or an index, in bytes.
LONGEST_NAME = 60
#: The prefix of keys in the state table for ids that must not be used again.
USED_ID_PREFIX = "gone "
#: The prefix of keys in the state table for marks of followed models.
MARK_PREFIX = "mark "
#: How many indexes a table has at most, as some databases allow no more. Queries by further
#: columns scan all rows.
MOST_INDEXES = 60

Model = type[peewee.Model]


@dataclass(eq=False)
class StoredTable:
    """A table.

    :param fields: its columns by name.
    :param labels: the types whose objects have a row in it, if it is of some only. Those of
        undeclared types have one if ``""`` is among them.
    """

    model: Model
    fields: dict[str, StoredField]
    labels: frozenset[str] = frozenset([""])

    @property
    def name(self) -> str:
        """Its name in the database."""
        name: str = self.model._meta.table_name
        return name

    def __getitem__(self, column: str) -> StoredField:
        return self.fields[column]

    def select(self, *columns: Any) -> Any:
        """The query for some columns, given by their names, and other expressions."""
        return self.model.select(*[self.fields[c] if isinstance(c, str) else c for c in columns])


class EndpointTables:
    """The tables of one endpoint."""

    def __init__(self, endpoint: Endpoint, make: _Maker) -> None:
        self.endpoint = endpoint
        #: The stored fields that have a column in the base table: the single values that every
        #: object has, as the package declares them.
        own = next(
            c for c in endpoint.base.content_class.__mro__ if c.__module__ == Content.__module__
        )
        columns = endpoint.base.columns
        names = own.declared_fields()  # type: ignore[attr-defined]
        self.fixed = {n: columns[n] for n in names if not columns[n].kind.many}
        self.base = make.base(endpoint, self.fixed)
        self.documents = make.table(
            f"{endpoint.name}_documents", id="integer!", doc="text", large="text?"
        )
        self.indexes = [*self._make_indexes(make)]
        types = {"": endpoint.base, **dict(sorted(endpoint.types.items()))}
        terms = {
            label: {
                name: signature_of(column)
                for name, column in declared.columns.items()
                if column.kind.many or column.names_others or column.child
            }
            for label, declared in types.items()
        }
        #: The terms of objects, which :mod:`flask_contentapi_peewee.documents` makes.
        self.terms = make.table(
            derived_name(f"{endpoint.name}_terms", terms),
            id="integer",
            field="key",
            text="text?",
            number="integer?",
        )
        make.index(self.terms, ["id"])
        make.index(self.terms, ["field", "text", "id"], "text")
        make.index(self.terms, ["field", "number", "id"], "number")
        words = {label: _searched(declared) for label, declared in types.items()}
        #: The name of the table of words, which the engine makes.
        self.words = short(PREFIX + derived_name(f"{endpoint.name}_words", [VERSION, words]))

    def _make_indexes(self, make: _Maker) -> Iterator[StoredTable]:
        endpoint = self.endpoint
        types = {endpoint.base.label: endpoint.base, **endpoint.types}
        for label, declared in types.items():
            above = [t for t in types.values() if t is not declared and _derives(declared, t)]
            known = {*self.fixed}.union(*(other.columns for other in above))
            added = {n: c for n, c in _indexed(endpoint, declared).items() if n not in known}
            if added:
                labels = {name for name, t in endpoint.types.items() if _derives(t, declared)}
                if declared is endpoint.base:
                    # Objects of undeclared types have the fields of the base.
                    labels.add("")
                declaration = {
                    "endpoint": endpoint.name,
                    "labels": sorted(labels),
                    "columns": [f"{name} {signature_of(column)}" for name, column in added.items()],
                }
                name = derived_name(label.replace(".", "_").lower(), declaration)
                table = make.table(name, added, id="integer!")
                table.labels = frozenset(labels)
                for column in added.values():
                    make.index_column(table, column)
                yield table

    def in_documents(self, declared: ObjectType) -> dict[str, Column]:
        """The fields of a type that are in its documents."""
        return {n: c for n, c in declared.columns.items() if n not in self.fixed}

    def lineage(self, label: str) -> list[StoredTable]:
        """The index tables in which objects of a type have a row."""
        known = label if label in self.endpoint.types else ""
        return [table for table in self.indexes if known in table.labels]

    @property
    def default_order(self) -> StoredField:
        """The column of the default order."""
        return self.base["path_" if self.endpoint.tree else "id"]


def _searched(declared: ObjectType) -> dict[str, Any]:
    """What is stored of each searched field of a type, and what is searched of child objects."""
    return {
        column.name: [signature_of(column), *([_searched(column.child)] if column.child else [])]
        for column in declared.searched
    }


def _derives(declared: ObjectType, other: ObjectType) -> bool:
    return issubclass(declared.content_class, other.content_class)


def _indexed(endpoint: Endpoint, declared: ObjectType) -> dict[str, Column]:
    names = set()
    for other in (endpoint.base, *endpoint.types.values()):
        if _derives(other, declared):
            names |= {column.name for column in other.filterable.values()}
            names |= {custom.source for custom in other.api_filters}
    single = [
        column
        for name, column in declared.columns.items()
        if name in names and column.kind.orderable
    ]
    return {c.name: c for c in sorted(single, key=lambda c: isinstance(c.field, RichText))}


#: What is stored of a field, in a form that is the same in every process. That of child objects has
#: those of their fields by name, and their kind and type by "".
Signature = str | dict[str, Any]


def signature_of(column: Column) -> Signature:
    """What is stored of a field."""
    text = type(column.field).__name__ if isinstance(column.field, RichText) else column.kind.name
    places = getattr(column.kind, "places", None)
    if places is not None:
        text += f" of {places} places"
    if isinstance(column.kind, kinds.Canonical):
        members = getattr(column.field, "enum", ())
        text += f" {type(column.field).__name__} {' '.join(m.name for m in members)}".rstrip()
    if column.target is not None:
        text += f" to {column.target.served_at.name}"
    if column.child is not None:
        inner = {name: signature_of(c) for name, c in column.child.columns.items()}
        return {"": f"{text} {column.child.label}", **inner}
    blocks = {b: c.target.served_at.name for b, c in column.related_blocks.items() if c.target}
    blocks |= dict.fromkeys(sorted(column.rich_blocks), "rich text")
    return " ".join([text, *(f"{block}:{endpoint}" for block, endpoint in blocks.items())])


#: The stored fields of each type, each with what it stores; "" is the endpoint.
Types = Mapping[str, Mapping[str, Signature]]


def types_of(declared: str) -> Types:
    """The types in :attr:`Tables.declared`, of now or of before."""
    types: Types = orjson.loads(declared)["types"]
    return types


class Tables:
    """All tables of a backend.

    :raises DeclarationError: if two things would be stored in the same table.
    """

    def __init__(self, registry: Registry, engine: Engine) -> None:
        make = _Maker(engine)
        self.registry, self.engine = registry, engine
        self.state = make.table("state", key="key!", value="text")
        #: The version of the content.
        self.version = self.state_of("stamp")
        #: The rows of the site's own models that are to be read again, or are left out.
        self.followed = make.table(
            "followed",
            id="integer!",
            type="key",
            row="integer",
            standing="integer",
            problems="text?",
        )
        make.index(self.followed, ["type", "row"])
        make.index(self.followed, ["standing"])
        #: The types that have the rows of the site's own models, each with a part of a sentence.
        self.followed_types: dict[str, str] = {}
        self.endpoints = {
            name: EndpointTables(endpoint, make) for name, endpoint in registry.endpoints.items()
        }
        #: The declarations that what is stored depends on. Databases with this text are ready.
        self.declared = orjson.dumps(
            {
                "types": {
                    label: {
                        "": endpoint.name,
                        **{name: signature_of(c) for name, c in declared.columns.items()},
                    }
                    for endpoint in registry.endpoints.values()
                    for label, declared in endpoint.types.items()
                },
                "tables": [table for table in self.names if is_derived(table)],
            },
            option=orjson.OPT_SORT_KEYS,
        ).decode()
        #: The same, read.
        self.types = types_of(self.declared)
        self._refuse_shared()

    def _refuse_shared(self) -> None:
        """Refuses declarations that would store two things in the same table.

        In some databases names are case-insensitive, and tables and indexes share a namespace.
        """
        known = Counter(name.lower() for name in self.names)
        known.update(index._name.lower() for m in self.models for index in m._meta.indexes)
        for name, number in known.items():
            if number > 1:
                raise DeclarationError(
                    f"{name} would be the name of {number} tables and indexes at once. Rename one "
                    "of the types, endpoints or fields, or give a type another app_label."
                )

    def state_of(self, key: str) -> Clause:
        """The value of a key of the state, which stands in the text of the statement."""
        state = self.state
        return state.select("value").where(state["key"] == SQL(f"'{key}'"))

    def read_state(self, database: peewee.Database) -> dict[str, str]:
        """All entries of the state."""
        return dict(self.all(self.state.select("key", "value"), database))

    def write_state(self, **entries: str) -> None:
        """Changes entries of the state, or adds them."""
        key, value = (self.state[name] for name in ("key", "value"))
        for name, text in entries.items():
            if not self.state.model.update({value: text}).where(key == name).execute():
                # MariaDB counts only rows that an update really changes.
                self.state.model.delete().where(key == name).execute()
                self.state.model.insert({key: name, value: text}).execute()

    def records(self, database: peewee.Database) -> dict[str, list[Any]]:
        """The codes of all languages, and the records of all sites and collections with all keys,
        by section."""
        state = self.read_state(database)
        return {section: orjson.loads(state[section]) for section in SECTIONS}

    def write_records(self, section: str, records: Iterable[Any]) -> None:
        """Replaces what :meth:`records` gives of a section."""
        self.write_state(**{section: orjson.dumps([*records]).decode()})

    @staticmethod
    def all(query: Any, database: peewee.Database) -> list[tuple[Any, ...]]:
        """The result of a query, as tuples of stored values."""
        return list(query.tuples().execute(database))

    @property
    def names(self) -> Iterator[str]:
        """The names of all tables."""
        yield from (model._meta.table_name for model in self.models)
        yield from self.words

    @property
    def words(self) -> Iterator[str]:
        """The names of the tables of words."""
        yield from (endpoint.words for endpoint in self.endpoints.values())

    @property
    def models(self) -> Iterator[Model]:
        """All models. The tables of words have none, because the engine creates them."""
        yield from (self.state.model, self.followed.model)
        yield from self.content

    @property
    def content(self) -> Iterator[Model]:
        """The models of the tables of objects."""
        for end in self.endpoints.values():
            for table in (end.base, end.documents, *end.indexes, end.terms):
                yield table.model


def is_derived(table: str) -> bool:
    """Whether a table with a name is derived from others."""
    return bool(_DERIVED.fullmatch(table))


_DERIVED = re.compile(r"contentapi_.*__[0-9a-f]{8}")


# Names. Every database accepts these. SQL quotes them, because a type, an endpoint or a field may
# have capital letters, and names that would be too long are cut.


def derived_name(name: str, declaration: Any) -> str:
    """The name of a derived table, without the prefix.

    :param declaration: the declarations that it depends on, as JSON.

    >>> derived_name("pages_terms", {"blog.BlogPage": {"tags": "tags"}})
    'pages_terms__ce7f0e9b'
    """
    digest = md5(orjson.dumps(declaration).decode())[:8]
    return f"{name.encode()[: LONGEST_NAME - 26].decode(errors='ignore')}__{digest}"


def short(name: str) -> str:
    """A name that is as long as databases allow."""
    stored = name.encode()
    if len(stored) <= LONGEST_NAME:
        return name
    return f"{stored[: LONGEST_NAME - 9].decode(errors='ignore')}_{md5(name)[:8]}"


class _Maker:
    """Makes tables for one database."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def table(
        self, name: str, columns: Mapping[str, Column] | None = None, /, **others: str
    ) -> StoredTable:
        """A table.

        :param columns: stored fields that it has a column for.
        :param others: the kinds of its other columns; ``!`` is behind that of the primary key, and
            ``?`` behind those of columns that may be empty.
        """
        # peewee has the primary key first, and others in the order in which they are made.
        first = {n: text for n, text in others.items() if text[-1] == "!"}
        wanted: dict[str, Column | str] = {**first, **(columns or {}), **others}
        fields = {n: self._field(one) for n, one in wanted.items()}
        return StoredTable(self._model(name, fields), fields)

    def _field(self, wanted: Column | str) -> StoredField:
        types = self._engine.sql_types
        if isinstance(wanted, Column):
            return StoredField(wanted.kind, types, null=True)
        name = wanted.rstrip("!?")
        options: dict[str, Any] = {"primary_key": wanted[-1] == "!", "null": wanted[-1] == "?"}
        return StoredField(_KINDS.get(name, _KINDS["text"]), types, name, **options)

    def _model(self, name: str, fields: Mapping[str, StoredField]) -> Model:
        _refuse_columns(name, fields)
        meta: dict[str, Any] = {
            "database": self._engine.database,
            "table_name": short(PREFIX + name),
            "legacy_table_names": False,
        }
        if not any(column.primary_key for column in fields.values()):
            meta["primary_key"] = False
        attributes: dict[str, Any] = {"Meta": type("Meta", (), meta)}
        for column, stored in fields.items():
            stored.column_name = column
            # It must not replace one of peewee's own.
            attributes[f"{column}_" if hasattr(peewee.Model, column) else column] = stored
        return type(name, (peewee.Model,), attributes)

    def base(self, endpoint: Endpoint, columns: Mapping[str, Column]) -> StoredTable:
        """The table with the fields that all objects of an endpoint have."""
        # What depends on the position in the tree comes last.
        tree = _TREE_COLUMNS if endpoint.tree else {}
        table = self.table(endpoint.name, columns, id="integer!", type="key", **tree)
        indexed = {column.name for column in endpoint.base.filterable.values()} - {"id"}
        for declared in (endpoint.base, *endpoint.types.values()):
            indexed |= {custom.source for custom in declared.api_filters}
        indexed |= {"translation_key", "site_path"}
        for name in (name for name in columns if name in indexed):
            self.index_column(table, columns[name])
        if not endpoint.tree:
            self.index(table, ["type", "id"])
            return table
        # The indexes for the tree and the default order have the columns of visibility, and the id,
        # so that distant rows of a list are skipped in the index alone.
        self.index(table, [*_SEEN, "id"])
        self.index(table, ["url_hash_"], unique=True)
        # Finds children in menus without looking up the others.
        shown = {"parent": ["show_in_menus"]}
        for name in ("type", "parent", "locale", "show_in_menus"):
            self.index(table, [name, *_SEEN, *shown.get(name, ()), "id"], f"{name}_path")
        for name in ("visible_from_", "visible_until_", "is_restricted_"):
            self.index(table, [name])
        return table

    def index_column(self, table: StoredTable, column: Column) -> None:
        """Adds the indexes to filter and order by a column, unless it holds rich text."""
        if isinstance(column.field, RichText):
            return
        # To find the newest pages of a branch without looking up those of others.
        is_moment = "path_" in table.fields and isinstance(column.kind, kinds.DateTime)
        further = [table[name] for name in ("id", *(_SEEN if is_moment else ()))]
        for number, keys in enumerate(self._engine.indexes(table[column.name])):
            name = column.name + ("_descending" if number else "")
            self.index(table, [*keys, *further], name)

    def index(
        self, table: StoredTable, columns: Sequence[Any], name: str = "", unique: bool = False
    ) -> None:
        """Adds an index to a table.

        :param columns: their names, or keys as they are in the index.
        """
        model, name = table.model, name or columns[0]
        keys = [self._engine.indexed(table[c]) if isinstance(c, str) else c for c in columns]
        if len(model._meta.indexes) < MOST_INDEXES:
            name = short(f"{table.name}_{name.strip('_')}")
            model.add_index(peewee.ModelIndex(model, keys, unique=unique, name=name))


def _refuse_columns(table: str, names: Iterable[str]) -> None:
    known: dict[str, str] = {}
    for name in names:
        first = known.setdefault(name.lower(), name)
        if first != name:
            raise DeclarationError(
                f"{table} has fields {first!r} and {name!r}, which are the same to some databases; "
                "rename one of them."
            )
        if len(name.encode()) > LONGEST_NAME:
            raise DeclarationError(
                f"{table} has a field {name!r}; in databases names have at most {LONGEST_NAME} "
                "bytes."
            )
        if name in _SYSTEM_COLUMNS:
            raise DeclarationError(f"{table} has a field {name!r}, which databases have already.")


#: The columns that every table of PostgreSQL has.
_SYSTEM_COLUMNS = frozenset("tableoid xmin cmin xmax cmax ctid".split())
#: The derived columns with the place of a page, who sees it, and when.
_SEEN = ("path_", "access_", "visible_from_", "visible_until_")
#: The columns of pages besides their fields.
_TREE_COLUMNS = {
    "visible_from_": "integer",
    "visible_until_": "integer",
    "is_restricted_": "boolean",
    "path_": "path",
    "url_path": "text",
    "url_hash_": "key",
    "access_": "integer",
}
_KINDS = {k.name: k for k in (kinds.Integer(), kinds.Text(), kinds.Boolean())}
