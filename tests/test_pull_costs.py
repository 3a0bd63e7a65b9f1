"""What a pull costs: questions by the number of parts, and memory that does not hold answers."""

from __future__ import annotations

import json
import re
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from flask_contentapi.__main__ import main
from flask_contentapi.importers.source import Source
from tests.stores import on_memory

pytestmark = [on_memory, pytest.mark.slow]

#: The most items of a list, and the size of a page in bytes.
PART, SIZE = 20, 20_000
#: What is known about each page until the end, in bytes: its id, its place and its type.
KNOWN = 2_000


def page(identity: int) -> dict[str, Any]:
    path = "/" if identity == 1 else f"/p{identity}/"
    meta = {
        "type": "blog.HomePage" if identity == 1 else "blog.Post",
        "detail_url": f"https://localhost/api/v2/pages/{identity}/",
        "html_url": f"https://cms.example{path}",
        "slug": path.strip("/") or "home",
    }
    return {"id": identity, "meta": meta, "title": "A page", "body": f"{identity:08}" * (SIZE // 8)}


def sent(data: Any, status: int = 200) -> httpx.Response:
    """A response that is read as it comes, so that nothing but its reader keeps it."""

    async def body() -> AsyncIterator[bytes]:
        yield json.dumps(data).encode()

    return httpx.Response(status, headers={"Content-Type": "application/json"}, content=body())


def answer(request: httpx.Request, total: int) -> httpx.Response:
    """An answer of a source with so many pages, each of which it makes when it is asked."""
    given, place = request.url.params, request.url.path.removeprefix("/api/v2/pages/")
    if place:
        made = page(int(place.strip("/")))
        above = page(1) if made["id"] > 1 else None
        return sent({**made, "meta": {**made["meta"], "parent": above}})
    if int(given["limit"]) > PART:
        return sent({"message": f"limit cannot be higher than {PART}"}, 400)
    known = {"blog.HomePage": range(1, 2), "blog.Post": range(2, total + 1)}
    ids = known.get(given.get("type", ""), range(1, total + 1))
    start = int(given.get("offset", 0))
    items = [page(identity) for identity in ids[start : start + int(given["limit"])]]
    if given.get("fields") != "*":
        items = [{key: item[key] for key in ("id", "meta", "title")} for item in items]
    return sent({"meta": {"total_count": len(ids)}, "items": items})


def pulled(total: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """How many questions are asked about so many pages, and how many bytes are used at most."""

    def respond(request: httpx.Request) -> httpx.Response:
        is_pages = request.url.path.startswith("/api/v2/pages/")
        return answer(request, total) if is_pages else httpx.Response(404)

    client = httpx.AsyncClient(transport=httpx.MockTransport(respond))
    monkeypatch.setattr(Source, "_client", lambda source, url: client)
    tracemalloc.start()
    command = ["pull", "http://localhost/api/v2/", str(folder / str(total))]
    done = CliRunner().invoke(main, command)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert done.output.startswith(f"{total} pages, 1 site are in "), done.output
    (asked,) = re.findall("after ([0-9]+) questions", done.output)
    return int(asked), peak


def test_memory_and_questions_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pulled(PART, tmp_path, monkeypatch)
    few, many = (pulled(total, tmp_path, monkeypatch) for total in (500, 2000))
    # A list with the places of all pages, and one with all fields.
    assert many[0] - few[0] == 2 * (2000 - 500) // PART
    assert many[1] - few[1] < (2000 - 500) * KNOWN < (2000 - 500) * SIZE / 5
