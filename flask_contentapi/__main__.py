"""The command that needs no site: ``python -m flask_contentapi pull URL FOLDER``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from flask_contentapi.cli import progress_shown
from flask_contentapi.pull.command import pull_folder, with_options


@click.group()
def main() -> None:
    """Makes sites of what is there."""


@main.command()
@click.argument("url")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@with_options
def pull(url: str, folder: Path, **options: Any) -> None:
    """Make a site in FOLDER of the API at URL, or refresh the one that is there.

    URL is the address before pages/, such as https://cms.example/api/v2/.
    """
    with progress_shown():
        pull_folder(url, folder, options)


if __name__ == "__main__":
    main(prog_name="python -m flask_contentapi")
