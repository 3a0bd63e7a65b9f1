"""Reads files into content records, and finds the file and line of a problem in a record."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

from flask_contentapi.content import Library, not_a_list_message, read_library
from flask_contentapi.errors import ContentError, Problem
from flask_contentapi.files import Lines, Unreadable, in_line
from flask_contentapi.records import Place, RecordReader
from flask_contentapi.registry import Registry
from flask_contentapi_jsonfiles.files import File, FileReader, read_text
from flask_contentapi_jsonfiles.folder import Listing, RecordFolder, printable, slug_of

#: The fields that the location of a record determines, with their values.
Implied = Mapping[str, Any]


class RecordOrigin(NamedTuple):
    """The origin of a record.

    :param file: its file.
    :param path: the path to it inside the file: its index in a list, or nothing.
    :param body: the file with its body, or None.
    """

    file: File
    path: tuple[int, ...] = ()
    body: File | None = None


@dataclass
class Reading:
    """The content of the files.

    :param content: the records by section.
    :param origins: the origin of each record.
    :param problems: the problems of files.
    :param record_problems: the problems of records with regard to their files and folders.
    :param is_partial: whether records are missing, or their parents unknown, so that checking them
        against each other makes no sense.
    """

    content: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    origins: dict[str, list[RecordOrigin]] = field(default_factory=lambda: defaultdict(list))
    problems: list[Problem] = field(default_factory=list)
    record_problems: list[Problem] = field(default_factory=list)
    is_partial: bool = False

    def library(self, registry: Registry, *, logs: bool = True) -> Library:
        """The content, checked.

        :param logs: whether undeclared types are logged.
        :raises ContentError: with every problem, and the file and line of each.
        """
        noted = list(self.record_problems)
        if self.is_partial:
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
                file = _place_in(origin, problem.path, lines)
                message = problem.message
                if problem.other >= 0:
                    other = self.origins[problem.section][problem.other]
                    message = f"{message}: {_place_in(other, (), lines)}"
                where = _where(problem, origin)
                yield replace(problem, where=where, message=message, file=file, other=-1)

    def _origin(self, problem: Problem) -> RecordOrigin | None:
        origins = self.origins.get(problem.section, [])
        if 0 <= problem.index < len(origins):
            return origins[problem.index]
        return self._by_name.get(problem.where.partition(",")[0])

    @cached_property
    def _by_name(self) -> dict[str, RecordOrigin]:
        return {
            _name(section, record): origin
            for section, records in self.content.items()
            for record, origin in zip(records, self.origins[section], strict=True)
            if isinstance(record, dict)
        }


def _name(section: str, record: Mapping[str, Any]) -> str:
    return f"{section} {record['id']}" if "id" in record else ""


def _where(problem: Problem, origin: RecordOrigin) -> str:
    """The name of a record in messages; an index is left out if the file has only one record."""
    if origin.path:
        return problem.where
    return problem.where.removeprefix(f"{problem.section}[{problem.index}]").lstrip(", ")


def _place_in(origin: RecordOrigin, path: tuple[str | int, ...], lines: dict[str, Lines]) -> str:
    """The file and the line of what is at a path inside a record."""
    line = _lines(origin.file, lines).of((*origin.path, *path))
    return _file_and_line(origin.file, line)


def _file_and_line(file: File, line: int) -> str:
    return in_line(printable(file.name), line)


def _lines(file: File, known: dict[str, Lines]) -> Lines:
    if file.path not in known:
        try:
            known[file.path] = Lines(read_text(file))
        except Unreadable:  # it has been changed since
            known[file.path] = Lines("")
    return known[file.path]


def _check_each(content: Mapping[str, Iterable[Any]], registry: Registry) -> list[Problem]:
    reader = RecordReader(registry)
    for section, records in content.items():
        for index, record in enumerate(records):
            if section == "sites":
                reader.read_site(index, record)
            elif section == "collections":
                reader.read_collection(index, record)
            elif section in registry.endpoints:
                reader.read_entry(section, index, record)
    return reader.problems


def read_folder(listing: Listing, files: FileReader, registry: Registry) -> Reading:
    """Reads all listed files.

    :param listing: the files.
    :param files: reads them.
    :param registry: the declared types.
    """
    gatherer = _Gatherer(files)
    gatherer.reading.problems += listing.problems
    gatherer.reading.is_partial = bool(listing.problems)
    for section, file in listing.lists.items():
        gatherer.read_list(section, file)
    for section, folder in listing.folders.items():
        if section in registry.endpoints and registry.endpoints[section].tree:
            gatherer.read_page_tree(section, folder)
        else:
            gatherer.read_records(section, folder)
    return gatherer.reading


class _Gatherer:
    def __init__(self, files: FileReader) -> None:
        self._files = files
        self._listed_pages: dict[tuple[int | None, str], Any] = {}
        self.reading = Reading()

    def read_list(self, section: str, file: File) -> None:
        try:
            records = self._files.json(file)
        except Unreadable as error:
            self._note_unreadable(file, error)
            return
        if not isinstance(records, list):
            self._refuse(file, not_a_list_message(section), 1)
            return
        self.reading.content[section] += records
        self.reading.origins[section] += [RecordOrigin(file, (n,)) for n in range(len(records))]

    def read_records(self, section: str, folder: RecordFolder) -> None:
        """Reads a folder of records whose locations have no meaning."""
        self._refuse_lone_bodies(folder)
        for inner in folder.walk():
            for name in inner.names:
                if name in inner.records:
                    self._record(section, inner, name, {})

    def read_page_tree(self, section: str, folder: RecordFolder) -> None:
        """Reads a folder that mirrors the tree of pages."""
        self._refuse_lone_bodies(folder)
        if "index" in folder.records:
            self._refuse(
                folder.records["index"], "has no page's folder around it; name it by its slug"
            )
        self._listed_pages = _by_parent_and_slug(self.reading.content[section])
        self._pages(section, folder, {"parent": None})

    def _pages(self, section: str, folder: RecordFolder, implied: Implied) -> None:
        """Reads the pages of a folder.

        :param implied: their parent and its language, if they are known.
        """
        for name in folder.names:
            below = folder.subfolders.get(name)
            page = self._page(section, folder, name, implied)
            if below is not None:
                # Without the page the parent of those below it is unknown.
                self.reading.is_partial |= not page and any(below.files)
                self._pages(section, below, page)

    def _page(self, section: str, folder: RecordFolder, name: str, implied: Implied) -> Implied:
        """Reads the page of a file, a folder or both; returns the fields for pages below it."""
        below = folder.subfolders.get(name)
        own = {"slug": slug_of(name), **implied}
        # In its own folder, an index is the page that was read one folder above.
        file = folder.records.get(name) if name != "index" else None
        index = below.records.get("index") if below is not None else None
        if file is not None and index is not None:
            self._refuse(index, f"is the same page as {printable(file.name)}; keep one of them")
        if file is not None:
            return _implied_below(self._record(section, folder, name, own))
        if below is not None and index is not None:
            return _implied_below(self._record(section, below, "index", own))
        return self._listed_parent(below, own) if below is not None else {}

    def _listed_parent(self, folder: RecordFolder, own: Implied) -> Implied:
        """The fields for pages in a folder whose own page is in the list of pages."""
        if "parent" not in own or not any(folder.files):
            return {}
        page = self._listed_pages.get((own["parent"], own["slug"]))
        if page is None:
            name = printable(folder.name)
            message = f"there is no page for it, as {name}.json or {name}/index.json"
            self.reading.problems.append(Problem("", "", message, file=name))
        return _implied_below(page)

    def _record(self, section: str, folder: RecordFolder, name: str, implied: Implied) -> Any:
        """Reads a file with one record; returns it with what its place implies, or None."""
        file = folder.records[name]
        try:
            record = self._files.json(file)
        except Unreadable as error:
            self._note_unreadable(file, error)
            return None
        if not isinstance(record, dict):
            self._refuse(file, f"must be one record; a list of them is {section}.json", 1)
            return None
        place = Place(section, len(self.reading.content[section]), _name(section, record))
        if "parent" in implied and record.get("parent", implied["parent"]) != implied["parent"]:
            above = json.dumps(implied["parent"])
            self._note(place, "parent", f"must be {above}, which its folder belongs to")
        body = self._body(place, folder, name, record)
        whole = {**implied, **body, **record}
        self.reading.content[section].append(whole)
        found = RecordOrigin(file, (), folder.bodies[name][0] if body else None)
        self.reading.origins[section].append(found)
        return whole

    def _body(
        self, place: Place, folder: RecordFolder, name: str, record: Mapping[str, Any]
    ) -> dict[str, str]:
        if name not in folder.bodies:
            return {}
        first, *others = folder.bodies[name]
        for other in others:
            self._refuse(other, f"is the same body as {printable(first.name)}; keep one of them")
        if "body" in record:
            self._note(place, "body", f"stands in {printable(first.name)} as well; keep one")
            return {}
        try:
            return {"body": self._files.body(first)}
        except Unreadable as error:
            self._note_unreadable(first, error)
            return {}

    def _refuse_lone_bodies(self, folder: RecordFolder) -> None:
        for inner in folder.walk():
            for name in inner.bodies.keys() - inner.records.keys():
                for file in inner.bodies[name]:
                    self._refuse(file, f"has no record beside it, {printable(name)}.json")

    def _note(self, place: Place, key: str, message: str) -> None:
        self.reading.record_problems.append(place.problem(key, message))

    def _note_unreadable(self, file: File, error: Unreadable) -> None:
        for fault in error.faults:
            self._refuse(file, fault.message, fault.line)

    def _refuse(self, file: File, message: str, line: int = 0) -> None:
        self.reading.problems.append(Problem("", "", message, file=_file_and_line(file, line)))
        self.reading.is_partial = True


def _implied_below(page: Any) -> Implied:
    """The fields that a page's folder determines for the pages in it."""
    if not isinstance(page, dict) or type(page.get("id")) is not int:
        return {}
    language = {"locale": page["locale"]} if isinstance(page.get("locale"), str) else {}
    return {"parent": page["id"], **language}


def _by_parent_and_slug(pages: Iterable[Any]) -> dict[tuple[int | None, str], Any]:
    found = {}
    for page in pages:
        if isinstance(page, dict):
            parent, slug = page.get("parent"), page.get("slug")
            if isinstance(parent, int | None) and isinstance(slug, str):
                found[parent, slug] = page
    return found
