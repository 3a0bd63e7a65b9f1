"""The query parameters of lists: one table, and the reading of query strings by it.

Specification, 4.1 and 4.2; contract, Parameters. Reading is a pure function of the query string, so
results are cached for the next request with the same one. The caches are bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, lru_cache, partial
from itertools import chain
from typing import Any, NamedTuple, NoReturn, cast
from urllib.parse import parse_qsl

import marshmallow as ma
from marshmallow import fields, validate
from webargs.core import Parser

from flask_contentapi import kinds, search
from flask_contentapi.answers import Facet, Plan, Planner, Several, View, facet_of
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
#: How many schemas are cached, one for each combination of names.
SCHEMAS = 512
#: The format of lists that are sent as a whole, and its media type.
STREAM, STREAM_TYPE = "ndjson", "application/x-ndjson"
#: Stands for the page of the parameter ``root`` until the site, and so its home page, is known.
ROOT = -2
#: Stands for the viewer in queries that are cached.
_NOBODY = Viewer(datetime.min.replace(tzinfo=UTC))
#: Signs in front of "=" that mean comparisons elsewhere, and the operators that are meant.
_SIGNS = {">": "gte", "<": "lte", "!": "not"}


class Use(NamedTuple):
    """Where a parameter is used.

    :param declared: the type with the fields that filters and the order can name.
    :param settings: the settings of the instance.
    :param ranks: whether its backend ranks searches.
    """

    declared: ObjectType
    settings: Settings
    ranks: bool


@dataclass(frozen=True, slots=True)
class Parameter:
    """A query parameter.

    :param name: its name.
    :param purpose: what it does, in a sentence.
    :param field: makes the field that reads it.
    :param views: the views that have it.
    :param endpoints: tells whether an endpoint has it, with these settings.
    :param hint: what is said where it is unknown.
    :param empty_is_absent: whether it counts as absent if it is empty.
    """

    name: str
    purpose: str
    field: Callable[[Use], fields.Field[Any]]
    views: tuple[str, ...] = ("list",)
    endpoints: Callable[[Endpoint, Settings], bool] = lambda endpoint, settings: True
    hint: str = ""
    empty_is_absent: bool = False


def has_types(endpoint: Endpoint, settings: Settings) -> bool:
    """Whether ``type`` can tell apart the objects of an endpoint."""
    return endpoint.tree or len(endpoint.types) > 1


def _is_tree(endpoint: Endpoint, settings: Settings) -> bool:
    return endpoint.tree


def _is_of_sites(endpoint: Endpoint, settings: Settings) -> bool:
    return endpoint.of_sites


def _has_locales(endpoint: Endpoint, settings: Settings) -> bool:
    return endpoint.tree and settings.i18n


def _is_searched(endpoint: Endpoint, settings: Settings) -> bool:
    return settings.search_enabled


def read_query_string(query_string: bytes) -> dict[str, str]:
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


class Parameters:
    """Reads the query strings of one instance.

    :param endpoints: its endpoints, by name.
    :param settings: its settings.
    :param ranks: whether its backend ranks searches.
    :ivar names: returns the parameters of a view, ``list`` by default, of a type, each with the
        function that makes the field that reads it.
    :raises DeclarationError: if objects would embed each other endlessly.
    """

    def __init__(self, endpoints: Mapping[str, Endpoint], settings: Settings, ranks: bool) -> None:
        self._endpoints, self._settings, self._ranks = endpoints, settings, ranks
        self._planner = Planner(endpoints.values(), settings.i18n, settings.limit_max)
        self._lists: BoundedCache[tuple[Plan, Query]] = BoundedCache(
            CACHE_SIZE, lambda read: read[0].size
        )
        self._plans: BoundedCache[Plan] = BoundedCache(CACHE_SIZE, lambda plan: plan.size)
        self._schema = lru_cache(SCHEMAS)(self._make_schema)
        self.names = cache(self._find_names)

    def detail_plan(self, endpoint: str, label: str, given: Mapping[str, str]) -> Plan:
        """The plan for one object.

        :param label: the label of its type.
        :param given: the parameters.
        :raises BadRequest: saying what is wrong with them.
        """
        declared = self._endpoints[endpoint].type_of(label)
        known = {n: given[n] for n in ("fields", "rich_text_format") if n in given}
        read = self._read(declared, known) if "rich_text_format" in known else known
        return self._plan(declared, "detail", read)

    def list(self, name: str, query_string: bytes) -> tuple[Plan, Query]:
        """How the items of a list are made, and the query for it, whose viewer and scope are still
        to be set. The page of a :class:`Tree` can be :data:`ROOT`. Without a limit the list is to
        be sent as a whole (:data:`STREAM`).

        :param name: the endpoint.
        :raises BadRequest: naming what is wrong.
        """
        key = name, query_string
        if (known := self._lists.get(key)) is not None:
            return known
        read = self._list(self._endpoints[name], query_string)
        return read if len(query_string) > MAX_CACHED else self._lists.put(key, read)

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
        wanted = read.get("rich_text_format", self._settings.rich_text_format)
        key = declared, view, selected, wanted, named
        if (known := self._plans.get(key)) is not None:
            return known
        several = None
        if len(named) > 1:
            types = declared.served_at.types
            several = Several(named, {n: t for n, t in types.items() if not labels or n in labels})
        plan = self._planner.plan(declared, view, parse_fields(selected), several, wanted)
        return plan if len(selected) > MAX_CACHED else self._plans.put(key, plan)

    def _list(self, endpoint: Endpoint, query_string: bytes) -> tuple[Plan, Query]:
        check_length(query_string)
        given = read_query_string(query_string)
        check_values(given)
        for name, parameter in PARAMETERS.items():
            if parameter.empty_is_absent and given.get(name) == "":
                del given[name]
        named = _named_types(endpoint, given, self._settings)
        declared = _common_type(endpoint, named)
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
        if len(conditions) > MAX_FILTERS:
            raise BadRequest(f"The query has more than {MAX_FILTERS} filters.")
        filters: tuple[Filter, ...] = tuple(chain.from_iterable(conditions))
        searches = tuple(self._searches(read))
        if not all(wanted.words for wanted in searches):
            filters += NOTHING
        labels = _wanted_labels(endpoint, named)
        plan = self._plan(declared, "list", read, tuple(named), labels)
        facets: tuple[Facet, ...] = read.get("facets", ())
        plan = replace(plan, facets=facets) if facets else plan
        return plan, Query(
            endpoint.name,
            plan.columns,
            _NOBODY,
            types=labels,
            filters=filters,
            tree=tuple(read.get("tree", {}).values()),
            searches=tuple(wanted for wanted in searches if wanted.words),
            order=order,
            random=random,
            limit=None if is_streamed else read.get("limit", self._settings.default_limit),
            offset=read.get("offset", 0),
            facets=tuple(facet.column for facet in facets),
        )

    def _searches(self, read: Mapping[str, Any]) -> Iterator[Search]:
        """What is searched for; without words nothing is found."""
        if "autocomplete" in read:
            *whole, last = search.words(read["autocomplete"]) or [""]
            words = (*dict.fromkeys(whole), last) if last else ()
            yield Search(_bounded("autocomplete", words), every=True, prefix=True)
        if "search" in read:
            words = search.terms(read["search"], self._settings.stop_words)
            every = read.get("search_operator", "or" if self._ranks else "and") == "and"
            yield Search(_bounded("search", words), every)

    def _read(self, declared: ObjectType, given: Mapping[str, str]) -> dict[str, Any]:
        """The values of parameters.

        :raises BadRequest: naming what is wrong with them; unknown names take precedence.
        """
        names = self.names(declared)
        if unknown := sorted(given.keys() - names.keys()):
            hint = remarks(unknown, lambda name: self._hint(declared, name))
            known = sorted(name for name in names if name.rpartition("__")[0] not in names)
            hint = hint or f" Known are {', '.join(known)}."
            raise BadRequest(f"Unknown parameter: {', '.join(unknown)}.{hint}")
        values: dict[str, Any] = _PARSER.parse(self._schema(declared, frozenset(given)), given)
        return values

    def _hint(self, declared: ObjectType, name: str) -> str:
        """A hint about an unknown parameter."""
        names, field = self.names(declared), name.rpartition("__")[0]
        compared = [known for known in names if known.rpartition("__")[0] == field in names]
        if compared:
            return f" {field} can be compared by {', '.join(compared)}."
        meant = f"{name[:-1]}__{_SIGNS.get(name[-1:])}"
        if meant in names:
            return f" Write {meant}=..., with two underscores."
        elsewhere = PARAMETERS[name].hint if name in PARAMETERS else ""
        hint = elsewhere or declared.hint(name, "filtered") or declared.hint(field, "filtered")
        return hint or suggest(name, names)

    def _find_names(
        self, declared: ObjectType, view: str = "list"
    ) -> dict[str, Callable[[], fields.Field[Any]]]:
        """The parameters of a view of a type, each with the function that makes its field."""
        use = Use(declared, self._settings, self._ranks)
        names: dict[str, Callable[[], fields.Field[Any]]] = {
            name: partial(parameter.field, use)
            for name, parameter in PARAMETERS.items()
            if view in parameter.views and parameter.endpoints(declared.served_at, self._settings)
        }
        if view != "list":
            return names
        for name, (column, operator) in filters_of(declared, PARAMETERS).items():
            names[name] = partial(_Filter, name, column, operator)
        return names

    def _make_schema(self, declared: ObjectType, names: frozenset[str]) -> ma.Schema:
        """The schema of some parameters; one of all would read each of hundreds every time."""
        made = self.names(declared)
        used = {name: make() for name, make in made.items() if name in names}
        schema = ma.Schema.from_dict(used, name="Parameters")
        return schema(unknown=ma.RAISE)


def _bounded(parameter: str, words: tuple[str, ...]) -> tuple[str, ...]:
    """The words of a parameter.

    :raises BadRequest: if they are too many.
    """
    if len(words) > MAX_WORDS:
        raise BadRequest(f"{parameter} has more than {MAX_WORDS} different words.")
    return words


def _named_types(
    endpoint: Endpoint, given: Mapping[str, str], settings: Settings
) -> list[ObjectType]:
    if "type" not in given or not has_types(endpoint, settings):
        return []
    return list(dict.fromkeys(map(endpoint.named, given["type"].split(","))))


def _common_type(endpoint: Endpoint, named: Iterable[ObjectType]) -> ObjectType:
    """The type with the fields that the named types have in common: the nearest declared type
    that each of them is or derives from."""
    wanted = {declared.label for declared in named}
    above = [t for t in endpoint.types.values() if wanted and wanted <= t.types]
    return min(above, key=lambda declared: len(declared.types), default=endpoint.base)


def _wanted_labels(endpoint: Endpoint, named: Iterable[ObjectType]) -> frozenset[str] | None:
    """The labels to list; None for all, including undeclared ones."""
    labels = frozenset(label for declared in named for label in declared.types)
    return None if not labels or any(map(endpoint.is_of_all, named)) else labels


class _Parser(Parser[Mapping[str, str]]):
    """The webargs parser for lists. It is given the parameters, not a request."""

    DEFAULT_LOCATION = "query"
    DEFAULT_UNKNOWN_BY_LOCATION = {"query": ma.RAISE}

    def load_querystring(self, req: Mapping[str, str], schema: ma.Schema) -> Mapping[str, str]:
        return req

    def handle_error(
        self,
        error: ma.ValidationError,
        req: Mapping[str, str],
        schema: ma.Schema,
        **_: Any,
    ) -> NoReturn:
        """Reports everything that is wrong in one message."""
        wrong: dict[str, list[str]] = cast(dict[str, Any], error.messages)["query"]
        text = "; ".join(f"{name} {' '.join(texts)}" for name, texts in sorted(wrong.items()))
        raise BadRequest(text if text.endswith("?") else f"{text}.") from error


_PARSER = _Parser()


# The fields that read parameters.


def _limit_range(settings: Settings) -> validate.Range:
    highest = settings.limit_max
    allowed = "from 0 on" if highest is None else f"from 0 to {highest}"
    return validate.Range(0, highest, error=f"must be {allowed}")


_FORMAT = validate.OneOf([*FORMATS], error="must be one of {choices}")


def _require_packages(name: str) -> None:
    if missing := missing_packages(name) if name in FORMATS else ():
        raise ma.ValidationError(f"needs {' and '.join(missing)}, which the site does not have")


def _formats(settings: Settings) -> validate.OneOf:
    if settings.stream_enabled:
        return validate.OneOf(["json", STREAM], error=f"must be json or {STREAM}")
    return validate.OneOf(["json"], error="must be json")


def _place(relation: Relation) -> Callable[[Use], fields.Field[Any]]:
    return lambda use: _Place(relation, root=relation != "ancestor_of")


class _Integer(fields.Integer):
    """An integer, clamped to what every database can store."""

    def _deserialize(self, value: str, *args: Any, **kwargs: Any) -> int:
        number: int = _parse(kinds.parse_integer, value)
        return max(min(number, kinds.INT64[-1]), kinds.INT64[0])


class _Place(fields.Field[Tree]):
    """A relation to a page: its id or, where that makes sense, ``root``."""

    def __init__(self, relation: Relation, *, root: bool = True) -> None:
        wanted: list[Any] = [{"type": "integer"}, *[{"const": "root"}] * root]
        super().__init__(attribute=f"tree.{relation}", metadata={"anyOf": wanted})
        self._relation, self._root = relation, root

    def _deserialize(self, value: str, *args: Any, **kwargs: Any) -> Tree:
        if value == "root" and self._root:
            return Tree(self._relation, ROOT)
        wanted = "must be the id of a page" + (", or root" if self._root else "")
        page = _parse(kinds.parse_integer, value, wanted)
        if page not in kinds.INT64:
            raise ma.ValidationError("names no page")
        return Tree(self._relation, page)


class _Operator(fields.String):
    """``search_operator``, in upper or lower case."""

    def __init__(self) -> None:
        super().__init__(metadata={"enum": ["and", "or"]})

    def _deserialize(self, value: str, *args: Any, **kwargs: Any) -> str:
        if value.lower() not in ("and", "or"):
            raise ma.ValidationError("must be 'and' or 'or'")
        return value.lower()


class _Order(fields.Field[Any]):
    """The keys of ``order``, and whether it is ``random``."""

    def __init__(self, declared: ObjectType) -> None:
        examples = ["random", *declared.orderable]
        super().__init__(metadata={"type": "string", "examples": examples})
        self._declared = declared
        self._columns = declared.orderable

    def _deserialize(self, value: str, *args: Any, **kwargs: Any) -> Any:
        if value == "random":
            return (), True
        keys: dict[str, Order] = {}
        for part in value.split(","):
            name = part.removeprefix("-")
            if name == "random":
                raise ma.ValidationError("can be random only by itself, as order=random")
            if name not in self._columns:
                # The end of the sentence is added with those of other parameters.
                raise ma.ValidationError(f"cannot be by {name!r}.{self._hint(name)}".rstrip("."))
            # Ordering by the same field again changes nothing.
            keys.setdefault(name, Order(self._columns[name].name, part != name))
        if len(keys) > MAX_ORDER:
            raise ma.ValidationError(f"has more than {MAX_ORDER} different fields")
        return tuple(keys.values()), False

    def _hint(self, name: str) -> str:
        """A hint about an unknown key."""
        return (
            self._declared.hint(name, "ordered")
            or suggest(name, self._columns)
            or f" There are {', '.join(self._columns)}."
        )


class _Facets(fields.Field[Any]):
    """The fields whose values are counted."""

    def __init__(self, declared: ObjectType) -> None:
        self._declared = declared
        self._known = [name for name in declared.filterable if name not in PARAMETERS]
        self._known += ["type"] * declared.served_at.tree
        super().__init__(metadata={"type": "string", "examples": self._known[:1]})

    def _deserialize(self, value: str, *args: Any, **kwargs: Any) -> tuple[Facet, ...]:
        declared, known, names = self._declared, self._known, value.split(",")
        for name in names:
            if name not in known:
                hint = declared.hint(name, "filtered") or suggest(name, known)
                hint = hint or f" There are {', '.join(known)}."
                raise ma.ValidationError(f"cannot be of {name!r}.{hint}".rstrip("."))
        if len(names) > MAX_FACETS:
            raise ma.ValidationError(f"has more than {MAX_FACETS} fields")
        return tuple(facet_of(declared, declared.exports[name]) for name in dict.fromkeys(names))


class _Filter(fields.Field[Any]):
    """The conditions on a stored field."""

    def __init__(self, name: str, column: Column, operator: Operator) -> None:
        field = name.removesuffix(f"__{operator.name}")
        purpose = {"description": f"Only objects whose {field} {operator.purpose}."}
        schema = column.kind.schema
        if operator.name == "isnull":
            schema = kinds.Boolean.schema
        elif operator.name in ("in", "not") or column.kind.many:
            schema = kinds.Kind.schema
        super().__init__(attribute=f"filters.{name}", metadata={**schema, **purpose})
        self._column, self._operator = column, operator

    def _deserialize(self, value: str, *args: Any, **kwargs: Any) -> tuple[Filter, ...]:
        conditions: tuple[Filter, ...] = _parse(partial(self._operator.read, self._column), value)
        return conditions


class _OtherTypes(fields.Field[Any]):
    """``type__not``, as a condition."""

    def __init__(self, endpoint: Endpoint) -> None:
        examples = [*endpoint.types]
        super().__init__(
            attribute="filters.type__not", metadata={"type": "string", "examples": examples}
        )
        self._endpoint = endpoint

    def _deserialize(self, value: str, *args: Any, **kwargs: Any) -> tuple[Filter, ...]:
        types = [*map(self._endpoint.named, value.split(","))]
        if any(map(self._endpoint.is_of_all, types)):
            return NOTHING
        labels = {label for declared in types for label in declared.types}
        return (Filter("type", "not", tuple(sorted(labels))),)


def _parse(read: Callable[[str], Any], value: str, wanted: str = "") -> Any:
    try:
        return read(value)
    except ValueError as error:
        raise ma.ValidationError(wanted or str(error)) from None


class _Locale(fields.String):
    """``locale``, as a condition; whether the language is known is for the content to say."""

    def __init__(self) -> None:
        super().__init__(attribute="filters.locale")

    def _deserialize(self, value: str, *args: Any, **kwargs: Any) -> Any:
        return (Filter("locale", "eq", value),)


_PAGES_ONLY = " Only pages/ has it."
_LANGUAGES_ONLY = " Only pages/ has it, where CMS_I18N_ENABLED is on."
_SEARCH_OFF = " Searching is switched off."
_LIST_AND_DETAIL = ("list", "detail", "detail_by_path")
_ALL = (*_LIST_AND_DETAIL, "find")

#: All query parameters, by name. Fields of the same names could be shown but not filtered by.
PARAMETERS = {
    parameter.name: parameter
    for parameter in (
        Parameter(
            "limit",
            "The maximum number of items.",
            lambda use: _Integer(validate=_limit_range(use.settings)),
        ),
        Parameter(
            "offset",
            "The number of items to skip.",
            lambda use: _Integer(validate=validate.Range(0, error="must be from 0 on")),
        ),
        Parameter(
            "order",
            "The fields to order by, separated by commas, with - in front for descending; or "
            "random.",
            lambda use: _Order(use.declared),
            empty_is_absent=True,
        ),
        Parameter(
            "fields",
            "The fields to show.",
            lambda use: fields.String(),
            views=_LIST_AND_DETAIL,
            empty_is_absent=True,
        ),
        Parameter(
            "rich_text_format",
            "How rich text is written: db_html, html, markdown or db_markdown.",
            lambda use: fields.String(validate=[_FORMAT, _require_packages]),
            views=_LIST_AND_DETAIL,
        ),
        Parameter(
            "facets",
            "The fields whose most frequent values are counted, separated by commas.",
            lambda use: _Facets(use.declared),
        ),
        Parameter(
            "search",
            "Only objects with these words, the best matches first.",
            lambda use: fields.String(),
            endpoints=_is_searched,
            hint=_SEARCH_OFF,
        ),
        Parameter(
            "autocomplete",
            "Only objects with these words, the last one as the beginning of a word; those with "
            "such a word in their title first.",
            lambda use: fields.String(),
            endpoints=_is_searched,
            hint=_SEARCH_OFF,
        ),
        Parameter(
            "search_operator",
            "Whether objects must have every word (and) or one of them (or).",
            lambda use: _Operator(),
            endpoints=_is_searched,
            hint=_SEARCH_OFF,
            empty_is_absent=True,
        ),
        Parameter(
            "type",
            "Only objects of these types, separated by commas.",
            lambda use: fields.String(metadata={"examples": [*use.declared.served_at.types]}),
            endpoints=has_types,
            hint=" Only endpoints with several types have it.",
            empty_is_absent=True,
        ),
        Parameter(
            "type__not",
            "No objects of these types, separated by commas.",
            lambda use: _OtherTypes(use.declared.served_at),
            endpoints=_is_tree,
            hint=_PAGES_ONLY,
            empty_is_absent=True,
        ),
        Parameter(
            "child_of",
            "Only the children of this page, an id or root.",
            _place("child_of"),
            endpoints=_is_tree,
            hint=_PAGES_ONLY,
        ),
        Parameter(
            "descendant_of",
            "Only the pages below this page, an id or root.",
            _place("descendant_of"),
            endpoints=_is_tree,
            hint=_PAGES_ONLY,
        ),
        Parameter(
            "ancestor_of",
            "Only the pages above this page, an id.",
            _place("ancestor_of"),
            endpoints=_is_tree,
            hint=_PAGES_ONLY,
        ),
        Parameter(
            "translation_of",
            "Only the translations of this page, an id or root.",
            _place("translation_of"),
            endpoints=_has_locales,
            hint=_LANGUAGES_ONLY,
        ),
        Parameter(
            "locale",
            "Only pages in this language.",
            lambda use: _Locale(),
            views=("list", "find", "detail_by_path"),
            endpoints=_has_locales,
            hint=_LANGUAGES_ONLY,
        ),
        Parameter(
            "site",
            "The site, as hostname or hostname:port.",
            lambda use: fields.String(),
            views=_ALL,
            endpoints=_is_of_sites,
            hint=" Only pages/ and redirects/ have it.",
            empty_is_absent=True,
        ),
        Parameter(
            "preview",
            "A token that shows an object that is not public yet.",
            lambda use: fields.String(),
            views=_ALL,
        ),
        Parameter(
            "html_path",
            "A path on the site, without scheme and host.",
            lambda use: fields.String(),
            views=("find", "detail_by_path"),
            endpoints=_is_of_sites,
            hint=" Only find/ and detail_by_path/ have it.",
        ),
        Parameter(
            "format",
            "json, or ndjson for the whole list, one JSON object a line.",
            lambda use: fields.String(validate=_formats(use.settings)),
        ),
        Parameter("_", "Has no effect.", lambda use: fields.String()),
    )
}
