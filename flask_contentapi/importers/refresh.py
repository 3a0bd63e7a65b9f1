"""Brings content up to date: writes only what differs from what is there."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import suppress
from hashlib import blake2b
from typing import Any

import orjson

from flask_contentapi.backend import Backend
from flask_contentapi.content import ReadRecord, read_library
from flask_contentapi.errors import ContentError
from flask_contentapi.importers.objects import Objects
from flask_contentapi.importers.records import PulledContent, column_of
from flask_contentapi.logs import amounts
from flask_contentapi.records import write_record
from flask_contentapi.registry import SECTIONS, Registry
from flask_contentapi.signals import MOST_NAMED

#: How many changes, and how many notes, are told.
MOST_SHOWN = 20
Key = tuple[str, int]
Record = dict[str, Any]
#: The columns that follow from what answers show, if not from a key of their own.
_SEEN = (
    *("id", "parent", "translation_key", "file", "live", "go_live_at", "restriction"),
    *("redirect_page", "redirect_link"),
)


class Changes:
    """What is to be written into a backend.

    :param backend: the backend.
    :param registry: its types.
    :param original: what there is to be.
    :param file_of: gives the ``file`` for the address of a file.
    :param stated: by object, the keys whose values are the source's alone; None: those that
        answers show.
    :raises ContentError: if the content does not fit the types.
    :ivar content: the records that there are to be.
    :ivar new: the objects that are not there yet, with their records if there are few, else {}.
    :ivar changed: the same for those that are there with another record.
    :ivar gone: the objects that the source does not have any more, the last one first.
    :ivar is_general: whether sites or languages differ.
    :ivar is_moved: whether pages that stay are in another order.
    """

    def __init__(
        self,
        backend: Backend,
        registry: Registry,
        original: Objects,
        file_of: Callable[[str], str] = str,
        stated: Mapping[Key, set[str]] | None = None,
    ) -> None:
        self._backend, self._registry = backend, registry
        #: A digest of the record of each object that is there.
        self._digests: dict[Key, bytes] = {}
        # What the source does not say: values of its objects, whole objects, and what is no object.
        kept: dict[Key, Record] = {}
        added: set[Key] = set()
        general: defaultdict[str, list[Any]] = defaultdict(list)
        for section, record in backend.dump():
            if section in SECTIONS:
                general[section].append(record)
                continue
            key = section, record["id"]
            self._digests[key] = _digest(record)
            if section not in original.ids or (stated is not None and key not in stated):
                added.add(key)
                general[section].append(record)
            elif hidden := self._hidden(section, record, stated):
                kept[key] = {name: record[name] for name in hidden}
        self.content = PulledContent(original, registry, file_of, kept, general)
        self.new: dict[Key, Record] = {}
        self.changed: dict[Key, Record] = {}
        #: The parents of all objects, in their order.
        self._parents: dict[Key, int | None] = {}
        library = read_library(self.content, registry, keep=self._keep, logs=False)
        self.gone = [key for key in reversed(self._digests) if key not in self._parents]
        sections = {"locales": [*library.locales], "sites": library.site_records}
        self.is_general = any(general[name] != now for name, now in sections.items())
        aside = {*self.new, *self.gone, *added}
        now, before = (
            [key for key in order if key[0] == "pages" and key not in aside]
            for order in (self._parents, self._digests)
        )
        self.is_moved = now != before

    def _hidden(
        self, section: str, record: Record, stated: Mapping[Key, set[str]] | None
    ) -> Set[str]:
        """The keys of a record whose values the source does not say."""
        if stated is not None:
            return record.keys() - stated[section, record["id"]]
        declared = self._registry.endpoints[section].type_of(record["type"])
        columns = (column_of(declared, export) for export in declared.exports.values())
        shown = {column.name for column in columns if column is not None}
        return record.keys() & declared.columns.keys() - shown - {*_SEEN}

    def _keep(self, section: str, index: int, read: ReadRecord) -> None:
        row, extras = read
        record = write_record(self._registry.endpoints[section], row, extras)
        key = section, row[0]
        self._parents[key] = record.get("parent")
        known = self._digests.get(key)
        if known != _digest(record):
            kind = self.new if known is None else self.changed
            kind[key] = record if len(self.new) + len(self.changed) <= MOST_NAMED else {}

    def __bool__(self) -> bool:
        return bool(self.new or self.changed or self.gone or self.is_general or self.is_moved)

    def told(self, names: Mapping[Key, str]) -> Iterator[str]:
        """What differs, in lines: a sentence, and the first objects.

        :param names: names of objects.
        """
        kinds = (("+", "new", self.new), ("~", "changed", self.changed), ("-", "gone", self.gone))
        said = []
        for _, word, keys in kinds:
            counts = Counter(section for section, _ in keys)
            said += [f"{amounts({key: number})} {word}" for key, number in counts.items()]
        said += ["sites or languages changed"] if self.is_general else []
        said += ["pages in another order"] if self.is_moved else []
        sentence = ", ".join(said) or "nothing has changed"
        yield f"{sentence[0].upper()}{sentence[1:]}."
        named = [(sign, key) for sign, _, keys in kinds for key in keys]
        for sign, key in named[:MOST_SHOWN]:
            yield f"{sign} {key[0]} {key[1]} {names.get(key, '')}".rstrip()
        if len(named) > MOST_SHOWN:
            yield "and more."

    def write(self) -> None:
        """Writes it, all or nothing."""
        few = len(self.new) + len(self.changed) + len(self.gone) <= MOST_NAMED
        if few and not self.is_general and not self.is_moved:
            # The order of changes matters, as where two pages swap their slugs.
            with suppress(NotImplementedError, ContentError):
                self._write_each()
                return
        self._backend.load(self.content)

    def _write_each(self) -> None:
        # The next sibling that is there already; new ones are added before it in their order.
        following: dict[Key, int | None] = {}
        ahead: dict[int | None, int] = {}
        for key, parent in reversed(self._parents.items()):
            if key in self.new:
                following[key] = ahead.get(parent) if key[0] == "pages" else None
            elif key[0] == "pages":
                ahead[parent] = key[1]
        with self._backend.write() as writer:
            for section, identity in self.gone:
                writer.delete(section, identity)
            for (section, identity), record in self.changed.items():
                missing = writer.record(section, identity).keys() - record.keys()
                writer.update(section, identity, **dict.fromkeys(missing), **record)
            for key, record in self.new.items():
                writer.add(key[0], record, before=following[key])


def _digest(record: Any) -> bytes:
    return blake2b(orjson.dumps(record, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()
