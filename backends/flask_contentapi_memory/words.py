"""The word index: which objects have a word, and the weight of the word in each."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
#: The number of the object that an entry is for.
_number_of = _BITS.__rrshift__


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
        # Four bytes are enough for the numbers of 2 ** 28 objects.
        self._postings: defaultdict[str, array[int]] = defaultdict(lambda: array("I"))
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
        index._ids, index._postings = self._ids[:], self._postings.copy()
        gone = (number for number, identity in enumerate(self._ids) if identity in before)
        index._free = [*{*self._free, *gone}]
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
        return self._scores.put(
            search, {i: s for i, s in self._begun(begun) if among is None or i in among}
        )

    def _begun(self, beginning: str) -> Iterator[tuple[int, int]]:
        """The objects that have a word with a beginning, by id, each with 1 if it is in its title,
        which makes a weight greater than 1, and otherwise with 0."""
        known, every, titled = self._vocabulary, set[int](), set[int]()
        words = islice(known, bisect_left(known, beginning), None)
        # A beginning can have millions of entries, so each goes through no Python code.
        for word in takewhile(lambda word: word.startswith(beginning), words):
            posting = self._postings[word]
            every.update(map(_number_of, posting))
            titled.update(map(_number_of, filter((_COUNT - 1).__and__, posting)))
        return ((self._ids[number], number in titled) for number in every)

    @cached_property
    def _vocabulary(self) -> list[str]:
        return sorted(self._postings)

    def _sums(self, words: Sequence[str], every: bool) -> Mapping[int, int]:
        """The sums of the weights of words in objects that have every one, or any of them."""
        first, *others = (
            dict(zip(map(_number_of, posting), map(_COUNT.__and__, posting), strict=True))
            for posting in sorted((self._postings.get(word, ()) for word in words), key=len)
        )
        sums = first
        for found in others:
            if every:
                sums = {n: count + found[n] for n, count in sums.items() if n in found}
            else:
                sums |= {n: count + sums.get(n, 0) for n, count in found.items()}
        return dict(zip(map(self._ids.__getitem__, sums), sums.values(), strict=True))
