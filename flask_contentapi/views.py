"""The views: list, detail and find of each endpoint, and the view of unknown addresses."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from decimal import Decimal
from functools import cached_property, lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, cast
from urllib.parse import parse_qsl, urlencode

import orjson
from flask import Request, Response, stream_with_context
from flask import request as current_request
from werkzeug.datastructures import Headers
from werkzeug.exceptions import Forbidden, MethodNotAllowed
from werkzeug.utils import redirect

from flask_contentapi import kinds
from flask_contentapi.addresses import host_of
from flask_contentapi.answers import Plan
from flask_contentapi.backend import Reader, attempted
from flask_contentapi.caching import Freshness, Tagged, tag
from flask_contentapi.content import Restriction
from flask_contentapi.declarations import Endpoint
from flask_contentapi.errors import BadRequest, NotFound
from flask_contentapi.fields import itself
from flask_contentapi.parameters import (
    ROOT,
    STREAM,
    STREAM_TYPE,
    check_length,
    check_values,
    read_query_string,
)
from flask_contentapi.query import Filter, Query, Row, Selected, Viewer
from flask_contentapi.sites import Site, normal_path, quote_slug, split_path
from flask_contentapi.sources import Context, Lookup, Way
from flask_contentapi.state import State

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

#: The error message for addresses where nothing is served.
NOTHING = "There is nothing at this address."
#: How many sets of restrictions that viewers may pass are kept.
KNOWN_SETS = 64
_METHODS = ("GET", "HEAD", "OPTIONS")
_JSON = "application/json"
_JSON_OPTIONS = orjson.OPT_UTC_Z | orjson.OPT_NAIVE_UTC
_LINE_OPTIONS = _JSON_OPTIONS | orjson.OPT_APPEND_NEWLINE
#: How many items of a stream are made at a time.
BATCH = 200
#: How long a ``Link`` header may be. Proxies refuse answers whose headers are longer than 4 KiB.
MAX_LINK = 3000
_ID = re.compile(r"0*([0-9]{1,19})")
#: An id that no page has.
NO_PAGE = -1
#: The filters for the object that ``find/`` looks for, and the paths that count, the best one
#: first; None: any.
_Candidate = tuple[tuple[Filter, ...], Sequence[str] | None]


def json_response(value: Any, status: int = 200) -> Response:
    """A JSON response. Instants end in ``Z``."""
    return Complete(_json(value), status, content_type=_JSON)


def _json(value: Any, option: int = _JSON_OPTIONS) -> bytes:
    try:
        return orjson.dumps(value, default=_decimal, option=option)
    except orjson.JSONEncodeError:
        # Only a site's own code makes keys other than strings, which take longer.
        return orjson.dumps(value, default=_decimal, option=option | orjson.OPT_NON_STR_KEYS)


def allowed_methods() -> Response:
    """The response to OPTIONS at every address, also where GET is redirected or finds nothing:
    browsers refuse any other status before a request from another origin."""
    response = Response(headers={"Allow": ", ".join(_METHODS)})
    del response.headers["Content-Type"]
    return response


#: Addresses that have no more to be quoted.
_QUOTED = re.compile(r"[\w!$%&'()*+,./:;=?@~-]+", re.ASCII)


class Complete(Response):
    """A response with all its data. Werkzeug would copy its headers and quote its address again,
    which takes longer than all that it is made of."""

    def get_wsgi_headers(self, environ: WSGIEnvironment) -> Headers:
        headers = dict(self.headers.to_wsgi_list())
        is_quoted = _QUOTED.fullmatch(headers.get("Location", "/"))
        if self.status_code in (200, 302) and is_quoted and "Content-Length" in headers:
            return self.headers
        return super().get_wsgi_headers(environ)


def _decimal(value: Any) -> str:
    if isinstance(value, Decimal):
        return format(value, "f")
    raise TypeError(f"{value!r} is no JSON")


def identify_viewer(state: State, reader: Reader, query_string: bytes) -> Viewer:
    """The viewer: who sends the request, and when. A token that is not accepted is refused."""
    previewed = moment = None
    # Most requests need not be read for this; a name may be percent-encoded.
    is_read = b"preview" in query_string or b"%" in query_string
    token = read_query_string(query_string).get("preview") if is_read else None
    if token is not None:
        previewed, moment = state.previews.read(token)
    viewer = Viewer(kinds.utc(state.clock()))
    if state.can_view is not None:
        pages, collections = (_opened(some, state.can_view) for some in reader.restrictions)
        viewer = Viewer(viewer.moment, pages, collections)
    if previewed is None:
        return viewer
    return viewer._replace(moment=moment or viewer.moment, previewed=previewed)


class Responder:
    """Responds to one request. Knows the site it is for, and what its sender may see.

    :ivar scope: as :attr:`Query.scope`.
    :ivar schedule: the scope of the pages whose appearing or expiring can change the response:
        those of the site or, once it has looked at others, all (None).
    :raises NotFound: if there is no such site.
    :raises BadRequest: if the parameter names no single site.
    """

    def __init__(
        self, request: Request, state: State, endpoint: Endpoint, reader: Reader, viewer: Viewer
    ) -> None:
        self.request, self.reader, self.viewer = request, reader, viewer
        self.endpoint, self._state = endpoint, state
        self.host, query_string = host_of(request), request.query_string
        # Most requests need not be read for this; a name may be percent-encoded.
        is_named = endpoint.of_sites and (b"site" in query_string or b"%" in query_string)
        named = self.given.get("site", "") if is_named else ""
        addresses = state.origins.find(reader.sites, self.host, request.root_path, named)
        if addresses.site is None and endpoint.of_sites:
            here = self.host if self.host.name else "the host of the request"
            raise NotFound(
                f"No site answers to {here}. A site can be named with site=, or be the default."
            )
        self.site, self.addresses = addresses.site or Site(""), addresses
        self.scope, self._paths = addresses.scope if endpoint.tree else None, addresses.paths
        self.schedule = None if endpoint.essential else addresses.scope

    @cached_property
    def given(self) -> Mapping[str, str]:
        """The parameters of the request."""
        return read_query_string(self.request.query_string)

    @property
    def names(self) -> Sequence[str]:
        """The names of the site, the full one first, and "" for what is of all sites."""
        own = f"{self.site.hostname}:{self.site.port}"
        return *self.reader.sites.aliases.get(own, ()), ""

    def check_preview(self) -> None:
        """Refuses the token of a page of another site.

        :raises Forbidden: if the token of the request is one.
        """
        endpoint, identity = self.viewer.previewed or ("", 0)
        if self.scope is None or endpoint != self.endpoint.name:
            return
        found = self.reader.fetch(endpoint, [identity], ["url_path"], self.viewer)
        if found and not found[identity][0].startswith(self._paths):
            raise Forbidden("The token of preview is for a page of another site.")

    def check_shown(self, identity: int) -> None:
        """Refuses the token of another object than the only one that is asked for.

        :raises Forbidden: if the token of the request is one.
        """
        if self.viewer.previewed not in (None, (self.endpoint.name, identity)):
            raise Forbidden("The token of preview is for another object.")

    def respond(
        self, plan: Plan, rows: Sequence[Row], wrap: Callable[[list[Any]], Any], *shown: Tagged
    ) -> Response:
        """Builds the response from rows.

        :param wrap: makes the body from the items.
        :param shown: what it is made of besides the objects that the rows point to.
        :raises BadRequest: if too many objects would be embedded.
        """
        settings = self._state.settings
        related = plan.look_up(rows, self, settings.embed_max)
        build = plan.bind(Context(self.addresses, related))
        response = Complete(_json(wrap([build(row) for row in rows])), content_type=_JSON)
        if plan.volatile:
            response.headers["Cache-Control"] = "no-store"
        if settings.cache_tag_header is not None:
            tag(response, settings, chain(shown, plan.shown(related)))
        return response

    def stream(self, plan: Plan, query: Query) -> Response:
        """Builds the response with every object that a query finds, one JSON object a line.

        :raises BadRequest: if too many objects would be embedded in the first items.
        """
        lines = self._lines(plan, query)
        # Made before the response, whose status tells of errors.
        first = next(lines, b"")
        if self.request.method == "HEAD":
            lines.close()
            response = Response()
            response.automatically_set_content_length = False
        else:
            response = Response(stream_with_context(chain([first], lines)))
            response.call_on_close(lines.close)
        response.content_type = STREAM_TYPE
        if plan.volatile or query.random:
            response.headers["Cache-Control"] = "no-store"
        # Which objects it is made of is known only at its end.
        steps = (step for step in plan.layout.steps if isinstance(step, Lookup | Way))
        embedded = [step.layout.type.served_at.name for step in steps]
        shown = [(name, None) for name in (query.endpoint, *embedded)]
        tag(response, self._state.settings, shown)
        return response

    def _lines(self, plan: Plan, query: Query) -> Generator[bytes]:
        ids, start, size = self.reader.ids(query), 0, BATCH
        most = self._state.settings.embed_max
        while wanted := ids[start : start + size]:
            found = self.reader.fetch(query.endpoint, wanted, plan.columns, self.viewer)
            rows = [found[identity] for identity in wanted]
            try:
                related = plan.look_up(rows, self, most)
            except BadRequest:
                if size == 1:
                    raise
                size = (size + 1) // 2
                continue
            build = plan.bind(Context(self.addresses, related))
            yield b"".join(_json(build(row), _LINE_OPTIONS) for row in rows)
            start += size

    def select(self, query: Query) -> Selected:
        """The pages that others lead to, as :meth:`Reader.select`. Notes if pages of other sites
        can be among them; those above or below a page are in the same site."""
        if query.filters[0].column == "translation_key":
            self.schedule = None
        return self.reader.select(query)

    def fetch(
        self,
        endpoint: str,
        columns: Sequence[str],
        relations: Iterable[tuple[Collection[int], bool]],
    ) -> Sequence[Mapping[int, Row]]:
        """Fetches what relations point to, as :meth:`Source.fetch`. Notes if pages of other sites,
        or such as are not there yet, are among it."""
        known, relations = self._state.registry.endpoints[endpoint], [*relations]
        wanted = {identity for ids, _ in relations for identity in ids}
        if known.essential and wanted:
            self.schedule = None
        fetched = self.reader.fetch(endpoint, wanted, columns, self.viewer) if wanted else {}
        result = []
        for ids, within_site in relations:
            found = {identity: fetched[identity] for identity in ids if identity in fetched}
            if known.tree and (self.schedule is not None or within_site):
                elsewhere = [i for i, row in found.items() if not row[0].startswith(self._paths)]
                if within_site and self.scope is not None:
                    for identity in elsewhere:
                        del found[identity]
                elif elsewhere or len(found) < len(ids):
                    self.schedule = None
            result.append(found)
        return result

    def check_locale(self, locale: str) -> None:
        """Refuses unknown languages. If the content declares none, those of the pages count that
        the viewer may see; others must not become known.

        :raises NotFound: if it is unknown.
        """
        known = self.reader.locales
        if not known:
            in_locale = (Filter("locale", "eq", locale),)
            query = Query(
                "pages", (), self.viewer, self.scope, filters=in_locale, limit=1, count=False
            )
            if self.reader.select(query).rows:
                return
        elif locale in known:
            return
        among = f"There are {', '.join(known)}." if known else "None is declared."
        raise NotFound(f"There is no language {locale!r}. {among}")


def _opened(
    restrictions: Mapping[int, Restriction], can_view: Callable[[Mapping[str, Any]], bool]
) -> frozenset[int]:
    passed = {identity for identity, own in restrictions.items() if can_view(own.rule)}
    opened = set()
    for identity in passed:
        above: int | None = identity
        while above in passed:
            above = restrictions[above].within
        if above is None:
            opened.add(identity)
    return _known_set(frozenset(opened))


@lru_cache(KNOWN_SETS)
def _known_set(ids: frozenset[int]) -> frozenset[int]:
    """The first set with these ids, so that backends that keep it with answers keep it once."""
    return ids


class EndpointView:
    """Base of the views. Their URL rules accept every method, so that every response is ours.

    :cvar has_previews: whether the ``preview`` parameter means anything.
    """

    has_previews: ClassVar[bool] = True

    def __init__(self, state: State, endpoint: Endpoint) -> None:
        self.state = state
        self.endpoint = endpoint

    def dispatch(self, **parts: str) -> Response:
        """Answers GET and HEAD by :meth:`answer`.

        :param parts: the variable parts of the address.
        """
        # Through the proxy, each attribute access would look up the current context.
        request: Request = current_request._get_current_object()  # type: ignore[attr-defined]
        if request.method in ("GET", "HEAD"):
            return self.answer(request, **parts)
        if request.method == "OPTIONS":
            return allowed_methods()
        raise MethodNotAllowed(_METHODS, f"Only {', '.join(_METHODS)} are answered here.")

    def answer(self, request: Request, **parts: str) -> Response:
        """The response to GET and HEAD, by default that of :meth:`get`."""
        if self.is_long(request):
            answer = attempted(lambda: self._long_answer(request, **parts))
        else:
            read = self.state.backend.read
            answer, key = read(lambda reader: self._answer(request, reader, **parts))
            # Only now is it certain that the answer is from a single state.
            self.state.answer_cache.put(key, answer)
        if self.state.outages.is_reported:
            self.state.outages.end()
        return answer

    def _long_answer(self, request: Request, **parts: str) -> Response:
        with ExitStack() as stack:
            reader = stack.enter_context(self.state.backend.snapshot_reader())
            answer, _ = self._answer(request, reader, **parts)
            if answer.is_streamed:
                # It closes, when it is sent, what it is still made from.
                answer.call_on_close(stack.pop_all().close)
        return answer

    def _answer(
        self, request: Request, reader: Reader, **parts: str
    ) -> tuple[Response, str | None]:
        """The answer, and the key to cache it with if it is to be cached."""
        query_string = request.query_string if self.has_previews else b""
        viewer = identify_viewer(self.state, reader, query_string)
        if "id" in parts:
            read_id(parts["id"])
        # An unknown site is reported before anything else (contract, Errors).
        responder = Responder(request, self.state, self.endpoint, reader, viewer)
        if viewer.previewed is not None:
            responder.check_preview()
            answer = self.get(responder, **parts)
            answer.headers["Cache-Control"] = "private, no-store"
            return answer, None
        host, schedule = responder.host, responder.schedule
        freshness = Freshness(self.state, reader, viewer, request, host, schedule)
        if (unchanged := freshness.not_modified()) is not None:
            return unchanged, None
        for schedule, key in freshness.keys.items():
            if (hit := self.state.answer_cache.get(key)) is not None:
                return freshness.mark(Complete(*hit), schedule), None
        answer = freshness.mark(self.get(responder, **parts), responder.schedule)
        return answer, freshness.keys.get(responder.schedule)

    def is_long(self, request: Request) -> bool:
        """Whether the answer is sent while it is made."""
        return False

    def get(self, responder: Responder, **parts: str) -> Response:
        """The response, made from a single state of the content.

        :param parts: the variable parts of the address.
        """
        raise NotImplementedError

    def show(self, responder: Responder, identity: int, *shown: Tagged) -> Response:
        """The detail view of an object.

        :param shown: what it is made of besides the object.
        :raises NotFound: if it may not be seen.
        """
        name, plans = self.endpoint.name, dict[str, Plan]()
        query_string = responder.request.query_string

        def columns_of(label: str) -> tuple[str, ...]:
            plans[label] = self.state.parameters.detail(name, label, query_string)
            return plans[label].columns

        responder.check_shown(identity)
        found = responder.reader.get(name, identity, columns_of, responder.viewer, responder.scope)
        if found is None:
            raise not_found(self.endpoint)
        label, row = found
        shown = (*shown, (name, identity))
        return responder.respond(plans[label], [row], lambda items: items[0], *shown)


class ListView(EndpointView):
    """A list (specification, 2.1, 4.1 and 4.2)."""

    def is_long(self, request: Request) -> bool:
        can_be = self.state.settings.stream_enabled
        return can_be and read_query_string(request.query_string).get("format") == STREAM

    def get(self, responder: Responder, **parts: str) -> Response:
        name, query_string = self.endpoint.name, responder.request.query_string
        asked = self.state.parameters.list(name, query_string)
        # Without a home page the answer is that of a site whose home page is hidden.
        home = responder.site.homes[0].page if responder.site.homes else NO_PAGE
        plan, filters, tree = asked.plan, asked.query.filters, asked.query.tree
        if self.endpoint.redirects:
            filters = (*filters, Filter("site_name", "in", responder.names))
        if tree:
            tree = tuple(t._replace(page=home) if t.page == ROOT else t for t in tree)
        viewer, scope = responder.viewer, responder.scope
        query = asked.query._replace(viewer=viewer, scope=scope, filters=filters, tree=tree)
        if query.limit is None or asked.names_other_pages:
            responder.schedule = None
        selected = responder.reader.select(
            query._replace(limit=0) if query.limit is None else query
        )
        if selected.unseen:
            raise BadRequest(_unseen_message(asked.query, query, selected.unseen))
        for condition in asked.query.filters if self.endpoint.tree else ():
            if condition[:2] == ("locale", "eq"):
                responder.check_locale(condition.value)
        if query.limit is None:
            return responder.stream(plan, query)
        meta: dict[str, Any] = {"total_count": selected.total}
        if plan.facets:
            context, meta["facets"] = Context(responder.addresses, ()), {}
            for facet, counted in zip(plan.facets, selected.facets, strict=True):
                write = itself if facet.value is None else facet.value(context)
                values = [{"value": write(value), "count": count} for value, count in counted]
                meta["facets"][facet.export.name] = values
        response = responder.respond(
            plan, selected.rows, lambda items: {"meta": meta, "items": items}, (name, None)
        )
        if query.random:
            response.headers["Cache-Control"] = "no-store"
        elif link := self._link(responder, asked.given, query, selected.total):
            response.headers.add("Link", link)
        return response

    def _link(
        self, responder: Responder, given: Mapping[str, str], query: Query, total: int
    ) -> str:
        offsets: dict[str, int] = {}
        if query.limit and query.offset < total - query.limit:
            offsets["next"] = query.offset + query.limit
        if query.limit and query.offset:
            offsets["prev"] = max(min(query.offset, total) - query.limit, 0)
        if not offsets:
            return ""
        if self.endpoint.of_sites and not given.get("site") and responder.site.homes:
            # With CMSAPI_BASE_URL the next request can go to the host of another site.
            site = responder.addresses.other_site(responder.site.homes[0].url_path)
            given = {**given, **({"site": site} if site else {})}
        address = responder.addresses.detail_url(self.endpoint.name)
        # No value has a NUL character, so this stands for the offset alone.
        start, end = urlencode({**given, "offset": "\0"}).split("%00")
        link = ", ".join(
            f'<{address}?{start}{offset}{end}>; rel="{name}"' for name, offset in offsets.items()
        )
        return link if len(link) <= MAX_LINK else ""


class DetailView(EndpointView):
    """One object (specification, 4)."""

    def get(self, responder: Responder, **parts: str) -> Response:
        return self.show(responder, read_id(parts["id"]))


class FindView(EndpointView):
    """Redirects from an id to the detail view (specification, 4).

    :cvar consumed: the parameters that it does not pass on.
    :cvar path: the column in which objects are found by ``html_path``, if they are.
    :cvar needs: what it needs, for the message if that is missing.
    """

    consumed: ClassVar[Sequence[str]] = ("id",)
    path: ClassVar[Sequence[str]] = ()
    needs: ClassVar[str] = "id, a number"

    def get(self, responder: Responder, **parts: str) -> Response:
        given, query_string = responder.given, responder.request.query_string
        row = self.find(responder)
        check_values(given)
        pairs = parse_qsl(query_string.decode("utf-8", "replace"), keep_blank_values=True)
        kept = [(name, value) for name, value in pairs if name not in self.consumed]
        if self.endpoint.tree and not given.get("site"):
            # With CMSAPI_BASE_URL the next request can go to the host of another site.
            kept += [("site", site) for site in [responder.addresses.other_site(row[1])] if site]
        address = f"{responder.addresses.detail_url(self.endpoint.name)}{row[0]}/"
        location = f"{address}{'?' if kept else ''}{urlencode(kept)}"
        response = cast(Response, redirect(location, 302, Complete))
        tag(response, self.state.settings, [(self.endpoint.name, None)])
        return response

    def find(self, responder: Responder) -> Row:
        """The id of the object that the parameters name, and its path if it has one.

        :raises NotFound: if there is none.
        """
        check_length(responder.request.query_string)
        # Not every database compares texts with NUL characters, which nothing has.
        if any("\0" in responder.given.get(name, "") for name in ("html_path", "locale")):
            raise not_found(self.endpoint)
        for filters, paths in self.candidates(responder):
            query = Query(
                self.endpoint.name,
                ("id", *self.path),
                responder.viewer,
                scope=responder.scope,
                filters=filters,
                limit=1 if paths is None else None,
                count=False,
            )
            rows = responder.reader.select(query).rows
            if paths is not None:
                at_path = {row[1]: row for row in rows}
                rows = [at_path[path] for path in paths if path in at_path]
            if rows:
                responder.check_shown(rows[0][0])
                return rows[0]
        is_address = self.path and "://" in responder.given.get("html_path", "")
        hint = " html_path is a path without scheme and host, as /journal/." if is_address else ""
        raise not_found(self.endpoint, hint)

    def candidates(self, responder: Responder) -> Iterator[_Candidate]:
        """Where the object can be, at most in two ways, of which the first with a match decides."""
        text = responder.given.get("id", "").strip().removeprefix("+")
        identity = read_id(text, f"find/ needs {self.needs}.")
        yield (Filter("id", "eq", identity),), None


class FindPageView(FindView):
    """The same for pages, which can be found by a path."""

    consumed = ("id", "html_path")
    path = ("url_path",)
    needs = "html_path, the path of a page, or id, a number"

    def candidates(self, responder: Responder) -> Iterator[_Candidate]:
        given = responder.given
        requested = given.get("locale") if self.state.settings.i18n else None
        if requested is not None:
            responder.check_locale(requested)
        if "html_path" not in given:
            yield from super().candidates(responder)
            return
        site = responder.site
        locale, path = self.state.page_urls.resolve(site, requested, given["html_path"])
        parts = split_path(path)
        slugs = "".join(f"{quote_slug(part)}/" for part in parts)
        # With a language all trees can contain the path, its own one first.
        trees = sorted(site.homes, key=lambda h: h.locale != locale) if locale else site.homes[:1]
        if not trees:
            return
        home, *others = trees
        at_path = Filter("url_path", "eq", home.url_path + slugs)
        # A page can be in the tree of another language than its own.
        in_language = Filter("locale", "eq", locale)
        is_other = locale not in (None, home.locale)
        yield ((at_path, in_language) if is_other else (at_path,)), None
        # If the path itself names a tree, only that one counts. Otherwise one query asks the rest.
        if parts and others and locale == requested:
            named = Filter("slug", "eq", parts[-1])
            yield (named, in_language), [other.url_path + slugs for other in others]


class FindRedirectView(FindView):
    """The same for redirects, which can be found by their former path."""

    consumed = ("id", "html_path")
    path = ("site_path",)
    needs = "html_path, a former path, or id, a number"

    def candidates(self, responder: Responder) -> Iterator[_Candidate]:
        if "html_path" not in responder.given:
            yield from super().candidates(responder)
            return
        path = normal_path(responder.given["html_path"])
        tried = dict.fromkeys((path, path.partition("?")[0]))
        paths = [name + each for each in tried for name in responder.names]
        yield (Filter("site_path", "in", tuple(paths)),), paths


class DetailByPathView(FindPageView):
    """The page at a path, as its detail view shows it."""

    def get(self, responder: Responder, **parts: str) -> Response:
        if "html_path" not in responder.given:
            raise NotFound("detail_by_path/ needs html_path, the path of a page.")
        identity, _ = self.find(responder)
        return self.show(responder, identity, (self.endpoint.name, None))


class UnknownView(EndpointView):
    """Answers every unknown address under the prefix."""

    def dispatch(self, **parts: str) -> Response:
        if current_request.method == "OPTIONS":
            return allowed_methods()
        prefix = self.state.settings.url_prefix
        known = ", ".join(f"{prefix}/{name}/" for name in self.state.registry.endpoints)
        raise NotFound(f"{NOTHING} There are {known}; {prefix}/ describes them.")


def read_id(text: str, needed: str = "An object is named by its id, a number.") -> int:
    if text == "detail_by_path":
        needed = "Only pages/ has detail_by_path/; elsewhere there is find/."
    number = _ID.fullmatch(text)
    if number is None or (identity := int(number[1])) not in kinds.INT64:
        raise NotFound(needed)
    return identity


def not_found(endpoint: Endpoint, hint: str = "") -> NotFound:
    return NotFound(f"There is no such object in {endpoint.name}, or it may not be seen.{hint}")


def _unseen_message(asked: Query, query: Query, unseen: Sequence[int]) -> str:
    return " ".join(
        f"{relation} names a page that is not there: {'root' if page == ROOT else page}."
        for (relation, page), tree in zip(asked.tree, query.tree, strict=True)
        if tree.page in unseen
    )
