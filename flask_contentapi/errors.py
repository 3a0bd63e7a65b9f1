"""The errors of the package, one root for each audience.

    ContentAPIError
     ├── DeclarationError       a type is declared wrongly (the site's developer, at start-up)
     ├── ConfigurationError     a setting cannot be used (whoever runs the site, at start-up)
     ├── ContentError           records that cannot be loaded (whoever writes the content)
     └── BackendUnavailable     the storage does not answer now (answered with 503)
    BadRequest, NotFound        what a client sent (answered with 400 and 404)

The errors of the last line are Werkzeug's own, so that a site's views can raise and catch them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import click
from werkzeug.exceptions import BadRequest, NotFound

__all__ = [
    "BackendUnavailable",
    "BadRequest",
    "ConfigurationError",
    "ContentAPIError",
    "ContentError",
    "DeclarationError",
    "NotFound",
    "Problem",
]


class ContentAPIError(click.ClickException):
    """Root of the errors that are not a client's doing; commands show them as a sentence."""


class DeclarationError(ContentAPIError):
    """A declaration is wrong; the message names class and attribute."""


class ConfigurationError(ContentAPIError):
    """A setting cannot be used; the message names it and what it may be."""


class BackendUnavailable(ContentAPIError):
    """The storage cannot be reached now; the request is answered with 503 and may be repeated.

    :param message: a sentence for the log; clients do not see it.
    :param retry_after: seconds after which trying again makes sense.
    """

    def __init__(self, message: str, retry_after: int = 5) -> None:
        super().__init__(message)
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with content.

    :param where: the record, e.g. ``pages 12`` or ``sites example.org:80``, or "".
    :param field: the record's key, or "" where the whole record is meant.
    :param message: what is wrong and what would be right.
    :param section: the list of records it stands in, as ``pages``.
    :param index: its place in that list from 0 on, or -1.
    :param file: the file and, where known, the line it stands in, or "".
    :param path: the way to it inside the record, as ``("authors", 0, "name")``.
    """

    where: str
    field: str
    message: str
    section: str = ""
    index: int = -1
    file: str = ""
    path: tuple[str | int, ...] = ()

    def __str__(self) -> str:
        place = ", ".join(filter(None, (self.where, self.field)))
        return ": ".join(filter(None, (self.file, place, self.message)))


class ContentError(ContentAPIError):
    """Records that cannot be loaded, with all their problems at once; nothing was changed."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        shown = [str(problem) for problem in self.problems[:20]]
        if len(self.problems) > len(shown):
            shown.append(f"... and {len(self.problems) - len(shown)} more")
        super().__init__("\n".join(shown))
