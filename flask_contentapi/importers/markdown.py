"""Reads a folder of Markdown with front matter as the objects of an API.

Folders and index files are the tree. What links, images and the front matter name by a path inside
the folder becomes a relation, and the file of it an image or a document.
"""

from __future__ import annotations

import os
import posixpath
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from html import unescape
from itertools import chain
from locale import normalize
from operator import itemgetter
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from flask_contentapi.errors import ContentError, Problem
from flask_contentapi.files import Unreadable, in_line
from flask_contentapi.importers.bodies import Target, first_heading, rich_text, without_code
from flask_contentapi.importers.frontmatter import MarkdownFile, moment, read_markdown, read_yaml
from flask_contentapi.importers.inference import is_address
from flask_contentapi.importers.objects import FILED, Item, Objects, OriginalSite, PlacedPage
from flask_contentapi.selection import WAYS
from flask_contentapi.types import Document, Image, Page

_ENDINGS = (".md", ".markdown", ".mdx")
_INDEXES = ("_index", "index", "readme")
#: The folders with packages of others.
_PACKAGES = ("/node_modules", "/vendor/bundle")
#: The folders of Jekyll, whose names mean that they are no folders of pages elsewhere.
_POSTS = {"_posts": "posts", "_drafts": "posts"}
_DATED = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})-(.+)", re.DOTALL)
_POSTED = re.compile(r"([0-9]{4}/[0-9]{2}/[0-9]{2}/[^/]+)$")
_PICTURES = (".avif", ".gif", ".jpeg", ".jpg", ".png", ".svg", ".webp")
#: The endings of files that are no documents, but make some.
_TEMPLATES = (".11ty.js", ".astro", ".ejs", ".hbs", ".liquid", ".mdx", ".njk", ".pug", ".webc")
#: What is no Markdown, but something to what else reads the folder: wiki links, footnotes,
#: shortcodes and other templates. In code, which is group 1, they are examples.
_FOREIGN = re.compile(
    r"(<code.*?(?:</code>|\Z))|!?\[\[[^\[\]\n]+\]\]|\[\^[^\[\]\n]+\]"
    r"|\{\{[^{}\n]+\}\}|\{%[^{}\n]+%\}",
    re.DOTALL,
)
#: The formats whose sizes are read, in Pillow's words.
_READ = ("GIF", "JPEG", "PNG", "WEBP")
#: What keys of the front matter mean that are no fields; the first one counts.
_DATES = ("date", "pubdate", "published_at", "published", "publishdate")
_LIVE_AT = ("publishdate", "published_at", "published", "date", "pubdate")
_EXPIRY = ("expirydate", "expires_at", "unpublishdate", "unpublish_at")
_YES, _NO = ("true", "yes", "on"), ("false", "no", "off")
_FLAGS = ("draft", "headless", "hidden", "is_draft", "private", "unlisted")
_SECRET = ("draft", "hidden", "members", "paid", "pending", "private", "unlisted", "unpublished")
#: What hides a page: by key, the values that do, and those that do not; others are told.
_HIDING = {
    **dict.fromkeys(_FLAGS, (_YES, _NO)),
    **dict.fromkeys(("public", "publish", "render", "visible"), (_NO, _YES)),
    **dict.fromkeys(
        ("status", "visibility"), (_SECRET, ("live", "public", "publish", "published", "visible"))
    ),
    # These have other values: dates and addresses.
    **dict.fromkeys(("permalink", "publishdate", "published", "published_at"), (_NO, None)),
}
_WEIGHTS = ("weight", "order", "nav_order", "sidebar_position")
_TAGS = {"tags": ("tags", "tag"), "categories": ("categories", "category")}
#: Other addresses of pages, which links can have.
_ADDRESSES = ("permalink", "url", "aliases", "redirect_from")
_META = ("seo_title", "search_description", "show_in_menus")
#: What Hugo makes of a page.
_BUILD = ("build", "_build")
#: All keys that are no fields.
_MEANT = {
    *("title", "slug", "type", "translationkey", *_DATES, *_LIVE_AT, *_EXPIRY),
    *(*_FLAGS, *_WEIGHTS, *_META),
    *(key for keys in _TAGS.values() for key in keys),
}
#: The keys that mean something, by how they are compared: in any case, with or without hyphens.
_INNER = re.compile("(?<=[a-z])[-_](?=[a-z])")
_SPELLED = {_INNER.sub("", key): key for key in (*_MEANT, *_HIDING, *_ADDRESSES)}
#: Names that objects of an answer have already.
_TAKEN = {*Page.meta_fields, *Page.body_fields, *WAYS, "body", "meta", "live", "go_live_at"}
#: The address of the site, until somebody writes its own into ``sites.json``.
_ADDRESS = "http://localhost:5000/"


class Nowhere(Exception):
    """A path leads to nothing; says why."""


@dataclass
class _Source:
    """A page.

    :param key: its path without the ending, or that of its folder; "" for the home page.
    :param file: its file, or an empty one if its folder has none.
    """

    key: str
    file: MarkdownFile
    id: int = 0
    label: str = ""
    title: str = ""
    slug: str = ""
    #: Where it is below the home page.
    path: str = ""
    below: list[_Source] = field(default_factory=list)
    #: What its front matter gives to pages below, too.
    cascade: dict[str, tuple[str, Any]] = field(default_factory=dict)
    #: The front matter, with the keys as they are written, by how they are compared.
    front: dict[str, tuple[str, Any]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of its file, or of its folder if that has none."""
        return self.file.name or f"{self.key}/"


class MarkdownFolder(Objects):
    """The content of a folder of Markdown.

    :param folder: the folder.
    :param known: what ``ids.json`` has: the ids that objects have already by endpoint and path, the
        languages that names of files and folders can tell, the main one first, whether bodies stay
        Markdown instead of HTML, and the paths from the folder to others with files.
    :param options: those of the command.
    :param taken: the objects that are there, with their sections; new ones get other ids.
    :raises ContentError: with all that is wrong.
    :ivar known: all ids, also those of what is not there any more.
    :ivar files: the files of images and documents by their names.
    :ivar told: what is not taken over, each in a sentence.
    """

    def __init__(
        self,
        folder: Path,
        known: Mapping[str, Any],
        options: Mapping[str, Any],
        taken: Iterable[tuple[str, Any]] = (),
    ) -> None:
        super().__init__()
        self._folder = folder
        self._roots: list[Path] = [folder, *(folder.resolve() / name for name in known["static"])]
        self.known: dict[str, dict[str, int]] = {name: {**known.get(name, {})} for name in FILED}
        self._last = {section: max([0, *ids.values()]) for section, ids in self.known.items()}
        for section, record in taken:
            if section in self._last:
                self._last[section] = max(self._last[section], record["id"])
        self.ids = {section: set() for section in FILED}
        languages = known["languages"]
        self.locales, self.i18n = dict.fromkeys(languages), bool(languages)
        self.prefixes = {code: f"/{code}" * (code != languages[0]) for code in languages}
        self._keeps_markdown, self._keeps_links = known["keep_markdown"], options["keep_links"]
        self.files: dict[str, Path] = {}
        self.told: dict[str, None] = {}
        self._problems: dict[Problem, None] = {}
        self._items: dict[tuple[str, int], Item] = {}
        self._sources: dict[str, _Source] = {}
        #: The folder that Jekyll has all collections in, with a slash, or "".
        self._outer = ""
        self._collections = self._find_collections()
        self._keys_of_files: dict[str, str] = {}
        #: Files whose names seem to have a language, by their paths without it, and by it.
        self._seeming: defaultdict[str, dict[str, str]] = defaultdict(dict)
        #: By their paths and other addresses, in small letters, as Hugo writes them.
        self._by_address: dict[str, _Source] = {}
        self._by_id: dict[int, _Source] = {}
        self._read_files()
        self._place()
        self._fill()
        if self._problems:
            raise ContentError(self._problems)

    def pages(self) -> Iterator[tuple[PlacedPage, Item | None]]:
        return ((page, self._items["pages", page.id]) for page in self.tree)

    def others(self, endpoint: str) -> Iterator[tuple[str, Item]]:
        for (section, _), item in self._items.items():
            if section == endpoint:
                yield item["meta"]["type"], item

    def paths(self) -> dict[tuple[str, int], str]:
        """The paths of objects by their endpoint and id."""
        known = self.known.items()
        return {(section, ids[path]): path for section, ids in known for path in ids}

    @contextmanager
    def located(self) -> Iterator[None]:
        """Tells the files and lines that records are made of, if they do not fit."""
        try:
            yield
        except ContentError as error:
            raise ContentError(map(self._located, error.problems)) from None

    def _located(self, problem: Problem) -> Problem:
        section, _, identity = problem.where.partition(" ")
        source = self._by_id.get(int(identity)) if section == "pages" else None
        if source is None:
            return problem
        lines = {_field_name(key): line for key, line in source.file.lines.items()}
        lines |= source.file.lines
        return replace(problem, where="", file=in_line(source.name, lines.get(problem.field, 1)))

    def _id(self, section: str, path: str) -> int:
        """The id of an object, which gets one if it has none."""
        known = self.known[section]
        if path not in known:
            self._last[section] = known[path] = self._last[section] + 1
        self.ids[section].add(known[path])
        return known[path]

    def _refuse(self, name: str, line: int, message: str) -> None:
        self._problems[Problem("", "", message, file=in_line(name, line))] = None

    def _refuse_key(self, source: _Source, key: str, message: str) -> None:
        self._refuse(source.file.name, source.file.lines.get(key, 1), message)

    # The tree.

    def _find_collections(self) -> dict[str, str]:
        """The folders that Jekyll makes pages of, each with what it is called instead."""
        try:
            config = read_yaml(self._folder / "_config.yml")
        except Unreadable as error:
            why = error.faults[0].message.removeprefix("the front matter ")
            self.told[f"_config.yml {why}; its collections are left out."] = None
            return {}
        config = config if isinstance(config, dict) else {}
        given = config.get("collections")
        found = given.items() if isinstance(given, dict) else ()
        shown = {str(n) for n, own in found if isinstance(own, dict) and own.get("output") is True}
        names = {f"_{name}": name for name in shown - {""}} | {name: name for name in _POSTS}
        # To Jekyll the folder itself is ".".
        outer = posixpath.normpath(str(config.get("collections_dir") or "").strip("/"))
        self._outer = "" if outer == "." else f"{outer}/"
        if not os.path.isdir(self._folder / outer):
            self.told[f"_config.yml: collections_dir names {outer!r}, which is no folder."] = None
        return {f"{self._outer}{name}": inside for name, inside in names.items()}

    def _read_files(self) -> None:
        found: defaultdict[str, list[str]] = defaultdict(list)
        for name in self._names():
            found[self._key(name)].append(name)
        self._tell_languages(map(_composed, chain(*found.values())))
        # To Eleventy a file with the name of its folder is the page of that. An index file is not
        # that of the folder above, whatever the two folders are called.
        for key in [*found]:
            folder = posixpath.dirname(key)
            if folder not in found and posixpath.basename(folder) == posixpath.basename(key) != "":
                for name in found.pop(key):
                    found[key if _is_index(self._stem(name)[1]) else folder].append(name)
        for key, names in found.items():
            for name in map(_composed, names):
                self._keys_of_files[name] = key
                # Jekyll names files without the folder of all collections.
                self._keys_of_files.setdefault(name.removeprefix(self._outer), key)
            readmes = [n for n in names if posixpath.basename(n).lower().startswith("readme.")]
            if len(names) > 1 and readmes:
                names.remove(readmes[0])
                self.told[f"{readmes[0]} is left out, because {names[0]} is the page."] = None
            wrong = f"is the same page as {names[0]}; one of them has to go"
            if len({self._stem(name)[0] for name in names}) > 1:
                wrong += f", or another --language has to come before {next(iter(self.locales))}"
            for other in names[1:]:
                self._refuse(other, 1, wrong)
            source = self._sources[key] = _Source(key, self._read_file(names[0]))
            for own, value in source.file.front.items():
                if _compared(own) in source.front:
                    self._refuse_key(source, own, f"has {own} twice")
                source.front[_compared(own)] = (own, value)
        if not found:
            wanted = f"has no files that end in {', '.join(_ENDINGS[:-1])} or {_ENDINGS[-1]}"
            self._refuse(self._folder.name, 0, wanted)

    def _read_file(self, name: str) -> MarkdownFile:
        try:
            file = read_markdown(self._folder / name, _composed(name))
        except Unreadable as error:
            for fault in error.faults:
                self._refuse(name, fault.line, fault.message)
            return MarkdownFile(name)
        if not name.lower().endswith(".mdx") or self._keeps_markdown:
            return file
        plain = without_code(file.body)
        if plain != file.body:
            self.told[f"{name}: components and code of MDX are left out."] = None
        return file._replace(body=plain)

    def _tell_languages(self, names: Iterable[str]) -> None:
        """Notes the languages that names of files and folders seem to have, and tells each that no
        option names."""
        told = {*self.locales}
        for name in names:
            stem = posixpath.splitext(name)[0]
            plain, _, ending = stem.rpartition(".")
            first, _, inside = stem.partition("/")
            for language, rest in ((ending, plain), (first, inside)):
                code = language.partition("-")[0]
                # Codes that are known get a country. So do some names, such as "german".
                is_known = 1 < len(code) < 4 and normalize(code) != code
                if not rest or not (is_known or language in self.locales):
                    continue
                self._seeming[_without_index(rest)].setdefault(language, name)
                if language not in told:
                    told.add(language)
                    why = f"seems to be in the language {language}, but no --language names it"
                    self.told[f"{name} {why}."] = None

    def _stem(self, name: str) -> tuple[str, str]:
        """The language of a file, "" if its name has none, and the rest of its path without the
        ending."""
        stem = posixpath.splitext(_composed(name))[0]
        folder = next((f for f in self._collections if stem.startswith(f"{f}/")), "")
        stem = self._collections.get(folder, "") + stem[len(folder) :]
        plain, _, ending = stem.rpartition(".")
        first, _, inside = stem.partition("/")
        if ending in self.locales:
            return ending, plain
        return (first, inside) if first in self.locales else ("", stem)

    def _key(self, name: str) -> str:
        """The key of the page in a file; those of other languages than the main one have that in
        front."""
        language, stem = self._stem(name)
        key = _without_index(stem)
        return f"{language}/{key}".rstrip("/") if self.prefixes.get(language) else key

    def _parts(self, key: str) -> tuple[str, str]:
        """The language of a page, and its key without that."""
        first, _, inside = key.partition("/")
        return (first, inside) if self.prefixes.get(first) else (next(iter(self.locales), ""), key)

    def _above(self, key: str) -> str | None:
        """The key of the page above; None for home pages."""
        return posixpath.dirname(key) if self._parts(key)[1] else None

    def _names(self) -> Iterator[str]:
        """The files of Markdown, in order."""
        outermost = self._folder.resolve()
        for folder, folders, names in os.walk(self._folder, onerror=self._refuse_folder):
            known, folders[:] = {*folders}, []
            for name in sorted((*known, *names)):
                path, is_folder = Path(folder, name), name in known
                shown = path.relative_to(self._folder).as_posix()
                is_index = not is_folder and name.lower().partition(".")[0] == "_index"
                is_left_out = name.startswith("_") and name not in _POSTS and not is_index
                is_page = name.lower().endswith(_ENDINGS)
                is_package = f"/{shown}".endswith(_PACKAGES)
                if name.startswith(".") or is_package or not (is_folder or is_page):
                    continue
                if not is_folder and not shown.isprintable():
                    self._refuse(repr(shown), 0, "has a name that cannot be printed")
                elif is_left_out and shown not in self._collections:
                    self.told[f"{shown} is left out, as names with an underscore are."] = None
                elif not is_folder and not path.is_file():
                    self._refuse(shown, 0, "is no file that can be read")
                elif is_folder and not path.is_symlink():
                    folders.append(name)
                elif is_folder or not path.resolve().is_relative_to(outermost):
                    only = "only links to files inside the folder are followed"
                    self._refuse(shown, 0, f"is a symbolic link; {only}")
                else:
                    yield shown

    def _refuse_folder(self, error: OSError) -> None:
        shown = Path(error.filename).relative_to(self._folder).as_posix()
        self._refuse(shown, 0, f"cannot be read: {error.strerror}")

    def _place(self) -> None:
        """Puts the pages into the tree."""
        for key in [*self._sources, ""]:
            above: str | None = key
            while above is not None:
                self._sources.setdefault(above, _Source(above, MarkdownFile()))
                above = self._above(above)
        homes: list[_Source] = []
        # Those above come before those below.
        for key in sorted(self._sources):
            source, above = self._sources[key], self._above(key)
            parent = None if above is None else self._sources[above]
            (homes if parent is None else parent.below).append(source)
            self._cascade(source, parent or source)
            self._describe(source)
        self._enter(homes)
        for source in self._by_id.values():
            self._note_addresses(source)
        self.sites.append(OriginalSite("", self._sources[""].id, _ADDRESS))

    def _describe(self, source: _Source) -> None:
        """Gives a page its slug, its title and its type."""
        name = _composed(posixpath.basename(source.key) or self._folder.resolve().name)
        dated = _DATED.fullmatch(name)
        name = dated[2] if dated else name.lstrip("_")
        if dated:
            source.front.setdefault("date", ("date", dated[1]))
        usual = re.sub(r"[\s/]+", "-", name) if source.key else "home"
        source.slug = _composed(self._text(source, ["slug"])) or usual
        if len(source.slug.splitlines()) > 1:
            self._wrong(source, "slug", "a text of one line")
        source.title = self._text(source, ["title"]) or first_heading(source.file.body)
        source.title = source.title or re.sub(r"[-_\s]+", " ", name).strip().capitalize()
        outermost, _, inside = self._parts(source.key)[1].partition("/")
        usual = _POSTS.get(outermost, outermost) if inside else ""
        source.label = f"site.{_class_name(self._text(source, ['type']) or usual)}"

    def _enter(self, homes: Sequence[_Source]) -> None:
        """Gives ids and paths to pages, and notes what are translations of each other."""
        waiting: list[tuple[_Source, _Source | None]] = [(home, None) for home in homes[::-1]]
        translations: defaultdict[tuple[str, bool], dict[str, int]] = defaultdict(dict)
        while waiting:
            source, parent = waiting.pop()
            source.id = self._id("pages", f"/{source.key}")
            language, inside = self._parts(source.key)
            shared = self._text(source, ["translationkey"])
            # A path and a key can be the same text.
            first = translations[shared or inside, bool(shared)].setdefault(language, source.id)
            if first != source.id and language:
                wanted = f"another than that of {self._by_id[first].name}, which is in {language}"
                self._wrong(source, "translationkey", f"{wanted}, too")
            source.path = f"{parent.path}/{source.slug}".lstrip("/") if parent else source.key
            other = self._by_address.setdefault(source.path.lower(), source)
            if other is not source and other.path == source.path:
                why = f"the slug {source.slug!r} is that of {other.name} already"
                line = source.file.lines.get(source.front.get("slug", ("", ""))[0], 1)
                self._refuse(source.name, line, why)
            self._by_id[source.id] = source
            self.tree.append(PlacedPage(source.id, source.label, parent.id if parent else None, 0))
            # Those without a weight come last, in the order of their names.
            source.below.sort(key=lambda below: (self._weight(below), below.key))
            waiting += [(below, source) for below in reversed(source.below)]
        for ids in translations.values():
            self.note_translations(ids.values())

    def _note_addresses(self, source: _Source) -> None:
        """Notes what else links can have for a page."""
        dated = _DATED.fullmatch(posixpath.basename(source.key))
        # Hugo can have the main language in addresses, too, and Jekyll has dates in them.
        own = [f"/{self._parts(source.key)[0]}/{source.path}"]
        own += [f"/{dated[1].replace('-', '/')}/{source.slug}"] if dated else []
        others = [value for _, value in self._given(source, _ADDRESSES)]
        for path in (*own, *chain(*(o if isinstance(o, list) else [o] for o in others))):
            if isinstance(path, str) and path.startswith("/"):
                self._by_address.setdefault(_composed(path).strip("/").lower(), source)

    def _cascade(self, source: _Source, above: _Source) -> None:
        """Gives a page what hides all pages of a section of Hugo."""
        source.cascade = dict(above.cascade)
        given = source.front.get("cascade", ("", None))[1]
        for values in given if isinstance(given, list) else [given]:
            for key, value in values.items() if isinstance(values, dict) else ():
                lowered = _compared(key)
                if lowered in (*_HIDING, *_BUILD, *_LIVE_AT, *_EXPIRY):
                    source.cascade[lowered] = (key, value)
                    if "target" in values or "_target" in values:
                        why = f"its target is not read; {key} is that of all pages below it"
                        self.told[f"{source.file.name}: cascade: {why}."] = None
        source.front = {**source.cascade, **source.front}

    # The front matter.

    def _wrong(self, source: _Source, key: str, wanted: str) -> None:
        name, value = source.front[key]
        found = "empty" if value is None else repr(value)
        self._refuse_key(source, name, f"{name} must be {wanted}; it is {found}")

    @staticmethod
    def _given(source: _Source, keys: Iterable[str]) -> Iterator[tuple[str, Any]]:
        """The values of keys that are there."""
        for key in keys:
            if source.front.get(key, ("", None))[1] is not None:
                yield key, source.front[key][1]

    def _text(self, source: _Source, keys: Iterable[str]) -> str:
        for key, value in self._given(source, keys):
            if isinstance(value, dict | list):
                self._wrong(source, key, "a text")
            else:
                return str(value).strip()
        return ""

    def _weight(self, source: _Source) -> float:
        for key, value in self._given(source, _WEIGHTS):
            if isinstance(value, bool) or not isinstance(value, int | float):
                self._wrong(source, key, "a number")
            # To Hugo this is none.
            elif value or key != "weight":
                return value
        return float("inf")

    def _moment(self, source: _Source, keys: Iterable[str]) -> str | None:
        for key, value in self._given(source, keys):
            if str(value).lower() in (*_YES, *_NO):
                continue
            value = value.get("created") if isinstance(value, dict) else value
            try:
                return moment(value)
            except ValueError:
                self._wrong(source, key, "a date, as 2026-01-15")
        return None

    def _is_hidden(self, source: _Source) -> bool:
        hidden = "_drafts" in source.key.split("/")
        for key, (hides, shows) in _HIDING.items():
            if key not in source.front:
                continue
            name, value = source.front[key]
            said = str(value).strip().lower()
            hidden = hidden or said in hides
            if key in _FLAGS and said not in (*hides, *(shows or ())):
                self._wrong(source, key, "true or false")
            elif value is not None and shows and said not in (*hides, *shows):
                self.told[f"{name}: {value!r} does not hide pages."] = None
        for _, build in self._given(source, _BUILD):
            made = build if isinstance(build, dict) else {}
            never = {"false", "never"} & {str(made.get(key)).lower() for key in ("list", "render")}
            hidden = hidden or bool(never)
        return hidden

    def _tags(self, source: _Source, keys: Iterable[str]) -> list[str]:
        found: set[str] = set()
        for key, value in self._given(source, keys):
            if isinstance(value, str):
                is_jekyll = not {*_POSTS}.isdisjoint(source.key.split("/"))
                value = value.split() if is_jekyll and "," not in value else value.split(",")
            tags = value if isinstance(value, list) else [value]
            if any(isinstance(tag, dict | list) or "," in str(tag) for tag in tags):
                self._wrong(source, key, "a list of texts without commas")
            found |= {str(tag).strip() for tag in tags if tag is not None} - {""}
        return sorted(found)

    # Objects.

    def _fill(self) -> None:
        """Makes the objects."""
        groups: defaultdict[tuple[str, str], list[tuple[_Source, str, Any]]] = defaultdict(list)
        for source in self._by_id.values():
            item = self._items["pages", source.id] = self._item(source)
            for lowered, (key, value) in source.front.items():
                name = _field_name(key)
                if lowered in _MEANT or value in (None, "", []):
                    continue
                if name in item:
                    self._refuse_key(source, key, f"{key} is called {name}, as another key is")
                item[name] = value
                groups[source.label, name].append((source, key, value))
        for (_, name), entries in groups.items():
            self._relate(name, entries)
        for page in self.tree:
            shape = self.shapes.types["pages"][page.label]
            shape.note(self._items["pages", page.id])
            shape.body["body"].declared = "text" if self._keeps_markdown else "rich"
            for name in _TAGS.keys() & shape.body.keys():
                shape.body[name].declared = "tags"

    def _item(self, source: _Source) -> Item:
        meta: Item = {"type": source.label, "slug": source.slug}
        if self.locales:
            meta["locale"] = self._parts(source.key)[0]
        if first := self._moment(source, _DATES):
            meta["first_published_at"] = first
        if end := self._moment(source, _EXPIRY):
            meta["expires_at"] = end
        hidden = {"live": False} if self._is_hidden(source) else {}
        start = self._moment(source, _LIVE_AT)
        self.hidden["pages", source.id] = {**hidden, **({"go_live_at": start} if start else {})}
        meta |= dict(self._given(source, _META))
        tags = {name: self._tags(source, keys) for name, keys in _TAGS.items()}
        body = source.file.body.strip("\n") if self._keeps_markdown else self._html(source)
        found = {name: value for name, value in tags.items() if value}
        return {"id": source.id, "meta": meta, "title": source.title, **found, "body": body}

    def _html(self, source: _Source) -> str:
        def find(address: str, endpoint: str, line: int) -> Target | None:
            try:
                return self._target(source, address, endpoint)
            except Nowhere as error:
                if not self._keeps_links:
                    self._refuse(source.file.name, source.file.start + line, f"{address!r} {error}")
                return None

        name = source.file.name
        html = rich_text(source.file.body, find, is_mdx=name.lower().endswith(".mdx"))
        if foreign := next((m for m in _FOREIGN.finditer(html) if not m[1]), None):
            why = "is no Markdown, and stays as it is"
            self.told[f"{name}: {unescape(foreign[0])} {why}."] = None
        return html

    def _relate(self, name: str, entries: Iterable[tuple[_Source, str, Any]]) -> None:
        """Makes relations of values that are all paths of what is there."""
        made: list[tuple[_Source, Any]] = []
        kinds = set()
        for source, key, value in entries:
            several = value if isinstance(value, list) else [value]
            targets = [self._named(source, key, entry) for entry in several]
            kinds |= {(target and target.endpoint, isinstance(value, list)) for target in targets}
            shown = [_embedded(target) for target in targets if target]
            made.append((source, shown if isinstance(value, list) else next(iter(shown), None)))
        if len(kinds) == 1 and None not in {endpoint for endpoint, _ in kinds}:
            for source, value in made:
                self._items["pages", source.id][name] = value

    def _named(self, source: _Source, key: str, value: Any) -> Target | None:
        """What a value of the front matter names."""
        ending = posixpath.splitext(value)[1].lower() if isinstance(value, str) else ""
        if not re.fullmatch(r"\.[a-z0-9]{1,8}", ending) or "\n" in value:
            return None
        try:
            target = self._target(source, value, "images" if ending in _PICTURES else "documents")
            is_address = target and target.endpoint == "pages" and ending not in _ENDINGS
            return None if is_address else target
        except Nowhere as error:
            if ending in (*_PICTURES, *_ENDINGS) and not self._keeps_links:
                self._refuse_key(source, key, f"{key}: {value!r} {error}")
            return None

    # Paths.

    def _target(self, source: _Source, address: str, endpoint: str) -> Target | None:
        """What an address leads to; None if it is elsewhere.

        :param endpoint: where files are served that are no pages.
        :raises Nowhere: if there is nothing at a path inside the folder.
        """
        parts = urlsplit(address if is_address(address) else "")
        path = _composed(unquote(parts.path))
        if parts.scheme or parts.netloc or not path or "{{" in path or "{%" in path:
            return None
        fragment = f"#{parts.fragment}" if parts.fragment else ""
        is_rooted = path.startswith("/")
        why = "leads to nothing"
        # From its file, as Markdown is shown elsewhere; from its address, with a slash or without;
        # and from the folder, as Eleventy and Hugo do.
        folder, above = map(posixpath.dirname, (source.file.name, source.path))
        starts = ("",) if is_rooted else (folder, source.path, above, "")
        own = f"{self.prefixes.get(self._parts(source.key)[0], '')}/".lstrip("/")
        # From the root, addresses are those of the main language.
        meant = "" if is_rooted and not path.lower().endswith(_ENDINGS) else own
        insides = []
        for start in starts:
            inside = posixpath.normpath(posixpath.join(start, path.lstrip("/")))
            if inside.split("/")[0] == "..":
                if start == folder and (beside := self._beside(inside)):
                    return Target(endpoint, self._medium(endpoint, *beside), fragment)
                why = "leads out of the folder" if start == folder else why
                continue
            is_left = f"{start}/".startswith(own) and not f"{inside}/".startswith(own)
            insides.append((is_left, "" if inside == "." else inside))
        seeming: dict[str, str] = {}
        # What leaves the language can be meant in it from another start.
        for is_left, inside in sorted(insides, key=itemgetter(0)):
            if page := self._page_at(inside, "" if is_left else meant):
                return Target("pages", page.id, fragment)
            # The file of a page is a page, also of one in another language.
            if inside not in self._keys_of_files and (file := self._file_at(inside)):
                return Target(endpoint, self._medium(endpoint, inside, file), fragment)
            is_file = inside.lower().endswith(_ENDINGS)
            stem = posixpath.splitext(inside)[0] if is_file else inside
            seeming |= self._seeming.get(_without_index(stem), {})
        hint = ""
        for language, name in seeming.items():
            unnamed = "" if language in self.locales else f", but no --language names {language}"
            hint += f"; {name} is there{unnamed}"
        if is_rooted:
            why = f"is left as it is, as nothing is there{hint}"
            self.told[f"{source.file.name}: {address} {why}."] = None
            return None
        raise Nowhere(why + hint)

    def _page_at(self, inside: str, own: str) -> _Source | None:
        """The page at a path.

        :param own: the folder of the language in which it is meant if it tells none.
        """
        key = self._keys_of_files.get(inside, inside)
        if self.locales and inside.lower().endswith(_ENDINGS):
            key = self._keys_of_files.get(inside) or self._key(inside)
        plain = inside.lower().removesuffix(".html").removesuffix("index").rstrip("/")
        is_plain = self.locales.keys().isdisjoint(re.split("[./]", inside))
        for start in (own * is_plain, ""):
            address = f"{start.lower()}{plain}".rstrip("/")
            found = self._sources.get(f"{start}{key}".rstrip("/")) or self._by_address.get(address)
            if found:
                return found
        # To Jekyll the categories of a post are in front of its date.
        posted = _POSTED.search(plain)
        return self._by_address.get(posted[1]) if posted else None

    def _beside(self, path: str) -> tuple[str, Path] | None:
        """The name of a static file, and the file, for a path that leads out of the folder."""
        place = Path(os.path.normpath(self._folder.resolve() / path))
        for root in self._roots[1:]:
            if place.is_relative_to(root.resolve()):
                name = place.relative_to(root.resolve()).as_posix()
                file = self._file_at(name)
                return (name, file) if file else None
        return None

    def _file_at(self, inside: str) -> Path | None:
        is_hidden = any(part.startswith(".") for part in inside.split("/"))
        if is_hidden or inside.lower().endswith(_TEMPLATES) or not inside.isprintable():
            return None
        for root in self._roots:
            file = root
            for part in inside.split("/"):
                # macOS writes names with their accents apart.
                apart = not part.isascii() and not os.path.lexists(file / part)
                file /= unicodedata.normalize("NFD", part) if apart else part
            if os.path.isfile(file):
                if file.resolve().is_relative_to(root.resolve()):
                    return file
                raise Nowhere("is a symbolic link out of the folder")
        return None

    def _medium(self, endpoint: str, inside: str, file: Path) -> int:
        """The id of an image or a document."""
        identity = self._id(endpoint, inside)
        self.files[inside] = file
        base = Image if endpoint == "images" else Document
        meta = {"type": base.type_label(), "download_url": inside}
        title = re.sub(r"[-_\s]+", " ", posixpath.splitext(posixpath.basename(inside))[0]).strip()
        size = _size(file) if endpoint == "images" else {}
        self._items[endpoint, identity] = {"id": identity, "meta": meta, "title": title, **size}
        return identity


def _class_name(words: str) -> str:
    """The name of the class for a type, or the folder that its pages are in."""
    plain = unicodedata.normalize("NFKD", words).encode("ascii", "ignore").decode()
    name = "".join(word[:1].upper() + word[1:] for word in re.findall("[A-Za-z0-9]+", plain))
    return name if name[:1].isalpha() else f"Page{name}"


def _is_index(stem: str) -> bool:
    return posixpath.basename(stem).lower() in (*_INDEXES, "")


def _without_index(stem: str) -> str:
    """A path without the name of an index file at its end."""
    return posixpath.dirname(stem) if _is_index(stem) else stem


def _composed(text: str) -> str:
    """A path as all are compared, however its accents are written."""
    return unicodedata.normalize("NFC", text)


def _compared(key: str) -> str:
    """How a key of the front matter is compared."""
    return _SPELLED.get(_INNER.sub("", key.lower()), key.lower())


def _field_name(key: str) -> str:
    """The name of the field for a key of the front matter."""
    name = re.sub(r"\W", "_", unicodedata.normalize("NFKC", key))
    name = name if name.isidentifier() else f"own_{name}"
    return f"{name}_" if name in _TAKEN else name


def _embedded(target: Target) -> Item:
    meta = {"type": "", "detail_url": f"/{target.endpoint}/{target.id}/"}
    return {"id": target.id, "meta": meta, "title": ""}


def _size(file: Path) -> dict[str, int]:
    """The width and the height of an image, if Pillow is installed and can read it."""
    try:
        from PIL import Image as Picture
    except ImportError:
        return {}
    try:
        with Picture.open(file, formats=_READ) as picture:
            return {"width": picture.width, "height": picture.height}
    except (OSError, ValueError, Picture.DecompressionBombError):
        return {}
