"""Runs all checks: ``python3 tests``, on all backends and cores; arguments are for pytest."""

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
    failed = []
    options = ["--backends=all", *sys.argv[1:]]
    for check in (*CHECKS, ["pytest", *options]):
        print("==", *check, flush=True)
        if subprocess.call([python, "-m", *check], cwd=ROOT):
            failed.append(" ".join(check))
    print(f"Failed: {', '.join(failed)}." if failed else "All checks passed.")
    return len(failed)


if __name__ == "__main__":
    raise SystemExit(main())
