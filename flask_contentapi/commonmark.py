"""Writes HTML as CommonMark, so that it gives the same text, links and images again."""

from __future__ import annotations

import re
from collections.abc import Set
from html import escape
from typing import Any

from bs4 import BeautifulSoup
from bs4.element import NavigableString, Tag
from markdownify import MarkdownConverter

#: Characters that can mean something anywhere, and others at the start of a word or a text.
_ANYWHERE = re.compile(r"([\\`*_\[\]<>#~|]|&(?=#?\w))")
_AT_START = re.compile(r"(?<!\S)([-+=])")
_NUMBER = re.compile(r"(?<!\S)([0-9]{1,9})([.)])(?!\S)")
#: Characters that cannot be in the address of a link as they are.
_NO_ADDRESS = re.compile(r"[\s<>()\\\"\x00-\x1f]")
#: Where a list can start, so that its numbers have at most the nine digits that they may have.
_START = re.compile(r"[0-9]{1,8}")
_EMPHASIS = {"b": "**", "strong": "**", "em": "*", "i": "*"}
#: How markdownify writes what :class:`_Converter` leaves to it.
_OPTIONS: dict[str, Any] = {"heading_style": "atx", "wrap": True, "wrap_width": None}
#: Elements that hold nothing but lines, those that hold nothing but text, and those in a line.
_LISTS = ("ul", "ol")
_LINES = ("pre", "h1", "h2", "h3", "h4", "h5", "h6")
_CODE = ("code", "kbd", "samp")
#: The name for blocks in links, which become words.
_SPACED = "spaced"
_SPANS = (*_EMPHASIS, "del", "s", "sub", "sup")
_INLINE = frozenset(
    f"a abbr b bdi bdo br cite code data del dfn em i img ins kbd mark q s samp small {_SPACED} "
    "span strong sub sup time u var wbr".split()
)


def commonmark(html: str) -> str:
    """HTML as CommonMark. What this has no form for is left as HTML: tables, and some emphasis.

    :param html: well-formed, as browsers read it.
    """
    soup = BeautifulSoup(html, "html.parser")
    for outer in soup.find_all(["a", "ul", "ol", "li", *_LINES, *_CODE, *_SPANS]):
        if outer.name == "a":
            for inner in outer.find_all(_is_block):
                inner.name = _SPACED
        elif outer.name in _LISTS:
            _number(soup, outer)
        elif outer.name == "li":
            outer.name = "li" if getattr(outer.parent, "name", "") in _LISTS else "div"
        elif outer.name in _LINES:
            has_others = outer.find(_is_block) or (outer.name == "pre" and outer.find(["a", "img"]))
            outer.name = "div" if has_others else outer.name
        elif outer.find(True if outer.name in _CODE else _is_block):
            outer.name = outer.name if outer.find_parent("pre") else "span"
    text: str = _Converter(**_OPTIONS).convert_soup(soup)
    return text.strip()


def _number(soup: BeautifulSoup, outer: Tag) -> None:
    start = str(outer.get("start", ""))
    number = int(start) if _START.fullmatch(start) else 1
    children = [*outer.children]
    outer.clear()
    for child in children:
        entry = child
        if str(child).strip() and getattr(child, "name", "") not in ("li", *_LISTS):
            entry = soup.new_tag("li")
            entry.append(child)
        if outer.name == "ol" and isinstance(entry, Tag) and entry.name == "li":
            entry["value"] = str(number)
            number += 1
        outer.append(entry)


def _is_block(tag: Tag) -> bool:
    return tag.name not in _INLINE


def _address(address: str) -> str:
    quoted = _NO_ADDRESS.sub(lambda match: "".join(f"%{b:02X}" for b in match[0].encode()), address)
    return re.sub(r"&(?=#?\w+;)", r"\&", quoted)


def _parted(text: str) -> tuple[str, str, str]:
    inner = text.strip()
    start = text.index(inner) if inner else len(text)
    return text[:start][:1], inner, text[start + len(inner) :][:1]


class _Converter(MarkdownConverter):
    """markdownify, where its Markdown would not be CommonMark, or would lose something."""

    def escape(self, text: str, parent_tags: Set[str]) -> str:
        text = _AT_START.sub(r"\\\1", _ANYWHERE.sub(r"\\\1", text))
        return _NUMBER.sub(r"\1\\\2", text)

    def process_text(self, el: NavigableString, parent_tags: Set[str] | None = None) -> str:
        text: str = super().process_text(el, parent_tags)  # type: ignore[misc]
        if "_noformat" in (parent_tags or ()):
            return text
        # After a number it would make a list.
        if text[:1] in (".", ")") and (el.find_previous(string=True) or "")[-1:].isdecimal():
            text = f"\\{text}"
        is_last = el.next_sibling is None and el.parent is not None and _is_block(el.parent)
        following = None if is_last else el.next_element
        # In front of a link it would make an image of it.
        is_mark = text.endswith("!") and getattr(following, "name", None) in _INLINE
        return f"{text[:-1]}\\!" if is_mark else text

    def convert_a(self, el: Tag, text: str, parent_tags: Set[str]) -> str:
        before, inner, after = _parted(text)
        href = el.get("href")
        if href is None:
            return text
        if el.find("a"):
            return f'{before}<a href="{escape(str(href))}">{inner}</a>{after}'
        return f"{before}[{inner}]({self._destination(str(href), el)}){after}"

    def convert_img(self, el: Tag, text: str, parent_tags: Set[str]) -> str:
        alt = self.escape(" ".join(str(el.get("alt") or "").split()), parent_tags)
        return f"![{alt}]({self._destination(str(el.get('src') or ''), el)})"

    def _destination(self, address: str, el: Tag) -> str:
        title = " ".join(str(el.get("title") or "").split())
        title = re.sub(r'([\\"]|&(?=#?\w))', r"\\\1", title)
        return _address(address) + (f' "{title}"' if title else "")

    def _emphasis(self, el: Tag, text: str, parent_tags: Set[str]) -> str:
        if "_noformat" in parent_tags:
            return text
        before, inner, after = _parted(text)
        if not inner:
            return text
        mark = _EMPHASIS[el.name]
        near: list[Any] = [el.previous_sibling, el.next_sibling, el.find([*_EMPHASIS])]
        is_plain = inner[0].isalnum() and inner[-1].isalnum() and not parent_tags & {*_EMPHASIS}
        if is_plain and not any(isinstance(other, Tag) for other in near):
            return f"{before}{mark}{inner}{mark}{after}"
        return f"{before}<{el.name}>{inner}</{el.name}>{after}"

    convert_b = convert_strong = convert_em = convert_i = _emphasis

    def _as_html(self, el: Tag, text: str, parent_tags: Set[str]) -> str:
        is_shown = text.strip() and "_noformat" not in parent_tags
        return f"<{el.name}>{text}</{el.name}>" if is_shown else text

    convert_del = convert_s = convert_sub = convert_sup = _as_html

    def convert_br(self, el: Tag, text: str, parent_tags: Set[str]) -> str:
        # Two line breaks would end a paragraph, and what is open in it.
        is_open = parent_tags & {"a", *_SPANS}
        return "<br>" if is_open else " " if "_inline" in parent_tags else "  \n"

    def convert_li(self, el: Tag, text: str, parent_tags: Set[str]) -> str:
        is_numbered = el.parent is not None and el.parent.name == "ol"
        mark = f"{el['value']}. " if is_numbered else "- "
        text = re.sub(r"\n(?=[^\n])", "\n" + " " * len(mark), text.strip())
        return f"{mark}{text}\n" if text else "\n"

    def convert_spaced(self, el: Tag, text: str, parent_tags: Set[str]) -> str:
        return f" {text} "

    def convert_pre(self, el: Tag, text: str, parent_tags: Set[str]) -> str:
        text = text.strip("\n")
        longest = max(map(len, re.findall("`+", text)), default=0)
        fence = "`" * max(3, longest + 1)
        return f"\n\n{fence}\n{text}\n{fence}\n\n" if text.strip() else ""

    def convert_table(self, el: Tag, text: str, parent_tags: Set[str]) -> str:
        return "\n\n" + " ".join(str(el).split()) + "\n\n"

    def convert_q(self, el: Tag, text: str, parent_tags: Set[str]) -> str:
        return text

    def convert_dt(self, el: Tag, text: str, parent_tags: Set[str]) -> str:
        return f"\n\n{text.strip()}\n\n"

    convert_dd = convert_dt
