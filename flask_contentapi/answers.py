"""Applies a selection to a type, which gives the keys of an answer (specification, 4.3)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import compress
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol, cast

import orjson
from marshmallow import fields

from flask_contentapi import kinds
from flask_contentapi.addresses import Addresses
from flask_contentapi.declarations import Column, Endpoint, Export, ObjectType
from flask_contentapi.errors import BadRequest, DeclarationError, remarks, suggest
from flask_contentapi.fields import Blocks, Instant, Rendition, RichText, Tags, answer_field, itself
from flask_contentapi.kinds import convert_blocks, id_converter
from flask_contentapi.query import Filter, Query, Row, Selected, Viewer
from flask_contentapi.selection import DEFAULT, Selection
from flask_contentapi.sources import (
    Bind,
    Context,
    Entries,
    Getter,
    Lookup,
    Origin,
    RichTexts,
    RowLayout,
    Way,
)
from flask_contentapi.types import Entry

View = Literal["list", "detail", "nested"]
#: The keys in the order of exports, each with the selection in its brackets.
Chosen = list[tuple[Export, Selection]]


class Several(NamedTuple):
    """The types that objects can have, each with keys of its own.

    :param named: the types whose keys can be chosen.
    :param types: all types that the objects can have, by label.
    """

    named: Collection[ObjectType] = ()
    types: Mapping[str, ObjectType] = MappingProxyType({})


NO_OTHERS = Several()


def choose(
    declared: ObjectType, view: View, selection: Selection = DEFAULT, i18n: bool = False
) -> Chosen:
    """The keys that a view of a type has (contract, Fields).

    :param selection: the ``fields`` parameter, or what is in brackets in it.
    :raises BadRequest: if the selection names what the type does not show.
    """
    return choose_each(declared, view, selection, i18n, NO_OTHERS)[0]


def check_nested(declared: ObjectType, selection: Selection) -> None:
    """Refuses what is always selected of embedded objects if it cannot be, at any depth.

    :raises BadRequest: if the selection names what the objects do not show.
    """
    for export, inner in choose(declared, "nested", selection):
        if export.nested is not None and inner is not DEFAULT:
            check_nested(export.nested, inner)


def choose_each(
    declared: ObjectType, view: View, selection: Selection, i18n: bool, several: Several
) -> tuple[Chosen, Mapping[str, Chosen]]:
    """The keys that objects have, and by label those of types that have more of what is chosen.

    :param declared: the type whose keys all of them have.
    :raises BadRequest: if the selection names what none of the types shows.
    """
    shared, added = _available(declared, view), selection.added
    asked = added.keys() | selection.removed
    # A type's own field hides a way of the same name.
    own = {name for name in asked if name not in shared or shared[name].only_named}
    named = several.named if own else ()
    offered = {n: e for other in named for n, e in _available(other, view).items()} | {**shared}
    if unknown := sorted(asked - offered.keys()):
        hint = remarks(unknown, lambda name: _hint(declared, view, offered, name))
        hint = hint or f" There are {', '.join(offered)}."
        raise BadRequest(f"fields names what is not here: {', '.join(unknown)}.{hint}")
    _check_brackets(shared, selection)
    if selection.base == "*":
        names = {name for name, export in shared.items() if not export.only_named}
    else:
        names = set() if selection.base == "_" else set(_defaults(declared, view, i18n))
    names = (names | added.keys()) - selection.removed
    chosen = [(e, added.get(name) or DEFAULT) for name, e in shared.items() if name in names]
    own &= added.keys()
    found = {}
    for label, other in several.types.items() if own else ():
        exports = _available(other, view)
        mine = {export.name: (export, inner) for export, inner in chosen}
        more = {n: e for n, e in exports.items() if n in own and not e.only_named}
        _check_brackets(more, selection)
        mine |= {n: (more[n], added[n] or DEFAULT) for n in more}
        if more:
            order = {name: place for place, name in enumerate(exports)}
            found[label] = [mine[n] for n in sorted(mine, key=lambda n: order.get(n, len(order)))]
    return chosen, found


def _available(declared: ObjectType, view: View) -> Mapping[str, Export]:
    if view == "detail" or not declared.detail_only:
        return declared.exports
    return {n: e for n, e in declared.exports.items() if n not in declared.detail_only}


def _check_brackets(available: Mapping[str, Export], selection: Selection) -> None:
    for name, inner in selection.added.items():
        if inner is not None and name in available and available[name].nested is None:
            raise BadRequest(f"{name} has no fields of its own to be chosen in brackets.")


def _hint(declared: ObjectType, view: View, available: Mapping[str, Export], unknown: str) -> str:
    if unknown in declared.detail_only and unknown not in available:
        return f" {unknown} is shown in details only."
    hint = ""
    if unknown == "meta":
        inside = [name for name, export in available.items() if export.in_meta]
        hint = f" What is in meta is named directly: {', '.join(inside)}."
    elif view == "list":
        hint = declared.hint(unknown)
    return hint or suggest(unknown, available)


def _defaults(declared: ObjectType, view: View, i18n: bool) -> Iterable[str]:
    content_class = declared.content_class
    if not issubclass(content_class, Entry):
        return declared.exports
    languages = content_class.i18n_default_fields
    if view == "detail":
        hidden = {name for name, export in declared.exports.items() if export.only_named}
        return declared.exports.keys() - hidden - {*(() if i18n else languages)}
    if view == "nested":
        return content_class.nested_default_fields
    return (*content_class.listing_default_fields, *(languages if i18n else ()))


def _refuse_circles(
    declared: ObjectType, chosen: Chosen, above: tuple[tuple[ObjectType, Selection], ...] = ()
) -> None:
    for export, inner in chosen:
        for target, selection in _embedded_types(export, inner):
            if (target, selection) in above:
                raise DeclarationError(
                    f"{declared.content_class.__name__}.{export.name} always brings itself again, "
                    "without an end; take it out of nested_default_fields or of what is shown."
                )
            further = choose(target, "nested", selection)
            _refuse_circles(target, further, (*above, (target, selection)))


def _embedded_types(export: Export, inner: Selection) -> Iterator[tuple[ObjectType, Selection]]:
    column = export.column
    if column is None or export.source is not None:
        return
    if column.target or column.child:
        yield cast(ObjectType, column.target or column.child), export.shown or inner
    for block in column.related_blocks.values():
        assert block.target is not None
        yield block.target, block.shown or DEFAULT


#: How many relations, tag fields and lists of child objects may be inside the brackets of one
#: ``fields``. Each costs a database a statement.
MAX_INSIDE = 100
#: An embedded object counts once more for each time that its texts have this many characters, and,
#: because that takes longer, for each time that this many are converted to a format.
TEXT_SIZE = 5000
CONVERTED_SIZE = {"html": 1000, "markdown": 100, "db_markdown": 100}
#: How many levels of embedded objects are made by one function.
MOST_INSIDE = 8
#: How many assemblers are cached.
COMPILED = 512
#: Takes the getter of each key and returns the function from a row to its answer.
Assembler = Callable[..., Callable[[Row], dict[str, Any]]]
#: How often the way to the children may stand in one path.
MOST_CHILDREN = 2
#: Rows, and in how many places of the answer each stands.
Level = tuple[Sequence[Row], Sequence[int]]


class Source(Protocol):
    """Where the objects that rows point to come from, for one request.

    :ivar addresses: the addresses of the request.
    :ivar viewer: its sender.
    """

    addresses: Addresses
    viewer: Viewer

    def fetch(
        self,
        endpoint: str,
        columns: Sequence[str],
        relations: Iterable[tuple[Collection[int], bool]],
    ) -> Sequence[Mapping[int, Row]]:
        """The rows that relations to an endpoint point to, as of :meth:`Reader.fetch`.

        :param columns: the columns; of pages the ``url_path`` first.
        :param relations: for each the ids, and whether it leads only to pages of the requested
            site.
        """

    def select(self, query: Query) -> Selected:
        """As :meth:`Reader.select`."""


class Key(NamedTuple):
    """One key of a plan.

    :param export: what it shows.
    :param value: makes JSON of what is stored; None if that is its own JSON.
    :param row_index: as :attr:`Compiled.row_index`.
    :param volatile: whether it depends on more than the content.
    :param plan: how the objects in its value are made, in place of ``value``; None: there are none.
    :param slot: the slot of the lookup of their ids; None: they are child objects.
    :param many: whether its value has any number of them.
    """

    export: Export
    value: Bind | None
    row_index: int | None
    volatile: bool = False
    plan: Plan | None = None
    slot: int | None = None
    many: bool = False

    @property
    def column(self) -> str:
        """The column of a facet."""
        stored = self.export.column
        return self.export.name if stored is None else stored.name


@dataclass(frozen=True)
class Plan:
    """How the rows of one type become answers.

    :param layout: the columns and steps needed.
    :param keys: the keys, in the order of answers.
    :param variants: the plans for rows of types with keys of their own, by label.
    :param facets: the keys whose values are counted in a list of them.
    """

    layout: RowLayout
    keys: tuple[Key, ...]
    variants: Mapping[str, Plan]
    facets: tuple[Key, ...] = ()

    @cached_property
    def volatile(self) -> bool:
        """Whether the answers depend on more than the content."""
        plans = (self, *self.variants.values())
        return any(key.volatile for plan in plans for key in (*plan.keys, *plan.facets))

    @property
    def size(self) -> int:
        """Roughly how much memory the plan takes, in units of 5,000 bytes."""
        return 1 + len(self.layout.steps)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that rows need to have."""
        return tuple(self.layout.columns)

    def bind(self, context: Context) -> Callable[[Row], dict[str, Any]]:
        """The function from a row to its answer, for one request."""
        assemble, binds = self._assembly
        build = assemble(*[bind(context) for bind in binds])
        if not self.variants:
            return build
        of_type = {label: plan.bind(context) for label, plan in self.variants.items()}
        index = self.layout.index_of("type")
        return lambda row: of_type.get(row[index], build)(row)

    @cached_property
    def _assembly(self) -> tuple[Assembler, Sequence[Bind]]:
        """The function that puts the values of keys together, as one would write it by hand, and
        what makes its arguments.

        Its source contains only names that the types declare, nothing that a client sends.
        """
        binds: list[Bind] = []
        source = _literal(self, "row", binds)
        names = ", ".join([f"get{number}" for number in range(len(binds))])
        return _compiled(f"lambda {names}: lambda row: {source}"), binds

    @cached_property
    def _alike(self) -> Mapping[int, Sequence[Lookup]]:
        """The lookups that are made in one fetch, by the slot of the first of them."""
        found: defaultdict[Hashable, list[Lookup]] = defaultdict(list)
        for step in self.layout.steps:
            if isinstance(step, Lookup):
                levels = frozenset(origin.start.level for origin in step.origins)
                found[levels, step.endpoint, *step.layout.columns].append(step)
        return {alike[0].slot: alike for alike in found.values()}

    def look_up(
        self, rows: Sequence[Row], source: Source, most: int | None = None
    ) -> list[Mapping[Any, Any]]:
        """Fetches what the rows point to, and what that points to, in one fetch for all
        relations of the same rows to the same columns of an endpoint.

        Counts meanwhile how many objects the answer would embed. A row that stands in several
        places counts as often, with everything below it, although it is fetched once. One with
        long texts counts several times (:data:`TEXT_SIZE`), so that the size is bounded too.

        :param most: the maximum of that number; None: no maximum.
        :raises BadRequest: if it would be exceeded; nothing has been built yet.
        """
        levels: list[Level] = [(rows, [1] * len(rows))]
        related: list[Mapping[Any, Any]] = [{}] * len(self.layout.steps)
        places: dict[int, Mapping[int, int]] = {}
        embedded = 0
        for slot, step in enumerate(self.layout.steps):
            if isinstance(step, Lookup):
                if slot not in places:
                    alike = self._alike[slot]
                    places |= {each.slot: _places(each, levels) for each in alike}
                    wanted = [each for each in alike if places[each.slot]]
                    relations = [(places[each.slot], each.within_site) for each in wanted]
                    if relations:
                        found = source.fetch(step.endpoint, step.layout.columns, relations)
                        for each, own in zip(wanted, found, strict=True):
                            related[each.slot] = own
                reached: Sequence[Row] = [*related[slot].values()]
                times: Sequence[int] = [places[slot][i] for i in related[slot]]
            elif isinstance(step, Way):
                origin, times = _starting(step.start, levels[step.start.level])
                related[slot], reached, times = _pages_along(step, origin, times, source, most)
            else:
                assert isinstance(step, Entries)
                origin, times = _starting(step.start, levels[step.start.level])
                reached = [entry for row in origin for entry in row[step.index]]
                pairs = zip(origin, times, strict=True)
                times = [n for row, n in pairs for _ in row[step.index]]
            if reached and step.embedded and most is not None:
                embedded += _count(step.layout, reached, times, source.addresses)
                if embedded > most:
                    raise BadRequest(
                        f"The answer would embed more than {most} objects. Ask for fewer: name "
                        "less in fields, with fewer brackets, or take a lower limit."
                    )
            levels.append((reached, times))
        return related

    def shown(self, related: Sequence[Mapping[Any, Any]]) -> Iterator[tuple[str, int | None]]:
        """What the rows point to, by endpoint and id; without an id any object of the endpoint."""
        for step, found in zip(self.layout.steps, related, strict=True):
            if isinstance(step, Lookup):
                yield from ((step.endpoint, identity) for identity in sorted(found))
            elif isinstance(step, Way):
                # Any page can come to stand on a way, as on a list.
                yield step.layout.type.served_at.name, None


def _starting(start: RowLayout, level: Level) -> Level:
    if start.only is None:
        return level
    (rows, times), (index, labels) = level, start.only
    kept = [row[index] in labels for row in rows]
    return [*compress(rows, kept)], [*compress(times, kept)]


def _places(lookup: Lookup, levels: Sequence[Level]) -> Mapping[int, int]:
    """The ids that rows point to, and from how many places."""
    found: dict[int, int] = {}
    for start, index, read in lookup.origins:
        rows, times = _starting(start, levels[start.level])
        for row, n in zip(rows, times, strict=True):
            if row[index] is not None:
                for identity in read(row[index]):
                    found[identity] = found.get(identity, 0) + n
    return found


def _pages_along(
    way: Way, origin: Sequence[Row], times: Sequence[int], source: Source, most: int | None
) -> tuple[Mapping[Any, Sequence[Row]], Sequence[Row], Sequence[int]]:
    """The pages that rows lead to, by their value of the way's column; the same pages in order;
    and in how many places each stands."""
    places, itself = Counter[Any](), Counter[Any]()
    for row, n in zip(origin, times, strict=True):
        if row[way.index] is not None:
            places[row[way.index]] += n
            itself[row[way.origin]] += n
    if way.by == "url_path":
        places = _places_above(places, source.addresses)
    if not places:
        return {}, [], []
    # With more pages the answer is refused, so they need not be read; the rows themselves, which
    # may be among them, are not shown.
    enough = None if most is None else most + len(origin) + 1
    condition, limit, each = Filter(way.by, "in", tuple(places)), None, way.each
    if len(places) == 1:
        # The first ones of a single value are found without looking at the others.
        condition, limit, each = Filter(way.by, "eq", next(iter(places))), way.each, None
    limit = enough if limit is None and each is None else limit
    query = Query(
        way.layout.type.served_at.name,
        (*way.layout.columns, "id", way.by),
        source.viewer,
        filters=(condition,),
        limit=limit,
        count=False,
        each=each,
    )
    found: defaultdict[Any, list[Row]] = defaultdict(list)
    reached: dict[int, tuple[Row, int]] = {}
    for row in source.select(query).rows:
        *_, identity, key = row
        found[key].append(row)
        # Only translations have the same value as the page that they are those of.
        same = itself[identity] if way.by == "translation_key" else 0
        reached[identity] = row, places[key] - same
    standing = [(row, n) for row, n in reached.values() if n]
    return found, [row for row, _ in standing], [n for _, n in standing]


def _places_above(paths: Mapping[str, int], addresses: Addresses) -> Counter[str]:
    """The paths above paths, and from how many places.

    Each is looked at once for all that are equally far below it: a deep tree has far more pairs.
    """
    found = Counter[str]()
    while paths:
        nearest = Counter[str]()
        for path, n in paths.items():
            if (above := addresses.above(path)) is not None:
                nearest[above] += n
        found.update(nearest)
        paths = nearest
    return found


def _count(
    layout: RowLayout, rows: Sequence[Row], times: Sequence[int], addresses: Addresses
) -> int:
    """How many objects embedded rows count for.

    :param times: in how many places each stands.
    """
    count = (1 + sum([made(addresses) for made in layout.made])) * sum(times)
    for row, n in zip(rows, times, strict=True) if layout.texts else ():
        size = 0
        for index in layout.texts:
            value = row[index]
            # Most are texts, or missing.
            size += len(value) if type(value) is str else _size(value)
        count += size // TEXT_SIZE * n
    for start, index, read in layout.rich.origins if rows else ():
        if start.level == layout.level:
            # A text is converted once, wherever it stands.
            converted = (t for row in _starting(start, (rows, ()))[0] for t in read(row[index]))
            count += sum(map(len, converted)) // CONVERTED_SIZE[layout.rich.format]
    return count


def _texts(value: Any) -> Iterable[str]:
    return (value,) if isinstance(value, str) else ()


def _size(value: Any) -> int:
    """The size of a value in characters. An entry of a list takes as much time as thirty."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, tuple):
        return 30 * len(value) + sum(len(entry) for entry in value if isinstance(entry, str))
    # Another type can store something else in a column of the same name.
    if value and isinstance(value, list | dict):
        text = orjson.dumps(value).decode()
        return len(text) + 30 * text.count(",")
    return 0


class Planner:
    """Makes plans for one instance.

    :param limit_max: how many children of a page its way to them shows at most; None: all.
    :raises DeclarationError: if objects would embed each other endlessly, or more than an answer
        can have.
    """

    def __init__(
        self, endpoints: Collection[Endpoint], i18n: bool, limit_max: int | None = None
    ) -> None:
        self._endpoints = {endpoint.name: endpoint for endpoint in endpoints}
        self._i18n = i18n
        self._limit_max = limit_max
        for declared in (one for endpoint in endpoints for one in endpoint.every_type):
            _refuse_circles(declared, [(export, DEFAULT) for export in declared.exports.values()])
        for declared in (t for endpoint in endpoints for t in endpoint.types.values()):
            try:
                self.plan(declared, "detail")
            except BadRequest as error:
                name = declared.content_class.__name__
                raise DeclarationError(f"{name} cannot be shown: {error.description}") from None

    def plan(
        self,
        declared: ObjectType,
        view: View,
        selection: Selection = DEFAULT,
        several: Several = NO_OTHERS,
        rich_text_format: str = "db_html",
    ) -> Plan:
        """The plan for objects and a client's selection.

        :param declared: the type whose keys all of them have.
        :param several: their types, if more of these can be chosen from.
        :raises BadRequest: if the selection names what the objects do not show, or too much.
        """
        layout = RowLayout(declared, rich=RichTexts(rich_text_format))
        plan = self._plan(layout, *choose_each(declared, view, selection, self._i18n, several))
        layout.rich.look_up(layout.steps, self._endpoints)
        return plan

    # Compiling.

    def _plan(self, layout: RowLayout, chosen: Chosen, variants: Mapping[str, Chosen]) -> Plan:
        made = {_origin(export): self._key(layout, export, inner) for export, inner in chosen}
        keys = (*made.values(),)
        # What several types have of the same declaration is read and fetched once.
        labels: defaultdict[Hashable, set[str]] = defaultdict(set)
        for label, own in variants.items():
            for export, _ in own:
                labels[_origin(export)].add(label)
        plans = {}
        for label, own in variants.items():
            for export, inner in own:
                if (origin := _origin(export)) not in made:
                    # The same rows, where they are of these types.
                    declared = layout.type.served_at.types[label]
                    only = layout.index_of("type"), frozenset(labels[origin])
                    part = replace(layout, type=declared, only=only)
                    made[origin] = self._key(part, export, inner)
            mine = tuple(made[_origin(export)] for export, _ in own)
            plans[label] = Plan(layout, mine, {})
        return Plan(layout, keys, plans)

    def _key(self, layout: RowLayout, export: Export, selection: Selection) -> Key:
        if (source := export.source) is not None:
            value, kind, index = source(layout)
            value = _serialized(export, value, kind)
            # It shows nothing but stored texts.
            if isinstance(export.field, RichText) and layout.rich.format != "db_html":
                layout.rich.origins.append(Origin(layout, index, _texts))
                value = _written(value, layout.rich.writer)
            return Key(export, value, index, export.volatile)
        if export.way is not None:
            return self._way(export, layout, export.way, selection)
        column, slot = export.column, None
        assert column is not None
        if column.target is None and column.child is None:
            return self._blocks(export, layout, column)
        index, many = layout.index_of(column.name), column.kind.many
        if column.child is not None:
            inner, many = layout.children(column.name, column.child), True
        else:
            lookup = layout.related(column)
            inner, slot = lookup.layout, lookup.slot
        plan = self._nested(inner, export, selection)
        return Key(export, None, index, plan.volatile, plan, slot, many)

    def _nested(self, layout: RowLayout, export: Export, selection: Selection) -> Plan:
        types = layout.type.endpoint.types if layout.type.endpoint is not None else {}
        several = Several(types.values(), types)
        chosen = choose_each(layout.type, "nested", export.shown or selection, False, several)
        plan = self._plan(layout, *chosen)
        inside = 0
        for step in layout.steps if selection is not DEFAULT else ():
            columns = map(step.layout.type.columns.get, step.layout.columns)
            tags = sum(isinstance(column.kind, kinds.Tags) for column in columns if column)
            inside += (step.start.level > 0) + tags
        if inside > MAX_INSIDE:
            raise BadRequest(
                f"fields asks for more than {MAX_INSIDE} relations, tag fields and lists of child "
                "objects inside brackets. Name fewer of them."
            )
        return plan

    def _way(
        self, export: Export, layout: RowLayout, base: ObjectType, selection: Selection
    ) -> Key:
        own, way = layout.index_of("id"), layout.way(export.name, base, self._limit_max)
        if way.layout.above > MOST_CHILDREN:
            raise BadRequest(f"fields has children inside children more than {MOST_CHILDREN} deep.")
        plan = self._nested(way.layout, export, selection)

        def bind(context: Context) -> Getter:
            found, build = context.related[way.slot], plan.bind(context)
            # Ancestors are found by their paths, which follow from that of the page.
            keys = context.addresses.trail if way.by == "url_path" else lambda key: (key,)
            return lambda row: [
                build(page)
                for key in keys(row[way.index])
                for page in found.get(key, ())
                if page[-2] != row[own]
            ]

        return Key(export, bind, None, plan.volatile)

    def _blocks(self, export: Export, layout: RowLayout, column: Column) -> Key:
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
        rich, texts = layout.rich, column.rich_blocks
        if rich.format == "db_html":
            texts = frozenset()
        elif texts:
            rich.origins.append(Origin(layout, index, column.rich_texts))
        related = []
        for name, inner in column.related_blocks.items():
            lookup = layout.related_block(column, name)
            chosen = choose(lookup.layout.type, "nested", inner.shown or DEFAULT)
            related.append((name, lookup.slot, self._plan(lookup.layout, chosen, {})))

        def bind(context: Context) -> Getter:
            converters, hiding = {**functions}, {}
            converters |= dict.fromkeys(texts, rich.writer(context)) if texts else {}
            for name, slot, plan in related:
                found = context.related[slot]
                converters[name] = id_converter(found, _embedding(found, plan.bind(context)))
                if writers:
                    # A field may write a value without what marks the blocks inside.
                    hiding[name] = id_converter(found, int)

            def blocks(stored: Any) -> Any:
                stored = convert_blocks(stored, {}, hiding) if hiding else stored
                return convert_blocks(stored, writers, converters)

            return blocks

        return Key(export, bind, index, any(plan.volatile for *_, plan in related))


def _origin(export: Export) -> Hashable:
    """What is the same for the keys of several types that come from the same declaration."""
    stored = export.column is not None and export.column.field
    return export.name, id(stored or export)


def _literal(plan: Plan, row: str, binds: list[Bind]) -> str:
    """The source of the answer that is made of a row.

    :param row: the variable with the row.
    :param binds: what makes the arguments of the source; more are added.
    """
    body: dict[str, str] = {}
    meta: dict[str, str] = {}
    for number, key in enumerate(plan.keys):
        value = row if key.row_index is None else f"{row}[{key.row_index}]"
        if key.plan is not None:
            value = _inner(key, key.plan, value, f"{row}_{number}", binds)
        elif key.value is not None:
            value = f"{_argument(key.value, binds)}({value})"
        (meta if key.export.in_meta else body)[key.export.name] = value
    if meta:
        first = {"id": body.pop("id")} if next(iter(body), None) == "id" else {}
        inner = ", ".join([f"{name!r}: {value}" for name, value in meta.items()])
        body = {**first, "meta": f"{{{inner}}}", **body}
    whole = ", ".join([f"{name!r}: {value}" for name, value in body.items()])
    return f"{{{whole}}}"


def _inner(key: Key, plan: Plan, value: str, row: str, binds: list[Bind]) -> str:
    rows, slot = value, key.slot
    if slot is not None:
        found = _argument(lambda context: context.related[slot].get, binds)
        rows = f"map({found}, {value})" if key.many else f"{found}({value})"
    # Python reads only so many brackets inside each other.
    if plan.variants or row.count("_") > MOST_INSIDE:
        made = f"{_argument(plan.bind, binds)}({row})"
    else:
        made = _literal(plan, row, binds)
    if key.many:
        return f"[{made} for {row} in {rows} if {row} is not None]"
    return f"(None if ({row} := {rows}) is None else {made})"


def _argument(bind: Bind, binds: list[Bind]) -> str:
    binds.append(bind)
    return f"get{len(binds) - 1}"


@lru_cache(COMPILED)
def _compiled(source: str) -> Assembler:
    """The function with a source, which the same selection of any relation to a type shares."""
    assembler: Assembler = eval(source, {})  # noqa: S307
    return assembler


def _embedding(found: Mapping[int, Row], build: Callable[[Row], Any]) -> Callable[[int], Any]:
    return lambda identity: build(found[identity])


# Writing values.

#: By kind, the field classes whose values orjson writes exactly as marshmallow does. Times are not
#: among them: it writes 03:04:05.010027 as 03:04:05.10027.
_PLAIN: dict[type[Any], tuple[type[fields.Field[Any]], ...]] = {
    kinds.Text: (fields.String, fields.Url, fields.Email, RichText),
    kinds.Integer: (fields.Integer,),
    kinds.Boolean: (fields.Boolean,),
    kinds.Float: (fields.Float,),
    kinds.Date: (fields.Date,),
    kinds.DateTime: (Instant,),
    kinds.Tags: (Tags,),
    kinds.Json: (fields.Raw, Rendition),
    kinds.Blocks: (Blocks,),
}


def _serialized(export: Export, value: Bind | None, kind: kinds.Kind | None) -> Bind | None:
    field: Any = export.field
    as_it_is = getattr(field, "format", None) in (None, "iso")
    as_it_is = as_it_is and not getattr(field, "as_string", False)
    if as_it_is and type(field) in _PLAIN.get(type(kind), ()):
        return value
    return _written(value, lambda context: _serializer(field))


def _written(value: Bind | None, writer: Bind) -> Bind:
    if value is None:
        return writer

    def bind(context: Context) -> Getter:
        get, write = value(context), writer(context)
        return lambda stored: write(get(stored))

    return bind


def facet_of(declared: ObjectType, export: Export) -> Key:
    """The facet of a key, that of a stored field or ``type``. Ids and tags stay as they are."""
    column, source = export.column, export.source
    value: Bind | None = None
    if column is not None and source is not None and not column.kind.many:
        value = _serialized(export, *source(RowLayout(declared))[:2])
    return Key(export, value, None, export.volatile)


def _block_writer(column: Column) -> Callable[[Any], Any]:
    write = _serializer(answer_field(column.field))

    def represent(value: Any) -> Any:
        # Nothing is left of a value that does not fit.
        try:
            return write(None if value is None else column.to_python(column.kind.read(value)))
        except ValueError:
            return None

    return represent


def _serializer(field: Any) -> Callable[[Any], Any]:
    if not isinstance(field, fields.Field):
        return cast(Callable[[Any], Any], field)
    return lambda value: field.serialize("", value, accessor=itself)
