"""Applies a selection to a type, which gives the keys of an answer (specification, 4.3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import mul
from typing import Any, Literal, NamedTuple, cast

import orjson
from marshmallow import fields

from flask_contentapi import kinds
from flask_contentapi.declarations import Column, Endpoint, Export, ObjectType
from flask_contentapi.errors import BadRequest, DeclarationError, remarks, suggest
from flask_contentapi.fields import (
    Blocks,
    Instant,
    RichText,
    Tags,
    answer_field,
    itself,
)
from flask_contentapi.kinds import convert_blocks, id_converter
from flask_contentapi.query import Row, Viewer
from flask_contentapi.selection import DEFAULT, Selection
from flask_contentapi.signals import tag_of
from flask_contentapi.sources import (
    Bind,
    Context,
    Entries,
    Getter,
    Lookup,
    RowLayout,
    Step,
    Stored,
)
from flask_contentapi.types import Entry

__all__ = ["Chosen", "Item", "Plan", "Planner", "View", "choose"]

View = Literal["list", "detail", "nested"]
#: The keys in the order of exports, each with the selection in its brackets.
Chosen = list[tuple[Export, Selection]]


def choose(
    declared: ObjectType, view: View, selection: Selection = DEFAULT, i18n: bool = False
) -> Chosen:
    """The keys that a view of a type has (contract, Fields).

    :param selection: the ``fields`` parameter, or what is in brackets in it.
    :param i18n: whether internationalisation is on.
    :raises BadRequest: if the selection names what the type does not show.
    """
    hidden = frozenset() if view == "detail" else declared.detail_only
    available = {n: e for n, e in declared.exports.items() if n not in hidden}
    _check(declared, view, available, selection)
    if selection.base == "*":
        names = set(available)
    else:
        names = set() if selection.base == "_" else set(_defaults(declared, view, i18n))
    names = (names | selection.added.keys()) - selection.removed
    return [
        (export, selection.added.get(name) or DEFAULT)
        for name, export in available.items()
        if name in names
    ]


def refuse_circles(endpoints: Iterable[Endpoint]) -> None:
    """Refuses types whose objects embed each other endlessly.

    :raises DeclarationError: naming a class and what it always shows.
    """
    for endpoint in endpoints:
        for declared in {endpoint.base, *endpoint.types.values()}:
            for export in declared.exports.values():
                _refuse_circles_from(declared, export, DEFAULT, ())


def _refuse_circles_from(
    declared: ObjectType,
    export: Export,
    inner: Selection,
    above: tuple[tuple[ObjectType, Selection], ...],
) -> None:
    for target, selection in _embedded_types(export, inner):
        if (target, selection) in above:
            raise DeclarationError(
                f"{declared.content_class.__name__}.{export.name} always brings itself again, "
                "without an end; take it out of nested_default_fields or of what is shown."
            )
        for further in choose(target, "nested", selection):
            _refuse_circles_from(target, *further, (*above, (target, selection)))


def _embedded_types(export: Export, inner: Selection) -> Iterator[tuple[ObjectType, Selection]]:
    """The types of the objects in a key, each with its selection."""
    column = export.column
    if column is None or export.source is not None:
        return
    if column.target or column.child:
        yield cast(ObjectType, column.target or column.child), export.shown or inner
    for block in column.related_blocks.values():
        assert block.target is not None
        yield block.target, block.shown or DEFAULT


def is_volatile(chosen: Chosen) -> bool:
    """Whether one of the keys, or a key of an object in them, depends on more than the content."""
    return any(
        export.volatile
        or any(
            is_volatile(choose(target, "nested", selection))
            for target, selection in _embedded_types(export, inner)
        )
        for export, inner in chosen
    )


def _check(
    declared: ObjectType, view: View, available: Mapping[str, Export], selection: Selection
) -> None:
    unknown = sorted((selection.added.keys() | selection.removed) - available.keys())
    if unknown:
        hint = remarks(unknown, lambda name: _hint(declared, view, available, name))
        hint = hint or f" There are {', '.join(available)}."
        raise BadRequest(f"fields names what is not here: {', '.join(unknown)}.{hint}")
    for name, inner in selection.added.items():
        if inner is not None and available[name].nested is None:
            raise BadRequest(f"{name} has no fields of its own to be chosen in brackets.")


def _hint(declared: ObjectType, view: View, available: Mapping[str, Export], unknown: str) -> str:
    """A hint about an unknown field, or ""."""
    if unknown in declared.detail_only and unknown not in available:
        return f" {unknown} is shown in details only."
    hint = ""
    if unknown == "meta":
        inside = [name for name, export in available.items() if export.in_meta]
        hint = f" What is in meta is named directly: {', '.join(inside)}."
    elif view == "list":
        hint = declared.hint(unknown)
    elif view == "nested" and declared.endpoint and (labels := declared.labels_showing(unknown)):
        hint = f" It is a field of {', '.join(labels)}; here is only what all objects have."
    return hint or suggest(unknown, available)


def _defaults(declared: ObjectType, view: View, i18n: bool) -> Iterable[str]:
    content_class = declared.content_class
    if not issubclass(content_class, Entry):
        return declared.exports
    languages = content_class.i18n_default_fields
    if view == "detail":
        return declared.exports.keys() - (() if i18n else languages)
    if view == "nested":
        return content_class.nested_default_fields
    return (*content_class.listing_default_fields, *(languages if i18n else ()))


#: How many relations, tag fields and lists of child objects may be inside the brackets of one
#: ``fields``. Each costs a database a statement.
MAX_INSIDE = 100
#: An embedded object counts once more for each time that its texts have this many characters.
TEXT_SIZE = 5000
#: How many assemblers are cached.
COMPILED = 512
#: Takes the getter of each key and returns the function from a row to its answer.
Assembler = Callable[..., Callable[[Row], dict[str, Any]]]
#: Fetches objects, as :meth:`flask_contentapi.Reader.fetch`.
Fetch = Callable[
    [str, Collection[int], Sequence[str], Viewer, Sequence[int] | None], Mapping[int, Row]
]


class Key(NamedTuple):
    """One key of a plan.

    :param export: what it shows.
    :param value: gives the value to be dumped by a schema.
    :param serialized: gives the value as JSON.
    :param row_index: the index in the row of a value that is its own JSON; None if it is computed.
    """

    export: Export
    value: Bind
    serialized: Bind
    row_index: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """How the rows of one type become answers.

    :param layout: the columns and steps needed.
    :param keys: the keys, in the order of answers.
    :param assemble: puts the values of the keys together.
    :param volatile: whether the answers depend on more than the content.
    """

    layout: RowLayout
    keys: tuple[Key, ...]
    assemble: Assembler
    volatile: bool = False

    @property
    def size(self) -> int:
        """Roughly how much memory the plan takes, in units of 5,000 bytes."""
        return 1 + len(self.layout.steps)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that rows need to have."""
        return tuple(self.layout.columns)

    def bind(self, context: Context) -> Callable[[Row], dict[str, Any]]:
        """The function from a row to its answer, for one request."""
        return self.assemble(*[key.serialized(context) for key in self.keys])

    def look_up(
        self,
        rows: Sequence[Row],
        fetch: Fetch,
        viewer: Viewer,
        scope: Sequence[int] | None,
        most: int | None = None,
    ) -> list[Mapping[int, Row]]:
        """Fetches what the rows point to, and what that points to, in one fetch per relation.

        Counts meanwhile how many objects the answer would embed. A row that stands in several
        places counts as often, with everything below it, although it is fetched once. One with
        long texts counts several times (:data:`TEXT_SIZE`), so that the size is bounded too.

        :param most: the maximum of that number; None: no maximum.
        :raises BadRequest: if it would be exceeded; nothing has been built yet.
        """
        # For each level its rows, and in how many places each stands; None: each in one.
        levels: list[tuple[Sequence[Row], Sequence[int] | None]] = [(rows, None)]
        related: list[Mapping[int, Row]] = []
        embedded = 0
        for step in self.layout.steps:
            origin, times = levels[step.level]
            found: Mapping[int, Row] = {}
            if isinstance(step, Entries):
                index = step.index
                reached: Sequence[Row] = [entry for row in origin for entry in row[index]]
                if times is not None:
                    pairs = zip(origin, times, strict=True)
                    times = [n for row, n in pairs for _ in row[index]]
            else:
                assert isinstance(step, Lookup)
                places: Counter[int] = Counter()
                if times is None:
                    places.update([i for row in origin for i in step.ids(row)])
                else:
                    for row, n in zip(origin, times, strict=True):
                        for identity in step.ids(row):
                            places[identity] += n
                if places:
                    within = scope if step.within_site else None
                    columns = step.layout.columns
                    found = fetch(step.endpoint, places, columns, viewer, within)
                reached, times = [*found.values()], [places[i] for i in found]
            if step.embedded and most is not None:
                weights = [_weight(step.layout, row) for row in reached]
                embedded += sum(weights if times is None else map(mul, weights, times))
                if embedded > most:
                    raise BadRequest(
                        f"The answer would embed more than {most} objects. Ask for fewer: name "
                        "less in fields, with fewer brackets, or take a lower limit."
                    )
            levels.append((reached, times))
            related.append(found)
        return related

    def tags(self, related: Sequence[Mapping[int, Row]]) -> Iterator[str]:
        """The cache tags of what the rows point to (:mod:`flask_contentapi.caching`)."""
        for step, found in zip(self.layout.steps, related, strict=True):
            if isinstance(step, Lookup):
                yield from (tag_of(step.endpoint, identity) for identity in sorted(found))


def _weight(layout: RowLayout, row: Row) -> int:
    """How often an embedded object counts."""
    size = 0
    for value in (row[index] for index in layout.texts if row[index]):
        text = value if isinstance(value, str) else orjson.dumps(value).decode()
        # An entry of a list takes as much time as thirty characters.
        size += len(text) if text is value else len(text) + 30 * text.count(",")
    return 1 + size // TEXT_SIZE


class Item:
    """An object in the form that its schema dumps."""

    def __init__(self, plan: Plan, row: Row, context: Context) -> None:
        self._plan, self._row, self._context = plan, row, context

    def value(self, name: str) -> Any:
        """The value of a key, before its field writes it."""
        key = next(key for key in self._plan.keys if key.export.name == name)
        return key.value(self._context)(self._row)


class Planner:
    """Makes plans for one instance.

    :param endpoints: its endpoints.
    :param i18n: whether internationalisation is on.
    :raises DeclarationError: if objects would embed each other endlessly.
    """

    def __init__(self, endpoints: Iterable[Endpoint], i18n: bool) -> None:
        refuse_circles(endpoints)
        self._i18n = i18n

    def plan(self, declared: ObjectType, view: View, selection: Selection = DEFAULT) -> Plan:
        """The plan for a type and a client's selection.

        :raises BadRequest: if the selection names what the type does not show, or too much.
        """
        chosen = choose(declared, view, selection, self._i18n)
        plan = self._plan(RowLayout(declared), chosen)
        return replace(plan, volatile=is_volatile(chosen))

    # Compiling.

    def _plan(self, layout: RowLayout, chosen: Chosen) -> Plan:
        keys = tuple(self._key(layout, *choice) for choice in chosen)
        return Plan(layout, keys, _assembler(keys))

    def _key(self, layout: RowLayout, export: Export, selection: Selection) -> Key:
        if (source := export.source) is not None:
            value = source.compile(layout)
            serialized = _serialized(export, value, source.kind(layout))
            if isinstance(source, Stored):
                layout.note_text(source.column)
            if isinstance(source, Stored) and serialized is value:
                return Key(export, value, serialized, layout.index_of(source.column))
            return Key(export, value, serialized)
        column = export.column
        assert column is not None
        if column.target is not None:
            return self._embedded(export, layout, column, selection)
        if column.child is not None:
            return self._children(export, layout, column, selection)
        value = self._blocks(layout, column)
        return Key(export, value, value)

    def _nested(self, layout: RowLayout, export: Export, selection: Selection) -> Plan:
        chosen = choose(layout.type, "nested", export.shown or selection)
        plan = self._plan(layout, chosen)
        if selection is not DEFAULT and _count_inside(layout.steps) > MAX_INSIDE:
            raise BadRequest(
                f"fields asks for more than {MAX_INSIDE} relations, tag fields and lists of child "
                "objects inside brackets. Name fewer of them."
            )
        return plan

    def _embedded(
        self, export: Export, layout: RowLayout, column: Column, selection: Selection
    ) -> Key:
        index, lookup = layout.index_of(column.name), layout.related(column)
        plan = self._nested(lookup.layout, export, selection)
        build = _build_many if column.kind.many else _build_related

        def serialized(context: Context) -> Getter:
            return build(context.related[lookup.slot], index, plan.bind(context))

        def value(context: Context) -> Getter:
            found = context.related[lookup.slot]
            return build(found, index, lambda row: Item(plan, row, context))

        return Key(export, value, serialized)

    def _children(
        self, export: Export, layout: RowLayout, column: Column, selection: Selection
    ) -> Key:
        assert column.child is not None
        index = layout.index_of(column.name)
        plan = self._nested(layout.children(column.name, column.child), export, selection)

        def serialized(context: Context) -> Getter:
            return _build_each(index, plan.bind(context))

        def value(context: Context) -> Getter:
            return _build_each(index, lambda row: Item(plan, row, context))

        return Key(export, value, serialized)

    def _blocks(self, layout: RowLayout, column: Column) -> Bind:
        """Blocks, each with the representation of its type."""
        assert isinstance(column.field, Blocks)
        index = layout.note_text(column.name)
        writers = {
            name: _block_writer(inner)
            for name, inner in column.blocks.items()
            if inner.target is None
        }
        functions = {
            name: _serializer(representation)
            for name, representation in column.field.representations.items()
            if name not in column.blocks
        }
        related = []
        for name, inner in column.related_blocks.items():
            lookup = layout.related_block(column, name)
            chosen = choose(lookup.layout.type, "nested", inner.shown or DEFAULT)
            related.append((name, lookup.slot, self._plan(lookup.layout, chosen)))

        def bind(context: Context) -> Getter:
            converters, hiding = {**functions}, {}
            for name, slot, plan in related:
                found = context.related[slot]
                converters[name] = _object_converter(found, plan.bind(context))
                if writers:
                    # A field may write a value without what marks the blocks inside.
                    hiding[name] = id_converter(found, int)

            def blocks(row: Row) -> Any:
                stored = convert_blocks(row[index], {}, hiding) if hiding else row[index]
                return convert_blocks(stored, writers, converters)

            return blocks

        return bind


def _count_inside(steps: Sequence[Step]) -> int:
    """The number of relations, tag fields and lists of child objects inside others."""
    return sum(
        (step.level > 0)
        + sum(
            isinstance(step.layout.type.columns[name].kind, kinds.Tags)
            for name in step.layout.columns
            if name in step.layout.type.columns
        )
        for step in steps
    )


def _assembler(keys: Sequence[Key]) -> Assembler:
    """Compiles the function that puts the values of keys together, as one would write it by hand.

    Its source contains only names that the types declare, nothing that a client sends.
    """
    body: dict[str, str] = {}
    meta: dict[str, str] = {}
    for number, key in enumerate(keys):
        part = meta if key.export.in_meta else body
        part[key.export.name] = (
            f"get{number}(row)" if key.row_index is None else f"row[{key.row_index}]"
        )
    if meta:
        first = {"id": body.pop("id")} if next(iter(body), None) == "id" else {}
        body = {**first, "meta": _literal(meta), **body}
    getters = ", ".join(f"get{number}" for number, _ in enumerate(keys))
    return _compiled(f"lambda {getters}: lambda row: {_literal(body)}")


@lru_cache(COMPILED)
def _compiled(source: str) -> Assembler:
    """The function with a source, which the same selection of any relation to a type shares."""
    assembler: Assembler = eval(source, {})  # noqa: S307
    return assembler


def _literal(entries: Mapping[str, str]) -> str:
    """The source of a dictionary literal.

    :param entries: the expression of each value, by key.
    """
    return "{" + ", ".join(f"{key!r}: {value}" for key, value in entries.items()) + "}"


def _build_related(found: Mapping[int, Row], index: int, build: Callable[[Row], Any]) -> Getter:
    return lambda row: build(found[row[index]]) if row[index] in found else None


def _build_many(found: Mapping[int, Row], index: int, build: Callable[[Row], Any]) -> Getter:
    return lambda row: [build(found[identity]) for identity in row[index] if identity in found]


def _build_each(index: int, build: Callable[[Row], Any]) -> Getter:
    return lambda row: [build(entry) for entry in row[index]]


def _object_converter(
    found: Mapping[int, Row], build: Callable[[Row], Any]
) -> Callable[[Any], Any]:
    """The converter for blocks whose value is the id of an object to embed."""
    return id_converter(found, lambda identity: build(found[identity]))


# Writing values.

#: By kind, the field classes whose values orjson writes exactly as marshmallow does.
_PLAIN: dict[type[kinds.Kind], tuple[type[fields.Field[Any]], ...]] = {
    kinds.Text: (fields.String, fields.Url, fields.Email, RichText),
    kinds.Integer: (fields.Integer,),
    kinds.Boolean: (fields.Boolean,),
    kinds.Float: (fields.Float,),
    kinds.Date: (fields.Date,),
    kinds.Time: (fields.Time,),
    kinds.DateTime: (Instant,),
    kinds.Tags: (Tags,),
    kinds.Json: (fields.Raw,),
    kinds.Blocks: (Blocks,),
}


def _is_plain(kind: kinds.Kind | None, field: fields.Field[Any]) -> bool:
    """Whether values of the kind can go to orjson without the field."""
    formatted = getattr(field, "format", None) not in (None, "iso") or getattr(
        field, "as_string", False
    )
    return kind is not None and type(field) in _PLAIN.get(type(kind), ()) and not formatted


def _serialized(export: Export, value: Bind, kind: kinds.Kind | None) -> Bind:
    """Passes the values of a key through its field, unless that would change nothing."""
    if _is_plain(kind, export.field):
        return value

    def bind(context: Context) -> Getter:
        get, write = value(context), _serializer(export.field)
        return lambda row: write(get(row))

    return bind


def _block_writer(column: Column) -> Callable[[Any], Any]:
    """The function from the value of a block to its representation, None if it does not fit."""
    write = _serializer(answer_field(column.field))

    def represent(value: Any) -> Any:
        try:
            return write(None if value is None else column.to_python(column.kind.read(value)))
        except ValueError:
            return None

    return represent


def _serializer(field: Any) -> Callable[[Any], Any]:
    """The function from a value to what a field writes; functions are returned as they are."""
    if not isinstance(field, fields.Field):
        return cast(Callable[[Any], Any], field)
    return lambda value: field.serialize("", value, accessor=itself)
