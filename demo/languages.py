"""The languages of the site: their addresses, dates and words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from flask import request

from flask_contentapi import PageURLs
from flask_contentapi.sites import Site

__all__ = ["ENGLISH", "LANGUAGES", "Language", "LanguageInPath"]


@dataclass(frozen=True)
class Language:
    """One language.

    :param code: the code, as in the content's ``locale``.
    :param name: its name in the language itself.
    :param prefix: the start of the addresses of its pages.
    :param date: the format of dates.
    :param months: the names of the months.
    :param words: the words in templates, by their English equivalents.
    """

    code: str
    name: str
    prefix: str
    date: str
    months: list[str]
    words: Mapping[str, str] = field(default_factory=dict)

    def say(self, english: str) -> str:
        """Translates words of a template into this language."""
        return self.words.get(english, english)

    def write_date(self, value: str | None) -> str:
        """Formats a date of an answer, ``2026-10-03``, for readers; "" if there is none."""
        if value is None:
            return ""
        day = date.fromisoformat(value)
        return self.date.format(day=day.day, month=self.months[day.month - 1], year=day.year)


class LanguageInPath(PageURLs):
    """English pages are at ``/...``, German ones at ``/de/...``.

    A demo may run on any host and port, so addresses follow the request instead of the ``hostname``
    in ``sites.json``.
    """

    def build(self, site: Site, locale: str | None, path: str) -> str:
        return request.url_root.rstrip("/") + LANGUAGES[locale or "en"].prefix + path

    def resolve(self, site: Site, locale: str | None, html_path: str) -> tuple[str, str]:
        first, _, rest = html_path.strip("/").partition("/")
        if first in LANGUAGES:
            return first, rest
        return locale or "en", html_path


ENGLISH = Language(
    code="en",
    name="English",
    prefix="",
    date="{day} {month} {year}",
    months=[
        *("January", "February", "March", "April", "May", "June"),
        *("July", "August", "September", "October", "November", "December"),
    ],
)

GERMAN = Language(
    code="de",
    name="Deutsch",
    prefix="/de",
    date="{day}. {month} {year}",
    months=[
        *("Januar", "Februar", "März", "April", "Mai", "Juni"),
        *("Juli", "August", "September", "Oktober", "November", "Dezember"),
    ],
    words=json.loads((Path(__file__).parent / "words" / "de.json").read_text("utf-8")),
)

LANGUAGES = {language.code: language for language in (ENGLISH, GERMAN)}
