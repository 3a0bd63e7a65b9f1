"""Reads single files; unchanged files are not read twice."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from flask_contentapi.files import Fault, Unreadable, decode, markdown_parser, parse_json


class File(NamedTuple):
    """A file as it was found.

    :param path: its path.
    :param name: its path inside the folder, with slashes, for messages.
    :param signature: differs after a change: its times, its size and its inode. If the next change
        might not show in these, the present moment as well, so that it differs each time.
    """

    path: str
    name: str
    signature: tuple[int, ...]


def signature_of(status: os.stat_result) -> tuple[int, ...]:
    """The signature of a file, which differs after a change."""
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


class CachedFile(NamedTuple):
    """The content read from a file.

    :param file: the file as it was then.
    :param digest: a digest of its text.
    :param value: the parsed text.
    """

    file: File
    digest: bytes
    value: Any


class FileReader:
    """Reads files.

    :param before: :attr:`cached` of the previous reader.
    :ivar cached: what was read, by path.
    """

    def __init__(self, before: Mapping[str, CachedFile] | None = None) -> None:
        self._before = before or {}
        self.cached: dict[str, CachedFile] = {}

    def json(self, file: File) -> Any:
        """The value in a JSON file.

        :raises Unreadable: if it cannot be read.
        """
        return self._read(file, parse_json)

    def body(self, file: File) -> str:
        """The HTML in an HTML or Markdown file, depending on its extension.

        :raises Unreadable: if it cannot be read, or turned into HTML.
        """
        html: str = self._read(file, _markdown if file.name.endswith(".md") else _html)
        return html

    @property
    def is_unchanged(self) -> bool:
        """Whether everything read is what the previous reader has read."""
        before = self._before
        return self.cached.keys() == before.keys() and all(
            found.digest == before[path].digest for path, found in self.cached.items()
        )

    def _read(self, file: File, parse: Callable[[str], Any]) -> Any:
        known = self._before.get(file.path)
        if known is not None and known.file == file:
            self.cached[file.path] = known
            return known.value
        text = read_text(file)
        digest = blake2b(text.encode(), digest_size=16).digest()
        if known is None or known.digest != digest:
            known = CachedFile(file, digest, parse(text))
        self.cached[file.path] = known._replace(file=file)
        return known.value


def read_text(file: File) -> str:
    """The text in a file.

    :raises Unreadable: if it cannot be read.
    """
    try:
        return decode(Path(file.path).read_bytes())
    except OSError as error:
        raise Unreadable(Fault(0, f"cannot be read: {error.strerror}")) from None


def _html(text: str) -> str:
    """The HTML of a body, without the file's last line break."""
    return text.replace("\r\n", "\n").removesuffix("\n")


#: The parser, which takes a while to make.
parser = cache(markdown_parser)


def _markdown(text: str) -> str:
    return _html(parser().render(text))
