"""The commands under ``flask contentapi``."""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from io import StringIO
from pathlib import Path
from typing import Any, TextIO, TypeVar
from urllib.parse import urlencode

import click
import orjson
from flask import current_app
from flask.cli import FlaskGroup, with_appcontext

from flask_contentapi.backend import Backend, Reader, find_backend, installed_backends
from flask_contentapi.content import rules_over
from flask_contentapi.declarations import Endpoint, ObjectType
from flask_contentapi.errors import BackendUnavailable, ConfigurationError, ContentError, Problem
from flask_contentapi.files import (
    ENDINGS,
    Record,
    read_json_file,
    read_json_lines,
    write,
    write_file,
)
from flask_contentapi.importers.pull import PULL_OPTIONS, pull_site
from flask_contentapi.kinds import INT64, DateTime, utc
from flask_contentapi.logs import amounts, interruption_told, watching
from flask_contentapi.openapi import describe
from flask_contentapi.query import Query, Viewer
from flask_contentapi.registry import SECTIONS
from flask_contentapi.renditions import Picture, RenditionError
from flask_contentapi.settings import Settings, doubtful_settings, no_backend
from flask_contentapi.sites import Site, is_absolute
from flask_contentapi.sources import RowLayout, picture_of
from flask_contentapi.state import State

T = TypeVar("T")


def is_command() -> bool:
    """Whether one of our commands is running, which reports problems itself."""
    context = click.get_current_context(silent=True)
    command = context and context.command
    return isinstance(command, FlaskGroup) or command in COMMANDS


@contextmanager
def failures_told() -> Iterator[None]:
    """Tells in a sentence why a command cannot read or write files or its output.

    A command that is ended by a signal removes what it has begun, as on Ctrl-C.
    """
    ending = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    # There is none if it is closed.
    output = sys.stdout or StringIO()
    try:
        yield
        output.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        what = repr(error.filename) if error.filename else "The output or a file"
        try:
            output.flush()
        except OSError:
            # Python would try to write the rest on exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())
        said = f"{what} cannot be read or written: {error.strerror or error}."
        raise click.ClickException(said) from error
    finally:
        signal.signal(signal.SIGTERM, ending)


def _pass_state(command: Callable[..., None]) -> Callable[..., None]:

    @wraps(command)
    def run(**options: Any) -> None:
        parent = click.get_current_context().parent
        with failures_told():
            command(current_app.extensions["contentapi"][parent and parent.info_name], **options)

    return with_appcontext(run)


def _output() -> TextIO:
    """The standard output, for commands that are of no use without it."""
    if sys.stdout is None:
        raise click.ClickException("The standard output is closed.")
    return sys.stdout


@click.command()
@_pass_state
def types(state: State) -> None:
    """Show the declared types and what the API shows of them."""
    for endpoint in state.registry.endpoints.values():
        click.secho(f"{state.settings.url_prefix}/{endpoint.name}/", bold=True)
        for declared in endpoint.types.values():
            click.echo(f"  {declared.label}")
            for line in _field_lines(declared):
                click.echo(f"    {line}")


def _field_lines(declared: ObjectType) -> Iterator[str]:
    shown = {export.column.name: name for name, export in declared.exports.items() if export.column}
    searched = {*declared.content_class.built_in_search_fields}
    searched |= {column.name for column in declared.searched}
    for name, column in declared.columns.items():
        notes = [column.target.served_at.name] if column.target else []
        notes += [column.child.label] if column.child else []
        notes += ["not shown"] if name not in shown else []
        notes += [f"shown as {shown[name]}"] if shown.get(name, name) != name else []
        notes += ["searched"] if name in searched else []
        yield f"{name:24}{column.kind.name:12}{', '.join(notes)}".rstrip()
    for name, export in declared.exports.items():
        if export.column is None and not export.in_meta:
            yield f"{name:24}computed"


_NO_DEFAULT_SITE = (
    "No site is the default, so that lists of pages are refused at all hosts but those of the "
    "sites. Give one is_default."
)


@click.command()
@_pass_state
def check(state: State) -> None:
    """Report everything that is wrong with the content.

    The exit status is 1 if anything is found. Mistakes in the declared types, and in the
    configuration where they make it unusable, are reported by every command.
    """
    problems = [*_configuration_problems(state), *map(str, _content_problems(state.backend))]
    notes = [*state.backend.notes()]
    # Content with problems may be unreadable.
    sites = [] if problems else state.backend.read(lambda reader: [*reader.sites])
    if sites and not any(site.is_default for site in sites):
        notes.insert(0, _NO_DEFAULT_SITE)
    for line in (*problems, *(f"Note: {note}" for note in notes)):
        click.echo(line)
    if problems:
        click.echo(f"{_problem_count(len(problems))} found.")
        sys.exit(1)
    click.echo("Everything is in order.")


def _content_problems(backend: Backend, *, values: bool = True) -> list[Problem]:
    with progress_shown():
        return [*backend.check(values=values)]


def _problem_count(number: int) -> str:
    return f"{number} problem{'s' * (number > 1)}"


def _configuration_problems(state: State) -> Iterator[str]:
    if not state.backend_name:
        yield no_backend(state.config_prefix)
    instances: Iterable[State] = current_app.extensions["contentapi"].values()
    prefixes = [other.config_prefix for other in instances]
    yield from doubtful_settings(current_app.config, state.config_prefix, prefixes)


_yes = click.option("--yes", is_flag=True, help="Proceed even if this deletes hand-written files.")


@click.command()
@click.argument("target", default="-")
@_yes
@_pass_state
def dump(state: State, target: str, yes: bool) -> None:
    """Write the whole content to TARGET.

    TARGET is a file whose name ends in .json or .jsonl (one record per line, for much content), a
    backend such as jsonfiles:content, or - for the standard output.
    """
    if _is_backend(target):
        with closing(_open_backend(state, target)) as other, interruption_told(other.reader):
            written = _replace(other, *_sections(state.backend.dump), yes=yes)
        # The address is not shown, because it may contain a password.
        click.echo(f"{written} written to {target.partition(':')[0]}.")
    elif target == "-":
        write(state.backend.dump(), _output())
    elif target.endswith(ENDINGS):
        counts: Counter[str] = Counter()
        write_file(_with_counts(_with_progress(state.backend.dump()), counts), target)
        click.echo(f"{amounts(counts)} written to {target}.")
    else:
        hint = "must end in .json or .jsonl; a backend is named as jsonfiles:content"
        raise click.FileError(target, f"the name of the file {hint}")
    for note in state.backend.notes():
        click.echo(f"Note: {note}", err=True)


@click.command()
@click.argument("source")
@_yes
@_pass_state
def load(state: State, source: str, yes: bool) -> None:
    """Replace the whole content with that of SOURCE.

    On an error nothing is replaced. SOURCE is a file that dump has written, another backend such
    as jsonfiles:content, or - for the standard input.
    """
    _require_persistent(state)
    with interruption_told(state.backend.reader):
        if _is_backend(source):
            with closing(_open_backend(state, source)) as other:
                loaded = _replace(state.backend, *_sections(other.dump), yes=yes)
        elif source.endswith(".jsonl"):
            loaded = _replace(state.backend, *_sections(lambda: read_json_lines(source)), yes=yes)
        else:
            content = read_json_file(source)
            known = (*SECTIONS, *state.registry.endpoints)
            # Anything but a list, and any other section, is refused when it is read.
            counts = {
                name: len(some) if name in known and isinstance(some, list) else 1
                for name, some in content.items()
            }
            loaded = _replace(state.backend, content, counts, yes=yes)
        click.echo(f"{loaded} loaded into {state.backend_name}.")
        problems = len(_content_problems(state.backend, values=False))
    if problems:
        click.echo(f"The command flask contentapi check finds {_problem_count(problems)} in it.")


def _require_persistent(state: State) -> None:
    if not state.backend.persistent:
        key = f"{state.config_prefix}BACKEND"
        unset = "" if state.backend_name else f"{key} is not set. "
        raise ConfigurationError(
            f"{unset}The backend keeps nothing when this command ends; give the content to it in "
            f"Python, or name another one in {key}, such as sqlite:///site.db."
        )


def _replace(
    backend: Backend, content: Mapping[str, Any], counts: Mapping[str, int], *, yes: bool
) -> str:
    lost = backend.lost_by_loading()
    if not any(counts.values()):
        lost = "There is nothing in it, so that all content would go."
    if lost and not yes:
        raise ConfigurationError(f"{lost} If that is meant, say --yes.")

    def watch(objects: Iterable[T], label: str, total: int | None = None) -> Iterator[T]:
        return _with_progress(objects, label, total or counts.get(label.rpartition(" ")[2]))

    with watching(watch):
        backend.load(content)
    return amounts(counts)


def _sections(read: Callable[[], Iterable[Record]]) -> tuple[Mapping[str, Any], Mapping[str, int]]:
    """Records by section, read again for each section so that they need not all be in memory, and
    how many records each section has.

    :param read: returns all records, each with its section.
    """
    counts = Counter(section for section, _ in read())
    return {section: _section(read, section) for section in counts}, counts


def _section(read: Callable[[], Iterable[Record]], wanted: str) -> Iterator[Any]:
    for section, record in read():
        if section == wanted:
            yield record


@click.command(params=[*PULL_OPTIONS])
@click.argument("url")
@_pass_state
def pull(state: State, url: str, **options: Any) -> None:
    """Refresh the content with that of the API at URL.

    URL is the address before pages/, such as https://cms.example/api/v2/. Only what has changed
    there is written, all or nothing. Objects that are not there any more go here as well.
    """
    _require_persistent(state)
    with progress_shown(), interruption_told(state.backend.reader):
        pull_site(url, current_app, state, options)


@click.command("init-db")
@_pass_state
def init_db(state: State) -> None:
    """Prepare the storage: create files and tables that are missing.

    What is there already stays as it is.
    """
    state.backend.create()
    click.echo("The storage is ready.")


_UNFIT = (
    "Nothing has been changed. Make a dump with the code of before, change these values in it, and "
    "load it; or give a field that is new a load_default."
)


@click.command()
@click.option("--forget", is_flag=True, help="Delete the values of fields that types once had.")
@_pass_state
def migrate(state: State, forget: bool) -> None:
    """Fit the storage to the types as declared now.

    Nothing that is stored is lost, unless you ask for it with --forget.
    """
    try:
        with progress_shown(), interruption_told(state.backend.reader):
            done = [*map(click.echo, state.backend.migrate(forget=forget))]
    except ContentError as error:
        raise click.ClickException(f"{error}\n{_UNFIT}") from error
    if not done:
        click.echo("There is nothing to change.")


@click.command()
@_pass_state
def reload(state: State) -> None:
    """Take in changes that were made behind the backend's back.

    All processes of the site take them in. JSON files are read again, and so are all rows of
    followed models. For other content in databases it does nothing.
    """
    state.backend.reload()


@click.command()
@_pass_state
def openapi(state: State) -> None:
    """Write the description of the API by OpenAPI."""
    settings = state.settings
    made = describe(current_app.name, state.parameters)
    servers = [{"url": f"{settings.base_url or ''}{settings.url_prefix}"}]
    text = orjson.dumps({**made, "servers": servers}, option=orjson.OPT_INDENT_2)
    click.echo(text, file=_output())


def _with_object(command: Callable[..., None]) -> Callable[..., None]:
    endpoint = click.argument("endpoint")
    return endpoint(click.argument("id", type=click.IntRange(INT64[0], INT64[-1]))(command))


def _known_endpoint(state: State, name: str) -> Endpoint:
    known = state.registry.endpoints
    if name not in known:
        raise click.BadParameter(f"{name} is no endpoint; there are {', '.join(known)}.")
    return known[name]


@click.command()
@_with_object
@click.option(
    "--max-age",
    type=click.IntRange(1),
    default=3600,
    show_default=True,
    help="How long it works, in seconds.",
)
@click.option("--at", type=click.DateTime(), help="A moment to come at which it is shown, UTC.")
@_pass_state
def preview(state: State, endpoint: str, id: int, max_age: int, at: datetime | None) -> None:
    """Print the address of an object that is not public yet.

    ENDPOINT and ID name the object, as pages 5.
    """
    settings, known = state.settings, _known_endpoint(state, endpoint)
    with state.backend.snapshot_reader() as reader:
        found = _read_hidden(reader, known, id, Viewer(state.clock()))
        if found is None:
            raise click.BadParameter(f"There is no {id} in {endpoint}.")
        place = reader.sites.locate(found["url_path"], settings.i18n) if known.tree else None
        site = reader.sites.name(place[0]) if place else ""
    try:
        token = state.previews.write((endpoint, id), max_age, at)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    query = urlencode({**({"site": site} if site else {}), "preview": token})
    click.echo(f"{settings.base_url or ''}{settings.url_prefix}/{endpoint}/{id}/?{query}")


@click.command()
@click.option("--purge", is_flag=True, help="Remove those that are valid no longer; make none.")
@_pass_state
def renditions(state: State, purge: bool) -> None:
    """Make the renditions of all images beforehand.

    Those that are there already stay. The exit status is 1 if one cannot be made.
    """
    known = state.renditions
    if not known.are_made_here:
        key = f"{state.config_prefix}RENDITIONS"
        raise click.ClickException(f"No renditions are made here; name some in {key}.")
    pictures = [*_pictures(state)]
    if purge:
        valid = (known.path(*each, name) for each in pictures for name in known.specs)
        click.echo(f"{len([*known.remove(valid)])} removed.")
        return
    made, problems = 0, []
    for endpoint, picture in _with_progress(pictures, "images", len(pictures)):
        try:
            for name in known.specs:
                made += not known.path(endpoint, picture, name).is_file()
                known.file(endpoint, picture, name)
        except RenditionError as error:
            made -= 1
            where = f" It would be {error.missing!r}." if error.missing else ""
            problems.append(f"{endpoint} {picture.id}: {error}{where}")
    for line in (*problems, f"{made} made."):
        click.echo(line)
    if problems:
        sys.exit(1)


def _pictures(state: State) -> Iterator[tuple[str, Picture]]:
    for endpoint in (end for end in state.registry.endpoints.values() if end.images):
        layout = RowLayout(endpoint.base)
        picture = picture_of(layout)
        with state.backend.snapshot_reader() as reader:
            viewer = Viewer(state.clock(), everything=True)
            rows = reader.select(Query(endpoint.name, (*layout.columns,), viewer)).rows
        images = map(picture, rows)
        yield from ((endpoint.name, i) for i in images if i.file and not is_absolute(i.file))


@click.command()
@_with_object
@_pass_state
def why(state: State, endpoint: str, id: int) -> None:
    """Say why an object is in no list, or in which lists it is.

    ENDPOINT and ID name the object, as pages 5.
    """
    known, viewer = _known_endpoint(state, endpoint), Viewer(utc(state.clock()))
    settings = state.settings
    with state.backend.snapshot_reader() as reader:
        found = _read_hidden(reader, known, id, viewer)
        if found is None:
            others = (other for other in state.registry.endpoints.values() if other is not known)
            there = [o.name for o in others if _read_hidden(reader, o, id, viewer)]
            hint = f" There is one in {' and in '.join(there)}." if there else ""
            click.echo(f"There is no {id} in {endpoint}.{hint}")
            return
        reasons = _Reasons(reader, settings, known, found, viewer)
        hidden = [*reasons.hiding()]
        prefix = f"{settings.base_url or ''}{settings.url_prefix}"
        click.echo(f"{endpoint} {id} is {'not ' if hidden else ''}shown to everybody.")
        for line in hidden or reasons.listing(prefix):
            click.echo(line)


COMMANDS = (
    *(types, check, init_db, migrate, dump, load, reload, openapi, preview, why, pull),
    renditions,
)


def _is_backend(text: str) -> bool:
    """Whether a text names a backend and not a file; a Windows drive is a single letter."""
    name, colon, address = text.partition(":")
    is_address = len(name) > 1 and colon and not text.endswith(ENDINGS)
    return bool(is_address or address.startswith("//") or name in installed_backends())


def _open_backend(state: State, address: str) -> Backend:
    backend = find_backend(address, Path(current_app.root_path))
    if not backend.persistent:
        raise ConfigurationError(f"{address} keeps nothing; name a file or another backend.")
    backend.open(state.registry, logs=False)
    try:
        with backend.reader():
            return backend
    except BackendUnavailable as error:
        # What it advises would concern the site's own backend. The address can have a password.
        setting = f"FLASK_{state.config_prefix}BACKEND={address.partition(':')[0]}:..."
        said = f"{error} For this backend, commands begin with {setting}"
        raise BackendUnavailable(said) from error


def _is_unwatched() -> bool:
    return not sys.stderr.isatty()


def _with_progress(
    objects: Iterable[T], label: str = "records", total: int | None = None
) -> Iterator[T]:
    with click.progressbar(
        objects, total, label, show_pos=total is None, file=sys.stderr, hidden=_is_unwatched()
    ) as shown:
        yield from shown


def progress_shown() -> AbstractContextManager[None]:
    """Shows the progress of what is done meanwhile, with the time left."""
    return watching(_with_progress)


def _with_counts(records: Iterable[Record], counts: Counter[str]) -> Iterator[Record]:
    for section, record in records:
        counts[section] += 1
        yield section, record


# Why an object is not shown to everybody, and in which lists it is.


def _read_hidden(
    reader: Reader, endpoint: Endpoint, id: int, viewer: Viewer
) -> dict[str, Any] | None:
    """What all types of its endpoint have of an object, whoever may see it; None if there is
    none."""
    columns = ["type", *endpoint.base.columns, *["url_path"] * endpoint.tree]
    seeing = viewer._replace(everything=True)
    row = reader.fetch(endpoint.name, [id], columns, seeing).get(id)
    return None if row is None else dict(zip(columns, row, strict=True))


@dataclass(frozen=True)
class _Reasons:
    """What decides where an object is shown.

    :param found: its values, as :func:`_read_hidden` gives them.
    :param viewer: somebody whom no restriction lets in.
    """

    reader: Reader
    settings: Settings
    endpoint: Endpoint
    found: Mapping[str, Any]
    viewer: Viewer

    def hiding(self) -> Iterator[str]:
        """The reasons why it is not shown to everybody, each in a sentence; none if it is."""
        if self.endpoint.tree:
            start, end = self.found["go_live_at"], self.found["expires_at"]
            if not self.found["live"]:
                yield "It is a draft: its live is false."
            if start is not None and start > self.viewer.moment:
                yield f"It goes live at {DateTime().write(start)}."
            if end is not None and end <= self.viewer.moment:
                yield f"It expired at {DateTime().write(end)}."
            if not self._sites(self.settings.i18n):
                homes = [f"{s.homes[0].page} of {s.hostname}" for s in self.reader.sites if s.homes]
                yield (
                    "It is below a translation of a home page, which counts only with "
                    "CMS_I18N_ENABLED."
                    if self._sites(i18n=True)
                    else f"It is not below the home page of any site: {', '.join(homes)}."
                )
        page = self.found[self.endpoint.essential] if self.endpoint.essential else None
        if page is not None and not self.reader.fetch("pages", [page], ["id"], self.viewer):
            yield f"It leads to page {page}, which is not shown to everybody."
        kind, own = ("Page", "id") if self.endpoint.tree else ("Collection", "collection")
        for identity, rule in self._restricting():
            where = f"{kind} {identity}, above it,"
            if self.found[own] == identity:
                where = "It" if self.endpoint.tree else f"Its collection {identity}"
            yield f"{where} is restricted ({rule['type']}): can_view decides who sees it."

    def listing(self, prefix: str) -> Iterator[str]:
        """The lists that show it to everybody, each in a sentence."""
        if self.endpoint.redirects:
            yield f"It is in the lists of {self.found['site_name'] or 'every site'}."
        for site in self._sites(self.settings.i18n) if self.endpoint.tree else [None]:
            if not self.endpoint.redirects:
                yield self._place(prefix, site)
        label, types = self.found["type"], self.endpoint.types.values()
        if label not in self.endpoint.types:
            yield f"Its type {label!r} is not declared, so that only common fields are shown."
        named = [t.label for t in types if label in t.types or self.endpoint.is_of_all(t)]
        if named:
            yield f"A list with type= has it if that names {' or '.join(named)}."
        if self.endpoint.tree and self.settings.i18n:
            language = self.found["locale"]
            yield (
                f"A list with locale= has it if that is {language}."
                if language
                else "It has no language, so that no list with locale= has it."
            )

    def _place(self, prefix: str, site: Site | None) -> str:
        scope, asked = None, dict[str, Any]()
        if site is not None:
            scope = site.scope(self.settings.i18n)
            asked = {"site": self.reader.sites.name(site)} if site.hostname else {}
        ids = [*self.reader.ids(Query(self.endpoint.name, ("id",), self.viewer, scope))]
        place, size = ids.index(self.found["id"]), self.settings.default_limit
        if size and place >= size:
            asked["offset"] = place // size * size
        address = f"{prefix}/{self.endpoint.name}/{'?' if asked else ''}{urlencode(asked)}"
        return f"It is number {place + 1} of {len(ids)}: {address}"

    def _sites(self, i18n: bool) -> list[Site]:
        path = self.found["url_path"]
        return [site for site in self.reader.sites if path.startswith(site.paths(i18n))]

    def _restricting(self) -> Iterable[tuple[int, Mapping[str, Any]]]:
        """The pages or collections that hide it, each with its rule, from itself upwards."""
        pages, collections = self.reader.restrictions
        if self.endpoint.tree:
            identity, parent = self.found["id"], self.found["parent"]
            while identity not in pages and parent is not None:
                above = _read_hidden(self.reader, self.endpoint, parent, self.viewer)
                identity, parent = parent, above and above["parent"]
            return rules_over(pages, identity if identity in pages else None)
        # Readers do not know collections without restriction; so it is what has to be opened.
        chains = ([*rules_over(collections, nearest)] for nearest in (None, *collections))
        for rules in sorted(chains, key=len):
            viewer = self.viewer._replace(collections=frozenset(dict(rules)))
            if self.reader.fetch(self.endpoint.name, [self.found["id"]], ["id"], viewer):
                return rules
        return ()
