"""Typed clients are generated from the description of the demo, checked strictly, and used."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo import create_app
from tests.pages import ROOT
from tests.servers import served
from tests.stores import leave_out

pytestmark = pytest.mark.slow

#: What is installed for TypeScript; the generator needs version 5 of the compiler.
_PACKAGES = ("@types/node@20", "openapi-fetch@0.17", "openapi-typescript@7", "typescript@5")
_COMPILE = "--strict --target es2022 --module esnext --moduleResolution bundler client.ts"
#: What both programs print.
PRINTED = """\
2027-01-17: Wassail, {media}
2027-02-20: Pruning morning, {media}
Journal Windfall
400 limit must be from 0 to 20.
"""


@pytest.fixture(scope="module")
def base() -> Iterator[str]:
    """The address of the demo's API."""
    app = create_app({"TESTING": True, "CMSAPI_BACKEND": "jsonfiles:content"})
    with served(app) as port:
        yield f"http://127.0.0.1:{port}/api/v2"


def run(folder: Path, *command: str) -> str:
    """The output of a command, which has to succeed."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def printed(output: str) -> list[str]:
    """The lines of a program, without the addresses of pictures."""
    return [line.partition(", http")[0] for line in output.splitlines()]


WANTED = printed(PRINTED.format(media="http"))


def test_typescript_client(base: str, tmp_path: Path) -> None:
    if shutil.which("npm") is None:
        leave_out("npm is not installed")
    shutil.copy(ROOT / "docs" / "examples" / "client.ts", tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module", "private": true}')
    run(tmp_path, "npm", "install", "--no-audit", "--no-fund", *_PACKAGES)
    run(tmp_path, "npx", "openapi-typescript", f"{base}/openapi.json", "-o", "windfall.ts")
    run(tmp_path, "npx", "tsc", *_COMPILE.split())
    assert printed(run(tmp_path, "node", "client.js", base)) == WANTED


def test_python_client(base: str, tmp_path: Path) -> None:
    shutil.copy(ROOT / "docs" / "examples" / "client.py", tmp_path)
    generator = str(Path(sys.executable).with_name("openapi-python-client"))
    source = ["--url", f"{base}/openapi.json", "--output-path", "windfall", "--meta", "none"]
    run(tmp_path, generator, "generate", *source)
    run(tmp_path, sys.executable, "-m", "mypy", "--strict", "client.py")
    assert printed(run(tmp_path, sys.executable, "client.py", base)) == WANTED
