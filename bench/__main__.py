"""Starts the benchmark: ``python3 bench``; ``python3 bench --help`` lists its options."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Makes the virtual environment and runs the command in it."""
    environment = runpy.run_path(str(ROOT / "demo" / "environment.py"))["environment"]
    python = environment("bench")
    return subprocess.call([python, "-m", "bench.command", *sys.argv[1:]], cwd=ROOT)


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except KeyboardInterrupt:
        print()
