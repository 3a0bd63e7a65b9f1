"""Tests over HTTP, of the core and the backend together."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from flask_contentapi.extension import ContentAPI
from flask_contentapi.testing.kit import Kit
from flask_contentapi.testing.sample import CONTENT, LARGEST, NOW
from flask_contentapi.testing.sample_types import TYPES

_EXHIBITS = "pages/?type=museum.Exhibit"

#: Address, ids in order and, if it is not their number, the total.
LISTS: list[tuple[str, list[int], int]] = [
    ("pages/", [1, 20, 23, 22, 21, 24, 25, 12, 13, 10, 11, 31, 32, 35, 60, 61, 14, 15, 16, 17], 20),
    ("pages/?limit=3&offset=18", [16, 17], 20),
    ("pages/?limit=0", [], 20),
    ("pages/?offset=99999999999999999999", [], 20),
    (_EXHIBITS, [23, 22, 21, 24, 25, 13, 11], 7),
    ("pages/?type=museum.loan", [25], 1),
    (f"{_EXHIBITS}&title=agate&order=-id", [25, 23], 2),
    (f"{_EXHIBITS}&number=9223372036854775807", [23], 1),
    (f"{_EXHIBITS}&number=9223372036854775808", [], 0),
    (f"{_EXHIBITS}&price=4.5", [25, 11], 2),
    (f"{_EXHIBITS}&weight=-0", [11], 1),
    (f"{_EXHIBITS}&on_loan=true", [23, 25], 2),
    (f"{_EXHIBITS}&cleaned_at=2026-01-15T09:00:00%2B01:00", [24, 25], 2),
    (f"{_EXHIBITS}&photo=5", [], 0),
    (f"{_EXHIBITS}&neighbours=24,22", [23], 1),
    (f"{_EXHIBITS}&neighbours=24,9223372036854775808", [], 0),
    (f"{_EXHIBITS}&tags=banded,quartz", [23, 25], 2),
    (f"{_EXHIBITS}&found_since=2024-02-29", [23, 24, 25], 3),
    (f"{_EXHIBITS}&order=photo,-price", [11, 13, 22, 21, 23, 25, 24], 7),
    ("pages/?type=museum.Loan&lender=A+neighbour", [25], 1),
    ("pages/?show_in_menus=1", [20, 10, 60], 3),
    ("pages/?child_of=root", [20, 12, 10, 32, 35, 60, 14, 15, 16, 17], 10),
    ("pages/?child_of=20&order=-title&limit=2", [24, 21], 5),
    ("pages/?site=shop.example", [60, 61], 2),
    ("pages/?site=museum.example:8080", [40, 41], 2),
    ("pages/?site=old.example", [51], 1),
    ("pages/?search=AGÁTE&order=id", [11, 13, 21, 22, 23, 24, 25], 7),
    ("pages/?search=the+agate+polished&search_operator=and", [23], 1),
    ("pages/?search=chalcedony+igneous&search_operator=or&order=id", [13, 22, 23], 3),
    ("pages/?search=", [], 0),
    ("images/", [1, 2, 3, 7, 8], 5),
    ("documents/?search=minerals", [1], 1),
    ("people/?mentor=2", [1], 1),
]

LANGUAGES: list[tuple[str, list[int], int]] = [
    ("pages/?offset=20", [2, 70, 71, 80], 24),
    ("pages/?locale=fr", [2, 70, 71], 3),
    ("pages/?locale=de", [80], 1),
    ("pages/?translation_of=root", [2], 1),
    ("pages/?translation_of=20&order=-locale", [70, 80], 2),
    ("pages/?translation_of=10", [], 0),
]

STAFF: list[tuple[str, list[int], int]] = [
    ("pages/?child_of=36", [37], 1),
    ("pages/?search=agate&order=-id&limit=2", [37, 25], 8),
    (f"{_EXHIBITS}&twin=36", [25, 37], 2),
    (f"{_EXHIBITS}&neighbours=36", [23], 1),
    ("images/", [1, 2, 3, 4, 5, 7, 8], 7),
]

STATUSES: list[tuple[str, int]] = [
    ("pages/23/", 200),
    ("pages/26/", 404),
    ("pages/36/", 404),
    ("pages/404/", 404),
    ("pages/9223372036854775807/", 404),
    ("pages/51/", 404),
    ("pages/51/?site=old.example", 200),
    ("images/5/", 404),
    ("images/8/", 200),
    ("pages/?child_of=30", 400),
    ("pages/?ancestor_of=404", 400),
    ("pages/?site=nowhere.example", 404),
    ("pages/?site=museum.example", 400),
    ("pages/find/?html_path=/depot/", 404),
    ("pages/find/?html_path=/annex/", 404),
    ("images/find/?id=5", 404),
]

FINDS: list[tuple[str, str]] = [
    ("pages/find/?html_path=/", "pages/1/"),
    ("pages/find/?html_path=/minerals/agate/", "pages/23/"),
    ("pages/find/?html_path=Minerals/agate", "pages/13/"),
    ("pages/find/?html_path=/minerals-2/agate/", "pages/11/"),
    ("pages/find/?html_path=/depot/shelf/", "pages/31/"),
    ("pages/find/?html_path=/gr%C3%BC%C3%9Fe %26 50%25/", "pages/17/"),
    ("pages/find/?html_path=/shop/cards/", "pages/61/"),
    ("pages/find/?html_path=/cards/&site=shop.example", "pages/61/?site=shop.example"),
    ("images/find/?id=3", "images/3/"),
]

_PLAIN = "story panel number weight price ratio on_loan found_on opens_at cleaned_at".split()
#: The answer for page 23: every kind of field.
ANSWER: dict[str, Any] = {
    **{name: LARGEST[name] for name in _PLAIN},
    "photo": {"id": 1},
    "leaflet": {"id": 1},
    "twin": {"id": 24},
    "keeper": {"id": 1},
    "beside": {"id": 60},
    "neighbours": [{"id": 24}, {"id": 22}, {"id": 24}],
    "views": [{"id": 2}, {"id": 1}],
    "tags": ["Quartz", "banded", "quartz"],
    "captions": [
        {
            "id": 2,
            "text": "Cut and polished",
            "photo": {"id": 1},
            "room": {"id": 20},
            "sketches": [{"id": 2}, {"id": 1}],
        },
        {"id": 1, "text": "From the vault", "photo": None, "room": None, "sketches": []},
    ],
    "data": LARGEST["data"],
    "year": "9999",
}
_ASKED = (
    "photo(_,id),leaflet(_,id),twin(_,id),keeper(_,id),beside(_,id),"
    "neighbours(_,id),views(_,id),"
    "captions(_,id,text,photo(_,id),room(_,id),sketches(_,id)),"
    f"{','.join(_PLAIN)},tags,data,year"
)


def _rows(table: list[Any]) -> list[Any]:
    return [pytest.param(*line, id=line[0]) for line in table]


class AnswerTests(Kit):
    """Requests to the sample site at ``museum.example``."""

    @classmethod
    @contextmanager
    def client_for(
        cls, can_view: Callable[[Mapping[str, Any]], bool] | None = None, **config: Any
    ) -> Iterator[FlaskClient]:
        """A client of an application that serves the sample from a fresh backend.

        :param can_view: as for :class:`ContentAPI`.
        :param config: settings.
        """
        app, backend = Flask("museum"), cls().make_backend()
        app.config.update(TESTING=True, CMSAPI_BASE_URL=None, **config)
        ContentAPI(app, types=TYPES, backend=backend, can_view=can_view, clock=lambda: NOW)
        try:
            backend.create()
            backend.load(CONTENT)
            yield app.test_client()
        finally:
            backend.close()

    @pytest.fixture(scope="class")
    @classmethod
    def visitor(cls) -> Iterator[FlaskClient]:
        """A visitor without rights."""
        with cls.client_for() as client:
            yield client

    @pytest.fixture(scope="class")
    @classmethod
    def traveller(cls) -> Iterator[FlaskClient]:
        """A visitor without rights, with internationalisation on."""
        with cls.client_for(CMS_I18N_ENABLED=True) as client:
            yield client

    @pytest.fixture(scope="class")
    @classmethod
    def employee(cls) -> Iterator[FlaskClient]:
        """A visitor who may pass ``login``."""
        with cls.client_for(can_view=lambda rule: rule["type"] == "login") as client:
            yield client

    @pytest.mark.parametrize(("address", "ids", "total"), _rows(LISTS))
    def test_list(self, visitor: FlaskClient, address: str, ids: list[int], total: int) -> None:
        assert _listed(visitor, address) == (ids, total)

    @pytest.mark.parametrize(("address", "ids", "total"), _rows(LANGUAGES))
    def test_list_with_languages(
        self, traveller: FlaskClient, address: str, ids: list[int], total: int
    ) -> None:
        assert _listed(traveller, address) == (ids, total)

    @pytest.mark.parametrize(("address", "ids", "total"), _rows(STAFF))
    def test_list_with_rights(
        self, employee: FlaskClient, address: str, ids: list[int], total: int
    ) -> None:
        assert _listed(employee, address) == (ids, total)

    @pytest.mark.parametrize(
        ("host", "ids"),
        [
            ("https://shop.example", [60, 61]),
            ("http://museum.example:8080", [40, 41]),
            ("http://old.example:5000", [51]),
        ],
    )
    def test_site_of_host(self, visitor: FlaskClient, host: str, ids: list[int]) -> None:
        assert _listed(visitor, "pages/", host) == (ids, len(ids))

    def test_search_needs_every_word_unless_the_backend_ranks(self, visitor: FlaskClient) -> None:
        wanted = [13, 22, 23] if self.ranks else []
        found = _listed(visitor, "pages/?search=chalcedony+igneous&order=id")
        assert found == (wanted, len(wanted))

    @pytest.mark.parametrize(("address", "status"), _rows(STATUSES))
    def test_status(self, visitor: FlaskClient, address: str, status: int) -> None:
        assert _get(visitor, address).status_code == status

    @pytest.mark.parametrize(("address", "location"), _rows(FINDS))
    def test_find_leads_to(self, visitor: FlaskClient, address: str, location: str) -> None:
        response = _get(visitor, address)
        assert response.headers.get("Location", "").endswith(f"/api/v2/{location}")

    def test_find_looks_in_the_language_asked(self, traveller: FlaskClient) -> None:
        response = _get(traveller, "pages/find/?html_path=/mineraux/agate/&locale=fr")
        assert response.headers.get("Location", "").endswith("/api/v2/pages/71/?locale=fr")

    def test_every_kind_of_field_is_answered_exactly(self, visitor: FlaskClient) -> None:
        answer = _get(visitor, f"pages/23/?fields=_,{_ASKED}").get_json()
        assert json.dumps(answer) == json.dumps(ANSWER)

    def test_hidden_targets_are_null(self, visitor: FlaskClient) -> None:
        answer = _get(visitor, "pages/22/").get_json()
        relations = ("photo", "leaflet", "twin", "keeper")
        assert {name: answer[name] for name in relations} == dict.fromkeys(relations)
        assert (answer["neighbours"], answer["views"]) == ([], [])

    def test_child_objects_with_hidden_targets_keep_the_rest(self, visitor: FlaskClient) -> None:
        answer = _get(visitor, "pages/22/?fields=_,captions").get_json()
        meta = {"type": "museum.Caption"}
        assert answer["captions"] == [
            {
                "id": 3,
                "meta": meta,
                "text": "Found in 1802",
                "photo": None,
                "room": None,
                "sketches": [],
            }
        ]

    def test_blocks_embed_what_may_be_seen(self, visitor: FlaskClient) -> None:
        table, hidden, inner = _get(visitor, "pages/23/?fields=_,body").get_json()["body"]
        assert list(table["value"]) == ["z", "a", ""]
        assert hidden == {"type": "photo", "value": None, "id": "b1"}
        assert inner["value"][0]["value"]["title"] == "Agate"

    def test_related_fields_of_a_list_are_those_of_each_item(self, visitor: FlaskClient) -> None:
        answer = _get(visitor, f"{_EXHIBITS}&fields=_,id,photo(_,title),twin(_,id)").get_json()
        assert answer["items"] == [
            {"id": 23, "photo": {"title": "Agate"}, "twin": {"id": 24}},
            {"id": 22, "photo": None, "twin": None},
            {"id": 21, "photo": None, "twin": None},
            {"id": 24, "photo": {"title": "agate"}, "twin": {"id": 22}},
            {"id": 25, "photo": {"title": "Agate"}, "twin": None},
            {"id": 13, "photo": None, "twin": {"id": 71}},
            {"id": 11, "photo": None, "twin": None},
        ]

    @pytest.mark.parametrize(
        ("key", "pages"),
        [
            ("parent", {23: 20, 61: 60, 31: None, 1: None}),
            ("alias_of", {14: 23, 17: 10, 15: None, 20: None}),
        ],
    )
    def test_relation_in_meta_is_null_where_it_is_hidden(
        self, visitor: FlaskClient, key: str, pages: dict[int, int | None]
    ) -> None:
        metas = {page: _get(visitor, f"pages/{page}/").get_json()["meta"] for page in pages}
        assert {page: meta[key] and meta[key]["id"] for page, meta in metas.items()} == pages

    def test_undeclared_type_is_null(self, visitor: FlaskClient) -> None:
        answer = _get(visitor, "pages/16/").get_json()
        assert (answer["title"], answer["meta"]["type"]) == ("Diorama", None)

    @pytest.mark.parametrize(
        ("page", "address"),
        [
            (23, "http://museum.example/minerals/agate/"),
            (17, "http://museum.example/gr%C3%BC%C3%9Fe%20%26%2050%25/"),
            (1, "http://museum.example/"),
        ],
    )
    def test_html_url(self, visitor: FlaskClient, page: int, address: str) -> None:
        assert _get(visitor, f"pages/{page}/").get_json()["meta"]["html_url"] == address


def _get(client: FlaskClient, address: str, host: str = "http://museum.example") -> Any:
    return client.get(f"/api/v2/{address}", base_url=host)


def _listed(client: FlaskClient, address: str, *host: str) -> tuple[list[int], int]:
    """The ids in a list, and the total."""
    answer = _get(client, address, *host).get_json()
    assert "items" in answer, answer
    return [item["id"] for item in answer["items"]], answer["meta"]["total_count"]
