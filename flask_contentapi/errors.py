"""The errors of the package, one for each audience.

    ContentAPIError
     ├── DeclarationError       a type is declared wrongly (the site's developer, at start-up)
     ├── ConfigurationError     a setting cannot be used (the site's operator, at start-up)
     ├── ContentError           records cannot be loaded (the authors of the content)
     └── BackendUnavailable     the storage does not answer now (response 503)
    BadRequest, NotFound        a client's mistake (responses 400 and 404)

The errors in the last line are Werkzeug's own, so that a site's views can raise and catch them.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
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
    "remarks",
    "suggest",
]


class ContentAPIError(click.ClickException):
    """Base of all errors that clients do not cause; commands show them as a sentence."""


class DeclarationError(ContentAPIError):
    """A declaration is wrong; the message names the class and the attribute."""


class ConfigurationError(ContentAPIError):
    """A setting cannot be used; the message names it and what it may be."""


class BackendUnavailable(ContentAPIError):
    """The storage cannot be reached now; the response is a 503, and the client may retry.

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
    :param field: the record's key, or "" if the problem concerns the whole record.
    :param message: what is wrong and what would be right.
    :param section: the list of records that the record is in, as ``pages``.
    :param index: its index in that list, or -1.
    :param file: the file and, if known, the line of the problem, or "".
    :param path: the path to the problem inside the record, as ``("authors", 0, "name")``.
    :param other: the index of another record that has a part in it, or -1.
    """

    where: str
    field: str
    message: str
    section: str = ""
    index: int = -1
    file: str = ""
    path: tuple[str | int, ...] = ()
    other: int = -1

    def __str__(self) -> str:
        place = ", ".join(filter(None, (self.where, self.field)))
        other = "" if self.other < 0 else f"{self.section}[{self.other}]"
        return ": ".join(filter(None, (self.file, place, self.message, other)))


class ContentError(ContentAPIError):
    """Records cannot be loaded; has all their problems at once. Nothing was changed."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        shown = [str(problem) for problem in self.problems[:20]]
        if len(self.problems) > len(shown):
            shown.append(f"... and {len(self.problems) - len(shown)} more")
        super().__init__("\n".join(shown))


#: How many wrong names get a remark, as there can be thousands.
_REMARKED = 3


def remarks(wrong: Sequence[str], remark: Callable[[str], str]) -> str:
    """Remarks on wrong names. If there are several names, each remark follows its name.

    :param remark: returns sentences about a name, or "".
    """
    said = [(name, remark(name)) for name in wrong[:_REMARKED]]
    return "".join(f" {name}:{text}" if len(wrong) > 1 else text for name, text in said if text)


def suggest(wrong: str, known: Iterable[str], *, likeness: float = 0.65) -> str:
    """A sentence with names that are close to a wrong one, or "".

    :param likeness: the required similarity; 1 means equal.
    """
    close = difflib.get_close_matches(wrong, list(known), n=3, cutoff=likeness)
    return f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
