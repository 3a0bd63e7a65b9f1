"""Full-text search (contract, Parameters, search)."""

from __future__ import annotations

import unicodedata
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flask_contentapi import Blocks, Page
from flask_contentapi.query import Search
from flask_contentapi.search import TITLE_WEIGHT
from flask_contentapi_memory.words import WordIndex
from tests.api import API
from tests.conftest import MakeAPI
from tests.databases import until
from tests.samples import blog, document, image, page, site
from tests.stores import except_files, on_memory

pytestmark = except_files

TITLES = {
    2: "Éclairs",
    3: "A storm at night",
    4: "STORM warning",
    5: "Stormy weather",
    6: "multi-word title",
    7: "船と港",
    8: "İstanbul & ﬁne Straße",
    9: "under_score x2 Ⅷ",
    10: "Emoji 🚢 only",
    11: "the and of",
    12: "o'clock a/b\\c 100%",
    13: "ΟΔΟΣ.ΑΒ",
    14: "ΟΔΟΣ'Α",
    15: "ΟΔΌΣ",
}


#: The words "attribute" are in attributes, all others are in the text.
QUOTED = (
    """<a title="1 > attribute" rel = '> attribute <b> "attribute'>gold</a>en"""
    """<p title=it's>pond</p> 3 < attributes > 2"""
    """<img alt=">attribute"> <p class='attribute">fish</p>"""
)


@pytest.fixture(scope="module")
def api(make_api: MakeAPI) -> API:
    titled = [page(id, 1, title=title, slug=f"p{id}") for id, title in TITLES.items()]
    rich = [
        blog(20, 1, title="Rich", body="<p>c<b>af</b>&eacute;</p><p>bar</p><!-- secret -->"),
        blog(24, 1, title="Quoted", body=QUOTED),
        blog(21, 1, title="Poor", intro="Storm in a teacup", private_note="unseen words"),
        blog(22, 1, title="Tagged", tags=["storm"], authors=[{"id": 1, "name": "Stormzy"}]),
        page(23, 1, title="Blocks", body=[{"type": "text", "value": "storm"}]),
    ]
    return make_api(
        {
            "sites": [site(1)],
            "pages": [page(1, title="Home"), *titled, *rich],
            "images": [image(1, title="Lamp", tags=["Night storm"], credit="Osei")],
            "documents": [document(1, title="Hours", summary="storm"), document(2, tags=["Storm"])],
        }
    )


@pytest.mark.parametrize(
    "text",
    [
        '"',
        '"storm"',
        "'",
        "*",
        "sto*",
        "storm AND",
        "NEAR(",
        "NEAR(storm night, 3)",
        "title:storm",
        "-storm",
        "(storm",
        "a/b\\c",
        "%25",
        "_",
        "storm%3B--",
        "multi-word",
        "%20",
        "🚢",
        "^storm",
        "{storm}",
        "storm OR NOT",
        "+storm",
        "storm^2",
        "storm~",
        "%EF%BF%BE",
        "%FF%FE",
        "<b>storm</b>",
        ":*",
        "!storm",
        "storm %26 | !",
    ],
)
@pytest.mark.parametrize("operator", ["and", "or"])
def test_search_text_has_no_syntax(api: API, text: str, operator: str) -> None:
    assert api.status(f"pages/?search={text}&search_operator={operator}") == 200


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("eclairs", {2}),
        ("ÉCLAIRS", {2}),
        (unicodedata.normalize("NFD", "éclairs"), {2}),
        ("storm", {3, 4, 21}),
        ("sto*", set()),
        ("title:storm", {3, 4, 6, 21}),
        ("-storm", {3, 4, 21}),
        ('"storm night"', {3, 4, 21}),
        ("storm NOT night", {3, 4, 21}),
        ("stormy", {5}),
        ("word", {6}),
        ("multi-word", {6}),
        ("船と港", {7}),
        ("船", set()),
        ("istanbul", {8}),
        ("ISTANBUL", {8}),
        ("fine", {8}),
        ("strasse", set()),
        ("straße", {8}),
        ("STRASSE", set()),
        ("score", {9}),
        ("under", {9}),
        ("x2", {9}),
        ("viii", {9}),
        ("🚢", set()),
        ("o clock", {12}),
        ("c", {12}),
        ("100", {12}),
        ("ΟΔΟΣ", {13, 14, 15}),
        ("οδός", {13, 14, 15}),
        ("ΟΔΟΣ/αβ", {13, 14, 15}),
        ("café", {20}),
        ("cafe", {20}),
        ("bar", {20}),
        ("eacute", set()),
        ("golden", {24}),
        ("fish", {24}),
        ("pond", {24}),
        ("attributes", {24}),
        ("attribute", set()),
        ("secret", set()),
        ("unseen", set()),
        ("stormzy", set()),
        ("", set()),
        ("%20", set()),
    ],
)
def test_words_are_found_whatever_their_form(api: API, text: str, found: set[int]) -> None:
    assert set(api.ids(f"pages/?search={text}")) == found
    assert api.total(f"pages/?search={text}") == len(found)


#: Characters that only control how text is shown.
CONTROLS = "\u00ad\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e"
CONTROLS += "\u2060\u2066\u2067\u2068\u2069\ufeff"
ENTITIES = "&shy;&#173;&zwnj;&zwj;&lrm;&rlm;&NoBreak;&#x2066;&#xFEFF;"


@pytest.fixture(scope="module")
def shown(make_api: MakeAPI) -> API:
    """Content with controls inside words."""
    pages = [
        page(1, title=CONTROLS.join(["", *"Donau", ""])),
        blog(2, 1, title="Rich", body=f"<p>Elbe{ENTITIES}k<b>ah{ENTITIES}</b>n</p>"),
        blog(3, 1, title="Poor", intro="Elbe&shy;kahn"),
        page(4, 1, title="Blocks", body=[{"type": "text", "value": "<p>Elbe&shy;kahn</p>"}]),
        page(5, 1, title="Rhein\u200bschiff"),
        page(6, 1, title="T\u2060he tree\ufe0f"),
    ]
    images = [image(1, tags=[f"night{CONTROLS}storm"])]
    return make_api({"pages": pages, "images": images, "documents": [document(1, tags=[CONTROLS])]})


@pytest.mark.parametrize("text", ["Donau", f"{CONTROLS}do{CONTROLS}nau", f"d{CONTROLS}onáu"])
def test_controls_are_no_part_of_words(shown: API, text: str) -> None:
    assert shown.ids(f"pages/?search={text}") == [1]


def test_each_control_is_dropped(shown: API) -> None:
    for control in CONTROLS:
        assert shown.ids(f"pages/?search=do{control}nau") == [1]
        assert shown.ids(f"images/?search=night{control}storm") == [1]
        assert shown.ids(f"pages/?search={control}") == []


def test_controls_are_dropped_from_markup(shown: API) -> None:
    assert shown.ids("pages/?search=elbekahn") == [2]
    assert shown.ids("pages/?search=shy") == [3]


def test_zero_width_spaces_separate_words(shown: API) -> None:
    assert shown.ids("pages/?search=rhein schiff&search_operator=and") == [5]
    assert shown.ids("pages/?search=rheinschiff") == []
    assert shown.ids("pages/?search=do\u200bnau") == []


def test_variation_selectors_are_combining_marks(shown: API) -> None:
    assert shown.ids("pages/?search=tree") == [6]
    assert shown.ids("pages/?search=t\ufe0eree") == [6]


def test_stop_words_are_known_despite_controls(shown: API, make_api: MakeAPI) -> None:
    assert shown.ids("pages/?search=t\u00adhe donau&search_operator=and") == [1]
    config = {"CMSAPI_STOP_WORDS": ["Do\u00adnau"]}
    api = make_api({"pages": [page(1, title="donau"), page(2, 1, title="elbe")]}, config=config)
    assert api.ids("pages/?search=donau elbe") == [2]


def test_every_word_or_one_of_them(api: API) -> None:
    assert set(api.ids("pages/?search=storm night")) == {3, 4, 21}
    assert set(api.ids("pages/?search=storm night&search_operator=OR")) == {3, 4, 21}
    assert api.ids("pages/?search=storm night&search_operator=And") == [3]
    assert api.ids("pages/?search=storm nowhere&search_operator=and") == []


def test_every_word_is_more_than_the_rarest(make_api: MakeAPI) -> None:
    titles = {2: "red", 3: "blue", 4: "red blue", 5: "blue sky", 6: "red sky"}
    pages = [page(number, 1, title=title) for number, title in titles.items()]
    api = make_api({"sites": [site(1)], "pages": [page(1), *pages]})
    assert api.ids("pages/?search=red blue&search_operator=and") == [4]
    assert api.ids("pages/?search=red blue sky&search_operator=and") == []


def test_stop_words_count_where_nothing_else_is_left(api: API) -> None:
    assert api.ids("pages/?search=the storm at the night&search_operator=and") == [3]
    assert api.ids("pages/?search=the") == [11]
    assert api.ids("pages/?search=of the and&search_operator=and") == [11]


def test_stop_words_can_be_set(make_api: MakeAPI) -> None:
    content = {"pages": [page(1, title="the storm"), page(2, title="the night")]}
    api = make_api(content, config={"CMSAPI_STOP_WORDS": ["Storm"]})
    assert sorted(api.ids("pages/?search=the storm&search_operator=or")) == [1, 2]


def test_images_and_documents_are_searched_by_title_and_tags(api: API) -> None:
    assert api.ids("images/?search=STORM") == [1]
    assert api.ids("images/?search=lamp") == [1]
    assert api.ids("images/?search=osei") == []
    assert api.ids("documents/?search=storm") == [2]


@on_memory
def test_words_are_indexed_before_the_first_search(
    make_api: MakeAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = make_api({"sites": [site(1)], "pages": [page(1, title="Late")]})
    monkeypatch.delattr("flask_contentapi_memory.shelves.words_of")
    assert api.ids("pages/?search=late") == [1]


def test_search_combines_with_filters_tree_and_order(api: API) -> None:
    assert api.ids("pages/?search=storm&order=title") == [3, 21, 4]
    assert api.ids("pages/?search=storm&order=-id&limit=1&offset=1") == [4]
    assert api.ids("pages/?search=storm&type=blog.BlogPage") == [21]
    assert api.ids("pages/?search=storm&slug=p4") == [4]
    assert api.ids("pages/?search=storm&child_of=2") == []
    assert set(api.ids("pages/?search=storm&order=random")) == {3, 4, 21}


def test_a_word_in_the_title_weighs_more(make_api: MakeAPI) -> None:
    pages = [
        page(1, title="Home"),
        blog(2, 1, title="Weather", intro="storm storm storm", body="storm"),
        blog(3, 1, title="Storm"),
        blog(4, 1, title="Weather", intro="storm"),
    ]
    api = make_api({"sites": [site(1)], "pages": pages})
    assert api.ids("pages/?search=storm")[0] == 3
    assert api.ids("pages/?search=storm&limit=1&offset=2") == [4]


def test_equal_hits_stand_in_tree_order(make_api: MakeAPI) -> None:
    pages = [page(1, title="Home"), page(9, 1, title="storm"), page(5, 9, title="storm")]
    api = make_api({"sites": [site(1)], "pages": [*pages, page(3, 1, title="storm")]})
    assert api.ids("pages/?search=storm") == [9, 5, 3]


def test_more_hits_stand_first(make_api: MakeAPI) -> None:
    pages = [page(1, title="storm"), page(2, 1, title="night"), page(3, 1, title="storm night")]
    assert make_api({"pages": pages}).ids("pages/?search=storm night")[0] == 3


def test_what_is_hidden_does_not_change_the_order(make_api: MakeAPI) -> None:
    pages = [page(1, title="Home"), page(2, 1, title="storm"), page(3, 1, title="night")]
    others = [page(n, 1, slug=f"p{n}", title="storm " * n, live=False) for n in range(4, 30)]
    orders = [
        make_api({"pages": content}).ids("pages/?search=storm night")
        for content in (pages, [*pages, *others])
    ]
    assert orders == [[2, 3], [2, 3]]


def test_a_word_in_the_title_weighs_more_however_long_the_rest_is(make_api: MakeAPI) -> None:
    pages = [
        page(1, title="Home"),
        blog(2, 1, title="Weather", body="storm " * 100),
        blog(3, 1, title="Storm", body="night " * 1000),
        *(blog(n, 1, slug=f"p{n}", title="Storm" if n == 29 else "Short") for n in range(4, 30)),
    ]
    assert make_api({"pages": pages}).ids("pages/?search=storm") == [3, 29, 2]


class Leaflet(Page):
    app_label = "lab"
    parts = Blocks()
    search_fields = ("parts",)


def test_only_what_has_the_form_of_a_block_is_searched_as_one(make_api: MakeAPI) -> None:
    block, other = {"type": "text", "value": "oak", "note": "elm"}, {"type": 3, "value": "ash"}
    parts = [block, {**other, "note": "fir"}]
    api = make_api({"pages": [page(1, type="lab.Leaflet", parts=parts)]}, types=[Leaflet])
    found = [api.total(f"pages/?search={word}") for word in ("oak", "elm", "ash", "fir")]
    assert found == [1, 0, 1, 1]


@on_memory
def test_too_many_words_are_refused(api: API) -> None:
    words = "+".join(f"w{n}" for n in range(51))
    assert "50" in api.refusal(f"pages/?search={words}")
    assert api.status(f"pages/?search={words.rpartition('+')[0]}") == 200
    assert api.status("pages/?search=" + "storm+" * 600) == 200


@on_memory
def test_too_long_a_text_is_refused(api: API) -> None:
    assert api.refusal("pages/?search=" + "x" * 4097)
    assert api.status("pages/?search=" + "x" * 4096) == 200


def test_objects_can_have_more_words_than_a_database_indexes(make_api: MakeAPI) -> None:
    body = " ".join(f"word{n}" for n in range(100_000))
    api = make_api({"pages": [page(1), blog(2, 1, title="Dictionary", body=f"<p>{body}</p>")]})
    assert api.ids("pages/?search=dictionary") == [2]
    # So many words may become searchable a moment later.
    tries = count()
    until(lambda: api.ids(f"pages/?search=word7&_={next(tries)}") == [2])


# Beginnings of words.


#: Words of some 4,000, 7,999, 8,000 and 12,000 characters: one of them is six of a word.
HUGE = ["q" * 4000, "q" + "㌖" * 1333, "qq" + "㌖" * 1333, "㌖" * 2000]


@pytest.mark.parametrize("start", HUGE)
def test_huge_words_are_told_apart(make_api: MakeAPI, start: str) -> None:
    texts = [start, *(start + more for more in ("a", "b", "船"))]
    pages = [blog(n, 1, slug=f"p{n}", body=f"<p>A {t}!</p>") for n, t in enumerate(texts, 2)]
    api = make_api({"pages": [page(1, title="Home"), *pages]})

    def found(query: str) -> list[int]:
        # Percent-encoded, it would be too long.
        raw = query.encode().decode("latin-1")
        return api.ids("pages/", environ_overrides={"QUERY_STRING": raw})

    for number, text in enumerate(texts, 2):
        assert found(f"search={text}") == [number]
    assert found(f"autocomplete={start}") == [2, 3, 4, 5]
    assert found(f"autocomplete={start[:-1]}") == [2, 3, 4, 5]
    assert found(f"autocomplete={texts[2]}") == [4]


#: As far as letters are written as others in databases, words of every length, and with each length
#: of what is written.
LONG = ["z" * 23, "z" * 24, "z" * 25, "x" * 47, "x" * 48, "x" * 49, "я" * 40, "x" * 200]


@pytest.fixture(scope="module")
def begun(make_api: MakeAPI) -> API:
    titles = {**TITLES, **{100 + n: text for n, text in enumerate(LONG)}}
    others = [page(id, 1, title=title, slug=f"p{id}") for id, title in titles.items()]
    rich = [
        blog(20, 1, title="Weather", body="<p>storm</p>", tags=["stone"]),
        blog(21, 1, title="Storm and rain", body="<p>Harbour</p>"),
        blog(22, 1, title="Harbour", body="<p>storm</p>"),
    ]
    images = [image(1, title="Lamp", tags=["Night storm"]), image(2, title="Stone")]
    pages = [page(1, title="Home"), *others, *rich]
    return make_api({"sites": [site(1)], "pages": pages, "images": images})


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("sto", [3, 4, 5, 21, 20, 22]),
        ("STORMY", [5]),
        ("tormy", []),
        ("e", [2, 10]),
        ("éc", [2]),
        ("船", [7]),
        ("船と", [7]),
        ("港", []),
        ("stra", [8]),
        ("straß", [8]),
        ("οδ", [13, 14, 15]),
        ("the", [11]),
        ("of the a", [11]),
        ("storm ni", [3]),
        ("sto night", []),
        ("ni storm", []),
        ("night storm ", [3]),
        ("storm storm", [3, 4, 21, 20, 22]),
        ("z", list(range(100, 103))),
        ("xx", [103, 104, 105, 107]),
        ("x" * 47, [103, 104, 105, 107]),
        ("x" * 48, [104, 105, 107]),
        ("x" * 49, [105, 107]),
        ("x" * 150, [107]),
        ("x" * 201, []),
        ("z" * 24, [101, 102]),
        ("z" * 25, [102]),
        ("я" * 8, [106]),
        ("я" * 39, [106]),
        ("я" * 41, []),
        ("", []),
        ("%20!%20", []),
        ('sto*"', [3, 4, 5, 21, 20, 22]),
        ("multi-w", [6]),
    ],
)
def test_autocomplete_finds_beginnings(begun: API, text: str, found: list[int]) -> None:
    assert begun.ids(f"pages/?autocomplete={text}") == found
    assert begun.total(f"pages/?autocomplete={text}") == len(found)


@pytest.mark.parametrize("text", LONG)
def test_long_words_are_found(begun: API, text: str) -> None:
    assert begun.ids(f"pages/?search={text}") == [100 + LONG.index(text)]
    assert begun.ids(f"pages/?search={text[:-1]}") == [
        100 + number for number, other in enumerate(LONG) if other == text[:-1]
    ]


def test_only_the_last_word_counts_in_titles(begun: API) -> None:
    assert begun.ids("pages/?autocomplete=storm ha") == [22, 21]
    assert begun.ids("pages/?autocomplete=harbour sto") == [21, 22]


def test_autocomplete_combines_with_filters_and_order(begun: API) -> None:
    assert begun.ids("pages/?autocomplete=sto&order=-id&limit=2") == [22, 21]
    assert begun.ids("pages/?autocomplete=sto&type=blog.BlogPage") == [21, 20, 22]
    assert begun.ids("pages/?autocomplete=sto&slug=p4") == [4]
    assert begun.ids("pages/?autocomplete=sto&limit=2&offset=4") == [20, 22]
    assert sorted(begun.ids("pages/?autocomplete=sto&order=random")) == [3, 4, 5, 20, 21, 22]
    assert begun.ids("images/?autocomplete=sto") == [2, 1]


def test_autocomplete_combines_with_search(begun: API) -> None:
    assert begun.ids("pages/?autocomplete=sto&search=harbour rain") == [21, 22]
    assert begun.ids("pages/?autocomplete=ha&search=storm weather&search_operator=or") == [22, 21]
    assert begun.ids("pages/?autocomplete=sto&search=") == []
    assert begun.ids("pages/?autocomplete=!&search=storm") == []


def test_autocomplete_needs_searching(begun: API, make_api: MakeAPI) -> None:
    api = make_api({}, config={"CMSAPI_SEARCH_ENABLED": False})
    assert "switched off" in api.refusal("pages/?autocomplete=a")
    assert "50" in begun.refusal("pages/?autocomplete=" + "+".join(f"w{n}" for n in range(51)))


# The word index of memory.

WEIGHTS = st.dictionaries(
    st.sampled_from(["a", "b", "c", "ab"]), st.sampled_from([1, 1 + TITLE_WEIGHT])
)
CHANGES = st.lists(st.tuples(st.integers(1, 4), st.none() | WEIGHTS), max_size=30)


@given(CHANGES)
def test_an_index_that_is_changed_holds_what_a_new_one_does(
    changes: list[tuple[int, dict[str, int] | None]],
) -> None:
    index, held = WordIndex(()), dict[int, dict[str, int]]()
    for identity, weights in changes:
        before = {identity: held[identity]} if identity in held else {}
        after = {} if weights is None else {identity: weights}
        index = index.revised(before, after)
        held = {**held, **after} if after else {i: held[i] for i in held if i != identity}
    anew = WordIndex(held.items())
    searches = [Search((text,), True, prefix) for text in "abc" for prefix in (False, True)]
    assert [index.score(s) for s in searches] == [anew.score(s) for s in searches]


def test_an_index_does_not_grow_with_the_number_of_changes() -> None:
    index = WordIndex(())
    for number in range(100):
        words = {number: {f"w{number}": 1}}
        index = index.revised({}, words).revised(words, {})
    assert len(index._ids) == 1
    assert not index._postings
