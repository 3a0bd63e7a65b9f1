"""Changes of the tree of pages: branches are moved by few statements, however large they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from peewee import Value, fn

from flask_contentapi.addresses import quote_slug
from flask_contentapi.records import Place
from flask_contentapi.search import words
from flask_contentapi_peewee.objects import refuse
from flask_contentapi_peewee.paths import GAP, end, last_number, step
from flask_contentapi_peewee.reader import DatabaseReader
from flask_contentapi_peewee.rows import Branch
from flask_contentapi_peewee.tables import OwnTable

__all__ = ["Branches"]

#: In front of a path while others are in the way of where it goes.
ASIDE = "~"


class Branches:
    """The tree of pages in their table.

    :param pages: the table.
    :param reader: reads what is there, what the transaction has changed included.
    """

    def __init__(self, pages: OwnTable, reader: DatabaseReader) -> None:
        self._table = pages
        self._reader = reader

    def of(self, page: int | None) -> Branch:
        """Where a page is; for None, where root pages are."""
        if page is None:
            return Branch("", "/", 0)
        fields = self._table.fields
        columns = (fields["path_"], fields["url_path"], fields["access_"])
        query = self._table.model.select(*columns).where(fields["id"] == page)
        (found,) = self._reader.all(query)
        return Branch(*found)

    def below(self, page: int) -> list[tuple[int, str]]:
        """The pages below a page, the last of the tree first: id and type."""
        fields = self._table.fields
        query = self._table.model.select(fields["id"], fields["type"])
        query = query.where(self._inside(self.of(page).path) & (fields["id"] != page))
        return [*self._reader.all(query.order_by(fields["path_"].desc()))]

    def _inside(self, path: str) -> Any:
        """A page and all below it."""
        field = self._table.fields["path_"]
        return (field >= path) & (field < end(path))

    def free_slug(self, parent: int | None, title: str) -> str:
        """A slug made of a title that no page under a parent has."""
        slug = "-".join(words(title)) or "page"
        fields = self._table.fields
        query = self._table.model.select(fields["slug"]).where(self._under(parent))
        taken = {known for (known,) in self._reader.all(query)}
        number, free = 1, slug
        while free in taken:
            number += 1
            free = f"{slug}-{number}"
        return free

    def _under(self, parent: int | None) -> Any:
        field = self._table.fields["parent"]
        return field.is_null() if parent is None else field == parent

    # Places.

    def place(self, where: Place, values: Mapping[str, Any], before: int | None) -> Branch:
        """Where a page that is not in the tree goes.

        :param where: what it is known by.
        :param values: its columns.
        :param before: the sibling that it goes in front of; None: the last one.
        :raises ContentError: if that is no place for it.
        """
        above = self.of(values["parent"])
        url_path = self._url_path(where, values, above)
        path = above.path + step(self._number(where, values, above, before))
        return Branch(path, url_path, values["id"] if values["restriction"] else above.access)

    def _url_path(self, where: Place, values: Mapping[str, Any], above: Branch) -> str:
        """The slugs down to a page, which no sibling may have."""
        fields = self._table.fields
        same = self._under(values["parent"]) & (fields["slug"] == values["slug"])
        query = self._table.model.select(fields["id"]).where(same & (fields["id"] != values["id"]))
        if self._reader.all(query):
            refuse(where, "slug", f"a sibling has the slug {values['slug']!r} already")
        return f"{above.url_path}{quote_slug(values['slug'])}/"

    def _number(
        self, where: Place, values: Mapping[str, Any], above: Branch, before: int | None
    ) -> int:
        """A free number among the children of a page."""
        siblings = self._siblings(values)
        if before is None:
            return (last_number(siblings[-1][1]) if siblings else 0) + GAP
        ids = [page for page, _ in siblings]
        if before not in ids:
            refuse(where, "", f"there is no sibling {before} to go in front of")
        place = ids.index(before)
        after = last_number(siblings[place][1])
        ahead = last_number(siblings[place - 1][1]) if place else 0
        if after - ahead >= 2:
            return (ahead + after) // 2
        self._spread(above, [path for _, path in siblings])
        return place * GAP + GAP // 2

    def _siblings(self, values: Mapping[str, Any]) -> list[tuple[int, str]]:
        """The children of a page's parent, the page apart: id and path."""
        fields = self._table.fields
        query = self._table.model.select(fields["id"], fields["path_"])
        others = self._under(values["parent"]) & (fields["id"] != values["id"])
        return [*self._reader.all(query.where(others).order_by(fields["path_"]))]

    def _spread(self, above: Branch, paths: Sequence[str]) -> None:
        """Gives siblings numbers that are apart again."""
        spread = [above.path + step(number * GAP) for number in range(1, len(paths) + 1)]
        for old, new in zip(paths, spread, strict=True):
            self._repath(old, ASIDE + new)
        for path in spread:
            self._repath(ASIDE + path, path)

    # Branches.

    def _update(self, path: str, changes: Mapping[Any, Any], condition: Any = None) -> None:
        """Changes a page and all below it."""
        inside = self._inside(path) if condition is None else self._inside(path) & condition
        self._table.model.update(changes).where(inside).execute()

    def _repath(self, old: str, new: str) -> None:
        field = self._table.fields["path_"]
        self._update(old, {field: Value(new).concat(fn.SUBSTR(field, len(old) + 1))})

    def _readdress(self, path: str, old: str, new: str) -> None:
        """Gives a branch another start of its address."""
        address, digest = self._table.fields["url_path"], self._table.fields["url_hash_"]
        self._update(path, {address: Value(new).concat(fn.SUBSTR(address, len(old) + 1))})
        self._update(path, {digest: fn.MD5(address)})

    def _reopen(self, path: str, old: int, new: int) -> None:
        """Puts what one restriction holds for in a branch under another one."""
        access = self._table.fields["access_"]
        self._update(path, {access: new}, access == old)

    def move(self, where: Place, values: Mapping[str, Any], before: int | None) -> None:
        """Puts a page with all below it under its new parent.

        :param where: what it is known by.
        :param values: its columns, with the new parent.
        :param before: the sibling that it goes in front of; None: the last one.
        :raises ContentError: if that is no place for it.
        """
        old, above = self.of(values["id"]), self.of(values["parent"])
        if above.path.startswith(old.path):
            refuse(where, "parent", "a page cannot go below itself")
        url_path = self._url_path(where, values, above)
        # Aside it is in nobody's way, nor is it moved along when siblings are.
        self._repath(old.path, ASIDE + old.path)
        path = self.of(values["parent"]).path + step(self._number(where, values, above, before))
        self._repath(ASIDE + old.path, path)
        if url_path != old.url_path:
            self._readdress(path, old.url_path, url_path)
        if not values["restriction"] and old.access != above.access:
            self._reopen(path, old.access, above.access)
        fields = self._table.fields
        moved = self._table.model.update({fields["parent"]: values["parent"]})
        moved.where(fields["id"] == values["id"]).execute()

    def revise(self, where: Place, values: Mapping[str, Any]) -> Branch:
        """Gives what is below a page what follows from its new slug and restriction.

        :param where: what it is known by.
        :param values: its columns, the new ones.
        :returns: where the page is, with what follows for itself.
        :raises ContentError: if a sibling has the slug.
        """
        old, above = self.of(values["id"]), self.of(values["parent"])
        url_path = self._url_path(where, values, above)
        if url_path != old.url_path:
            self._readdress(old.path, old.url_path, url_path)
        access = values["id"] if values["restriction"] else above.access
        if access != old.access:
            self._reopen(old.path, old.access, access)
        return Branch(old.path, url_path, access)
