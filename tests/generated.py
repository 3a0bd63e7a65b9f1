"""Random content, and random requests for it that a model can answer too."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

from flask import request
from hypothesis import strategies as st
from marshmallow import fields

from flask_contentapi import (
    Blocks,
    ChildObject,
    Children,
    Entry,
    Image,
    Page,
    Redirect,
    Related,
    RichText,
    Tags,
)
from tests.model import (
    MANY,
    OTHERS,
    RELATIONS,
    SECTIONS,
    TYPES,
    Condition,
    Request,
    compares,
    comparisons_of,
    former,
    kinds_of,
    normal,
)

# The types; tests/model.py knows their fields.


class Part(ChildObject):
    app_label = "w"
    name = fields.String()
    picture = Related("images")
    pictures = fields.List(Related("images"))
    search_fields = ["name"]
    api_fields = ["name", "picture", "pictures"]


class Note(Page):
    app_label = "w"
    text = fields.String()
    rich = RichText()
    number = fields.Integer()
    ratio = fields.Float()
    amount = fields.Decimal(places=2)
    exact = fields.Decimal()
    flag = fields.Boolean()
    day = fields.Date()
    clock = fields.Time()
    moment = fields.DateTime()
    tags = Tags()
    picture = Related("images")
    paper = Related("documents")
    other = Related("pages")
    owner = Related("people")
    others = fields.List(Related("pages"))
    pictures = fields.List(Related("images"))
    parts = Children(Part)
    body = Blocks()
    data = fields.Raw()
    secret = fields.String()
    search_fields = ["text", "rich", "tags", "parts", "body"]
    api_fields = [
        *("text", "rich", "number", "ratio", "amount", "exact", "flag", "day", "clock", "moment"),
        *("tags", "picture", "paper", "other", "owner", "others", "pictures"),
        *("parts", "body", "data"),
    ]


class LongNote(Note):
    app_label = "w"
    extra = fields.String()
    search_fields = [*Note.search_fields, "extra"]
    api_fields = ["extra", *Note.api_fields]


class Plain(Page):
    app_label = "w"
    number = fields.Integer()
    text = fields.String()
    api_fields = ["text", "number"]


class Photo(Image):
    app_label = "w"
    rank = fields.Integer()
    credit = fields.String()
    search_fields = ["credit"]
    api_fields = ["rank", "credit"]


class Person(Entry):
    app_label = "w"
    endpoint = "people"
    name = fields.String()
    boss = Related("people")
    page = Related("pages")
    search_fields = ["name"]
    api_fields = ["name", "boss", "page"]


DECLARED = (Note, LongNote, Plain, Photo, Person, Redirect)


# Requests contain their own time and the restrictions that they may pass.


def clock() -> dt.datetime:
    """The time in the request's header."""
    return dt.datetime.fromisoformat(request.headers["X-Now"])


def can_view(rule: Any) -> bool:
    """Whether the request's header names a restriction."""
    return rule["type"] in request.headers["X-Open"].split(",")


def headers(wanted: Request) -> dict[str, str]:
    """The headers of a request."""
    return {"X-Now": wanted.moment.isoformat(), "X-Open": ",".join(sorted(wanted.opened))}


# Values: few, so that requests match some, and odd ones.

_ODD = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)
TEXTS = [
    *("", "a", "A", "a ", " a", "ab", "Ab", "b", "é", "e\u0301", "É", "ß", "SS", "İ", "ﬁ", "ǆ"),
    *("storm", "Storm night", "the", "the storm", "Σίσυφος", "ΣΊΣΥΦΟΣ", "船と港", "🚢", "z" * 60),
    *("100%", "a_b", "o'clock", '"x"', "<b>", "\n", "\u2028", "x\\y", "-1", "9", "10", "null"),
    "sto\u00adrm",
]
RICH = [
    *("", "<p>c<b>af</b>&eacute;</p>", "<p>storm</p><p>night</p>", "a&nbsp;b", "x<br/>y"),
    *('un<a href="storm">der</a>', "<!-- storm --> seen", "1 < 2 &amp; 3", "<p>É<i>clair</i></p>"),
    "sto&shy;rm",
    '<A ID="1" linktype=page>a <embed embedtype="image" id="2"/></a><a linktype=document id=3>b',
    '<p onclick="x">*a*<script>storm</script><a linktype="page" id="99">1. _c_</a>',
]
FORMER = [
    "/a",
    "a/",
    "/A",
    "/a?x=1&y=2",
    "/a?y=2&x=1",
    "/a/?z",
    "/é",
    "/%C3%A9/",
    "/b c",
    "b%20c#d",
]
INSTANTS = [
    *("0001-01-01T00:00:00Z", "2026-01-15T08:00:00Z", "2026-01-15T09:00:00+01:00", "2026-01-15"),
    *("2026-01-15T08:00:00.000001Z", "2026-05-31T23:59:59", "9999-12-31T23:59:59Z"),
]
POOLS: dict[str, list[Any]] = {
    "text": TEXTS,
    "rich": RICH,
    "integer": [0, 1, -1, 2, 10, 2**31, -(2**63), 2**63 - 1],
    "float": [0.0, -0.0, 1.5, 0.1, 0.30000000000000004, 1e21, -1e308, 5e-324, 3],
    "decimal": ["0", "-0", "4.50", "4.5", "0.1", "0.10", "1e3", "1000", -9, "9" * 27 + ".99"],
    "boolean": [True, False],
    "date": ["0001-01-01", "1900-01-01", "2026-01-15", "2026-01-16", "9999-12-31"],
    "time": ["00:00", "00:00:00.000001", "18:30", "18:30:00", "23:59:59.999999"],
    "datetime": INSTANTS,
}
#: Values that no field can have, but that it can be compared with.
UNSTORABLE: dict[str, list[Any]] = {
    "integer": [10**25, -(10**25)],
    "decimal": ["4.505", "-0.001", "1e40"],
}
TAGS = ["a", "A", "b", "a b", "é", "100%", "storm", ""]
NOW = dt.datetime(2026, 6, 1, tzinfo=dt.UTC)
WINDOWS = ["2026-05-31T00:00:00Z", "2026-06-01T00:00:00Z", "2026-06-01T00:00:00.000001Z"]
RULES = ["login", "groups", "password"]
IDS = [1, 2, 3, 4, 5, 7, 9, 10, 11, 12, 20, 100]
PEOPLE = [1, 2, 3]
LOCALES = ["en", "fr", "pt-br"]
HOSTS = ["a.example", "a.example:8000", "b.example", "B.EXAMPLE:81", "c.example", "c.example:8000"]

mostly: st.SearchStrategy[bool] = st.sampled_from([True, True, True, False])
seldom: st.SearchStrategy[bool] = st.sampled_from([False, False, True])
texts = st.sampled_from(TEXTS) | _ODD
restrictions = st.sampled_from([None] * 7 + [{"type": rule} for rule in RULES])


def values(kind: str) -> st.SearchStrategy[Any]:
    """Values of a kind, in the form for records."""
    if kind == "text":
        return texts
    if kind == "tags":
        return st.lists(st.sampled_from(TAGS), max_size=3)
    if kind.startswith(MANY):
        return st.lists(values(kind.removeprefix(MANY)), max_size=3)
    if kind in RELATIONS:
        return st.sampled_from([*IDS, 99])
    return st.sampled_from(POOLS[kind])


def own_fields(declared: dict[str, str]) -> dict[str, st.SearchStrategy[Any]]:
    """Values for each field, sometimes None."""
    return {name: st.none() | values(kind) for name, kind in declared.items() if name != "id"}


_EXACT = st.sampled_from(["0.1", "0.10", "1e3", "1000", "1e-30", "9" * 30, "-7"])
_BLOCK = st.fixed_dictionaries({"type": st.just("t"), "value": st.sampled_from(TEXTS + RICH)})
_BODY = st.lists(_BLOCK, max_size=2)
_SLUGS = ["a", "A", "é", "x y", "100%", "."]
_COMMON: dict[str, st.SearchStrategy[Any]] = {
    "live": st.sampled_from([*[True] * 6, None, False]),
    "go_live_at": st.sampled_from([*[None] * 9, *WINDOWS]),
    "expires_at": st.sampled_from([*[None] * 9, *WINDOWS, INSTANTS[-1]]),
    "first_published_at": values("datetime"),
    "show_in_menus": st.booleans(),
    "seo_title": texts,
    "search_description": texts,
    "translation_key": st.sampled_from([None, "k1", "k2", "k3"]),
    "alias_of": st.none() | values("pages"),
    "restriction": restrictions,
}
_NOTE = {**own_fields(TYPES["w.Note"]), "exact": st.none() | _EXACT, "body": _BODY, "secret": texts}
_FIELDS = {
    "w.Note": _NOTE,
    "w.LongNote": {**_NOTE, "extra": texts},
    "w.Plain": own_fields(TYPES["w.Plain"]),
    "gone.Type": {"price": st.integers(0, 9)},
}


@st.composite
def pages(draw: st.DrawFn, locales: list[str]) -> list[dict[str, Any]]:
    """A tree of pages in any order, so that children may come before their parents."""
    fewest = draw(st.sampled_from([0, 4, 8]))
    ids = draw(st.lists(st.sampled_from(IDS), unique=True, min_size=fewest, max_size=10))
    records = []
    for place, id in enumerate(ids):
        label = draw(st.sampled_from(["w.Note", "w.Note", "w.LongNote", "w.Plain", "gone.Type"]))
        fixed: dict[str, st.SearchStrategy[Any]] = {
            "title": texts,
            "slug": st.sampled_from([f"{start}{id}" for start in _SLUGS]),
            "parent": st.sampled_from([None, *ids[:1] * 3, *ids[:place] * 2][: 9 * place + 1]),
        }
        optional = {**_COMMON, **_FIELDS[label]}
        if locales:
            optional["locale"] = st.sampled_from(locales)
        record = draw(st.fixed_dictionaries(fixed, optional=optional))
        records.append({"id": id, "type": label, **record, **draw(parts(label, id))})
    return draw(st.permutations(records))


@st.composite
def parts(draw: st.DrawFn, label: str, page: int) -> dict[str, Any]:
    """The child objects of a page."""
    if label not in ("w.Note", "w.LongNote"):
        return {}
    part = {
        "name": texts,
        "picture": st.none() | values("images"),
        "pictures": values("many images"),
    }
    entries = draw(st.lists(st.fixed_dictionaries({}, optional=part), max_size=2))
    return {"parts": [{"id": 10 * page + n, **entry} for n, entry in enumerate(entries)]}


def roots(pages: list[Any]) -> list[int]:
    """The pages that have children."""
    above = {page["parent"] for page in pages}
    return [page["id"] for page in pages if page["id"] in above]


@st.composite
def sites(draw: st.DrawFn, roots: list[int]) -> list[dict[str, Any]]:
    """Sites with different addresses, one of which may be the default."""
    hosts = st.tuples(st.sampled_from(["a.example", "B.example"]), st.sampled_from([80, 443, 8000]))
    addresses = draw(st.lists(hosts, unique=True, max_size=3)) if roots else []
    default = draw(st.sampled_from([0, 0, 0, 1, None]))
    return [
        {
            "hostname": host,
            "port": port,
            "root_page": draw(st.sampled_from(roots)),
            "is_default": n == default,
        }
        for n, (host, port) in enumerate(addresses)
    ]


@st.composite
def media(
    draw: st.DrawFn, collections: list[int], optional: dict[str, st.SearchStrategy[Any]]
) -> list[dict[str, Any]]:
    """Images or documents, some of them in collections."""
    fewest = draw(st.sampled_from([0, 3]))
    ids = draw(st.lists(st.sampled_from(IDS[:6]), unique=True, min_size=fewest, max_size=5))
    shared = {"tags": values("tags"), "file": st.sampled_from(["", "a b.png", "https://x/y"])}
    shared["collection"] = st.sampled_from([None, *collections])
    record = st.fixed_dictionaries({"title": texts}, optional={**shared, **optional})
    return [{"id": id, **draw(record)} for id in ids]


@st.composite
def contents(draw: st.DrawFn) -> dict[str, list[Any]]:
    """Complete content."""
    locales = draw(st.sampled_from([[], ["en"], LOCALES, LOCALES[::-1]]))
    tree = draw(pages(locales or draw(st.sampled_from([[], LOCALES]))))
    count = draw(st.integers(0, 4))
    collections = [
        {
            "id": id,
            "parent": draw(st.sampled_from([None, *range(1, id)])),
            "restriction": draw(restrictions),
        }
        for id in range(1, count + 1)
    ]
    ids = [collection["id"] for collection in collections]
    numbers = st.none() | values("integer")
    sizes = {"width": numbers, "height": numbers, "rank": numbers, "credit": texts}
    person = st.fixed_dictionaries({}, optional=own_fields(OTHERS["people"]))
    return {
        "locales": locales,
        "sites": draw(sites([page["id"] for page in tree] + [*roots(tree)] * 4)),
        "collections": collections,
        "pages": tree,
        "images": draw(media(ids, sizes)),
        "documents": draw(media(ids, {})),
        "people": [{"id": id, **draw(person)} for id in PEOPLE[: draw(st.integers(0, 3))]],
        "redirects": draw(redirects()),
    }


@st.composite
def redirects(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Redirects with different paths or sites."""
    sites = st.sampled_from([None, None, "a.example:80", "A.example:8000", "none.example"])
    places = st.tuples(st.sampled_from(FORMER), sites)
    unique = draw(
        st.lists(places, max_size=5, unique_by=lambda place: (str(former(place[0])), place[1]))
    )
    optional = {"is_permanent": st.booleans(), "redirect_page": st.none() | values("pages")}
    record = st.fixed_dictionaries({}, optional=optional)
    return [
        {"id": id, "old_path": path, "site": site, "redirect_link": "/x", **draw(record)}
        for id, (path, site) in enumerate(unique, 1)
    ]


# Requests.


def spellings(kind: str, value: Any) -> list[str]:
    """The ways in which a client may write a value."""
    if kind == "boolean":
        return ["true", "1"] if value else ["false", "0"]
    if kind == "integer" or kind in RELATIONS:
        return [str(value), f" {value} ", f"{value:+}"]
    if kind == "decimal":
        return [str(value), f"{Decimal(str(value)):f}"]
    if kind == "datetime":
        return instants(normal(kind, value))
    if kind == "tags":
        return [",".join(value)]
    return [str(value)]


def instants(moment: dt.datetime) -> list[str]:
    """An instant with several offsets, unless the date would be out of range."""
    written = [moment.astimezone(dt.UTC).isoformat().replace("+00:00", "Z")]
    for hours in (1, -9.5):
        zone = dt.timezone(dt.timedelta(hours=hours))
        try:
            written.append(moment.astimezone(zone).isoformat())
        except OverflowError:
            continue
    # A plus sign that was not encoded arrives as a space.
    return [*written, *(text.replace("+", " ") for text in written)]


@st.composite
def conditions(draw: st.DrawFn, kinds: dict[str, str], records: list[Any]) -> Condition:
    """Filters on a field, most of them for a value that some record has."""
    name = draw(st.sampled_from(list(kinds)))
    kind = kinds[name]
    own: list[Any] = [record[name] for record in records if record.get(name) not in (None, [])]
    from_records = bool(own) and draw(mostly)
    value = draw(st.sampled_from(own) if from_records else values(kind))
    if kind == "tags":
        value = value or [draw(st.sampled_from(TAGS))]
        return Condition(name, ",".join(value), kind, lambda tags: tags >= {*value})
    if kind.startswith(MANY):
        ids = {*value} or {99}
        return Condition(name, ", ".join(map(str, ids)), kind, lambda found: {*found} >= ids)
    written = draw(st.sampled_from(spellings(kind, value)))
    wanted = value if kind in RELATIONS else normal(kind, value)
    return Condition(name, written, kind, lambda found: found is not None and found == wanted)


@st.composite
def comparisons(draw: st.DrawFn, kinds: dict[str, str], records: list[Any]) -> Condition:
    """Filters on a field that compare it, most of them with values that some record has."""
    name = draw(st.sampled_from(list(kinds)))
    kind = kinds[name]
    operator = draw(st.sampled_from(comparisons_of(kind)))
    parameter = f"{name}__{operator}"
    if operator == "isnull":
        missing = draw(st.booleans())
        written = draw(st.sampled_from(spellings("boolean", missing)))
        return Condition(parameter, written, kind, lambda found: compares("isnull", found, missing))
    entry = {"tags": "text"}.get(kind, kind.removeprefix(MANY))
    own = [record[name] for record in records if record.get(name) not in (None, [])]
    own = [one for value in own for one in (value if isinstance(value, list) else [value])]
    one = st.sampled_from(own * 3 + UNSTORABLE.get(kind, [])) if own else values(entry)
    size = 3 if operator in ("in", "not") else 1
    asked = draw(st.lists(one, min_size=1, max_size=size))
    written = ",".join(draw(st.sampled_from(spellings(entry, value))) for value in asked)
    if size == 1:
        wanted = normal(entry, asked[0])
    else:
        # A comma in a text separates two values as well.
        texts = entry in ("text", "rich")
        wanted = [normal(entry, value) for value in (written.split(",") if texts else asked)]
    return Condition(parameter, written, kind, lambda found: compares(operator, found, wanted))


@st.composite
def requests(draw: st.DrawFn, content: dict[str, list[Any]], i18n: bool) -> Request:
    """Requests for lists, most of them for pages, and for values that exist."""
    section = draw(st.sampled_from(["pages"] * 5 + [*SECTIONS[1:]]))
    records = content.get(section, [])
    is_tree = section == "pages"
    types = draw(labels(records)) if is_tree and draw(seldom) else None
    kinds = kinds_of(section, types)
    shuffled = draw(st.integers(0, 11)) == 7
    hosts = [f"{site['hostname']}:{site['port']}" for site in content["sites"]]
    hosts += [site["hostname"] for site in content["sites"]]
    known = bool(hosts) and draw(mostly)
    host = st.sampled_from(hosts if known else HOSTS)
    locale = st.sampled_from([*(content["locales"] or LOCALES), *LOCALES, "xx"])
    return Request(
        section,
        draw(host),
        draw(st.frozensets(st.sampled_from(RULES), min_size=draw(st.integers(0, 3)))),
        draw(st.sampled_from([NOW, NOW, NOW - dt.timedelta(days=2), NOW + dt.timedelta(days=9)])),
        types,
        draw(filters(kinds, records)) if draw(seldom) else [],
        [] if shuffled else draw(orders(kinds)),
        shuffled,
        draw(trees([*(record["id"] for record in records), *roots(records) * 5, 99], i18n))
        if is_tree and draw(st.booleans())
        else [],
        draw(searches(records)) if draw(seldom) else None,
        draw(st.sampled_from([None, True, False])),
        draw(beginnings(records)) if draw(seldom) else None,
        draw(host) if section in ("pages", "redirects") and draw(seldom) else None,
        draw(locale) if is_tree and i18n and draw(seldom) else None,
        draw(st.sampled_from([None, None, 1, 2, 20, 0])),
        draw(st.sampled_from([None, None, 1, 3, 10**25])),
        draw(st.sampled_from([None, None, "*", "_,id"])),
        draw(facets(kinds, is_tree)) if draw(seldom) else (),
        draw(st.sampled_from([None, None, None, "html", "markdown", "db_markdown"])),
        draw(st.tuples(st.sampled_from(sorted({section, "pages"})), st.sampled_from(IDS)))
        if draw(seldom)
        else None,
    )


def facets(kinds: dict[str, str], is_tree: bool) -> st.SearchStrategy[tuple[str, ...]]:
    """Fields whose values are counted."""
    names = [name for name in kinds if name != "locale"] + ["type"] * is_tree
    return st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True).map(tuple)


def labels(records: list[Any]) -> st.SearchStrategy[tuple[str, ...]]:
    """Values of ``type``, in any letter case."""
    there = [record["type"] for record in records if record["type"] in TYPES]
    known = st.sampled_from([*there, *TYPES, "w.NOTE"])
    return st.lists(known, min_size=1, max_size=2).map(tuple)


def filters(kinds: dict[str, str], records: list[Any]) -> st.SearchStrategy[list[Condition]]:
    """Filters by different parameters, because the last one of each would win."""
    filterable = {name: kind for name, kind in kinds.items() if name != "locale"}
    either = conditions(filterable, records) | comparisons(filterable, records)
    drawn = st.lists(either, min_size=1, max_size=3)
    return drawn.map(lambda found: list({one.parameter: one for one in found}.values()))


def orders(kinds: dict[str, str]) -> st.SearchStrategy[list[tuple[str, bool]]]:
    """Sort keys, each field once."""
    single = [name for name, kind in kinds.items() if not kind.startswith(("tags", MANY))]
    orderable = st.sampled_from(single)
    keys = st.tuples(orderable, st.booleans())
    return st.lists(keys, max_size=2, unique_by=lambda key: key[0])


@st.composite
def trees(draw: st.DrawFn, pages: list[int], i18n: bool) -> list[tuple[str, int | str]]:
    """Conditions on places in the tree of pages."""
    known = ["child_of", "descendant_of", "ancestor_of", *(["translation_of"] if i18n else [])]
    size = draw(st.sampled_from([1, 1, 1, 2]))
    relations = draw(st.lists(st.sampled_from(known), min_size=size, max_size=size, unique=True))
    named: dict[str, list[Any]] = {"ancestor_of": pages}
    rooted = [*pages, "root", "root"]
    return [(name, draw(st.sampled_from(named.get(name, rooted)))) for name in relations]


_WORDS = ["storm", "STORM night", "the", "the storm", "é", "a", "b a", "café", "船と港", "", " "]


def searches(records: list[Any]) -> st.SearchStrategy[str]:
    """Search texts, most of them from the records."""
    there = [text for record in records for text in record.values() if isinstance(text, str)]
    return st.sampled_from([*there, *_WORDS]) | texts


def beginnings(records: list[Any]) -> st.SearchStrategy[str]:
    """Texts for ``autocomplete``, most of them from the records, cut anywhere."""
    cut = st.tuples(searches(records), st.integers(1, 12))
    return cut.map(lambda drawn: drawn[0][: drawn[1]])
