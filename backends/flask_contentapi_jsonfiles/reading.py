"""Reads files into content records, and finds the file and line of a problem in a record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

from flask_contentapi.errors import ContentError, Problem
from flask_contentapi.jsontext import Lines, Unreadable, in_line
from flask_contentapi.library import Library, must_be_list, read_library
from flask_contentapi.records import Place, RecordReader
from flask_contentapi.registry import Registry
from flask_contentapi_jsonfiles.files import File, FileReader, read_text
from flask_contentapi_jsonfiles.folder import Branch, Listing, printable, slug_of

__all__ = ["Reading", "read_folder"]

#: The fields that the location of a record determines, with their values.
Said = Mapping[str, Any]


class Origin(NamedTuple):
    """The origin of a record.

    :param file: its file.
    :param way: the path to it inside the file: its index in a list, or nothing.
    :param body: the file with its body, or None.
    """

    file: File
    way: tuple[int, ...] = ()
    body: File | None = None


@dataclass
class Reading:
    """The content of the files.

    :param content: the records by section.
    :param origins: the origin of each record.
    :param problems: the problems of files.
    :param noted: the problems of records with regard to their files and folders.
    :param partial: whether records are missing, or their parents unknown, so that checking them
        against each other makes no sense.
    """

    content: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    origins: dict[str, list[Origin]] = field(default_factory=lambda: defaultdict(list))
    problems: list[Problem] = field(default_factory=list)
    noted: list[Problem] = field(default_factory=list)
    partial: bool = False

    def library(self, registry: Registry, *, logs: bool = True) -> Library:
        """The content, checked.

        :param logs: whether undeclared types are logged.
        :raises ContentError: with every problem, and the file and line of each.
        """
        noted = list(self.noted)
        if self.partial:
            noted += _check_each(self.content, registry)
        else:
            try:
                library = read_library(self.content, registry, logs=logs)
            except ContentError as error:
                noted += error.problems
        if self.problems or noted:
            raise ContentError([*self.problems, *self.locate(noted)])
        return library

    def locate(self, problems: Iterable[Problem]) -> Iterator[Problem]:
        """Adds files and lines to problems of records."""
        lines: dict[str, Lines] = {}
        for problem in problems:
            origin = self._origin(problem)
            if origin is None:
                yield problem
            elif origin.body is not None and problem.path[:1] == ("body",):
                yield replace(problem, file=printable(origin.body.name))
            else:
                way = (*origin.way, *problem.path)
                file = _shown(origin.file, _lines(origin.file, lines).of(way))
                yield replace(problem, where=_where(problem, origin), file=file)

    def _origin(self, problem: Problem) -> Origin | None:
        origins = self.origins.get(problem.section, [])
        if 0 <= problem.index < len(origins):
            return origins[problem.index]
        return self._by_name.get(problem.where.partition(",")[0])

    @cached_property
    def _by_name(self) -> dict[str, Origin]:
        """The origins of records by the names that problems have for them."""
        return {
            _name(section, record): origin
            for section, records in self.content.items()
            for record, origin in zip(records, self.origins[section], strict=True)
            if isinstance(record, dict)
        }


def _name(section: str, record: Mapping[str, Any]) -> str:
    return f"{section} {record['id']}" if "id" in record else ""


def _where(problem: Problem, origin: Origin) -> str:
    """The name of a record in messages; an index is left out if the file has only one record."""
    if origin.way:
        return problem.where
    return problem.where.removeprefix(f"{problem.section}[{problem.index}]").lstrip(", ")


def _shown(file: File, line: int) -> str:
    return in_line(printable(file.name), line)


def _lines(file: File, known: dict[str, Lines]) -> Lines:
    if file.path not in known:
        try:
            known[file.path] = Lines(read_text(file))
        except Unreadable:  # it has been changed since
            known[file.path] = Lines("")
    return known[file.path]


def _check_each(content: Mapping[str, Iterable[Any]], registry: Registry) -> list[Problem]:
    """The problems of each record on its own."""
    reader = RecordReader(registry)
    for section, records in content.items():
        for index, record in enumerate(records):
            if section == "sites":
                reader.site(index, record)
            elif section == "collections":
                reader.collection(index, record)
            elif section in registry.endpoints:
                reader.entry(section, index, record)
    return reader.problems


def read_folder(listing: Listing, files: FileReader, registry: Registry) -> Reading:
    """Reads all listed files.

    :param listing: the files.
    :param files: reads them.
    :param registry: the declared types.
    """
    gatherer = _Gatherer(files)
    gatherer.reading.problems += listing.problems
    gatherer.reading.partial = bool(listing.problems)
    for section, file in listing.lists.items():
        gatherer.listed(section, file)
    for section, branch in listing.branches.items():
        if section in registry.endpoints and registry.endpoints[section].tree:
            gatherer.tree(section, branch)
        else:
            gatherer.heap(section, branch)
    return gatherer.reading


class _Gatherer:
    def __init__(self, files: FileReader) -> None:
        self._files = files
        self._listed_pages: dict[tuple[int | None, str], Any] = {}
        self.reading = Reading()

    def listed(self, section: str, file: File) -> None:
        """Reads a file with a list of records."""
        try:
            records = self._files.json(file)
        except Unreadable as error:
            self._unreadable(file, error)
            return
        if not isinstance(records, list):
            self._broken(file, must_be_list(section), 1)
            return
        self.reading.content[section] += records
        self.reading.origins[section] += [Origin(file, (n,)) for n in range(len(records))]

    def heap(self, section: str, branch: Branch) -> None:
        """Reads a folder of records whose locations have no meaning."""
        self._refuse_lone_bodies(branch)
        for inner in branch.walk():
            for name in inner.names:
                if name in inner.records:
                    self._record(section, inner, name, {})

    def tree(self, section: str, branch: Branch) -> None:
        """Reads a folder that mirrors the tree of pages."""
        self._refuse_lone_bodies(branch)
        if "index" in branch.records:
            self._broken(
                branch.records["index"], "has no page's folder around it; name it by its slug"
            )
        self._listed_pages = _by_place(self.reading.content[section])
        self._pages(section, branch, {"parent": None})

    def _pages(self, section: str, branch: Branch, said: Said) -> None:
        """Reads the pages of a folder.

        :param said: their parent, if it is known.
        """
        for name in branch.names:
            below = branch.below.get(name)
            page = self._page(section, branch, name, said)
            if below is not None:
                # Without the page the parent of those below it is unknown.
                self.reading.partial |= not page and any(below.files)
                self._pages(section, below, page)

    def _page(self, section: str, branch: Branch, name: str, said: Said) -> Said:
        """Reads the page of a file, a folder or both; returns the fields for pages below it."""
        below = branch.below.get(name)
        own = {"slug": slug_of(name), **said}
        # In its own folder, an index is the page that was read one folder above.
        file = branch.records.get(name) if name != "index" else None
        index = below.records.get("index") if below is not None else None
        if file is not None and index is not None:
            self._broken(index, f"is the same page as {printable(file.name)}; keep one of them")
        if file is not None:
            return _as_parent(self._record(section, branch, name, own))
        if below is not None and index is not None:
            return _as_parent(self._record(section, below, "index", own))
        return self._listed_parent(below, own) if below is not None else {}

    def _listed_parent(self, branch: Branch, own: Said) -> Said:
        """The fields for pages in a folder whose own page is in the list of pages."""
        if "parent" not in own or not any(branch.files):
            return {}
        page = self._listed_pages.get((own["parent"], own["slug"]))
        if page is None:
            name = printable(branch.name)
            message = f"there is no page for it, as {name}.json or {name}/index.json"
            self.reading.problems.append(Problem("", "", message, file=name))
        return _as_parent(page)

    def _record(self, section: str, branch: Branch, name: str, said: Said) -> Any:
        """Reads a file with one record; returns the record, or None."""
        file = branch.records[name]
        try:
            record = self._files.json(file)
        except Unreadable as error:
            self._unreadable(file, error)
            return None
        if not isinstance(record, dict):
            self._broken(file, f"must be one record; a list of them is {section}.json", 1)
            return None
        place = Place(section, len(self.reading.content[section]), _name(section, record))
        if "parent" in said and record.get("parent", said["parent"]) != said["parent"]:
            self._note(place, "parent", f"must be {_shown_id(said)}, which its folder belongs to")
        body = self._body(place, branch, name, record)
        self.reading.content[section].append({**said, **body, **record})
        found = Origin(file, (), branch.bodies[name][0] if body else None)
        self.reading.origins[section].append(found)
        return record

    def _body(
        self, place: Place, branch: Branch, name: str, record: Mapping[str, Any]
    ) -> dict[str, str]:
        """The body in a file beside the record, if there is one."""
        if name not in branch.bodies:
            return {}
        first, *others = branch.bodies[name]
        for other in others:
            self._broken(other, f"is the same body as {printable(first.name)}; keep one of them")
        if "body" in record:
            self._note(place, "body", f"stands in {printable(first.name)} as well; keep one")
            return {}
        try:
            return {"body": self._files.body(first)}
        except Unreadable as error:
            self._unreadable(first, error)
            return {}

    def _refuse_lone_bodies(self, branch: Branch) -> None:
        for inner in branch.walk():
            for name in inner.bodies.keys() - inner.records.keys():
                for file in inner.bodies[name]:
                    self._broken(file, f"has no record beside it, {printable(name)}.json")

    def _note(self, place: Place, key: str, message: str) -> None:
        self.reading.noted.append(place.problem(key, message))

    def _unreadable(self, file: File, error: Unreadable) -> None:
        for fault in error.faults:
            self._broken(file, fault.message, fault.line)

    def _broken(self, file: File, message: str, line: int = 0) -> None:
        self.reading.problems.append(Problem("", "", message, file=_shown(file, line)))
        self.reading.partial = True


def _as_parent(page: Any) -> Said:
    """The fields that a page's folder determines for the pages in it."""
    identity = page.get("id") if isinstance(page, dict) else None
    return {"parent": identity} if type(identity) is int else {}


def _shown_id(said: Said) -> str:
    return "null" if said["parent"] is None else str(said["parent"])


def _by_place(pages: Iterable[Any]) -> dict[tuple[int | None, str], Any]:
    """Pages by parent and slug."""
    found = {}
    for page in pages:
        if isinstance(page, dict):
            parent, slug = page.get("parent"), page.get("slug")
            if isinstance(parent, int | None) and isinstance(slug, str):
                found[parent, slug] = page
    return found
