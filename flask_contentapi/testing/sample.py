"""A small museum: the content that every backend is tested with.

The clock stands at :data:`NOW`. This is the tree of pages. Siblings are in tree order, which
differs from the order of their ids::

    1  home  Room, en              home page of museum.example, the default site
    ├─ 20  minerals  Room          translated: 70 and 80
    │  ├─ 23  agate  Exhibit       has the largest value of each kind; translated: 71
    │  ├─ 22  beryl  Exhibit       has the smallest; its relations lead to what is hidden
    │  ├─ 21  copper  Exhibit      has no value at all
    │  ├─ 24  dolomite  Exhibit
    │  ├─ 25  emerald  Loan        a type derived from Exhibit
    │  └─ 26  fluorite  Exhibit    a draft that has the values of 23
    ├─ 12  Minerals  Room          a slug that differs in case
    │  └─ 13  agate  Exhibit
    ├─ 10  minerals-2  Room        a slug that starts with another one
    │  └─ 11  agate  Exhibit
    ├─ 30  depot  Room             a draft
    │  └─ 31  shelf  Room          is shown: a draft hides itself alone
    ├─ 32  opens  Room             goes live NOW: shown
    ├─ 33  opens-soon  Room        goes live a microsecond later: hidden
    ├─ 34  closes  Room            expires NOW: hidden
    ├─ 35  closes-soon  Room       expires a microsecond later: shown
    ├─ 36  staff  Room             restricted, {"type": "login"}
    │  ├─ 37  rota  Exhibit        has the values of 25
    │  └─ 38  board  Room          restricted besides, {"type": "groups", ...}
    │     └─ 39  minutes  Room
    ├─ 60  shop  Room              home page of shop.example:443, inside the other site
    │  └─ 61  cards  Room
    ├─ 14  copy  Room              an alias of 23
    ├─ 15  broken-copy  Room       an alias of 30, which is hidden
    ├─ 16  diorama                 its type is not declared
    └─ 17  grüße & 50%  Room       an alias of 10; a slug to be quoted
    2  accueil  Room, fr           translation of 1
    ├─ 70  mineraux  Room
    │  └─ 71  agate  Exhibit
    └─ 72  mineraux-2  Room        a draft, translation of 10
    3  start  Room, de             translation of 1, a draft
    └─ 80  mineralien  Room
    40  annex  Room                home page of museum.example:8080
    └─ 41  minerals  Room
    50  old  Room                  home page of old.example, a draft
    └─ 51  attic  Room
    90  leftover  Room             in no site

Collections: 1 is open, and so is 2 in it. 3, in 1, is restricted (login), and so are 4 in 3 and 5
in 4. 6, in 4, has an additional restriction (groups).

====== ============================================================== ==========
id     images                                                         collection
====== ============================================================== ==========
1      Photo ``Agate``                                                1
2      Photo ``agate``                                                none
3      Scan ``Agate``, a type derived from Photo                      2
4      Photo ``Beryl``, hidden                                        3
5      Photo ``Agate``, hidden                                        5
6      Photo ``Copper``, hidden                                       6
7      Photo without a title, has no value at all                     none
8      its type is not declared                                       none
====== ============================================================== ==========

Documents: 1 and 2 are open, 3 is hidden in collection 4. People: 1, 2 and 3, at one of the site's
own endpoints. Redirects: 1 leads to 20, 2 to 30, which is hidden, 3 to 36, which is restricted, 4
to an address, 5 to nothing that there is, and 6 to 35, which expires soon.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)

_LOGIN = {"type": "login"}
_BOARD = {"type": "groups", "groups": ["board", "audit"]}


def _page(id: int, parent: int | None, slug: str, title: str, **more: Any) -> dict[str, Any]:
    more.setdefault("type", "museum.Room")
    return {"id": id, "parent": parent, "slug": slug, "title": title, **more}


def _exhibit(id: int, parent: int, slug: str, title: str, **more: Any) -> dict[str, Any]:
    return _page(id, parent, slug, title, **{"type": "museum.Exhibit", **more})


#: What the records of pages 23 and 22 have: the largest value of each kind, and the smallest.
LARGEST: dict[str, Any] = {
    "story": "zinc",
    "panel": "<p>Banded <b>chal</b>cedony, caf&eacute; no&shy;ir</p>",
    "number": 2**63 - 1,
    "weight": 1.7976931348623157e308,
    "price": "999999999999999999999999999999.99",
    "ratio": "999999999999999999999999999999.999999999999999999999999999999",
    "on_loan": True,
    "found_on": "9999-12-31",
    "opens_at": "23:59:59.999999",
    "cleaned_at": "9999-12-31T23:59:59.999999Z",
    "photo": 1,
    "leaflet": 1,
    "twin": 24,
    "keeper": 1,
    "beside": 60,
    "neighbours": [24, 22, 24, 26, 36],
    "views": [2, 1],
    "tags": ["quartz", "Quartz", "banded"],
    "body": [
        {"value": {"z": 1, "a": [1.5, None, True, "onyx"], "": {}}, "type": "table", "id": "b2"},
        {"type": "photo", "value": 5, "id": "b1"},
        {"type": "list", "value": [{"type": "photo", "value": 1}], "id": "b3"},
    ],
    "data": {"z": {"y": [[], ""], "x": 2**53 + 1}, "a": 1e-7, "É😀": -(2**63)},
    "remark": "hush",
}
_CAPTIONS = [
    {"id": 2, "text": "Cut and polished", "photo": 1, "room": 20, "sketches": [2, 5, 1]},
    {"id": 1, "text": "From the vault", "photo": 5, "room": 36, "remark": "hush"},
]
SMALLEST: dict[str, Any] = {
    "story": "Zinc",
    "panel": "obsidian",
    "number": -(2**63),
    "weight": -1.7976931348623157e308,
    "price": "-999999999999999999999999999999.99",
    "ratio": "-0.000000000000000000000000000001",
    "found_on": "0001-01-01",
    "opens_at": "00:00:00",
    "cleaned_at": "0001-01-01T00:00:00Z",
    "photo": 5,
    "leaflet": 3,
    "twin": 26,
    "keeper": 404,
    "neighbours": [26, 404],
    "views": [5],
    "tags": ["quartz"],
    "captions": [{"id": 3, "text": "Found in 1802", "photo": 6}],
    "body": [{"type": "paragraph", "value": "<p>Igneous</p>", "id": "granite"}],
    "data": {},
}
_MIDDLE = {
    "story": "😀",
    "number": 0,
    "weight": 5e-324,
    "price": "0.00",
    "ratio": "1.50",
    "found_on": "2024-02-29",
    "opens_at": "09:30:00",
    "cleaned_at": "2026-01-15T09:00:00+01:00",
    "photo": 2,
    "leaflet": 2,
    "twin": 22,
    "keeper": 1,
    "beside": 21,
    "neighbours": [22, 25],
    "tags": ["Quartz"],
}
_LENT = {
    "story": "\uff5ainc",
    "number": 7,
    "weight": 0.1,
    "price": "4.5",
    "ratio": "1.5",
    "on_loan": True,
    "found_on": "2024-02-29",
    "opens_at": "09:30:00.000001",
    "cleaned_at": "2026-01-15T08:00:00Z",
    "photo": 1,
    "twin": 36,
    "keeper": 2,
    "neighbours": [24, 23],
    "tags": ["banded", "quartz"],
}
_ODD = {
    "story": "zïnc",
    "panel": "c<i>a</i>fe\u0301 <br>igneous",
    "number": -1,
    "weight": float("nan"),
    "price": "-0.01",
    "ratio": "-12.125",
    "photo": 404,
    "twin": 71,
    "tags": ["Bänded"],
}
_EQUAL = {
    "story": "zinc ",
    "number": 7,
    "weight": -0.0,
    "price": "4.50",
    "ratio": "0.3",
    "found_on": "1970-01-01",
    "opens_at": "09:30:00",
    "cleaned_at": "2026-01-15T08:00:00.000001Z",
    "twin": 34,
    "keeper": 3,
    "tags": ["banded "],
}

_MINERALS = {
    "show_in_menus": True,
    "seo_title": "All minerals",
    "search_description": "Stones & ores",
    "first_published_at": "2025-05-01T10:00:00Z",
    "translation_key": "minerals",
    "floor": 1,
}
_SECOND = {
    "show_in_menus": True,
    "first_published_at": "2024-12-31T23:59:59.5Z",
    "translation_key": "minerals-2",
    "floor": 0,
}
_HALL = {"first_published_at": "2025-05-01T12:00:00+02:00", "floor": 2}
_DIORAMA = {"scale": {"z": 87, "a": [1, None]}, "story": "obsidian"}
_SOON = "2026-03-01T12:00:00.000001Z"

#: Children may come before their parents.
_PAGES = [
    _exhibit(23, 20, "agate", "agate", translation_key="agate", captions=_CAPTIONS, **LARGEST),
    _exhibit(22, 20, "beryl", "Agate", **SMALLEST),
    _exhibit(21, 20, "copper", "agate "),
    _exhibit(24, 20, "dolomite", "ágate", **_MIDDLE),
    _exhibit(25, 20, "emerald", "agate", type="museum.Loan", lender="A neighbour", **_LENT),
    _exhibit(26, 20, "fluorite", "agate", live=False, **LARGEST),
    _exhibit(13, 12, "agate", "Agate", **_ODD),
    _exhibit(11, 10, "agate", "AGATE", **_EQUAL),
    _page(31, 30, "shelf", "Shelf"),
    _exhibit(37, 36, "rota", "agate", **_LENT),
    _page(38, 36, "board", "Board", restriction=_BOARD),
    _page(39, 38, "minutes", "Minutes"),
    _page(61, 60, "cards", "Cards"),
    _page(1, None, "home", "Museum", translation_key="home"),
    _page(20, 1, "minerals", "Minerals", **_MINERALS),
    _page(12, 1, "Minerals", "Hall of minerals", **_HALL),
    _page(10, 1, "minerals-2", "Hall of minerals", **_SECOND),
    _page(30, 1, "depot", "Depot with obsidian", live=False),
    _page(32, 1, "opens", "Opens", go_live_at=NOW),
    _page(33, 1, "opens-soon", "Opens soon", go_live_at=_SOON),
    _page(34, 1, "closes", "Closes", expires_at=NOW),
    _page(35, 1, "closes-soon", "Closes soon", go_live_at="2026-02-01", expires_at=_SOON),
    _page(36, 1, "staff", "Staff", restriction=_LOGIN),
    _page(60, 1, "shop", "Obsidian shop", show_in_menus=True),
    _page(14, 1, "copy", "Copy", alias_of=23),
    _page(15, 1, "broken-copy", "Broken copy", alias_of=30),
    _page(16, 1, "diorama", "Diorama", type="museum.Diorama", **_DIORAMA),
    _page(17, 1, "grüße & 50%", "Grüße", alias_of=10),
    _page(2, None, "accueil", "Musée", locale="fr", translation_key="home"),
    _page(70, 2, "mineraux", "Minéraux", locale="fr", translation_key="minerals"),
    _exhibit(71, 70, "agate", "Agathe", locale="fr", translation_key="agate"),
    _page(72, 2, "mineraux-2", "M2", locale="fr", translation_key="minerals-2", live=False),
    _page(3, None, "start", "Museum", locale="de", translation_key="home", live=False),
    _page(80, 3, "mineralien", "Mineralien", locale="de", translation_key="minerals"),
    _page(40, None, "annex", "Annex"),
    _page(41, 40, "minerals", "Minerals"),
    _page(50, None, "old", "Old", live=False),
    _page(51, 50, "attic", "Attic"),
    _page(90, None, "leftover", "Leftover"),
]

_PHOTO = {"file": "agate.jpg", "width": 800, "height": 600, "photographer": "Ada"}
_SCAN = {
    "file": "scans/agate 1.png",
    "width": 2**31,
    "height": 1,
    "photographer": "Åsa",
    "resolution": 1200,
}


def _image(id: int, title: str, collection: int | None = None, **more: Any) -> dict[str, Any]:
    more.setdefault("type", "museum.Photo")
    return {"id": id, "title": title, "collection": collection, **more}


_IMAGES = [
    _image(3, "Agate", 2, type="museum.Scan", tags=["macro"], **_SCAN),
    _image(1, "Agate", 1, tags=["macro", "Macro"], **_PHOTO),
    _image(2, "agate", file="https://cdn.example/agate.jpg", width=800, tags=["Macro"]),
    _image(4, "Beryl", 3, width=800),
    _image(5, "Agate", 5, tags=["macro"]),
    _image(6, "Copper", 6),
    _image(7, ""),
    _image(8, "Macro", type="museum.Hologram", lasers=2),
]

_WALK = {"file": "guide.pdf", "summary": "A walk through the minerals"}

#: The whole content, as records.
CONTENT: Mapping[str, Any] = {
    "locales": ["en", "fr", "de"],
    "sites": [
        {"hostname": "shop.example", "port": 443, "site_name": "Shop", "root_page": 60},
        {"hostname": "Museum.example", "root_page": 1, "site_name": "Museum", "is_default": True},
        {"hostname": "museum.example", "port": 8080, "root_page": 40},
        {"hostname": "old.example", "root_page": 50},
    ],
    "collections": [
        {"id": 6, "name": "Safe", "parent": 4, "restriction": _BOARD},
        {"id": 5, "name": "Drawer", "parent": 4},
        {"id": 4, "name": "Cabinet", "parent": 3},
        {"id": 3, "name": "Vault", "parent": 1, "restriction": _LOGIN},
        {"id": 2, "name": "Store", "parent": 1},
        {"id": 1, "name": "All"},
    ],
    "pages": _PAGES,
    "images": _IMAGES,
    "documents": [
        {"id": 2, "title": "guide", "file": "https://cdn.example/guide.pdf", "tags": ["Visit"]},
        {"id": 1, "title": "Guide", "collection": 1, "tags": ["visit"], **_WALK},
        {"id": 3, "title": "Guide", "collection": 4, "tags": ["visit"], "summary": "All minerals"},
    ],
    "people": [
        {"id": 3, "name": "Åsa", "born": "1815-12-10"},
        {"id": 1, "name": "Ada", "born": "1815-12-10", "portrait": 1, "mentor": 2},
        {"id": 2, "name": "ada", "portrait": 5, "mentor": 404},
    ],
    "redirects": [
        {"id": 2, "old_path": "/store", "redirect_page": 30, "redirect_link": "/"},
        {"id": 1, "old_path": "rocks/?b=%C3%A9&a=1#top", "redirect_page": 20},
        {"id": 3, "old_path": "/rota", "site": "Museum.example:80", "redirect_page": 36},
        {"id": 4, "old_path": "/rota", "redirect_link": "mailto:staff@museum.example"},
        {"id": 5, "old_path": "/lost", "redirect_page": 404},
        {"id": 6, "old_path": "/last-days", "redirect_page": 35, "is_permanent": True},
    ],
}

#: Little content, to be changed.
SMALL: dict[str, Any] = {
    "locales": ["en"],
    "sites": [{"hostname": "museum.example", "root_page": 1}],
    "collections": [{"id": 1, "name": "All"}],
    "pages": [
        _page(1, None, "home", "Museum"),
        _exhibit(
            3, 1, "agate", "Agate", captions=[{"id": 1, "text": "Cut"}], data={"a": 1, "b": 2}
        ),
        _page(2, 1, "shop", "Shop"),
        _page(4, 1, "d", "D", type="museum.Diorama", scale=87),
    ],
    "images": [_image(1, "Agate", 1)],
    "documents": [{"id": 1, "title": "Guide", "tags": ["visit"]}],
    "people": [{"id": 1, "name": "Ada"}],
    "redirects": [{"id": 1, "old_path": "/old", "site": "museum.example", "redirect_page": 3}],
}
