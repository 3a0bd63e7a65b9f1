"""Starts the benchmark: ``python3 bench``; ``--help`` lists its options."""

import runpy
import subprocess
import sys
from pathlib import Path

if __name__ == "__main__":
    root = Path(__file__).resolve().parent.parent
    python = runpy.run_path(str(root / "demo" / "environment.py"))["environment"]("bench")
    raise SystemExit(subprocess.call([python, "-m", "bench.compare", *sys.argv[1:]], cwd=root))
