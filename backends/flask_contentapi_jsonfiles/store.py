"""Changes the folder atomically while other processes read it.

New content is written beside the old and committed in a single step, by renaming its folder to
``.pending``. Then its files are moved into place. Any process that finds the folder completes the
move, so a process that is stopped at any moment leaves either the old or the new content. The
stamp file tells processes when to read again, and whether they have read a mixture.
"""

from __future__ import annotations

import filecmp
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import uuid4

import orjson

from flask_contentapi_jsonfiles.files import File, signature_of

_LAYOUT = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
#: The file in the pending folder that lists files to delete.
_OBSOLETE = ".obsolete"
#: The stamp file.
_STAMP = ".reload"
#: After how long a folder of a load can only have been left, in s.
LEFT_AGE = 86_400


class Store:
    """Changes the folder.

    :param folder: the folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pending = folder / ".pending"
        self._stamp = os.path.join(folder, _STAMP)

    def stamp(self) -> tuple[int, ...] | None:
        """A value that differs after every :meth:`touch`."""
        try:
            return signature_of(os.stat(self._stamp))
        except OSError:
            return None

    def touch(self) -> None:
        """Tells all processes to read the folder again.

        :raises OSError: if the folder cannot be written.
        """
        # The growing size shows a change even on file systems with a coarse clock.
        with open(self._stamp, "ab") as stream:
            stream.write(b"\n")

    @property
    def is_settled(self) -> bool:
        """Whether no new content is waiting to be moved into place."""
        return not os.path.exists(self._pending)

    def replace(self, content: Mapping[str, Iterable[Any]], obsolete: Iterable[File]) -> None:
        """Replaces the whole content, or on an error nothing.

        :param content: the records of every section; each becomes a file.
        :param obsolete: files to delete with the old content.
        :raises OSError: if the folder cannot be written. If new content is waiting afterwards, it
            is complete, but could not be moved into place yet.
        """
        self._remove_left()
        beside = Path(tempfile.mkdtemp(prefix=".load-", dir=self._folder))
        try:
            for section, records in content.items():
                _write(beside / f"{section}.json", orjson.dumps(list(records), option=_LAYOUT))
            doomed = [[file.name, file.signature] for file in obsolete]
            _write(beside / _OBSOLETE, json.dumps(doomed).encode())
            # What follows the commit needs no room on the disk.
            size = os.path.getsize(self._stamp) if os.path.exists(self._stamp) else 0
            _write(beside / _STAMP, b"\n" * (size + 1))
            self._commit(beside)
        except BaseException:
            shutil.rmtree(beside, ignore_errors=True)
            raise
        self.settle()

    def _remove_left(self) -> None:
        """Removes what loads that were killed have left."""
        long_ago = time.time() - LEFT_AGE
        for path in self._folder.glob(".load-*"):
            with suppress(FileNotFoundError):
                if path.stat().st_mtime < long_ago:
                    shutil.rmtree(path, ignore_errors=True)

    def _commit(self, beside: Path) -> None:
        while True:
            self.settle()
            try:
                os.rename(beside, self._pending)
            except OSError:
                if self.is_settled:
                    raise
            else:
                return

    def settle(self) -> None:
        """Moves pending new content into place.

        Other processes may do the same at the same time; each file is moved by one of them.

        :raises OSError: if the folder cannot be written.
        """
        with suppress(FileNotFoundError):
            for name in os.listdir(self._pending):
                if name in (_OBSOLETE, _STAMP):
                    continue
                new, known = self._pending / name, self._folder / name
                if not (known.exists() and filecmp.cmp(new, known, shallow=False)):
                    os.replace(new, known)
            with suppress(FileNotFoundError):
                for name, signature in json.loads((self._pending / _OBSOLETE).read_bytes()):
                    self._delete(name, signature)
            # Last, so that it tells those who have read a mixture.
            with suppress(FileNotFoundError):
                os.replace(self._pending / _STAMP, self._stamp)
            done = self._folder / f".load-{uuid4().hex}"
            os.rename(self._pending, done)
            shutil.rmtree(done, ignore_errors=True)

    def _delete(self, name: str, signature: list[int]) -> None:
        """Deletes a file if it is unchanged, and the folders that become empty."""
        path = self._folder / name
        with suppress(FileNotFoundError):
            present = signature_of(os.stat(path))
            # That of a file that was new has the moment behind it.
            if [*present] == signature[: len(present)]:
                os.unlink(path)
        with suppress(OSError):  # something else is in it
            for inner in PurePosixPath(name).parents:
                if inner.name:
                    os.rmdir(self._folder / inner)


def _write(path: Path, data: bytes) -> None:
    with open(path, "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
