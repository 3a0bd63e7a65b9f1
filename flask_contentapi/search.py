"""Splits text into words, in the same way for content, queries and every backend.

A word is a run of letters and digits after NFKD normalisation, with combining marks and characters
that only control how text is shown dropped, lower-cased (contract, Parameters, search).
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

from flask_contentapi import kinds
from flask_contentapi.declarations import Column, ObjectType
from flask_contentapi.fields import RichText
from flask_contentapi.kinds import texts_in
from flask_contentapi.query import Row

#: Words that searches ignore; the default of the setting ``CMSAPI_STOP_WORDS``.
STOP_WORDS = frozenset(
    (
        "a an and are as at be but by for if in into is it no not of on or such that the their "
        "then there these they this to was will with"
    ).split()
)
#: How much more a word counts if it is in the title.
TITLE_WEIGHT = 8


#: Characters inside words that only control how text is shown: hyphenation, joining, direction.
_CONTROLS = frozenset(
    [0xAD, *range(0x200C, 0x2010), *range(0x202A, 0x202F), 0x2060, *range(0x2066, 0x206A), 0xFEFF]
)


class _Apart(dict[int, str | None]):
    """A table for :meth:`str.translate` that drops combining marks and controls, and turns
    everything else that is neither letter nor digit into a space. Entries are computed on first
    use."""

    #: More characters than any language needs, as clients can send a million.
    CACHE_SIZE = 8192

    def __missing__(self, code: int) -> str | None:
        char = chr(code)
        is_dropped = code in _CONTROLS or unicodedata.category(char)[0] == "M"
        found = char if char.isalnum() else None if is_dropped else " "
        if len(self) < self.CACHE_SIZE:
            self[code] = found
        return found


_APART = _Apart()

# The rest of a tag. A quoted attribute may contain any character; with unbalanced quotes the tag
# ends all the same. Possessive quantifiers avoid slow backtracking.
_REST = r"""(?:(?:=\s*+(?:"[^"]*"|'[^']*')|[^<>])*+>|[^<>]*+>)"""
# Markup inside a word does not end it, all other markup does.
_INLINE = re.compile(
    r"</?(?:a|abbr|b|bdi|bdo|cite|code|del|dfn|em|font|i|ins|kbd|mark|q|s|small|span|strong|sub|sup"
    rf"|u|var|wbr)(?:\s{_REST}|/?>)",
    re.IGNORECASE,
)
_MARKUP = re.compile(rf"<!--.*?-->|</?[A-Za-z]{_REST}|<![^<>]*>", re.DOTALL)


def words(text: str) -> list[str]:
    """The words of a text, in order.

    >>> words("Éclairs, 12_knots")
    ['eclairs', '12', 'knots']
    """
    return _apart(text).split()


def _apart(text: str) -> str:
    """The words of a text, in order, with spaces between and around them."""
    if not text.isascii():
        text = unicodedata.normalize("NFKD", text)
    apart = text.translate(_APART)
    if "Σ" in apart:
        # The only letter whose lower case depends on the characters around it, even other words.
        return " ".join([word.lower() for word in apart.split()])
    return apart.lower()


def plain_text(markup: str) -> str:
    """Rich text without its markup, entities decoded.

    >>> plain_text("<p>c<b>af</b>&eacute;</p><p>bar</p>")
    ' café  bar '
    """
    return html.unescape(_MARKUP.sub(" ", _INLINE.sub("", markup)))


def terms(query: str, stop_words: frozenset[str] = STOP_WORDS) -> tuple[str, ...]:
    """The distinct words of a query, without stop words unless there are no others."""
    found = tuple(dict.fromkeys(words(query)))
    return tuple(word for word in found if word not in stop_words) or found


def words_of(declared: ObjectType, row: Row) -> Mapping[str, int]:
    """The words that an object is found by, each with its weight for ranking.

    Weights depend on the object alone. The rarity of words would reveal hidden objects.

    :param row: the columns of its type, :attr:`ObjectType.column_names`.
    """
    counts = dict.fromkeys(rest_text(declared, row).split(), 1)
    counts.update(dict.fromkeys(title_text(declared, row).split(), 1 + TITLE_WEIGHT))
    return counts


def title_text(declared: ObjectType, row: Row) -> str:
    """The words of an object's title, in order, with spaces between and around them."""
    index = declared.places.get("title")
    return "" if index is None else _apart(row[index] or "")


def rest_text(declared: ObjectType, row: Row) -> str:
    """The words of everything else in an object that is searched, in the same form."""
    places = declared.places
    return _apart(" ".join([t for c in declared.searched for t in _texts(c, row[places[c.name]])]))


def _texts(column: Column, value: Any) -> Iterable[str]:
    if isinstance(column.field, RichText):
        return [plain_text(value or "")]
    if column.child is not None:
        places = column.child.places
        inner = [(other, places[other.name]) for other in column.child.searched]
        return [text for entry in value for c, place in inner for text in _texts(c, entry[place])]
    if isinstance(column.kind, kinds.Blocks):
        return map(plain_text, texts_in(value))
    return [value] if isinstance(value, str) else texts_in(value)
