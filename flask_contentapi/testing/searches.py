"""Tests of searches: the matches, and their order."""

from __future__ import annotations

from typing import Any

from flask_contentapi.backend import Reader
from flask_contentapi.testing.kit import LOANS, STAFF, Kit, case, finds, found, query


def _finds(rule: str, ids: list[int], *args: Any, **kwargs: Any) -> Any:
    """A line about the matches of a search, in id order."""
    return case(rule, ids, *args, order="id", **kwargs)


SEARCHES = [
    _finds(
        "letter case and accents of the text do not count",
        [11, 13, 21, 22, 23, 24, 25],
        any_word="agate",
    ),
    _finds("whole words are found, no parts", [], any_word="agat"),
    _finds("markup inside a word does not part it, entities are read", [13, 23], any_word="cafe"),
    _finds("characters that only control how text is shown are dropped", [23], any_word="noir"),
    _finds("markup is no text", [], any_word="p"),
    _finds("rich text", [23], any_word="chalcedony"),
    _finds("tags", [22, 23, 24, 25], any_word="quartz"),
    _finds("child objects", [23], any_word="polished"),
    _finds("blocks", [23], any_word="onyx"),
    _finds("values of blocks alone", [], any_word="granite"),
    _finds("fields that are not searched", [], any_word="hush"),
    _finds("objects of undeclared types have a title", [16], any_word="diorama"),
    _finds(
        "objects of undeclared types have nothing else, hidden ones are left out",
        [22, 60],
        any_word="obsidian",
    ),
    _finds("or: one of the words", [13, 22, 23], any_word="chalcedony igneous tin"),
    _finds("and: every word", [22, 23, 24, 25], every_word="agate quartz"),
    _finds("and: in different fields", [23], every_word="banded polished"),
    _finds("and: a word that nothing has", [], every_word="agate tin"),
    _finds("begun: a word that starts so", [11, 13, 21, 22, 23, 24, 25, 71], begun="aga"),
    _finds("begun: a whole word", [11, 13, 21, 22, 23, 24, 25], begun="agate"),
    _finds("begun: no other part of a word", [], begun="gate"),
    _finds("begun: nothing that is longer", [], begun="agates"),
    _finds("begun: words in other scripts", [17], begun="gruß"),
    _finds("begun: every word, the last one so", [22, 23, 24, 25], begun="agate qua"),
    _finds("begun: the others are whole words", [], begun="aga quartz"),
    _finds("begun: what the viewer may see", [22, 60], begun="obs"),
    _finds("begun: images by tags", [1, 2, 3, 8], "images", begun="mac"),
    _finds("two searches: what both find", [23, 25], any_word="banded", begun="qua"),
    _finds(
        "what the viewer may see", [11, 13, 21, 22, 23, 24, 25, 37], any_word="agate", viewer=STAFF
    ),
    _finds("with a type", [25], any_word="agate", types=LOANS),
    _finds("with a filter", [23, 25], any_word="agate", where=[("title", "eq", "agate")]),
    _finds("with a relation", [21, 22, 23, 24, 25], any_word="agate", child_of=20),
    _finds("with a scope", [60], any_word="obsidian", scope=(60,)),
    _finds(
        "with a window: the total is of all", [13, 21], any_word="agate", offset=1, limit=2, total=7
    ),
    _finds("images: titles and tags", [1, 2, 3, 8], "images", any_word="macro"),
    _finds("images: titles", [1, 2, 3], "images", any_word="agate"),
    _finds(
        "documents: what the type adds, hidden ones are left out",
        [1],
        "documents",
        any_word="minerals",
    ),
    _finds("documents: tags", [1, 2], "documents", any_word="visit"),
    _finds("people: what the type adds", [3], "people", any_word="asa"),
]


class SearchTests(Kit):
    """:attr:`Query.search`. Relevance is up to the engine, except for the title and ties."""

    test_finds = finds(SEARCHES)

    def test_order_of_relevance_has_all_that_is_found(self, reader: Reader) -> None:
        ids, total = found(reader, query(any_word="agate quartz"))
        assert (sorted(ids), total) == ([11, 13, 21, 22, 23, 24, 25], 7)

    def test_word_in_title_comes_before_word_elsewhere(self, reader: Reader) -> None:
        ids, _ = found(reader, query(any_word="obsidian"))
        assert ids == ([60, 22] if self.ranks else [22, 60])

    def test_beginning_of_word_in_title_comes_first(self, reader: Reader) -> None:
        ids, _ = found(reader, query(begun="obs"))
        assert ids == [60, 22]

    def test_ties_of_relevance_are_in_default_order(self, reader: Reader) -> None:
        ids, _ = found(reader, query(any_word="hall"))
        assert ids == [12, 10]
