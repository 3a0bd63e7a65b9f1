"""Tokens show one object that is not public yet, and nothing else that is hidden."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from flask_contentapi import ConfigurationError, ContentAPI
from tests.api import API
from tests.conftest import MakeAPI
from tests.databases import noted, on_databases
from tests.samples import document, image, page, private, site
from tests.stores import on_memory, on_two

pytestmark = on_two

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TOMORROW = NOW + timedelta(days=1)
#: Page 3 is previewed; 4 to 8 are hidden as well, and so are the media from 2 on.
CONTENT: Mapping[str, Any] = {
    "sites": [site(1, is_default=True), site(20, "other.example")],
    "collections": [{"id": 1, "name": "Vault", "restriction": private()}],
    "pages": [
        page(1),
        page(2, 1, type="guide.TrailPage", stops=[3, 4, 1], lead=3, title="Trail"),
        page(3, 1, title="Draft owl", live=False, slug="draft"),
        page(4, 1, title="Draft hawk", live=False),
        page(5, 1, title="Soon", go_live_at=TOMORROW.isoformat()),
        page(6, 1, title="Over", expires_at=NOW.isoformat()),
        page(7, 1, title="Private", restriction=private()),
        page(8, 7, title="Below"),
        page(9, 3, title="Child"),
        page(20, None, title="Other", slug="other"),
        page(21, 20, title="Other draft", live=False),
    ],
    "images": [image(1), image(2, collection=1), image(3, collection=1)],
    "documents": [document(1), document(2, collection=1)],
}


class Previews:
    """The API, and what makes tokens for it."""

    def __init__(self, api: API) -> None:
        self.api = api
        (state,) = api.app.extensions["contentapi"].values()
        self.write = state.previews.write

    def token(self, endpoint: str = "pages", identity: int = 3, **options: Any) -> str:
        given = {"max_age": 60, "moment": None, **options}
        return str(self.write((endpoint, identity), **given))


@pytest.fixture(scope="module")
def previews(make_api: MakeAPI) -> Previews:
    return Previews(make_api(CONTENT, config={"SECRET_KEY": "owl"}, clock=lambda: NOW))


@pytest.fixture(scope="module")
def api(previews: Previews) -> API:
    return previews.api


@pytest.fixture(scope="module")
def token(previews: Previews) -> str:
    return previews.token()


@on_databases
@pytest.mark.parametrize(
    "path", ["pages/1/?fields=*,children", "pages/?fields=children", "images/"]
)
def test_a_token_takes_one_statement_more(make_api: MakeAPI, path: str) -> None:
    config = {"SECRET_KEY": "owl", "CMSAPI_CACHE_SIZE": 0}
    previews = Previews(make_api(CONTENT, config=config, clock=lambda: NOW))
    token = previews.token(*(("images", 2) if path == "images/" else ("pages", 1)))
    taken = []
    for asked in (path, f"{path}{'&' if '?' in path else '?'}preview={token}"):
        previews.api.get(asked)
        with noted(previews.api) as statements:
            assert previews.api.status(asked) == 200
        taken.append(len(statements))
    assert taken[1] <= taken[0] + 1 <= 4


# Every door opens for the one object.


@pytest.mark.parametrize("identity", range(3, 9))
def test_whatever_is_hidden_can_be_previewed(previews: Previews, identity: int) -> None:
    token = previews.token(identity=identity)
    assert previews.api.status(f"pages/{identity}/") == 404
    assert previews.api.json(f"pages/{identity}/?preview={token}")["id"] == identity


@pytest.mark.parametrize(("endpoint", "identity"), [("images", 2), ("documents", 2)])
def test_media_can_be_previewed(previews: Previews, endpoint: str, identity: int) -> None:
    token = previews.token(endpoint, identity)
    assert previews.api.ids(f"{endpoint}/?preview={token}") == [1, 2]


def test_lists_show_it_and_no_other(api: API, token: str) -> None:
    assert api.ids(f"pages/?preview={token}") == [1, 2, 3, 9]


def test_the_parameter_can_be_percent_encoded(api: API, token: str) -> None:
    assert api.status(f"pages/3/?%70review={token}") == 200
    assert api.status("pages/3/?pre%76iew=none") == 403


def test_totals_count_it(api: API, token: str) -> None:
    assert api.total("pages/?limit=0") == 3
    assert api.total(f"pages/?limit=0&preview={token}") == 4
    assert api.total("pages/?limit=0") == 3


def test_relations_to_it_are_followed(api: API, token: str) -> None:
    trail = api.items(
        f"pages/?type=guide.TrailPage&fields=_,lead(_,id),stops(_,id)&preview={token}"
    )
    assert trail == [{"stops": [{"id": 3}, {"id": 1}], "lead": {"id": 3}}]


def test_lists_are_filtered_by_it(api: API, token: str) -> None:
    assert api.ids(f"pages/?type=guide.TrailPage&lead=3&preview={token}") == [2]
    assert api.ids("pages/?type=guide.TrailPage&lead=3") == []


def test_it_is_found_by_words(api: API, token: str) -> None:
    assert api.ids(f"pages/?search=draft&preview={token}") == [3]


def test_its_place_can_be_named(api: API, token: str) -> None:
    assert api.ids(f"pages/?child_of=3&preview={token}") == [9]
    assert api.status("pages/?child_of=3") == 400


def test_no_other_place_can_be_named(api: API, token: str) -> None:
    assert api.status(f"pages/?child_of=4&preview={token}") == 400


def test_ways_lead_through_it(api: API, token: str) -> None:
    path = f"pages/?id=9&fields=_,ancestors(_,id)&preview={token}"
    assert api.items(path) == [{"meta": {"ancestors": [{"id": 1}, {"id": 3}]}}]
    path = f"pages/?id=1&fields=_,children(_,id)&preview={token}"
    assert api.items(path) == [{"meta": {"children": [{"id": 2}, {"id": 3}]}}]


def test_find_leads_to_it(api: API, token: str) -> None:
    location = api.get(f"pages/find/?html_path=/draft/&preview={token}").headers["Location"]
    assert api.follow(location).get_json()["title"] == "Draft owl"


def test_it_is_shown_by_its_path(api: API, token: str) -> None:
    path = f"pages/detail_by_path/?html_path=/draft/&fields=_,title&preview={token}"
    assert api.json(path) == {"title": "Draft owl"}


def test_it_can_be_ordered_by(api: API, token: str) -> None:
    assert api.ids(f"pages/?order=-title&preview={token}") == [2, 1, 3, 9]


def test_what_is_below_a_private_page_stays_hidden(previews: Previews) -> None:
    token = previews.token(identity=7)
    assert previews.api.ids(f"pages/?preview={token}") == [1, 2, 9, 7]


def test_parents_of_the_previewed_stay_hidden(previews: Previews) -> None:
    token = previews.token(identity=8)
    assert previews.api.json(f"pages/8/?fields=parent&preview={token}")["meta"]["parent"] is None


def test_a_moment_to_come_is_shown(previews: Previews) -> None:
    token = previews.token(moment=TOMORROW)
    assert previews.api.ids(f"pages/?preview={token}") == [1, 2, 3, 9, 5]


# Tokens that are not accepted.


@pytest.mark.parametrize("wrong", ["", "x", "a.b", "%00", "é"])
def test_what_is_no_token_is_refused(api: API, wrong: str) -> None:
    assert api.refusal(f"pages/?preview={wrong}", 403) == "preview is no token of this API."


@pytest.mark.parametrize("place", [0, 5, -1])
def test_a_changed_token_is_refused(api: API, token: str, place: int) -> None:
    changed = [*token]
    changed[place] = "A" if changed[place] != "A" else "B"
    assert api.status(f"pages/3/?preview={''.join(changed)}") == 403


def other_token(make_api: MakeAPI, key: str, name: str) -> str:
    options = {"config": {"SECRET_KEY": key}, "clock": lambda: NOW, "name": name}
    return Previews(make_api(CONTENT, **options)).token()


def test_a_token_of_another_key_is_refused(make_api: MakeAPI, api: API) -> None:
    assert api.status(f"pages/3/?preview={other_token(make_api, 'hawk', 'contentapi')}") == 403


def test_a_token_of_another_instance_is_refused(make_api: MakeAPI, api: API) -> None:
    assert api.status(f"pages/3/?preview={other_token(make_api, 'owl', 'intranet')}") == 403


@pytest.mark.parametrize("path", ["pages/4/?", "pages/1/?", "images/1/?", "pages/find/?id=1&"])
def test_a_token_of_another_object_is_refused(api: API, token: str, path: str) -> None:
    message = "The token of preview is for another object."
    assert api.refusal(f"{path}preview={token}", 403) == message


@pytest.mark.parametrize("path", ["pages/21/", "pages/"])
def test_a_token_of_another_site_is_refused(previews: Previews, path: str) -> None:
    token = previews.token(identity=21)
    assert previews.api.at("other.example").status(f"{path}?preview={token}") == 200
    assert previews.api.status(f"{path}?preview={token}") == 403


@pytest.mark.parametrize(("max_age", "status"), [(1, 200), (0, 403)])
def test_a_token_of_another_time_is_refused(previews: Previews, max_age: int, status: int) -> None:
    token = previews.token(max_age=max_age)
    assert previews.api.status(f"pages/3/?preview={token}") == status


def test_what_is_gone_is_not_found(previews: Previews) -> None:
    assert previews.api.status(f"pages/99/?preview={previews.token(identity=99)}") == 404


@on_memory
def test_a_former_key_is_accepted(make_api: MakeAPI) -> None:
    config: dict[str, Any] = {"SECRET_KEY": "owl", "SECRET_KEY_FALLBACKS": ["hawk"]}
    own = Previews(make_api(CONTENT, config=config))
    old = Previews(make_api(CONTENT, config={"SECRET_KEY": "hawk"})).token()
    assert own.api.status(f"pages/3/?preview={old}") == 200


@on_memory
def test_the_last_of_several_tokens_counts(api: API, token: str) -> None:
    assert api.status(f"pages/3/?preview=x&preview={token}") == 200
    assert api.status(f"pages/3/?preview={token}&preview=x") == 403


@on_memory
@pytest.mark.parametrize(
    "config", [{"SECRET_KEY": 5}, {"SECRET_KEY": True}, {"SECRET_KEY_FALLBACKS": [5]}]
)
def test_keys_that_are_no_texts_sign_nothing(make_api: MakeAPI, config: dict[str, Any]) -> None:
    """As in an environment variable that has only digits."""
    previews = Previews(make_api(CONTENT, config={"SECRET_KEY": "owl", **config}))
    with pytest.raises(ConfigurationError, match="SECRET_KEY must be a text"):
        previews.token()
    assert previews.api.status("pages/?preview=a.b") == 403


@on_memory
def test_without_a_key_there_are_no_tokens(make_api: MakeAPI) -> None:
    api = make_api(CONTENT)
    with pytest.raises(ConfigurationError, match="SECRET_KEY, which is not set"):
        Previews(api).token()
    assert api.status("pages/3/?preview=x") == 403


# Nothing is kept.


PATHS = ["pages/?", "pages/3/?", "pages/find/?id=3&", "pages/detail_by_path/?html_path=/draft/&"]


@on_memory
@pytest.mark.parametrize("path", [*PATHS, "pages/?order=random&"])
def test_answers_may_not_be_kept(api: API, token: str, path: str) -> None:
    headers = api.get(f"{path}preview={token}").headers
    assert headers["Cache-Control"] == "private, no-store"
    assert "ETag" not in headers


@on_memory
@pytest.mark.parametrize("path", PATHS)
def test_no_answer_is_known(api: API, token: str, path: str) -> None:
    tag = api.get("pages/").headers["ETag"]
    for known in (tag, "*"):
        response = api.get(f"{path}preview={token}", headers={"If-None-Match": known})
        assert response.status_code in (200, 302)


@on_memory
def test_refusals_may_not_be_kept(api: API) -> None:
    assert "no-store" in api.get("pages/?preview=x").headers["Cache-Control"]


def test_an_expired_token_gets_nothing_that_was_answered(make_api: MakeAPI) -> None:
    clock = [NOW]
    own = Previews(make_api(CONTENT, config={"SECRET_KEY": "owl"}, clock=lambda: clock[0]))
    token = own.token()
    assert own.api.status(f"pages/3/?preview={token}") == 200
    clock[0] += timedelta(seconds=60)
    assert own.api.refusal(f"pages/3/?preview={token}", 403) == "The token of preview has expired."


# Where tokens come from.


@on_memory
def test_the_extension_makes_tokens(make_api: MakeAPI, api: API) -> None:
    own = ContentAPI(name="contentapi")
    with api.app.app_context():
        token = own.preview_token("pages", 3, max_age=60)
    assert api.status(f"pages/3/?preview={token}") == 200


@on_memory
def test_tokens_are_for_known_endpoints(api: API) -> None:
    own = ContentAPI(name="contentapi")
    with api.app.app_context(), pytest.raises(ValueError, match="no endpoint 'page'; there are"):
        own.preview_token("page", 3)


@on_memory
@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"id": "3"}, "id is '3'; it must be a number"),
        ({"id": 3, "max_age": "60"}, "max_age is '60'; it must be a number of seconds"),
        ({"id": 3, "at": "2099-01-02"}, "at is '2099-01-02'; it must be a datetime"),
    ],
)
def test_tokens_are_for_what_they_show(api: API, given: dict[str, Any], why: str) -> None:
    own = ContentAPI(name="contentapi")
    with api.app.app_context(), pytest.raises(ValueError, match=why):
        own.preview_token("pages", **given)


@on_memory
def test_a_token_can_last_as_long_as_it_likes(api: API) -> None:
    own = ContentAPI(name="contentapi")
    with api.app.app_context():
        token = own.preview_token("pages", 3, max_age=10**15)
    assert api.status(f"pages/3/?preview={token}") == 200


@on_memory
def test_only_a_moment_to_come_is_shown(api: API) -> None:
    own = ContentAPI(name="contentapi")
    with api.app.app_context(), pytest.raises(ValueError, match="it must be a moment to come"):
        own.preview_token("pages", 3, at=datetime(2026, 2, 28))


@on_memory
def test_the_command_prints_an_address(make_api: MakeAPI) -> None:
    api = make_api(CONTENT, config={"SECRET_KEY": "owl"})
    arguments = ["contentapi", "preview", "pages", "21"]
    printed = api.app.test_cli_runner().invoke(args=arguments).output.strip()
    given = dict(parse_qsl(urlsplit(printed).query))
    assert given["site"] == "other.example"
    assert api.app.test_client().get(printed).status_code == 200


@on_memory
@pytest.mark.parametrize(
    "arguments",
    [
        ["page", "3"],
        ["pages", "99"],
        ["pages", "x"],
        ["pages", "3", "--at", "2026-01-01"],
        ["pages", "3", "--max-age", "0"],
    ],
)
def test_the_command_refuses_what_is_not_there(api: API, arguments: list[str]) -> None:
    result = api.app.test_cli_runner().invoke(args=["contentapi", "preview", *arguments])
    assert result.exit_code == 2
