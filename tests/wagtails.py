"""A real Wagtail, which is pulled."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pages import ROOT
from tests.servers import free_port, start, stop
from tests.stores import leave_out

HERE = ROOT / "tests" / "wagtail"
PYTHON = ROOT / ".venv-wagtail" / "bin" / "python"


class Wagtail:
    """A site of Wagtail with 300 pages.

    :param folder: where its database and files are.
    """

    def __init__(self, folder: Path) -> None:
        self._environment = {
            **os.environ,
            "WAGTAIL_FOLDER": str(folder),
            "DJANGO_SETTINGS_MODULE": "settings",
            "PYTHONPATH": str(HERE),
        }
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/api/v2/"

    def run(self, *arguments: str) -> None:
        """Makes the content, or changes it."""
        command = [str(PYTHON), str(HERE / "make.py"), *arguments]
        subprocess.run(command, env=self._environment, check=True, timeout=900)

    def measure(self, python: str, paths: list[str], **variables: str) -> list[float]:
        """How many requests a second are answered for each path."""
        command = [python, str(HERE / "measure.py"), *paths]
        environment = {**self._environment, **variables}
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        return [float(line) for line in done.stdout.split()]

    def serve(self) -> subprocess.Popen[bytes]:
        """Starts the server."""
        options = ["--noreload", "--skip-checks", f"127.0.0.1:{self.port}"]
        command = [PYTHON, "-m", "django", "runserver", *options]
        return start(command, self.port, env=self._environment)


def running_wagtail(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wagtail]:
    """A site that runs. Its content is kept until its code changes, as it takes long to make."""
    if not PYTHON.exists():
        leave_out("Wagtail is not installed (python3 tests/wagtail)")
    names = ("make.py", "settings.py", "orchard/models.py", "requirements.txt")
    code = b"".join((HERE / name).read_bytes() for name in names)
    made = PYTHON.parent.parent / f"site-{hashlib.sha256(code).hexdigest()[:16]}"
    if not made.exists():
        new = tmp_path_factory.mktemp("made")
        Wagtail(new).run()
        shutil.copytree(new, made.with_suffix(".part"), dirs_exist_ok=True)
        made.with_suffix(".part").rename(made)
    folder = tmp_path_factory.mktemp("wagtail") / "site"
    shutil.copytree(made, folder)
    site = Wagtail(folder)
    server = site.serve()
    yield site
    stop(server)
