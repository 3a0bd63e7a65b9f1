"""Every recorded request gets the recorded answer, on every backend."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from tests.conformance.reference_site import create_app
from tests.conftest import CONFORMANCE
from tests.description import check
from tests.stores import on_memory


def _cases(name: str) -> list[dict[str, Any]]:
    text = (CONFORMANCE / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


CASES = _cases("cases.jsonl")
BEYOND_CASES = _cases("beyond.jsonl")
RENDITIONS = _cases("renditions.jsonl")


class Sites:
    """The reference site with each configuration of the cases."""

    def __init__(self, backend: str, content: Mapping[str, Any]) -> None:
        self._backend, self._content = backend, content
        self._made: dict[str, Flask] = {}

    def configured(self, settings: Mapping[str, Any]) -> Flask:
        key = json.dumps(settings, sort_keys=True)
        if key not in self._made:
            self._made[key] = create_app(self._content, self._backend, settings)
        return self._made[key]


@pytest.fixture(scope="module")
def sites(backend: str, reference_content: Mapping[str, Any]) -> Sites:
    return Sites(backend, reference_content)


@pytest.fixture(scope="module")
def beyond_sites(backend: str) -> Sites:
    text = (CONFORMANCE / "beyond-content.json").read_text(encoding="utf-8")
    return Sites(backend, json.loads(text))


@pytest.mark.parametrize("group", sorted({case["group"] for case in CASES}))
def test_recorded_requests(sites: Sites, group: str) -> None:
    _check_all(sites, [case for case in CASES if case["group"] == group])


@pytest.mark.parametrize("group", sorted({case["group"] for case in BEYOND_CASES}))
def test_requests_beyond_the_recorded(beyond_sites: Sites, group: str) -> None:
    _check_all(beyond_sites, [case for case in BEYOND_CASES if case["group"] == group])


@pytest.fixture(scope="module")
def rendered() -> list[dict[str, Any]]:
    """For each recorded rendition those of its image, in an address the part that is cut out."""
    names = {case["spec"]: f"spec{n}" for n, case in enumerate(RENDITIONS)}
    settings = {
        "CMSAPI_RENDITIONS": {name: spec for spec, name in names.items()},
        "CMSAPI_RENDITION_URL": "http://images.test/{left}/{top}/{right}/{bottom}",
        "CMSAPI_LIMIT_MAX": None,
    }
    images = []
    for identity, case in enumerate(RENDITIONS):
        image = {"id": identity, "title": "", "file": "a.jpg", "type": "media.Picture"}
        image |= {"width": case["width"], "height": case["height"]}
        for name, value in zip(
            ("x", "y", "width", "height"), case["focal_point"] or (), strict=False
        ):
            image[f"focal_point_{name}"] = value
        images.append(image)
    app = create_app({"images": images}, "memory", settings)
    response = app.test_client().get("/api/v2/images/?fields=_,renditions&limit=1000")
    check(app, response)
    items = zip(RENDITIONS, response.get_json()["items"], strict=True)
    return [item["renditions"][names[case["spec"]]] for case, item in items]


@on_memory
def test_recorded_renditions(rendered: list[dict[str, Any]]) -> None:
    address = "http://images.test/{}/{}/{}/{}".format
    wrong = [
        (case, made)
        for case, made in zip(RENDITIONS, rendered, strict=True)
        if [made["width"], made["height"], made["url"]] != [*case["size"], address(*case["crop"])]
    ]
    assert wrong == []


def _check_all(sites: Sites, cases: Iterable[Mapping[str, Any]]) -> None:
    """Sends all requests, and names each whose answer is wrong."""
    errors = []
    for case in cases:
        try:
            _check(sites, case)
        except Exception as error:
            error.add_note(f"{case['id']}: {case['host']}{case['path']}")
            errors.append(error)
    if errors:
        raise ExceptionGroup("wrong answers", errors)


def _check(sites: Sites, case: Mapping[str, Any]) -> None:
    app = sites.configured(case["settings"])
    response = app.test_client().open(
        case["path"], method=case.get("method", "GET"), base_url=f"http://{case['host']}/"
    )
    check(app, response)
    wanted = case["status"] if isinstance(case["status"], list) else [case["status"]]
    assert response.status_code in wanted
    if case.get("error"):
        assert isinstance(response.get_json()["message"], str)
    elif "location" in case:
        assert _target(response.headers["Location"]) == _target(case["location"])
    elif "body" in case and case["compare"] != "status":
        _compare(case["compare"], case["body"], response)


def _target(location: str) -> tuple[str, list[tuple[str, str]]]:
    parts = urlsplit(location)
    return parts.path, sorted(parse_qsl(parts.query))


def _compare(how: str, wanted: dict[str, Any], response: TestResponse) -> None:
    got = response.get_json()
    if how == "body":
        # Compared as text, because the order of keys counts; 7 and 7.0 are the same number.
        assert json.dumps(_numbers(got)) == json.dumps(_numbers(wanted))
        return
    assert got["meta"]["total_count"] == wanted["meta"]["total_count"]
    assert len(got["items"]) == len(wanted["items"])
    if not all("id" in item for item in wanted["items"]):
        # The request left the ids out, and the order was free.
        assert sorted(map(json.dumps, got["items"])) == sorted(map(json.dumps, wanted["items"]))
        return
    ids = [item["id"] for item in got["items"]]
    wanted_ids = [item["id"] for item in wanted["items"]]
    assert len(ids) == len(set(ids))
    if how == "ids-ordered":
        assert ids == wanted_ids
    if how == "ids" and len(ids) == wanted["meta"]["total_count"]:
        assert sorted(ids) == sorted(wanted_ids)


def _numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _numbers(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_numbers(entry) for entry in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    return value
