"""What each setting does, and that wrong values are refused at start-up."""

from __future__ import annotations

import dataclasses
from argparse import ArgumentTypeError
from typing import Any

import pytest
from flask import Flask

from flask_contentapi import ConfigurationError, ContentAPI
from flask_contentapi.settings import Settings
from flask_contentapi.state import State
from flask_contentapi_memory import MemoryBackend
from tests.api import API
from tests.conftest import MakeAPI
from tests.samples import document, image, page, site
from tests.stores import named_backends, on_memory, wrong_variables

pytestmark = on_memory

CONTENT: dict[str, list[Any]] = {
    "locales": ["en", "fr"],
    "sites": [site(1, "a.example", is_default=True)],
    "pages": [
        page(1, title="storm", translation_key="home"),
        *(page(n, 1, title="storm") for n in range(2, 40)),
        page(50, locale="fr", translation_key="home"),
        page(51, 50, locale="fr"),
    ],
    "images": [image(1), image(2, file="https://cdn.example/2.png")],
    "documents": [document(1)],
}


@pytest.mark.parametrize("part", [Settings, State])
def test_every_part_of_an_instance_is_explained(part: Any) -> None:
    names = [field.name for field in dataclasses.fields(part)]
    assert [name for name in names if f":param {name}:" not in part.__doc__] == []


def configured(make_api: MakeAPI, **settings: Any) -> API:
    """The API with some settings, at the site's own host."""
    return make_api(CONTENT, config=settings).at("a.example")


def refused(**settings: Any) -> str:
    """The message of the error that refuses some settings."""
    app = Flask("site")
    app.config.update(settings)
    with pytest.raises(ConfigurationError) as raised:
        ContentAPI(app)
    assert "contentapi" not in app.blueprints
    return str(raised.value)


WRONG: dict[str, list[Any]] = {
    "CMSAPI_URL_PREFIX": [
        *(None, "", "api", 5, b"/api", "/api/<x>"),
        *("/a b", "/a?b", "/a#b", "/a//b", "//a", "/ä", "/a%20b"),
    ],
    "CMSAPI_BASE_URL": [
        *("", 5, "example.org", "/cms", "ftp://x.example", "https://", "//x.example"),
        *(
            "https://x/?a=b",
            "https://x/#a",
            "https://[x",
            "https://x:port",
            "https://x:0",
            "https://x y",
            "https://a:b@x",
            "https://x/é",
            "https://a..b",
            f"https://{'a' * 64}",
            "https://[1:2]",
        ),
    ],
    "CMSAPI_MEDIA_URL": [
        None,
        "",
        "media",
        5,
        "ftp://x.example",
        "http://",
        "/m?x=",
        "/m#",
        "/a b",
        "//cdn.example",
        "http://a@cdn.example",
        f"http://{'a' * 64}",
    ],
    "CMSAPI_LIMIT_MAX": [0, -1, "20", 2.5, True, [], 2**63],
    "CMSAPI_EMBED_MAX": [0, -1, "20", 2.5, True, [], 2**63],
    "CMSAPI_SEARCH_ENABLED": [None, 1, 0, "yes", "False"],
    "CMSAPI_EXPLORER": [1, 0, "yes", "None"],
    "CMS_I18N_ENABLED": [None, 1, "true"],
    "CMSAPI_I18N_ENABLED": [None, 1, "true"],
    "CMSAPI_STOP_WORDS": [None, "the and", 5, [1], [b"the"], {"the": 1}],
    "CMSAPI_RICH_TEXT_FORMAT": [None, "", "HTML", "text", 1, ["html"]],
    "CMSAPI_BACKEND": [None, 5, MemoryBackend],
}


@pytest.mark.parametrize(
    ("key", "value"), [(key, value) for key, values in WRONG.items() for value in values]
)
def test_wrong_settings_are_refused_by_name(key: str, value: Any) -> None:
    message = refused(**{key: value})
    assert message.startswith(f"{key} is {value!r}")


#: What is right in environment variables, by what is easily written instead.
WRITTEN: dict[str, tuple[list[str], str, list[str]]] = {
    "CMSAPI_BASE_URL": (["None", ""], "null for None", ["null", "https://a.example"]),
    "CMSAPI_LIMIT_MAX": (
        ["None", "abc", "", '"50"', "5O", "1_000"],
        "100 or null",
        ["100", "null"],
    ),
    "CMSAPI_SEARCH_ENABLED": (["False", "no", "", "0"], "true or false", ["true", "false"]),
    "CMSAPI_EXPLORER": (["None", "on", "", "1"], "true, false or null", ["true", "false", "null"]),
    "CMS_I18N_ENABLED": (["True", "yes", "1"], "true or false", ["true", "false"]),
    "CMSAPI_I18N_ENABLED": (["True", "yes", "on"], "true or false", ["true", "false"]),
    "CMSAPI_STOP_WORDS": (
        ["der,die", "['der', 'die']", "der", ""],
        '["der", "die"]',
        ['["der", "die"]', "[]"],
    ),
    "CMSAPI_RICH_TEXT_FORMAT": (["text", "", "HTML"], "html", ["html", "db_html"]),
    "CMSAPI_CACHE_SIZE": (["16MB", "16 << 20", ""], "16777216", ["16777216", "0"]),
    "CMSAPI_CACHE_MAX_AGE": (["None", "1h", ""], "60 or null", ["60", "null"]),
    "CMSAPI_CACHE_STALE_WHILE_REVALIDATE": (["None", "60s"], "60", ["60"]),
    "CMSAPI_CACHE_TAG_HEADER": (["None", "", "cache-tag"], "null for None", ["null", "Cache-Tag"]),
    "CMSAPI_RELEASE": (
        ["1e5", "true", "null", "[7]"],
        """it in double quotes, as '"1e5"'""",
        ["7"],
    ),
}


@pytest.mark.parametrize(
    ("key", "text"), [(key, text) for key, (wrong, *_) in WRITTEN.items() for text in wrong]
)
def test_wrong_environment_variables_are_told_what_is_right(
    monkeypatch: pytest.MonkeyPatch, key: str, text: str
) -> None:
    with pytest.raises(ConfigurationError) as raised:
        ContentAPI(from_environment(monkeypatch, key, text))
    assert str(raised.value).startswith(f"{key} is ")
    assert str(raised.value).endswith(f"; in environment variables write {WRITTEN[key][1]}.")


@pytest.mark.parametrize(
    ("key", "text"), [(key, text) for key, (*_, right) in WRITTEN.items() for text in right]
)
def test_right_environment_variables_are_taken(
    monkeypatch: pytest.MonkeyPatch, key: str, text: str
) -> None:
    ContentAPI(from_environment(monkeypatch, key, text))


@pytest.mark.parametrize("key", ["CMSAPI_URL_PREFIX", "CMSAPI_MEDIA_URL", "CMSAPI_BACKEND"])
@pytest.mark.parametrize("text", ["5", "null", "true", "", '["/a"]'])
def test_texts_are_refused_as_anything_else(
    monkeypatch: pytest.MonkeyPatch, key: str, text: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"^{key}(:| is) "):
        ContentAPI(from_environment(monkeypatch, key, text))


@pytest.mark.parametrize(("text", "warned"), [("no", 1), ("True", 1), ("0", 0), ("false", 0)])
def test_debug_mode_by_a_text_is_reported(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, text: str, warned: int
) -> None:
    ContentAPI(from_environment(monkeypatch, "DEBUG", text), backend=MemoryBackend())
    said = [message for message in caplog.messages if message.endswith("write true or false.")]
    assert len(said) == warned


@pytest.mark.parametrize(
    ("text", "config", "warned"),
    [
        ("5", {}, 1),
        ("5", {"CMSAPI_LIMIT_MAX": 6}, 1),
        ("5", {"CMSAPI_LIMIT_MAX": 5}, 0),
        ("null", {}, 1),
        ("null", {"CMSAPI_LIMIT_MAX": None}, 0),
    ],
)
def test_variables_that_nobody_reads_are_reported(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    text: str,
    config: dict[str, Any],
    warned: int,
) -> None:
    monkeypatch.setenv("FLASK_CMSAPI_LIMIT_MAX", text)
    app = Flask("site")
    app.config.update(config)
    ContentAPI(app, backend=MemoryBackend())
    said = "FLASK_CMSAPI_LIMIT_MAX is set, but CMSAPI_LIMIT_MAX is something else"
    assert sum(said in message for message in caplog.messages) == warned


def from_environment(monkeypatch: pytest.MonkeyPatch, key: str, text: str) -> Flask:
    """An application with a setting from an environment variable."""
    monkeypatch.setenv(f"FLASK_{key}", text)
    app = Flask("site")
    app.config.from_prefixed_env()
    return app


@pytest.mark.parametrize("release", ["4031977", '"12e4567"', "3f2a"])
def test_releases_in_the_environment_may_look_like_numbers(
    monkeypatch: pytest.MonkeyPatch, release: str
) -> None:
    app = from_environment(monkeypatch, "CMSAPI_RELEASE", release)
    ContentAPI(app)
    assert app.extensions["contentapi"]["contentapi"].settings.release == release.strip('"')


def test_releases_that_were_taken_for_fractions_can_be_quoted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = from_environment(monkeypatch, "CMSAPI_RELEASE", "12e4567")
    with pytest.raises(ConfigurationError, match=r"CMSAPI_RELEASE is inf; .* in double quotes"):
        ContentAPI(app)


@pytest.mark.parametrize("address", ["", "nowhere", ":x", "nowhere:secret", "memory:secret"])
def test_addresses_of_no_backend_are_refused(address: str) -> None:
    assert refused(CMSAPI_BACKEND=address).startswith("CMSAPI_BACKEND: ")
    assert "memory" in refused(CMSAPI_BACKEND="nowhere:secret")
    assert "The name of the backend is empty. Installed are" in refused(CMSAPI_BACKEND="")
    assert "secret" not in refused(CMSAPI_BACKEND="nowhere:secret")


# The option and the variables for tests.


@pytest.mark.parametrize("wrong", ["", "memory,sqllite", "memory;sqlite", "all,memory"])
def test_wrong_backends_for_tests_are_told(wrong: str) -> None:
    with pytest.raises(ArgumentTypeError, match=f"^{wrong!r} must be all, or some of memory,"):
        named_backends(wrong)


def test_right_backends_for_tests_are_taken() -> None:
    assert named_backends("memory, mariadb") == ("memory", "mariadb")
    assert named_backends("all") == ("memory", "jsonfiles", "sqlite", "postgresql", "mariadb")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("CONTENTAPI_REQUIRE_SERVERS", wrong) for wrong in ("0", "yes")),
        ("CONTENTAPI_TEST_POSTGRESQL", "127.0.0.1:5432"),
        ("CONTENTAPI_TEST_POSTGRESQL", "postgresql://a@127.0.0.1/site"),
        ("CONTENTAPI_TEST_MARIADB", "postgresql://a@127.0.0.1"),
    ],
)
def test_wrong_variables_for_tests_are_told(name: str, value: str) -> None:
    (told,) = wrong_variables({name: value})
    assert told.startswith(f"{name} is {value!r}; it must be ")


def test_right_variables_for_tests_are_taken() -> None:
    right = {
        "CONTENTAPI_REQUIRE_SERVERS": "1",
        "CONTENTAPI_TEST_POSTGRESQL": "postgresql://a@127.0.0.1:5432",
        "CONTENTAPI_TEST_MARIADB": "mariadb://root@127.0.0.1:3306",
    }
    assert [*wrong_variables({}), *wrong_variables(right)] == []


# The effect of each setting.


@pytest.mark.parametrize("prefix", ["/content", "/content/", "/v2/a.b/c-d/", "/@x"])
def test_the_prefix_is_where_the_api_is(make_api: MakeAPI, prefix: str) -> None:
    app = make_api(CONTENT, config={"CMSAPI_URL_PREFIX": prefix}).app
    api = API(app, prefix.rstrip("/"), "a.example")
    item = api.items("pages/?limit=1")[0]
    assert api.follow(item["meta"]["detail_url"]).get_json()["id"] == 1
    assert item["meta"]["detail_url"].isascii()
    names = ("pages", "images", "documents", "redirects")
    known = ", ".join(f"{api.prefix}/{name}/" for name in names)
    told = f"There are {known}; {api.prefix}/ describes them."
    assert api.refusal("nowhere", 404).endswith(f"at this address. {told}")
    assert app.test_client().get("/api/v2/pages/").mimetype == "text/html"


def test_the_api_may_be_the_whole_site(make_api: MakeAPI) -> None:
    api = API(make_api(CONTENT, config={"CMSAPI_URL_PREFIX": "/"}).app, "", "a.example")
    assert api.items("pages/")[0]["meta"]["detail_url"] == "http://a.example/pages/1/"
    assert api.get("").mimetype == "application/json"


def test_the_base_address_is_in_front(make_api: MakeAPI) -> None:
    for base in ("https://www.example", "https://www.example:8443/cms/", "http://[::1]:8000/x"):
        api = configured(make_api, CMSAPI_BASE_URL=base)
        start = base.rstrip("/")
        assert api.items("images/")[0]["meta"] == {
            "type": "media.Picture",
            "detail_url": f"{start}/api/v2/images/1/",
            "tags": [],
            "download_url": f"{start}/media/1.png",
        }


@pytest.mark.parametrize(
    ("media", "url"),
    [
        ("/media/", "http://a.example/media/1.png"),
        ("/files", "http://a.example/files/1.png"),
        ("/", "http://a.example/1.png"),
        ("https://cdn.example", "https://cdn.example/1.png"),
        ("https://cdn.example/x/", "https://cdn.example/x/1.png"),
    ],
)
def test_files_are_at_the_media_address(make_api: MakeAPI, media: str, url: str) -> None:
    api = configured(make_api, CMSAPI_MEDIA_URL=media)
    found = [item["meta"]["download_url"] for item in api.items("images/")]
    assert found == [url, "https://cdn.example/2.png"]


@pytest.mark.parametrize(
    ("highest", "default", "allowed", "refused"),
    [(20, 20, 20, 21), (5, 5, 5, 6), (1, 1, 1, 2), (100, 20, 100, 101), (None, 20, 10**30, None)],
)
def test_the_highest_limit(
    make_api: MakeAPI, highest: int | None, default: int, allowed: int, refused: int | None
) -> None:
    api = configured(make_api, CMSAPI_LIMIT_MAX=highest)
    assert len(api.items("pages/")) == default
    assert len(api.items(f"pages/?limit={allowed}")) == min(allowed, 39)
    if refused is not None:
        assert str(highest) in api.refusal(f"pages/?limit={refused}")


def test_search_can_be_off(make_api: MakeAPI) -> None:
    api = configured(make_api, CMSAPI_SEARCH_ENABLED=False)
    for query in ("search=storm", "search=", "autocomplete=s"):
        assert api.refusal(f"pages/?{query}").endswith("Searching is switched off.")
    assert api.total("pages/") == api.total("pages/?search_operator=or") == 39


def test_without_languages_their_parameters_are_unknown(make_api: MakeAPI) -> None:
    api = configured(make_api)
    assert api.total("pages/") == 39
    for query in ("locale=en", "locale=", "translation_of=1", "translation_of=root"):
        assert query.partition("=")[0] in api.refusal(f"pages/?{query}")
    assert "locale" not in api.items("pages/")[0]["meta"]
    assert "locale" not in api.json("pages/1/")["meta"]
    assert api.items("pages/?fields=locale")[0]["meta"]["locale"] == "en"
    assert api.json("pages/1/?fields=*")["meta"]["locale"] == "en"
    assert api.ids("pages/?order=locale,-id&limit=1") == [39]
    assert api.status("pages/51/") == 404


@pytest.mark.parametrize("key", ["CMS_I18N_ENABLED", "CMSAPI_I18N_ENABLED"])
def test_with_languages_their_trees_and_parameters_are_there(make_api: MakeAPI, key: str) -> None:
    api = configured(make_api, **{key: True})
    assert api.total("pages/") == 41
    assert api.ids("pages/?locale=fr") == [50, 51]
    assert api.ids("pages/?translation_of=1") == [50]
    assert api.ids("pages/?translation_of=root&locale=en") == []
    assert api.refusal("pages/?locale=xx", 404)
    assert api.refusal("pages/?locale=", 404)
    assert api.items("pages/")[0]["meta"]["locale"] == "en"
    assert api.json("pages/51/")["meta"]["locale"] == "fr"
    assert api.items("pages/?fields=-locale")[0]["meta"].keys() == {
        *("type", "detail_url", "html_url", "slug", "first_published_at")
    }


def test_an_instance_can_differ_from_the_others_in_languages(make_api: MakeAPI) -> None:
    settings = {"CMS_I18N_ENABLED": True, "CMSAPI_I18N_ENABLED": False}
    assert configured(make_api, **settings).total("pages/") == 39


@pytest.mark.parametrize(
    ("words", "found"),
    [((), 0), ([], 0), ({"storm"}, 2), (["STÖRM"], 2), (["no", "the-storm"], 2), (["sto"], 0)],
)
def test_stop_words_are_left_out(make_api: MakeAPI, words: Any, found: int) -> None:
    api = configured(make_api, CMSAPI_STOP_WORDS=words, CMS_I18N_ENABLED=True)
    assert api.total("pages/?search=storm page&search_operator=and") == found
    assert api.total("pages/?search=storm") == 39


def test_a_backend_can_be_given_itself(make_api: MakeAPI) -> None:
    for options in (
        {"backend": MemoryBackend(CONTENT)},
        {"config": {"CMSAPI_BACKEND": MemoryBackend(CONTENT)}},
    ):
        api = make_api(CONTENT, **options).at("a.example")
        assert api.total("pages/") == 39
