"""Changes content object by object, by the same rules in every storage.

:class:`Writer` has the rules. A backend whose content can be changed gives it a
:class:`Transaction`, which has the storage.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Mapping, Sequence, Set
from datetime import UTC, datetime
from functools import cache, wraps
from itertools import chain, count
from threading import get_ident
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn, TypeVar, cast
from uuid import uuid4

from flask_contentapi.content import (
    SAME_ID,
    check_collections,
    misplaced,
    read_code,
    same_path,
    same_slug,
    site_names,
)
from flask_contentapi.declarations import Endpoint, ObjectType
from flask_contentapi.errors import ContentError
from flask_contentapi.kinds import INT64
from flask_contentapi.query import ObjectKey, Row
from flask_contentapi.records import Place, RecordReader, differ, write_record
from flask_contentapi.registry import Registry
from flask_contentapi.search import words
from flask_contentapi.signals import EVERYTHING, MOST_NAMED, tags_of
from flask_contentapi.sites import Host, quote_slug
from flask_contentapi.types import Content

#: The maximum length of a slug made from a title.
LONGEST_SLUG = 100
#: The fields that determine who sees an object.
_VISIBILITY_FIELDS = frozenset(("live", "go_live_at", "expires_at", "restriction", "collection"))

Method = TypeVar("Method", bound=Callable[..., Any])


class StoredObject(NamedTuple):
    """A stored object.

    :param row: the columns of its type, :attr:`ObjectType.column_names`.
    :param extras: the values of its record that its type does not declare.
    """

    row: Row
    extras: Mapping[str, Any]


class Transaction(ABC):
    """The content as one block of changes sees and changes it; a backend implements it.

    :class:`Writer` has checked each change. What follows from the columns of an object, such as its
    address, the restrictions in force and its words, a transaction derives itself. An error in one
    of its methods ends the block, so a change may leave others undone.

    :param registry: the declared types.
    """

    #: The types whose objects are changed in another way only, each with what that is.
    elsewhere: Mapping[str, str] = MappingProxyType({})

    def __init__(self, registry: Registry) -> None:
        self.registry = registry

    @abstractmethod
    def records(self, section: str) -> Sequence[Any]:
        """The codes of all languages, or the records of all sites or collections with all keys.

        :param section: ``locales``, ``sites`` or ``collections``.
        """

    @abstractmethod
    def find(self, endpoint: str, id: int) -> StoredObject | None:
        """An object; None if there is none."""

    @abstractmethod
    def next_id(self, endpoint: str) -> int:
        """An id greater than those of all objects that there are or, since the last load, were."""

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
    def redirect_at(self, site_path: str) -> int | None:
        """The redirect with a ``site_path``; None if there is none."""

    @abstractmethod
    def slugs(self, parent: int | None, start: str) -> Container[str]:
        """The slugs under a parent that are ``start``, or it and a hyphen and more, at least."""

    @abstractmethod
    def url_path(self, page: int) -> str:
        """The slugs from the top of the tree down to a page, as
        :func:`flask_contentapi.sites.quote_slug` writes them, with slashes around each."""

    @abstractmethod
    def below(self, page: int) -> Mapping[int, str]:
        """The pages below a page in tree order, each with its slugs as in :meth:`url_path`."""

    @abstractmethod
    def translation(self, key: str, locale: str) -> int | None:
        """The first page in the tree with a translation key and a language; None if none has."""

    @abstractmethod
    def page_locales(self) -> Iterable[str]:
        """The languages that pages name."""

    @abstractmethod
    def members(self, collection: int) -> int:
        """How many objects are in a collection itself."""

    @abstractmethod
    def referring(self, targets: Set[ObjectKey]) -> Iterable[ObjectKey]:
        """The objects that point to some objects, which may be deleted, as
        :func:`flask_contentapi.declarations.targets_of` finds them."""

    @abstractmethod
    def insert(self, endpoint: str, new: StoredObject, before: int | None) -> None:
        """Adds an object.

        :param before: for a page, the sibling to insert it before; None: at the end.
        """

    @abstractmethod
    def replace(self, endpoint: str, old: StoredObject, new: StoredObject) -> None:
        """Replaces an object by one with the same id and, if it is a page, the same parent."""

    @abstractmethod
    def move(self, old: StoredObject, parent: int | None, before: int | None) -> None:
        """Moves a page, with all pages below it.

        :param old: the page.
        :param parent: its new parent, which may be the present one.
        :param before: the sibling to insert it before; None: at the end.
        """

    @abstractmethod
    def remove(self, endpoint: str, ids: Sequence[int]) -> None:
        """Deletes objects. Of pages, the first one is above all others."""

    @abstractmethod
    def put_records(self, section: str, records: Sequence[Any]) -> None:
        """Replaces what :meth:`records` gives. Pages that name no language get the first one."""


def _change(method: Method) -> Method:
    """Makes a method end the block if storing fails, as a part may have been stored."""

    @wraps(method)
    def change(self: Writer, /, *args: Any, **options: Any) -> Any:
        self._stored  # noqa: B018 - the block is not over, and is that of the present thread
        try:
            return method(self, *args, **options)
        except ContentError:
            raise
        except BaseException as error:
            self.close(error)
            raise

    return cast(Method, change)


class Writer:
    """Changes the content within one block, which creates one new version of it.

    Records are as in the rest of the package. What follows from them (the tree, the times when a
    page is visible, the words for searching) is updated automatically. A method that raises
    :exc:`ContentError` has changed nothing; any other error ends the block.

    :param transaction: the content.
    """

    # All of a change is checked before the first part of it is stored.

    def __init__(self, transaction: Transaction) -> None:
        self._registry = transaction.registry
        self._transaction: Transaction | None = transaction
        self._owner = (os.getpid(), get_ident())
        self._failure: BaseException | None = None
        self._changed: set[ObjectKey] = set()
        #: New and deleted objects, and those that other viewers see now.
        self._visibility_changed: set[ObjectKey] = set()
        self._is_everything_changed = False

    @property
    def _stored(self) -> Transaction:
        if self._owner != (os.getpid(), get_ident()):
            raise RuntimeError("A block belongs to the thread that has begun it; begin another.")
        if self._transaction is None:
            raise RuntimeError("The block is over in which the content is changed; begin another.")
        return self._transaction

    def close(self, failure: BaseException | None = None) -> None:
        """Ends the block: from now on nothing can be changed.

        :param failure: the error that ended it early.
        """
        if self._transaction is not None:
            self._transaction, self._failure = None, failure

    def confirm(self) -> None:
        """Makes sure that the changes of the block can be kept.

        :raises BaseException: the error that ended the block early, even if it was caught.
        """
        if self._failure is not None:
            raise self._failure

    def tags(self) -> frozenset[str]:
        """The cache tags of the answers that may have changed; none if nothing has."""
        changed = self._changed | self._visibility_changed
        if self._is_everything_changed or len(changed) > MOST_NAMED:
            return frozenset([EVERYTHING])
        if self._visibility_changed:
            changed.update(self._stored.referring(self._visibility_changed))
        return tags_of(changed)

    # Objects.

    @_change
    def record(self, endpoint: str, id: int) -> dict[str, Any]:
        """The record of an object, which may be hidden.

        :raises ContentError: if there is no such object.
        """
        return self._record(endpoint, self._find(endpoint, id))

    @_change
    def add(
        self, endpoint: str, record: Mapping[str, Any] | Content, *, before: int | None = None
    ) -> int:
        """Adds an object.

        :param endpoint: where it is served.
        :param record: its record, or an instance of its class. ``id`` and the ids of child objects
            may be left out, and so may a page's ``slug``, which is then made from its title, and
            its ``locale``, which is then that of its parent.
        :param before: for a page, the sibling to insert it before; None: at the end.
        :returns: its id.
        :raises ContentError: if it does not fit; then nothing is changed.
        """
        new = self._read_new(endpoint, record)
        if self._endpoint(endpoint).tree and before is not None:
            self._require_sibling(new.row, before)
        return self._insert(endpoint, new, before)

    @_change
    def update(self, endpoint: str, id: int, /, **changes: Any) -> None:
        """Changes fields of an object.

        :param endpoint: where it is served.
        :param id: its id.
        :param changes: new values, as in records; other fields stay unchanged.
        :raises ContentError: if there is no such object, or a value does not fit.
        """
        old = self._find(endpoint, id)
        record, place = self._record(endpoint, old), _place(endpoint, old.row[0])
        for name, why in (("id", "is never changed"), ("parent", "is changed by move() alone")):
            if name in changes and changes[name] != record.get(name):
                _refuse(place, name, why)
        new = self._read(endpoint, {**record, **changes}, old)
        if self._endpoint(endpoint).tree and "slug" in changes:
            self._refuse_unfit(new.row, self._stored.below(new.row[0]))
        self._replace(endpoint, old, new)

    @_change
    def delete(self, endpoint: str, id: int, *, descendants: bool = False) -> None:
        """Deletes an object.

        :param endpoint: where it is served.
        :param id: its id.
        :param descendants: whether to delete the pages below a page as well.
        :raises ContentError: if there is no such object, or it is still needed.
        """
        self._find(endpoint, id)
        doomed = [id]
        if self._endpoint(endpoint).tree:
            place = _place(endpoint, id)
            doomed += self._stored.below(id)
            if len(doomed) > 1 and not descendants:
                what = "there are pages below it; descendants=True takes them away as well"
                _refuse(place, "", what)
            homes = {site["root_page"]: site["hostname"] for site in self._stored.records("sites")}
            for page in homes.keys() & {*doomed}:
                _refuse(place, "", f"page {page} is the home of {homes[page]}")
        for identity in doomed if self._stored.elsewhere else ():
            self._refuse_elsewhere(endpoint, self._find(endpoint, identity).row)
        self._stored.remove(endpoint, doomed)
        self._visibility_changed.update((endpoint, identity) for identity in doomed)

    # Pages.

    @_change
    def move(self, page: int, parent: int | None, *, before: int | None = None) -> None:
        """Moves a page and all pages below it.

        :param page: its id.
        :param parent: its new parent; None makes it a root page.
        :param before: the sibling to insert it before; None: at the end.
        :raises ContentError: if it cannot be there.
        """
        old = self._find("pages", page)
        below = self._stored.below(page)
        new = self._read("pages", {**self._record("pages", old), "parent": parent}, old)
        if parent == page or parent in below:
            _refuse(_place("pages", page), "parent", "a page cannot go below itself")
        self._refuse_unfit(new.row, below)
        if before is not None:
            self._require_sibling(new.row, before)
        self._stored.move(old, parent, before)
        self._visibility_changed.update(("pages", identity) for identity in (page, *below))

    def note(self, endpoint: str, ids: Iterable[int]) -> None:
        """Notes objects that were added or deleted in another way."""
        if len(self._visibility_changed) > MOST_NAMED:
            self._is_everything_changed = True
        else:
            self._visibility_changed.update((endpoint, identity) for identity in ids)

    def publish(self, page: int) -> None:
        """Makes a page visible at once; the first time sets ``first_published_at``.

        :param page: its id.
        :raises ContentError: if there is no such page.
        """
        known, now = self.record("pages", page), datetime.now(UTC)
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
        :raises ContentError: if there is no such page.
        """
        self.update("pages", page, live=False)

    def alias(self, page: int, parent: int | None, /, **changes: Any) -> int:
        """Adds an alias: a page with the same content as another one, in another place.

        :param page: the id of the other page.
        :param parent: the parent of the alias.
        :param changes: fields that differ.
        :returns: the id of the alias.
        :raises ContentError: if a value does not fit.
        """
        record = self.record("pages", page)
        own = {"parent": parent, "alias_of": page, "translation_key": None}
        own["locale"] = record.get("locale")
        return self.add("pages", {**self._copy(record), **own, **changes})

    @_change
    def translate(self, page: int, locale: str, /, **changes: Any) -> int:
        """Adds a translation of a page, as a draft.

        Its parent is the translation of the page's parent or, if there is none, the same parent.

        :param page: the id of the page.
        :param locale: the language.
        :param changes: fields that differ, such as ``title`` or ``parent``.
        :returns: the id of the translation.
        :raises ContentError: if it exists already, or a value does not fit.
        """
        record = self.record("pages", page)
        key, parent = record.get("translation_key"), record.get("parent")
        exists = key is not None and self._stored.translation(key, locale) is not None
        if exists or record.get("locale") == locale:
            _refuse(_place("pages", page), "locale", f"there is one in {locale} already")
        above = None if parent is None else self.record("pages", parent).get("translation_key")
        if above is not None:
            parent = self._stored.translation(above, locale) or parent
        own = {"locale": locale, "live": False, "parent": parent}
        own["translation_key"] = key or str(uuid4())
        new = self._read_new("pages", {**self._copy(record), **own, **changes})
        if key is None:
            self.update("pages", page, translation_key=own["translation_key"])
        return self._insert("pages", new, None)

    def _copy(self, record: Mapping[str, Any]) -> dict[str, Any]:
        copy = {name: value for name, value in record.items() if name not in ("id", "slug")}
        for name, column in self._endpoint("pages").type_of(record["type"]).columns.items():
            if column.child is not None:
                copy[name] = [{**child, "id": None} for child in record.get(name, ())]
        return copy

    # Languages, sites and collections.

    @_change
    def put_locale(self, code: str) -> None:
        """Adds a language after the others, if it does not exist.

        The first language becomes that of all pages that name none. The languages that the others
        name are added after it.

        :param code: its code.
        :raises ContentError: if the code is not valid.
        """
        known = self._stored.records("locales")
        try:
            read_code(code)
        except ValueError as error:
            _refuse(Place("locales", len(known), f"locales[{len(known)}]"), "", str(error))
        if code not in known:
            named = () if known else sorted({*self._stored.page_locales()} - {code})
            self._put_records("locales", [*known, code, *named])

    @_change
    def put_site(self, **site: Any) -> None:
        """Adds a site after the others, or changes the one with its host name and port.

        If it is the default, no other one is any longer.

        :param site: its keys, as in a record; those of an existing site may be left out.
        :raises ContentError: if a value does not fit.
        """
        sites = self._sites()
        before = sites.get(_site_key(site.get("hostname"), site.get("port", 80)), {})
        reader = RecordReader(self._registry)
        read = reader.read_site(0, {**before, **site})
        if read is not None and self._get("pages", read["root_page"]) is None:
            place = Place("sites", 0, f"sites {read['hostname']}:{read['port']}")
            reader.note(place, "root_page", f"there is no page {read['root_page']}")
        read = reader.accept(read)
        if read["is_default"]:
            sites = {key: {**other, "is_default": False} for key, other in sites.items()}
        sites[read["hostname"], read["port"]] = read
        self._put_records("sites", [*sites.values()])

    @_change
    def delete_site(self, hostname: str, port: int = 80) -> bool:
        """Deletes a site, if it exists; its pages stay.

        :param hostname: its host name, in any form.
        :param port: its port.
        :returns: whether it existed.
        """
        sites = self._sites()
        existed = sites.pop(_site_key(hostname, port), None) is not None
        if existed:
            self._put_records("sites", [*sites.values()])
        return existed

    def _sites(self) -> dict[tuple[str, int], Mapping[str, Any]]:
        return {(s["hostname"], s["port"]): s for s in self._stored.records("sites")}

    @_change
    def put_collection(self, **collection: Any) -> int:
        """Adds a collection after the others, or changes the one with its id.

        :param collection: its keys, as in a record; ``id`` may be left out, and so may those of an
            existing collection.
        :returns: its id.
        :raises ContentError: if a value does not fit.
        """
        known = self._collections()
        if collection.get("id") is None:
            collection["id"] = max(known, default=0) + 1
        before = known.get(collection["id"], {}) if _is_id(collection["id"]) else {}
        reader = RecordReader(self._registry)
        read = reader.read_collection(0, {**before, **collection})
        if read is not None:
            known[read["id"]] = read
            check_collections(known, reader)
        read = reader.accept(read)
        self._put_records("collections", [*known.values()])
        return int(read["id"])

    @_change
    def delete_collection(self, id: int) -> None:
        """Deletes a collection.

        :param id: its id.
        :raises ContentError: if there is no such collection, or it is not empty.
        """
        known = self._collections()
        if known.pop(id, None) is None:
            _refuse(_place("collections", id), "", "there is no such collection")
        inside = sum(collection["parent"] == id for collection in known.values())
        inside += self._stored.members(id)
        if inside:
            _refuse(_place("collections", id), "", f"objects lie in it: {inside}")
        self._put_records("collections", [*known.values()])

    def _collections(self) -> dict[int, dict[str, Any]]:
        return {known["id"]: known for known in self._stored.records("collections")}

    def _put_records(self, section: str, records: Sequence[Any]) -> None:
        self._stored.put_records(section, records)
        self._is_everything_changed = True

    # Storing what has been checked.

    def _insert(self, endpoint: str, new: StoredObject, before: int | None) -> int:
        self._stored.insert(endpoint, new, before)
        self._visibility_changed.add((endpoint, new.row[0]))
        return int(new.row[0])

    def _replace(self, endpoint: str, old: StoredObject, new: StoredObject) -> None:
        known = self._endpoint(endpoint)
        self._stored.replace(endpoint, old, new)
        places = known.base.places.items()
        changed = {name for name, index in places if differ(new.row[index], old.row[index])}
        noted = self._visibility_changed if changed & _VISIBILITY_FIELDS else self._changed
        noted.add((endpoint, new.row[0]))
        if known.tree and changed & {"slug", "restriction"}:
            noted.update(("pages", page) for page in self._stored.below(new.row[0]))

    # Reading and checking.

    def _endpoint(self, name: str) -> Endpoint:
        known = self._registry.endpoints
        if not isinstance(name, str) or name not in known:
            there = ", ".join(known)
            place = Place(str(name), -1, str(name))
            _refuse(place, "", f"there is no such endpoint; there are {there}")
        return known[name]

    def _find(self, endpoint: str, id: Any) -> StoredObject:
        known = self._endpoint(endpoint)
        found = self._get(known.name, id)
        if found is None:
            hint = "" if isinstance(id, int) else f"; ids are integers, which {id!r} is not"
            _refuse(_place(endpoint, id), "", f"there is no such object{hint}")
        return found

    def _get(self, endpoint: str, id: Any) -> StoredObject | None:
        return self._stored.find(endpoint, id) if _is_id(id) else None

    def _record(self, endpoint: str, stored: StoredObject) -> dict[str, Any]:
        known = self._endpoint(endpoint)
        # Of a declared type, they are former fields.
        extras = {} if stored.row[1] in known.types else stored.extras
        return write_record(known, stored.row, extras)

    def _read_new(self, endpoint: str, record: Mapping[str, Any] | Content) -> StoredObject:
        known = self._endpoint(endpoint)
        given = _as_record(record)
        if not isinstance(given, Mapping):
            _refuse(Place(endpoint, -1, endpoint), "", "must be an object")
        given = dict(given)
        if given.get("id") is None:
            given["id"] = self._stored.next_id(endpoint)
        if known.tree:
            self._complete(given)
        new = self._read(endpoint, given)
        if known.tree:
            self._refuse_unfit(new.row, {})
        return new

    def _complete(self, page: dict[str, Any]) -> None:
        """Gives a new page the language of its parent and a slug, unless it has its own."""
        parent: Any = page.get("parent")
        above = self._get("pages", parent)
        if above is not None and "locale" not in page:
            page["locale"] = above.row[self._endpoint("pages").base.places["locale"]]
        if not page.get("slug"):
            start = "-".join(words(str(page.get("title", ""))))[:LONGEST_SLUG].rstrip("-") or "page"
            taken = self._stored.slugs(None if above is None else parent, start)
            numbered = (f"{start}-{number}" for number in count(2))
            page["slug"] = next(s for s in chain([start], numbered) if s not in taken)

    def _refuse_unfit(self, page: Row, below: Mapping[int, str]) -> None:
        """Refuses a place or a slug that makes the tree too deep or a path too long.

        :param below: the pages below it, each with its slugs as they are.
        """
        places = self._endpoint("pages").base.places
        parent, slug = page[places["parent"]], quote_slug(page[places["slug"]])
        path = f"{'/' if parent is None else self._stored.url_path(parent)}{slug}/"
        old = len(self._stored.url_path(page[0])) if below else 0
        problems = []
        for identity, whole in ((page[0], path), *((i, path + p[old:]) for i, p in below.items())):
            if wrong := misplaced(whole):
                problems.append(_place("pages", identity).problem(*wrong))
        if problems:
            raise ContentError(problems)

    def _read(
        self, endpoint: str, record: Mapping[str, Any], old: StoredObject | None = None
    ) -> StoredObject:
        """Reads and checks a record. Gives child objects an id and pages a language if missing.

        :param old: the object that it is to replace; None: it is new.
        :raises ContentError: with all its problems.
        """
        known = self._endpoint(endpoint)
        reader = RecordReader(self._registry)
        entry = reader.read_entry(endpoint, 0, self._completed(known, record))
        if entry is not None:
            for row in (entry[0], *([] if old is None else [old.row])):
                self._refuse_elsewhere(endpoint, row)
            self._check(known, entry[0], None if old is None else old.row, reader)
        row, extras = reader.accept(entry)
        if old is not None and row[1] == old.row[1] in known.types:
            extras |= old.extras
        return StoredObject(row, extras)

    def _completed(self, endpoint: Endpoint, record: Mapping[str, Any]) -> dict[str, Any]:
        completed = dict(record)
        if endpoint.tree and completed.get("locale") is None:
            completed["locale"] = next(iter(self._stored.records("locales")), None)
        label = completed.get("type")
        if label is None and len(endpoint.types) == 1:
            (label,) = endpoint.types
        lists = {
            name: (column.child, [*map(_as_record, completed[name])])
            for name, column in endpoint.type_of(str(label)).columns.items()
            if column.child is not None and isinstance(completed.get(name), list | tuple)
        }
        children = chain.from_iterable(records for _, records in lists.values())
        given: Any = (record.get("id") for record in children if isinstance(record, Mapping))
        # Neither those of stored child objects nor those in the record.
        first = max(filter(_is_id, given), default=0) + 1
        free = cache(lambda child: count(max(first, self._stored.next_child_id(child))))
        for name, (child, records) in lists.items():
            completed[name] = [
                {**record, "id": next(free(child))}
                if isinstance(record, Mapping) and record.get("id") is None
                else record
                for record in records
            ]
        return completed

    def _check(self, endpoint: Endpoint, row: Row, old: Row | None, reader: RecordReader) -> None:
        place, declared = _place(endpoint.name, row[0]), endpoint.type_of(row[1])
        known = old if old is not None and old[1] == row[1] else None
        new = {
            name: row[index]
            for name, index in declared.places.items()
            if known is None or row[index] != known[index]
        }
        if old is None and self._get(endpoint.name, row[0]) is not None:
            reader.note(place, "id", SAME_ID)
        collection = new.get("collection") if endpoint.collections else None
        if collection is not None and collection not in self._collections():
            reader.note(place, "collection", f"there is no collection {collection}")
        if endpoint.tree:
            self._check_page(place, new, row, reader)
        if endpoint.redirects and "site_path" in new:
            name = row[declared.places["site_name"]]
            for alias in site_names(self._sites().values()).get(name, [name]):
                path = alias + new["site_path"][len(name) :]
                there = self._stored.redirect_at(path)
                if there is not None and there != row[0]:
                    reader.note(place, "old_path", same_path(there))
        for name, column in declared.columns.items():
            if column.child is not None and new.get(name):
                ids = [child[0] for child in new[name]]
                for identity, owner in self._stored.owners(column.child, ids):
                    if owner != (endpoint.name, row[0]):
                        message = f"the id {identity} stands in another object already"
                        reader.note(place, name, message)

    def _check_page(
        self, place: Place, new: Mapping[str, Any], row: Row, reader: RecordReader
    ) -> None:
        locale = new.get("locale")
        locales = [] if locale is None else self._stored.records("locales")
        if locales and locale not in locales:
            reader.note(place, "locale", f"{locale!r} is none of {', '.join(locales)}")
        above = new.get("parent")
        found = self._get("pages", above)
        if above is not None and found is None:
            reader.note(place, "parent", f"there is no page {above}")
        elif found is not None and found.row[1] in self._stored.elsewhere:
            why = self._stored.elsewhere[found.row[1]]
            reader.note(place, "parent", f"no other pages can be below page {above}: {why}")
        elif "parent" in new or "slug" in new:
            at = self._endpoint("pages").base.places
            slug = row[at["slug"]]
            there = self._stored.page_at(row[at["parent"]], slug)
            if there is not None and there != row[0]:
                reader.note(place, "slug", same_slug(slug, there))

    def _refuse_elsewhere(self, endpoint: str, row: Row) -> None:
        if row[1] in self._stored.elsewhere:
            _refuse(_place(endpoint, row[0]), "type", self._stored.elsewhere[row[1]])

    def _require_sibling(self, row: Row, sibling: Any) -> None:
        parent = self._endpoint("pages").base.places["parent"]
        found = self._get("pages", sibling)
        if found is None or sibling == row[0] or found.row[parent] != row[parent]:
            message = f"there is no sibling {sibling} to go in front of"
            _refuse(_place("pages", row[0]), "", message)


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and value in INT64


def _as_record(given: Any) -> Any:
    return given.to_record() if isinstance(given, Content) else given


def _site_key(hostname: object, port: object) -> tuple[str, int]:
    host = Host.of("http", f"{hostname}:{port}")
    return host.name, host.port


def _place(section: str, identity: Any) -> Place:
    return Place(section, 0, f"{section} {identity}")


def _refuse(place: Place, key: str, message: str) -> NoReturn:
    raise ContentError([place.problem(key, message)])
