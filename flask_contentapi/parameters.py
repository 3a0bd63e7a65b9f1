"""The query parameters of lists: one table, and the reading of query strings by it.

Specification, 4.1 and 4.2; contract, Parameters. Reading is a pure function of the query string, so
results are cached for the next request with the same one. The caches are bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, partial
from itertools import chain
from typing import Any, NamedTuple, NoReturn, cast
from urllib.parse import parse_qsl

import marshmallow as ma
from marshmallow import fields, validate
from webargs.core import Parser

from flask_contentapi import kinds, search
from flask_contentapi.answers import NO_OTHERS, Key, Plan, Planner, Several, View, facet_of
from flask_contentapi.cache import BoundedCache
from flask_contentapi.declarations import Column, Endpoint, ObjectType
from flask_contentapi.errors import BadRequest, remarks, suggest
from flask_contentapi.filters import NOTHING, Operator, filters_of
from flask_contentapi.markup import FORMATS, missing_packages
from flask_contentapi.query import Filter, Order, Query, Relation, Search, Tree, Viewer
from flask_contentapi.selection import parse_fields
from flask_contentapi.settings import Settings

#: Limits on what a client may send, in characters.
MAX_QUERY_STRING = 16_384
MAX_VALUE = 4_096
#: How many different words a search may have.
MAX_WORDS = 50
#: How many filters a list may have, and by how many different fields it may be ordered.
MAX_FILTERS, MAX_ORDER = 50, 20
#: How many facets a list may have.
MAX_FACETS = 5
#: How much memory the caches of parsed query strings and of plans may take each, in the units of
#: :attr:`Plan.size`, and how long what is cached may be, in characters.
CACHE_SIZE, MAX_CACHED = 4096, 1024
#: The parameters of lists that can be asked for in parts, and nothing else.
PART = ("limit", "offset", "_")
#: How many fields the cached schemas may have, of which there is one for each combination of names.
SCHEMA_FIELDS = 8192
#: The format of lists that are sent as a whole, and its media type.
STREAM, STREAM_TYPE = "ndjson", "application/x-ndjson"
#: Stands for the page of the parameter ``root`` until the site, and so its home page, is known.
ROOT = -2
#: Stands for the viewer in queries that are cached.
_NOBODY = Viewer(datetime.min.replace(tzinfo=UTC))
#: Signs in front of "=" that mean comparisons elsewhere, and the operators that are meant.
_SIGNS = {">": "gte", "<": "lte", "!": "not"}


#: Makes the field that reads a parameter, from the type with the fields that filters and the order
#: can name, and the settings of the instance.
MakeField = Callable[[ObjectType, Settings], fields.Field[Any]]


class Where(NamedTuple):
    """The endpoints that have a parameter.

    :param has: tells whether an endpoint has it, with these settings.
    :param hint: what is said where it is unknown.
    """

    has: Callable[[Endpoint, Settings], bool] = lambda endpoint, settings: True
    hint: str = ""


_PAGES = Where(lambda endpoint, settings: endpoint.tree, " Only pages/ has it.")
_LANGUAGES = Where(
    lambda endpoint, settings: endpoint.tree and settings.i18n,
    " Only pages/ has it, where CMS_I18N_ENABLED is on.",
)
_SEARCHED = Where(lambda endpoint, settings: settings.search_enabled, " Searching is switched off.")
_SEVERAL_TYPES = Where(
    lambda endpoint, settings: endpoint.tree or len(endpoint.types) > 1,
    " Only endpoints with several types have it.",
)
_OF_SITES = Where(
    lambda endpoint, settings: endpoint.of_sites, " Only pages/ and redirects/ have it."
)


class Parameter(NamedTuple):
    """A query parameter.

    :param purpose: what it does, in a sentence.
    :param field: makes the field that reads it.
    :param where: the endpoints that have it.
    :param views: their views that have it.
    :param empty_is_absent: whether it counts as absent if it is empty.
    """

    name: str
    purpose: str
    field: MakeField = lambda *_: fields.String()
    where: Where = Where()
    views: tuple[str, ...] = ("list",)
    empty_is_absent: bool = False


def read_query_string(query_string: bytes) -> Mapping[str, str]:
    """The parameters of a query string. The last of repeated ones counts, but ``type`` adds up.

    If it is too long, only the beginning is read, for checks that come before that error.
    """
    if len(query_string) > MAX_QUERY_STRING:
        query_string = query_string[:MAX_QUERY_STRING].rpartition(b"&")[0]
    text = query_string.decode("utf-8", "replace")
    given: dict[str, str] = {}
    for name, value in parse_qsl(text, keep_blank_values=True, errors="replace"):
        if name == "type" and given.get(name):
            value = f"{given[name]},{value}" if value else given[name]
        given[name] = value
    return given


def check_length(query_string: bytes) -> None:
    """Refuses a query string that is too long.

    :raises BadRequest: saying how long it may be.
    """
    if len(query_string) > MAX_QUERY_STRING:
        raise BadRequest(f"The query is longer than {MAX_QUERY_STRING} characters.")


def check_values(given: Mapping[str, str]) -> None:
    """Refuses parameters with unusable names or values.

    :raises BadRequest: if one has a NUL character or is too long.
    """
    for name, value in given.items():
        if "\0" in name or "\0" in value:
            raise BadRequest(f"{name} has a NUL character.".replace("\0", "?"))
        if len(value) > MAX_VALUE and name != "html_path":
            raise BadRequest(f"{name} is longer than {MAX_VALUE} characters.")


class Asked(NamedTuple):
    """What a list request asks for.

    :param given: its parameters.
    :param plan: how the items are made.
    :param query: the query for them, whose viewer and scope are still to be set. The page of a
        :class:`Tree` can be :data:`ROOT`. Without a limit the list is to be sent as a whole
        (:data:`STREAM`).
    :param names_other_pages: whether the filters, the order or the facets look at pages that need
        not be of the site.
    """

    given: Mapping[str, str]
    plan: Plan
    query: Query
    names_other_pages: bool


class Parameters:
    """Reads the query strings of one instance.

    :ivar names: returns the parameters of a view, ``list`` by default, of a type, each with the
        function that makes the field that reads it.
    :raises DeclarationError: if objects would embed each other endlessly.
    """

    def __init__(self, endpoints: Mapping[str, Endpoint], settings: Settings, ranks: bool) -> None:
        self.endpoints, self.settings, self._ranks = endpoints, settings, ranks
        self._planner = Planner(endpoints.values(), settings.i18n, settings.limit_max)
        self._lists: BoundedCache[Asked] = BoundedCache(CACHE_SIZE, lambda asked: asked.plan.size)
        self._details: BoundedCache[Plan] = BoundedCache(CACHE_SIZE, lambda plan: plan.size)
        self._plans: BoundedCache[Plan] = BoundedCache(CACHE_SIZE, lambda plan: plan.size)
        self._schemas: BoundedCache[ma.Schema] = BoundedCache(
            SCHEMA_FIELDS, lambda schema: len(schema.fields)
        )
        self.names = cache(self._find_names)

    def detail(self, endpoint: str, label: str, query_string: bytes) -> Plan:
        """The plan for one object.

        :param label: its type.
        :raises BadRequest: saying what is wrong with the query string.
        """
        key = endpoint, label, query_string
        if (plan := self._details.get(key)) is not None:
            return plan
        check_length(query_string)
        given = read_query_string(query_string)
        check_values(given)
        declared = self.endpoints[endpoint].type_of(label)
        known = {n: given[n] for n in ("fields", "rich_text_format") if n in given}
        read = self._read(declared, known) if "rich_text_format" in known else known
        plan = self._plan(declared, "detail", read)
        return plan if len(query_string) > MAX_CACHED else self._details.put(key, plan)

    def list(self, name: str, query_string: bytes) -> Asked:
        """What a list request asks for.

        :raises BadRequest: naming what is wrong.
        """
        key = name, query_string
        if (known := self._lists.get(key)) is not None:
            return known
        check_length(query_string)
        asked = self._list(self.endpoints[name], read_query_string(query_string))
        return asked if len(query_string) > MAX_CACHED else self._lists.put(key, asked)

    def part(self, query_string: bytes) -> slice:
        """The part of a list that a request asks for which can choose nothing else.

        :raises BadRequest: naming what is wrong.
        """
        check_length(query_string)
        given = read_query_string(query_string)
        check_values(given)
        if unknown := sorted(given.keys() - {*PART}):
            raise BadRequest(
                f"Unknown parameter: {', '.join(unknown)}. Known are limit and offset."
            )
        # These are the same for all types.
        read = self._read(self.endpoints["images"].base, given)
        offset = read.get("offset", 0)
        return slice(offset, offset + read.get("limit", self.settings.default_limit))

    def _plan(
        self,
        declared: ObjectType,
        view: View,
        read: Mapping[str, Any],
        named: tuple[ObjectType, ...] = (),
        labels: frozenset[str] | None = None,
    ) -> Plan:
        # What clients name is unlimited, but most of them only ever vary other parameters.
        selected: str = read.get("fields", "")
        wanted = read.get("rich_text_format", self.settings.rich_text_format)
        key = declared, view, selected, wanted, named
        if (known := self._plans.get(key)) is not None:
            return known
        several = NO_OTHERS
        if len(named) > 1:
            types = declared.served_at.types
            several = Several(named, {n: t for n, t in types.items() if not labels or n in labels})
        plan = self._planner.plan(declared, view, parse_fields(selected), several, wanted)
        return plan if len(selected) > MAX_CACHED else self._plans.put(key, plan)

    def _list(self, endpoint: Endpoint, given: Mapping[str, str]) -> Asked:
        check_values(given)
        named: list[ObjectType] = []
        if given.get("type") and PARAMETERS["type"].where.has(endpoint, self.settings):
            named = list(dict.fromkeys(map(endpoint.named, given["type"].split(","))))
        # What all of them have is in the nearest type that each of them is or derives from.
        asked_for = {one.label for one in named}
        above = [t for t in endpoint.types.values() if named and asked_for <= t.types]
        declared = min(above, key=lambda one: len(one.types), default=endpoint.base)
        read = self._read(declared, given)
        order, random = read.get("order", ((), False))
        if random and "offset" in given:
            raise BadRequest("offset cannot be used with order=random.")
        is_streamed = read.get("format") == STREAM
        if unused := [name for name in ("limit", "facets") if is_streamed and name in given]:
            raise BadRequest(
                f"{unused[0]} cannot be used with format={STREAM}, which gives all objects and "
                "nothing else."
            )
        if "child_of" in given and "descendant_of" in given:
            raise BadRequest("child_of and descendant_of cannot be used together.")
        conditions = read.get("filters", {}).values()
        filters: tuple[Filter, ...] = tuple(chain.from_iterable(conditions))
        searches = tuple(self._searches(read))
        if not all(wanted.words for wanted in searches):
            filters += NOTHING
        labels = frozenset(label for one in named for label in one.types) or None
        labels = None if any(map(endpoint.is_of_all, named)) else labels
        plan = self._plan(declared, "list", read, tuple(named), labels)
        facets: tuple[Key, ...] = read.get("facets", ())
        plan = replace(plan, facets=facets) if facets else plan
        query = Query(
            endpoint.name,
            plan.columns,
            _NOBODY,
            types=labels,
            filters=filters,
            tree=tuple(read.get("tree", {}).values()),
            searches=tuple(wanted for wanted in searches if wanted.words),
            order=order,
            random=random,
            limit=None if is_streamed else read.get("limit", self.settings.default_limit),
            offset=read.get("offset", 0),
            facets=tuple(facet.column for facet in facets),
        )
        compared = {column for column, *_ in (*filters, *query.order)}.union(query.facets)
        columns = [declared.columns[name] for name in compared if name in declared.columns]
        targets = [column.target.served_at for column in columns if column.target]
        return Asked(given, plan, query, any(target.tree or target.essential for target in targets))

    def _searches(self, read: Mapping[str, Any]) -> Iterator[Search]:
        if "autocomplete" in read:
            *whole, last = search.words(read["autocomplete"]) or [""]
            words = (*dict.fromkeys(whole), last) if last else ()
            yield Search(_bounded("autocomplete", words), every=True, prefix=True)
        if "search" in read:
            words = search.terms(read["search"], self.settings.stop_words)
            every = read.get("search_operator", "or" if self._ranks else "and") == "and"
            yield Search(_bounded("search", words), every)

    def _read(self, declared: ObjectType, given: Mapping[str, str]) -> dict[str, Any]:
        # Unknown names take precedence over wrong values.
        names = self.names(declared)
        if unknown := sorted(given.keys() - names.keys()):
            hint = remarks(unknown, lambda name: self._hint(declared, name))
            compared = (n for n in names if n not in PARAMETERS and n.rpartition("__")[0] in names)
            known = sorted(names.keys() - compared)
            hint = hint or f" Known are {', '.join(known)}."
            raise BadRequest(f"Unknown parameter: {', '.join(unknown)}.{hint}")
        if sum(name not in PARAMETERS for name in given) > MAX_FILTERS:
            raise BadRequest(f"The query has more than {MAX_FILTERS} filters.")
        given = {n: text for n, text in given.items() if text or n not in _ABSENT_IF_EMPTY}
        values: dict[str, Any] = _PARSER.parse(self._schema(declared, frozenset(given)), given)
        return values

    def _hint(self, declared: ObjectType, name: str) -> str:
        names, field = self.names(declared), name.rpartition("__")[0]
        compared = [known for known in names if known.rpartition("__")[0] == field in names]
        if compared:
            return f" {field} can be compared by {', '.join(compared)}."
        meant = f"{name[:-1]}__{_SIGNS.get(name[-1:])}"
        if meant in names:
            return f" Write {meant}=..., with two underscores."
        elsewhere = PARAMETERS[name].where.hint if name in PARAMETERS else ""
        hint = elsewhere or declared.hint(name, "filtered") or declared.hint(field, "filtered")
        return hint or suggest(name, names)

    def _find_names(
        self, declared: ObjectType, view: str = "list"
    ) -> dict[str, Callable[[], fields.Field[Any]]]:
        names: dict[str, Callable[[], fields.Field[Any]]] = {
            name: partial(parameter.field, declared, self.settings)
            for name, parameter in PARAMETERS.items()
            if view in parameter.views and parameter.where.has(declared.served_at, self.settings)
        }
        if view != "list":
            return names
        for name, (column, operator) in filters_of(declared, PARAMETERS).items():
            orders = name in declared.orderable
            names[name] = partial(_filter_field, name, column, operator, orders=orders)
        return names

    def _schema(self, declared: ObjectType, names: frozenset[str]) -> ma.Schema:
        if (known := self._schemas.get((declared, names))) is not None:
            return known
        # One schema of all parameters would read each of hundreds every time.
        made = self.names(declared)
        used = {name: make() for name, make in made.items() if name in names}
        schema = ma.Schema.from_dict(used, name="Parameters")()
        return self._schemas.put((declared, names), schema)


def _bounded(parameter: str, words: tuple[str, ...]) -> tuple[str, ...]:
    if len(words) > MAX_WORDS:
        raise BadRequest(f"{parameter} has more than {MAX_WORDS} different words.")
    return words


class _Parser(Parser[Mapping[str, str]]):
    """It is given the parameters, not a request, and reports all mistakes in one message."""

    DEFAULT_LOCATION = "query"

    def load_querystring(self, req: Mapping[str, str], schema: ma.Schema) -> Mapping[str, str]:
        return req

    def handle_error(
        self, error: ma.ValidationError, req: Mapping[str, str], schema: ma.Schema, **_: Any
    ) -> NoReturn:
        wrong: dict[str, list[str]] = cast(dict[str, Any], error.messages)["query"]
        text = "; ".join(f"{name} {' '.join(texts)}" for name, texts in sorted(wrong.items()))
        raise BadRequest(text if text.endswith("?") else f"{text}.") from error


_PARSER = _Parser()


# The fields that read parameters.


class Parsed(fields.Field[Any]):
    """A parameter that a function parses; its ValueError says what is wrong.

    :param attribute: the path of the value among those that are read, as ``filters.<name>`` for
        conditions.
    :param schema: the JSON Schema of the parameter.
    """

    def __init__(
        self, parse: Callable[[str], Any], attribute: str | None = None, **schema: Any
    ) -> None:
        super().__init__(attribute=attribute, metadata=schema)
        self._parse = parse

    def _deserialize(self, value: str, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._parse(value)
        except ValueError as error:
            raise ma.ValidationError(str(error)) from None


def _number_field(highest: int | None = None) -> fields.Field[Any]:
    def read(text: str) -> int:
        number = kinds.parse_integer(text)
        if number < 0 or (highest is not None and number > highest):
            raise ValueError(f"must be from 0 {'on' if highest is None else f'to {highest}'}")
        return min(number, kinds.INT64[-1])

    known: Any = {} if highest is None else {"maximum": highest}
    return Parsed(read, type="integer", minimum=0, **known)


def _choice(*known: str, hint: str = "") -> fields.Field[Any]:
    error = f"must be {' or '.join(known)}{hint}"
    return fields.String(validate=validate.OneOf(known, error=error))


def _read_format(text: str) -> str:
    if text not in FORMATS:
        raise ValueError(f"must be one of {', '.join(FORMATS)}")
    if missing := missing_packages(text):
        raise ValueError(f"needs {' and '.join(missing)}, which the site does not have")
    return text


def _page_field(relation: Relation) -> MakeField:
    has_root = relation != "ancestor_of"

    def read(text: str) -> Tree:
        if text == "root" and has_root:
            return Tree(relation, ROOT)
        try:
            page = kinds.parse_integer(text)
        except ValueError:
            raise ValueError(f"must be the id of a page{', or root' * has_root}") from None
        if page not in kinds.INT64:
            raise ValueError("names no page")
        return Tree(relation, page)

    wanted: list[Any] = [{"type": "integer"}, *[{"const": "root"}] * has_root]
    return lambda *_: Parsed(read, f"tree.{relation}", anyOf=wanted)


def _read_operator(text: str) -> str:
    if text.lower() not in ("and", "or"):
        raise ValueError("must be 'and' or 'or'")
    return text.lower()


def _unknown(what: str, hint: str, name: str, known: Collection[str]) -> ValueError:
    hint = hint or suggest(name, known) or f" There are {', '.join(known)}."
    # The end of the sentence is added with those of other parameters.
    return ValueError(f"{what}.{hint}".rstrip("."))


def _order_field(declared: ObjectType, settings: Settings) -> fields.Field[Any]:
    columns = declared.orderable

    def read(text: str) -> tuple[tuple[Order, ...], bool]:
        if text == "random":
            return (), True
        keys: dict[str, Order] = {}
        for part in text.split(","):
            name = part.removeprefix("-")
            if name == "random":
                raise ValueError("can be random only by itself, as order=random")
            if name not in columns:
                raise _unknown(
                    f"cannot be by {name!r}", declared.hint(name, "ordered"), name, columns
                )
            # Ordering by the same field again changes nothing.
            keys.setdefault(name, Order(columns[name].name, part != name))
        if len(keys) > MAX_ORDER:
            raise ValueError(f"has more than {MAX_ORDER} different fields")
        return tuple(keys.values()), False

    return Parsed(read, type="string", examples=["random", *columns])


def _facets_field(declared: ObjectType, settings: Settings) -> fields.Field[Any]:
    known = [name for name in declared.filterable if name not in PARAMETERS]
    known += ["type"] * declared.served_at.tree

    def read(text: str) -> tuple[Key, ...]:
        names = text.split(",")
        for name in names:
            if name not in known:
                raise _unknown(
                    f"cannot be of {name!r}", declared.hint(name, "filtered"), name, known
                )
        if len(names) > MAX_FACETS:
            raise ValueError(f"has more than {MAX_FACETS} fields")
        return tuple(facet_of(declared, declared.exports[name]) for name in dict.fromkeys(names))

    return Parsed(read, type="string", examples=known[:1])


def _filter_field(
    name: str, column: Column, operator: Operator, *, orders: bool
) -> fields.Field[Any]:
    schema = column.kind.schema
    if operator.name == "isnull":
        schema = kinds.Boolean.schema
    elif operator.name in ("in", "not") or column.kind.many:
        schema = kinds.Kind.schema
    field = name.removesuffix(f"__{operator.name}")
    told: dict[str, Any] = {"field": field, "operator": operator.name}
    told |= {"kind": column.kind.name, "orders": orders}
    if column.target is not None:
        told["endpoint"] = column.target.served_at.name
    purpose = {"description": f"Only objects whose {field} {operator.purpose}.", "x-filter": told}
    read = partial(operator.read, column)
    return Parsed(read, f"filters.{name}", **schema, **purpose)


def _other_types_field(declared: ObjectType, settings: Settings) -> fields.Field[Any]:
    endpoint = declared.served_at

    def read(text: str) -> tuple[Filter, ...]:
        types = [*map(endpoint.named, text.split(","))]
        if any(map(endpoint.is_of_all, types)):
            return NOTHING
        labels = {label for declared in types for label in declared.types}
        return (Filter("type", "not", tuple(sorted(labels))),)

    return Parsed(read, "filters.type__not", type="string", examples=[*endpoint.types])


_LIST_AND_DETAIL = ("list", "detail", "detail_by_path")
_ALL = (*_LIST_AND_DETAIL, "find")

_RELATIONS: tuple[tuple[Relation, str, Where], ...] = (
    ("child_of", "the children of this page, an id or root", _PAGES),
    ("descendant_of", "the pages below this page, an id or root", _PAGES),
    ("ancestor_of", "the pages above this page, an id", _PAGES),
    ("translation_of", "the translations of this page, an id or root", _LANGUAGES),
)
#: All query parameters, by name. Fields of the same names could be shown but not filtered by.
PARAMETERS = {
    parameter.name: parameter
    for parameter in (
        Parameter(
            "limit",
            "The maximum number of items.",
            lambda _, settings: _number_field(settings.limit_max),
        ),
        Parameter("offset", "The number of items to skip.", lambda *_: _number_field()),
        Parameter(
            "order",
            "The fields to order by, separated by commas, with - in front for descending; or "
            "random.",
            _order_field,
            empty_is_absent=True,
        ),
        Parameter("fields", "The fields to show.", views=_LIST_AND_DETAIL, empty_is_absent=True),
        Parameter(
            "rich_text_format",
            "How rich text is written: db_html, html, markdown or db_markdown.",
            lambda *_: Parsed(_read_format, type="string", enum=[*FORMATS]),
            views=_LIST_AND_DETAIL,
        ),
        Parameter(
            "facets",
            "The fields whose most frequent values are counted, separated by commas.",
            _facets_field,
        ),
        Parameter(
            "search", "Only objects with these words, the best matches first.", where=_SEARCHED
        ),
        Parameter(
            "autocomplete",
            "Only objects with these words, the last one as the beginning of a word; those with "
            "such a word in their title first.",
            where=_SEARCHED,
        ),
        Parameter(
            "search_operator",
            "Whether objects must have every word (and) or one of them (or).",
            lambda *_: Parsed(_read_operator, type="string", enum=["and", "or"]),
            empty_is_absent=True,
        ),
        Parameter(
            "type",
            "Only objects of these types, separated by commas.",
            lambda declared, settings: fields.String(
                metadata={"examples": [*declared.served_at.types]}
            ),
            _SEVERAL_TYPES,
            empty_is_absent=True,
        ),
        Parameter(
            "type__not",
            "No objects of these types, separated by commas.",
            _other_types_field,
            _PAGES,
            empty_is_absent=True,
        ),
        *(
            Parameter(relation, f"Only {purpose}.", _page_field(relation), where)
            for relation, purpose, where in _RELATIONS
        ),
        Parameter(
            "locale",
            "Only pages in this language.",
            # Whether the language is known is for the content to say.
            lambda *_: Parsed(
                lambda text: (Filter("locale", "eq", text),), "filters.locale", type="string"
            ),
            _LANGUAGES,
            views=("list", "find", "detail_by_path"),
        ),
        Parameter(
            "site",
            "The site, as hostname or hostname:port.",
            where=_OF_SITES,
            views=_ALL,
            empty_is_absent=True,
        ),
        Parameter("preview", "A token that shows an object that is not public yet.", views=_ALL),
        Parameter(
            "html_path",
            "A path on the site, without scheme and host.",
            where=_OF_SITES._replace(hint=" Only find/ and detail_by_path/ have it."),
            views=("find", "detail_by_path"),
        ),
        Parameter(
            "format",
            "json, or ndjson for the whole list, one JSON object a line.",
            lambda _, settings: (
                _choice("json", STREAM)
                if settings.stream_enabled
                else _choice("json", hint=f"; {STREAM} is switched off")
            ),
        ),
        Parameter("_", "Has no effect."),
    )
}
_ABSENT_IF_EMPTY = frozenset(n for n, known in PARAMETERS.items() if known.empty_is_absent)
