"""Builds the documentation and opens it in a browser: ``python3 docs``."""

from __future__ import annotations

import runpy
import subprocess
import webbrowser
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main() -> int:
    """Returns what Sphinx returns."""
    environment = runpy.run_path(str(HERE.parent / "demo" / "environment.py"))["environment"]
    command = [str(environment("docs")), "-m", "sphinx", "--quiet", str(HERE), str(HERE / "_build")]
    if failed := subprocess.call(command):
        return failed
    address = (HERE / "_build" / "index.html").as_uri()
    print(f"The documentation is at {address}")
    webbrowser.open(address)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
