"""Which indexes the databases use, with a few thousand pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any, NamedTuple

import orjson
import peewee
import pytest

from tests.api import API
from tests.conftest import MakeAPI
from tests.databases import noted, on_databases, storage
from tests.generated import DECLARED
from tests.samples import Record, document, image, page, private, site

pytestmark = pytest.mark.slow

SECTIONS = range(10, 40)
NOTES = range(1000, 4000)


def content() -> dict[str, list[Any]]:
    """A site with sections of a hundred notes each, and a small French tree."""
    home: Record = {"type": "w.Plain", "translation_key": "home"}
    return {
        "locales": ["en", "fr"],
        "sites": [site(1)],
        "pages": [
            page(1, slug="home", **home),
            page(2, slug="accueil", locale="fr", **home),
            *(page(n, 1, type="w.Plain", show_in_menus=n < 13) for n in SECTIONS),
            *map(note, NOTES),
            *(translation(n) for n in range(5000, 5030)),
        ],
        "images": [image(n, tags=["all", f"t{n}"], rank=n, collection=1 + n % 2) for n in NOTES],
        "documents": [document(n, tags=["all", f"t{n}"]) for n in NOTES],
        "people": [{"id": n, "name": f"P{n}", "boss": n - 1, "page": n} for n in NOTES],
        "redirects": [{"id": n, "old_path": f"/old-{n}", "redirect_page": n} for n in NOTES],
        "collections": [{"id": 1}, {"id": 2}, {"id": 3, "restriction": private()}],
    }


def note(number: int) -> Record:
    """A note whose values are unique, except for a few fields."""
    day = f"{1000 + number}-0{1 + number % 9}-1{number % 10}"
    return page(
        number,
        10 + number % 30,
        type="w.Note",
        title=f"Page {number}" + " storm" * (number % 500 == 0),
        seo_title=f"seo {number}",
        first_published_at=f"{day}T12:00:00Z",
        translation_key=f"k{number}",
        alias_of=number - 1,
        text=f"all word{number}",
        number=number,
        amount=f"{number}.50",
        flag=number % 1000 == 0,
        day=day,
        tags=["all", f"t{number}"],
        picture=number,
        other=number - 1,
    )


def translation(number: int) -> Record:
    """A page of the French tree that is the translation of a note."""
    return page(number, 2, type="w.Plain", locale="fr", translation_key=f"k{number - 3500}")


@pytest.fixture(scope="module")
def api(make_api: MakeAPI) -> API:
    config = {"CMS_I18N_ENABLED": True, "CMSAPI_CACHE_SIZE": 0}
    made = make_api(content(), types=DECLARED, config=config)
    made.get("pages/")
    made.get("people/?order=name")
    return made


# Plans.


class Access(NamedTuple):
    """How a table is read.

    :param table: the name of the table.
    :param key: the index used, or "".
    :param whole: whether all of it is read, in index order if there is an index.
    :param covered: whether the index has all required columns, so that no row is read.
    """

    table: str
    key: str
    whole: bool
    covered: bool


class Plan(NamedTuple):
    """How a statement is executed.

    :param reads: how each table stored in the database is read.
    :param sorts: whether the result is sorted.
    """

    reads: list[Access]
    sorts: bool


def tables_of(sql: str) -> dict[str, str]:
    """The tables in a statement, by alias; if several share one, the largest."""
    found = re.findall(r"[\"`](contentapi_\w+)[\"`](?: AS [\"`](\w+)[\"`])?", sql)
    return {alias or table: table for table, alias in sorted(found, key=lambda f: is_small(f[0]))}


def explain_sqlite(database: peewee.Database, sql: str, params: Any, walks: bool) -> Plan:
    rows = database.execute_sql(f"EXPLAIN QUERY PLAN {sql}", params).fetchall()
    tables, reads = tables_of(sql), []
    for *_, text in rows:
        match = re.match(r"(SCAN|SEARCH) (\S+)(?: USING (?:COVERING )?(?:INDEX )?(\S+))?", text)
        if match and match[2] in tables:
            # Without an index, SQLite reads in order of ids.
            is_words = "VIRTUAL TABLE" in text
            key = "words" if is_words else match[3] or "INTEGER"
            whole = match[1] == "SCAN" and not is_words
            reads.append(Access(tables[match[2]], key, whole, "COVERING" in text))
    return Plan(reads, any(text == "USE TEMP B-TREE FOR ORDER BY" for *_, text in rows))


def explain_postgresql(database: peewee.Database, sql: str, params: Any, walks: bool) -> Plan:
    # The tables are so small that reading and sorting all rows costs no more than using an index.
    avoided = ("enable_sort", "enable_bitmapscan") if walks else ("enable_seqscan",)
    with database.atomic():
        for method in avoided:
            database.execute_sql(f"SET LOCAL {method} = off")
        ((found,),) = database.execute_sql(f"EXPLAIN (FORMAT JSON) {sql}", params).fetchall()
    found = orjson.loads(found) if isinstance(found, str) else found
    nodes = [*inner_nodes(found[0]["Plan"])]
    reads = []
    for node in nodes:
        table, key = node.get("Relation Name", ""), node.get("Index Name", "")
        key = "words" if re.search("_words__[0-9a-f]{8}_words$", key) else key
        if table or key:
            narrowed = "Bitmap" in node["Node Type"] or "Index Cond" in node
            covered = node["Node Type"] == "Index Only Scan"
            reads.append(Access(table, key, not narrowed, covered))
    return Plan(reads, any(node["Node Type"] == "Sort" for node in nodes))


def inner_nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for inner in node.get("Plans", ()):
        yield from inner_nodes(inner)


def explain_mariadb(database: peewee.Database, sql: str, params: Any, walks: bool) -> Plan:
    rows = database.execute_sql(f"EXPLAIN {sql}", params).fetchall()
    tables, reads = tables_of(sql), []
    for _, _, alias, how, _, key, *_, extra in rows:
        if alias in tables:
            key = "words" if how == "fulltext" else key or ""
            covered = "Using index" in (extra or "").split("; ")
            reads.append(Access(tables[alias], key, how in ("ALL", "index"), covered))
    return Plan(reads, any("filesort" in (row[-1] or "") for row in rows))


def is_small(table: str) -> bool:
    """Whether a table is small: the state, types with few objects."""
    return bool(re.search("_state|_longnote|_plain", table))


#: The function that explains a statement, by database. Its argument ``walks`` tells that the first
#: rows in some order are wanted, not those that meet a condition.
EXPLAIN: dict[str, Callable[[peewee.Database, str, Any, bool], Plan]] = {
    "sqlite": explain_sqlite,
    "postgresql": explain_postgresql,
    "mariadb": explain_mariadb,
}


@pytest.fixture
def plans_of(api: API, backend: str) -> Callable[..., list[Plan]]:
    """Returns the plans of all statements that a request makes."""
    database = storage(api).engine.database

    def plans(path: str, walks: bool = False, anew: bool = False) -> list[Plan]:
        made: list[Any] = []
        api.get(path)
        held: Any = api.backend
        held._structure.totals.renew()
        if anew:
            held._structure = None
        hook = made.append
        database.query_hooks.append(hook)
        response = api.get(path)
        database.query_hooks.remove(hook)
        assert response.status_code < 400
        with database.connection_context():
            return [EXPLAIN[backend](database, e.sql, e.params, walks) for e in made]

    return plans


PAGES = "contentapi_pages"
#: The tables that are derived from the content.
NOTE, PHOTO, PERSON, PAGE_TERMS, IMAGE_TERMS = (
    f"contentapi_{name}__[0-9a-f]{{8}}"
    for name in ("w_note", "w_photo", "w_person", "pages_terms", "images_terms")
)
KEY = "PRIMARY|INTEGER|contentapi_[a-z]+_pkey"
#: Requests that match few objects, and the index that has to find them.
FOUND = [
    ("pages/?slug=p2500", f"{PAGES}_slug"),
    ("pages/?title=Page 2500", f"{PAGES}_title"),
    ("pages/?seo_title=seo 2500", f"{PAGES}_seo_title"),
    ("pages/?first_published_at=3500-08-10T12:00:00Z", f"{PAGES}_first_published_at"),
    ("pages/?alias_of=2499", f"{PAGES}_alias_of"),
    ("pages/?show_in_menus=true", f"{PAGES}_show_in_menus"),
    ("pages/?locale=fr", f"{PAGES}_locale"),
    ("pages/?id=2500", KEY),
    ("pages/?type=w.Plain", f"{PAGES}_type"),
    ("pages/?child_of=12", f"{PAGES}_parent"),
    ("pages/?descendant_of=12", f"{PAGES}_path"),
    ("pages/?ancestor_of=2500", KEY),
    ("pages/?translation_of=2000", f"{PAGES}_translation_key"),
    ("pages/?search=storm", "words"),
    ("pages/?search=all word2500&search_operator=and", "words"),
    ("pages/?type=w.Note&number=2500", f"{NOTE}_number"),
    ("pages/?type=w.Note&amount=2500.5", f"{NOTE}_amount"),
    ("pages/?type=w.Note&day=3500-08-10", f"{NOTE}_day"),
    ("pages/?type=w.Note&text=all word2500", f"{NOTE}_text"),
    ("pages/?type=w.Note&tags=t2500", f"{PAGE_TERMS}_text"),
    ("pages/?type=w.Note&tags=t2500,all", f"{PAGE_TERMS}_text"),
    ("pages/?type=w.Note&picture=2500", f"{NOTE}_picture"),
    ("pages/?type=w.Note&other=2499&order=title", f"{NOTE}_other"),
    ("pages/?child_of=12&facets=title,type", f"{PAGES}_parent"),
    ("pages/?type=w.Note&number__gt=3997&facets=tags,picture,day", f"{NOTE}_number"),
    ("pages/?id__in=2500,2501", KEY),
    ("pages/?id__gte=2500&id__lt=2503", KEY),
    ("pages/?title__startswith=Page 250", f"{PAGES}_title"),
    ("pages/?title__gte=Page 2500&title__lt=Page 2503", f"{PAGES}_title"),
    ("pages/?slug__in=p2500,p2501", f"{PAGES}_slug"),
    (
        "pages/?first_published_at__gt=3500-01-01&first_published_at__lt=3502-01-01",
        f"{PAGES}_first_pub",
    ),
    ("pages/?alias_of__in=2499,2498", f"{PAGES}_alias_of"),
    ("pages/?type=w.Note&number__gte=2500&number__lte=2502", f"{NOTE}_number"),
    ("pages/?type=w.Note&number__gt=3998&title__not=x", f"{NOTE}_number"),
    ("pages/?type=w.Note&number__in=2500,2501,2502", f"{NOTE}_number"),
    ("pages/?type=w.Note&amount__lt=1002", f"{NOTE}_amount"),
    ("pages/?type=w.Note&day__gte=4999-01-01&order=title", f"{NOTE}_day"),
    ("pages/?type=w.Note&text__startswith=all word250", f"{NOTE}_text"),
    ("pages/?type=w.Note&text__gt=all word399", f"{NOTE}_text"),
    ("pages/?type=w.Note&tags__in=t2500,t2501", f"{PAGE_TERMS}_text"),
    ("pages/?type=w.Note&tags=t2500&tags__not=t2501", f"{PAGE_TERMS}_text"),
    ("pages/2500/?fields=_,ancestors(title)", f"{PAGES}_url_hash"),
    ("pages/2500/?fields=_,translations(title)", f"{PAGES}_translation_key"),
    ("pages/?slug=p2500&fields=_,ancestors(_,translations)", f"{PAGES}_translation_key"),
    ("pages/find/?html_path=/p20/p2500/", f"{PAGES}_url_hash"),
    ("pages/find/?id=2500", KEY),
    ("pages/2500/?fields=*", KEY),
    ("pages/2500/?fields=_,title", KEY),
    ("images/?title=Image 2500", "contentapi_images_title"),
    ("images/?rank=2500", f"{PHOTO}_rank"),
    ("images/?tags=t2500", f"{IMAGE_TERMS}_text"),
    ("images/?search=t2500", "words"),
    ("images/2500/?fields=*", KEY),
    ("images/find/?id=2500", KEY),
    ("redirects/find/?html_path=/old-2500?x=1", "contentapi_redirects_site_path"),
    ("redirects/?old_path=/old-2500", "contentapi_redirects_old_path"),
    ("redirects/2500/", KEY),
    ("people/?boss=2499", f"{PERSON}_boss"),
    ("people/?page=2500", f"{PERSON}_page"),
    ("people/2500/?fields=boss(boss(name)),page(title)", KEY),
]


@on_databases
@pytest.mark.parametrize(("path", "key"), FOUND, ids=[path for path, _ in FOUND])
def test_what_few_objects_meet_is_found_by_an_index(
    plans_of: Callable[..., list[Plan]], path: str, key: str
) -> None:
    plans = plans_of(path)
    reads = [read for plan in plans for read in plan.reads]
    assert [read for read in reads if read.whole and not is_small(read.table)] == []
    assert any(re.match(key, read.key) for read in reads), plans


@pytest.mark.backends("sqlite")
@pytest.mark.parametrize(("count", "key"), [(1, "text"), (100, "id")])
def test_many_values_are_not_looked_up_one_by_one(
    plans_of: Callable[..., list[Plan]], count: int, key: str
) -> None:
    tags = ",".join(f"t{n}" for n in range(count))
    # Other databases read the entries of all objects once.
    reads = [r for p in plans_of(f"pages/?type=w.Note&tags__not={tags}") for r in p.reads]
    keys = {read.key for read in reads if re.match(PAGE_TERMS, read.table)}
    assert [bool(re.fullmatch(f"{PAGE_TERMS}_{key}", used)) for used in keys] == [True]


@on_databases
def test_what_is_kept_between_requests_is_found_by_indexes(
    plans_of: Callable[..., list[Plan]],
) -> None:
    reads = [read for plan in plans_of("pages/2500/", anew=True) for read in plan.reads]
    reads = [read for read in reads if read.table == PAGES]
    assert len(reads) > 5
    assert [read for read in reads if read.whole] == []


#: Requests that most objects match, and the index that has to give the first rows in order.
WALKED = [
    ("pages/", f"{PAGES}_path"),
    ("pages/?show_in_menus=false", f"{PAGES}_(path|show_in_menus)"),
    ("pages/?locale=en", f"{PAGES}_(path|locale)"),
    ("pages/?type=w.Note", f"{PAGES}_(path|type)"),
    ("pages/?descendant_of=root", f"{PAGES}_path"),
    ("pages/?child_of=1", f"{PAGES}_parent"),
    ("pages/?order=first_published_at", f"{PAGES}_first_published_at"),
    ("pages/?order=-first_published_at", f"{PAGES}_first_published_at"),
    ("pages/?title__not=x", f"{PAGES}_path"),
    ("pages/?type__not=w.Plain", f"{PAGES}_(path|type)"),
    ("pages/?expires_at__isnull=true", f"{PAGES}_path"),
    ("pages/?title__gte=A", f"{PAGES}_path"),
    ("pages/?type=w.Note&number__gte=0", f"{PAGES}_(path|type)"),
    ("pages/?type=w.Note&number__gte=0&order=number", f"{NOTE}_number"),
    ("pages/?type=w.Note&number__gte=0&order=-first_published_at", f"{PAGES}_first_published_at"),
    ("pages/?type=w.Note&tags=all", f"{PAGES}_(path|type)"),
    ("pages/?type=w.Note&tags=all&order=-number", f"{NOTE}_number"),
    ("pages/?type=w.Note&tags__in=all,t2500", f"{PAGES}_(path|type)"),
    ("images/?rank__gt=0", KEY),
    ("pages/?order=id", KEY),
    ("pages/?order=-id", KEY),
    ("pages/?type=w.Note&order=number", f"{NOTE}_number"),
    ("pages/?type=w.Note&order=-day", f"{NOTE}_day"),
    ("pages/?type=w.Note&order=-amount&descendant_of=root", f"{NOTE}_amount"),
    ("images/", KEY),
    ("people/", KEY),
]


@on_databases
@pytest.mark.parametrize(("path", "key"), WALKED, ids=[path for path, _ in WALKED])
def test_the_first_ones_of_all_are_met_in_the_order_of_an_index(
    plans_of: Callable[..., list[Plan]], path: str, key: str
) -> None:
    plan = plans_of(path, walks=True)[-1]
    assert any(re.match(key, read.key) for read in plan.reads), plan
    assert not plan.sorts


@on_databases
@pytest.mark.parametrize("path", ["pages/20/?fields=_,children", "pages/?id=20&fields=_,children"])
def test_children_are_found_by_their_parents(
    plans_of: Callable[..., list[Plan]], path: str
) -> None:
    # In so little content, what is found may be joined with all pages.
    plan = plans_of(path)[-1]
    assert any(re.match(f"{PAGES}_parent", read.key) for read in plan.reads), plan


@pytest.mark.backends("sqlite", "postgresql")
def test_texts_are_met_in_the_order_of_an_index(plans_of: Callable[..., list[Plan]]) -> None:
    # Indexes on the beginning of a text give no order in MariaDB.
    plan = plans_of("pages/?order=title", walks=True)[-1]
    assert any(read.key == f"{PAGES}_title" for read in plan.reads), plan
    assert not plan.sorts


@pytest.mark.backends("postgresql")
def test_a_server_knows_how_many_children_are_wanted(api: API, backend: str) -> None:
    # Of so little content all is read for them, but not of more.
    with noted(api, attrgetter("sql", "params")) as made:
        assert len(api.items("pages/?id__in=20,21,22&fields=_,children")) == 3
    sql, params = made[-1]
    database = storage(api).engine.database
    with database.connection_context():
        ((found,),) = database.execute_sql(f"EXPLAIN (FORMAT JSON) {sql}", params).fetchall()
    assert found[0]["Plan"]["Plan Rows"] == 3 * 20


DEEP = [
    ("pages/?offset=2500", f"{PAGES}_path"),
    ("pages/?type=w.Note&offset=2500", f"{PAGES}_(path|type)"),
    ("images/?offset=2500", KEY),
]


@on_databases
@pytest.mark.parametrize(("path", "key"), DEEP, ids=[path for path, _ in DEEP])
def test_what_is_skipped_is_skipped_in_an_index(
    plans_of: Callable[..., list[Plan]], path: str, key: str
) -> None:
    plan = plans_of(path, walks=True)[-1]
    assert any(re.match(key, read.key) for read in plan.reads), plan
    assert all(read.key for read in plan.reads if not is_small(read.table))


@on_databases
def test_pages_that_are_skipped_are_not_looked_at(plans_of: Callable[..., list[Plan]]) -> None:
    plan = plans_of("pages/?offset=2500", walks=True)[-1]
    assert any(read.covered for read in plan.reads if read.key == f"{PAGES}_path"), plan


PLANNED_ONCE = [
    "pages/",
    "pages/?order=-first_published_at",
    "pages/{}/",
    "pages/{}/?fields=other(*)",
    "pages/?slug=p{}",
    "pages/?child_of=12&title=Page {}",
    "images/{}/",
    "people/{}/?fields=boss(boss(name))",
]


@pytest.mark.backends("postgresql")
@pytest.mark.parametrize("path", PLANNED_ONCE)
def test_a_server_plans_what_is_asked_often_once(api: API, path: str, backend: str) -> None:
    database = storage(api).engine.database
    # A statement is prepared once more if values have other types, as null has.
    plans = "SELECT statement, SUM(custom_plans) FROM pg_prepared_statements GROUP BY statement"
    with database.connection_context():
        made: list[dict[str, int]] = []
        for first in (2000, 2020, 2040):
            assert all(api.status(path.format(n)) == 200 for n in range(first, first + 20))
            made.append(dict(database.execute_sql(plans).fetchall()))
        asked = {*made[1]} - {plans}
        assert {sql: made[2][sql] - made[1][sql] for sql in asked} == dict.fromkeys(asked, 0)
