"""The command that makes a site of a folder of Markdown."""

from __future__ import annotations

import filecmp
import os
import re
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click
import orjson

from flask_contentapi.errors import ConfigurationError
from flask_contentapi.files import Fault, Unreadable, content_error, decode, parse_json, replacing
from flask_contentapi.importers.objects import FILED
from flask_contentapi.importers.pull import (
    known_folder,
    new_folder,
    refuse_loss,
    require_extra,
    tell,
    write_code,
    write_content,
)
from flask_contentapi.importers.records import PulledContent
from flask_contentapi.importers.refresh import Changes
from flask_contentapi.kinds import INT64
from flask_contentapi.logs import amounts, interruption_told

if TYPE_CHECKING:
    from flask_contentapi.importers.markdown import MarkdownFolder

#: The file with the ids of paths, and with the keys of each record that the import has written.
_IDS = "ids.json"
#: The keys that every import writes.
_ALWAYS = {"id", "type", "parent", "title", "slug", "body"}


def is_language(code: Any) -> bool:
    """Whether a value is the code of a language, as ``pt-br``."""
    return isinstance(code, str) and bool(re.fullmatch("[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*", code))


def import_folder(source: Path, folder: Path, options: Mapping[str, Any]) -> None:
    """Makes a site of a folder of Markdown, or refreshes the one that is there.

    :param source: the folder of Markdown.
    :param folder: that of the site.
    :param options: those of the command.
    """
    require_extra("import", "markdown_it", "ruamel.yaml")
    if folder.is_dir() and any(folder.iterdir()):
        _refresh(source, folder, options)
    else:
        _make(source, folder, options)


def _read(
    source: Path,
    known: Mapping[str, Any],
    options: Mapping[str, Any],
    taken: Iterable[tuple[str, Any]] = (),
) -> MarkdownFolder:
    from flask_contentapi.importers.markdown import MarkdownFolder

    return MarkdownFolder(source, known, options, taken)


def _static(source: Path, options: Mapping[str, Any]) -> list[str]:
    """The paths from the folder of Markdown to those that ``--static`` names."""
    return [os.path.relpath(folder.resolve(), source.resolve()) for folder in options["static"]]


def _make(source: Path, folder: Path, options: Mapping[str, Any]) -> None:
    known = {name: options[name] for name in ("keep_markdown", "languages")}
    known["static"] = _static(source, options)
    objects = _read(source, known, options)
    with new_folder(folder) as part:
        origin = f"the folder {source.resolve().name}"
        registry = write_code(objects, part, origin, prefix="/api/v2")
        content = PulledContent(objects, registry)
        with objects.located():
            counts = write_content(content, registry, part / "content")
        _copy(objects, part / "media", part / "media")
        _write_ids(part, known, objects, _stated(content))
    tell({**objects.told, **content.told})
    click.echo(f"{amounts(counts)} are in {folder}. cd {folder} && flask run")


def _refresh(source: Path, folder: Path, options: Mapping[str, Any]) -> None:
    # Before any code in the folder is run.
    known = _read_ids(folder / _IDS)
    with known_folder(folder) as (backend, registry), interruption_told(backend.reader):
        if options["keep_markdown"] and not known["keep_markdown"]:
            raise ConfigurationError(
                f"The bodies in {str(folder)!r} are HTML; --keep-markdown needs a new folder."
            )
        if options["languages"] not in ([], known["languages"]):
            told = ", ".join(known["languages"]) or "not told"
            raise ConfigurationError(
                f"The languages in {str(folder)!r} are {told}; others need a new folder."
            )
        known["static"] = _static(source, options) or known["static"]
        for name in known["static"]:
            if not os.path.isdir(source.resolve() / name):
                raise ConfigurationError(
                    f"{str(source / name)!r}, which --static named before, is no folder any more; "
                    "name another by --static."
                )
        refuse_loss(backend, options)
        objects = _read(source, known, options, backend.dump())
        now = _stated(PulledContent(objects, registry))
        before: dict[str, str] = known["stated"]
        both = {k: f"{now.get(k, '')} {before.get(k, '')}" for k in {**before, **now}}
        stated = {
            (section, int(identity)): {*keys.split(), *_ALWAYS}
            for (section, identity), keys in ((key.split(), keys) for key, keys in both.items())
        }
        with objects.located():
            changes = Changes(backend, registry, objects, stated=stated)
        media = folder / "media"
        with TemporaryDirectory(prefix=".import-", dir=folder) as copies:
            copied = _copy(objects, media, Path(copies))
            # Ids come first: no other run may give them to other paths.
            _write_ids(folder, known, objects, both)
            if changes:
                changes.write()
            for name in copied:
                (media / name).parent.mkdir(parents=True, exist_ok=True)
                os.replace(Path(copies, name), media / name)
        _write_ids(folder, known, objects, now)
        paths = objects.paths()
        for section, identity in changes.gone:
            name = paths.get((section, identity), "")
            if section != "pages" and name and name not in objects.files:
                with suppress(OSError):
                    (media / name).unlink()
    copies_told = (f"* media/{name}" for name in copied)
    tell({**objects.told, **changes.content.told}, chain(changes.told(paths), copies_told))


def _stated(content: PulledContent) -> dict[str, str]:
    """The keys of records, besides those that all have, by section and id."""
    return {
        f"{section} {record['id']}": " ".join(sorted(record.keys() - _ALWAYS))
        for section in FILED
        for record in content.get(section, ())
    }


def _copy(objects: MarkdownFolder, media: Path, into: Path) -> list[str]:
    """Copies files that are not among the media yet, or are others; returns their names."""
    copied = []
    for name, file in objects.files.items():
        if (media / name).is_file() and filecmp.cmp(file, media / name, shallow=False):
            continue
        (into / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, into / name)
        copied.append(name)
    return copied


def _write_ids(
    folder: Path, known: Mapping[str, Any], objects: MarkdownFolder, stated: Mapping[str, str]
) -> None:
    now = {**known, **objects.known, "stated": stated}
    text = orjson.dumps(now, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    with replacing(folder / _IDS) as part:
        part.write_bytes(text)


def _read_ids(file: Path) -> dict[str, Any]:
    try:
        known = parse_json(decode(file.read_bytes()))
    except OSError as error:
        raise ConfigurationError(
            f"{str(file.parent)!r} has files, but is nothing that was imported: {file.name} cannot "
            f"be read: {error.strerror}. Name a new folder."
        ) from None
    except Unreadable as error:
        raise content_error(str(file), *error.faults) from None
    wanted = '{"keep_markdown": false, "pages": {"/": 1}, "images": {}, "documents": {}}'
    wrong = [f"must have ids by paths, each of them once, as {wanted}"]
    with suppress(AttributeError, KeyError, TypeError):
        known = {"keep_markdown": False, "languages": [], "static": [], "stated": {}, **known}
        ids = [known[name].values() for name in FILED]
        if (
            all(type(value) is int and 0 < value in INT64 for value in chain(*ids))
            and all(len({*own}) == len(own) for own in ids)
            and all(isinstance(keys, str) for keys in known["stated"].values())
            and all(map(is_language, known["languages"]))
            and all(isinstance(name, str) for name in known["static"])
        ):
            files = (*known["images"], *known["documents"])
            outside = (n for n in files if n.startswith("/") or ".." in n.split("/"))
            wrong = [f"has the path {name!r}, which leads out of the media" for name in outside]
    if wrong:
        raise content_error(str(file), *(Fault(0, why) for why in wrong))
    return dict(known)
