"""Writes Markdown as rich text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache, partial
from html import escape
from itertools import pairwise
from typing import Any, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline, html_inline, image, link

from flask_contentapi.files import markdown_parser
from flask_contentapi.markup import HTMLReader

#: What templates write for the address of another file, and what it means.
_REFERENCES = (
    (re.compile(r"""\{\{[<%]\s*(?:rel)?ref\s+["']([^"'\s]+)["']\s*[>%]\}\}"""), r"\1"),
    (re.compile(r"\{%\s*link\s+([^\s%]+)\s*%\}"), r"/\1"),
    (re.compile(r"\{%\s*post_url\s+([^\s%]+)\s*%\}"), r"/_posts/\1"),
    (
        re.compile(r"""\{\{\s*["']/?([^"'\s]*)["']\s*\|\s*(?:relative|absolute)_url\s*\}\}"""),
        r"/\1",
    ),
    # In front of one that starts at the root, as it does here.
    (re.compile(r"(?:\{\{\s*site\.(?:base)?url\s*\}\})+(?=/)"), ""),
)
_BRACES = r"\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}"
#: In MDX: what stays as it is, code in lines, in the text, and what a backslash is before, which is
#: group 1; statements, up to an empty line outside braces; expressions; and the tags of components.
_MDX = re.compile(
    r"(^(?:[ \t>]|(?:[-*+]|[0-9]+[.)])[ \t])*(?P<fence>```+|~~~+)"
    r".*?(?:^[ \t>]*(?P=fence)[`~]*[ \t]*$|\Z)"
    r"|(?<!`)(?P<ticks>`+)(?!`)(?:[^\n]|\n(?![ \t]*\n)){1,1000}?(?<!`)(?P=ticks)(?!`)|\\.)"
    rf"|(?:\A\s*|(?<=\n\n))(?:import|export)\s(?:{_BRACES}|.)*?(?=^[ \t]*$|\Z)"
    rf"|{_BRACES}"
    rf"""|</?(?:[A-Z][\w.]*(?:\s(?:[^<>{{}}"']|"[^"]*"|'[^']*'|{_BRACES})*)?/?)?>""",
    re.DOTALL | re.MULTILINE,
)
#: The kinds of links by the endpoint of what they lead to.
_LINKS = {"pages": "page", "documents": "document"}


class Target(NamedTuple):
    """What an address leads to.

    :param endpoint: where it is served.
    :param id: its id.
    :param fragment: the part of it that is meant, as ``#bread``, or "".
    """

    endpoint: str
    id: int
    fragment: str


#: What an address leads to, if it is inside the folder; from the address, the endpoint of files
#: that are no pages, and the line, counted from 1.
Find = Callable[[str, str, int], Target | None]
Attributes = Mapping[str, Any]


def first_heading(text: str) -> str:
    """The text of the first heading of Markdown, of the outermost level; "" if there is none."""
    for token, inner in pairwise(_parser().parse(text)):
        if token.tag == "h1" and inner.children:
            return "".join(part.content for part in inner.children).strip()
    return ""


@cache
def _parser(*, is_mdx: bool = False) -> MarkdownIt:
    """Reads Markdown. Links, images and HTML know how many lines they end below the start of their
    block, as ``below`` in their ``meta``."""
    parser = markdown_parser()
    for rule in (link, image, html_inline):
        parser.inline.ruler.at(rule.__name__, partial(_apply, rule))
    return parser.disable("code") if is_mdx else parser


def _apply(rule: Callable[[StateInline, bool], bool], state: StateInline, silent: bool) -> bool:
    known = len(state.tokens)
    fits = rule(state, silent)
    if fits and not silent:
        made = next(token for token in state.tokens[known:] if token.type != "text")
        made.meta["below"] = state.src.count("\n", 0, state.pos)
    return fits


def without_code(text: str) -> str:
    """MDX as Markdown, in as many lines: without code and components, whose contents stay."""
    return _MDX.sub(lambda m: m[0] if m[1] else "\n" * m[0].count("\n"), text)


def rich_text(text: str, find: Find, *, is_mdx: bool = False) -> str:
    """Markdown as rich text, with links and images as it stores them.

    :param is_mdx: whether lines can be indented, which does not make them code.
    """
    for pattern, path in _REFERENCES:
        text = pattern.sub(path, text)
    parser = _parser(is_mdx=is_mdx)
    tokens = parser.parse(text)

    def mark(tag: str, known: Attributes, line: int) -> Attributes:
        address = str(known.get("href" if tag == "a" else "src") or "")
        return _marked(tag, known, find(address, "documents" if tag == "a" else "images", line))

    for token in tokens:
        for inner in (token, *(token.children or ())):
            line = (token.map or [0])[0] + 1 + inner.meta.get("below", 0)
            if inner.type == "link_open":
                inner.attrs = dict(mark("a", inner.attrs, line))
            elif inner.type == "image":
                alt = "".join(part.content for part in inner.children or ())
                made = mark("img", {**inner.attrs, "alt": alt}, line)
                if "embedtype" in made:
                    inner.type, inner.content = "html_inline", _tag("embed", made)
            elif inner.type in ("html_inline", "html_block"):
                inner.content = _with_marks(inner.content, mark, line)
    html: str = parser.renderer.render(tokens, parser.options, {})
    return html.strip("\n")


def _marked(tag: str, known: Attributes, target: Target | None) -> Attributes:
    """The attributes of a link or an image that leads to a target."""
    if target is None or (tag == "img" and target.endpoint != "images"):
        return known
    if tag == "img":
        alt = str(known.get("alt") or "")
        return {"embedtype": "image", "id": target.id, "alt": alt, "format": "fullwidth"}
    others = {name: value for name, value in known.items() if name not in ("href", "id")}
    fragment = {"href": target.fragment} if target.fragment else {}
    return {"linktype": _LINKS[target.endpoint], "id": target.id, **fragment, **others}


def _tag(name: str, attributes: Attributes) -> str:
    written = (n if v is None else f'{n}="{escape(str(v))}"' for n, v in attributes.items())
    return f"<{' '.join([name, *written])}{'/' * (name == 'embed')}>"


def _with_marks(html: str, mark: Callable[[str, Attributes, int], Attributes], line: int) -> str:
    parts = []
    for (start, tag, attributes), (end, *_) in pairwise(HTMLReader(html).tokens):
        known = dict(attributes)
        made = mark(tag, known, line) if tag in ("a", "img") else known
        name = "embed" if "embedtype" in made else tag
        parts.append(html[start:end] if made is known else _tag(name, made))
        line += html.count("\n", start, end)
    return "".join(parts)
