"""Compares the answers of a mirror with those of its original."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from heapq import nsmallest
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import orjson
from flask import Flask
from werkzeug.test import Client

from flask_contentapi.declarations import ObjectType
from flask_contentapi.importers.inference import is_address, reference_in
from flask_contentapi.importers.records import local_file
from flask_contentapi.importers.source import Source
from flask_contentapi.logs import watched
from flask_contentapi.selection import WAYS
from flask_contentapi.sites import is_absolute
from flask_contentapi.state import State

Record = dict[str, Any]
#: How many objects of an endpoint questions are drawn from.
_DRAWN = 1000
_SHOWN = 20
#: How many objects a list has at most whose fields are compared, as they are dear to the original.
_MOST = 5
_HOST = re.compile(r"https?://[^/\s\"'<>)]+")
#: Keys that answers have by the contract, whether or not those of the original do.
_OURS = ("expires_at", "is_permanent", "width", "height", "download_url", "renditions")
_ADDRESSES = ("detail_url", "html_url", "location")
#: The parameters of questions that are refused; without any it is one for a missing object.
_WRONG: tuple[Record, ...] = (
    *({}, {"no_such_parameter": 1}, {"fields": "no_such_field"}, {"order": "no_such_field"}),
    *({"limit": "many"}, {"offset": -1}),
)


class Question(NamedTuple):
    """A question for both.

    :param path: below the address of the API.
    :param parameters: its query.
    :param compared: the field that it filters or orders by, or "".
    """

    path: str
    parameters: Mapping[str, Any]
    compared: str = ""


class Drawn(NamedTuple):
    """What a question is about: an object, with its endpoint and type.

    :param path: for a page of a site, where it is below the home page.
    :param asked: the ``site`` to ask.
    :param typed: that and the ``type`` to ask lists for.
    """

    section: str
    record: Record
    path: str | None
    declared: ObjectType
    asked: Record
    typed: Record


class Difference(NamedTuple):
    """Something that the answers to a question have not in common.

    :param question: the address of the question.
    :param place: where it is in the answer.
    :param original: what the original has.
    :param mirror: what the mirror has.
    :param cause: why; "" if there is no reason that would be known.
    """

    question: str
    place: str
    original: Any
    mirror: Any
    cause: str


class Verification:
    """A comparison.

    :param source: the original.
    :param app: the site of the mirror.
    :param state: the instance whose answers are compared.
    :ivar asked: how many questions were asked.
    :ivar differences: what was found.
    """

    def __init__(self, source: Source, app: Flask, state: State) -> None:
        self._source, self._prefix = source, state.settings.url_prefix
        self._backend, self._registry = state.backend, state.registry
        with self._backend.reader() as reader:
            sites = reader.sites
            self._locales = reader.locales
            self._site_of: dict[int | None, str] = {
                home.page: "" if site.is_default else sites.name(site)
                for site in sites
                for home in site.homes
            }
        self._base = next((s.address for s in sites if s.is_default), "") or "http://localhost"
        self._client = Client(app)
        self._records: dict[str, list[Record]] = {}
        #: The parents and the slugs of pages, and whether they are shown.
        self._places: dict[int, tuple[int | None, str, bool]] = {}
        self._known: dict[tuple[str, int], bool] = {}
        self.asked = 0
        self.differences: list[Difference] = []

    @property
    def unexplained(self) -> list[Difference]:
        """The differences without a cause."""
        return [found for found in self.differences if not found.cause]

    def report(self) -> Iterator[str]:
        """What was found, in lines."""
        causes = Counter(found.cause for found in self.differences if found.cause)
        yield from (f"{number} x {cause}" for cause, number in causes.most_common())
        for found in self.unexplained[:_SHOWN]:
            yield f"{found.question}\n  {found.place}: {found.original!r}, here {found.mirror!r}"
        yield f"{self.asked} answers compared, {len(self.unexplained)} unexplained differences."

    def run(self, number: int, seed: int) -> None:
        """Compares the answers to questions drawn from the content."""
        chance = random.Random(seed)  # noqa: S311 - the same questions for the same seed
        for section, entries in groupby(self._backend.dump(), itemgetter(0)):
            if section in self._registry.endpoints:
                shown = self._shown(entries)
                self._records[section] = nsmallest(_DRAWN, shown, lambda _: chance.random())
        for _ in watched(range(number), "comparing answers", number):
            self._compare(self._question(chance))
            self.asked += 1

    def _shown(self, entries: Iterable[tuple[str, Record]]) -> Iterator[Record]:
        """The objects that are shown; notes the places of all pages."""
        for section, record in entries:
            is_shown = record.get("live") is not False
            if section == "pages":
                self._places[record["id"]] = record.get("parent"), record["slug"], is_shown
            if is_shown:
                yield record

    # Questions.

    def _question(self, chance: random.Random) -> Question:
        sections = [section for section, drawn in self._records.items() if drawn]
        weights = [6 if section == "pages" else 1 for section in sections]
        section = chance.choices(sections, weights)[0]
        record = chance.choice(self._records[section])
        declared = self._registry.endpoints[section].type_of(record["type"])
        site, path = self._way(record["id"]) if section == "pages" else ("", None)
        asked = {"site": site} if site else {}
        typed = {**asked, "type": declared.label} if section == "pages" else asked
        kinds = [self._detail, self._detail, self._list, self._list, self._filter, self._order]
        kinds += [self._tree, self._find] if section == "pages" else [self._missing]
        return chance.choice(kinds)(chance, Drawn(section, record, path, declared, asked, typed))

    def _way(self, identity: int | None) -> tuple[str, str | None]:
        """The ``site`` of a page, and its path below the home page; None if it is of no site."""
        path = "/"
        while identity not in self._site_of:
            if identity is None:
                return "", None
            identity, slug, _ = self._places[identity]
            path = f"/{slug}{path}"
        return self._site_of[identity], path

    def _fields(self, chance: random.Random, declared: ObjectType) -> Record:
        names = [n for n in declared.exports if n not in WAYS and n not in ("parent", *_OURS)]
        some = chance.sample(names, min(len(names), chance.randint(1, 3)))
        nested = [
            name
            for name, export in declared.exports.items()
            if export.nested is not None and export.column is not None and export.column.target
        ]
        choices = ["", "*", ",".join(some), ",".join(["_", *some]), f"*,-{chance.choice(names)}"]
        choices += [f"{name}(_,id,detail_url)" for name in nested]
        choices += [f"*,{name}(*)" for name in nested]
        return {"fields": text} if (text := chance.choice(choices)) else {}

    def _detail(self, chance: random.Random, drawn: Drawn) -> Question:
        shown = self._fields(chance, drawn.declared)
        return Question(f"{drawn.section}/{drawn.record['id']}/", {**drawn.asked, **shown})

    def _list(self, chance: random.Random, drawn: Drawn) -> Question:
        part = {"limit": chance.randint(0, _MOST), "offset": chance.choice([0, 0, 3, 20, 10_000])}
        asked, shown = drawn.typed, self._fields(chance, drawn.declared)
        if drawn.section == "pages" and chance.random() < 0.3:
            asked, shown = drawn.asked, chance.choice([{}, {"fields": "*"}])
        return Question(f"{drawn.section}/", {**asked, **part, **shown})

    def _filter(self, chance: random.Random, drawn: Drawn) -> Question:
        section, record, _, declared, _, typed = drawn
        names = [
            name
            for name, column in declared.filterable.items()
            if record.get(column.name) not in (None, "", [])
            and name not in ("locale", "expires_at")
        ]
        name = chance.choice(names) if names else "id"
        column = declared.filterable.get(name)
        value = record.get(column.name if column else name)
        if isinstance(value, list):
            value = chance.choice(value)
        text = str(value).lower() if isinstance(value, bool) else value
        return Question(f"{section}/", {**typed, name: text, "fields": "*", "limit": _MOST}, name)

    def _order(self, chance: random.Random, drawn: Drawn) -> Question:
        left_out = ("expires_at", "locale", "alias_of")
        name = chance.choice([n for n in drawn.declared.orderable if n not in left_out])
        order = chance.choice(["", "-"]) + name
        part = {"limit": 20, "order": order, "fields": f"_,id,{name}" if name != "id" else "_,id"}
        return Question(f"{drawn.section}/", {**drawn.typed, **part}, name)

    def _tree(self, chance: random.Random, drawn: Drawn) -> Question:
        record, asked = drawn.record, drawn.asked
        parent = record.get("parent")
        is_shown = parent is not None and self._places[parent][2]
        above = parent if is_shown else record["id"]
        choices: list[Record] = [
            {"child_of": above},
            {"descendant_of": above},
            {"ancestor_of": record["id"]},
            {"slug": record["slug"]},
        ]
        # To Wagtail root is the home page of the host that is asked, whatever site is named.
        if not asked:
            menu = chance.choice(["true", "false"])
            choices.append({"child_of": "root", "show_in_menus": menu})
        if self._locales and record.get("translation_key"):
            choices += [{"translation_of": record["id"]}] * 2
            choices += [{"locale": chance.choice(self._locales), "child_of": above}]
        return Question("pages/", {**asked, **chance.choice(choices)})

    def _find(self, chance: random.Random, drawn: Drawn) -> Question:
        record, asked = drawn.record, drawn.asked
        wrong = chance.random() < 0.2
        is_main = not self._locales or record.get("locale") == self._locales[0]
        if drawn.path is None or asked or not is_main:
            return self._missing(chance, drawn)
        path = drawn.path + "no-such-page/" * wrong
        return Question("pages/find/", {"html_path": path})

    def _missing(self, chance: random.Random, drawn: Drawn) -> Question:
        wrong = chance.choice(_WRONG)
        missing = "" if wrong else f"{1 << 30}/"
        return Question(f"{drawn.section}/{missing}", wrong)

    # Answers.

    def _compare(self, question: Question) -> None:
        path, parameters = question.path, question.parameters
        status, location, body = self._source.ask_plainly(path, **parameters)
        response = self._client.get(
            f"{self._prefix}/{path}", query_string=dict(parameters), base_url=self._base
        )
        found: list[tuple[str, Any, Any, str]] = []
        if status != response.status_code:
            cause = ""
            if question.compared and (status, response.status_code) == (400, 200):
                cause = f"the original neither filters nor orders by {question.compared}"
            elif status == 200 and self._is_ignored(question, body):
                cause = f"the original ignores what {path} does not know"
            found = [("status", status, response.status_code, cause)]
        elif status == 302:
            here = response.headers["Location"]
            if not self._is_alike(location, here, "detail_url"):
                found = [("Location", location, here, "")]
        elif status == 200:
            given, here = orjson.loads(body), orjson.loads(response.data)
            found = [*self._differences(given, here, "")]
            if any(not cause for *_, cause in found):
                cause = ""
                if self._is_ignored(question, body):
                    cause = f"the original ignores filters and orders of {path}"
                elif "order" in parameters:
                    cause = _order_cause(given, here, question.compared)
                found = [(place, a, b, why or cause) for place, a, b, why in found]
        address = self._source.address(path, parameters)
        self.differences += [Difference(address, *one) for one in found]

    def _is_ignored(self, question: Question, body: bytes) -> bool:
        left = {"limit", "fields", "site", "type"} - {question.compared}
        plain = {k: v for k, v in question.parameters.items() if k in left}
        return (
            plain != question.parameters
            and body == (self._source.ask_plainly(question.path, **plain)[2])
        )

    def _differences(self, own: Any, other: Any, key: str) -> Iterator[tuple[str, Any, Any, str]]:
        if isinstance(own, dict) and isinstance(other, dict):
            for name in own.keys() | other.keys():
                place = f"{key}.{name}" if key else name
                if name not in own:
                    cause = "a key that the contract adds" if name in _OURS else ""
                    yield place, None, other[name], cause
                elif name not in other:
                    is_rendition = key.rpartition(".")[2] == "renditions"
                    cause = "the specs of renditions cannot be seen" if is_rendition else ""
                    yield place, own[name], None, cause
                else:
                    yield from self._differences(own[name], other[name], place)
        elif isinstance(own, list) and isinstance(other, list):
            shown = [entry for entry in own if not self._is_hidden(entry)]
            if len(shown) < len(own):
                yield key, len(own), len(other), "what is hidden is embedded in the original"
            if len(shown) != len(other):
                yield key, own, other, ""
            else:
                for number, pair in enumerate(zip(shown, other, strict=True)):
                    yield from self._differences(*pair, f"{key}[{number}]")
        elif own != other or isinstance(own, bool) is not isinstance(other, bool):
            if other is None and self._is_hidden(own):
                yield key, own, other, "what is hidden is embedded in the original"
            elif not self._is_alike(own, other, key.rpartition(".")[2]):
                yield key, own, other, ""
            elif key.endswith("location") and own.startswith("/") and is_absolute(other):
                yield key, own, other, "the location of a redirect to a page is an address here"

    def _is_hidden(self, value: Any) -> bool:
        """Whether a value embeds an object that the original does not show by itself."""
        reference = reference_in(value)
        if reference is None:
            return False
        key = reference.endpoint, reference.id
        if key not in self._known:
            # The mirror has no copy of it, unless it can be asked for.
            statuses = {
                self._source.ask_plainly(
                    f"{reference.endpoint}/{reference.id}/", **({"site": site} if site else {})
                )[0]
                for site in {"", *self._site_of.values()}
            }
            self._known[key] = 200 not in statuses
        return self._known[key]

    def _is_alike(self, own: Any, other: Any, name: str) -> bool:
        """Whether values differ in what does not matter: hosts, and how an instant is written."""
        if not isinstance(own, str) or not isinstance(other, str):
            return False
        if name in (*_ADDRESSES, "download_url") and not (is_address(own) and is_address(other)):
            return False
        if name in _ADDRESSES:
            base = urlsplit(self._source.base).path.rstrip("/")
            there, here = (urlsplit(url).path.removeprefix(base) for url in (own, other))
            return there.removeprefix(self._prefix) == here.removeprefix(self._prefix)
        if name == "download_url":
            here = urlsplit(other).path
            return here in (urlsplit(own).path, quote(f"/media/{local_file(own)}"))
        try:
            return datetime.fromisoformat(own) == datetime.fromisoformat(other)
        except (ValueError, TypeError):
            return _HOST.sub("", own) == _HOST.sub("", other)


def _order_cause(own: Any, other: Any, name: str) -> str:
    ids, values = (
        [[{**item.get("meta", {}), **item}.get(key) for item in a["items"]] for a in (own, other)]
        for key in ("id", name)
    )
    if ids[0] == ids[1] or own["meta"] != other["meta"]:
        return ""
    if values[0] == values[1] or None in values[0]:
        return "objects with equal or missing values are in the order of the contract"
    is_text = all(isinstance(value, str) for some in values for value in some)
    return "texts are ordered by code point" if is_text else ""
