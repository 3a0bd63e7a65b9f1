"""Runs all checks: ``python3 tests``, on all cores; arguments for pytest replace that option."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHECKS = (
    ["ruff", "check"],
    ["ruff", "format", "--check"],
    ["mypy"],
    ["sphinx", "--fail-on-warning", "--keep-going", "--quiet", "docs", "docs/_build"],
)


def main() -> int:
    """Runs the checks and returns the number that failed."""
    environment = runpy.run_path(str(ROOT / "demo" / "environment.py"))["environment"]
    python = environment("dev")
    failed = 0
    options = sys.argv[1:] or ["--numprocesses=auto", "--dist=worksteal"]
    for check in (*CHECKS, ["pytest", *options]):
        print("==", *check, flush=True)
        failed += bool(subprocess.call([python, "-m", *check], cwd=ROOT))
    print("All checks passed." if not failed else f"{failed} checks failed.")
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
