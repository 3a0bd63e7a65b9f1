"""Rows of a site's own models are served as if they were the backend's own content."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import peewee
import pytest
from hypothesis import given, note
from hypothesis import strategies as st
from marshmallow import fields

from flask_contentapi import (
    ContentError,
    Page,
)
from flask_contentapi.registry import Registry
from flask_contentapi_peewee import MappedModel, PeeweeBackend, TagRows
from flask_contentapi_peewee.writing import Writer
from tests.api import API
from tests.databases import noted, on_databases, writing
from tests.generated import IDS, LongNote, Note, contents, requests
from tests.mapped_site import (
    MODELS,
    UNDER,
    Content,
    Picture,
    Piece,
    Story,
    fill,
    mapped,
    open_database,
    serve,
    split,
)
from tests.model import RELATIONS
from tests.samples import Record, page, private
from tests.samples import site as site_record
from tests.test_model import ALLOWED, Pair, ask, make_pair
from tests.test_sql_statements import forget_totals
from tests.test_sql_writing import complete

pytestmark = on_databases


# Random rows.


@pytest.fixture(scope="module")
def database(backend: str) -> Iterator[peewee.Database]:
    """The site's own database."""
    with open_database(backend) as database:
        yield database


@pytest.fixture(scope="module")
def pair(database: peewee.Database) -> Pair:
    """The site that serves its rows, with internationalisation off, and on."""
    off, on = (serve(database, mapped(), {"CMS_I18N_ENABLED": i18n}) for i18n in (False, True))
    return off, on


@pytest.fixture(scope="module")
def memory() -> Pair:
    """The same sites with all content in memory."""
    return make_pair("memory")


@given(data=st.data(), content=contents(), i18n=st.booleans())
def test_rows_give_the_same_bytes_as_records(
    database: peewee.Database,
    pair: Pair,
    memory: Pair,
    data: st.DataObject,
    content: Content,
    i18n: bool,
) -> None:
    rows, records = pair[i18n], memory[i18n]
    own, theirs = split(content)
    fill(database, theirs)
    rows.load(own)
    dumped = rows.dump()
    records.load(dumped)
    assert len(dumped.get("images", ())) == len(content["images"])
    assert len(dumped["pages"]) == len(content["pages"]) + 1
    assert whole(rows) == whole(records)
    for _ in range(10):
        compare(rows, records, data.draw(requests(complete(dumped), i18n)))


def whole(api: API) -> list[bytes]:
    """All lists with all fields, and all details of pages."""
    lists = [ask(api, replace(ALLOWED, section=s), fields="*").data for s in RELATIONS]
    return [*lists, *(ask(api, ALLOWED, f"{id}/").data for id in [*IDS, UNDER])]


def compare(first: API, second: API, wanted: Any) -> None:
    """Compares the answers of two sites to the same request."""
    answers = [ask(api, wanted) for api in (first, second)]
    note(f"{answers[0].text}\n{answers[1].text}")
    if wanted.shuffled:
        assert answers[0].get_json().get("meta") == answers[1].get_json().get("meta")
    else:
        assert answers[0].data == answers[1].data


# One site: a home page, and the stories below another of the backend's own pages.

HEADERS = {"X-Now": "2026-06-01T00:00:00+00:00", "X-Open": ""}
#: The difference between the ids of stories and those of their rows.
SHIFT = 1000


def story(id: int, up: int | None = None, **values: Any) -> Record:
    """A story, as the record that corresponds to its row."""
    plain = {"title": f"Story {id}", "slug": f"s{id}", "live": True}
    return {"id": id, "type": "w.Note", "parent": up, **plain, **values}


def own_content() -> Content:
    """The content that is not in the site's tables."""
    return {
        "locales": ["en", "fr"],
        "sites": [site_record(1)],
        "collections": [{"id": 1, "restriction": private()}],
        "pages": [
            page(1, type="w.Plain", slug="home"),
            page(UNDER, 1, type="w.Plain", slug="über"),
            page(3, 1, type="w.LongNote", other=SHIFT + 1, picture=1, parts=[{"id": 99}]),
        ],
        "documents": [{"id": 1, "title": "Paper", "file": "p.pdf"}],
    }


def rows() -> Content:
    """The content of the site's tables, as records."""
    parts = [{"id": 7, "name": "second", "picture": 1}, {"id": 8, "name": "first", "picture": 2}]
    values: Record = {"picture": 1, "owner": 2, "paper": 1, "other": 3, "tags": ["a", "ä b"]}
    written: Record = {"moment": "2026-01-15T08:00:00Z", "day": "2026-01-15", "clock": "18:30"}
    numbers: Record = {"number": 7, "ratio": 0.1, "amount": "4.50", "exact": "0.25", "flag": True}
    texts: Record = {
        "text": "storm",
        "rich": "<p>night</p>",
        "body": [{"type": "t"}],
        "data": {"a": 1},
    }
    return {
        "pages": [
            story(1, slug="größe", parts=parts, **values, **written, **numbers, **texts),
            story(2, 1, slug="100%", number=-1, tags=["a"], picture=2),
            story(3, 2, slug="a b", locale="fr"),
            story(4, live=False, title="Draft"),
            story(5, 4, alias_of=SHIFT + 1),
            story(6, go_live_at="2027-01-01", owner=1),
            story(7, expires_at="2027-01-01", translation_key="k"),
        ],
        "images": [
            {"id": 1, "title": "Lamp", "file": "lamp.jpg", "tags": ["a"], "width": 3, "rank": 1},
            {"id": 2, "title": "Hidden", "file": "hidden.jpg", "collection": 1},
        ],
        "people": [{"id": 1, "name": "Ada", "boss": 2}, {"id": 2, "name": "Ben", "page": 1}],
    }


MakeSite = Callable[..., API]


@pytest.fixture
def make(database: peewee.Database) -> MakeSite:
    """Makes the site with fresh content; options are as for :func:`mapped`."""

    def made(models: list[MappedModel] | None = None, **options: Any) -> API:
        fill(database, rows())
        api = serve(database, models or mapped(**{"ids_from": SHIFT, **options}))
        api.load(own_content())
        return api

    return made


@pytest.fixture
def site(make: MakeSite) -> API:
    return make()


def ask_all(api: API, path: str) -> tuple[int, bytes, str | None]:
    """The parts of an answer that must be the same from two sites."""
    answer = api.get(path, headers=HEADERS)
    return answer.status_code, answer.data, answer.headers.get("Location")


def below(*slugs: str) -> str:
    """A request for the page at some slugs below the parent of all stories."""
    return f"pages/find/?html_path={quote('/'.join(['über', *slugs]))}"


PATHS = [
    "pages/?fields=*",
    "pages/?type=w.Note&fields=*",
    "pages/?type=w.LongNote&fields=*",
    "pages/?type=w.Note&fields=parts(picture(*)),owner(boss(boss(*))),picture(tags),other(*)",
    "pages/?order=-title&limit=3&offset=2",
    "pages/?type=w.Note&order=number,-title",
    "pages/?type=w.Note&order=picture",
    "pages/?type=w.Note&tags=a",
    "pages/?type=w.Note&tags=a,ä b",
    "pages/?type=w.Note&picture=1",
    "pages/?type=w.Note&picture=2",
    "pages/?type=w.Note&amount=4.5&exact=0.25&flag=true",
    "pages/?type=w.Note&moment=2026-01-15T09:00:00%2B01:00&day=2026-01-15&clock=18:30",
    "pages/?child_of=50",
    "pages/?child_of=1001",
    "pages/?descendant_of=root&limit=2",
    "pages/?descendant_of=1001",
    "pages/?ancestor_of=1003",
    "pages/?ancestor_of=1005",
    "pages/?search=storm",
    "pages/?search=night draft",
    "pages/?search=story&search_operator=and&order=title",
    "pages/?slug=100%25",
    "pages/1001/",
    "pages/1002/",
    "pages/1003/?fields=_,parent,html_url",
    "pages/1004/",
    "pages/1005/",
    "pages/1006/",
    "pages/3/",
    "pages/find/?id=1003",
    below("größe", "100%", "a b"),
    below("größe", "100%"),
    below("größe"),
    below("s4", "s5"),
    below("größe", "none"),
    below("none", "100%"),
    below("100%"),
    "images/?fields=*",
    "images/?tags=a",
    "images/1/",
    "images/2/",
    "people/?fields=*,boss(page(title))",
    "people/1/",
]


@pytest.fixture(scope="module")
def twins(database: peewee.Database) -> tuple[API, API]:
    """The site, and one with the same content in memory."""
    fill(database, rows())
    served = serve(database, mapped(ids_from=SHIFT))
    served.load(own_content())
    kept = make_pair("memory")[False]
    kept.load(served.dump())
    return served, kept


@pytest.mark.parametrize("path", PATHS)
def test_site_answers_as_if_its_rows_were_records(twins: tuple[API, API], path: str) -> None:
    first, second = (ask_all(api, path) for api in twins)
    assert first == second
    assert first[0] in (200, 302, 404)


def test_site_has_all_its_rows(twins: tuple[API, API]) -> None:
    pages = twins[0].items("pages/?fields=_,html_url,id", headers=HEADERS)
    urls = {page["id"]: page["meta"]["html_url"] for page in pages}
    assert urls.keys() == {1, UNDER, 3, 1001, 1002, 1003, 1005, 1007}
    assert urls[1003] == f"http://localhost/{quote('über/größe/100%/a b')}/"


def test_a_row_can_be_a_translation_of_the_home_page(database: peewee.Database) -> None:
    values: Record = {"locale": "fr", "translation_key": "home"}
    stories = [story(1), story(2, 1, **values), story(3, 2), story(4)]
    fill(database, {"pages": stories, "images": [], "people": []})
    api = serve(database, mapped(ids_from=SHIFT), {"CMS_I18N_ENABLED": True})
    home = page(1, type="w.Plain", slug="home", translation_key="home")
    api.load({**own_content(), "pages": [home, page(UNDER, type="w.Plain"), page(3, 1)]})
    found = api.items("pages/?fields=_,id,html_url", headers=HEADERS)
    urls = {page["id"]: page["meta"]["html_url"] for page in found}
    here = "http://localhost/"
    assert urls == {1: here, 3: f"{here}p3/", 1002: here, 1003: f"{here}s3/"}
    assert api.get("pages/1002/", headers=HEADERS).status_code == 200
    assert api.get("pages/1001/", headers=HEADERS).status_code == 404


# Statements.

#: Statements for a note: alias_of, tags, picture, paper, other, owner, parts, pictures of parts,
#: and the ids of others and pictures, of which mapped rows have none.
NOTE = 10
WITHIN = [
    ("pages/", 2),
    ("pages/?type=w.Note&fields=*", 2 + NOTE),
    ("pages/?descendant_of=1001&order=title", 2),
    ("pages/?type=w.Note&tags=a&search=story", 2),
    ("pages/1001/", 1 + NOTE + 1),
    ("pages/1002/?fields=_,title", 1),
    ("pages/find/?id=1001", 2),
    (below("größe", "100%"), 2),
    (below("none"), 2),
    ("images/?fields=*", 2 + 1),
    ("images/1/", 1 + 1),
]


@pytest.fixture(scope="module")
def told(database: peewee.Database) -> API:
    """The site, with a column that tells of changes; tests must not change it."""
    fill(database, rows())
    api = serve(database, mapped(ids_from=SHIFT, version=Story.changed))
    api.load(own_content())
    return api


@pytest.mark.parametrize(("path", "most"), WITHIN)
def test_rows_take_no_more_statements_than_records(told: API, path: str, most: int) -> None:
    ask_all(told, path)
    forget_totals(told)
    with noted(told) as statements:
        status, _, _ = ask_all(told, path)
    assert status in (200, 302, 404)
    assert 0 < len(statements) <= most


# Changes.


def change(database: peewee.Database, row: int, **values: Any) -> None:
    """Changes a story as the site's own code does, including the column that tells of changes."""
    with database:
        last = Story.select(peewee.fn.MAX(Story.changed)).scalar()
        Story.update(changed=last + 1, **values).where(Story.id == row).execute()


def test_a_changed_row_shows_in_the_next_request(make: MakeSite, database: Any) -> None:
    api = make(version=Story.changed)
    before = api.get("pages/1002/", headers=HEADERS)
    change(database, 2, headline="Another")
    after = api.get("pages/1002/", headers={**HEADERS, "If-None-Match": before.headers["ETag"]})
    assert after.get_json()["title"] == "Another"
    assert after.headers["ETag"] != before.headers["ETag"]


def test_an_unchanged_row_is_not_sent_again(make: MakeSite) -> None:
    api = make(version=Story.changed)
    tag = api.get("pages/1002/", headers=HEADERS).headers["ETag"]
    with noted(api) as statements:
        again = api.get("pages/1002/", headers={**HEADERS, "If-None-Match": tag})
    assert again.status_code == 304
    assert len(statements) == 1


def test_a_row_that_is_gone_is_gone(make: MakeSite, database: Any) -> None:
    api = make(version=Story.changed)
    total = api.total("pages/", headers=HEADERS)
    with database:
        Story.delete().where(Story.id == 7).execute()
    assert api.total("pages/", headers=HEADERS) == total - 1
    assert api.get("pages/1007/", headers=HEADERS).status_code == 404


def test_a_moved_row_takes_what_is_below_it_along(make: MakeSite, database: Any) -> None:
    api = make(version=Story.changed)
    assert 1003 in api.ids("pages/?descendant_of=1001", headers=HEADERS)
    change(database, 2, up=7, slug="moved")
    assert api.ids("pages/?descendant_of=1001", headers=HEADERS) == []
    url = api.json("pages/1003/", headers=HEADERS)["meta"]["html_url"]
    assert url == f"http://localhost/{quote('über/s7/moved/a b')}/"


def test_what_the_site_tells_of_has_another_tag(site: API, database: Any) -> None:
    before = site.get("pages/1002/", headers=HEADERS).headers["ETag"]
    with database:
        Story.update(headline="Thunder").where(Story.id == 2).execute()
    with writing(site) as writer:
        writer.refresh("pages", 1002)
    assert site.get("pages/1002/", headers=HEADERS).headers["ETag"] != before
    assert site.ids("pages/?search=thunder", headers=HEADERS) == [1002]


def test_all_pages_below_what_the_site_tells_of_are_told_of(site: API, database: Any) -> None:
    change(database, 1, slug="moved")
    with writing(site) as writer:
        writer.refresh("pages", 1001)
        assert {"pages-1001", "pages-1002", "pages-1003"} <= writer.tags()
        assert "pages-1007" not in writer.tags()


def test_a_page_that_is_gone_may_have_had_any_below_it(site: API, database: Any) -> None:
    with database:
        Story.delete().where(Story.id == 7).execute()
    with writing(site) as writer:
        writer.refresh("pages", 1007)
        assert writer.tags() == {"content"}


def test_what_no_row_can_be_is_passed_over(site: API) -> None:
    with writing(site) as writer:
        writer.refresh("pages", 2**70, 1002)
        assert "pages-1002" in writer.tags()


def test_all_words_can_be_found_anew(site: API, database: Any) -> None:
    with database:
        Story.insert(id=8, headline="Snow", slug="snow", live=True).execute()
        Story.delete().where(Story.id == 7).execute()
    site.backend.reload()
    assert site.ids("pages/?search=snow", headers=HEADERS) == [1008]
    found = site.ids("pages/?search=story&order=id", headers=HEADERS)
    assert found == [1001, 1002, 1003, 1005]


# Rows without a version.


@pytest.fixture
def untold(make: MakeSite) -> API:
    return make(version=False)


def test_rows_without_a_version_have_no_tag(untold: API) -> None:
    answer = untold.get("pages/1002/", headers={**HEADERS, "If-None-Match": '"x", W/"y"'})
    assert answer.status_code == 200
    assert "ETag" not in answer.headers
    assert answer.headers["Cache-Control"] == "public, no-cache"


def test_rows_without_a_version_show_what_is_changed_at_once(untold: API, database: Any) -> None:
    assert untold.total("pages/?type=w.Note", headers=HEADERS) == 6
    with database:
        Story.update(live=False).where(Story.id == 1).execute()
        Story.update(headline="Another").where(Story.id == 2).execute()
    assert untold.total("pages/?type=w.Note", headers=HEADERS) == 5
    assert untold.json("pages/1002/", headers=HEADERS)["title"] == "Another"


def test_rows_without_a_version_take_few_statements(untold: API, database: Any) -> None:
    counts = []
    for start in (10, 100):
        with database:
            Story.insert_many(
                {"id": start + n, "headline": "More", "slug": f"m{start + n}", "live": True}
                for n in range(50)
            ).execute()
        ask_all(untold, "pages/")
        with noted(untold) as statements:
            ask_all(untold, "pages/")
        counts.append(len(statements))
    assert counts[0] == counts[1] <= 12


# The site's database is its own.


@pytest.fixture
def fresh(backend: str, database: peewee.Database) -> Iterator[peewee.Database]:
    """Another database of such a site, with empty tables."""
    with open_database(backend) as other:
        yield other
    database.bind(MODELS)


def schema(database: peewee.Database) -> dict[str, Any]:
    """Columns, indexes and foreign keys of the site's own tables."""
    with database.connection_context():
        return {
            name: (
                database.get_columns(name),
                sorted(map(str, database.get_indexes(name))),
                sorted(map(str, database.get_foreign_keys(name))),
            )
            for name in (model._meta.table_name for model in MODELS)
        }


def test_tables_of_the_site_stay_as_they_are(make: MakeSite, database: Any) -> None:
    before = schema(database)
    api = make()
    api.backend.create()
    assert list(api.backend.migrate()) == []
    api.backend.reload()
    list(api.backend.check())
    api.load(own_content())
    assert schema(database) == before


def test_new_fields_of_a_mapped_type_change_no_table_of_the_site(
    fresh: peewee.Database,
) -> None:
    def mood(declared: Any) -> PeeweeBackend:
        models = [MappedModel(declared, Story, {"title": Story.headline, "parent": 1})]
        mapping = PeeweeBackend.on(fresh, models)
        mapping.open(Registry([declared]))
        return mapping

    mood(type("Mood", (Page,), {"app_label": "m"})).create()
    before = schema(fresh)
    later = mood(type("Mood", (Page,), {"app_label": "m", "number": fields.Integer()}))
    assert "migrate" in later.why_not_ready()
    assert len(list(later.migrate())) == 1
    assert later.why_not_ready() == ""
    assert schema(fresh) == before


def test_an_open_connection_is_used_and_left_open(site: API, database: Any) -> None:
    with database.connection_context():
        connection = database.connection()
        assert site.get("pages/1001/", headers=HEADERS).status_code == 200
        assert site.get("pages/?limit=x", headers=HEADERS).status_code == 400
        assert database.connection() is connection
    assert site.get("pages/1001/", headers=HEADERS).status_code == 200
    assert database.is_closed()


# Refused changes.


def test_records_of_rows_are_not_loaded(site: API) -> None:
    before = site.dump()
    with pytest.raises(ContentError, match=r"pages 1001, type: w\.Note are the rows of story"):
        site.load(before)
    assert site.dump() == before


@pytest.mark.parametrize(
    "change",
    [
        lambda writer: writer.add("pages", page(9, UNDER, type="w.Note")),
        lambda writer: writer.update("pages", 1001, title="Another"),
        lambda writer: writer.update("pages", UNDER, type="w.Note"),
        lambda writer: writer.move(1001, 1),
        lambda writer: writer.publish(1004),
        lambda writer: writer.unpublish(1001),
        lambda writer: writer.alias(1001, 1),
        lambda writer: writer.translate(1001, "fr"),
        lambda writer: writer.delete("pages", 1001),
        lambda writer: writer.delete("pages", 1001, descendants=True),
        lambda writer: writer.delete("pages", UNDER),
        lambda writer: writer.delete("pages", UNDER, descendants=True),
        lambda writer: writer.delete("images", 1),
        lambda writer: writer.add("pages", page(9, 1001, type="w.Plain")),
        lambda writer: writer.move(3, 1001),
        lambda writer: writer.add("pages", page(9, UNDER, type="w.Plain", slug="größe")),
        lambda writer: writer.update("pages", new_page(writer, UNDER, "new"), slug="größe"),
        lambda writer: writer.move(new_page(writer, 1, "größe"), UNDER),
        lambda writer: writer.put_site(hostname="b.example", root_page=1001),
    ],
)
def test_rows_are_not_written(told: API, change: Callable[[Writer], Any]) -> None:
    before = told.dump()
    with pytest.raises(ContentError), writing(told) as writer:
        change(writer)
    assert told.dump() == before


def new_page(writer: Writer, parent: int, slug: str) -> int:
    """Adds one of the backend's own pages and returns its id."""
    return writer.add("pages", page(9, parent, type="w.Plain", slug=slug))


def test_a_slug_that_is_made_of_a_title_is_that_of_no_row(site: API) -> None:
    with writing(site) as writer:
        ids = [
            writer.add("pages", {"type": "w.Plain", "parent": UNDER, "title": "S7"}) for _ in "ab"
        ]
        assert [writer.record("pages", id)["slug"] for id in ids] == ["s7-2", "s7-3"]


def test_a_page_whose_slug_a_row_has_taken_can_be_changed(site: API, database: Any) -> None:
    with writing(site) as writer:
        new_page(writer, UNDER, "new")
    change(database, 7, slug="new")
    with writing(site) as writer:
        writer.update("pages", 9, title="Changed")
        writer.move(9, UNDER, before=None)
    assert site.json("pages/9/", headers=HEADERS)["title"] == "Changed"


def test_a_collection_in_which_rows_lie_stays(site: API) -> None:
    with writing(site) as writer:
        with pytest.raises(ContentError, match="1 objects lie in it"):
            writer.delete_collection(1)
        writer.delete_collection(writer.put_collection(name="Empty"))
    assert site.get("images/2/", headers=HEADERS).status_code == 404


# Other mappings.


def test_a_table_can_be_part_of_a_model(make: MakeSite, database: Any) -> None:
    models = mapped(where=Story.number.is_null(False), ids_from=SHIFT)
    api = make(models)
    assert api.ids("pages/?type=w.Note", headers=HEADERS) == [1001, 1002, 3]
    assert api.get("pages/1003/", headers=HEADERS).status_code == 404


def test_a_table_can_be_two_types(database: peewee.Database) -> None:
    _, *others = mapped()
    columns = {"title": Story.headline, "parent": UNDER}
    minus = MappedModel(LongNote, Story, columns, where=Story.number < 0, ids_from=SHIFT)
    rest = peewee.fn.COALESCE(Story.number, 0) >= 0
    plus = MappedModel(Note, Story, columns, where=rest, ids_from=SHIFT)
    fill(database, rows())
    api = serve(database, [minus, plus, *others])
    api.load({"pages": [page(UNDER, type="w.Plain")]})
    types = {i["id"]: i["meta"]["type"] for i in api.items("pages/?child_of=50", headers=HEADERS)}
    assert types == {1002: "w.LongNote", **dict.fromkeys([1001, 1003, 1005, 1007], "w.Note")}


def test_tags_can_stand_in_the_table_between(make: MakeSite) -> None:
    models = mapped(ids_from=SHIFT)
    models[0].columns["tags"] = TagRows(Piece.story, Piece.name)
    api = make(models)
    assert api.json("pages/1001/", headers=HEADERS)["tags"] == ["first", "second"]
    assert api.ids("pages/?type=w.Note&tags=first", headers=HEADERS) == [1001]


def test_tags_are_there_once_and_only_where_they_have_a_text(make: MakeSite, database: Any) -> None:
    models = mapped(ids_from=SHIFT)
    models[0].columns["tags"] = TagRows(Piece.story, Piece.name)
    api = make(models)
    with database:
        for number, name in enumerate(["first", None]):
            Piece.create(story=1, name=name, place=number)
    api.backend.reload()
    assert api.json("pages/1001/", headers=HEADERS)["tags"] == ["first", "second"]


def test_what_nobody_has_said_is_not_so(make: MakeSite, database: Any) -> None:
    api = make(version=Story.changed)
    assert api.json("pages/1002/", headers=HEADERS)["meta"]["show_in_menus"] is False
    change(database, 2, live=None)
    assert api.get("pages/1002/", headers=HEADERS).status_code == 404
    assert {page["id"]: page for page in api.dump()["pages"]}[1002]["live"] is False


def test_values_can_be_expressions_and_constants(make: MakeSite) -> None:
    models = mapped(ids_from=SHIFT)
    models[0].columns.update(
        text=Story.slug.concat("!"), number=Story.id * 2, flag=True, other=1, day="2026-02-03"
    )
    models[0].columns["seo_title"] = Story.number
    api = make(models)
    assert api.json("pages/1002/", headers=HEADERS)["meta"]["seo_title"] == "-1"
    found = api.json("pages/1002/?fields=_,text,number,flag,other(id),day", headers=HEADERS)
    assert (found["text"], found["number"]) == ("100%!", 4)
    assert (found["flag"], found["other"]["id"], found["day"]) == (True, 1, "2026-02-03")
    path = "pages/?type=w.Note&number=4&flag=true&day=2026-02-03&other=1"
    assert api.ids(path, headers=HEADERS) == [1002]


def test_columns_can_be_left_out(make: MakeSite) -> None:
    models = mapped(ids_from=SHIFT)
    models[0].columns.update(text=None, number=None)
    found = make(models).json("pages/1001/?fields=_,text,number", headers=HEADERS)
    assert found == {"text": "", "number": None}


#: An invalid date that the database accepts.
NO_DATE = {"sqlite": "'soon'", "postgresql": "'infinity'", "mariadb": "'0000-00-00'"}


def test_what_cannot_be_read_is_null(make: MakeSite, database: Any, backend: str) -> None:
    api = make()
    with database:
        if backend == "mariadb":
            database.execute_sql("SET sql_mode = ''")
        value = NO_DATE[backend]
        for column in ("day", "moment", "first_published_at"):
            database.execute_sql(f"UPDATE story SET {column} = {value} WHERE id = 2")  # noqa: S608
    with writing(api) as writer:
        writer.refresh("pages", 1002)
    found = api.json("pages/1002/", headers=HEADERS)
    assert (found["day"], found["moment"]) == (None, None)
    assert found["meta"]["first_published_at"] is None
    assert (
        api.get("pages/?type=w.Note&order=day,-moment&fields=*", headers=HEADERS).status_code == 200
    )
    shown = "cannot be read; it is shown as null"
    assert f"pages 1002 (row 2 of story), day: {shown}" in problems(api)


RAW = peewee.SQL("x'ff61'")
NO_TEXT = peewee.SQL("CAST(x'ff61' AS TEXT)")
HUGE = peewee.SQL("9e999")
#: Invalid values that the database accepts: the column of a story, the value, and how it is shown.
#: SQLite accepts any value.
ODD: dict[str, list[tuple[str, Any, Any]]] = {
    "sqlite": [
        *(("headline", value, "") for value in (RAW, NO_TEXT)),
        *(("text", value, "") for value in (RAW, NO_TEXT)),
        *(("number", v, None) for v in ("abc", "", 1.5, HUGE, RAW, NO_TEXT, "9" * 22)),
        *(("paper", value, None) for value in ("", "abc", 1.5, HUGE, RAW, NO_TEXT)),
        *(("picture", value, None) for value in ("", "1abc", HUGE, RAW, NO_TEXT)),
        *(("ratio", value, None) for value in ("abc", "", HUGE, RAW, NO_TEXT)),
        *(("flag", value, False) for value in ("abc", "1abc", "true", RAW, NO_TEXT)),
        *(("amount", value, None) for value in ("abc", "", HUGE, RAW, NO_TEXT)),
        *(("day", value, None) for value in ("2020-13-45", "", HUGE, RAW, NO_TEXT)),
        *(("clock", value, None) for value in ("25:00", "", HUGE, RAW, NO_TEXT)),
        *(("moment", v, None) for v in ("2020-13-45 10:00:00", "", 1, HUGE, RAW, NO_TEXT)),
        *(("data", value, None) for value in ("[", "", HUGE, RAW, NO_TEXT)),
    ],
    "postgresql": [
        *(("ratio", value, None) for value in ("Infinity", "-Infinity", "NaN")),
        ("amount", "NaN", None),
        *(("day", value, None) for value in ("infinity", "-infinity", "4000-01-01 BC")),
        *(("moment", v, None) for v in ("infinity", "0044-03-15 BC", "10000-01-01")),
        ("clock", "24:00:00", None),
    ],
    "mariadb": [
        *(("day", value, None) for value in ("0000-00-00", "2020-02-00", "0000-01-01")),
        *(("moment", value, None) for value in ("0000-00-00", "2020-00-00", "0000-01-01")),
        *(("clock", value, None) for value in ("838:59:59", "-01:00:00", "24:00:00")),
    ],
}
JSON = [("data", f'{{"\\"9": [-{"9" * 30}]}}', None), ("body", f"[{2**63}]", None)]
#: The name of the shown value in problems.
SAID: dict[Any, str] = {"": "an empty text", None: "null", False: "false"}


def test_what_is_none_of_a_kind_is_shown_as_nothing_and_said(
    make: MakeSite, database: Any, backend: str
) -> None:
    api = make(version=False)
    for column, value, shown in [*ODD[backend], *JSON]:
        fill(database, rows())
        set_raw(database, 1, column, value)
        name = {"headline": "title"}.get(column, column)
        one = api.json(f"pages/1001/?fields=_,title,{name}", headers=HEADERS)
        assert one[name] == shown, (column, value)
        listed = api.items(f"pages/?type=w.Note&fields=_,id,{name}", headers=HEADERS)
        assert [page[name] for page in listed if page["id"] == 1001] == [shown], (column, value)
        said = f"pages 1001 (row 1 of story), {name}: cannot be read; it is shown as {SAID[shown]}"
        assert problems(api) == [said], (column, value)
        api.backend.reload()
        record = {page["id"]: page for page in api.dump()["pages"]}[1001]
        assert record.get(name, shown) == shown, (column, value)


#: Invalid slugs that the database accepts, then parents, then texts of tags and child objects.
ILLEGIBLE: dict[str, list[Any]] = {
    "sqlite": [RAW, NO_TEXT],
    "postgresql": ["a/b"],
    "mariadb": ["a/b"],
}
NO_PARENT: dict[str, list[Any]] = {
    "sqlite": ["", "2abc", RAW, 3],
    "postgresql": [3],
    "mariadb": [3],
}
NO_NAME: dict[str, list[Any]] = {"sqlite": [RAW, NO_TEXT], "postgresql": [None], "mariadb": [None]}


def test_a_slug_that_is_no_text_is_that_of_no_page(
    make: MakeSite, database: Any, backend: str
) -> None:
    api = make(version=False)
    for slug in ILLEGIBLE[backend]:
        set_raw(database, 6, "slug", slug)
        assert 1006 not in api.ids(
            "pages/?fields=*", headers={**HEADERS, "X-Now": "2028-01-01T00:00:00+00:00"}
        )
        said = "slug: must be"
        assert [text for text in problems(api) if f"pages 1006 (row 6 of story), {said}" in text]


def test_a_parent_that_is_no_row_is_that_of_no_page(
    make: MakeSite, database: Any, backend: str
) -> None:
    api = make(version=False)
    for parent in NO_PARENT[backend]:
        set_raw(database, 3, "up", parent)
        assert 1003 not in api.ids("pages/?fields=*", headers=HEADERS)
        assert len(problems(api)) == 1


def test_tags_and_child_objects_without_a_text_harm_nothing(
    make: MakeSite, database: Any, backend: str
) -> None:
    models = mapped(ids_from=SHIFT)
    models[0].columns["tags"] = TagRows(Piece.story, Piece.name)
    api = make(models)
    for name in NO_NAME[backend]:
        with database:
            Piece.update(name=name).where(Piece.id == 7).execute()
        found = api.json("pages/1001/?fields=_,tags,parts(name)", headers=HEADERS)
        assert found["tags"] == ["first"]
        assert [part["name"] for part in found["parts"]] == ["", "first"]


#: Invalid dates and numbers, which sort as missing values do.
LAST = {
    "sqlite": [
        *(("moment", value) for value in ("soon", "2020-02-30 10:00:00", "0000-01-01 10:00:00")),
        *(("day", value) for value in ("2020-02-30", "0000-01-01")),
    ],
    "postgresql": [("moment", "0044-03-15 BC"), ("day", "infinity"), ("ratio", "NaN")],
    "mariadb": [("moment", "0000-00-00"), ("day", "0000-00-00"), ("clock", "838:59:59")],
}


def test_what_cannot_be_read_is_in_the_order_what_is_not_there_is_in(
    make: MakeSite, database: Any, backend: str
) -> None:
    api = make(version=False)
    for column, value in LAST[backend]:
        fill(database, rows())
        set_raw(database, 5, column, value)
        rising = api.ids(f"pages/?type=w.Note&order={column}", headers=HEADERS)
        falling = api.ids(f"pages/?type=w.Note&order=-{column}", headers=HEADERS)
        others = [3, 1002, 1003, 1005, 1007]
        assert (rising, falling) == ([*others, 1001], [1001, *others]), (column, value)


#: Forms of date and time that the database accepts, and how they are shown.
MOMENTS = {
    "sqlite": [
        ("2026-01-15 08:00:00", "2026-01-15T08:00:00Z"),
        ("2026-01-15T08:00:00.250000", "2026-01-15T08:00:00.250000Z"),
        ("2026-01-15 08:00:00.25", "2026-01-15T08:00:00.250000Z"),
        ("2026-01-15 08:00:00+02:00", "2026-01-15T06:00:00Z"),
        ("2026-01-15 08:00:00+023000", "2026-01-15T05:30:00Z"),
        ("2026-01-15 08:00:00.250+02", "2026-01-15T06:00:00.250000Z"),
        ("2026-01-15", "2026-01-15T00:00:00Z"),
    ],
    "postgresql": [("2026-01-15 08:00:00.25", "2026-01-15T08:00:00.250000Z")],
    "mariadb": [("2026-01-15 08:00:00", "2026-01-15T08:00:00Z")],
}


def test_moments_are_read_however_they_are_written(
    make: MakeSite, database: Any, backend: str
) -> None:
    api = make(version=False)
    for value, shown in MOMENTS[backend]:
        set_raw(database, 1, "moment", value)
        assert api.json("pages/1001/?fields=_,moment", headers=HEADERS) == {"moment": shown}
        asked = f"pages/?type=w.Note&moment={shown}"
        assert api.ids(asked, headers=HEADERS) == [1001], value


def test_minus_zero_is_zero(make: MakeSite, database: Any) -> None:
    api = make(version=False)
    set_raw(database, 1, "ratio", "-0")
    assert b'"ratio":0.0' in api.get("pages/1001/?fields=_,ratio", headers=HEADERS).data
    listed = api.get("pages/?type=w.Note&fields=_,ratio&ratio=0", headers=HEADERS).data
    assert b'"ratio":0.0' in listed


def test_child_objects_without_a_place_come_first(make: MakeSite, database: Any) -> None:
    api = make(version=False)
    with database:
        for id, name, place in ((11, "nowhere", None), (12, "neither", None), (13, "same", 0)):
            Piece.insert(id=id, story=1, name=name, place=place).execute()
    found = api.json("pages/1001/?fields=_,parts(name)", headers=HEADERS)["parts"]
    assert [part["name"] for part in found] == ["nowhere", "neither", "second", "same", "first"]


#: Long numbers in JSON that are not integers of more than 64 bits.
@pytest.mark.parametrize(
    "value", [{"a": "9" * 30}, [-(2**63)], [2**63 - 1], {"9" * 25: ['"', 1e30]}]
)
def test_long_numbers_of_json_are_what_they_are(make: MakeSite, database: Any, value: Any) -> None:
    api = make(version=False)
    set_raw(database, 1, "data", json.dumps(value))
    assert api.json("pages/1001/?fields=_,data", headers=HEADERS)["data"] == value


#: Invalid and infinite times of a page: the column, the value, and whether the page is shown.
TIMES = {
    "sqlite": [
        ("go_live_at", "soon", False),
        ("go_live_at", "31/12/2099 10:00", False),
        ("go_live_at", "2020-13-45 10:00:00", False),
        ("go_live_at", "2020-01-01T10:00:00+01:00", True),
        ("go_live_at", "0001-01-01T00:00:00+05:00", False),
        ("expires_at", "yesterday", False),
        ("expires_at", "", False),
        ("expires_at", "2099-01-01", True),
    ],
    "postgresql": [
        ("go_live_at", "infinity", False),
        ("go_live_at", "-infinity", True),
        ("go_live_at", "10000-01-01", False),
        ("go_live_at", "294276-12-31 23:59:59", False),
        ("go_live_at", "9999-12-31 23:59:59.999999", False),
        ("go_live_at", "0044-03-15 BC", True),
        ("expires_at", "infinity", True),
        ("expires_at", "294276-12-31 23:59:59", True),
        ("expires_at", "-infinity", False),
        ("expires_at", "0044-03-15 BC", False),
    ],
    "mariadb": [
        ("go_live_at", "0000-00-00", False),
        ("go_live_at", "2020-00-00", False),
        ("expires_at", "0000-00-00", False),
        ("expires_at", "2099-00-00", False),
        ("expires_at", "2099-01-01", True),
    ],
}


def set_raw(database: Any, row: int, column: str, value: Any) -> None:
    """Stores an unusual value in a column of a story.

    :param value: a text, or an SQL expression.
    """
    with database:
        if isinstance(database, peewee.MySQLDatabase):
            database.execute_sql("SET sql_mode = ''")
        value = value if isinstance(value, peewee.Node) else peewee.Value(value, converter=False)
        Story.update({getattr(Story, column): value}).where(Story.id == row).execute()


def test_a_page_is_not_shown_at_times_that_cannot_be_read(
    make: MakeSite, database: Any, backend: str
) -> None:
    api = make(version=False)
    for column, value, shown in TIMES[backend]:
        set_raw(database, 7, "go_live_at", None)
        set_raw(database, 7, "expires_at", None)
        set_raw(database, 7, column, value)
        assert (1007 in api.ids("pages/", headers=HEADERS)) is shown, (column, value)
        assert api.get("pages/1007/", headers=HEADERS).status_code == (200 if shown else 404)


def test_times_that_cannot_be_read_are_said(make: MakeSite, database: Any, backend: str) -> None:
    api = make()
    for column, value, shown in TIMES[backend][:1]:
        set_raw(database, 2, column, value)
        hidden = "cannot be read; it is shown as null, and the page is hidden"
        assert not shown
        assert problems(api) == [f"pages 1002 (row 2 of story), {column}: {hidden}"]


def test_a_missing_column_is_said_at_the_start(
    fresh: peewee.Database, caplog: pytest.LogCaptureFixture
) -> None:
    serve(fresh, mapped())
    with fresh:
        fresh.execute_sql("ALTER TABLE story DROP COLUMN rich")
    caplog.clear()
    api = serve(fresh, mapped())
    said = "MappedModel(Note, Story): the table story has no column rich."
    assert said in caplog.text
    assert problems(api) == [f"database: {said}"]
    assert api.get("pages/", headers=HEADERS).status_code == 503


def test_a_missing_table_is_said_at_the_start(fresh: peewee.Database) -> None:
    with fresh:
        fresh.drop_tables([Piece])
    api = serve(fresh, mapped())
    assert problems(api) == ["database: MappedModel(Note, Story): there is no table piece."]


def test_a_view_can_be_mapped(make: MakeSite, fresh: peewee.Database) -> None:
    class Headline(peewee.Model):
        id = peewee.IntegerField(primary_key=True)
        title = peewee.CharField()
        slug = peewee.CharField()

    fill(fresh, rows())
    with fresh:
        fresh.execute_sql("CREATE VIEW headline AS SELECT id, headline AS title, slug FROM story")
    api = serve(fresh, [MappedModel(Note, Headline, {"parent": UNDER}, ids_from=SHIFT)])
    api.load({"pages": [page(UNDER, type="w.Plain")]})
    assert api.total("pages/?type=w.Note", headers=HEADERS) == 7


# Problems of rows, and what is still served.


def problems(api: API) -> list[str]:
    """The problems that a check finds."""
    with api.app.app_context():
        return sorted(map(str, api.backend.check()))


def test_a_sound_site_has_no_problems(site: API) -> None:
    assert problems(site) == []


#: Faults: new values of row 2, the problems, and the pages that are not served.
BROKEN: dict[str, tuple[dict[str, Any], list[str], set[int]]] = {
    "a slug with a slash": (
        {"slug": "a/b"},
        [
            "1002 (row 2 of story), slug: must be one part of an address, without a slash; "
            "it is not served",
            "1003 (row 3 of story), parent: page 1002, which it is below, is not there or not "
            "served; it is not served",
        ],
        {1002, 1003},
    ),
    "an empty slug": (
        {"slug": "", "up": 6},
        [
            "1002 (row 2 of story), slug: must be one part of an address, without a slash; "
            "it is not served",
            "1003 (row 3 of story), parent: page 1002, which it is below, is not there or not "
            "served; it is not served",
        ],
        {1002, 1003},
    ),
    "a circle": (
        {"up": 3},
        [
            f"{id} (row {id - 1000} of story), parent: the pages above it form a circle; "
            "it is not served"
            for id in (1002, 1003)
        ],
        {1002, 1003},
    ),
    "the slug of a sibling": (
        {"slug": "s7", "up": None},
        [
            "1007 (row 7 of story), slug: page 1002 beside it has the slug 's7' already, and is "
            "found by it"
        ],
        set(),
    ),
    "a relation to nothing": (
        {"paper": 9},
        ["1002 (row 2 of story), paper: there is no object 9 in documents"],
        set(),
    ),
    "a language that is none": (
        {"lang": "xx"},
        ["1002 (row 2 of story), locale: there is no locale 'xx'"],
        set(),
    ),
    "no JSON": (
        {"data": "{"},
        ["1002 (row 2 of story), data: cannot be read; it is shown as null"],
        set(),
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_wrong_with_a_row_is_said_and_harms_no_other(
    make: MakeSite, database: Any, what: str
) -> None:
    values, said, lost = BROKEN[what]
    api = make(version=Story.changed)
    before = {*api.ids("pages/", headers=HEADERS)}
    change(database, 2, **values)
    assert problems(api) == [f"pages {text}" for text in said]
    assert {*api.ids("pages/?fields=*", headers=HEADERS)} == before - lost
    for id in before:
        answer = api.get(f"pages/{id}/", headers=HEADERS)
        assert answer.status_code == (404 if id in lost else 200)


def test_an_object_of_ours_that_should_be_a_row_is_said(make: MakeSite, database: Any) -> None:
    fill(database, {"pages": [], "images": [], "people": []})
    unmapped = serve(database, mapped()[1:])
    unmapped.load({"pages": [page(UNDER, type="w.Plain"), page(2, UNDER, type="w.Note")]})
    api = serve(database, mapped())
    assert problems(api) == ["pages 2, type: w.Note are the rows of story; this is none"]
    make()


def test_an_id_that_two_objects_have_is_said(make: MakeSite, database: Any) -> None:
    api = make(ids_from=0)
    said = [text for text in problems(api) if ", id: several objects have this id" in text]
    assert [text.partition(",")[0] for text in said] == ["pages 1", "pages 3"]
    assert api.get("pages/?fields=*", headers=HEADERS).status_code == 200
    assert api.get("pages/3/", headers=HEADERS).status_code == 200


def test_a_parent_that_is_not_there_is_said_once(make: MakeSite, database: Any) -> None:
    api = make(under=77)
    found = problems(api)
    assert found[0] == "MappedModel(Note, Story), parent: there is no page 77 of ours"
    assert found[1] == (
        "pages 1001 (row 1 of story), parent: the page that it is below is not there; "
        "it is not served"
    )
    assert len([text for text in found if text.endswith("it is not served")]) == 7
    assert api.ids("pages/", headers=HEADERS) == [1, UNDER, 3]


def test_problems_of_images_are_said(make: MakeSite, database: Any) -> None:
    api = make()
    with database:
        Picture.update(album=9).where(Picture.id == 1).execute()
    assert problems(api) == ["images 1 (row 1 of picture), collection: there is no collection 9"]


def test_what_is_not_to_be_served_has_no_problems(make: MakeSite) -> None:
    assert problems(make(where=Story.number.is_null(False))) == []


def test_a_row_that_is_not_served_has_one_problem(site: API, database: Any) -> None:
    change(database, 7, slug="a/b", paper=77)
    said = "slug: must be one part of an address, without a slash; it is not served"
    assert problems(site) == [f"pages 1007 (row 7 of story), {said}"]
