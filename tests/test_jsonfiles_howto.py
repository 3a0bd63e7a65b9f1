"""The folder in the documentation is served as described."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

from flask_contentapi import ContentError
from tests.api import API
from tests.folders import Folder

pytestmark = pytest.mark.slow

TEXT = Path(__file__).parents[1].joinpath("docs/howto/json-files.rst").read_text(encoding="utf-8")
BLOCK = re.compile(r"^\.\. code-block:: \w+\n   :caption: (\S+)\n\n((?:   .*\n|\n)+)", re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    folder = Folder(tmp_path)
    for name, text in BLOCK.findall(TEXT):
        folder.put(name, textwrap.dedent(text).strip() + "\n")
    monkeypatch.syspath_prepend(tmp_path)
    return folder


def run(folder: Folder) -> API:
    names: dict[str, Any] = {"__name__": "__main__", "__file__": str(folder.path / "app.py")}
    source = (folder.path / "app.py").read_text()
    exec(source.replace("__name__", f"__name__, root_path={str(folder.path)!r}"), names)  # noqa: S102
    return API(names["app"])


def test_the_folder_is_served(folder: Folder) -> None:
    folder.put("content/pages/home/_ideas.md", "Left alone")
    api = run(folder)
    assert api.ids("pages/") == [1, 2, 3, 4]
    assert api.ids("pages/?child_of=root") == [2, 3]
    assert api.json("pages/4/")["meta"]["html_url"] == "http://localhost:5000/shop/opening-hours/"
    bread = api.json("pages/2/")
    assert bread["body"] == "<p>Rye, wheat and <em>spelt</em>, from our own mill.</p>"
    assert bread["picture"]["title"] == "A loaf of rye"
    assert api.json("pages/3/")["body"] == "<p>At the corner of <b>Mill Lane</b>.</p>"
    assert api.ids("documents/") == [1]


def test_the_folder_is_the_one_that_is_drawn(folder: Folder) -> None:
    drawing = TEXT.partition("   content/\n")[2].partition("\n\n")[0]
    drawn = {line.split("─ ")[1].split()[0].rstrip("/") for line in drawing.splitlines()}
    assert drawn - {"_ideas.md"} == {Path(name).name for name in folder.names} - {
        "app.py",
        "content",
    }


def test_mistakes_are_named_as_shown(folder: Folder) -> None:
    for name, right, wrong in (
        ("10_bread.json", '"picture": 1', '"picture": "rye.jpg"'),
        ("20_shop/index.json", '"id": 3,', '"id": 3'),
    ):
        path = folder.path / "content/pages/home" / name
        path.write_text(path.read_text().replace(right, wrong))
    with pytest.raises(ContentError) as caught:
        run(folder)
    assert textwrap.indent(str(caught.value), "   ") in TEXT
