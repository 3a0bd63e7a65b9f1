"""What is hidden does not show anywhere (contract, Who sees what)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.api import API
from tests.conftest import MakeAPI
from tests.samples import Record, blog, document, image, page, private, site
from tests.stores import on_memory, on_two

pytestmark = on_two

#: The mark in the title, slug or file of everything that is hidden.
HIDDEN = "hidden"


def hidden(make: Callable[..., Record], id: int, *parent: int, **values: Any) -> Record:
    """A record with the mark, from one of the functions for records."""
    address = {"slug": f"{HIDDEN}-{id}"} if parent else {"file": f"{HIDDEN}-{id}.x"}
    return make(id, *parent, **{"title": f"{HIDDEN} {id}", **address, **values})


CONTENT = {
    "sites": [site(1)],
    "collections": [
        {"id": 1, "name": "staff", "restriction": private()},
        {"id": 2, "name": "drawings", "parent": 1},
        {"id": 3, "name": "old drawings", "parent": 2},
        {"id": 4, "name": "everybody"},
    ],
    "images": [
        image(1, collection=4, tags=["storm"]),
        hidden(image, 2, collection=3, tags=["storm"]),
        hidden(image, 3, collection=1),
    ],
    "documents": [
        document(1, collection=4, tags=["storm"]),
        hidden(document, 2, collection=3, tags=["storm"]),
    ],
    "pages": [
        page(1, type="home.HomePage", translation_key="home"),
        blog(
            2,
            1,
            feed_image=2,
            alias_of=20,
            translation_key="two",
            authors=[{"id": 1, "name": "Ada", "portrait": 3}],
            related_links=[
                {"id": 1, "title": "kept", "link_page": 30, "link_document": 2},
                {"id": 2, "title": "below", "link_page": 31},
                {"id": 3, "title": "seen", "link_page": 3, "link_document": 1},
            ],
        ),
        blog(3, 1, feed_image=1, alias_of=2, related_links=[{"id": 4, "link_page": 2}]),
        page(4, 1, banner=2, body=[{"type": "text", "value": "storm"}]),
        # Its slug has no mark, because it is in the address of the page below it, which is visible.
        hidden(page, 20, 1, slug="draft", live=False, translation_key="two"),
        page(21, 20, alias_of=31),
        hidden(page, 30, 1, restriction=private()),
        hidden(blog, 31, 30, feed_image=1, alias_of=3, translation_key="two"),
        hidden(page, 32, 31),
        hidden(page, 40, 1, go_live_at="2026-06-02T00:00:00Z"),
        hidden(page, 41, 1, expires_at="2026-06-01T00:00:00Z"),
    ],
}
NOW = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def api(make_api: MakeAPI) -> API:
    return make_api(CONTENT, clock=lambda: NOW)


@pytest.mark.parametrize(
    "path",
    [
        "pages/",
        "pages/?fields=*",
        "pages/?fields=alias_of",
        "pages/?type=blog.BlogPage&fields=*",
        "pages/?type=blog.BlogPage&fields=feed_image(*)",
        "pages/?type=blog.BlogPage&fields=authors(portrait(*)),related_links(link_page(*))",
        "pages/?type=blog.BlogPage&fields=related_links(link_page(alias_of),link_document(*))",
        "pages/?type=standard.StandardPage&fields=banner(*)",
        "pages/?search=hidden+page+storm+image",
        "pages/?order=-title",
        "pages/?order=random",
        "pages/?descendant_of=1&fields=*",
        "pages/?child_of=1&fields=*",
        "pages/?ancestor_of=21&fields=*",
        "pages/2/",
        "pages/2/?fields=*",
        "pages/2/?fields=feed_image(*),authors(*),related_links(*)",
        "pages/3/?fields=related_links(link_page(*))",
        "pages/4/?fields=banner(*)",
        "pages/21/?fields=*",
        "images/?fields=*",
        "images/?search=hidden+storm",
        "images/?tags=storm&fields=*",
        "documents/?fields=*",
        "documents/?search=hidden+storm",
        "documents/?order=-id",
    ],
)
def test_nothing_hidden_is_named(api: API, path: str) -> None:
    response = api.get(path)
    assert response.status_code == 200
    assert HIDDEN not in response.text


def test_relations_to_something_hidden_are_null(api: API) -> None:
    item = api.json("pages/2/?fields=*")
    assert item["feed_image"] is None
    assert item["meta"]["alias_of"] is None
    assert api.json("pages/4/?fields=banner(*)")["banner"] is None


def test_child_entries_keep_their_other_fields(api: API) -> None:
    item = api.json("pages/2/?fields=related_links(_,id,title,link_page(_,id),link_document(_,id))")
    assert item["related_links"] == [
        {"id": 1, "title": "kept", "link_page": None, "link_document": None},
        {"id": 2, "title": "below", "link_page": None, "link_document": None},
        {"id": 3, "title": "seen", "link_page": {"id": 3}, "link_document": {"id": 1}},
    ]


def test_what_a_visible_relation_points_to_is_hidden_all_the_same(api: API) -> None:
    item = api.json("pages/3/?fields=related_links(link_page(_,id,alias_of))")
    assert item["related_links"][0]["link_page"] == {"id": 2, "meta": {"alias_of": None}}


def test_a_page_below_a_draft_is_shown_without_its_parent(api: API) -> None:
    assert 21 in api.ids("pages/")
    assert api.json("pages/21/")["meta"]["parent"] is None


@pytest.mark.parametrize("id", [20, 30, 31, 32, 40, 41])
def test_hidden_pages_are_as_if_not_there(api: API, id: int) -> None:
    missing = api.get("pages/999/")
    assert api.get(f"pages/{id}/").data == missing.data
    assert api.get(f"pages/find/?id={id}").data == api.get("pages/find/?id=999").data
    assert api.total(f"pages/?id={id}") == 0


@pytest.mark.parametrize("endpoint", ["images", "documents"])
def test_collections_below_a_private_one_are_private(api: API, endpoint: str) -> None:
    assert api.ids(f"{endpoint}/") == [1]
    assert api.total(f"{endpoint}/") == 1
    assert api.status(f"{endpoint}/2/") == 404
    assert api.status(f"{endpoint}/find/?id=2") == 404
    assert api.total(f"{endpoint}/?search=hidden") == 0
    assert api.total(f"{endpoint}/?tags=storm") == 1
    assert api.total(f"{endpoint}/?id=2") == 0


@pytest.mark.parametrize(
    "path",
    [
        "/draft/",
        f"/{HIDDEN}-30/",
        f"/{HIDDEN}-30/{HIDDEN}-31/",
        f"/{HIDDEN}-30/{HIDDEN}-31/{HIDDEN}-32/",
        f"/{HIDDEN}-40/",
        f"/{HIDDEN}-41/",
    ],
)
def test_hidden_pages_are_not_found_by_their_path(api: API, path: str) -> None:
    assert api.status(f"pages/find/?html_path={path}") == 404


@pytest.mark.parametrize("relation", ["child_of", "descendant_of", "ancestor_of"])
@pytest.mark.parametrize("id", [20, 30, 31, 32, 40, 41])
def test_hidden_pages_cannot_be_named_in_parameters(api: API, relation: str, id: int) -> None:
    said, of_missing = (api.refusal(f"pages/?{relation}={n}") for n in (id, 999))
    assert said.replace(str(id), "999") == of_missing


def test_hidden_translations_are_neither_named_nor_listed(make_api: MakeAPI) -> None:
    api = make_api(CONTENT, clock=lambda: NOW, config={"CMS_I18N_ENABLED": True})
    assert api.ids("pages/?translation_of=2") == []
    assert api.status("pages/?translation_of=31") == 400


def test_hidden_ancestors_are_left_out(api: API) -> None:
    assert api.ids("pages/?ancestor_of=21") == [1]


@pytest.mark.parametrize(
    "query",
    [
        *("type=blog.BlogPage&feed_image=2", "type=standard.StandardPage&banner=2", "alias_of=20"),
        *("type=blog.BlogPage&feed_image__in=2,99", "alias_of__in=20"),
        "type=standard.StandardPage&banner__isnull=false",
    ],
)
def test_filters_do_not_know_hidden_targets(api: API, query: str) -> None:
    assert api.total(f"pages/?{query}") == 0


def test_order_takes_a_hidden_target_for_a_missing_one(api: API) -> None:
    # Page 2 points to image 2, which is hidden; page 3 points to image 1.
    assert api.ids("pages/?type=blog.BlogPage&order=feed_image") == [2, 3]
    assert api.ids("pages/?type=blog.BlogPage&order=-feed_image") == [3, 2]


@on_memory
@pytest.mark.parametrize(
    "query",
    [
        "private_note=x",
        "private_note__startswith=x",
        "type=blog.BlogPage&private_note__isnull=true",
        "type=blog.BlogPage&authors__isnull=true",
        "live__in=true",
        "url_path__startswith=/p1",
        "type=blog.BlogPage&private_note=x",
        "type=blog.BlogPage&order=private_note",
        "type=blog.BlogPage&fields=private_note",
        "type=blog.BlogPage&feed_image__file=x",
        "feed_image__file=x",
        "type=blog.BlogPage&authors__secret=x",
        "type=blog.BlogPage&authors.secret=x",
        "type=blog.BlogPage&authors=x",
        "type=blog.BlogPage&fields=authors(secret)",
        "type=blog.BlogPage&fields=feed_image(internal_note)",
        "fields=__dict__",
        "fields=__class__",
        "order=__class__",
        "__class__=x",
        "live=true",
        "order=live",
        "restriction=x",
        "translation_key=two",
        "url_path=/p1/",
        "order=url_path",
        "go_live_at=2026-06-02",
        "collection=1",
        "type=blog.BlogPage&shout=PAGE 2",
        "type=blog.BlogPage&order=shout",
        "type=blog.BlogPage&published_date_display=01 June 2026",
    ],
)
def test_what_is_not_exported_cannot_be_guessed(api: API, query: str) -> None:
    assert api.status(f"pages/?{query}") == 400


@pytest.mark.parametrize("query", ["internal_note=x", "order=internal_note", "file=1.png"])
def test_hidden_columns_of_images_cannot_be_guessed(api: API, query: str) -> None:
    assert api.status(f"images/?{query}") == 400


class Clock:
    """A clock that tests move forward."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


def test_pages_appear_and_go_with_the_time(make_api: MakeAPI) -> None:
    clock = Clock()
    windows: list[Mapping[str, Any]] = [
        {"go_live_at": "2026-06-01T00:00:01Z", "expires_at": "2026-06-01T00:00:03Z"},
        {"go_live_at": "2026-06-01T00:00:02Z"},
        {"expires_at": "2026-06-01T02:00:02+02:00"},
    ]
    pages = [page(10 + n, 1, **window) for n, window in enumerate(windows)]
    api = make_api({"sites": [site(1)], "pages": [page(1), *pages]}, clock=clock)
    seen = []
    for second in range(5):
        clock.now = NOW + timedelta(seconds=second)
        seen.append(api.ids("pages/?child_of=1"))
        assert api.total("pages/?child_of=1") == len(seen[-1])
    assert seen == [[12], [10, 12], [10, 11], [11], [11]]


def test_a_page_expires_in_every_surface(make_api: MakeAPI) -> None:
    clock = Clock()
    pages = [
        page(1),
        page(2, 1, expires_at="2026-06-01T00:00:01Z"),
        blog(3, 1, related_links=[{"id": 1, "link_page": 2}]),
    ]
    api = make_api({"sites": [site(1)], "pages": pages}, clock=clock)
    surfaces = ["pages/2/", "pages/?child_of=2", "pages/find/?html_path=/p2/", "pages/find/?id=2"]
    link = "pages/3/?fields=related_links(_,link_page(_,id))"
    assert [api.status(path) for path in surfaces] == [200, 200, 302, 302]
    assert api.json(link)["related_links"] == [{"link_page": {"id": 2}}]
    clock.now += timedelta(seconds=1)
    assert [api.status(path) for path in surfaces] == [404, 400, 404, 404]
    assert api.json(link)["related_links"] == [{"link_page": None}]
    assert api.total("pages/?search=page") == 2


@pytest.mark.parametrize("restricted", [0, 5])
def test_a_restriction_holds_for_any_id(make_api: MakeAPI, restricted: int) -> None:
    content = {
        "sites": [site(1)],
        "collections": [{"id": restricted, "name": "staff", "restriction": private()}],
        "images": [image(restricted, collection=restricted), image(7)],
        "pages": [page(1), page(restricted, 1, restriction=private()), page(7, restricted)],
    }
    api = make_api(content)
    assert (api.ids("pages/"), api.ids("images/")) == ([1], [7])
    assert [api.status(f"pages/{id}/") for id in (restricted, 7)] == [404, 404]


def test_who_is_let_into_one_page_does_not_see_behind_another(make_api: MakeAPI) -> None:
    pages = [page(1), page(0, 1, restriction=private()), page(7, 1, restriction=private("groups"))]
    api = make_api({"pages": pages}, can_view=lambda rule: rule["type"] == "login")
    assert api.ids("pages/") == [1, 0]


# Languages that no section declares.


@pytest.mark.parametrize(
    "hides",
    [
        {"live": False},
        {"restriction": private()},
        {"parent": 3},
        {"go_live_at": "2026-06-02T00:00:00Z"},
        {"expires_at": "2026-06-01T00:00:00Z"},
        {"parent": None},
    ],
    ids=str,
)
def test_languages_of_hidden_pages_do_not_exist(make_api: MakeAPI, hides: Record) -> None:
    pages = [
        {**page(5, 1, locale="zz"), **hides},
        page(1),
        page(2, 1, locale="fr"),
        page(3, 1, restriction=private()),
    ]
    content = {"sites": [site(1)], "pages": pages}
    api = make_api(content, clock=lambda: NOW, config={"CMS_I18N_ENABLED": True})
    for path in ("pages/?locale=zz", "pages/find/?locale=zz&html_path=/"):
        assert api.refusal(path, 404) == "There is no language 'zz'. None is declared."
    assert "zz" not in api.refusal("pages/?locale=xx", 404)
    assert api.ids("pages/?locale=fr") == [2]
    assert [item["meta"]["locale"] for item in api.items("pages/")] == [None, "fr"]


# What is hidden might as well not be there.


SHOWN: dict[str, list[Record]] = {
    "sites": [site(1), site(50, "other.example")],
    "images": [image(1, tags=["storm"]), image(5, title="Night storm")],
    "documents": [document(1, tags=["storm"])],
    "pages": [
        page(1, type="home.HomePage", locale="en", translation_key="home"),
        page(3, 1, locale="en", title="Storm", translation_key="three"),
        # What these point to is hidden or missing.
        blog(
            5,
            1,
            feed_image=2,
            alias_of=20,
            tags=["storm"],
            translation_key="three",
            related_links=[{"id": 1, "title": "a", "link_page": 30, "link_document": 2}],
        ),
        blog(6, 1, feed_image=1, alias_of=3, expires_at="2026-06-01T00:10:00Z"),
        page(7, 3, title="A night in the storm", go_live_at="2026-06-01T00:20:00Z"),
        page(50, locale="en"),
        page(51, 50, title="Elsewhere"),
    ],
}
#: What is added to it, in front, so that it would count first wherever something counts.
ADDED: dict[str, list[Record]] = {
    "collections": [{"id": 1, "restriction": private()}, {"id": 2, "parent": 1}],
    "images": [image(2, collection=1, tags=["storm"]), image(3, title="Storm", collection=2)],
    "documents": [document(2, collection=2, tags=["storm", "rain"])],
    "pages": [
        page(20, 1, live=False, locale="zz", title="Storm", translation_key="three"),
        page(21, 1, live=False, expires_at="2026-06-01T00:01:00Z"),
        blog(30, 1, restriction=private(), title="Storm storm", feed_image=1, tags=["rain"]),
        page(31, 30, expires_at="2026-06-01T00:02:00Z", locale="yy"),
        page(32, 31, go_live_at="2026-06-01T00:03:00Z", alias_of=3),
        page(40, 1, expires_at="2026-06-01T00:00:00Z", title="Storm", slug="storm"),
        page(41, 1, go_live_at="2026-06-01T00:04:00Z", expires_at="2026-06-01T00:04:00Z"),
        page(52, 50, live=False, locale="en"),
        page(53, 50, restriction=private(), expires_at="2026-06-01T00:05:00Z"),
        page(60, live=False, translation_key="home", locale="xx"),
    ],
}
BLOG = "pages/?type=blog.BlogPage"
ASKED = [
    *("pages/", "pages/?fields=*", "pages/?limit=2&offset=1", "pages/?offset=4", "pages/?limit=0"),
    *("pages/?search=storm", "pages/?search=storm+night+the", "pages/?search=rain"),
    *("pages/?search=storm&search_operator=and&order=-title", "pages/?order=title,-id"),
    *("pages/?locale=en", "pages/?locale=zz", "pages/?locale=yy&limit=1", "pages/?locale=xx"),
    *("pages/?slug=storm", "pages/?title=Storm", "pages/?id=20", "pages/?id=99", "pages/?slug=p20"),
    *(f"pages/?{relation}={id}" for relation in ("child_of", "descendant_of") for id in (1, 30)),
    *("pages/?ancestor_of=7", "pages/?ancestor_of=32", "pages/?translation_of=3"),
    *("pages/?translation_of=20", "pages/?translation_of=root", "pages/?child_of=root"),
    *("pages/?site=other.example", "pages/?site=other.example&child_of=root&fields=*"),
    *("pages/?alias_of=20", "pages/?alias_of=3", "pages/?order=alias_of", "pages/?order=-alias_of"),
    *("pages/?alias_of__not=20", "pages/?alias_of__isnull=true", f"{BLOG}&feed_image__isnull=1"),
    *(f"{BLOG}&facets=feed_image,tags", "pages/?facets=alias_of,title,type", "images/?facets=tags"),
    *("pages/?title__startswith=Storm", "pages/?id__gte=20", "pages/?title__foo=x"),
    *(f"{BLOG}&fields=*", f"{BLOG}&fields=feed_image(*),related_links(*)", f"{BLOG}&feed_image=2"),
    *(f"{BLOG}&order=feed_image", f"{BLOG}&tags=storm", f"{BLOG}&tags=rain", f"{BLOG}&fields=x"),
    *("pages/?fields=slgu", "pages/?order=slgu", "pages/?slgu=x", "pages/?type=blog.BlogPge"),
    *(f"pages/{id}/" for id in (1, 3, 5, 6, 7, 20, 30, 31, 40, 51, 52, 60, 99)),
    *("pages/5/?fields=*", "pages/5/?fields=related_links(link_page(*))", "pages/20/?fields=x"),
    *(f"pages/find/?id={id}" for id in (3, 20, 31, 99)),
    *(f"pages/find/?html_path={path}" for path in ("/", "/p3/", "/p20/", "/p30/p31/", "/storm/")),
    *("pages/find/?html_path=/&locale=xx", "pages/find/?html_path=/p3/&locale=en"),
    *("pages/find/?html_path=/p5/&locale=zz", "pages/find/?html_path=/p53/&site=other.example"),
    *("images/", "images/?fields=*", "images/?tags=storm", "images/?search=storm", "images/2/"),
    *("images/?order=-title", "images/find/?id=3", "images/find/?id=99", "images/?title=Storm"),
    *("pages/?autocomplete=stor", "pages/?autocomplete=ra", "pages/?search=storm&autocomplete=n"),
    *("pages/?fields=ancestors,children,translations", "pages/?fields=children(children(title))"),
    *("pages/5/?fields=translations(translations)", "pages/detail_by_path/?html_path=/p20/"),
    *("pages/?format=ndjson&fields=*", "images/?fields=renditions", "images/2/renditions/a.b.png"),
    *(f"{BLOG}&feed_image__in=1,2", f"{BLOG}&feed_image__not=2", f"{BLOG}&tags__not=rain"),
    *("", "openapi.json", "sites/", "locales/", "sites/1/", "locales/1/"),
    *("documents/", "documents/?tags=rain", "documents/2/", "documents/1/", "documents/?search=2"),
]


def answers(api: API, path: str) -> list[Any]:
    """What the outside of a site shows at a path. An ETag changes with every change, seen or not,
    but says nothing."""
    ways: list[dict[str, Any]] = [
        {},
        {"method": "HEAD"},
        {"method": "OPTIONS"},
        {"headers": {"If-None-Match": "*"}},
    ]
    responses = [api.get(path, **way) for way in ways]
    return [
        (
            r.status_code,
            r.data,
            [(k, v if k != "ETag" else "") for k, v in r.headers if k != "Date"],
        )
        for r in responses
    ]


def pair(
    make_api: MakeAPI, added: Mapping[str, Any], shown: Mapping[str, Any], **options: Any
) -> Any:
    """Two sites, of which the first has something hidden in addition."""
    both = {name: [*added.get(name, ()), *shown.get(name, ())] for name in {*added, *shown}}
    config = {
        "CMSAPI_CACHE_MAX_AGE": 10_000,
        "CMSAPI_CACHE_TAG_HEADER": "Cache-Tag",
        "CMSAPI_RENDITIONS": {"a": "width-10"},
        "CMSAPI_RENDITION_URL": "https://images.example/{width}/{url}",
        "CMSAPI_SITES_ENABLED": True,
        "CMSAPI_STREAM_ENABLED": True,
        **options.pop("config", {}),
    }
    sites: Iterable[Mapping[str, Any]] = (both, shown)
    return [make_api(c, clock=lambda: NOW, config=config, **options) for c in sites]


@pytest.fixture(scope="module", params=["closed", "hook", "i18n"])
def canaries(request: pytest.FixtureRequest, make_api: MakeAPI) -> Any:
    """The two sites: without a hook, with one that lets nobody in, and with languages."""
    options: dict[str, Any] = {
        "closed": {},
        "hook": {"can_view": lambda rule: rule["type"] != "login"},
        "i18n": {"config": {"CMS_I18N_ENABLED": True}},
    }
    return pair(make_api, ADDED, SHOWN, **options[request.param])


@pytest.mark.parametrize("path", ASKED)
def test_what_is_hidden_changes_no_answer(canaries: Any, path: str) -> None:
    hiding, without = canaries
    assert answers(hiding, path) == answers(without, path)


@pytest.mark.parametrize("hides", [{"live": False}, {"restriction": private()}], ids=str)
@pytest.mark.parametrize(
    "path",
    [
        "pages/",
        "pages/?child_of=root",
        "pages/?child_of=root&ancestor_of=7",
        "pages/find/?html_path=/",
    ],
)
def test_a_site_of_hidden_pages_is_as_one_without_pages(
    make_api: MakeAPI, hides: Record, path: str
) -> None:
    hiding, without = pair(make_api, {"pages": [page(1, **hides)]}, {})
    assert answers(hiding, path) == answers(without, path)
