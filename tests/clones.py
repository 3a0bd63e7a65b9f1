"""Folders like a clone of the repository, for tests that start or change something in one."""

from __future__ import annotations

import hashlib
import shutil
import sys
from pathlib import Path

from tests.pages import ROOT

__all__ = ["copy_demo"]


def copy_demo(folder: Path) -> None:
    """Makes a folder like a clone in which the demo has been started before."""
    leave = shutil.ignore_patterns("instance", "__pycache__")
    shutil.copytree(ROOT / "demo", folder / "demo", ignore=leave)
    shutil.copy(ROOT / "setup.cfg", folder)
    environment = folder / ".venv"
    environment.mkdir()
    for name in ("bin", "lib"):
        (environment / name).symlink_to(Path(sys.prefix, name))
    shutil.copy(Path(sys.prefix, "pyvenv.cfg"), environment)
    installed = hashlib.sha256((folder / "setup.cfg").read_bytes()).hexdigest()
    (environment / "installed-demo").write_text(installed)
