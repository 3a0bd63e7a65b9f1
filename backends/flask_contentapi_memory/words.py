"""The index of words: which objects have a word, and how much it counts in each."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping

from flask_contentapi.kept import Kept

__all__ = ["WordIndex"]

#: How many searches are kept.
KEPT = 32
#: How many bits there are for how much a word counts in an object.
_BITS = 4
_COUNT = 2**_BITS - 1


class WordIndex:
    """An index that does not change.

    Objects are numbered. Where a word occurs is a list of numbers, each with what the word counts
    there in its last bits: an entry for every word of every object has to be short, and quickly
    made.

    :param documents: for each object its id and what its words count.
    """

    def __init__(self, documents: Iterable[tuple[int, Mapping[str, int]]]) -> None:
        self._ids = array("q")
        self._postings: dict[str, array[int]] = {}
        self._scores: Kept[Mapping[int, int]] = Kept(KEPT)
        self._add(documents)

    def _add(self, documents: Iterable[tuple[int, Mapping[str, int]]]) -> None:
        adding = _Adding(self._postings)
        for identity, counts in documents:
            first = len(self._ids) << _BITS
            self._ids.append(identity)
            for word, count in counts.items():
                adding[word](first + count)

    def revised(
        self, before: Mapping[int, Mapping[str, int]], after: Mapping[int, Mapping[str, int]]
    ) -> WordIndex:
        """An index in which some objects have other words.

        :param before: the words that they had, by id; those that are new have none.
        :param after: the words that they have; those that are gone have none.
        """
        index = WordIndex(())
        index._ids, index._postings = self._ids[:], dict(self._postings)
        for word in {word for words in (*before.values(), *after.values()) for word in words}:
            posting = self._postings.get(word, ())
            left = (entry for entry in posting if self._ids[entry >> _BITS] not in before)
            index._postings[word] = array("q", left)
        index._add(after.items())
        return index

    def score(self, words: tuple[str, ...], every: bool) -> Mapping[int, int]:
        """What some words count in those objects that have every one, or any, by id."""
        # Who turns the pages of what was found asks for it again and again.
        key = (words, every)
        known = self._scores.find(key)
        return self._scores.keep(key, self._score(*key)) if known is None else known

    def _score(self, words: tuple[str, ...], every: bool) -> Mapping[int, int]:
        postings = sorted((self._postings.get(word, ()) for word in words), key=len)
        scores: dict[int, int] = {}
        for number, posting in enumerate(postings):
            found = [(self._ids[entry >> _BITS], entry & _COUNT) for entry in posting]
            if every and number:
                found = [pair for pair in found if pair[0] in scores]
            gained = {identity: scores.get(identity, 0) + count for identity, count in found}
            scores = gained if every else scores | gained
        return scores


class _Adding(dict[str, Callable[[int], None]]):
    """By word what adds an entry for it; a word is new when it is first asked for.

    :param postings: where the entries of each word are.
    """

    def __init__(self, postings: dict[str, array[int]]) -> None:
        self._postings = postings

    def __missing__(self, word: str) -> Callable[[int], None]:
        posting = self._postings.setdefault(word, array("q"))
        self[word] = posting.append
        return posting.append
