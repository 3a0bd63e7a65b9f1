"""The commands that pull content."""

from __future__ import annotations

import hashlib
import os
import runpy
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from importlib import import_module
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click
import orjson
from click import FloatRange, IntRange, Option
from flask import Flask

from flask_contentapi.backend import Backend, find_backend
from flask_contentapi.content import ReadRecord, read_library
from flask_contentapi.errors import ConfigurationError, ContentAPIError
from flask_contentapi.files import replacing
from flask_contentapi.importers.code import application_code, types_code
from flask_contentapi.importers.objects import Objects
from flask_contentapi.importers.records import PulledContent, local_file
from flask_contentapi.importers.refresh import MOST_SHOWN, Changes
from flask_contentapi.logs import amounts, interruption_told, watched
from flask_contentapi.markup import missing_packages
from flask_contentapi.records import write_record
from flask_contentapi.registry import Registry
from flask_contentapi.state import State

if TYPE_CHECKING:
    from flask_contentapi.importers.original import Original
    from flask_contentapi.importers.source import Source

#: What a folder has that was pulled.
_PARTS = ("app.py", "models.py", "content")
#: The folder for files inside it.
_MEDIA = "media"


def _read_header(context: object, parameter: object, given: Iterable[str]) -> list[tuple[str, str]]:
    found = []
    for text in given:
        name, colon, value = text.partition(":")
        if not colon or not name.strip() or not (name + value).isprintable():
            raise click.BadParameter(f'{name!r} is to be as "Authorization: Bearer ...".')
        found.append((name.strip(), value.strip()))
    return found


#: The options of both commands that pull.
PULL_OPTIONS = (
    Option(["--media"], is_flag=True, help="Download the files of images and documents, too."),
    Option(["--verify"], is_flag=True, help="Compare answers with those of the original."),
    Option(["--requests"], default=500, show_default=True, help="How many answers to compare."),
    Option(["--seed"], default=1, show_default=True, help="Chooses what is compared."),
    Option(["--watch"], type=IntRange(1), help="Pull again every so many seconds."),
    Option(
        ["--header", "headers"], multiple=True, callback=_read_header, help="Send a header, too."
    ),
    Option(["--site", "sites"], multiple=True, help="Pull another site, named as site= does."),
    Option(["--endpoint", "endpoints"], multiple=True, help="Pull another endpoint, too."),
    Option(
        ["--connections"],
        default=1,
        show_default=True,
        type=IntRange(1, 16),
        help="How many questions are asked at a time.",
    ),
    Option(["--pause"], default=0.0, type=FloatRange(0), help="Seconds between two questions."),
    Option(
        ["--timeout"],
        default=60.0,
        show_default=True,
        type=FloatRange(0.1),
        help="Seconds that an answer may take.",
    ),
    Option(["--yes"], is_flag=True, help="Proceed even if this deletes hand-written files."),
)


def require_extra(name: str, *modules: str) -> None:
    """Says what has to be installed; what needs it is imported only after that."""
    try:
        for module in modules:
            import_module(module)
    except ImportError as error:
        raise ConfigurationError(
            f"What {name}ing needs is not installed: {error}. Install it with: "
            f'pip install "flask_contentapi[{name}]".'
        ) from error


@contextmanager
def _open(url: str, answers: Path, options: Mapping[str, Any]) -> Iterator[Source]:
    from flask_contentapi.importers.source import Cache, Source, SourceError

    chosen = {name: options[name] for name in ("headers", "connections", "pause", "timeout")}
    try:
        with closing(Cache(answers)) as cache, closing(Source(url, cache, **chosen)) as source:
            try:
                yield source
            except SourceError:
                # What does not fit together is asked for again.
                cache.begin_anew()
                raise
            cache.finish()
    except sqlite3.Error as error:
        is_used = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
        why = "another pull is at work" if is_used else str(error)
        raise ConfigurationError(
            f"The answers cannot be kept in {str(answers)!r}: {why}."
        ) from error


def _read(source: Source, options: Mapping[str, Any]) -> Original:
    from flask_contentapi.importers.original import Original

    return Original(source, sites=options["sites"], endpoints=options["endpoints"])


def pull_folder(url: str, folder: Path, options: Mapping[str, Any]) -> None:
    """Makes a site of a foreign API in a folder, or refreshes the one that is there.

    :param url: the address of the API.
    :param folder: the folder.
    :param options: those of the command.
    """

    def once() -> None:
        if folder.is_dir() and any(folder.iterdir()):
            with known_folder(folder) as (backend, registry), interruption_told(backend.reader):
                _refresh(url, backend, registry, _answers_in(folder), folder / _MEDIA, options)
        else:
            _make_folder(url, folder, options)
        if options["verify"]:
            app = _application_of(folder)
            _verify(url, app, next(iter(app.extensions["contentapi"].values())), options)

    _repeat(once, options["watch"])


def _repeat(once: Callable[[], None], seconds: int | None) -> None:
    require_extra("pull", "flask_contentapi.importers.source")
    once()
    while seconds:
        time.sleep(seconds)
        try:
            once()
        except ContentAPIError as error:
            # The next time may be better.
            error.show()


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A folder beside the named one, which takes its place once it is complete.

    :raises ConfigurationError: if it cannot.
    """
    # A symbolic link leads to where the folder is to be.
    target = Path(os.path.realpath(folder))
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as beside:
        part = Path(beside, target.name)
        part.mkdir()
        yield part
        try:
            os.rename(part, target)
        except OSError as error:
            said = f"{str(folder)!r} cannot be made: {error.strerror}."
            raise ConfigurationError(said) from error


def _answers_in(folder: Path) -> Path:
    answers = folder / ".pull" / "answers.db"
    answers.parent.mkdir(exist_ok=True)
    return answers


def write_code(original: Objects, folder: Path, origin: str, *, prefix: str) -> Registry:
    """Writes the code of a site; returns its types.

    :param original: what it is made of.
    :param origin: that in words.
    :param prefix: where its API is to be.
    """
    (folder / "models.py").write_text(types_code(original, origin), "utf-8")
    code = application_code(original, origin, prefix=prefix)
    (folder / "app.py").write_text(code, "utf-8")
    return _registry_of(folder)


def _make_folder(url: str, folder: Path, options: Mapping[str, Any]) -> None:
    target = Path(os.path.realpath(folder))
    target.parent.mkdir(parents=True, exist_ok=True)
    # For another pull, if this one is stopped before there is a folder.
    answers = target.with_name(f".{target.name}.answers.db")
    with _open(url, answers, options) as source:
        original = _read(source, options)
        prefix = urlsplit(source.base).path.rstrip("/")
        media = _Media(folder / _MEDIA, is_wanted=options["media"])
        with new_folder(folder) as part:
            registry = write_code(original, part, source.base, prefix=prefix)
            content = PulledContent(original, registry, media.name)
            counts = write_content(content, registry, part / "content")
    if answers.exists():
        os.replace(answers, _answers_in(folder))
    if options["media"]:
        with _open(url, _answers_in(folder), options) as downloading:
            media.download(downloading)
    tell(content.told)
    if missing_packages(original.rich_text_format):
        needed = 'pip install "flask_contentapi[richtext]"'
        click.echo(f"Note: To run it, install what its rich text needs: {needed}.", err=True)
    said = f"{amounts(counts)} are in {folder}, after {source.asked} questions."
    click.echo(f"{said} cd {folder} && flask run")


def write_content(content: PulledContent, registry: Registry, folder: Path) -> Counter[str]:
    """Writes JSON files with records, as the backend for them does, but one record at a time."""
    folder.mkdir()
    counts = Counter[str]()
    sections = ("sites", "locales", "collections", *registry.endpoints)
    with ExitStack() as opened:
        streams = {
            section: opened.enter_context(open(folder / f"{section}.json", "wb"))
            for section in sections
        }

        def put(section: str, record: Any) -> None:
            text = orjson.dumps(record, option=orjson.OPT_INDENT_2).replace(b"\n", b"\n  ")
            streams[section].write((b",\n  " if counts[section] else b"[\n  ") + text)
            counts[section] += 1

        def keep(section: str, index: int, read: ReadRecord) -> None:
            put(section, write_record(registry.endpoints[section], *read))

        library = read_library(content, registry, keep=keep, logs=False)
        for locale in library.locales:
            put("locales", locale)
        for site in library.site_records:
            put("sites", site)
        for section, stream in streams.items():
            stream.write(b"\n]\n" if counts[section] else b"[]\n")
    return counts


@contextmanager
def known_folder(folder: Path) -> Iterator[tuple[Backend, Registry]]:
    """The content and the types of a folder that was made before.

    :raises ConfigurationError: if it is another one.
    """
    if not all((folder / part).exists() for part in _PARTS):
        raise ConfigurationError(
            f"{str(folder)!r} has files, but none that this command writes; name a new folder."
        )
    backend = find_backend(f"jsonfiles:{folder.absolute() / 'content'}", folder)
    registry = _registry_of(folder)
    backend.open(registry, logs=False)
    with closing(backend):
        yield backend, registry


def refuse_loss(backend: Backend, options: Mapping[str, Any]) -> None:
    """Refuses to replace files that somebody has written by hand."""
    lost = backend.lost_by_loading()
    if lost and not options["yes"]:
        raise ConfigurationError(f"{lost} If that is meant, say --yes.")


def pull_site(url: str, app: Flask, state: State, options: Mapping[str, Any]) -> None:
    """Refreshes the content of a site with that of a foreign API.

    :param url: the address of the API.
    :param app: the site.
    :param state: the instance whose content it is.
    :param options: those of the command.
    """
    instance = Path(app.instance_path)
    instance.mkdir(parents=True, exist_ok=True)
    name = hashlib.sha256(url.encode()).hexdigest()[:12]
    media = Path(app.root_path) / (app.config.get("CMSAPI_MEDIA_FOLDER") or _MEDIA)

    def once() -> None:
        answers = instance / f"pull-{name}.db"
        _refresh(url, state.backend, state.registry, answers, media, options)
        if options["verify"]:
            _verify(url, app, state, options)

    _repeat(once, options["watch"])


def _refresh(
    url: str,
    backend: Backend,
    registry: Registry,
    answers: Path,
    media_folder: Path,
    options: Mapping[str, Any],
) -> None:
    refuse_loss(backend, options)
    with _open(url, answers, options) as source:
        original = _read(source, options)
        media = _Media(media_folder, is_wanted=options["media"])
        changes = Changes(backend, registry, original, media.name)
        # Before the content that names them.
        if options["media"]:
            media.download(source)
        if changes:
            changes.write()
    tell(changes.content.told, changes.told({}))


def tell(notes: Collection[str], changes: Iterable[str] = ()) -> None:
    """Says what is not taken over, and what has changed."""
    for line in islice(notes, MOST_SHOWN):
        click.echo(f"Note: {line}", err=True)
    if len(notes) > MOST_SHOWN:
        click.echo(f"Note: and {len(notes) - MOST_SHOWN} more.", err=True)
    for line in changes:
        click.echo(line)


class _Media:
    """The files of images and documents.

    :param folder: where they are kept.
    :param is_wanted: whether they are downloaded.
    """

    def __init__(self, folder: Path, *, is_wanted: bool) -> None:
        self._folder, self._is_wanted = folder, is_wanted
        self._urls: dict[str, str] = {}

    def name(self, url: str) -> str:
        name = local_file(url)
        if not name or not (self._is_wanted or (self._folder / name).is_file()):
            return url
        while self._urls.setdefault(name, url) != url:
            # Another file of the same name, on another host.
            name = f"{local_file(f'/{urlsplit(url).hostname}') or 1}/{name}"
        return name

    def download(self, source: Source) -> None:
        from flask_contentapi.importers.source import SourceError

        for name, url in watched(self._urls.items(), "downloading files", len(self._urls)):
            target = self._folder / name
            try:
                if not target.is_file():
                    target.parent.mkdir(parents=True, exist_ok=True)
                    with replacing(target) as part, part.open("wb") as stream:
                        source.download(url, stream)
            except SourceError as error:
                click.echo(f"Note: {error.message}", err=True)
            except OSError as error:
                why = error.strerror
                click.echo(f"Note: {url} cannot be kept as {name!r}: {why}.", err=True)


# Code that was written, or is there.


def _registry_of(folder: Path) -> Registry:
    return Registry(runpy.run_path(str(folder / "models.py"))["TYPES"])


def _application_of(folder: Path) -> Flask:
    own, sys.path[:] = [*sys.path], [str(folder.absolute()), *sys.path]
    sys.modules.pop("models", None)
    try:
        app: Flask = runpy.run_path(str(folder / "app.py"))["app"]
    finally:
        sys.path[:] = own
        sys.modules.pop("models", None)
    return app


def _verify(url: str, app: Flask, state: State, options: Mapping[str, Any]) -> None:
    from flask_contentapi.importers.verify import Verification

    # No answer is kept.
    with _open(url, Path(":memory:"), options) as source:
        verification = Verification(source, app, state)
        verification.run(options["requests"], options["seed"])
    for line in verification.report():
        click.echo(line)
    if verification.unexplained:
        sys.exit(1)
