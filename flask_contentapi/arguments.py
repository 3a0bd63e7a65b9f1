"""Reads query strings into arguments (specification, 4.1 and 4.2; contract, Parameters).

Reading is a pure function of the query string, so results are cached for the next request with
the same one. The caches are bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, cast
from urllib.parse import parse_qsl

import marshmallow as ma
from marshmallow import fields, validate
from webargs.core import Parser

from flask_contentapi import kinds, search
from flask_contentapi.answers import Plan, Planner
from flask_contentapi.cache import BoundedCache
from flask_contentapi.declarations import Column, Endpoint, ObjectType
from flask_contentapi.errors import BadRequest, remarks, suggest
from flask_contentapi.query import Filter, Order, Relation, Search
from flask_contentapi.registry import PARAMETERS, Registry
from flask_contentapi.selection import parse_fields
from flask_contentapi.settings import Settings

__all__ = ["Arguments", "ListArguments", "check_length", "check_values", "read_query_string"]

#: Limits on what a client may send, in characters.
MAX_QUERY_STRING = 16_384
MAX_VALUE = 4_096
#: How many different words a search may have.
MAX_WORDS = 50
#: How many filters a list may have, and by how many different fields it may be ordered.
MAX_FILTERS, MAX_ORDER = 50, 20
#: How much memory the caches of parsed query strings and of plans may take each, in the units of
#: :attr:`Plan.size`, and how long what is cached may be, in characters.
CACHE_SIZE, MAX_CACHED = 4096, 1024

#: Parameters that count as absent if they are empty.
_EMPTY_IS_ABSENT = ("type", "site", "order", "fields", "search_operator")
_TREE: tuple[Relation, ...] = ("child_of", "descendant_of", "ancestor_of", "translation_of")
#: Hints about parameters that are unknown here but exist elsewhere.
_HINTS_ELSEWHERE = {
    **dict.fromkeys((*_TREE, "site"), " Only pages/ has it."),
    **dict.fromkeys(
        ("locale", "translation_of"), " Only pages/ has it, where CMS_I18N_ENABLED is on."
    ),
    **dict.fromkeys(("search", "search_operator"), " Searching is switched off."),
    "html_path": " Only pages/find/ has it.",
    "type": " Only endpoints with several types have it.",
}

Root = Literal["root"]


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


@dataclass(frozen=True, slots=True)
class ListArguments:
    """The arguments of a list, before what depends on the content is looked up.

    :param plan: how the items are made.
    :param site: the ``site`` parameter, or "".
    :param types: as :attr:`Query.types`.
    :param filters: as :attr:`Query.filters`.
    :param tree: relations, each with the page it names: an id, or ``"root"``.
    :param locale: the ``locale`` parameter, or None.
    :param search: as :attr:`Query.search`.
    :param order: as :attr:`Query.order`.
    :param random: as :attr:`Query.random`.
    :param limit: as :attr:`Query.limit`.
    :param offset: as :attr:`Query.offset`.
    """

    plan: Plan
    site: str
    types: frozenset[str] | None
    filters: tuple[Filter, ...]
    tree: tuple[tuple[Relation, int | Root], ...]
    locale: str | None
    search: Search | None
    order: tuple[Order, ...]
    random: bool
    limit: int
    offset: int


class Arguments:
    """Reads the query strings of one instance.

    :param registry: the declared types.
    :param settings: its settings.
    :param ranks: whether its backend ranks searches.
    """

    def __init__(self, registry: Registry, settings: Settings, ranks: bool) -> None:
        self._registry = registry
        self._planner = Planner(registry, settings.i18n)
        self._parsers = {
            declared: _ListParser(declared, settings, ranks)
            for endpoint in registry.endpoints.values()
            for declared in {endpoint.base, *endpoint.types.values()}
        }
        self._stop_words = settings.stop_words
        self._lists: BoundedCache[ListArguments] = BoundedCache(CACHE_SIZE, lambda a: a.plan.size)
        self._plans: BoundedCache[Plan] = BoundedCache(CACHE_SIZE, lambda plan: plan.size)

    def detail_plan(self, endpoint: str, label: str, selected: str) -> Plan:
        """The plan for one object.

        :param label: the label of its type.
        :param selected: the ``fields`` parameter.
        :raises BadRequest: saying what is wrong with ``fields``.
        """
        key = endpoint, label, selected
        if (known := self._plans.get(key)) is not None:
            return known
        declared = self._registry.endpoints[endpoint].type_of(label)
        plan = self._planner.plan(declared, "detail", parse_fields(selected))
        return plan if len(selected) > MAX_CACHED else self._plans.put(key, plan)

    def list(self, name: str, query_string: bytes) -> ListArguments:
        """The arguments of a list of an endpoint.

        :raises BadRequest: naming what is wrong.
        """
        key = name, query_string
        if (known := self._lists.get(key)) is not None:
            return known
        read = self._list(name, query_string)
        return read if len(query_string) > MAX_CACHED else self._lists.put(key, read)

    def _list(self, name: str, query_string: bytes) -> ListArguments:
        check_length(query_string)
        given = read_query_string(query_string)
        check_values(given)
        absent = [key for key in _EMPTY_IS_ABSENT if given.get(key) == ""]
        for key in absent:
            del given[key]
        endpoint = self._registry.endpoints[name]
        named = _named_types(endpoint, given)
        declared = _common_type(endpoint, named)
        read = self._parsers[declared].read(given)
        order, random = read["order"]
        if random and "offset" in given:
            raise BadRequest("offset cannot be used with order=random.")
        if "child_of" in read and "descendant_of" in read:
            raise BadRequest("child_of and descendant_of cannot be used together.")
        filters = tuple(read.get("filters", {}).values())
        if len(filters) > MAX_FILTERS:
            raise BadRequest(f"The query has more than {MAX_FILTERS} filters.")
        return ListArguments(
            plan=self._planner.plan(declared, "list", parse_fields(read["fields"])),
            site=read.get("site", ""),
            types=_wanted_labels(endpoint, named),
            filters=filters,
            tree=tuple((relation, read[relation]) for relation in _TREE if relation in read),
            locale=read.get("locale"),
            search=self._search(read.get("search"), read.get("search_operator")),
            order=order,
            random=random,
            limit=read["limit"],
            offset=read["offset"],
        )

    def _search(self, text: str | None, operator: str | None) -> Search | None:
        if text is None:
            return None
        words = search.terms(text, self._stop_words)
        if len(words) > MAX_WORDS:
            raise BadRequest(f"search has more than {MAX_WORDS} different words.")
        return Search(words, operator == "and")


def _named_types(endpoint: Endpoint, given: Mapping[str, str]) -> list[ObjectType]:
    if not _has_types(endpoint) or "type" not in given:
        return []
    return list(dict.fromkeys(map(endpoint.named, given["type"].split(","))))


def _common_type(endpoint: Endpoint, named: Iterable[ObjectType]) -> ObjectType:
    """The type with the fields that the named types have in common: the nearest declared type
    that each of them is or derives from."""
    wanted = {declared.label for declared in named}
    above = [t for t in endpoint.types.values() if wanted and wanted <= t.types]
    return min(above, key=lambda declared: len(declared.types), default=endpoint.base)


def _has_types(endpoint: Endpoint) -> bool:
    return endpoint.tree or len(endpoint.types) > 1


def _wanted_labels(endpoint: Endpoint, named: Iterable[ObjectType]) -> frozenset[str] | None:
    """The labels to list; None for all, including undeclared ones."""
    labels = frozenset(label for declared in named for label in declared.types)
    return None if not labels or any(map(endpoint.is_of_all, named)) else labels


# Schemas of the parameters.


class _ListParser(Parser[Mapping[str, str]]):
    """A webargs parser for lists of one type. It is given the parameters, not a request."""

    DEFAULT_LOCATION = "query"
    DEFAULT_UNKNOWN_BY_LOCATION = {"query": ma.RAISE}

    def __init__(self, declared: ObjectType, settings: Settings, ranks: bool) -> None:
        super().__init__()
        self._declared = declared
        self._schema = _list_schema(declared, settings, ranks)

    def read(self, given: Mapping[str, str]) -> dict[str, Any]:
        """The values of parameters.

        :raises BadRequest: naming what is wrong with them.
        """
        values: dict[str, Any] = self.parse(self._schema, given)
        return values

    def load_querystring(self, req: Mapping[str, str], schema: ma.Schema) -> Mapping[str, str]:
        return req

    def handle_error(
        self,
        error: ma.ValidationError,
        req: Mapping[str, str],
        schema: ma.Schema,
        **_: Any,
    ) -> NoReturn:
        """Reports everything that is wrong in one message; unknown names take precedence."""
        wrong: dict[str, list[str]] = cast(dict[str, Any], error.messages)["query"]
        known = [field.data_key or name for name, field in schema.load_fields.items()]
        unknown = sorted(name for name in wrong if name not in known)
        if unknown:
            hint = remarks(unknown, lambda name: self._remark(name, known))
            hint = hint or f" Known are {', '.join(sorted(known))}."
            raise BadRequest(f"Unknown parameter: {', '.join(unknown)}.{hint}") from error
        sentences = [f"{name} {' '.join(texts)}" for name, texts in sorted(wrong.items())]
        raise BadRequest(_end_sentence("; ".join(sentences))) from error

    def _remark(self, name: str, known: Iterable[str]) -> str:
        """A hint about an unknown parameter."""
        hint = _HINTS_ELSEWHERE.get(name) or self._declared.hint(name, "filtered")
        return hint or suggest(name, known)


def _end_sentence(text: str) -> str:
    """The text with a full stop, unless it ends with a question."""
    return text if text.endswith("?") else f"{text}."


def _list_schema(declared: ObjectType, settings: Settings, ranks: bool) -> ma.Schema:
    """The parameters of a list of one type, including its own filters."""
    endpoint = declared.served_at
    parameters: dict[str, fields.Field[Any]] = {
        "limit": _Integer(load_default=settings.default_limit, validate=_limit_range(settings)),
        "offset": _Integer(load_default=0, validate=validate.Range(0, error="must be from 0 on")),
        "order": _Order(declared, load_default=((), False)),
        "fields": fields.String(load_default=""),
        "format": fields.String(validate=validate.OneOf(["json"], error="must be json")),
        "_": fields.Raw(),
    }
    if settings.search_enabled:
        parameters["search"] = fields.String()
        parameters["search_operator"] = _Operator(load_default="or" if ranks else "and")
    if _has_types(endpoint):
        parameters["type"] = fields.Raw()
    if endpoint.tree:
        parameters["site"] = fields.String()
        parameters.update({name: _PageId(root=name != "ancestor_of") for name in _TREE})
        if settings.i18n:
            parameters["locale"] = fields.String()
        else:
            del parameters["translation_of"]
    for name, column in declared.filterable.items():
        if name not in PARAMETERS:
            parameters[f"filter {name}"] = _Filter(name, column, "eq")
    for custom in declared.api_filters:
        parameters[f"filter {custom.name}"] = _Filter(
            custom.name, declared.columns[custom.source], custom.operator
        )
    schema = ma.Schema.from_dict(parameters, name=f"{declared.label} parameters")
    return schema(unknown=ma.RAISE)


def _limit_range(settings: Settings) -> validate.Range:
    highest = settings.limit_max
    allowed = "from 0 on" if highest is None else f"from 0 to {highest}"
    return validate.Range(0, highest, error=f"must be {allowed}")


class _Integer(fields.Field[int]):
    """An integer, clamped to what every database can store."""

    def _deserialize(self, value: str, *args: Any, **kwargs: Any) -> int:
        number: int = _parse(kinds.parse_integer, value)
        return max(min(number, kinds.INT64[-1]), kinds.INT64[0])


class _PageId(fields.Field[Any]):
    """A reference to a page: its id or, where that makes sense, ``root``."""

    def __init__(self, *, root: bool) -> None:
        super().__init__()
        self._root = root

    def _deserialize(self, value: str, *args: Any, **kwargs: Any) -> Any:
        if value == "root" and self._root:
            return value
        wanted = "must be the id of a page" + (", or root" if self._root else "")
        page = _parse(kinds.parse_integer, value, wanted)
        if page not in kinds.INT64:
            raise ma.ValidationError("names no page")
        return page


class _Operator(fields.Field[str]):
    """``search_operator``, in upper or lower case."""

    def _deserialize(self, value: str, *args: Any, **kwargs: Any) -> str:
        if value.lower() not in ("and", "or"):
            raise ma.ValidationError("must be 'and' or 'or'")
        return value.lower()


class _Order(fields.Field[Any]):
    """The keys of ``order``, and whether it is ``random``."""

    def __init__(self, declared: ObjectType, **kwargs: Any) -> None:
        super().__init__(**kwargs)
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


class _Filter(fields.Field[Any]):
    """A condition on a stored field."""

    def __init__(self, name: str, column: Column, operator: Any) -> None:
        super().__init__(data_key=name, attribute=f"filters.{name}")
        self._column, self._operator = column, operator

    def _deserialize(self, value: str, *args: Any, **kwargs: Any) -> Filter:
        wanted = _parse(self._column.kind.parse, value)
        if isinstance(wanted, kinds.Gap):
            return _neighbour_filter(self._column.name, self._operator, wanted)
        if self._column.kind.many:
            return Filter(self._column.name, "all", wanted)
        return Filter(self._column.name, self._operator, wanted)


def _neighbour_filter(name: str, operator: str, gap: kinds.Gap) -> Filter:
    """The filter for a value that cannot be stored, by its storable neighbours."""
    if operator in ("lt", "le") and gap.below is not None:
        return Filter(name, "le", gap.below)
    if operator in ("gt", "ge") and gap.above is not None:
        return Filter(name, "ge", gap.above)
    return Filter("id", "in", ())


def _parse(read: Callable[[str], Any], value: str, wanted: str = "") -> Any:
    try:
        return read(value)
    except ValueError as error:
        raise ma.ValidationError(wanted or str(error)) from None
