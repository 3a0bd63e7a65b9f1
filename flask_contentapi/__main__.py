"""The commands that need no site: ``python -m flask_contentapi pull`` and ``import``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from flask_contentapi.cli import failures_told, progress_shown
from flask_contentapi.importers.imports import import_folder, is_language
from flask_contentapi.importers.pull import PULL_OPTIONS, pull_folder


@click.group()
def main() -> None:
    """Makes sites of what is there."""


@main.command(params=[*PULL_OPTIONS])
@click.argument("url")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def pull(url: str, folder: Path, **options: Any) -> None:
    """Make a site in FOLDER of the API at URL, or refresh the one that is there.

    URL is the address before pages/, such as https://cms.example/api/v2/.
    """
    with failures_told(), progress_shown():
        pull_folder(url, folder, options)


def _read_languages(context: object, parameter: object, given: Iterable[str]) -> list[str]:
    for code in given:
        if not is_language(code):
            raise click.BadParameter(f"{code!r} is no code of a language, as de or pt-br.")
    return [*dict.fromkeys(given)]


@main.command("import")
@click.argument("source", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--static",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Find files that addresses name from the root on, as /logo.png, here, too.",
)
@click.option(
    "--language",
    "languages",
    multiple=True,
    callback=_read_languages,
    help="A language in names of files and folders, as de in about.de.md; the main one first.",
)
@click.option("--keep-markdown", is_flag=True, help="Keep bodies as Markdown, not as rich text.")
@click.option("--keep-links", is_flag=True, help="Keep links that lead nowhere as they are.")
@click.option("--yes", is_flag=True, help="Proceed even if this deletes hand-written files.")
def import_(source: Path, folder: Path, **options: Any) -> None:
    """Make a site in FOLDER of the Markdown in SOURCE, or refresh the one that is there.

    SOURCE is the folder with the pages, such as content/ of Hugo or docs/ of MkDocs.
    """
    with failures_told(), progress_shown():
        import_folder(source, folder, options)


if __name__ == "__main__":
    main(prog_name="python -m flask_contentapi")
