"""Where the values of an answer come from.

A source is compiled for a :class:`RowLayout`, the columns that a query has to request. The result,
bound to the :class:`Context` of one request, is a function from a row to a value. A marshmallow
field then serialises the value.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple, TypeVar

from flask_contentapi import kinds
from flask_contentapi.addresses import Addresses
from flask_contentapi.declarations import Column, Endpoint, ObjectType, Source
from flask_contentapi.kinds import convert_blocks, id_converter, ids_in
from flask_contentapi.markup import KINDS, convert, targets_in
from flask_contentapi.query import Row
from flask_contentapi.renditions import FocalPoint, Picture

#: How many classes of objects that lack some fields are kept; declarations decide which these are.
PARTIAL_CLASSES = 1024
#: Takes a row, or a value in it.
Getter = Callable[[Any], Any]
S = TypeVar("S", bound="Step")


@dataclass(frozen=True, slots=True)
class Context:
    """What one request adds to the rows.

    :param related: for each step what it found: rows by id, for a :class:`Way` the rows of each
        value; nothing for :class:`Entries`.
    """

    addresses: Addresses
    related: Sequence[Mapping[Any, Any]]


Bind = Callable[[Context], Getter]


class Compiled(NamedTuple):
    """How values are made from rows.

    :param bind: what makes them; None if they are the stored ones.
    :param kind: their kind; None if they can be anything.
    :param row_index: the index in a row of what they are made from; None: the row itself.
    """

    bind: Bind | None
    kind: kinds.Kind | None
    row_index: int | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """A step from rows to what is inside them or what they point to.

    :param start: the layout of these rows.
    :param slot: its index among the steps, and so in :attr:`Context.related`.
    :param layout: the layout of the rows that it leads to.
    :param embedded: whether these are objects of the answer, not only read for it.
    """

    start: RowLayout
    slot: int
    layout: RowLayout
    embedded: bool


class Origin(NamedTuple):
    """Rows that something is read from.

    :param start: their layout.
    :param row_index: the index of a value in them.
    :param read: gives what is read of that value: the ids that it points to, or its texts.
    """

    start: RowLayout
    row_index: int
    read: Callable[[Any], Iterable[Any]]


@dataclass(frozen=True, slots=True)
class Lookup(Step):
    """Objects that rows point to, to be fetched in one go.

    The first column of pages is their ``url_path``, which tells their site.

    :param endpoint: where they are served.
    :param within_site: whether to find only pages of the requested site.
    :param origins: the rows that point to them, with the ids.
    """

    endpoint: str
    within_site: bool
    origins: Sequence[Origin]


@dataclass(frozen=True, slots=True)
class Way(Step):
    """Pages that pages lead to by another column than the id, to be fetched in one go.

    :param origin: the index of the id in the rows that it starts from.
    :param index: the index in them of what leads on.
    :param by: the column, in which a page may have the same value as others.
    :param each: how many pages of each value at most; None: all.
    """

    origin: int
    index: int
    by: str
    each: int | None


@dataclass(frozen=True, slots=True)
class Entries(Step):
    """The child objects in a column of rows."""

    index: int


#: The kinds of values that can be long.
_LONG = kinds.Text | kinds.Json | kinds.Many | kinds.Children
#: The columns that are needed of the targets of rich texts.
_TARGETS = {"pages": ("url_path",), "documents": ("file",), "images": ("file", "width", "height")}


@dataclass(slots=True)
class RichTexts:
    """The rich texts of a plan, whose targets are fetched together when all other rows are there.

    :param slots: for each endpoint of targets its index in :attr:`Context.related`.
    """

    format: str = "db_html"
    origins: list[Origin] = field(default_factory=list)
    slots: dict[str, int] = field(default_factory=dict)

    def look_up(self, steps: list[Step], endpoints: Mapping[str, Endpoint]) -> None:
        """Adds the lookups of all targets, as the last steps."""
        for name, columns in _TARGETS.items() if self.origins else ():
            layout = RowLayout(endpoints[name].base, [*columns], steps, len(steps) + 1)
            origins = [o._replace(read=_targets(name, o.read)) for o in self.origins]
            self.slots[name] = len(steps)
            steps.append(Lookup(layout, len(steps), layout, True, name, False, origins))

    def writer(self, context: Context) -> Callable[[Any], Any]:
        """The function from a text to the one in answers."""
        addresses, is_stored = context.addresses, self.format == "db_markdown"
        found = {kind: context.related[self.slots[name]] for kind, name in KINDS.items()}

        def resolve(kind: str, identity: int) -> dict[str, Any] | None:
            row = found[kind].get(identity)
            key = "src" if kind == "image" else "href"
            if row is None or is_stored:
                return None if row is None else {key: f"wagtail://{kind}/{identity}"}
            address = addresses.html_url if kind == "page" else addresses.download_url
            more = zip(("width", "height"), row[1:], strict=False)
            return {key: url, **dict(more)} if (url := address(row[0])) else None

        # An object can stand in many places.
        once = cache(lambda text: convert(text, self.format, resolve))
        return lambda text: once(text) if isinstance(text, str) else text


def _targets(
    endpoint: str, texts: Callable[[Any], Iterable[str]]
) -> Callable[[Any], Iterable[int]]:
    def read(value: Any) -> Iterable[int]:
        found = (target for text in texts(value) for target in targets_in(text))
        return [identity for name, identity in found if name == endpoint]

    return read


@dataclass(slots=True)
class RowLayout:
    """The columns that the rows of one type will have, and the steps that start from them.

    :param columns: their names; more are added while sources are compiled.
    :param steps: all steps of the plan that is being compiled, in the order they are made.
    :param texts: the indexes of the columns whose values can be long, and are written or read anew
        in each place that a row stands in.
    :param made: for each of these, gives how many more objects a row counts for.
    :param level: the index of the rows among the levels: 0 for the rows of the list, then one level
        for each step.
    :param only: if these are the rows of some types alone, the index of the type in them, and the
        labels of these types.
    :param above: how often the way to the children led here.
    :param rich: the rich texts of the plan.
    :param images: lookups from these rows that serve all renditions of a relation, by its name and
        :attr:`only`.
    """

    type: ObjectType
    columns: list[str] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    level: int = 0
    texts: set[int] = field(default_factory=set)
    made: list[Callable[[Addresses], int]] = field(default_factory=list)
    only: tuple[int, frozenset[str]] | None = None
    above: int = 0
    rich: RichTexts = field(default_factory=RichTexts)
    images: dict[Any, Lookup] = field(default_factory=dict)

    def index_of(self, name: str) -> int:
        """The index of a column in the rows; adds a missing column."""
        if name not in self.columns:
            self.columns.append(name)
        return self.columns.index(name)

    def note_text(self, name: str) -> int:
        """As :meth:`index_of`, for a column that is written or read anew in each place; notes it if
        its values can be long."""
        index, column = self.index_of(name), self.type.columns.get(name)
        # Paths are in no column.
        if column is None or isinstance(column.kind, _LONG):
            self.texts.add(index)
        return index

    def related(self, column: Column, *, embedded: bool = True) -> Lookup:
        """Adds a lookup of the objects that a relation to one or many points to."""
        return self._lookup(column, column.name, column.ids, embedded)

    def related_block(self, column: Column, block: str, *, embedded: bool = True) -> Lookup:
        """Adds a lookup of the objects that the blocks of a type in a column point to."""
        read = partial(ids_in, block=block)
        return self._lookup(column.blocks[block], column.name, read, embedded)

    def _lookup(
        self, relation: Column, name: str, ids: Callable[[Any], Iterable[int]], embedded: bool
    ) -> Lookup:
        assert relation.target is not None
        origins = [Origin(self, self.index_of(name), ids)]
        return self._add(
            Lookup,
            relation.target,
            ["url_path"] * relation.target.served_at.tree,
            embedded=embedded,
            endpoint=relation.target.served_at.name,
            within_site=relation.within_site,
            origins=origins,
        )

    def _add(
        self,
        step: Callable[..., S],
        declared: ObjectType,
        columns: Iterable[str] = (),
        *,
        embedded: bool,
        above: int = 0,
        **own: Any,
    ) -> S:
        slot, above = len(self.steps), self.above + above
        rows = RowLayout(declared, [*columns], self.steps, slot + 1, above=above, rich=self.rich)
        added = step(self, slot, rows, embedded, **own)
        self.steps.append(added)
        return added

    def way(self, name: str, base: ObjectType, limit: int | None) -> Way:
        """Adds the way of some name to other pages.

        :param base: the base of their types.
        :param limit: how many children of a page it leads to at most; None: all.
        """
        by, column = _WAYS[name]
        index, is_down = self.index_of(column), name == "children"

        return self._add(
            Way,
            base,
            embedded=True,
            above=is_down,
            origin=self.index_of("id"),
            index=index,
            by=by,
            each=limit if is_down else None,
        )

    def children(self, column: str, child: ObjectType, *, embedded: bool = True) -> RowLayout:
        """The layout of the child objects in a column, with all their stored fields."""
        index = self.index_of(column) if embedded else self.note_text(column)
        return self._add(Entries, child, child.columns, embedded=embedded, index=index).layout


#: The column by which each way finds pages, and the column of a page with its value there.
_WAYS = {
    "ancestors": ("url_path", "url_path"),
    "children": ("parent", "id"),
    "translations": ("translation_key", "translation_key"),
}


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored field, as it is, except that ids of hidden objects are left out."""

    column: str

    def __call__(self, layout: RowLayout) -> Compiled:
        column, index = layout.type.columns[self.column], layout.note_text(self.column)
        kind = column.kind if column.is_plain else None
        if column.target is not None:
            return Compiled(_attribute(layout, self.column), kind)
        return Compiled(None if column.is_plain else lambda context: column.to_python, kind, index)


def _type(layout: RowLayout) -> Compiled:
    """The label of an object's type; None if the type is not declared (contract, Records)."""
    if layout.type.endpoint is None:
        label = layout.type.label
        return Compiled(lambda context: lambda row: label, kinds.Text())
    declared = {label: label for label in layout.type.endpoint.types}.get
    return Compiled(lambda context: declared, kinds.Text(), layout.index_of("type"))


def _detail_url(layout: RowLayout) -> Compiled:
    """The address of an object's detail view, with the ``site`` parameter if needed."""
    endpoint, index = layout.type.served_at, layout.index_of("id")
    path = layout.index_of("url_path") if endpoint.tree else None

    def bind(context: Context) -> Getter:
        addresses = context.addresses
        start, here = addresses.detail_url(endpoint.name), addresses.here
        if path is None:
            return lambda row: f"{start}{row[index]}/"

        def address(row: Row) -> str:
            site = "" if row[path].startswith(here) else addresses.other_site(row[path])
            return f"{start}{row[index]}/?site={site}" if site else f"{start}{row[index]}/"

        return address

    return Compiled(bind, kinds.Text())


def _address(column: str, method: str) -> Source:
    """The address that a column leads to, made by a method of :class:`Addresses`."""
    made = attrgetter(f"addresses.{method}")
    return lambda layout: Compiled(made, kinds.Text(), layout.note_text(column))


def _location(layout: RowLayout) -> Compiled:
    """The address that a redirect leads to: that of its page, or else its link."""
    page, link = layout.index_of("redirect_page"), layout.note_text("redirect_link")
    lookup = layout.related(layout.type.columns["redirect_page"], embedded=False)
    path = lookup.layout.index_of("url_path")

    def bind(context: Context) -> Getter:
        found, html_url = context.related[lookup.slot], context.addresses.html_url

        def location(row: Row) -> str | None:
            of_page = found.get(row[page])
            return (of_page and html_url(of_page[path])) or row[link] or None

        return location

    return Compiled(bind, kinds.Text())


#: A width or height, in pixels, that no image has.
_TOO_LONG = 1 << 31


def picture_of(layout: RowLayout) -> Callable[[Row], Picture]:
    """The function from the row of an image to what its renditions are made from."""
    names = "id file width height focal_point_x focal_point_y focal_point_width focal_point_height"
    get = itemgetter(*map(layout.index_of, (*names.split(), "description", "title")))

    def picture(row: Row) -> Picture:
        identity, file, width, height, *point, description, title = get(row)
        # Larger ones are mistakes; what is scaled up from them would be too large for JSON.
        is_sized = 0 < (width or 0) < _TOO_LONG and 0 < (height or 0) < _TOO_LONG
        focal_point = None if None in point else FocalPoint(*point)
        size = (width, height) if is_sized else None
        return Picture(identity, file or "", size, focal_point, description or title)

    return picture


def _renditions(layout: RowLayout) -> Compiled:
    """The renditions of an image that the site has named."""
    endpoint, picture = layout.type.served_at.name, picture_of(layout)
    layout.made.append(lambda addresses: len(addresses.renditions.names))

    def bind(context: Context) -> Getter:
        addresses = context.addresses
        names = addresses.renditions.names

        def renditions(row: Row) -> Any:
            shown = picture(row)
            return {name: addresses.rendition(endpoint, shown, name) for name in names}

        return renditions

    return Compiled(bind, kinds.Json())


def rendition_of(relation: str, spec: str) -> Source:
    """One rendition of the image that a relation leads to; None if it may not be seen."""

    def compile(layout: RowLayout) -> Compiled:
        index, key = layout.index_of(relation), (relation, layout.only)
        if key not in layout.images:
            layout.images[key] = layout.related(layout.type.columns[relation])
        lookup = layout.images[key]
        endpoint, picture = lookup.endpoint, picture_of(lookup.layout)

        def bind(context: Context) -> Getter:
            found, addresses = context.related[lookup.slot], context.addresses
            name = addresses.renditions.named(spec)

            def rendition(row: Row) -> Any:
                image = found.get(row[index])
                made = image and addresses.rendition(endpoint, picture(image), name)
                return {"url": made["url"], "full_url": made["url"], **made} if made else None

            return rendition

        return Compiled(bind, kinds.Json())

    return compile


def computed(compute: Callable[[Any], Any], needs: Sequence[str] | None = None) -> Source:
    """A value that the site's code computes from an object.

    The object has the stored fields that are needed: texts, numbers and dates as Python values,
    tags as a tuple, child objects as instances, and relations as ids, or None if the target is
    hidden.

    :param compute: the code, given an instance of the site's class.
    :param needs: the stored fields it reads; None: all but ``parent`` and ``alias_of``.
    """

    def compile(layout: RowLayout) -> Compiled:
        build = _builder(layout, needs)

        def bind(context: Context) -> Getter:
            instance = build(context)
            return lambda row: compute(instance(row))

        return Compiled(bind, None)

    return compile


#: The sources of keys that no stored field has, by the name of the key.
BUILT_IN: Mapping[str, Source] = {
    "detail_url": _detail_url,
    "download_url": _address("file", "download_url"),
    "html_url": _address("url_path", "html_url"),
    "location": _location,
    "renditions": _renditions,
    "type": _type,
}


def attribute(name: str) -> Callable[[Any], Any]:
    """A function that reads a property, or calls a method, of an object."""

    def read(instance: Any) -> Any:
        value = getattr(instance, name)
        return value() if callable(value) else value

    return read


def _builder(layout: RowLayout, needs: Sequence[str] | None = None) -> Bind:
    columns = layout.type.columns
    if needs is None:
        # All but relations that are always shown with the same fields.
        needs = [n for n, c in columns.items() if not (c.relation and c.relation.shown)]
    attributes = [(name, _attribute(layout, name)) for name in needs]
    unread = frozenset(columns) - frozenset(needs)
    content_class = _partial_class(layout.type, unread)

    def bind(context: Context) -> Getter:
        getters = [(name, get(context)) for name, get in attributes]

        def build(row: Row) -> Any:
            instance = object.__new__(content_class)
            instance.__dict__.update({name: get(row) for name, get in getters})
            return instance

        return build

    return bind


@lru_cache(PARTIAL_CLASSES)
def _partial_class(declared: ObjectType, unread: frozenset[str]) -> type[Any]:
    """The class of a type, except that its objects lack some fields."""
    whole = declared.content_class
    attributes: dict[str, Any] = {name: _Unread(name) for name in sorted(unread)}
    return type(whole.__name__, (whole,), {"__module__": whole.__module__, **attributes})


class _Unread:
    """Stands in for a field that was not read, so that the object does not have it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: Any) -> Any:
        raise AttributeError(f"{self._name} is not read for this; name it in needs.")


def _attribute(layout: RowLayout, name: str) -> Bind:
    column = layout.type.columns[name]
    index = layout.index_of(name)
    if column.target is not None:
        slot, many = layout.related(column, embedded=False).slot, column.kind.many

        def visible(context: Context) -> Getter:
            found = context.related[slot]
            if many:
                return lambda row: [identity for identity in row[index] if identity in found]
            return lambda row: row[index] if row[index] in found else None

        return visible
    if column.related_blocks:
        slots = {
            block: layout.related_block(column, block, embedded=False).slot
            for block in column.related_blocks
        }

        def visible_blocks(context: Context) -> Getter:
            ids = {block: id_converter(context.related[slot], int) for block, slot in slots.items()}
            return lambda row: column.to_python(convert_blocks(row[index], {}, ids))

        return visible_blocks
    if column.child is not None:
        builder = _builder(layout.children(name, column.child, embedded=False))

        def children(context: Context) -> Getter:
            build = builder(context)
            return lambda row: [build(entry) for entry in row[index]]

        return children
    if isinstance(column.kind, kinds.Json):
        layout.note_text(name)
        # It is shared with the backend, so the site's code gets a copy.
        return lambda context: lambda row: column.to_python(copy.deepcopy(row[index]))
    if not column.is_plain:
        return lambda context: lambda row: column.to_python(row[index])
    get = itemgetter(index)
    return lambda context: get
