"""The word index: which objects have a word, and the weight of the word in each."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import islice, takewhile

from flask_contentapi.cache import BoundedCache
from flask_contentapi.query import Search
from flask_contentapi.search import TITLE_WEIGHT

#: How many searches are cached.
SCORE_CACHE_SIZE = 32
#: How many bits an entry has for the weight of a word in an object.
_BITS = (1 + TITLE_WEIGHT).bit_length()
_COUNT = 2**_BITS - 1


class WordIndex:
    """An immutable word index.

    Objects are numbered. The posting list of a word has the numbers of objects, with the weight of
    the word in the lowest bits. There is an entry for every word of every object, so entries must
    be small and quick to make.

    :param documents: for each object its id and the weights of its words.
    """

    def __init__(self, documents: Iterable[tuple[int, Mapping[str, int]]]) -> None:
        self._ids = array("q")
        #: The numbers of deleted objects, for new ones.
        self._free: list[int] = []
        self._postings = _Postings()
        self._scores: BoundedCache[Mapping[int, int]] = BoundedCache(SCORE_CACHE_SIZE)
        self._add(documents)

    def _add(self, documents: Iterable[tuple[int, Mapping[str, int]]]) -> None:
        posting_of = self._postings.__getitem__
        for identity, counts in documents:
            number = self._free.pop() if self._free else len(self._ids)
            self._ids[number : number + 1] = array("q", [identity])
            for posting, count in zip(map(posting_of, counts), counts.values(), strict=True):
                posting.append((number << _BITS) + count)

    def revised(
        self, before: Mapping[int, Mapping[str, int]], after: Mapping[int, Mapping[str, int]]
    ) -> WordIndex:
        """An index with the words of some objects changed.

        :param before: their previous words, by id, without new objects.
        :param after: their present words, by id, without deleted objects.
        """
        index = WordIndex(())
        index._ids, index._postings = self._ids[:], _Postings(self._postings)
        free = set(self._free)
        free.update(number for number, identity in enumerate(self._ids) if identity in before)
        index._free = [*free]
        changed = {word for words in (*before.values(), *after.values()) for word in words}
        for word in changed:
            posting = self._postings.get(word, ())
            left = (entry for entry in posting if self._ids[entry >> _BITS] not in before)
            index._postings[word] = array("I", left)
        index._add(after.items())
        for word in changed:
            if not index._postings[word]:
                del index._postings[word]
        return index

    def score(self, search: Search) -> Mapping[int, int]:
        """The scores of objects that match a search, by id."""
        # Clients that page through results repeat the search.
        if (known := self._scores.get(search)) is not None:
            return known
        if not search.prefix:
            return self._scores.put(search, self._sums(search.words, search.every))
        *whole, begun = search.words
        among = self._sums(whole, True) if whole else None
        found = {
            identity: int(count > 1)
            for identity, count in self._begun(begun).items()
            if among is None or identity in among
        }
        return self._scores.put(search, found)

    def _begun(self, beginning: str) -> Mapping[int, int]:
        """The greatest weight of a word with a beginning in each object that has one, by id."""
        known = self._vocabulary
        words = islice(known, bisect_left(known, beginning), None)
        found: dict[int, int] = {}
        for word in takewhile(lambda word: word.startswith(beginning), words):
            for entry in self._postings[word]:
                identity, count = self._ids[entry >> _BITS], entry & _COUNT
                found[identity] = max(count, found.get(identity, 0))
        return found

    @cached_property
    def _vocabulary(self) -> list[str]:
        return sorted(self._postings)

    def _sums(self, words: Sequence[str], every: bool) -> Mapping[int, int]:
        """The sums of the weights of words in objects that have every one, or any of them."""
        postings = sorted((self._postings.get(word, ()) for word in words), key=len)
        scores: dict[int, int] = {}
        for number, posting in enumerate(postings):
            found = [(self._ids[entry >> _BITS], entry & _COUNT) for entry in posting]
            if every and number:
                found = [pair for pair in found if pair[0] in scores]
            gained = {identity: scores.get(identity, 0) + count for identity, count in found}
            scores = gained if every else scores | gained
        return scores


class _Postings(dict[str, "array[int]"]):
    def __missing__(self, word: str) -> array[int]:
        # Four bytes are enough for the numbers of 2 ** 28 objects.
        posting = self[word] = array("I")
        return posting
