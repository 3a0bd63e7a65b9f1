"""The package works where it is installed from its files, with the oldest and newest libraries."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from tests.pages import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.backends("memory")]

#: What the recorded requests need besides the product.
TOOLS = ("hypothesis", "jsonschema-rs", "pytest-xdist")
EXTRAS = "markdown,richtext,sqlite,testing"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source distribution."""
    made = tmp_path_factory.mktemp("distributions")
    source = made / "source"
    leave = shutil.ignore_patterns(".*", "*.egg-info", "_build", "instance", "__pycache__")
    shutil.copytree(ROOT, source, ignore=leave)
    run("build", "--outdir", str(made / "dist"), str(source))
    return made / "dist"


@pytest.fixture(scope="module")
def wheel(folder: Path) -> Path:
    (found,) = folder.glob("*.whl")
    return found


def run(
    module: str, *arguments: str, python: str | Path = sys.executable, cwd: Path | None = None
) -> str:
    """What a command prints, which has to succeed."""
    command = [str(python), "-m", module, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_both_files_are_fit_for_an_index(folder: Path) -> None:
    run("twine", "check", "--strict", *map(str, folder.iterdir()))


def test_every_file_of_the_product_is_in_both(folder: Path, wheel: Path) -> None:
    (source,) = folder.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as files, tarfile.open(source) as sources:
        names, source_names = {*files.namelist()}, {*sources.getnames()}
    top = source.name.removesuffix(".tar.gz")
    for base in (ROOT, ROOT / "backends"):
        for package in base.glob("flask_contentapi*/"):
            for file in package.rglob("*"):
                if file.suffix in (".py", ".js", ".css", ".html", ".typed"):
                    assert file.relative_to(base).as_posix() in names
                    assert f"{top}/{file.relative_to(ROOT).as_posix()}" in source_names


@pytest.mark.parametrize("versions", ["oldest", "newest"])
def test_recorded_requests_with_libraries_in_the(
    versions: str, wheel: Path, tmp_path: Path
) -> None:
    venv.create(tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    constraints = tmp_path / "constraints.txt"
    constraints.write_text("\n".join(oldest()) if versions == "oldest" else "")
    install = ["install", "-qq", "--disable-pip-version-check", "-c", str(constraints)]
    run("pip", "--python", str(python), *install, f"{wheel}[{EXTRAS}]", *TOOLS)
    shutil.copytree(ROOT / "tests", tmp_path / "tests")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  backends: on some\n  slow: slow\n")
    options = ["-q", "-n", "2", "--backends", "memory,sqlite", "-k", "beyond"]
    said = run("pytest", *options, "tests/conformance", python=python, cwd=tmp_path)
    assert re.search("24 passed", said), said


def oldest() -> list[str]:
    """The oldest versions that the package allows of what it needs."""
    declared = configparser.ConfigParser()
    declared.read(ROOT / "setup.cfg")
    extras = [declared["options.extras_require"][name] for name in EXTRAS.split(",")]
    lines = "\n".join([declared["options"]["install_requires"], *extras]).split()
    return [re.sub(r"\[.*?\]", "", line.replace(">=", "==")) for line in lines]
