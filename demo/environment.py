"""A virtual environment with the project in it, which is made when it is first needed."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import venv
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_FOLDER = ROOT / ".venv"


def environment(extra: str) -> Path:
    """The Python of the environment, with the project and an extra installed."""
    if sys.version_info < (3, 11):  # noqa: UP036 - reported before anything else fails
        raise SystemExit("This needs Python 3.11 or newer.")
    if find_spec("ensurepip") is None:
        raise SystemExit("This needs pip; on Debian and Ubuntu: apt install python3-venv")
    python = _FOLDER / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if not python.exists():
        print("Making a virtual environment in .venv", flush=True)
        venv.create(_FOLDER, with_pip=True)
    # Installing again would take seconds each time, so completed installations are recorded.
    stamp = _FOLDER / f"installed-{extra}"
    wanted = hashlib.sha256((ROOT / "setup.cfg").read_bytes()).hexdigest()
    if not stamp.exists() or stamp.read_text() != wanted:
        print("Installing what is needed", flush=True)
        install = [str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
        subprocess.check_call([*install, "--editable", f"{ROOT}[{extra}]"], cwd=ROOT)
        stamp.write_text(wanted)
    return python
