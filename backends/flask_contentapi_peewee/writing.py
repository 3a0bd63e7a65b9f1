"""Lets the site's code change content, object by object."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from datetime import UTC, datetime
from functools import wraps
from typing import Any, TypeVar, cast
from uuid import uuid4

from flask_contentapi.hosts import Host
from flask_contentapi.library import read_library
from flask_contentapi.media_collections import check_collections
from flask_contentapi.query import Row
from flask_contentapi.records import Place, RecordReader
from flask_contentapi.registry import Registry
from flask_contentapi_peewee.changes import Changes
from flask_contentapi_peewee.connections import DATABASE_ERRORS, atomic
from flask_contentapi_peewee.objects import Objects, raise_problems, refuse
from flask_contentapi_peewee.page_tree import PageTree
from flask_contentapi_peewee.reader import DatabaseReader
from flask_contentapi_peewee.statements import Statements

__all__ = ["Writer"]


#: The fields that determine who sees an object.
_VISIBILITY_FIELDS = frozenset(("live", "go_live_at", "expires_at", "restriction", "collection"))

Method = TypeVar("Method", bound=Callable[..., Any])


def _atomic(method: Method) -> Method:
    """Makes a method atomic: on an error it changes nothing."""

    @wraps(method)
    def change(self: Writer, *args: Any, **options: Any) -> Any:
        if self.is_over:
            raise RuntimeError("The block is over in which the content is changed; begin another.")
        if self.is_changing:
            return method(self, *args, **options)
        self.is_changing = True
        try:
            with atomic(self.database):
                made = method(self, *args, **options)
            # MariaDB loses words of other objects if some are rolled back to a savepoint.
            self._objects.write_words()
            return made
        except DATABASE_ERRORS as error:
            # The database may have undone the whole transaction, as SQLite does on a full disk.
            self.is_over, self.failure = True, error
            raise
        finally:
            self._objects.forget_words()
            self.is_changing = False

    return cast(Method, change)


class Writer:
    """Changes the content within one transaction, which creates one new version of it.

    Records are as in the rest of the package. What follows from them (the tree, the times when a
    page is visible, the words for searching) is updated automatically.

    :param statements: the statements of the backend.
    :param registry: the declared types.
    :param reader: reads the content, including the changes of the transaction.
    """

    def __init__(self, statements: Statements, registry: Registry, reader: DatabaseReader) -> None:
        tables = self._tables = statements.tables
        self._registry = registry
        self._reader = reader
        self.database = tables.engine.database
        #: Whether the transaction is over.
        self.is_over = False
        #: The error of the database that has ended it.
        self.failure: BaseException | None = None
        #: Whether a change is being made, which may consist of others.
        self.is_changing = False
        self._objects = Objects(statements, registry, reader)
        self._pages = tables.endpoints["pages"].base
        self._page_tree = PageTree(tables, reader)
        self._changes = Changes(reader)

    # Objects.

    def record(self, endpoint: str, id: int) -> dict[str, Any]:
        """The record of an object, which may be hidden.

        :raises ContentError: if there is no such object.
        """
        return self._objects.record(endpoint, id)

    @_atomic
    def add(self, endpoint: str, record: Mapping[str, Any], *, before: int | None = None) -> int:
        """Adds an object.

        :param endpoint: where it is served.
        :param record: its record. ``id`` and the ids of child objects may be left out, and so may
            a page's ``slug``, which is then made from its title.
        :param before: for a page, the sibling to insert it before; None: at the end.
        :returns: its id.
        :raises ContentError: if it does not fit; then nothing is changed.
        """
        tables = self._objects.endpoint(endpoint)
        given = dict(record)
        if given.get("id") is None:
            given["id"] = self._objects.next_id(tables.base)
        if tables.endpoint.tree and not given.get("slug"):
            title, parent = str(given.get("title", "")), given.get("parent")
            known = parent if self._objects.exists(tables.base, parent) else None
            given["slug"] = self._page_tree.free_slug(known, title)
        row, extras = self._objects.read(endpoint, given)
        place = _place(endpoint, row[0])
        if self._objects.exists(tables.base, row[0]):
            refuse(place, "id", "another record has this id already")
        position = None
        if tables.endpoint.tree:
            position = self._page_tree.new_position(place, self._values(row), before)
        self._objects.insert(endpoint, row, extras, position)
        self._changes.note_visibility(endpoint, row[0])
        return int(row[0])

    @_atomic
    def update(self, endpoint: str, id: int, /, **changes: Any) -> None:
        """Changes fields of an object.

        :param endpoint: where it is served.
        :param id: its id.
        :param changes: new values, as in records; other fields stay unchanged.
        :raises ContentError: if there is no such object, or a value does not fit.
        """
        place = _place(endpoint, id)
        old = self._objects.get(endpoint, id)
        known = self._objects.write(endpoint, *old)
        for name in ("id", "parent"):
            if name in changes and changes[name] != known.get(name):
                refuse(place, name, "is not changed by an update; pages move")
        names = None if "type" in changes else changes.keys()
        row, extras = self._objects.read(endpoint, {**known, **changes}, names)
        position = None
        if endpoint == "pages" and changes.keys() & {"slug", "restriction"}:
            position = self._page_tree.revise(place, self._values(row))
        former = old[1] if row[1] in self._tables.endpoints[endpoint].endpoint.types else {}
        self._objects.replace(endpoint, old, (row, {**former, **extras}), position)
        self._note(endpoint, id, changes.keys())

    def _note(self, endpoint: str, identity: int, changed: Set[str]) -> None:
        """Notes which answers a change of some fields of an object affects."""
        affects_visibility = changed & _VISIBILITY_FIELDS
        note = self._changes.note_visibility if affects_visibility else self._changes.note_change
        note(endpoint, identity)
        if endpoint == "pages" and changed & {"slug", "restriction"}:
            note(endpoint, *self._page_tree.below(identity))

    @_atomic
    def delete(self, endpoint: str, id: int, *, descendants: bool = False) -> None:
        """Deletes an object.

        :param endpoint: where it is served.
        :param id: its id.
        :param descendants: whether to delete the pages below a page as well.
        :raises ContentError: if there is no such object, or it is still needed.
        """
        self._objects.label(endpoint, id)
        doomed = [id]
        if self._tables.endpoints[endpoint].endpoint.tree:
            doomed = [*self._page_tree.below(id), id]
            self._check_doomed(_place(endpoint, id), doomed, descendants)
        self._changes.note_visibility(endpoint, *doomed)
        self._objects.remove(endpoint, doomed)
        self._objects.reserve_id(self._objects.endpoint(endpoint).base, max(doomed))

    def _check_doomed(self, place: Place, doomed: list[int], descendants: bool) -> None:
        if len(doomed) > 1 and not descendants:
            refuse(place, "", "there are pages below it; descendants=True takes them away as well")
        sites = self._reader.records(self._tables.sites, ["hostname", "root_page"], "id")
        for site in sites:
            if site["root_page"] in doomed:
                refuse(place, "", f"page {site['root_page']} is the home of {site['hostname']}")

    def _values(self, row: Row) -> dict[str, Any]:
        """The columns of a page by name."""
        declared = self._registry.endpoints["pages"].type_of(row[1])
        return dict(zip(declared.column_names, row, strict=True))

    # Pages.

    @_atomic
    def move(self, page: int, parent: int | None, *, before: int | None = None) -> None:
        """Moves a page and all pages below it.

        :param page: its id.
        :param parent: its new parent; None makes it a root page.
        :param before: the sibling to insert it before; None: at the end.
        :raises ContentError: if it cannot be there.
        """
        known = self.record("pages", page)
        row, _ = self._objects.read("pages", {**known, "parent": parent})
        self._page_tree.move(_place("pages", page), self._values(row), before)
        self._changes.note_visibility("pages", page, *self._page_tree.below(page))

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
        there = copy.get("locale") == locale
        if there or (key is not None and self._translation(key, locale) is not None):
            refuse(_place("pages", page), "locale", f"there is one in {locale} already")
        if key is None:
            key = str(uuid4())
            self.update("pages", page, translation_key=key)
        parent = self._parent_in(copy.get("parent"), locale)
        own = {"translation_key": key, "locale": locale, "live": False, "parent": parent}
        return self.add("pages", {**copy, **own, **changes})

    def _copy(self, page: int) -> dict[str, Any]:
        """The record of a page, without what must be unique."""
        record = self.record("pages", page)
        declared = self._objects.declared("pages", record["type"])
        for name, column in declared.columns.items():
            if column.child is not None:
                record[name] = [{**child, "id": None} for child in record.get(name, ())]
        return {name: value for name, value in record.items() if name not in ("id", "slug")}

    def _parent_in(self, parent: int | None, locale: str) -> int | None:
        """The translation of a page, or the page itself."""
        if parent is None:
            return None
        key = self.record("pages", parent).get("translation_key")
        return parent if key is None else self._translation(key, locale) or parent

    def _translation(self, key: str, locale: str) -> int | None:
        fields, equals = self._pages.fields, self._tables.engine.equals
        query = self._pages.model.select(fields["id"])
        found = query.where(equals(fields["translation_key"], key) & (fields["locale"] == locale))
        # There may be several. The first in the tree counts, as for readers.
        pages = self._reader.all(found.order_by(fields["path_"]).limit(1))
        return next((page for (page,) in pages), None)

    def tags(self) -> frozenset[str]:
        """The cache tags of the answers that may have changed."""
        return self._changes.tags()

    # Languages, sites and collections.

    @_atomic
    def put_locale(self, code: str) -> None:
        """Adds a language after the others, if it does not exist.

        The first language becomes that of all pages that name none. The languages that the others
        name are added after it.

        :param code: its code.
        :raises ContentError: if the code is not valid.
        """
        self._changes.note_everything()
        locales, added = self._objects.locales(), [code]
        read_library({"locales": [*locales, code]}, self._registry)
        if not locales:
            model, field = self._pages.model, self._pages.fields["locale"]
            model.update({field: code}).where(field.is_null()).execute()
            added += [used for (used,) in self._reader.all(model.select(field).distinct())]
        for new in dict.fromkeys(sorted(added, key=lambda new: (new != code, new))):
            if new not in locales:
                sort = len(self._objects.locales())
                self._objects.put(self._tables.locales, {"code": new, "sort": sort})

    @_atomic
    def put_site(self, **site: Any) -> None:
        """Adds a site, or changes the one with its host name and port.

        :param site: its keys, as in a record.
        :raises ContentError: if a value does not fit.
        """
        reader = RecordReader(self._registry)
        read = reader.read_site(0, site)
        if read is not None and not self._objects.exists(self._pages, read["root_page"]):
            place = Place("sites", 0, f"sites {read['hostname']}:{read['port']}")
            reader.note(place, "root_page", f"there is no page {read['root_page']}")
        raise_problems(reader)
        assert read is not None
        table = self._tables.sites
        if read["is_default"]:
            table.model.update({table.fields["is_default"]: False}).execute()
        number = self.delete_site(read["hostname"], read["port"])
        if number is None:
            number = self._objects.next_id(table)
        self._objects.put(table, {"id": number, **read})

    @_atomic
    def delete_site(self, hostname: str, port: int = 80) -> int | None:
        """Deletes a site; its pages stay.

        :param hostname: its host name, in any form.
        :param port: its port.
        :returns: its number among the sites, or None if there was no such site.
        """
        self._changes.note_everything()
        _, *named = Host.of("http", f"{hostname}:{port}")
        table = self._tables.sites
        known = self._reader.records(table, ["id", "hostname", "port"], "id")
        for site in known:
            if [site["hostname"], site["port"]] == named:
                table.model.delete().where(table.fields["id"] == site["id"]).execute()
                return int(site["id"])
        return None

    @_atomic
    def put_collection(self, **collection: Any) -> int:
        """Adds a collection, or changes the one with its id.

        :param collection: its keys, as in a record; ``id`` may be left out.
        :returns: its id.
        :raises ContentError: if a value does not fit.
        """
        self._changes.note_everything()
        table = self._tables.collections
        if collection.get("id") is None:
            collection["id"] = self._objects.next_id(table)
        reader = RecordReader(self._registry)
        read = reader.read_collection(0, collection)
        if read is not None:
            stored = self._reader.records(table, ["id", "parent"], "sort")
            check_collections({record["id"]: record for record in (*stored, read)}, reader)
        raise_problems(reader)
        assert read is not None
        known = self._reader.records(table, ["id", "sort"], "sort")
        sorts = {record["id"]: record["sort"] for record in known}
        sort = sorts.get(read["id"], len(known) and known[-1]["sort"] + 1)
        table.model.delete().where(table.fields["id"] == read["id"]).execute()
        self._objects.put(table, {**read, "sort": sort})
        return int(read["id"])

    @_atomic
    def delete_collection(self, id: int) -> None:
        """Deletes a collection.

        :param id: its id.
        :raises ContentError: if there is no such collection, or it is not empty.
        """
        self._changes.note_everything()
        table = self._tables.collections
        if not self._objects.exists(table, id):
            refuse(_place("collections", id), "", "there is no such collection")
        inside = self._objects.count(table, table.fields["parent"] == id)
        for endpoint in self._reader.tables.endpoints.values():
            if endpoint.endpoint.collections:
                base = endpoint.base
                inside += self._objects.count(base, base.fields["collection"] == id)
        if inside:
            refuse(_place("collections", id), "", f"{inside} objects lie in it")
        table.model.delete().where(table.fields["id"] == id).execute()


def _place(section: str, identity: int) -> Place:
    return Place(section, 0, f"{section} {identity}")
