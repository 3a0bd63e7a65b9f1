"""The tables that store the declared types, as peewee models.

Each endpoint has a table with the columns that all its types share. Each type that adds columns
has a table with just these; an object has a row in the table of its type and of every type that
this derives from. Tags, relations to many and child objects have their own tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import peewee
from peewee import SQL

from flask_contentapi import kinds
from flask_contentapi.errors import DeclarationError
from flask_contentapi.fields import RichText
from flask_contentapi.records import Place
from flask_contentapi.registry import Registry
from flask_contentapi.types import Column, Endpoint, ObjectType
from flask_contentapi_peewee.columns import Clause, StoredField, md5, stored_field
from flask_contentapi_peewee.engines import Engine
from flask_contentapi_peewee.names import LONGEST_NAME, index_name, table_name, words_name

__all__ = [
    "USED_ID_PREFIX",
    "EndpointTables",
    "Model",
    "OwnTable",
    "TableMaker",
    "Tables",
    "indexes_of",
]

#: The prefix of keys in the state table for ids that must not be used again.
USED_ID_PREFIX = "gone "
#: How many indexes a table has at most, as some databases allow no more. Queries by further
#: columns scan all rows.
MOST_INDEXES = 60

Model = type[peewee.Model]


@dataclass(eq=False)
class OwnTable:
    """The table of an endpoint, of one type or of a field of child objects.

    :param model: its model.
    :param columns: the stored fields that it has a column for.
    :param fields: the columns, by stored field; derived ones by name, with an underscore.
    :param many: for each field of tags a table with ``id`` and ``tag``, for each relation to many
        one with ``id``, ``sort_`` and ``target_``, a relation to one; for each field of child
        objects their table, where ``owner_`` is the object.
    :param child: the type of the child objects, if it is a table of these.
    """

    model: Model
    columns: dict[str, Column]
    fields: dict[str, StoredField]
    many: dict[str, OwnTable] = field(default_factory=dict)
    child: ObjectType | None = None

    def has(self, column: str) -> bool:
        """Whether it, or one of the tables that belong to it, stores a field."""
        return column in self.fields or column in self.many

    @property
    def entry(self) -> str:
        """The column with the entries, if it is a table of tags or of a relation to many."""
        return "target_" if self.columns else "tag"

    @property
    def models(self) -> Iterator[Model]:
        """Its model and those of the tables that belong to it."""
        yield self.model
        for table in self.many.values():
            yield table.model


class EndpointTables:
    """The tables of one endpoint.

    :param endpoint: the endpoint.
    :param make: makes models.
    :ivar shift: the difference between an object's id and its value in the column :attr:`key`.
    :ivar reach: the column with the path that shows which pages are above a page.
    """

    shift = 0
    reach = "path_"

    def __init__(self, endpoint: Endpoint, make: TableMaker) -> None:
        self.endpoint = endpoint
        self.base = make.base_table(endpoint)
        self.words = words_name(table_name(endpoint.name))
        indexed = _indexed(endpoint)
        self._own = {
            label: make.object_table(label.replace(".", "_").lower(), added, indexed)
            for label, declared in endpoint.types.items()
            if (added := _added_columns(endpoint, declared))
        }
        #: Our own tables among these, and for each type whose objects are stored elsewhere the
        #: tables used instead.
        self.ours = self
        self.further: dict[str, Sequence[EndpointTables]] = {}

    def lineage(self, label: str) -> list[OwnTable]:
        """The tables other than the base in which an object of a type has a row."""
        declared = self.endpoint.types.get(label)
        if declared is None:
            return []
        return [
            table
            for name, table in self._own.items()
            if issubclass(declared.content_class, self.endpoint.types[name].content_class)
        ]

    @property
    def own(self) -> Mapping[str, OwnTable]:
        """The tables of the types that add columns, by the types' labels."""
        return self._own

    @property
    def key(self) -> StoredField:
        """The column by which objects are looked up."""
        return self.base.fields["id"]

    @property
    def default_order(self) -> StoredField:
        """The column of the default order."""
        return self.base.fields["path_" if self.endpoint.tree else "id"]

    def parts(
        self, types: frozenset[str] | None
    ) -> Iterator[tuple[EndpointTables, frozenset[str] | None]]:
        """The tables with the objects of some types, each with the types to be distinguished in
        it; None if all its objects are requested."""
        here = None if types is None else types - self.further.keys()
        if here or not types:
            yield self.ours, here
        for label, parts in self.further.items():
            if types is None or label in types:
                yield from ((part, None) for part in parts)

    def has_address(self, engine: Engine, address: Callable[[Callable[[str], Any]], SQL]) -> Clause:
        """The condition that a page is at an address.

        :param address: makes the parameter for a function of the address.
        """
        fields = self.base.fields
        return (fields["url_hash_"] == address(md5)) & (fields["url_path"] == address(str))

    def array(self, label: str, engine: Engine, wanted: SQL) -> Clause:
        """The columns in the table of a type, as a JSON array; NULL for objects of other types.

        :param label: the type.
        :param wanted: the parameter for an object's id.
        """
        table = self._own[label]
        columns = [field for name, field in table.fields.items() if name != "id"]
        stored = table.model.select(engine.array(columns)).where(table.fields["id"] == wanted)
        labels = [name for name in self.endpoint.types if table in self.lineage(name)]
        return peewee.Case(None, [(self.base.fields["type"].in_(labels), stored)])

    @property
    def all(self) -> Iterator[OwnTable]:
        """All tables, the base first."""
        yield self.base
        yield from self.own.values()


#: The remedy if two things would have the same name.
_RENAME = "Rename one of them, or give its type another app_label."


def _indexed(endpoint: Endpoint) -> frozenset[str]:
    """The columns that lists of an endpoint can be filtered or ordered by."""
    indexed = {"translation_key"} if endpoint.tree else set()
    for declared in (endpoint.base, *endpoint.types.values()):
        indexed |= {column.name for column in declared.filterable.values()}
        indexed |= {custom.source for custom in declared.api_filters}
    return frozenset(indexed - {"id"})


def _added_columns(endpoint: Endpoint, declared: ObjectType) -> dict[str, Column]:
    """The columns that a type adds to the base and to the types that it derives from."""
    inherited = set(endpoint.base.columns)
    for other in endpoint.types.values():
        if other is not declared and issubclass(declared.content_class, other.content_class):
            inherited |= other.columns.keys()
    return {name: c for name, c in declared.columns.items() if name not in inherited}


class Tables:
    """All tables of a backend.

    :param registry: the declared types.
    :param engine: the database.
    :param make: makes the models; None: in the usual way.
    :raises DeclarationError: if two things would be stored in the same table.
    """

    def __init__(self, registry: Registry, engine: Engine, make: TableMaker | None = None) -> None:
        make = make or TableMaker(engine)
        self.engine = engine
        self.state = make.table("state", {"key": make.key(primary_key=True), "value": make.text()})
        self.locales = make.table(
            "locales", {"code": make.key(primary_key=True), "sort": make.integer()}
        )
        self.sites = make.table(
            "sites",
            {
                "id": make.integer(primary_key=True),
                "hostname": make.text(),
                "port": make.integer(),
                "site_name": make.text(),
                "root_page": make.integer(),
                "is_default": make.column(kinds.Boolean()),
            },
        )
        self.collections = make.table(
            "collections",
            {
                "id": make.integer(primary_key=True),
                "name": make.text(),
                "parent": make.integer(null=True),
                "restriction": make.column(kinds.Json(), null=True),
                "sort": make.integer(),
            },
        )
        self.endpoints = {
            name: EndpointTables(endpoint, make) for name, endpoint in registry.endpoints.items()
        }
        self._refuse_shared()

    def _refuse_shared(self) -> None:
        """Refuses declarations that would store two things in the same table.

        In some databases names are case-insensitive, and tables and indexes share a namespace.
        """
        known = Counter(name.lower() for name in self.names)
        for name, number in known.items():
            if number > 1:
                raise DeclarationError(
                    f"{name} would be the table of {number} types, endpoints or fields at once. "
                    f"{_RENAME}"
                )
        known.update(index._name.lower() for m in self.models for index in m._meta.indexes)
        for name, number in known.items():
            if number > 1:
                raise DeclarationError(
                    f"{name} would be the name of {number} tables and indexes at once. {_RENAME}"
                )

    @property
    def foreign(self) -> Mapping[str, str]:
        """The types whose objects are rows of the site's own tables, with those tables."""
        return {}

    @property
    def nested(self) -> bool:
        """Whether pages can be below pages that are not in our tables."""
        return False

    @property
    def versioned(self) -> bool:
        """Whether every change of the content changes the version."""
        return True

    def version(self) -> Clause:
        """The version of the content."""
        return self.state_of("stamp")

    def state_of(self, key: str) -> Clause:
        """The value of a key of the state, which stands in the text of the statement."""
        state = self.state
        return state.model.select(state.fields["value"]).where(
            state.fields["key"] == SQL(f"'{key}'")
        )

    def read_state(self, key: str, database: peewee.Database) -> str | None:
        """An entry of the state; None if there is none."""
        fields = self.state.fields
        query = self.state.model.select(fields["value"]).where(fields["key"] == key)
        return next((value for (value,) in query.tuples().execute(database)), None)

    def read_version(self, database: peewee.Database) -> str:
        """The current version of the content."""
        ((version,),) = self.all(peewee.Select(columns=[self.version()]), database)
        return str(version)

    def missing_message(self, database: peewee.Database) -> str:
        """What is missing of the site's own tables, in a sentence; "" if nothing is."""
        return ""

    def place(self, section: str, identity: int, label: str) -> Place:
        """The place of an object, for messages.

        :param label: its type.
        """
        return Place(section, -1, f"{section} {identity}")

    def with_ctes(self, query: Any) -> Any:
        """A query with everything that it refers to besides tables."""
        return query

    def all(self, query: Any, database: peewee.Database) -> list[tuple[Any, ...]]:
        """The result of a query, as tuples of stored values."""
        complete = self.with_ctes(query).tuples()
        return self.engine.all(database, lambda: list(complete.clone().execute(database)))

    def of_child(self, child: ObjectType) -> Iterator[OwnTable]:
        """The tables of the child objects of a type."""
        for endpoint in self.endpoints.values():
            for table in endpoint.all:
                yield from (many for many in table.many.values() if many.child is child)

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
        for table in (self.state, self.locales, self.sites, self.collections):
            yield table.model
        for endpoint in self.endpoints.values():
            for table in endpoint.all:
                yield from table.models


class TableMaker:
    """Makes tables for one database.

    :param engine: the database.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def column(self, kind: kinds.Kind, **options: Any) -> StoredField:
        return stored_field(kind, self._engine.sql_types, **options)

    def integer(self, **options: Any) -> StoredField:
        return self.column(kinds.Integer(), **options)

    def text(self, **options: Any) -> StoredField:
        return self.column(kinds.Text(), **options)

    def key(self, **options: Any) -> StoredField:
        """Short ASCII text."""
        return StoredField(kinds.Text(), self._engine.sql_types["key"], **options)

    def path(self, **options: Any) -> StoredField:
        """ASCII text that can be indexed in full."""
        return StoredField(kinds.Text(), self._engine.sql_types["path"], **options)

    def address(self) -> StoredField:
        """The address of a page, escaped as in a URL."""
        return self.text()

    def table(self, name: str, fields: Mapping[str, StoredField]) -> OwnTable:
        """A table with some columns."""
        _refuse_columns(name, fields)
        meta: dict[str, Any] = {
            "database": self._engine.database,
            "table_name": table_name(name),
            "legacy_table_names": False,
        }
        if not any(column.primary_key for column in fields.values()):
            meta["primary_key"] = False
        attributes: dict[str, Any] = {"Meta": type("Meta", (), meta)}
        for column, stored in fields.items():
            stored.column_name = column
            attributes[_attribute(column)] = stored
        return OwnTable(type(name, (peewee.Model,), attributes), {}, dict(fields))

    def base_table(self, endpoint: Endpoint) -> OwnTable:
        """The table of an endpoint."""
        derived = {"type": self.key(), "extras_": self.column(kinds.Json(), null=True)}
        if endpoint.tree:
            derived |= {
                "path_": self.path(),
                "url_path": self.address(),
                "url_hash_": self.key(),
                "access_": self.integer(),
                "visible_from_": self.integer(),
                "visible_until_": self.integer(),
                "is_restricted_": self.column(kinds.Boolean()),
            }
        table = self.object_table(endpoint.name, endpoint.base.columns, _indexed(endpoint), derived)
        if endpoint.tree:
            self._index_tree(table)
        else:
            self._index(table, [table.fields["type"], table.fields["id"]])
        return table

    def _index_tree(self, table: OwnTable) -> None:
        """Adds the indexes for the tree and the default order, with the columns of visibility.

        They also have the id, so that distant rows of a list are skipped in the index alone.
        """
        path, *seen = (table.fields[f"{c}_"] for c in ("path", *_SEEN))
        identity = table.fields["id"]
        self._index(table, [path, *seen, identity])
        self._index(table, [table.fields["url_hash_"]], unique=True)
        # Finds children in menus without looking up the others.
        shown = {"parent": [table.fields["show_in_menus"]]}
        for name in ("type", "parent", "locale", "show_in_menus"):
            keys = [self._engine.indexed(table.fields[name]), path, *seen, *shown.get(name, ())]
            self._index(table, [*keys, identity], name=f"{name}_path")
        for name in ("visible_from_", "visible_until_", "is_restricted_"):
            self._index(table, [table.fields[name]])

    def object_table(
        self,
        name: str,
        columns: Mapping[str, Column],
        indexed: Set[str],
        derived: Mapping[str, StoredField] | None = None,
    ) -> OwnTable:
        """A table with the given columns, and tables for those with many entries.

        :param indexed: the columns that get an index.
        :param derived: columns that are not in records.
        """
        derived = derived or {}
        for clash in derived.keys() & columns.keys():
            raise DeclarationError(
                f"{name} has a field {clash!r}, which the database backend uses."
            )
        fields = {"id": self.integer(primary_key=True), **derived}
        for column in columns.values():
            if column.name != "id" and not (column.kind.many or column.child):
                fields[column.name] = self.column(column.kind, null=True)
        table = self.table(name, fields)
        table.columns = {c: column for c, column in columns.items() if c in fields}
        for column in table.columns.values():
            if column.name in indexed:
                self._index_column(table, column)
        for column in columns.values():
            if column.kind.many:
                table.many[column.name] = self._entries(f"{name}_{column.name}", column)
            elif column.child is not None:
                table.many[column.name] = self._children(f"{name}_{column.name}", column.child)
        return table

    def _entries(self, name: str, column: Column) -> OwnTable:
        """The table of tags, or of a relation to many."""
        relation = kinds.Relation()
        fields = {"id": self.integer(), "tag": self.text()}
        if column.target is not None:
            fields = {key: self.integer() for key in ("id", "sort_")}
            fields["target_"] = self.column(relation)
        table = self.table(name, fields)
        if column.relation is not None:
            target = Column("target_", relation, column.relation, column.target)
            table.columns = {target.name: target}
        identity, entry = table.fields["id"], table.fields[table.entry]
        self._index(table, [identity])
        self._index(table, [self._engine.indexed(entry), identity], table.entry)
        return table

    def _children(self, name: str, child: ObjectType) -> OwnTable:
        fields = {"id": self.integer(primary_key=True)}
        fields |= {"owner_": self.integer(), "sort_": self.integer()}
        for column in child.columns.values():
            if column.name != "id":
                fields[column.name] = self.column(column.kind, null=True)
        table = self.table(name, fields)
        table.columns = dict(child.columns)
        table.child = child
        self._index(table, [table.fields["owner_"], table.fields["sort_"]])
        return table

    def _index_column(self, table: OwnTable, column: Column) -> None:
        """Adds an index to filter and order by a column, unless it holds rich text."""
        if not isinstance(column.field, RichText):
            for number, keys in enumerate(self._engine.indexes(table.fields[column.name])):
                name = column.name + ("_descending" if number else "")
                self._index(table, [*keys, table.fields["id"], *_path_keys(table, column)], name)

    def _index(
        self, table: OwnTable, keys: Sequence[Any], name: str = "", unique: bool = False
    ) -> None:
        model = table.model
        if len(model._meta.indexes) >= MOST_INDEXES:
            return
        name = index_name(model._meta.table_name, name or keys[0].column_name)
        model.add_index(peewee.ModelIndex(model, keys, unique=unique, name=name))


def indexes_of(table: str, column: str) -> set[str]:
    """The possible names of indexes on a column of a table."""
    return {index_name(table, f"{column}{about}") for about in ("", "_descending", "_path")}


def _refuse_columns(table: str, names: Iterable[str]) -> None:
    """Refuses column names that some databases do not accept or distinguish."""
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


def _path_keys(table: OwnTable, column: Column) -> list[StoredField]:
    """Additional columns of an index on a column, for finding the newest pages of a branch without
    looking up those of others."""
    if "path_" not in table.fields or not isinstance(column.kind, kinds.DateTime):
        return []
    return [table.fields[f"{name}_"] for name in ("path", *_SEEN)]


#: The columns that every table of PostgreSQL has.
_SYSTEM_COLUMNS = frozenset("tableoid xmin cmin xmax cmax ctid".split())
#: The derived columns that determine who sees a page, and when.
_SEEN = ("access", "visible_from", "visible_until")


def _attribute(column: str) -> str:
    """The attribute of a model for a column, which must not replace one of peewee's own."""
    return f"{column}_" if hasattr(peewee.Model, column) else column
