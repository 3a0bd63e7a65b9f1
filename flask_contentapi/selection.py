"""Parses the ``fields`` parameter into a tree (specification, 4.3; contract, Fields)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from flask_contentapi.errors import BadRequest

#: The ways from a page to others.
WAYS = ("ancestors", "children", "translations")
#: What only an answer that names it has, also after ``*``.
ONLY_NAMED = (*WAYS, "renditions")

#: How deep brackets may be nested, and how many pairs there may be.
MAX_DEPTH, MAX_BRACKETS = 10, 50
#: A name, or a sign of the grammar. Names of fields can have characters that ``\w`` does not know,
#: such as the vowel signs of Hindi; all signs of the grammar are ASCII.
_TOKEN = re.compile(r"[\w\x80-\U0010ffff]+|[*(),-]")


@dataclass(frozen=True, slots=True)
class Selection:
    """What one level of ``fields`` asks for.

    :param base: ``"*"`` (all fields), ``"_"`` (none of the default fields) or "" (the defaults).
    :param added: names to add, each with the selection in its brackets, if it has any.
    :param removed: names to remove.
    """

    base: str = ""
    added: Mapping[str, Selection | None] = field(default_factory=lambda: MappingProxyType({}))
    removed: frozenset[str] = frozenset()


DEFAULT = Selection()


def parse_fields(text: str) -> Selection:
    """Parses the value of ``fields``; the last mention of a name wins.

    >>> parse_fields("*,-body").removed
    frozenset({'body'})
    >>> parse_fields("feed_image(_,width)").added["feed_image"].base
    '_'

    :raises BadRequest: if the text does not follow the grammar, saying where and why.
    """
    if not text:
        return DEFAULT
    parser = _Parser(text)
    selection = parser.parse_level(MAX_DEPTH)
    if parser.ahead:
        raise parser.error(f"{parser.ahead!r} is not expected here")
    return selection


class _Parser:
    """Walks over the tokens of the text; ``ahead`` is the next one, "" at the end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._end = 0
        self._brackets_left = MAX_BRACKETS
        self.ahead = ""
        self.advance()

    def error(self, why: str) -> BadRequest:
        start = self._end - len(self.ahead)
        return BadRequest(f"fields cannot be read at character {start + 1}: {why}.")

    def advance(self) -> str:
        taken = self.ahead
        match = _TOKEN.match(self._text, self._end)
        if not match and self._end < len(self._text):
            wrong = self._text[self._end]
            self.ahead = ""
            raise self.error(f"{wrong!r} has no meaning in it")
        self.ahead = match[0] if match else ""
        self._end += len(self.ahead)
        return taken

    def parse_level(self, depth: int) -> Selection:
        base = ""
        added: dict[str, Selection | None] = {}
        removed: set[str] = set()
        first = True
        while first or self.ahead == ",":
            if not first:
                self.advance()
            minus = bool(self.ahead == "-" and self.advance())
            if self.ahead == "" or self.ahead in "(),-":
                raise self.error("a name is missing")
            name = self.advance()
            if name in ("*", "_"):
                if minus or not first:
                    raise self.error(f"{name!r} stands first or not at all, without a minus")
                base = name
            elif minus:
                if base == "_":
                    raise self.error("after '_' there is nothing to take away")
                added.pop(name, None)
                removed.add(name)
            else:
                inner = self._brackets(depth) if self.ahead == "(" else None
                if base == "*" and inner is None and name not in ONLY_NAMED:
                    raise self.error(f"'*' brings {name!r} already")
                removed.discard(name)
                added[name] = inner
            if self.ahead == "(":
                raise self.error("brackets follow a name that is asked for")
            first = False
        return Selection(base, MappingProxyType(added), frozenset(removed))

    def _brackets(self, depth: int) -> Selection:
        if depth == 0:
            raise self.error(f"brackets are nested more than {MAX_DEPTH} deep")
        if self._brackets_left == 0:
            raise self.error(f"there are more than {MAX_BRACKETS} brackets")
        self._brackets_left -= 1
        self.advance()
        inner = self.parse_level(depth - 1)
        if self.ahead != ")":
            raise self.error("a bracket is not closed")
        self.advance()
        return inner
