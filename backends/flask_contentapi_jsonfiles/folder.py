"""Lists the files in the folder, and interprets their names.

Names that start with a dot or an underscore are ignored, and so is anything but JSON files, bodies
and folders of these. Symbolic links are followed inside the folder. Links that lead out of it are
refused, so that the API cannot expose other files.
"""

from __future__ import annotations

import os
import re
import stat
import time
import unicodedata
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from operator import attrgetter

from flask_contentapi.errors import Problem, suggest
from flask_contentapi_jsonfiles.files import File, signature_of

_BODY = re.compile(r"(.+)\.body\.(html|md)", re.DOTALL)
_RECORD = re.compile(r"(.+)\.json", re.DOTALL)
#: How names would have to end of files that are probably meant to be read, by how they end.
_MEANT = {
    "json": ".json",
    **dict.fromkeys(("htm", "html"), ".body.html"),
    **dict.fromkeys(("markdown", "md", "txt"), ".body.md"),
}
_NUMBERED = re.compile(r"([0-9]+)_(.+)", re.DOTALL)
#: The coarsest clock resolution of file systems, in nanoseconds.
_TICK = 2_000_000_000


def slug_of(name: str) -> str:
    """The slug in the name of a file or folder, without the number for sorting."""
    numbered = _NUMBERED.fullmatch(name)
    # Some file systems decompose accented letters.
    return unicodedata.normalize("NFC", numbered[2] if numbered else name)


def printable(name: str) -> str:
    """The name of a file in a printable form, even if it is not UTF-8."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _sort_key(name: str) -> tuple[float, str]:
    """The sort key that puts numbered names first, by number."""
    numbered = _NUMBERED.fullmatch(name)
    return (int(numbered[1]), numbered[2]) if numbered else (float("inf"), name)


@dataclass(slots=True)
class RecordFolder:
    """A folder with records.

    :param name: its path inside the content folder, with slashes.
    :param records: its JSON files, by name without extension.
    :param bodies: the files with bodies, by the name of the record.
    :param subfolders: its subfolders, by name.
    """

    name: str
    records: dict[str, File] = field(default_factory=dict)
    bodies: dict[str, list[File]] = field(default_factory=dict)
    subfolders: dict[str, RecordFolder] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """All names in it, in order."""
        return sorted(self.records.keys() | self.subfolders.keys(), key=_sort_key)

    @property
    def files(self) -> Iterator[File]:
        """All files in it, at any depth."""
        for folder in self.walk():
            yield from folder.records.values()
            for bodies in folder.bodies.values():
                yield from bodies

    def walk(self) -> Iterator[RecordFolder]:
        """The folder itself and all folders below it."""
        yield self
        for folder in self.subfolders.values():
            yield from folder.walk()


@dataclass(slots=True)
class Listing:
    """The relevant files in the folder.

    :param lists: the files with a list of records, by section.
    :param folders: the folders with one record per file, by section.
    :param problems: the problems with what is in the folder.
    :param unread: files that are probably meant to be read, with the names that they would need.
    """

    lists: dict[str, File] = field(default_factory=dict)
    folders: dict[str, RecordFolder] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    unread: dict[str, str] = field(default_factory=dict)

    @property
    def single_files(self) -> list[File]:
        """The files with single records or bodies."""
        return [file for folder in self.folders.values() for file in folder.files]

    @property
    def fingerprint(self) -> object:
        """A value that differs after every change."""
        files = (*self.lists.values(), *self.single_files)
        return [(file.path, file.signature) for file in files], self.problems


class Lister:
    """Lists the relevant files in a folder.

    :param root: the folder.
    :param sections: the names of the sections.
    """

    def __init__(self, root: str, sections: Collection[str]) -> None:
        self._root = os.path.realpath(root)
        self._shown_root = root
        self._sections = sections
        # Languages are no records, so they have no files of their own.
        self._folders = [section for section in sections if section != "locales"]
        self._listing = Listing()

    def run(self) -> Listing:
        """Looks into the folder."""
        for entry in self._entries(self._root, ""):
            if _is_folder(entry):
                self._top_folder(entry)
            elif match := _RECORD.fullmatch(entry.name):
                if match[1] not in self._sections:
                    self._note_unknown_section(entry.name, match[1], self._sections)
                elif file := self._file(entry, entry.name):
                    self._listing.lists[match[1]] = file
            elif match := _BODY.fullmatch(entry.name):
                self._note(entry.name, "belongs to no record")
        return self._listing

    def _top_folder(self, entry: os.DirEntry[str]) -> None:
        if entry.name in self._folders:
            if folder := self._folder(entry, entry.name, (self._root,)):
                self._listing.folders[entry.name] = folder
        elif not entry.is_symlink() and _has_records(entry.path):
            self._note_unknown_section(entry.name, entry.name, self._folders)

    def _note_unknown_section(self, name: str, section: str, known: Collection[str]) -> None:
        hint = suggest(section, known) or f" There are {', '.join(known)}."
        self._note(name, f"there is no section '{printable(section)}'.{hint}")

    def _note(self, name: str, message: str) -> None:
        self._listing.problems.append(Problem("", "", message, file=printable(name)))

    def _entries(self, path: str, name: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(path) as entries:
                shown = [entry for entry in entries if not entry.name.startswith((".", "_"))]
        except OSError as error:
            self._note(name or self._shown_root, f"cannot be read: {error.strerror}")
            return []
        return sorted(shown, key=attrgetter("name"))

    def _folder(
        self, entry: os.DirEntry[str], name: str, above: tuple[str, ...]
    ) -> RecordFolder | None:
        """The folder of an entry; ``above`` are the real paths of the folders around it."""
        real = os.path.join(above[-1], entry.name)
        if entry.is_symlink():
            real = os.path.realpath(entry.path)
        if not self._is_inside(real):
            self._note(name, "leads out of the folder")
            return None
        if real in above:
            self._note(name, "leads back to a folder that it lies in")
            return None
        folder = RecordFolder(name)
        for inner in self._entries(entry.path, name):
            self._add_entry(folder, inner, (*above, real))
        return folder

    def _add_entry(
        self, folder: RecordFolder, entry: os.DirEntry[str], above: tuple[str, ...]
    ) -> None:
        name = f"{folder.name}/{entry.name}"
        if _is_folder(entry):
            if subfolder := self._folder(entry, name, above):
                folder.subfolders[entry.name] = subfolder
        elif match := _RECORD.fullmatch(entry.name):
            if file := self._file(entry, name):
                folder.records[match[1]] = file
        elif match := _BODY.fullmatch(entry.name):
            if file := self._file(entry, name):
                folder.bodies.setdefault(match[1], []).append(file)
        elif ending := _MEANT.get(entry.name.rpartition(".")[2].lower()):
            self._listing.unread[name] = entry.name.partition(".")[0] + ending

    def _file(self, entry: os.DirEntry[str], name: str) -> File | None:
        if entry.is_symlink() and not self._is_inside(os.path.realpath(entry.path)):
            self._note(name, "leads out of the folder")
            return None
        try:
            status = entry.stat()
        except OSError as error:
            self._note(name, f"cannot be read: {error.strerror}")
            return None
        if not stat.S_ISREG(status.st_mode):
            self._note(name, "is no file")
            return None
        now, signature = time.time_ns(), signature_of(status)
        is_recent = abs(now - status.st_mtime_ns) <= _TICK
        return File(entry.path, name, (*signature, now) if is_recent else signature)

    def _is_inside(self, real: str) -> bool:
        return real == self._root or real.startswith(os.path.join(self._root, ""))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a circular link
        return False


def _has_records(folder: str) -> bool:
    """Whether a folder has a JSON file or a body, so that it is probably meant as content."""
    for _, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        shown = (name for name in files if not name.startswith((".", "_")))
        if any(_RECORD.fullmatch(name) or _BODY.fullmatch(name) for name in shown):
            return True
    return False
