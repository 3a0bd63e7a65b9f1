"""Lifetimes: how long an answer may be reused without asking, and never longer than it is true."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from marshmallow import fields

from flask_contentapi import APIField, ConfigurationError, Entry, Page, Redirect, Related
from tests.api import API
from tests.conftest import MakeAPI
from tests.edits import NOW, Clock
from tests.samples import image, page, plain, private, site
from tests.stores import on_memory, on_two

pytestmark = on_two

AGE, STALE = "CMSAPI_CACHE_MAX_AGE", "CMSAPI_CACHE_STALE_WHILE_REVALIDATE"
TAGS = "CMSAPI_CACHE_TAG_HEADER"
#: When the content changes by itself, in seconds from now.
BEGINS, ENDS = 100, 200
CONTENT = {
    "sites": [site(1)],
    "pages": [
        page(1),
        page(2, 1, go_live_at=(NOW + timedelta(seconds=BEGINS)).isoformat()),
        page(3, 1, expires_at=(NOW + timedelta(seconds=ENDS)).isoformat()),
        page(4, 1, expires_at=(NOW - timedelta(seconds=1)).isoformat()),
        page(5, 1, go_live_at=(NOW - timedelta(seconds=1)).isoformat()),
    ],
    "images": [image(1)],
}
PATHS = ["pages/", "pages/1/", "pages/3/", "images/", "images/1/"]


class Timed:
    """A site and its clock."""

    def __init__(
        self, make_api: MakeAPI, content: Any = CONTENT, can_view: Any = None, **config: Any
    ) -> None:
        self.clock = Clock()
        self.api: API = make_api(content, config=config, clock=self.clock, can_view=can_view)

    def said(self, path: str, seconds: float = 0) -> str:
        """The ``Cache-Control`` of an answer, some seconds from now."""
        self.clock.now = NOW + timedelta(seconds=seconds)
        response = self.api.get(path)
        return response.headers["Cache-Control"]


@pytest.fixture(scope="module")
def kept(make_api: MakeAPI) -> Timed:
    """A site whose answers may be reused for half a minute."""
    return Timed(make_api, **{AGE: 30, STALE: 20})


@on_memory
def test_without_a_setting_everybody_has_to_ask(make_api: MakeAPI) -> None:
    site = Timed(make_api)
    assert {site.said(path) for path in PATHS} == {"public, no-cache"}


@on_memory
def test_without_an_age_nothing_gets_stale(make_api: MakeAPI) -> None:
    assert Timed(make_api, **{STALE: 20}).said("pages/") == "public, no-cache"


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({AGE: 0}, "public, max-age=0"),
        ({AGE: 60}, "public, max-age=60"),
        ({AGE: 60, STALE: 30}, "public, max-age=60, stale-while-revalidate=30"),
        ({AGE: 0, STALE: 30}, "public, max-age=0, stale-while-revalidate=30"),
        ({AGE: 99, STALE: 30}, "public, max-age=99, stale-while-revalidate=1"),
        ({AGE: 100, STALE: 30}, "public, max-age=100"),
        ({AGE: 101, STALE: 30}, "public, max-age=100"),
        ({AGE: 10**12, STALE: 10**12}, "public, max-age=100"),
    ],
)
def test_answers_are_kept_as_long_as_the_settings_and_time_allow(
    make_api: MakeAPI, config: dict[str, int], said: str
) -> None:
    site = Timed(make_api, **config)
    assert {site.said(path) for path in PATHS} == {said}


@on_memory
@pytest.mark.parametrize(
    ("key", "value"),
    [
        *((AGE, -1), (AGE, 1.5), (AGE, "60"), (AGE, True)),
        *((STALE, -1), (STALE, None), (STALE, "0")),
        *((TAGS, "X-Tags"), (TAGS, "cache-tag"), (TAGS, True), ("CMSAPI_RELEASE", True)),
    ],
)
def test_settings_that_say_nothing_are_refused(make_api: MakeAPI, key: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=key):
        Timed(make_api, **{key: value})


@on_memory
def test_private_answers_are_kept_as_long_by_their_readers(make_api: MakeAPI) -> None:
    content = {"pages": [page(1), page(2, 1, restriction=private())]}
    site = Timed(make_api, content, can_view=bool, **{AGE: 30})
    assert site.said("pages/1/") == "private, max-age=30"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "public, max-age=30, stale-while-revalidate=20"),
        (50, "public, max-age=30, stale-while-revalidate=20"),
        (50.5, "public, max-age=30, stale-while-revalidate=19"),
        (69, "public, max-age=30, stale-while-revalidate=1"),
        (70, "public, max-age=30"),
        (98.5, "public, max-age=1"),
        (99, "public, max-age=1"),
        (99.000001, "public, max-age=0"),
        (99.999999, "public, max-age=0"),
        (100, "public, max-age=30, stale-while-revalidate=20"),
        (199.5, "public, max-age=0"),
        (200, "public, max-age=30, stale-while-revalidate=20"),
        (10**6, "public, max-age=30, stale-while-revalidate=20"),
    ],
)
def test_no_lifetime_goes_beyond_the_next_moment(kept: Timed, seconds: float, said: str) -> None:
    assert {kept.said(path, seconds) for path in PATHS if path != "pages/3/"} == {said}


@pytest.mark.parametrize("column", ["go_live_at", "expires_at"])
def test_what_drafts_are_to_become_does_not_count(make_api: MakeAPI, column: str) -> None:
    soon = (NOW + timedelta(seconds=BEGINS)).isoformat()
    content = {"sites": [site(1)], "pages": [page(1), page(2, 1, live=False, **{column: soon})]}
    timed = Timed(make_api, content, **{AGE: 1000})
    assert timed.said("pages/") == "public, max-age=1000"


def test_content_that_time_does_not_change_is_kept_for_good(make_api: MakeAPI) -> None:
    content = {"pages": [page(1), page(2, 1, first_published_at="2026-06-01T00:01:00Z")]}
    assert Timed(make_api, content, **{AGE: 10**6}).said("pages/") == "public, max-age=1000000"


@on_memory
def test_answers_to_who_knows_them_are_kept_as_long(kept: Timed) -> None:
    kept.said("pages/", 80)
    tag = kept.api.get("pages/").headers["ETag"]
    kept.said("pages/", 90)
    response = kept.api.get("pages/", headers={"If-None-Match": tag})
    assert response.status_code == 304
    assert response.headers["Cache-Control"] == "public, max-age=10"


@pytest.mark.parametrize("path", ["pages/", "pages/1/", "images/1/"])
@pytest.mark.parametrize("moment", [BEGINS, ENDS])
def test_tags_change_at_the_moment_and_only_then(kept: Timed, path: str, moment: int) -> None:
    tags = []
    for seconds in (moment - 50, moment - 0.000001, moment, moment + 50):
        kept.said(path, seconds)
        tags.append(kept.api.get(path).headers["ETag"])
    assert tags[0] == tags[1] != tags[2] == tags[3]


def test_a_page_that_is_over_is_not_known_any_more(kept: Timed) -> None:
    kept.said("pages/3/", ENDS - 1)
    tag = kept.api.get("pages/3/").headers["ETag"]
    kept.clock.wait(1)
    for tags in (tag, "*"):
        assert kept.api.get("pages/3/", headers={"If-None-Match": tags}).status_code == 404


@on_memory
@pytest.mark.parametrize("path", ["pages/?order=random", "images/?order=random&limit=1"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_random_answers_are_not_kept(kept: Timed, path: str, method: str) -> None:
    kept.clock.now = NOW
    response = kept.api.get(path, method=method)
    assert response.headers["Cache-Control"] == "no-store"
    assert "ETag" not in response.headers


@on_memory
def test_random_answers_are_never_known(kept: Timed) -> None:
    kept.clock.now = NOW
    tag = kept.api.get("images/").headers["ETag"]
    assert kept.api.get("images/?order=random", headers={"If-None-Match": tag}).status_code == 200


@on_memory
@pytest.mark.parametrize(
    "path", ["pages/2/", "pages/99/", "pages/?limit=x", "x/", "pages/find/?html_path=/p2/"]
)
def test_errors_are_not_kept(kept: Timed, path: str) -> None:
    assert kept.said(path) == "no-store"


@on_memory
def test_wrong_methods_are_not_kept(kept: Timed) -> None:
    response = kept.api.get("pages/", method="POST")
    assert (response.status_code, response.headers["Cache-Control"]) == (405, "no-store")


def test_what_only_leads_elsewhere_is_kept_as_long_and_has_no_tag(kept: Timed) -> None:
    said = kept.said("pages/find/?html_path=/p3/", 98)
    assert said == "public, max-age=2"
    assert "ETag" not in kept.api.get("pages/find/?html_path=/p3/").headers


class Coast(Entry):
    """A place with a volatile field."""

    app_label, endpoint = "w", "coasts"
    api_fields = [APIField("feels", fields.Function(lambda coast: "cold"), volatile=True)]


class Trip(Page):
    """A page that links to a place."""

    app_label = "w"
    to = Related("coasts")
    api_fields = ["to"]


@pytest.fixture(scope="module")
def trips(make_api: MakeAPI) -> API:
    """A site with trips to coasts."""
    content = {"sites": [site(2)], "coasts": [{"id": 1}], "pages": [page(2, type="w.Trip", to=1)]}
    return make_api(content, types=[Coast, Trip])


#: For each address, whether the answer shows something volatile.
VOLATILE = {
    "coasts/1/": True,
    "coasts/?fields=feels": True,
    "pages/?type=w.Trip&fields=to(feels)": True,
    "pages/2/?fields=to(feels)": True,
    "pages/2/?fields=to(*)": True,
    "coasts/": False,
    "coasts/1/?fields=-feels": False,
    "pages/2/": False,
    "pages/2/?fields=to(*,-feels)": False,
}


@on_memory
@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("path", VOLATILE)
def test_answers_that_depend_on_more_than_content_are_not_kept(
    trips: API, path: str, method: str
) -> None:
    response = trips.get(path, method=method)
    assert response.status_code == 200
    assert (response.headers["Cache-Control"] == "no-store") is VOLATILE[path]
    assert ("ETag" not in response.headers) is VOLATILE[path]


# What a reader never sees does not end a lifetime.


def soon(seconds: int) -> str:
    """A moment some seconds from now."""
    return (NOW + timedelta(seconds=seconds)).isoformat()


TWO_SITES = {
    "sites": [site(1), site(50, "other.example"), site(60, "inner.example")],
    "collections": [{"id": 1, "restriction": private()}],
    "images": [image(1), image(2, collection=1)],
    "pages": [
        page(1),
        page(2, 1, restriction=private(), expires_at=soon(10)),
        page(3, 2, expires_at=soon(20)),
        page(4, 1, expires_at=soon(90)),
        page(5, 1, alias_of=51),
        page(6, 1, alias_of=4),
        page(7, 1, alias_of=52),
        page(8, 1, go_live_at=soon(40), expires_at=soon(40)),
        page(50),
        page(51, 50, expires_at=soon(30)),
        page(52, 50, go_live_at=soon(30)),
        page(60, 1),
        page(61, 60, expires_at=soon(50)),
        page(70),
        page(71, 70, expires_at=soon(5)),
    ],
}
#: For each request the seconds that its answer may be kept.
SEEN = {
    "pages/": 50,
    "pages/?fields=*,-alias_of": 50,
    "pages/1/": 50,
    "pages/4/": 50,
    "pages/?site=inner.example": 50,
    "pages/?site=other.example": 30,
    "pages/find/?html_path=/p4/": 50,
    "images/": 50,
    "images/1/": 50,
    # These look at pages of other sites, which are seen with the eyes of the same reader.
    "pages/?fields=alias_of": 5,
    "pages/5/": 5,
    "pages/5/?fields=-alias_of": 50,
    "pages/6/": 50,
    "pages/7/": 5,
    "pages/?alias_of=51": 5,
    "pages/?alias_of__isnull=false": 5,
    "pages/?alias_of__not=51": 5,
    "pages/?title__not=51": 50,
    "pages/?facets=alias_of": 5,
    "pages/?facets=title,type": 50,
    "pages/?order=alias_of": 5,
}


@pytest.mark.parametrize("path", SEEN)
def test_only_what_is_seen_ends_a_lifetime(make_api: MakeAPI, path: str) -> None:
    timed = Timed(make_api, TWO_SITES, **{AGE: 1000})
    assert timed.said(path) == f"public, max-age={SEEN[path]}"


def test_restricted_pages_end_lifetimes_for_who_sees_them(make_api: MakeAPI) -> None:
    timed = Timed(make_api, TWO_SITES, can_view=bool, **{AGE: 1000})
    assert [timed.said("pages/", seconds) for seconds in (0, 10, 20)] == [
        *("private, max-age=10", "private, max-age=10", "private, max-age=30")
    ]


def test_an_answer_changes_with_what_it_shows_of_another_site(make_api: MakeAPI) -> None:
    timed = Timed(make_api, TWO_SITES, **{AGE: 1000})
    paths = ["pages/5/", "pages/7/", "pages/?fields=alias_of", "pages/?order=alias_of&fields=_,id"]
    before = {path: timed.api.get(path) for path in paths}
    timed.clock.now = NOW + timedelta(seconds=29)
    for path, known in before.items():
        again = timed.api.get(path, headers={"If-None-Match": known.headers["ETag"]})
        left = "public, max-age=1"
        # Page 71, which the order could be about, has expired meanwhile.
        assert (again.status_code, again.headers["Cache-Control"]) in [(200, left), (304, left)]
        assert again.status_code == 304 or again.data == known.data
    timed.clock.now = NOW + timedelta(seconds=30)
    for path, known in before.items():
        again = timed.api.get(path, headers={"If-None-Match": known.headers["ETag"]})
        assert again.status_code == 200
        assert again.data != known.data


def test_what_another_site_shows_leaves_etags_as_they_are(make_api: MakeAPI) -> None:
    timed = Timed(make_api, TWO_SITES, **{AGE: 1000})
    paths = ["pages/", "pages/4/", "pages/6/", "pages/?child_of=1", "images/", "images/1/"]
    before = {path: timed.api.get(path).headers["ETag"] for path in paths}
    timed.clock.now = NOW + timedelta(seconds=49)
    for path, etag in before.items():
        again = timed.api.get(path, headers={"If-None-Match": etag})
        assert (again.status_code, again.headers["ETag"]) == (304, etag)
        assert again.headers["Cache-Control"] == "public, max-age=1"
        assert timed.api.get(path).headers["ETag"] == etag


class FormerPage(Page):
    app_label = "tests"
    former = Related("redirects")
    api_fields = ["former"]


def test_relations_that_lead_nowhere_depend_on_no_other_site(make_api: MakeAPI) -> None:
    content = {
        "sites": [site(1), site(2, "other.test")],
        "pages": [
            page(1, type="tests.FormerPage"),
            plain(2),
            plain(3, 2, expires_at=(NOW + timedelta(seconds=ENDS)).isoformat()),
        ],
    }
    types = [FormerPage, Redirect, Page]
    api = make_api(content, types=types, config={AGE: 1000}, clock=Clock())
    assert api.get("pages/1/").headers["Cache-Control"] == "public, max-age=1000"
