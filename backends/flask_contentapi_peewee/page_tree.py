"""Changes the tree of pages. Moving a branch takes few statements, however large it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, count
from typing import Any

from peewee import Value, fn

from flask_contentapi.addresses import quote_slug
from flask_contentapi.kinds import INT64, LONGEST_PATH
from flask_contentapi.records import Place
from flask_contentapi.search import words
from flask_contentapi.tables import DEEPEST, too_deep_message, too_long_message
from flask_contentapi_peewee.clauses import any_of
from flask_contentapi_peewee.columns import OPEN, md5
from flask_contentapi_peewee.objects import refuse
from flask_contentapi_peewee.paths import GAP, LARGEST, SHORTEST, end, last_number, level, step
from flask_contentapi_peewee.reader import DatabaseReader
from flask_contentapi_peewee.rows import TreePosition
from flask_contentapi_peewee.tables import Tables

__all__ = ["PageTree"]

#: Temporary prefixes of paths: of pages being moved, and of pages that make room for them.
MOVED, SHIFTED = "~", "|"
#: How much room is made between two siblings if there is none.
ROOM = 1000
#: How many branches a query asks for.
BRANCHES_PER_QUERY = 100
#: The maximum length of a slug made from a title.
LONGEST_SLUG = 100


class PageTree:
    """The tree of pages in their table.

    :param tables: the tables.
    :param reader: reads the content, including the changes of the transaction.
    """

    def __init__(self, tables: Tables, reader: DatabaseReader) -> None:
        self._table = tables.endpoints["pages"].base
        self._engine = tables.engine
        self._reader = reader

    def position_of(self, page: int | None) -> TreePosition:
        """The position of a page in the tree; for None, the one above root pages."""
        if page is None:
            return TreePosition("", "/", OPEN)
        fields = self._table.fields
        columns = (fields["path_"], fields["url_path"], fields["access_"])
        query = self._table.model.select(*columns).where(fields["id"] == page)
        (found,) = self._reader.all(query)
        return TreePosition(*found)

    def below(self, page: int) -> list[tuple[int, str]]:
        """The ids and types of the pages below a page, in reverse tree order."""
        known = self._reader.tables.endpoints["pages"].base
        path = self.position_of(page).path
        inside = (known.fields["path_"] > path) & (known.fields["path_"] < end(path))
        query = known.model.select(known.fields["id"], known.fields["type"]).where(inside)
        return [*self._reader.all(query.order_by(known.fields["path_"].desc()))]

    def all_below(self, pages: Sequence[int]) -> Iterator[int]:
        """The pages below some pages, which need not be in our tables, or exist."""
        known = self._reader.tables.endpoints["pages"].base
        identity, path = known.fields["id"], known.fields["path_"]
        for start in range(0, len(pages), BRANCHES_PER_QUERY):
            named = identity.in_(pages[start : start + BRANCHES_PER_QUERY])
            tops = [top for (top,) in self._reader.all(known.model.select(path).where(named))]
            if tops:
                inside = any_of([(path > top) & (path < end(top)) for top in tops])
                below = self._reader.all(known.model.select(identity).where(inside))
                yield from (page for (page,) in below)

    def _inside(self, path: str) -> Any:
        """The condition for a page and all pages below it."""
        field = self._table.fields["path_"]
        return (field >= path) & (field < end(path))

    def free_slug(self, parent: int | None, title: str) -> str:
        """A slug made from a title, which no page under a parent has."""
        slug = "-".join(words(title))[:LONGEST_SLUG].rstrip("-") or "page"
        field = self._table.fields["slug"]
        # The slug itself and numbered ones sort before the slug followed by ".", which follows "-".
        alike = self._under(parent) & (field >= slug) & (field < f"{slug}.")
        taken = {
            known for (known,) in self._reader.all(self._table.model.select(field).where(alike))
        }
        taken.update(
            self._foreign_slugs(parent, lambda known: (known >= slug) & (known < f"{slug}."))
        )
        numbered = (f"{slug}-{number}" for number in count(2))
        return next(free for free in chain([slug], numbered) if free not in taken)

    def _foreign_slugs(self, parent: int | None, condition: Callable[[Any], Any]) -> Iterator[str]:
        """The slugs of pages under a parent that are not in our tables.

        :param condition: makes the condition on the slug.
        """
        for part in chain(*self._reader.tables.endpoints["pages"].further.values()):
            slug = part.base.fields["slug"]
            under = (part.base.fields["parent"] == parent) & condition(slug)
            yield from (
                known for (known,) in self._reader.all(part.base.model.select(slug).where(under))
            )

    def _refuse_foreign_slug(self, where: Place, values: Mapping[str, Any]) -> None:
        """Refuses the slug of a sibling that is not in our tables."""
        slug = values["slug"]
        if any(self._foreign_slugs(values["parent"], lambda known: known == slug)):
            refuse(where, "slug", f"a sibling has the slug {slug!r} already")

    def _under(self, parent: int | None) -> Any:
        field = self._table.fields["parent"]
        return field.is_null() if parent is None else field == parent

    # Positions.

    def new_position(
        self, where: Place, values: Mapping[str, Any], before: int | None
    ) -> TreePosition:
        """The position of a page that is new in the tree.

        :param where: its name in messages.
        :param values: its columns.
        :param before: the sibling to insert it before; None: at the end.
        :raises ContentError: if it cannot be there.
        """
        above = self.position_of(values["parent"])
        _refuse_level(where, level(above.path) + 1)
        url_path = self._url_path(where, values, above)
        self._refuse_foreign_slug(where, values)
        path = above.path + step(self._free_number(where, values, above, before))
        return TreePosition(path, url_path, values["id"] if values["restriction"] else above.access)

    def _url_path(self, where: Place, values: Mapping[str, Any], above: TreePosition) -> str:
        """The slugs down to a page. Refuses those of a sibling."""
        fields = self._table.fields
        path = f"{above.url_path}{quote_slug(values['slug'])}/"
        if len(path) > LONGEST_PATH:
            refuse(where, "slug", too_long_message())
        same = (fields["url_hash_"] == md5(path)) & (fields["id"] != values["id"])
        if self._reader.all(self._table.model.select(fields["id"]).where(same)):
            refuse(where, "slug", f"a sibling has the slug {values['slug']!r} already")
        return path

    def _free_number(
        self, where: Place, values: Mapping[str, Any], above: TreePosition, before: int | None
    ) -> int:
        """A free number among the children of a page."""
        last = self._highest_number(values)
        if last > LARGEST - ROOM:
            refuse(where, "parent", "has no room left; dump all content and load it again")
        if before is None:
            return last + GAP
        after = self._number_of(where, values, before)
        ahead = self._highest_number(values, before=above.path + step(after))
        if after - ahead < 2:
            self._make_room(above, after)
            after += ROOM
        # Inserting at the front is often repeated.
        return after - GAP if ahead == 0 and after > GAP else (ahead + after) // 2

    def _number_of(self, where: Place, values: Mapping[str, Any], sibling: int) -> int:
        """The number of a sibling.

        :raises ContentError: if the page is no sibling.
        """
        is_id = isinstance(sibling, int) and sibling in INT64
        found = self._siblings(values, self._table.fields["id"] == sibling) if is_id else []
        if not found:
            refuse(where, "", f"there is no sibling {sibling} to go in front of")
        return last_number(found[0][0])

    def _highest_number(self, values: Mapping[str, Any], before: str | None = None) -> int:
        """The highest number among the siblings of a page, or among those before a path."""
        field = self._table.fields["path_"]
        earlier = self._siblings(values, *([] if before is None else [field < before]))
        return next((last_number(path) for (path,) in earlier), 0)

    def _siblings(self, values: Mapping[str, Any], *conditions: Any) -> list[tuple[str]]:
        """The path of the last sibling of a page that meets some conditions."""
        fields = self._table.fields
        others = self._under(values["parent"]) & (fields["id"] != values["id"])
        query = self._table.model.select(fields["path_"]).where(others, *conditions)
        return [*self._reader.all(query.order_by(fields["path_"].desc()).limit(1))]

    def _make_room(self, above: TreePosition, number: int) -> None:
        """Increases the numbers of a page's children from a number on, with all below them."""
        field, engine, start = self._table.fields["path_"], self._engine, len(above.path) + 1
        digits = engine.as_integer(fn.SUBSTR(field, start, 1))
        larger = engine.as_integer(fn.SUBSTR(field, start + 1, digits)) + ROOM
        text = engine.as_text(larger)
        steps = (engine.as_text(fn.LENGTH(text)), text, fn.SUBSTR(field, digits + (start + 1)))
        path: Any = Value(SHIFTED + above.path)
        for part in steps:
            path = path.concat(part)
        first, aside = above.path + step(number), SHIFTED + above.path
        shift = self._table.model.update({field: path})
        shift.where((field >= first) & (field < end(above.path))).execute()
        settle = self._table.model.update({field: fn.SUBSTR(field, len(SHIFTED) + 1)})
        settle.where((field >= aside) & (field < end(aside))).execute()

    # Branches.

    def _update(self, path: str, changes: Mapping[Any, Any], condition: Any = None) -> None:
        """Updates a page and all pages below it."""
        inside = self._inside(path) if condition is None else self._inside(path) & condition
        self._table.model.update(changes).where(inside).execute()

    def _replace_path(self, old: str, new: str) -> None:
        field = self._table.fields["path_"]
        self._update(old, {field: Value(new).concat(fn.SUBSTR(field, len(old) + 1))})

    def _replace_url_path(self, path: str, old: str, new: str) -> None:
        """Replaces the start of the addresses in a branch."""
        address, digest = self._table.fields["url_path"], self._table.fields["url_hash_"]
        is_long = fn.LENGTH(address) > LONGEST_PATH - (len(new) - len(old))
        first = self._table.model.select(self._table.fields["id"]).order_by(address).limit(1)
        for (identity,) in self._reader.all(first.where(self._inside(path), is_long)):
            refuse(Place("pages", 0, f"pages {identity}"), "slug", too_long_message())
        self._update(path, {address: Value(new).concat(fn.SUBSTR(address, len(old) + 1))})
        self._update(path, {digest: fn.MD5(address)})

    def _replace_access(self, path: str, old: int, new: int) -> None:
        """Replaces one restriction by another in a branch."""
        access = self._table.fields["access_"]
        self._update(path, {access: new}, access == old)

    def move(self, where: Place, values: Mapping[str, Any], before: int | None) -> None:
        """Moves a page, with all pages below it, under its new parent.

        :param where: its name in messages.
        :param values: its columns, with the new parent.
        :param before: the sibling to insert it before; None: at the end.
        :raises ContentError: if it cannot be there.
        """
        old, above = self.position_of(values["id"]), self.position_of(values["parent"])
        if above.path.startswith(old.path):
            refuse(where, "parent", "a page cannot go below itself")
        self._refuse_levels(old.path, level(above.path) + 1 - level(old.path))
        url_path = self._url_path(where, values, above)
        if url_path != old.url_path:
            self._refuse_foreign_slug(where, values)
        # Under a temporary path it is not in the way, and not shifted with siblings.
        self._replace_path(old.path, MOVED + old.path)
        path = above.path + step(self._free_number(where, values, above, before))
        self._replace_path(MOVED + old.path, path)
        if url_path != old.url_path:
            self._replace_url_path(path, old.url_path, url_path)
        if not values["restriction"] and old.access != above.access:
            self._replace_access(path, old.access, above.access)
        fields = self._table.fields
        moved = self._table.model.update({fields["parent"]: values["parent"]})
        moved.where(fields["id"] == values["id"]).execute()

    def _refuse_levels(self, path: str, shift: int) -> None:
        """Refuses to move a branch by some levels if pages in it would be too deep."""
        fields = self._table.fields
        # The length tells that most pages are not.
        shortest = len(path) + SHORTEST * (DEEPEST - shift - level(path))
        is_long = fn.LENGTH(fields["path_"]) > shortest
        query = self._table.model.select(fields["id"], fields["path_"]).order_by(fields["path_"])
        for identity, inner in self._reader.all(query.where(self._inside(path), is_long)):
            _refuse_level(Place("pages", 0, f"pages {identity}"), level(inner) + shift)

    def revise(self, where: Place, values: Mapping[str, Any]) -> TreePosition:
        """Applies a page's new slug and restriction to the pages below it.

        :param where: its name in messages.
        :param values: its new columns.
        :returns: the position of the page, with its new address and restriction.
        :raises ContentError: if a sibling has the slug.
        """
        old, above = self.position_of(values["id"]), self.position_of(values["parent"])
        url_path = self._url_path(where, values, above)
        if url_path != old.url_path:
            self._refuse_foreign_slug(where, values)
            self._replace_url_path(old.path, old.url_path, url_path)
        access = values["id"] if values["restriction"] else above.access
        if access != old.access:
            self._replace_access(old.path, old.access, access)
        return TreePosition(old.path, url_path, access)


def _refuse_level(where: Place, found: int) -> None:
    """Refuses a page on a level that is too deep."""
    if found > DEEPEST:
        refuse(where, "parent", too_deep_message(found))
