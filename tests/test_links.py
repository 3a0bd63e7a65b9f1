"""The ``Link`` header of lists: the addresses of the next and the previous part."""

from __future__ import annotations

import re

import pytest

from tests.api import API
from tests.conftest import MakeAPI
from tests.samples import image, page, site
from tests.stores import on_two

pytestmark = on_two

LINK = re.compile(r'<([^>]*)>; rel="(next|prev)"')


@pytest.fixture(scope="module")
def api(make_api: MakeAPI) -> API:
    pages = [page(n, 1 if n > 1 else None) for n in range(1, 46)]
    images = [image(n, tags=["a b"]) for n in range(1, 4)]
    return make_api({"sites": [site(1)], "pages": pages, "images": images})


def links(api: API, path: str, **options: str) -> dict[str, str]:
    """The addresses in the header, without the part that all have, by relation."""
    header = api.get(path, **options).headers.get("Link", "")
    found = {rel: address for address, rel in LINK.findall(header)}
    assert header == ", ".join(f'<{address}>; rel="{rel}"' for rel, address in found.items())
    return {rel: a.removeprefix(f"http://{api.host}{api.prefix}/") for rel, a in found.items()}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("pages/", {"next": "pages/?offset=20"}),
        ("pages/?offset=20", {"next": "pages/?offset=40", "prev": "pages/?offset=0"}),
        ("pages/?offset=40", {"prev": "pages/?offset=20"}),
        ("pages/?offset=25", {"prev": "pages/?offset=5"}),
        ("pages/?offset=24", {"next": "pages/?offset=44", "prev": "pages/?offset=4"}),
        ("pages/?offset=5", {"next": "pages/?offset=25", "prev": "pages/?offset=0"}),
        ("pages/?offset=45", {"prev": "pages/?offset=25"}),
        ("pages/?offset=99999999999999999999", {"prev": "pages/?offset=25"}),
        ("pages/?slug=nowhere&offset=3", {"prev": "pages/?slug=nowhere&offset=0"}),
        ("pages/?slug=nowhere", {}),
        ("pages/?limit=0", {}),
        ("pages/?limit=0&offset=3", {}),
        ("pages/?order=random", {}),
        ("images/", {}),
        ("images/?limit=3", {}),
        ("images/?limit=2", {"next": "images/?limit=2&offset=2"}),
        (
            "images/?tags=a+b&offset=1&limit=1&fields=_,id",
            {
                "next": "images/?tags=a+b&offset=2&limit=1&fields=_%2Cid",
                "prev": "images/?tags=a+b&offset=0&limit=1&fields=_%2Cid",
            },
        ),
    ],
)
def test_lists_lead_to_their_other_parts(api: API, path: str, found: dict[str, str]) -> None:
    assert links(api, path) == found
    assert links(api, path, method="HEAD") == found


def test_following_gives_each_item_once(api: API) -> None:
    path, seen = "pages/?limit=7&order=-title&type=standard.StandardPage", list[int]()
    while path:
        seen += api.ids(path)
        path = links(api, path).get("next", "")
    assert seen == api.ids("pages/?order=-title&limit=20") + seen[20:]
    assert sorted(seen) == list(range(1, 46))


def test_kept_answers_have_the_header(api: API) -> None:
    first, second = (api.get("pages/?limit=3&offset=3").headers["Link"] for _ in range(2))
    assert first == second


def test_what_a_client_writes_stays_within_an_address(api: API) -> None:
    found = api.get('pages/?_=>; rel="x", <é&limit=5').headers["Link"]
    assert found.count("<") == found.count(">") == 1
    assert "x%22%2C+%3C%C3%A9&limit=5&offset=5>" in found


def test_headers_longer_than_proxies_take_are_left_out(api: API) -> None:
    assert "Link" in api.get("pages/?_=" + "x" * 2000).headers
    assert "Link" not in api.get("pages/?_=" + "x" * 3000).headers


def test_addresses_start_as_others_do(make_api: MakeAPI) -> None:
    sites = [site(1, is_default=True), site(2, "other.example")]
    pages = [page(1), page(2), page(3, 2)]
    config = {"CMSAPI_BASE_URL": "https://cdn.example/cms"}
    api = make_api({"sites": sites, "pages": pages}, config=config)
    header = api.at("other.example").get("pages/?limit=1").headers["Link"]
    start = "https://cdn.example/cms/api/v2/pages/"
    assert header == f'<{start}?limit=1&site=other.example&offset=1>; rel="next"'


def test_errors_have_none(api: API) -> None:
    assert "Link" not in api.get("pages/?nope=1").headers
