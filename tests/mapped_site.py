"""A site with its own models, which are mapped to types of tests/generated.py."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import peewee
from flask import Flask
from playhouse.db_url import connect
from playhouse.pool import PooledDatabase, PooledPostgresqlDatabase

from flask_contentapi import ContentAPI
from flask_contentapi.registry import Registry
from flask_contentapi_peewee import ChildRows, MappedModel, PeeweeBackend, TagRows
from tests.api import API
from tests.generated import DECLARED, Note, Person, Photo, can_view, clock
from tests.stores import fresh_address

__all__ = [
    "MODELS",
    "UNDER",
    "Human",
    "Keyword",
    "Picture",
    "Piece",
    "Story",
    "fill",
    "mapped",
    "open_database",
    "serve",
    "split",
]

Content = dict[str, list[Any]]

#: The backend's own page that all rows are below.
UNDER = 50


class Keyword(peewee.Model):
    id = peewee.AutoField()
    word = peewee.CharField()


class Picture(peewee.Model):
    id = peewee.AutoField()
    caption = peewee.CharField()
    path = peewee.TextField(null=True)
    width = peewee.BigIntegerField(null=True)
    height = peewee.BigIntegerField(null=True)
    rank = peewee.BigIntegerField(null=True)
    credit = peewee.TextField(null=True)
    album = peewee.IntegerField(null=True)
    keywords = peewee.ManyToManyField(Keyword)


class Human(peewee.Model):
    id = peewee.AutoField()
    name = peewee.CharField(null=True)
    boss = peewee.ForeignKeyField("self", null=True, on_delete="CASCADE")
    page = peewee.IntegerField(null=True)


class Story(peewee.Model):
    id = peewee.AutoField()
    headline = peewee.CharField()
    slug = peewee.CharField(index=True)
    up = peewee.ForeignKeyField("self", null=True, on_delete="CASCADE")
    live = peewee.BooleanField(null=True)
    go_live_at = peewee.DateTimeField(null=True)
    expires_at = peewee.DateTimeField(null=True)
    first_published_at = peewee.DateTimeField(null=True)
    show_in_menus = peewee.BooleanField(null=True)
    seo_title = peewee.CharField(null=True)
    search_description = peewee.CharField(null=True)
    lang = peewee.CharField(null=True)
    translation_key = peewee.CharField(null=True)
    alias_of = peewee.IntegerField(null=True)
    text = peewee.TextField(null=True)
    rich = peewee.TextField(null=True)
    number = peewee.BigIntegerField(null=True)
    ratio = peewee.DoubleField(null=True)
    amount = peewee.DecimalField(max_digits=12, decimal_places=2, null=True)
    exact = peewee.DecimalField(max_digits=20, decimal_places=8, null=True)
    flag = peewee.BooleanField(null=True)
    day = peewee.DateField(null=True)
    clock = peewee.TimeField(null=True)
    moment = peewee.DateTimeField(null=True)
    picture = peewee.ForeignKeyField(Picture, null=True)
    paper = peewee.IntegerField(null=True)
    other = peewee.IntegerField(null=True)
    owner = peewee.ForeignKeyField(Human, null=True)
    body = peewee.TextField(null=True)
    data = peewee.TextField(null=True)
    changed = peewee.IntegerField(default=0, index=True)
    keywords = peewee.ManyToManyField(Keyword)


class Piece(peewee.Model):
    id = peewee.AutoField()
    story = peewee.ForeignKeyField(Story, on_delete="CASCADE")
    name = peewee.TextField(null=True)
    picture = peewee.ForeignKeyField(Picture, null=True)
    place = peewee.IntegerField(null=True)


_STORY_WORDS = Story.keywords.through_model
_PICTURE_WORDS = Picture.keywords.through_model
#: All models, each after those that it refers to.
MODELS = (Keyword, Picture, Human, Story, Piece, _STORY_WORDS, _PICTURE_WORDS)


def mapped(**options: Any) -> list[MappedModel]:
    """The mappings of the models.

    :param options: options of the stories, such as ``version``.
    """
    return [
        MappedModel(
            Note,
            Story,
            {
                "title": Story.headline,
                "parent": Story.up,
                "locale": Story.lang,
                "tags": TagRows(Story.keywords, Keyword.word),
                "parts": ChildRows(Piece.story, sort=Piece.place),
            },
            **{"under": UNDER, "version": True, **options},
        ),
        MappedModel(
            Photo,
            Picture,
            {
                "title": Picture.caption,
                "file": Picture.path,
                "collection": Picture.album,
                "tags": TagRows(_PICTURE_WORDS.picture, Keyword.word),
            },
            version=True,
        ),
        MappedModel(Person, Human, version=True),
    ]


@contextmanager
def open_database(backend: str) -> Iterator[peewee.Database]:
    """A site's own database, with empty tables."""
    address = fresh_address(backend)
    database: peewee.Database
    if backend == "sqlite":
        database = peewee.SqliteDatabase(address.removeprefix("sqlite:///"))
    elif backend == "postgresql":
        database = PooledPostgresqlDatabase(address, prefer_psycopg3=True)
    else:
        database = connect(address.replace("mariadb:", "mysql+pool:"), charset="utf8mb4")
    database.bind(MODELS)
    with database:
        if backend == "mariadb":
            database.execute_sql("ALTER DATABASE CHARACTER SET utf8mb4")
        database.create_tables(MODELS)
    yield database
    if isinstance(database, PooledDatabase):
        database.close_all()


def serve(
    database: peewee.Database, models: Iterable[MappedModel], config: Mapping[str, Any] = {}
) -> API:
    """The API of a site that serves the rows of its models."""
    app = Flask("site")
    app.config.update({"TESTING": True, **config})
    backend = PeeweeBackend.on(database, [*models])
    options: dict[str, Any] = {"can_view": can_view, "clock": clock}
    ContentAPI(app, types=DECLARED, backend=backend, **options)
    with app.app_context():
        backend.create()
    return API(app)


# Random content, some of it as rows.


def split(content: Content) -> tuple[Content, Content]:
    """Splits records into those for the backend and those that become rows: all notes, images and
    people."""
    notes = {page["id"] for page in content["pages"] if page["type"] == "w.Note"}
    own: list[Any] = [{"id": UNDER, "type": "w.Plain", "slug": "über", "title": "Over"}]
    rows = []
    for page in content["pages"]:
        parent = page["parent"]
        if page["id"] in notes:
            rows.append({**page, "parent": parent if parent in notes else None})
        else:
            own.append({**page, "parent": UNDER if parent in notes else parent})
    sites = [
        {**site, "root_page": UNDER if site["root_page"] in notes else site["root_page"]}
        for site in content["sites"]
    ]
    kept = {**content, "sites": sites, "pages": own, "images": [], "people": []}
    return kept, {"pages": rows, "images": content["images"], "people": content["people"]}


def fill(database: peewee.Database, rows: Content) -> None:
    """Replaces the rows of the site's own tables by records."""
    with database:
        for model in reversed(MODELS):
            model.delete().execute()
        pictures, humans = ({row["id"] for row in rows[name]} for name in ("images", "people"))
        words = Words()
        for picture in rows["images"]:
            _insert(Picture, "images", "w.Photo", picture, caption="title", path="file")
            Picture.update(album=picture.get("collection")).where(
                Picture.id == picture["id"]
            ).execute()
            words.add(_PICTURE_WORDS, "picture", picture)
        for human in sorted(rows["people"], key=lambda row: row.get("boss") is not None):
            boss = human.get("boss") if human.get("boss") in humans else None
            Human.insert(id=human["id"], name=human.get("name"), page=human.get("page")).execute()
            human["boss"] = boss
        for human in rows["people"]:
            Human.update(boss=human["boss"]).where(Human.id == human["id"]).execute()
        for story in rows["pages"]:
            _insert_story(story, pictures, humans)
            words.add(_STORY_WORDS, "story", story)
        for story in rows["pages"]:
            Story.update(up=story["parent"]).where(Story.id == story["id"]).execute()


def _insert_story(story: dict[str, Any], pictures: set[int], humans: set[int]) -> None:
    def there(record: Mapping[str, Any], name: str, known: set[int]) -> int | None:
        return record[name] if record.get(name) in known else None

    known = {"picture": there(story, "picture", pictures), "owner": there(story, "owner", humans)}
    _insert(Story, "pages", "w.Note", {**story, **known}, headline="title", lang="locale")
    for place, part in enumerate(story.get("parts") or ()):
        Piece.insert(
            id=part["id"],
            story=story["id"],
            name=part.get("name"),
            picture=there(part, "picture", pictures),
            place=place,
        ).execute()


def _insert(model: Any, endpoint: str, label: str, record: Mapping[str, Any], **names: str) -> None:
    """Inserts a record as a row; ``names`` maps columns to fields with other names."""
    columns = REGISTRY.endpoints[endpoint].types[label].columns
    row = {}
    for field in model._meta.fields:
        name = names.get(field, field)
        if record.get(name) is not None and field not in ("up", "changed"):
            row[field] = _value(columns[name].kind.name, columns[name].read(record[name]))
    model.insert(row).execute()


REGISTRY = Registry(DECLARED)


def _value(kind: str, value: Any) -> Any:
    """A stored value as a site's own code has it; None if not every database can store it."""
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None, microsecond=0)
    if isinstance(value, dt.time):
        return value.replace(microsecond=0)
    if isinstance(value, Decimal):
        return value if abs(value) < 10**6 and value == round(value, 6) else None
    return json.dumps(value) if kind in ("json", "blocks") else value


class Words:
    """The keywords in the database, by their text."""

    def __init__(self) -> None:
        self._known: dict[str, Keyword] = {}

    def add(self, through: Any, owner: str, record: Mapping[str, Any]) -> None:
        """Inserts the tags of an object."""
        for tag in dict.fromkeys(record.get("tags") or ()):
            if tag not in self._known:
                self._known[tag] = Keyword.create(word=tag)
            through.insert({owner: record["id"], "keyword": self._known[tag].id}).execute()
