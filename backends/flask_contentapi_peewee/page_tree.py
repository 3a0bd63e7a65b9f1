"""Changes the tree of pages. Moving a branch takes few statements, however large it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

from peewee import Value, fn

from flask_contentapi.content import misplaced, same_slug
from flask_contentapi.errors import ContentError
from flask_contentapi.records import Place
from flask_contentapi.sites import quote_slug
from flask_contentapi_peewee.columns import GAP, LARGEST, OPEN, end, last_number, md5, step
from flask_contentapi_peewee.documents import TreePosition
from flask_contentapi_peewee.reader import DatabaseReader

#: Temporary prefixes of paths: of pages being moved, and of pages that make room for them.
MOVED, SHIFTED = "~", "|"
#: How much room is made between two siblings if there is none.
ROOM = 1000


class PageTree:
    """The tree of pages in their table."""

    def __init__(self, reader: DatabaseReader) -> None:
        self._table = reader.tables.endpoints["pages"].base
        self._reader = reader

    def position_of(self, page: int | None) -> TreePosition:
        """The position of a page in the tree; for None, the one above root pages."""
        return self._positions({page})[page]

    def below(self, page: int, column: str = "url_path") -> dict[int, Any]:
        """The pages below a page in tree order, each with one of its columns."""
        path, fields = self.position_of(page).path, self._table.fields
        query = self._table.select("id", column).order_by(fields["path_"])
        inside = query.where((fields["path_"] > path) & (fields["path_"] < end(path)))
        return dict(self._reader.all(inside))

    # Positions.

    def new_position(self, page: Mapping[str, Any], before: int | None) -> TreePosition:
        """The position of a page that is new in the tree.

        :param before: the sibling to insert it before; None: at the end.
        :raises ContentError: if there is no room left.
        """
        above = self.position_of(page["parent"])
        return _below(above, page, step(self._free_number(page, above, before)))

    def append(
        self, pages: Sequence[Mapping[str, Any]], refuse: Callable[[int, str, str], None]
    ) -> dict[int, TreePosition]:
        """The positions of pages that are new in the tree, each after its siblings.

        :param refuse: is told why a page cannot be there: its id, the field, and a message.
        """
        above = self._positions({page["parent"] for page in pages})
        paths = {
            page["id"]: _below(above[page["parent"]], page).url_path
            for page in pages
            if page["parent"] in above
        }
        query = self._table.select("url_path", "id")
        query = query.where(self._table["url_hash_"].in_([*map(md5, paths.values())]))
        taken = dict(self._reader.all(query))
        last: dict[int | None, int] = {}
        found: dict[int, TreePosition] = {}
        for page in pages:
            identity, parent = page["id"], page["parent"]
            if parent not in above:
                refuse(identity, "parent", f"there is no page {parent}")
            elif wrong := misplaced(paths[identity]):
                refuse(identity, *wrong)
            elif paths[identity] in taken:
                refuse(identity, "slug", same_slug(page["slug"], taken[paths[identity]]))
            else:
                taken[paths[identity]] = identity
                if parent not in last:
                    last[parent] = self._free_number(page, above[parent], None) - GAP
                last[parent] += GAP
                found[identity] = _below(above[parent], page, step(last[parent]))
        return found

    def _positions(self, pages: Set[int | None]) -> dict[int | None, TreePosition]:
        query = self._table.select("id", "path_", "url_path", "access_")
        query = query.where(self._table["id"].in_([*pages - {None}]))
        found = {row[0]: TreePosition(*row[1:]) for row in self._reader.all(query)}
        return {None: TreePosition("", "/", OPEN), **found}

    def _free_number(self, page: Mapping[str, Any], above: TreePosition, before: int | None) -> int:
        last = self._highest_number(page)
        if last > LARGEST - ROOM:
            place = Place("pages", 0, f"pages {page['id']}")
            message = "has no room left; dump all content and load it again"
            raise ContentError([place.problem("parent", message)])
        if before is None:
            return last + GAP
        after = last_number(self.position_of(before).path)
        ahead = self._highest_number(page, before=above.path + step(after))
        if after - ahead < 2:
            self._make_room(above, after)
            after += ROOM
        # Inserting at the front is often repeated.
        return after - GAP if ahead == 0 and after > GAP else (ahead + after) // 2

    def _highest_number(self, page: Mapping[str, Any], before: str | None = None) -> int:
        fields = self._table.fields
        others = (fields["parent"] == page["parent"]) & (fields["id"] != page["id"])
        query = self._table.select("path_").where(others)
        if before is not None:
            query = query.where(fields["path_"] < before)
        path = self._reader.first(query.order_by(fields["path_"].desc()).limit(1))
        return last_number(path) if path else 0

    def _make_room(self, above: TreePosition, number: int) -> None:
        field, start = self._table["path_"], len(above.path) + 1
        digits = fn.SUBSTR(field, start, 1).cast("INTEGER")
        text = Value("").concat(fn.SUBSTR(field, start + 1, digits).cast("INTEGER") + ROOM)
        path: Any = Value(SHIFTED + above.path)
        for part in (fn.LENGTH(text), text, fn.SUBSTR(field, digits + (start + 1))):
            path = path.concat(part)
        shift, first = self._table.model.update({field: path}), above.path + step(number)
        shift.where((field >= first) & (field < end(above.path))).execute()
        self._replace_path(SHIFTED + above.path, above.path)

    # Branches.

    def _update(self, path: str, changes: Mapping[Any, Any], *conditions: Any) -> None:
        inside = (self._table["path_"] >= path) & (self._table["path_"] < end(path))
        self._table.model.update(changes).where(inside, *conditions).execute()

    def _replace_path(self, old: str, new: str) -> None:
        field = self._table["path_"]
        self._update(old, {field: Value(new).concat(fn.SUBSTR(field, len(old) + 1))})

    def _replace_url_path(self, path: str, old: str, new: str) -> None:
        if old == new:
            return
        address, digest = self._table["url_path"], self._table["url_hash_"]
        self._update(path, {address: Value(new).concat(fn.SUBSTR(address, len(old) + 1))})
        self._update(path, {digest: fn.MD5(address)})

    def _replace_access(self, path: str, old: int, new: int) -> None:
        if old != new:
            access = self._table["access_"]
            self._update(path, {access: new}, access == old)

    def move(self, page: Mapping[str, Any], before: int | None) -> None:
        """Moves a page, with all pages below it, under its new parent.

        :param page: its columns, with the new parent.
        :param before: the sibling to insert it before; None: at the end.
        :raises ContentError: if there is no room left.
        """
        old = self.position_of(page["id"])
        # Under a temporary path it is not in the way, and not shifted with siblings.
        self._replace_path(old.path, MOVED + old.path)
        new = self.new_position(page, before)
        self._replace_path(MOVED + old.path, new.path)
        self._replace_url_path(new.path, old.url_path, new.url_path)
        self._replace_access(new.path, old.access, new.access)
        moved = self._table.model.update({self._table["parent"]: page["parent"]})
        moved.where(self._table["id"] == page["id"]).execute()

    def revise(self, page: Mapping[str, Any]) -> TreePosition:
        """Applies a page's new slug and restriction to the pages below it.

        :returns: the position of the page, with its new address and restriction.
        """
        old = self.position_of(page["id"])
        new = _below(self.position_of(page["parent"]), page)._replace(path=old.path)
        self._replace_url_path(old.path, old.url_path, new.url_path)
        self._replace_access(old.path, old.access, new.access)
        return new


def _below(above: TreePosition, page: Mapping[str, Any], own_step: str = "") -> TreePosition:
    access = page["id"] if page["restriction"] else above.access
    return TreePosition(
        above.path + own_step, f"{above.url_path}{quote_slug(page['slug'])}/", access
    )
