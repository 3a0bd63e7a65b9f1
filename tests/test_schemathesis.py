"""Requests made from the description alone find nothing that does not fit it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from tests.conformance.reference_site import create_app
from tests.conftest import CONFORMANCE
from tests.servers import served

pytestmark = [pytest.mark.slow, pytest.mark.backends("memory", "sqlite")]

#: No schema can say which pages there are, which parameters go together and which fields a type
#: has, so that also a request that fits it may be a 400.
_CONFIGURATION = """
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "3xx", "400", "403", "404"]
"""


def test_nothing_is_found(backend: str, tmp_path: Path) -> None:
    content = json.loads((CONFORMANCE / "beyond-content.json").read_text(encoding="utf-8"))
    app = create_app(content, backend, {"CMS_I18N_ENABLED": True, "SECRET_KEY": "owl"})
    examples = 1000 if settings.get_current_profile_name() == "ci" else 30
    (tmp_path / "schemathesis.toml").write_text(_CONFIGURATION)
    program = Path(sys.executable).with_name("schemathesis")
    options = ["--checks=all", f"--max-examples={examples}", "--seed=1", "--no-color"]
    # As for all generated requests: a busy machine is no mistake.
    options += ["--suppress-health-check=too_slow"]
    with served(app) as port:
        address = f"http://127.0.0.1:{port}/api/v2/openapi.json"
        command = [str(program), "run", address, *options]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
