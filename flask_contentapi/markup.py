"""Rich text: what it points to, and the formats that answers write it in.

Links to pages and documents and embedded images are stored as ``<a linktype="page" id="3">`` and
``<embed embedtype="image" id="3"/>``. All other markup of a text stays as it is, to the byte, as
long as it is harmless.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from html import escape, unescape
from html.parser import HTMLParser
from importlib.util import find_spec
from itertools import pairwise
from operator import itemgetter
from string import ascii_lowercase
from typing import Any, NamedTuple

from flask_contentapi.cache import BoundedCache
from flask_contentapi.kinds import INT64

#: The formats, each with the packages that it needs.
FORMATS: Mapping[str, Sequence[str]] = {
    "db_html": (),
    "html": ("nh3",),
    "markdown": ("nh3", "markdownify"),
    "db_markdown": ("nh3", "markdownify"),
}
#: The kinds of targets, each with its endpoint.
KINDS = {"page": "pages", "document": "documents", "image": "images"}
#: The attributes that lead to a target, from its kind and its id; None if it may not be seen.
Resolve = Callable[[str, int], Mapping[str, Any] | None]
#: The elements that are marked, each with the attribute that says so.
_MARKS = {"a": "linktype", "embed": "embedtype"}
#: How many characters of texts are kept in parts, and how many of those that have been converted.
CACHE_SIZE = 4_000_000
#: The classes of image formats whose names differ from them.
_CLASSES = {"fullwidth": "full-width"}
#: From this depth on, Markdown has nothing but the text, the links and the images.
DEEPEST = 100
#: What ends nothing: no tag, comments, and elements without content.
_SINGLE = frozenset(("", "!", "br", "hr", "img", "embed", "input", "col", "wbr", "source"))
#: Elements that run scripts, or whose content browsers read in another way than parsers do.
_SCRIPTS = frozenset(("script", "noscript"))
#: Attributes that are a document of their own, or mark what has no target.
_NEVER = frozenset(("srcdoc", "linktype", "embedtype"))
_SCHEMES = ("javascript:", "vbscript:")
_ID = re.compile(r"[0-9]{1,19}")
_TAG_NAME = re.compile(r"<([a-z][^\s/>\0]*)", re.IGNORECASE)
_SCHEME_NAME = re.compile(r"(?<![a-z0-9+.-])([a-z][a-z0-9+.-]*+):", re.IGNORECASE)

#: What editors write: all that stays as it is, or one of the other tags. Not what browsers and
#: parsers read in different ways, such as elements whose content is no markup.
_HARMLESS = r"""
    (?: [^<]++
    | </ (?! (?:a|embed|{raw}) > ) {name} >
    | < (?! (?:a|embed|{raw}) [ \n/>] ) {name} {harmless}
    )
"""
_TIDY = re.compile(
    rf"""
    (?: {_HARMLESS} | <a {{harmless}} {_HARMLESS}*+ </a> )++
    | </ (?P<ended> (?! (?:{{raw}}) > ) {{name}} ) >
    | < (?P<tag> (?! (?:{{raw}}) [ \n/>] ) {{name}} )
      (?P<attributes> (?: [ \n]++ {{name}} = "[^"<>]*+" )*+ ) {{end}}
    """.format(
        name="[a-z][a-z0-9-]*+",
        end=r"[ \n]*+ /? >",
        harmless=rf"""
            (?: [ \n]++ (?! on|{"|".join(_NEVER)} ) [a-z][a-z0-9-]*+ =
                " (?: (?: https?:// | mailto: | [/\#] ) [^"<>]*+ | [^"<>&:]*+ ) "
            )*+ [ \n]*+ /? >
        """,
        raw="script|style|textarea|title|iframe|noembed|noframes|noscript|plaintext|xmp|svg|math",
    ),
    re.VERBOSE,
)
_ATTRIBUTE = re.compile(r'([a-z][a-z0-9-]*+)="([^"]*+)"')

Attributes = Sequence[tuple[str, str | None]]
#: Tags, and everything between them: where they begin; tags with their names and attributes.
Tokens = list[tuple[int, str, Attributes]]


@cache
def installed_packages() -> frozenset[str]:
    """Those of the packages that formats need that are installed."""
    return frozenset(name for name in FORMATS["markdown"] if find_spec(name) is not None)


def missing_packages(format: str) -> list[str]:
    """The packages that a format needs but that are not installed."""
    return [name for name in FORMATS[format] if name not in installed_packages()]


class Marked(NamedTuple):
    """A link or an embedded object that is not stored as HTML.

    :param kind: ``page``, ``document``, ``image``, ``media``, or anything else.
    :param id: the id of its target, or -1.
    :param attributes: its other attributes.
    :param is_link: whether it is a link, which has an end.
    """

    kind: str
    id: int
    attributes: Mapping[str, str]
    is_link: bool


class End(NamedTuple):
    """The end of the last :class:`Marked` link that has not ended yet."""

    text: str


#: HTML as it is, and what is marked.
Part = str | Marked | End


class HTMLReader(HTMLParser):
    """Finds the tokens of a text, and one at its end."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._lines = [0, *(match.end() for match in re.finditer("\n", text))]
        self.tokens: Tokens = []
        # Behind the last tag the parser would look for the end of each tag up to the end.
        end = text.rfind(">") + 1
        self.feed(text[:end])
        self.close()
        self.tokens += [(end, "", ())] * (end < len(text))
        self.tokens.append((len(text), "", ()))

    def _note(self, tag: str = "", attributes: Attributes = ()) -> None:
        line, offset = self.getpos()
        self.tokens.append((self._lines[line - 1] + offset, tag, attributes))

    handle_starttag = handle_startendtag = _note  # type: ignore[assignment]

    def handle_endtag(self, tag: str) -> None:
        self._note(f"/{tag}")

    def handle_data(self, data: str) -> None:
        self._note()

    def handle_comment(self, data: str) -> None:
        self._note("!")

    handle_decl = handle_pi = unknown_decl = handle_comment  # type: ignore[assignment]


def _tokens(text: str) -> Tokens:
    """The tokens of a text, and one at its end; of what is neither marked nor harmful one of all
    that stands together."""
    tokens: Tokens = []
    end = 0
    for match in _TIDY.finditer(text):
        if match.start() != end:
            break
        ended, tag, attributes = match.group("ended", "tag", "attributes")
        known = [(n, unescape(v)) for n, v in _ATTRIBUTE.findall(attributes)] if attributes else ()
        tokens.append((end, f"/{ended}" if ended else tag or "", known))
        end = match.end()
    if end != len(text):
        # The parser takes everything, and much longer.
        return HTMLReader(text).tokens
    return [*tokens, (end, "", ())]


#: The parts of texts, in order.
_READ: BoundedCache[tuple[Sequence[Part], int]] = BoundedCache(CACHE_SIZE, itemgetter(1))
#: By whether HTML is wanted and the HTML with addresses, of which nothing else is made.
_CONVERTED: BoundedCache[tuple[str, int]] = BoundedCache(CACHE_SIZE, itemgetter(1))


def _read(text: str) -> Sequence[Part]:
    known = _READ.get(text) or _READ.put(text, ([*_parts(_finished(text))], len(text)))
    return known[0]


def _finished(text: str) -> str:
    """A text without the mark that it breaks off in, of which browsers show nothing."""
    for quote in ("", '"', "'") if not text.endswith(">") and _has_marks(text) else ():
        start, tag, attributes = _tokens(f"{text}{quote}>")[-2]
        if start < len(text) and _MARKS.get(tag) in dict(attributes):
            return text[:start]
    return text


def _has_marks(text: str) -> bool:
    lowered = text.lower()
    return any(mark in lowered for mark in _MARKS.values())


def _parts(text: str) -> Iterator[Part]:
    # Of each open link whether it is marked; how many embedded objects may still be ended.
    links: list[bool] = []
    embedded, script = 0, ""
    for (start, tag, attributes), (end, *_) in pairwise(_tokens(text)):
        raw = text[start:end]
        if script or tag in _SCRIPTS:
            script = "" if tag == f"/{script}" else script or tag
            continue
        if tag == "!" and "=" in raw and _has_marks(raw):
            # Nothing of a target is left in a comment, which can end earlier in browsers.
            continue
        # Of several attributes with a name the first one counts.
        known = {name: value or "" for name, value in reversed(attributes)}
        mark = _MARKS.get(tag, "")
        if mark in known:
            kind = known.pop(mark).strip().lower()
            if tag == "a" and kind not in ("page", "document"):
                kind = ""
            identity = known.pop("id", "").strip()
            target = int(identity) if _ID.fullmatch(identity) else -1
            yield Marked(kind, target if target in INT64 else -1, known, tag == "a")
            embedded += tag == "embed"
            links += [True] if tag == "a" else []
        elif tag == "/embed" and embedded:
            embedded -= 1
        elif tag == "/a" and links and links.pop():
            yield End(raw)
        else:
            links += [False] if tag == "a" else []
            harmless = [(n, v) for n, v in attributes if _is_harmless(n, v)]
            yield raw if len(harmless) == len(attributes) else _tag(tag, harmless)


def _is_harmless(name: str, value: str | None) -> bool:
    address = "".join(char for char in value or "" if char > " ").lower()
    return not (name.startswith("on") or name in _NEVER or address.startswith(_SCHEMES))


def _tag(name: str, attributes: Attributes) -> str:
    written = (n if v is None else f'{n}="{escape(v)}"' for n, v in attributes)
    return f"<{' '.join([name, *written])}>"


def targets_in(text: str) -> Iterator[tuple[str, int]]:
    """The targets of a text, each as its endpoint and its id."""
    for part in _read(text) if _has_marks(text) else ():
        if isinstance(part, Marked) and part.kind in KINDS and part.id >= 0:
            yield KINDS[part.kind], part.id


def convert(text: str, format: str, resolve: Resolve) -> str:
    """A text in another format.

    :param format: ``html``, ``markdown`` or ``db_markdown``.
    """
    if format == "html" and "<" not in text:
        return text
    html, is_html = "".join(_resolved(text, resolve)), format == "html"
    known = _CONVERTED.get((is_html, html))
    if known is None:
        safe = html if _is_safe(html) else _clean(html)
        written = safe if is_html else _markdown(safe)
        known = _CONVERTED.put((is_html, html), (written, len(html) + len(written)))
    return known[0]


def _resolved(text: str, resolve: Resolve) -> Iterator[str]:
    shown: list[bool] = []
    for part in _read(text):
        if isinstance(part, str):
            yield part
        elif isinstance(part, End):
            yield part.text if shown.pop() else ""
        elif part.is_link:
            found = _find(resolve, part.kind, part.id)
            shown.append(found is not None)
            if found is not None:
                others = {n: v for n, v in part.attributes.items() if _is_harmless(n, v)}
                known = {**found, **others, **found}
                # What is left of the address is the part of the page that is meant.
                if "href" in found and others.get("href", "").startswith("#"):
                    known["href"] += others["href"]
                yield _tag("a", [*known.items()])
        elif part.kind == "image":
            yield _image(_find(resolve, "image", part.id), part.attributes)
        elif part.kind == "media" and _is_harmless("href", url := part.attributes.get("url", "")):
            yield f'<a href="{escape(url)}">{escape(url)}</a>' if url else ""


def _find(resolve: Resolve, kind: str, identity: int) -> Mapping[str, Any] | None:
    return resolve(kind, identity) if kind in KINDS and identity >= 0 else None


def _image(found: Mapping[str, Any] | None, attributes: Mapping[str, str]) -> str:
    if found is None:
        return ""
    shape = attributes.get("format", "")
    classes = f"richtext-image {_CLASSES.get(shape, shape)}".rstrip()
    written = {"src": None, "alt": attributes.get("alt", ""), **found, "class": classes}
    return _tag("img", [(n, str(v)) for n, v in written.items() if v is not None])


def _options(html: str) -> dict[str, Any]:
    """The options with which nh3 keeps all elements and attributes that a text can have."""
    names = {name.lower() for name in _TAG_NAME.findall(html)}
    schemes = {scheme.lower() for scheme in _SCHEME_NAME.findall(html)}
    return {
        "tags": names,
        "clean_content_tags": set(),
        "generic_attribute_prefixes": {*ascii_lowercase},
        "url_schemes": schemes,
        "link_rel": None,
    }


def _is_safe(html: str) -> bool:
    """Whether a browser, too, would find nothing in a text that has to go."""
    import nh3

    options, wrong = _options(html), []

    def note(tag: str, name: str, value: str) -> None:
        if not _is_harmless(name, value):
            wrong.append(name)

    if options["tags"] & {"svg", "math"}:
        return False
    seen = nh3.clean(html, attribute_filter=note, **options)
    return not wrong and not any(f"<{name}" in seen for name in _SCRIPTS)


def _clean(html: str) -> str:
    """A text as browsers read it, in which everything is closed and harmless."""
    import nh3

    def harmless(tag: str, name: str, value: str) -> str | None:
        # With it would go a mark that only browsers have found.
        is_id = tag in _MARKS and name == "id"
        return value if _is_harmless(name, value) and not is_id else None

    options = _options(html)
    options["clean_content_tags"] = {"script", "style"}
    options["tags"] -= {*_SCRIPTS, "style", "svg", "math"}
    options["url_schemes"] -= {scheme.rstrip(":") for scheme in _SCHEMES}
    return nh3.clean(html, attribute_filter=harmless, **options)


def _markdown(html: str) -> str:
    from flask_contentapi.commonmark import commonmark

    html = _clean(html)
    if _depth(html) > DEEPEST:
        import nh3

        schemes = _options(html)["url_schemes"]
        html = nh3.clean(html, tags={"a", "img"}, url_schemes=schemes, link_rel=None)
    return commonmark(html)


def _depth(html: str) -> int:
    depth = most = 0
    for _, tag, _ in HTMLReader(html).tokens:
        depth += -1 if tag.startswith("/") else tag not in _SINGLE
        most = max(most, depth)
    return most
