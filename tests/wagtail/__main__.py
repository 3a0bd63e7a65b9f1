"""Installs Wagtail into ``.venv-wagtail``, for the tests that pull a real one."""

from __future__ import annotations

import subprocess
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parent.parent / ".venv-wagtail"


def main() -> None:
    """Makes the environment, if it is missing, and installs what is required."""
    python = FOLDER / "bin" / "python"
    if not python.exists():
        venv.create(FOLDER, with_pip=True)
    install = ["-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.check_call([str(python), *install, "-r", str(HERE / "requirements.txt")])


if __name__ == "__main__":
    main()
