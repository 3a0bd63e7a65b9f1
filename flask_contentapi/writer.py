"""Changes content object by object, by the same rules in every storage.

A backend whose content can be changed gives :class:`Writer` a :class:`Transaction`. The rules are
in the one, the storage is in the other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import wraps
from itertools import chain, count
from typing import Any, NamedTuple, NoReturn, TypeVar, cast
from uuid import uuid4

from flask_contentapi.changes import MOST_NAMED, tags_of
from flask_contentapi.content import Content
from flask_contentapi.errors import ContentError
from flask_contentapi.kinds import INT64
from flask_contentapi.library import locale_problem, read_code
from flask_contentapi.media_collections import check_collections
from flask_contentapi.query import Row
from flask_contentapi.records import Place, RecordReader, write_record
from flask_contentapi.registry import Registry
from flask_contentapi.relations import ObjectKey
from flask_contentapi.search import words
from flask_contentapi.signals import EVERYTHING
from flask_contentapi.types import Endpoint, ObjectType

__all__ = ["Stored", "Transaction", "Writer"]

#: The maximum length of a slug made from a title.
LONGEST_SLUG = 100
#: The fields that determine who sees an object.
_VISIBILITY_FIELDS = frozenset(("live", "go_live_at", "expires_at", "restriction", "collection"))

Method = TypeVar("Method", bound=Callable[..., Any])


class Stored(NamedTuple):
    """A stored object.

    :param row: the columns of its type, :attr:`ObjectType.column_names`.
    :param extras: the extra values in a record of an undeclared type.
    """

    row: Row
    extras: Mapping[str, Any]


class Transaction(ABC):
    """The content as one block of changes sees and changes it; a backend implements it.

    It checks nothing, as :class:`Writer` has done so. What follows from the columns, such as
    addresses, restrictions in force and words, it derives itself.
    """

    @abstractmethod
    def savepoint(self) -> AbstractContextManager[object]:
        """A context that undoes the changes made in it if an error leaves it."""

    @property
    @abstractmethod
    def locales(self) -> Sequence[str]:
        """The codes of all languages."""

    @property
    @abstractmethod
    def sites(self) -> Sequence[Mapping[str, Any]]:
        """All sites as records with all keys."""

    @property
    @abstractmethod
    def collections(self) -> Mapping[int, dict[str, Any]]:
        """All collections as records with all keys, by id."""

    @abstractmethod
    def find(self, endpoint: str, id: int) -> Stored | None:
        """An object; None if there is none."""

    def has(self, endpoint: str, id: int) -> bool:
        """Whether there is an object."""
        return self.find(endpoint, id) is not None

    @abstractmethod
    def next_id(self, section: str) -> int:
        """An id greater than those of all objects that there are and, since the last load, were.

        :param section: an endpoint, or ``collections``.
        """

    @abstractmethod
    def next_child_id(self, child: ObjectType) -> int:
        """An id greater than those of all child objects of a type."""

    @abstractmethod
    def owners(self, child: ObjectType, ids: Sequence[int]) -> Iterable[tuple[int, ObjectKey]]:
        """Those of some ids that child objects of a type have, each with the object it is in."""

    @abstractmethod
    def page_at(self, parent: int | None, slug: str) -> int | None:
        """The page with a slug under a parent; None if there is none."""

    @abstractmethod
    def slugs(self, parent: int | None, start: str) -> Set[str]:
        """The slugs under a parent that are ``start`` or go on with a hyphen after it.

        There may be others among them.
        """

    @abstractmethod
    def below(self, page: int) -> Sequence[int]:
        """The pages below a page."""

    @abstractmethod
    def translation(self, key: str, locale: str) -> int | None:
        """The first page in the tree with a translation key and a language; None if none has."""

    @abstractmethod
    def members(self, collection: int) -> int:
        """How many objects are in a collection itself."""

    @abstractmethod
    def referring(self, targets: Set[ObjectKey]) -> Iterable[ObjectKey]:
        """The objects that point to some objects, which may be deleted, as
        :func:`flask_contentapi.relations.targets_of` finds them."""

    @abstractmethod
    def insert(
        self, endpoint: str, row: Row, extras: Mapping[str, Any], before: int | None
    ) -> None:
        """Adds an object.

        :param before: for a page, the sibling to insert it before; None: at the end.
        """

    @abstractmethod
    def replace(self, endpoint: str, old: Stored, row: Row, extras: Mapping[str, Any]) -> None:
        """Replaces an object by one with the same id and, if it is a page, the same parent.

        :param old: the object as it is.
        """

    @abstractmethod
    def move(self, row: Row, before: int | None) -> None:
        """Moves a page, with all pages below it, under the parent in its row.

        :param before: the sibling to insert it before; None: at the end.
        """

    @abstractmethod
    def remove(self, endpoint: str, ids: Sequence[int]) -> None:
        """Deletes objects."""

    @abstractmethod
    def put_locale(self, code: str) -> None:
        """Adds a language after the others; the first one becomes that of all pages."""

    @abstractmethod
    def put_site(self, site: Mapping[str, Any]) -> None:
        """Adds a site after the others, or replaces the one with its host name and port."""

    @abstractmethod
    def remove_site(self, hostname: str, port: int) -> None:
        """Deletes a site."""

    @abstractmethod
    def put_collection(self, collection: Mapping[str, Any]) -> None:
        """Adds a collection after the others, or replaces the one with its id."""

    @abstractmethod
    def remove_collection(self, id: int) -> None:
        """Deletes a collection."""


def _atomic(method: Method) -> Method:
    """Makes a method atomic: on an error it changes nothing."""

    @wraps(method)
    def change(self: Writer, *args: Any, **options: Any) -> Any:
        if self._is_over:
            raise RuntimeError("The block is over in which the content is changed; begin another.")
        if self._is_changing:
            return method(self, *args, **options)
        self._is_changing = True
        try:
            with self._transaction.savepoint():
                return method(self, *args, **options)
        finally:
            self._is_changing = False

    return cast(Method, change)


class Writer:
    """Changes the content within one block, which creates one new version of it.

    Records are as in the rest of the package. What follows from them (the tree, the times when a
    page is visible, the words for searching) is updated automatically.

    :param transaction: the content.
    :param registry: the declared types.
    """

    def __init__(self, transaction: Transaction, registry: Registry) -> None:
        self._transaction = transaction
        self._registry = registry
        self._is_over = False
        #: Whether a change is being made, which may consist of others.
        self._is_changing = False
        self._changed: set[ObjectKey] = set()
        #: New and deleted objects, and those that other viewers see now.
        self._visibility_changed: set[ObjectKey] = set()
        self._is_everything_changed = False

    def close(self) -> None:
        """Ends the block: from now on nothing can be changed."""
        self._is_over = True

    def tags(self) -> frozenset[str]:
        """The cache tags of the answers that may have changed."""
        changed = self._changed | self._visibility_changed
        if self._is_everything_changed or len(changed) > MOST_NAMED:
            return frozenset([EVERYTHING])
        if self._visibility_changed:
            changed.update(self._transaction.referring(self._visibility_changed))
        return tags_of(changed)

    # Objects.

    def record(self, endpoint: str, id: int) -> dict[str, Any]:
        """The record of an object, which may be hidden.

        :raises ContentError: if there is no such object.
        """
        return self._record(endpoint, self._find(endpoint, id))

    @_atomic
    def add(
        self, endpoint: str, record: Mapping[str, Any] | Content, *, before: int | None = None
    ) -> int:
        """Adds an object.

        :param endpoint: where it is served.
        :param record: its record, or an instance of its class. ``id`` and the ids of child objects
            may be left out, and so may a page's ``slug``, which is then made from its title.
        :param before: for a page, the sibling to insert it before; None: at the end.
        :returns: its id.
        :raises ContentError: if it does not fit; then nothing is changed.
        """
        known = self._endpoint(endpoint)
        given = record.to_record() if isinstance(record, Content) else dict(record)
        if given.get("id") is None:
            given["id"] = self._transaction.next_id(endpoint)
        if known.tree and given.get("locale") is not None and not self._transaction.locales:
            self.put_locale(given["locale"])
        if known.tree and not given.get("slug"):
            given["slug"] = self._free_slug(given.get("parent"), str(given.get("title", "")))
        row, extras = self._read(known, given)
        if known.tree and before is not None:
            self._check_sibling(row, before)
        self._transaction.insert(endpoint, row, extras, before)
        self._visibility_changed.add((endpoint, row[0]))
        return int(row[0])

    @_atomic
    def update(self, endpoint: str, id: int, /, **changes: Any) -> None:
        """Changes fields of an object.

        :param endpoint: where it is served.
        :param id: its id.
        :param changes: new values, as in records; other fields stay unchanged.
        :raises ContentError: if there is no such object, or a value does not fit.
        """
        old = self._find(endpoint, id)
        record = self._record(endpoint, old)
        for name in ("id", "parent"):
            if name in changes and changes[name] != record.get(name):
                _refuse(_place(endpoint, id), name, "is not changed by an update; pages move")
        known = self._registry.endpoints[endpoint]
        if known.tree and changes.get("locale") is not None and not self._transaction.locales:
            self.put_locale(changes["locale"])
            old = self._find(endpoint, id)
        row, extras = self._read(known, {**record, **changes}, old)
        self._transaction.replace(endpoint, old, row, extras)
        changed = {n for n, index in known.base.places.items() if row[index] != old.row[index]}
        noted = self._visibility_changed if changed & _VISIBILITY_FIELDS else self._changed
        noted.add((endpoint, id))
        if known.tree and changed & {"slug", "restriction"}:
            noted.update(("pages", page) for page in self._transaction.below(id))

    @_atomic
    def delete(self, endpoint: str, id: int, *, descendants: bool = False) -> None:
        """Deletes an object.

        :param endpoint: where it is served.
        :param id: its id.
        :param descendants: whether to delete the pages below a page as well.
        :raises ContentError: if there is no such object, or it is still needed.
        """
        self._find(endpoint, id)
        doomed = [id]
        if self._registry.endpoints[endpoint].tree:
            place = _place(endpoint, id)
            doomed += self._transaction.below(id)
            if len(doomed) > 1 and not descendants:
                what = "there are pages below it; descendants=True takes them away as well"
                _refuse(place, "", what)
            homes = {site["root_page"]: site["hostname"] for site in self._transaction.sites}
            for page in homes.keys() & {*doomed}:
                _refuse(place, "", f"page {page} is the home of {homes[page]}")
        self._visibility_changed.update((endpoint, identity) for identity in doomed)
        self._transaction.remove(endpoint, doomed)

    # Pages.

    @_atomic
    def move(self, page: int, parent: int | None, *, before: int | None = None) -> None:
        """Moves a page and all pages below it.

        :param page: its id.
        :param parent: its new parent; None makes it a root page.
        :param before: the sibling to insert it before; None: at the end.
        :raises ContentError: if it cannot be there.
        """
        old = self._find("pages", page)
        moved = [page, *self._transaction.below(page)]
        record = {**self._record("pages", old), "parent": parent}
        row, _ = self._read(self._registry.endpoints["pages"], record, old)
        if parent in moved:
            _refuse(_place("pages", page), "parent", "a page cannot go below itself")
        if before is not None:
            self._check_sibling(row, before)
        self._transaction.move(row, before)
        self._visibility_changed.update(("pages", identity) for identity in moved)

    @_atomic
    def publish(self, page: int) -> None:
        """Makes a page visible at once; the first time sets ``first_published_at``.

        :param page: its id.
        """
        known = self.record("pages", page)
        now = datetime.now(UTC)
        changes: dict[str, Any] = {"live": True, "go_live_at": None}
        if known.get("first_published_at") is None:
            changes["first_published_at"] = now
        expires = known.get("expires_at")
        if expires is not None and datetime.fromisoformat(expires) <= now:
            changes["expires_at"] = None
        self.update("pages", page, **changes)

    def unpublish(self, page: int) -> None:
        """Hides a page; the pages below it stay as they are.

        :param page: its id.
        """
        self.update("pages", page, live=False)

    @_atomic
    def alias(self, page: int, parent: int | None, /, **changes: Any) -> int:
        """Adds an alias: a page with the same content as another one, in another place.

        :param page: the id of the other page.
        :param parent: the parent of the alias.
        :param changes: fields that differ.
        :returns: the id of the alias.
        :raises ContentError: if a value does not fit.
        """
        copy = {**self._copy(page), "parent": parent, "alias_of": page, "translation_key": None}
        return self.add("pages", {**copy, **changes})

    @_atomic
    def translate(self, page: int, locale: str, /, **changes: Any) -> int:
        """Adds a translation of a page, as a draft.

        Its parent is the translation of the page's parent or, if there is none, the same parent.

        :param page: the id of the page.
        :param locale: the language.
        :param changes: fields that differ, such as ``title`` or ``parent``.
        :returns: the id of the translation.
        :raises ContentError: if it exists already, or a value does not fit.
        """
        copy = self._copy(page)
        key = copy.get("translation_key")
        translation = self._transaction.translation
        if copy.get("locale") == locale or (key is not None and translation(key, locale)):
            _refuse(_place("pages", page), "locale", f"there is one in {locale} already")
        if key is None:
            key = str(uuid4())
            self.update("pages", page, translation_key=key)
        parent = copy.get("parent")
        above = None if parent is None else self.record("pages", parent).get("translation_key")
        if above is not None:
            parent = translation(above, locale) or parent
        own = {"translation_key": key, "locale": locale, "live": False, "parent": parent}
        return self.add("pages", {**copy, **own, **changes})

    def _copy(self, page: int) -> dict[str, Any]:
        """The record of a page, without what must be unique."""
        record = self.record("pages", page)
        declared = self._registry.endpoints["pages"].type_of(record["type"])
        for name, column in declared.columns.items():
            if column.child is not None:
                record[name] = [{**child, "id": None} for child in record.get(name, ())]
        return {name: value for name, value in record.items() if name not in ("id", "slug")}

    # Languages, sites and collections.

    @_atomic
    def put_locale(self, code: str) -> None:
        """Adds a language after the others, if it does not exist.

        The first language becomes that of all pages.

        :param code: its code.
        :raises ContentError: if the code is not valid.
        """
        known = self._transaction.locales
        try:
            read_code(code)
        except ValueError as error:
            _refuse(Place("locales", len(known), f"locales[{len(known)}]"), "", str(error))
        if code not in known:
            self._transaction.put_locale(code)
            self._is_everything_changed = True

    @_atomic
    def put_site(self, **site: Any) -> None:
        """Adds a site, or changes the one with its host name and port.

        :param site: its keys, as in a record.
        :raises ContentError: if a value does not fit.
        """
        reader = RecordReader(self._registry)
        read = reader.read_site(0, site)
        if read is not None and not self._has("pages", read["root_page"]):
            place = Place("sites", 0, f"sites {read['hostname']}:{read['port']}")
            reader.note(place, "root_page", f"there is no page {read['root_page']}")
        _raise_problems(reader)
        assert read is not None
        for other in self._transaction.sites:
            if read["is_default"] and other["is_default"]:
                self._transaction.put_site({**other, "is_default": False})
        self._transaction.put_site(read)
        self._is_everything_changed = True

    @_atomic
    def delete_site(self, hostname: str, port: int = 80) -> bool:
        """Deletes a site, if it exists; its pages stay.

        :param hostname: its host name.
        :param port: its port.
        :returns: whether it existed.
        """
        key = (hostname.lower(), port)
        exists = any((site["hostname"], site["port"]) == key for site in self._transaction.sites)
        if exists:
            self._transaction.remove_site(*key)
            self._is_everything_changed = True
        return exists

    @_atomic
    def put_collection(self, **collection: Any) -> int:
        """Adds a collection, or changes the one with its id.

        :param collection: its keys, as in a record; ``id`` may be left out.
        :returns: its id.
        :raises ContentError: if a value does not fit.
        """
        if collection.get("id") is None:
            collection["id"] = self._transaction.next_id("collections")
        reader = RecordReader(self._registry)
        read = reader.read_collection(0, collection)
        if read is not None:
            check_collections({**self._transaction.collections, read["id"]: read}, reader)
        _raise_problems(reader)
        assert read is not None
        self._transaction.put_collection(read)
        self._is_everything_changed = True
        return int(read["id"])

    @_atomic
    def delete_collection(self, id: int) -> None:
        """Deletes a collection.

        :param id: its id.
        :raises ContentError: if there is no such collection, or it is not empty.
        """
        known = self._transaction.collections
        if id not in known:
            _refuse(_place("collections", id), "", "there is no such collection")
        inside = sum(collection["parent"] == id for collection in known.values())
        inside += self._transaction.members(id)
        if inside:
            _refuse(_place("collections", id), "", f"{inside} objects lie in it")
        self._transaction.remove_collection(id)
        self._is_everything_changed = True

    # Reading and checking.

    def _endpoint(self, name: str) -> Endpoint:
        known = self._registry.endpoints
        if name not in known:
            there = ", ".join(known)
            _refuse(Place(name, -1, name), "", f"there is no such endpoint; there are {there}")
        return known[name]

    def _find(self, endpoint: str, id: Any) -> Stored:
        """An object. Raises ContentError if there is none."""
        known = self._endpoint(endpoint)
        found = self._transaction.find(known.name, id) if _is_id(id) else None
        if found is None:
            _refuse(_place(endpoint, id), "", "there is no such object")
        return found

    def _has(self, endpoint: str, id: Any) -> bool:
        return _is_id(id) and self._transaction.has(endpoint, id)

    def _record(self, endpoint: str, stored: Stored) -> dict[str, Any]:
        return write_record(self._registry.endpoints[endpoint], *stored)

    def _read(
        self, endpoint: Endpoint, record: Mapping[str, Any], old: Stored | None = None
    ) -> tuple[Row, dict[str, Any]]:
        """Reads and checks a record. Gives child objects an id and pages a language if missing.

        :param old: the object that it is to replace; None: it is new.
        :raises ContentError: with all its problems.
        """
        reader = RecordReader(self._registry)
        entry = reader.read_entry(endpoint.name, 0, self._completed(endpoint, record))
        if entry is not None:
            self._check(endpoint, entry[0], None if old is None else old.row, reader)
        _raise_problems(reader)
        assert entry is not None
        return entry

    def _completed(self, endpoint: Endpoint, record: Mapping[str, Any]) -> dict[str, Any]:
        completed = dict(record)
        if endpoint.tree and completed.get("locale") is None:
            completed["locale"] = next(iter(self._transaction.locales), None)
        label = completed.get("type")
        if label is None and len(endpoint.types) == 1:
            (label,) = endpoint.types
        given: defaultdict[ObjectType, list[str]] = defaultdict(list)
        for name, column in endpoint.type_of(str(label)).columns.items():
            if column.child is not None and isinstance(completed.get(name), list | tuple):
                given[column.child].append(name)
        for child, names in given.items():
            children = [*chain.from_iterable(completed[name] for name in names)]
            if any(map(_lacks_id, children)):
                free = self._free_ids(child, children)
                for name in names:
                    completed[name] = [
                        {**one, "id": next(free)} if _lacks_id(one) else one
                        for one in completed[name]
                    ]
        return completed

    def _free_ids(self, child: ObjectType, records: Iterable[Any]) -> Iterator[int]:
        """Ids that no child objects of a type have, neither stored ones nor those in records."""
        given: Any = (record.get("id") for record in records if isinstance(record, Mapping))
        highest = max((identity for identity in given if _is_id(identity)), default=0)
        return count(max(highest + 1, self._transaction.next_child_id(child)))

    def _check(self, endpoint: Endpoint, row: Row, old: Row | None, reader: RecordReader) -> None:
        """Notes what does not fit the rest of the content, as far as it is new."""
        place, transaction = _place(endpoint.name, row[0]), self._transaction
        new = {
            name: row[index]
            for name, index in endpoint.base.places.items()
            if old is None or row[index] != old[index]
        }
        if old is None and transaction.has(endpoint.name, row[0]):
            reader.note(place, "id", "another record has this id already")
        collection = new.get("collection") if endpoint.collections else None
        if collection is not None and collection not in transaction.collections:
            reader.note(place, "collection", f"there is no collection {collection}")
        if endpoint.tree:
            self._check_page(place, new, row, reader)
        declared = endpoint.type_of(row[1])
        for name, column in declared.columns.items():
            ids = [child[0] for child in row[declared.places[name]]] if column.child else []
            for identity, owner in transaction.owners(column.child, ids) if column.child else ():
                if owner != (endpoint.name, row[0]):
                    message = f"the id {identity} stands in another object already"
                    reader.note(place, name, message)

    def _check_page(
        self, place: Place, new: Mapping[str, Any], row: Row, reader: RecordReader
    ) -> None:
        """Notes what does not fit the other pages.

        :param new: its common columns that are new.
        """
        locale = new.get("locale")
        if locale is not None and (why := locale_problem(locale, self._transaction.locales)):
            reader.note(place, "locale", why)
        if new.get("parent") is not None and not self._has("pages", new["parent"]):
            reader.note(place, "parent", f"there is no page {new['parent']}")
        elif "parent" in new or "slug" in new:
            at = self._registry.endpoints["pages"].base.places
            slug = row[at["slug"]]
            if self._transaction.page_at(row[at["parent"]], slug) not in (None, row[0]):
                reader.note(place, "slug", f"a sibling has the slug {slug!r} already")

    def _check_sibling(self, row: Row, sibling: Any) -> None:
        """Refuses a sibling to go in front of that is none."""
        parent = self._registry.endpoints["pages"].base.places["parent"]
        found = self._transaction.find("pages", sibling) if _is_id(sibling) else None
        if found is None or sibling == row[0] or found.row[parent] != row[parent]:
            message = f"there is no sibling {sibling} to go in front of"
            _refuse(_place("pages", row[0]), "", message)

    def _free_slug(self, parent: Any, title: str) -> str:
        """A slug made from a title, which no page under a parent has."""
        slug = "-".join(words(title))[:LONGEST_SLUG].rstrip("-") or "page"
        taken = self._transaction.slugs(parent if self._has("pages", parent) else None, slug)
        numbered = (f"{slug}-{number}" for number in count(2))
        return next(free for free in chain([slug], numbered) if free not in taken)


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and value in INT64


def _lacks_id(child: Any) -> bool:
    """Whether something is the record of a child object without an id."""
    return isinstance(child, Mapping) and child.get("id") is None


def _place(section: str, identity: Any) -> Place:
    return Place(section, 0, f"{section} {identity}")


def _refuse(place: Place, key: str, message: str) -> NoReturn:
    raise ContentError([place.problem(key, message)])


def _raise_problems(reader: RecordReader) -> None:
    if reader.problems:
        raise ContentError(reader.problems)
