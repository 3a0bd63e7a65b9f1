"""Query parameters: what is accepted, what is refused, and that nothing is ignored."""

from __future__ import annotations

import pytest

from flask_contentapi.parameters import PARAMETERS, Parameter, Parsed
from flask_contentapi.query import Filter
from tests.api import API
from tests.conftest import MakeAPI
from tests.samples import blog, page, site
from tests.stores import on_all, on_memory, on_two

pytestmark = on_memory

HUGE = [2**31, 2**63 - 1, 2**63, 2**64, 10**20, 10**400]


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("slug_contains=x", "slug_contains"),
        ("decendant_of=3", "decendant_of"),
        ("Title=x", "Title"),
        ("title =x", "title "),
        ("title[]=x", "title[]"),
        ("limit__gt=3", "limit__gt"),
        ("=x", "Unknown parameter: "),
        ("html_path=/", "html_path"),
        ("parent=3", "parent"),
        ("locale=fr", "locale"),
        ("translation_of=3", "translation_of"),
        ("published_date=2026-01-15", "published_date"),
        ("type=blog.BlogPage,home.HomePage&intro=x", "intro"),
        ("shout=A", "shout"),
    ],
)
def test_unknown_parameters_are_refused_by_name(reference: API, query: str, name: str) -> None:
    assert name in reference.refusal(f"pages/?{query}")


@pytest.mark.parametrize(
    "query", ["type=media.Picture", "child_of=2", "site=localhost", "type=", "site=", "type__not="]
)
def test_images_have_no_parameters_of_pages(reference: API, query: str) -> None:
    assert query.partition("=")[0] in reference.refusal(f"images/?{query}")


def test_a_near_miss_is_suggested(reference: API) -> None:
    assert "descendant_of" in reference.refusal("pages/?decendant_of=3")
    assert "'title'" in reference.refusal("pages/?order=tilte")
    assert "order" in reference.refusal("pages/?sort=title")
    assert "blog.BlogPage" in reference.refusal("pages/?type=blog.BlogPgae")


def test_every_wrong_value_is_named_at_once(reference: API) -> None:
    message = reference.refusal("pages/?limit=x&offset=y&show_in_menus=z")
    assert all(name in message for name in ("limit", "offset", "show_in_menus"))


def test_the_last_of_repeated_parameters_wins(reference: API) -> None:
    assert len(reference.items("pages/?limit=2&limit=3")) == 3
    assert reference.ids("pages/?id=2&id=3") == [3]
    assert reference.ids("pages/?slug=about&slug=storm") == reference.ids("pages/?slug=storm")
    tagged = "pages/?type=blog.BlogPage&tags="
    assert reference.ids(f"{tagged}ships&tags=storm") == reference.ids(f"{tagged}storm") != []
    assert reference.ids("pages/?limit=abc&limit=1") == [2]
    assert reference.status("pages/?limit=1&limit=abc") == 400


@on_all
def test_repeated_types_add_up(reference: API) -> None:
    together = reference.ids("pages/?type=home.HomePage,events.EventPage")
    assert together == reference.ids("pages/?type=home.HomePage&type=&type=events.EventPage")
    assert len(together) == 5


def test_what_browsers_and_clients_add_is_ignored(reference: API) -> None:
    plain = reference.get("pages/").data
    assert reference.get("pages/?_=1700000000&format=json").data == plain
    assert reference.get("pages/?&&").data == plain


@pytest.mark.parametrize("name", ["type", "site", "order", "fields", "search_operator"])
def test_some_parameters_may_be_empty(reference: API, name: str) -> None:
    assert reference.get(f"pages/?{name}=").data == reference.get("pages/").data


def test_who_names_a_page_that_is_not_there_is_told_by_what(reference: API) -> None:
    said = "ancestor_of names a page that is not there: 99."
    assert reference.refusal("pages/?descendant_of=root&ancestor_of=99") == said
    assert reference.refusal("pages/?child_of=98&ancestor_of=99") == (
        f"child_of names a page that is not there: 98. {said}"
    )


@on_all
@pytest.mark.parametrize(
    "query",
    [
        *("child_of=root", "descendant_of=root", "translation_of=root"),
        *("child_of=1", "descendant_of=1", "translation_of=1", "ancestor_of=1"),
    ],
)
def test_a_hidden_home_page_is_named_as_the_client_did(make_api: MakeAPI, query: str) -> None:
    content = {"sites": [site(1)], "pages": [page(1, live=False), page(2, 1)]}
    api = make_api(content, config={"CMS_I18N_ENABLED": True})
    name, _, named = query.partition("=")
    assert api.refusal(f"pages/?{query}") == f"{name} names a page that is not there: {named}."


@on_all
def test_ancestors_are_those_of_an_id(reference: API) -> None:
    said = "ancestor_of must be the id of a page."
    assert [reference.refusal(f"pages/?ancestor_of={named}") for named in ("root", "x")] == [
        said
    ] * 2
    assert reference.refusal("pages/?child_of=x") == "child_of must be the id of a page, or root."


@pytest.mark.parametrize("name", ["limit", "offset", "id", "child_of", "show_in_menus", "format"])
def test_others_may_not_be_empty(reference: API, name: str) -> None:
    assert name in reference.refusal(f"pages/?{name}=")


# Numbers.


@on_all
@pytest.mark.parametrize("number", HUGE)
def test_huge_offsets_are_past_the_end(reference: API, number: int) -> None:
    body = reference.json(f"pages/?offset={number}")
    assert (body["items"], body["meta"]["total_count"]) == ([], 37)


@on_all
@pytest.mark.parametrize("number", [*HUGE, *(-number for number in HUGE)])
@pytest.mark.parametrize(
    "query",
    [
        "pages/?id={}",
        "pages/?alias_of={}",
        "pages/?type=blog.BlogPage&feed_image={}",
        "pages/?type=blog.BlogPage&rating={}",
        "pages/?type=events.EventPage&capacity={}",
        "images/?width={}",
    ],
)
def test_no_stored_number_equals_a_huge_one(reference: API, query: str, number: int) -> None:
    assert reference.total(query.format(number)) == 0


@on_all
@pytest.mark.parametrize("number", HUGE)
@pytest.mark.parametrize(
    "path", ["pages/{}/", "images/{}/", "documents/{}/", "pages/find/?id={}", "images/find/?id={}"]
)
def test_nothing_has_a_huge_id(reference: API, path: str, number: int) -> None:
    assert "message" in reference.get(path.format(number)).get_json()
    assert reference.status(path.format(number)) == 404


@on_all
@pytest.mark.parametrize("number", HUGE)
@pytest.mark.parametrize("name", ["child_of", "descendant_of", "ancestor_of", "limit"])
def test_huge_numbers_name_no_page_and_no_limit(reference: API, name: str, number: int) -> None:
    assert reference.status(f"pages/?{name}={number}") == 400


def test_zeros_in_front_change_nothing(reference: API) -> None:
    zeros = "0" * 4000
    assert reference.ids(f"pages/?id={zeros}3&limit={zeros}1") == [3]
    assert reference.json(f"pages/{zeros}0000003/")["id"] == 3
    assert reference.status(f"pages/{zeros * 2}3/") == 200


@pytest.mark.parametrize(
    "text", ["-1", "1.0", "1e1", "0x1", "1_0", "٣", "１", "½", "--1", "NaN", "1 0"]
)
@pytest.mark.parametrize("name", ["limit", "offset"])
def test_only_whole_numbers_from_0_page(reference: API, name: str, text: str) -> None:
    assert name in reference.refusal(f"pages/?{name}={text}")


@pytest.mark.parametrize("text", ["3", " 3", "3 ", "%093", "3%0A", "+3", "%2B3", "03"])
def test_spaces_around_integers_are_ignored(reference: API, text: str) -> None:
    assert reference.ids(f"pages/?id={text}") == [3]
    assert len(reference.items(f"pages/?limit={text}")) == 3


# Invalid values.


@pytest.mark.parametrize(
    ("type", "query"),
    [
        ("blog.BlogPage", "published_date=garbage"),
        ("blog.BlogPage", "published_date=2024-02-30"),
        ("blog.BlogPage", "published_date=20240101"),
        ("blog.BlogPage", "published_date=2024-W01-1"),
        ("blog.BlogPage", "published_date=0000-01-01"),
        ("blog.BlogPage", "published_date="),
        ("blog.BlogPage", "rating=abc"),
        ("blog.BlogPage", "rating=nan"),
        ("blog.BlogPage", "rating=Infinity"),
        ("blog.BlogPage", "rating=1e9999999999"),
        ("blog.BlogPage", "rating=1_0"),
        ("blog.BlogPage", "rating=٣"),
        ("blog.BlogPage", "reading_minutes=3.0"),
        ("blog.BlogPage", "feed_image=one"),
        ("events.EventPage", "price=1e999"),
        ("events.EventPage", "price=inf"),
        ("events.EventPage", "price=0x10"),
        ("events.EventPage", "opens=24:00"),
        ("events.EventPage", "opens=18"),
        ("events.EventPage", "opens=18:00Z"),
        ("events.EventPage", "starts_at=2024-13-45"),
        ("events.EventPage", "starts_at=9999-12-31T23:59:59-01:00"),
        ("events.EventPage", "starts_at=0001-01-01T00:00:00%2B01:00"),
        ("events.EventPage", "starts_at=2026-01-15T09:00:00%2B99:99"),
        ("events.EventPage", "starts_at=2026-01-15%2B01:00"),
        ("home.HomePage", "first_published_at=2024-13-45"),
        ("home.HomePage", "first_published_at=1700000000"),
        ("home.HomePage", "expires_at=now"),
    ],
)
def test_unreadable_values_are_refused_by_name(reference: API, type: str, query: str) -> None:
    assert query.partition("=")[0] in reference.refusal(f"pages/?type={type}&{query}")


@on_all
@pytest.mark.parametrize(
    "text",
    [
        "2026-01-15T08:00:00Z",
        "2026-01-15T08:00:00",
        "2026-01-15t08:00z",
        "2026-01-15 08:00",
        "2026-01-15T09:00:00+01:00",
        "2026-01-15T09:00:00%2B01:00",
        "2026-01-15T09:00:00.000000000 0100",
        "2026-01-15 09:00 01",
        "2026-01-14T22:30:00-09:30",
    ],
)
def test_an_instant_is_the_same_whatever_its_offset(reference: API, text: str) -> None:
    assert reference.ids(f"pages/?first_published_at={text}") == [10]


@on_all
def test_a_date_alone_is_its_midnight(make_api: MakeAPI) -> None:
    instants = ["2026-01-15T00:00:00Z", "2026-01-15T00:00:00.000001Z", "2026-01-15T23:59:59Z"]
    pages = [page(n, first_published_at=instant) for n, instant in enumerate(instants, 1)]
    assert make_api({"pages": pages}).ids("pages/?first_published_at=2026-01-15") == [1]


@pytest.mark.parametrize(
    "text", ["on", "off", "True", "FALSE", "yes", "t", "2", "-1", " true", "null"]
)
def test_booleans_are_true_false_1_and_0(reference: API, text: str) -> None:
    assert "show_in_menus" in reference.refusal(f"pages/?show_in_menus={text}")


@on_all
def test_booleans_filter(reference: API) -> None:
    yes = reference.ids("pages/?show_in_menus=true")
    no = reference.ids("pages/?show_in_menus=0&limit=20")
    assert yes == reference.ids("pages/?show_in_menus=1")
    assert len(yes) + reference.total("pages/?show_in_menus=false") == 37
    assert not set(yes) & set(no)


@on_all
@pytest.mark.parametrize("text", ["4.5", "4.50", "+4.5", "4.500000", "45e-1", "04.5", " 4.5"])
def test_decimals_are_equal_whatever_their_zeros(reference: API, text: str) -> None:
    path = "pages/?type=blog.BlogPage&rating={}&limit=1"
    assert reference.total(path.format(text)) == reference.total(path.format("4.50")) > 0


@on_all
def test_decimals_between_the_stored_places_equal_none(reference: API) -> None:
    assert reference.total("pages/?type=blog.BlogPage&rating=4.501") == 0


def test_query_strings_have_a_longest_length(reference: API) -> None:
    known = "format=json&" + "&" * (16_384 - len("format=json&"))
    assert reference.status(f"pages/?{known}") == 200
    assert "16384" in reference.refusal(f"pages/?{known}&")


def test_what_is_missing_goes_before_a_query_that_is_too_long(reference: API) -> None:
    long = "&" * 16_385
    assert reference.refusal(f"pages/?site=nowhere.example{long}", 404)
    assert reference.refusal(f"pages/find/?site=nowhere.example{long}", 404)
    assert reference.refusal(f"pages/999/?{long}", 404)
    assert "16384" in reference.refusal(f"pages/2/?{long}")
    assert "16384" in reference.refusal(f"pages/find/?id=2{long}")
    assert "16384" in reference.refusal(f"pages/?{long}site=nowhere.example")


# Invalid combinations.


@pytest.mark.parametrize(
    "query",
    [
        "order=random&offset=0",
        "order=random&offset=5",
        "child_of=2&descendant_of=2",
        "format=xml",
        "search_operator=xor&search=storm",
        "type=blog.BlogPage,",
        "type=,",
        "type=BlogPage",
        "type=BLOG.BlogPage",
        "type=media.Picture",
        "type=blog.BlogPageAuthor",
        "limit=21",
        "title=%00",
        "search=a%00b",
        "%00=1",
        "site=localhost",
        "site=localhost:http",
    ],
)
def test_what_makes_no_sense_is_refused(reference: API, query: str) -> None:
    assert reference.refusal(f"pages/?{query}")


def test_a_missing_site_goes_before_what_else_is_wrong(reference: API) -> None:
    assert reference.refusal("pages/?limit=abc&site=nowhere.example", 404)
    assert reference.refusal("pages/999/?fields=nothing", 404)
    assert reference.refusal("pages/2/?fields=nothing", 400)


@on_two
def test_an_unknown_language_goes_after_what_else_is_wrong(make_api: MakeAPI) -> None:
    content = {"locales": ["en"], "pages": [page(1, locale="en"), page(2, 1, live=False)]}
    api = make_api(content, config={"CMS_I18N_ENABLED": True})
    assert api.refusal("pages/?locale=xx", 404)
    assert api.refusal("pages/?locale=xx&site=nowhere.example", 404)
    for wrong in ("child_of=2", "translation_of=99", "limit=x", "fields=x"):
        assert api.refusal(f"pages/?locale=xx&{wrong}", 400)


@pytest.mark.parametrize("value", ["x=%00", "fields=%00", "title=" + "a" * 5000])
def test_what_is_missing_goes_before_values_that_are_none(reference: API, value: str) -> None:
    assert reference.refusal(f"pages/?{value}&site=nowhere.example", 404)
    assert reference.refusal(f"pages/999/?{value}", 404)
    assert reference.refusal(f"pages/find/?html_path=/nowhere/&{value}", 404)
    assert reference.refusal(f"pages/2/?{value}", 400)
    assert reference.refusal(f"pages/find/?id=2&{value}", 400)


# Fields.


@pytest.mark.parametrize("depth", [11, 200, 1300])
def test_deep_brackets_are_refused(reference: API, depth: int) -> None:
    nested = "alias_of(" * depth + ")" * depth
    assert reference.refusal(f"pages/?fields={nested}")
    assert reference.refusal("pages/?fields=" + "(" * depth)
    assert reference.refusal("pages/2/?fields=" + "a(" * depth + "b" + ")" * depth)


@pytest.mark.parametrize(
    "text",
    [
        "title,",
        ",title",
        "title,,id",
        "title id",
        " title",
        "title(",
        "title)",
        "alias_of(title)",
        "title()",
        "feed_image()",
        "*,title",
        "title,*",
        "-*",
        "*(title)",
        "title,_",
        "-_",
        "_,-title",
        "-title(id)",
        "--title",
        "meta.type",
        "meta",
        "title;id",
        "'title'",
        "**",
        "*,*",
        "_,_",
        "nothing",
        "-nothing",
        "*,-nothing",
    ],
)
def test_fields_that_break_the_grammar_are_refused(reference: API, text: str) -> None:
    for path in ("pages/", "pages/10/"):
        assert reference.refusal(f"{path}?type=blog.BlogPage&fields={text}")


def test_a_field_of_some_types_is_asked_for_with_a_type(reference: API) -> None:
    message = reference.refusal("pages/?fields=reading_minutes")
    assert "It is a field of blog.BlogPage; ask for type=blog.BlogPage." in message
    assert "type=" not in reference.refusal("pages/?fields=readings")
    assert "type=" not in reference.refusal("pages/2/?fields=reading_minutes")


def test_the_last_mention_of_a_name_wins(reference: API) -> None:
    assert "title" in reference.items("pages/?fields=-title,title")[0]
    assert "title" not in reference.items("pages/?fields=title,-title")[0]


@on_all
def test_an_object_without_fields_is_empty(reference: API) -> None:
    assert reference.items("pages/?fields=_&limit=1") == [{}]
    assert reference.items("pages/?fields=_,id&limit=1") == [{"id": 2}]
    assert reference.items("pages/?fields=_,slug&limit=1") == [{"meta": {"slug": "home"}}]


# Addresses.


@pytest.mark.parametrize(
    "path", ["pages", "pages/7", "pages/find", "images/1", "documents/find", "pages/none"]
)
@pytest.mark.parametrize("query", ["", "?", "?fields=*&site=localhost", "?html_path=/a%26b/"])
def test_a_missing_slash_redirects_and_keeps_the_query(
    reference: API, path: str, query: str
) -> None:
    response = reference.get(f"{path}{query}")
    assert response.status_code == 308
    kept = query if query != "?" else ""
    assert response.headers["Location"] == f"http://localhost/api/v2/{path}/{kept}"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "TRACE", "FOO"])
@pytest.mark.parametrize("path", ["pages/", "pages/2/", "pages/find/", "images/1/"])
def test_other_methods_are_refused_with_those_that_are_there(
    reference: API, path: str, method: str
) -> None:
    response = reference.get(path, method=method)
    assert (response.status_code, response.mimetype) == (405, "application/json")
    assert response.headers["Allow"] == "GET, HEAD, OPTIONS"


@pytest.mark.parametrize("path", ["pages/", "pages/2/", "pages/999/", "pages/find/?html_path=/"])
def test_head_is_as_get_without_a_body(reference: API, path: str) -> None:
    got, head = reference.get(path), reference.get(path, method="HEAD")
    assert (head.status_code, head.data) == (got.status_code, b"")
    assert [*head.headers] == [*got.headers]


def test_a_detail_view_ignores_parameters_of_lists(reference: API) -> None:
    plain = reference.get("pages/2/").data
    assert reference.get("pages/2/?limit=abc&order=x&child_of=0&whatever=1").data == plain
    assert reference.get("images/1/?site=nowhere.example").data == reference.get("images/1/").data


def test_find_keeps_the_other_parameters(reference: API) -> None:
    response = reference.get("pages/find/?html_path=/log/&fields=*,-title&id=2&x=a%26b&x=")
    assert response.status_code == 302
    assert response.headers["Location"].endswith("/pages/3/?fields=%2A%2C-title&x=a%26b&x=")


def test_find_keeps_a_path_where_it_knows_the_id_alone(reference: API) -> None:
    response = reference.get("images/find/?id=1&html_path=/x")
    assert response.headers["Location"].endswith("/images/1/?html_path=%2Fx")


@on_all
@pytest.mark.parametrize(
    "query", ["", "?id=", "?id=x", "?id=-2", "?id=2.0", "?html_path=/nope/&id=2"]
)
def test_find_without_a_match_is_404(reference: API, query: str) -> None:
    assert reference.refusal(f"pages/find/{query}", 404)


@pytest.mark.parametrize("id", ["10", " 10 ", "%0910", "%2B10", "0010"])
def test_find_reads_ids_as_lists_do(reference: API, id: str) -> None:
    assert reference.get(f"pages/find/?id={id}").headers["Location"].endswith("/pages/10/")
    assert reference.ids(f"pages/?id={id}") == [10]


@pytest.mark.parametrize("query", ["", "?path=/log/", "?id=x"])
def test_find_says_what_it_needs(reference: API, query: str) -> None:
    needed = "find/ needs html_path, the path of a page, or id, a number."
    assert reference.refusal(f"pages/find/{query}", 404) == needed
    assert reference.refusal(f"images/find/{query}", 404) == "find/ needs id, a number."


@on_all
@pytest.mark.parametrize("path", ["/log/storm/", "log/storm", "//log///storm//", "/log%2Fstorm/"])
def test_find_drops_empty_parts(reference: API, path: str) -> None:
    assert "/pages/10/" in reference.get(f"pages/find/?html_path={path}").headers["Location"]


@on_all
@pytest.mark.parametrize(
    "path", ["/log/Storm/", "/log/storm /", "/./log/", "/log/../", "/log/storm?x"]
)
def test_find_takes_parts_as_they_are(reference: API, path: str) -> None:
    assert reference.status(f"pages/find/?html_path={path}") == 404


@on_all
def test_pages_limit_and_offset_cut_the_same_list(make_api: MakeAPI) -> None:
    pages = [page(1), *(blog(n, 1) for n in range(2, 30))]
    api = make_api({"sites": [site(1)], "pages": pages})
    whole = [id for offset in range(0, 40, 7) for id in api.ids(f"pages/?limit=7&offset={offset}")]
    assert whole == list(range(1, 30))
    assert api.ids("pages/?limit=0") == []
    assert api.total("pages/?limit=0") == 29


#: For each refused request, the sentence with a hint.
HINTS = {
    "pages/?reading_minutes=2": "It is a field of blog.BlogPage; ask for type=blog.BlogPage.",
    "pages/?order=reading_minutes": "It is a field of blog.BlogPage; ask for type=blog.BlogPage.",
    "pages/?type=blog.BlogPage&order=tags": "tags is no single stored value; lists cannot be"
    " ordered by it.",
    "pages/?type=blog.BlogPage&authors=1": "authors is no single stored value; lists cannot be"
    " filtered by it.",
    "pages/?alias_of=x": "alias_of must be the id of an object.",
    "pages/?type=blog.BlogPage&fields=related_links(link_page(reading_minute))": "not here:"
    " reading_minute. Did you mean 'reading_minutes'?",
    "pages/?parent=1": "parent is shown in details only; lists cannot be filtered by it.",
    "pages/?order=parent": "parent is shown in details only; lists cannot be ordered by it.",
    "pages/?fields=parent": "not here: parent. parent is shown in details only.",
    "pages/?titel=x": "Did you mean 'title' or 'site'?",
    "pages/?child_off=1&titel=x": "child_off: Did you mean 'child_of'? titel: Did you mean 'title'",
    "pages/?fields=nothing,titel": "titel: Did you mean 'title'?",
    "pages/?fields=nothing,nobody": "There are type, detail_url,",
    "pages/?fields=meta": "meta. What is in meta is named directly: type, detail_url, html_url,",
    "pages/?type=blog.BlogPage,app.Nix": "There is no type 'app.Nix'. There are wagtailcore.Page, ",
    "pages/?html_path=/": "Unknown parameter: html_path. Only find/ and detail_by_path/ have it.",
    "pages/?locale=en": "locale. Only pages/ has it, where CMS_I18N_ENABLED is on.",
    "pages/?translation_of=2": "translation_of. Only pages/ has it, where CMS_I18N_ENABLED is on.",
    "images/?child_of=2": "Unknown parameter: child_of. Only pages/ has it.",
    "images/?type=x": "Unknown parameter: type. Only endpoints with several types have it.",
    "pages/?id>=2": "Unknown parameter: id>. Write id__gte=..., with two underscores.",
    "pages/?slug!=a": "Unknown parameter: slug!. Write slug__not=..., with two underscores.",
    "pages/?html_url=x": "html_url is no single stored value; lists cannot be filtered by it.",
}


@pytest.mark.parametrize("path", HINTS)
def test_refusals_say_what_would_be_right(reference: API, path: str) -> None:
    assert HINTS[path] in reference.refusal(path)


@pytest.mark.parametrize("query", ["{}=1", "fields={}"])
def test_hints_are_given_for_the_first_few_names_alone(reference: API, query: str) -> None:
    between = "=1&" if query.startswith("{") else ","
    names = between.join(f"titl{letter}" for letter in "abcdfghijk")
    assert reference.refusal(f"pages/?{query.format(names)}").count("Did you mean") == 3


# A new parameter.


@on_all
def test_a_parameter_is_an_entry_in_one_table(
    make_api: MakeAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    def parse(text: str) -> tuple[Filter, ...]:
        if len(text) != 1:
            raise ValueError("must be one letter")
        return (Filter("title", "startswith", text),)

    field = Parsed(parse, "filters.initial", type="string")
    initial = Parameter("initial", "Only pages with this initial.", lambda *_: field)
    monkeypatch.setitem(PARAMETERS, "initial", initial)
    titles = {2: "Kelp", 3: "Bass", 4: "Krill"}
    pages = [page(id, title=title) for id, title in titles.items()]
    # Its description is not that of other tests.
    api = make_api({"pages": pages}, config={"CMSAPI_RELEASE": "initial"})
    assert api.ids("pages/?initial=K&order=-title") == [4, 2]
    assert api.ids("pages/?initial=K&title__not=Kelp") == [4]
    assert "initial must be one letter." in api.refusal("pages/?initial=Kr")
    told = api.json("openapi.json")["paths"]["/pages/"]["get"]["parameters"]
    assert initial.purpose in [parameter.get("description") for parameter in told]
