"""How many statements a request takes, whatever the size of the answer."""

from __future__ import annotations

from typing import Any

import pytest

from flask_contentapi import views
from tests.api import API
from tests.conftest import MakeAPI
from tests.databases import noted, on_databases, writing
from tests.generated import DECLARED
from tests.samples import Record, blog, document, image, page, private, site
from tests.test_writing import grown

pytestmark = [on_databases, pytest.mark.slow]

FEW, MANY = 2, 200


def content(count: int) -> dict[str, list[Any]]:
    """A site with a number of pages of a type that has all kinds of relations."""
    numbers = range(10, 10 + count)
    return {
        "locales": ["en", "fr"],
        "sites": [site(1)],
        "pages": [
            page(1, slug="home", type="w.Plain"),
            page(2, 1, type="w.Plain", restriction=private()),
            page(3, 1, type="w.Plain"),
            page(4, 1, type="w.Plain", locale="fr", translation_key="k", alias_of=1),
            *(note(number, count) for number in numbers),
        ],
        "images": [image(n, tags=["a", f"t{n}"], collection=1) for n in numbers],
        "documents": [document(n, tags=["a", f"t{n}"]) for n in numbers],
        "people": [
            {"id": n, "name": f"P{n}", "boss": follower(n, count), "page": n} for n in numbers
        ],
        "collections": [{"id": 1}, {"id": 2, "restriction": private()}],
    }


def follower(number: int, count: int) -> int:
    """The id after another; the first follows the last."""
    return 10 + (number - 9) % count


def note(number: int, count: int) -> Record:
    """A page with all kinds of relations, most of them to the next page."""
    other = follower(number, count)
    near = {"picture": other, "paper": other, "other": other, "owner": other, "alias_of": other}
    many = {"others": [other, number, 999, 2], "pictures": [number, other]}
    part = {"picture": other, "pictures": [other, number]}
    parts = [{"id": 10 * number + n, "name": f"part {n}", **part} for n in range(3)]
    rich = f'<a linktype="page" id="{other}"></a><a linktype="document" id="{other}"></a>'
    rich += f'<embed embedtype="image" id="{other}"/><a linktype="page" id="999"></a>'
    own = {
        "rich": rich,
        **many,
        "parts": parts,
        "tags": ["a", "b", f"t{number}"],
        "number": number % 7,
    }
    return page(number, 3, type="w.Note", text="storm night", **near, **own)


@pytest.fixture(scope="module")
def sites(make_api: MakeAPI) -> list[API]:
    """A site with few pages, and one with many."""
    config = {"CMSAPI_LIMIT_MAX": None, "CMS_I18N_ENABLED": True, "CMSAPI_CACHE_SIZE": 0}
    return [make_api(content(count), types=DECLARED, config=config) for count in (FEW, MANY)]


#: Statements for a note: the pages of alias_of, other and others, and of parent; the images of
#: picture and pictures, and those of the parts; paper; and owner.
NOTE = 5
DEEP = "boss(boss(boss(boss(boss(boss(boss(name)))))))"
LISTS = [
    ("pages/?limit=1", 0),
    ("pages/?limit=500", 0),
    ("pages/?limit=0", 0),
    ("pages/?limit=20&offset=2", 0),
    ("pages/?fields=*&limit=500", 1),
    ("pages/?fields=alias_of,seo_title&limit=500", 1),
    ("pages/?type=w.Note&fields=*&limit=500", NOTE),
    ("pages/?type=w.Note&fields=picture(*),paper(tags),other(*),owner(*)&limit=500", 7),
    ("pages/?type=w.Note&fields=parts(picture(tags))&limit=500", 2),
    ("pages/?type=w.Note&fields=rich&rich_text_format=html&limit=500", 3),
    ("pages/?type=w.Note&fields=rich&limit=500", 0),
    ("pages/?type=w.Note&fields=others&limit=500", 1),
    ("pages/?type=w.Note&fields=others(alias_of),parts(_,pictures)&limit=500", 3),
    ("pages/?fields=ancestors(title),children,translations&limit=500", 3),
    ("pages/?child_of=root&fields=children(title,children(title,alias_of))&limit=500", 3),
    ("pages/?type=w.Note,w.Plain&fields=picture,parts(_,picture),title&limit=500", 2),
    ("pages/?fields=alias_of,ancestors(picture,parts(_,picture))&limit=500", 2),
    ("pages/?type=w.Note&others=11,10&pictures=10&order=-title&limit=500", 0),
    ("pages/?type=w.Note&tags=a,b&number=3&order=-number,title&limit=500", 0),
    ("pages/?type=w.Note&picture=11&order=picture,-alias_of&limit=500", 0),
    ("pages/?search=storm night page&limit=500", 0),
    ("pages/?search=storm night&search_operator=and&order=-title&offset=1", 0),
    ("pages/?order=random&limit=500", 0),
    ("pages/?child_of=3&limit=500", 0),
    ("pages/?descendant_of=root&ancestor_of=11&locale=en", 0),
    ("pages/?translation_of=1&site=localhost", 0),
    ("pages/?slug=p10&show_in_menus=false", 0),
    ("images/?limit=500", 0),
    ("images/?fields=*&tags=a&search=image&limit=500", 0),
    ("documents/?fields=*&order=title&limit=500", 0),
    (f"people/?fields={DEEP}&limit=500", 7),
]
DETAILS = [
    ("pages/10/", NOTE),
    ("pages/10/?fields=*,-parts", NOTE - 1),
    ("pages/10/?fields=_,others,pictures", 2),
    ("pages/10/?fields=_,rich&rich_text_format=markdown", 3),
    ("pages/10/?fields=_,id", 0),
    ("pages/10/?fields=_,title", 0),
    ("pages/10/?fields=_,parts(picture(tags))", 2),
    ("pages/4/", 1),
    ("pages/4/?fields=_,ancestors,children(picture),translations", 3),
    ("images/10/", 0),
    (f"people/10/?fields=_,{DEEP}", 7),
]
FINDS = [
    ("pages/find/?html_path=/p3/p10/", 0),
    ("pages/find/?html_path=/p3/none/", 0),
    ("pages/find/?id=10", 0),
    ("images/find/?id=11", 0),
    ("documents/find/?id=999", 0),
]
MISSING = [("pages/9/", 0), ("pages/2/", 0), ("images/9/", 0), ("nothing/", 0)]
FAR = [("pages/?limit=20&offset=100", 2), ("pages/?order=title&limit=20&offset=190", 2)]
REFUSED = [("pages/?limit=x", 0), ("pages/?child_of=2", 0), ("pages/?site=none.example", 0)]

WITHIN = [
    *((path, 2 + relations) for path, relations in LISTS),
    *((path, 1 + relations) for path, relations in DETAILS),
    *((path, 2) for path, _ in [*FINDS, *MISSING, *REFUSED]),
]


@pytest.mark.parametrize(("path", "most"), WITHIN, ids=[path for path, _ in WITHIN])
def test_statements_are_few_and_as_many_for_few_as_for_many(
    sites: list[API], path: str, most: int
) -> None:
    made = []
    for api in sites:
        api.get(path)
        with noted(api) as statements:
            api.get(path)
        made.append(len(statements))
    assert made[0] == made[1]
    assert made[1] <= most


@pytest.mark.parametrize(("path", "most"), [*WITHIN, *FAR])
def test_totals_that_are_not_known_are_part_of_it(sites: list[API], path: str, most: int) -> None:
    sites[1].get(path)
    forget_totals(sites[1])
    with noted(sites[1]) as statements:
        sites[1].get(path)
    assert len(statements) <= most


def test_a_path_is_looked_for_in_all_languages_at_once(make_api: MakeAPI) -> None:
    codes = [f"l{number}" for number in range(40)]
    homes = [
        page(number, slug=code, locale=code, translation_key="home")
        for number, code in enumerate(codes, 1)
    ]
    astray = page(99, 7, slug="astray", locale="l30")
    sites = [site(1)]
    pages = [*homes, astray, page(98, 8, slug="astray", locale="l9")]
    api = make_api(
        {"locales": codes, "sites": sites, "pages": pages}, config={"CMS_I18N_ENABLED": True}
    )
    for path, status in (("/astray/", 302), ("/none/", 404)):
        address = f"pages/find/?html_path={path}&locale=l30"
        api.get(address)
        with noted(api) as statements:
            answer = api.get(address)
        assert answer.status_code == status
        assert status == 404 or "/pages/99/" in answer.headers["Location"]
        assert len(statements) <= 3


def forget_totals(api: API) -> None:
    """Clears the cached totals, so that they are counted again."""
    structure: Any = getattr(api.backend, "_structure")  # noqa: B009 - private to the backend
    structure.totals.renew()


def test_a_client_that_has_the_answer_costs_the_pool_no_statement(sites: list[API]) -> None:
    tag = sites[1].get("pages/?fields=*").headers["ETag"]
    for most in (1, 0):
        with noted(sites[1]) as statements:
            answer = sites[1].get("pages/?fields=*", headers={"If-None-Match": tag})
        assert answer.status_code == 304
        assert len(statements) <= most


def test_the_first_request_after_a_change_costs_a_few_more(make_api: MakeAPI) -> None:
    api = make_api(content(FEW), types=DECLARED)
    api.get("pages/")
    with writing(api) as writer:
        writer.update("pages", 3, title="Another")
    with noted(api) as statements:
        assert api.json("pages/3/")["title"] == "Another"
    assert len(statements) <= 12


def test_statements_of_one_shape_share_their_text(sites: list[API]) -> None:
    texts = set()
    for path in (
        "pages/?slug=p10&limit=5",
        "pages/?slug=p11&limit=5",
        "pages/?slug=x' OR 1=1&limit=5",
    ):
        forget_totals(sites[1])
        with noted(sites[1]) as statements:
            sites[1].get(path)
        texts.update(statements)
    assert len(texts) == 2


@pytest.mark.parametrize("offset", [0, 20, 95, 100, 170, 195])
@pytest.mark.parametrize(
    "path", ["pages/?type=w.Note", "pages/?type=w.Note&order=-number", "images/?"]
)
def test_rows_are_skipped_from_the_nearer_end(sites: list[API], path: str, offset: int) -> None:
    many = sites[1]
    path = f"{path}&limit=20"
    whole = [*many.items(f"{path}&limit={MANY}")]
    skip = lambda event: event.params[-1] if "OFFSET" in event.sql else 0  # noqa: E731
    with noted(many, skip) as skipped:
        found = many.items(f"{path}&offset={offset}")
    assert found == whole[offset : offset + 20]
    assert skipped[0] == min(offset, max(MANY - offset - 20, 0))


# Changes.


@pytest.fixture
def wide(make_api: MakeAPI) -> API:
    """A site that is filled by the test."""
    return make_api()


def test_one_update_takes_few_statements(wide: API) -> None:
    grown(wide, 10)
    wide.get("pages/")
    for values in ({"title": "Sea"}, {"seo_title": "Sea"}, {"live": False}):
        with noted(wide) as statements, writing(wide) as writer:
            writer.update("pages", 2, **values)
        assert len(statements) < 9


LARGE: list[tuple[str, Any]] = [
    ("a move", lambda writer: writer.move(2, 3)),
    ("another slug", lambda writer: writer.update("pages", 2, slug="sea")),
    ("a restriction", lambda writer: writer.update("pages", 2, restriction=private())),
    ("room in front", lambda writer: writer.add("pages", page(9, 1), before=2)),
    ("a deletion", lambda writer: writer.delete("pages", 2, descendants=True)),
]


@pytest.mark.parametrize("change", [pytest.param(change, id=name) for name, change in LARGE])
def test_large_branches_are_changed_by_as_many_statements_as_small_ones(
    wide: API, change: Any
) -> None:
    made = []
    for count in (10, 300):
        grown(wide, count)
        with noted(wide) as statements, writing(wide) as writer:
            change(writer)
        made.append(len(statements))
    assert made[0] == made[1]


def test_many_child_objects_take_as_many_statements_as_few(wide: API) -> None:
    made = []
    grown(wide, 0)
    for count in (2, 200):
        authors = [{"name": str(number)} for number in range(count)]
        with noted(wide) as statements, writing(wide) as writer:
            writer.add("pages", blog(300 + count, 1, authors=authors))
        made.append(len(statements))
    assert made[0] == made[1]


def test_copying_takes_as_many_statements_wherever_the_page_is(wide: API) -> None:
    made = []
    for count in (10, 300):
        grown(wide, count)
        with noted(wide) as statements, writing(wide) as writer:
            writer.alias(2, 3, slug="alias")
        made.append(len(statements))
    assert made[0] == made[1]


def test_streams_take_the_same_statements_for_each_part(
    make_api: MakeAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = make_api(content(40), types=DECLARED, config={"CMSAPI_STREAM_ENABLED": True})
    numbers = {}
    for size in (40, 40, 10):
        monkeypatch.setattr(views, "BATCH", size)
        with noted(api) as made:
            assert api.get("pages/?format=ndjson&type=w.Note&fields=*").data
        numbers[size] = len(made)
    assert numbers[10] - numbers[40] == 3 * (1 + NOTE)
