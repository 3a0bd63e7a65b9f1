"""The command that says why an object is in no list, or in which lists it is."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from flask import Flask

from tests.samples import blog, document, image, page, plain, private, site
from tests.sites import make_site

NOW = datetime(2026, 6, 1, tzinfo=UTC)
CONTENT: dict[str, Any] = {
    "locales": ["en", "de"],
    "sites": [site(2, "a.example", is_default=True), site(9, "b.example")],
    "collections": [
        {"id": 1, "name": "Club"},
        {"id": 2, "name": "Board", "parent": 1, "restriction": private("groups")},
        {"id": 3, "name": "Minutes", "parent": 2},
        {"id": 4, "name": "Secret", "parent": 3, "restriction": private("password")},
    ],
    "pages": [
        plain(1),
        plain(2, 1, locale="en", translation_key="home"),
        blog(3, 2, live=False, locale="en"),
        plain(4, 3, go_live_at="2026-07-01T00:00:00Z"),
        plain(5, 2, expires_at="2026-06-01T00:00:00Z"),
        plain(6, 2, restriction=private()),
        plain(7, 6, live=False),
        plain(8, 7, restriction=private("groups")),
        plain(9, 1),
        page(10, 9, type="shop.Product"),
        blog(11, 2, locale="en"),
        plain(20, 1, locale="de", translation_key="home"),
        plain(21, 20, locale="de"),
    ],
    "images": [image(1), image(2, collection=1), image(3, collection=2), image(4, collection=3)],
    "documents": [document(4, collection=4)],
    "redirects": [
        {"id": 1, "old_path": "/x", "redirect_page": 11, "site": "a.example"},
        {"id": 2, "old_path": "/y", "redirect_page": 3},
    ],
}
RESTRICTED = "is restricted ({}): can_view decides who sees it."


def make(backend: str, **config: Any) -> Flask:
    return make_site(backend, CONTENT, config=config, clock=lambda: NOW)


def why(app: Flask, *named: object) -> list[str]:
    """The lines that the command prints, in the end its exit status unless it is 0."""
    done = app.test_cli_runner().invoke(args=["contentapi", "why", *map(str, named)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.output.splitlines() + [str(done.exit_code)] * (done.exit_code != 0)


@pytest.mark.parametrize(
    ("named", "reasons"),
    [
        (("pages", 3), ["It is a draft: its live is false."]),
        (("pages", 4), ["It goes live at 2026-07-01T00:00:00Z."]),
        (("pages", 5), ["It expired at 2026-06-01T00:00:00Z."]),
        (("pages", 6), [f"It {RESTRICTED.format('login')}"]),
        (
            ("pages", 7),
            [
                "It is a draft: its live is false.",
                f"Page 6, above it, {RESTRICTED.format('login')}",
            ],
        ),
        (
            ("pages", 8),
            [
                f"It {RESTRICTED.format('groups')}",
                f"Page 6, above it, {RESTRICTED.format('login')}",
            ],
        ),
        (
            ("pages", 1),
            ["It is not below the home page of any site: 2 of a.example, 9 of b.example."],
        ),
        (
            ("pages", 21),
            ["It is below a translation of a home page, which counts only with CMS_I18N_ENABLED."],
        ),
        (("images", 3), [f"Its collection 2 {RESTRICTED.format('groups')}"]),
        (("images", 4), [f"Collection 2, above it, {RESTRICTED.format('groups')}"]),
        (
            ("documents", 4),
            [
                f"Its collection 4 {RESTRICTED.format('password')}",
                f"Collection 2, above it, {RESTRICTED.format('groups')}",
            ],
        ),
        (("redirects", 2), ["It leads to page 3, which is not shown to everybody."]),
    ],
)
def test_hidden_objects_have_reasons(
    backend: str, named: tuple[str, int], reasons: list[str]
) -> None:
    app = make(backend)
    assert why(app, *named) == ["{} {} is not shown to everybody.".format(*named), *reasons]
    assert app.test_client().get("/api/v2/{}/{}/".format(*named)).status_code == 404


def test_shown_pages_have_a_place(backend: str) -> None:
    assert why(make(backend, CMSAPI_LIMIT_MAX=1), "pages", 11) == [
        "pages 11 is shown to everybody.",
        "It is number 2 of 2: /api/v2/pages/?site=a.example&offset=1",
        "A list with type= has it if that names wagtailcore.Page or blog.BlogPage.",
    ]


def test_the_place_is_where_the_list_has_it(backend: str) -> None:
    app = make(backend, CMSAPI_LIMIT_MAX=1)
    for identity in (2, 9, 10, 11):
        address = why(app, "pages", identity)[1].split()[-1]
        items = json.loads(app.test_client().get(address).text)["items"]
        assert [item["id"] for item in items] == [identity]


def test_languages_say_which_lists(backend: str) -> None:
    app = make(backend, CMS_I18N_ENABLED=True)
    assert why(app, "pages", 21)[-1] == "A list with locale= has it if that is de."


def test_undeclared_types_are_told(backend: str) -> None:
    said = "Its type 'shop.Product' is not declared, so that only common fields are shown."
    assert said in why(make(backend), "pages", 10)


@pytest.mark.parametrize("identity", [1, 2])
def test_shown_images_have_a_place(backend: str, identity: int) -> None:
    shown = why(make(backend), "images", identity)
    assert shown[:2] == [
        f"images {identity} is shown to everybody.",
        f"It is number {identity} of 2: /api/v2/images/",
    ]


def test_redirects_have_a_site(backend: str) -> None:
    assert why(make(backend), "redirects", 1)[1] == "It is in the lists of a.example."


def test_unknown_ids_are_looked_for_elsewhere(backend: str) -> None:
    app = make(backend)
    said = "There is no 4 in redirects. There is one in pages and in images and in documents."
    assert why(app, "redirects", 4) == [said]
    assert why(app, "pages", 2**63 - 1) == [f"There is no {2**63 - 1} in pages."]


@pytest.mark.backends("memory")
@pytest.mark.parametrize("named", [("page", 3), ("pages", "x"), ("pages", 2**63)])
def test_what_names_nothing_is_refused(backend: str, named: tuple[object, ...]) -> None:
    assert why(make(backend), *named)[-1] == "2"


@pytest.mark.backends("memory")
def test_content_without_sites_has_one_list(backend: str) -> None:
    content = {"pages": [plain(1), plain(2, 1)]}
    app = make_site(backend, content, config={"CMS_I18N_ENABLED": True})
    shown = why(app, "pages", 2)
    assert shown[1] == "It is number 2 of 2: /api/v2/pages/"
    assert shown[-1] == "It has no language, so that no list with locale= has it."
