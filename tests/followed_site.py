"""A site with its own models, whose rows are followed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import peewee
from flask import Flask
from marshmallow import fields
from playhouse import signals
from playhouse.db_url import connect
from playhouse.pool import PooledDatabase, PooledPostgresqlDatabase

from flask_contentapi import ChildObject, Children, ContentAPI, Image, Page, Related, RichText, Tags
from flask_contentapi_peewee import Followed, PeeweeBackend
from tests.api import API
from tests.samples import Record, site
from tests.stores import fresh_address

__all__ = [
    "CONTENT",
    "HOME",
    "MODELS",
    "POSTS",
    "SECTIONS",
    "TYPES",
    "WRONG_RANK",
    "HomePage",
    "Photo",
    "Picture",
    "Post",
    "PostPage",
    "Section",
    "SectionPage",
    "Source",
    "Tag",
    "Tagging",
    "followed",
    "made",
    "open_database",
    "serve",
]


WRONG_RANK = 13


class Section(peewee.Model):
    name = peewee.CharField(null=True)
    slug = peewee.CharField(index=True)
    up = peewee.IntegerField(null=True)
    changed = peewee.IntegerField(default=0, index=True)


class Photo(signals.Model):  # type: ignore[misc]  # peewee's extensions have no types
    caption = peewee.CharField()
    path = peewee.CharField(default="")
    album = peewee.IntegerField(null=True)


class Tag(peewee.Model):
    name = peewee.CharField()


class Rank(peewee.IntegerField):
    """A column with a value that cannot be read."""

    def python_value(self, value: Any) -> Any:
        if value == WRONG_RANK:
            raise KeyError("is no rank")
        return value


class Post(signals.Model):  # type: ignore[misc]
    headline = peewee.CharField(null=True)
    slug = peewee.CharField(index=True)
    section = peewee.IntegerField(null=True)
    text = peewee.TextField(default="")
    status = peewee.CharField(default="published")
    first_published_at = peewee.DateTimeField(null=True)
    photo = peewee.ForeignKeyField(Photo, null=True)
    rank = Rank(null=True)
    changed = peewee.IntegerField(default=0, index=True)


class Tagging(peewee.Model):
    post = peewee.ForeignKeyField(Post)
    tag = peewee.ForeignKeyField(Tag)


class Source(peewee.Model):
    post = peewee.ForeignKeyField(Post)
    name = peewee.CharField()


#: All models, each after those that it refers to.
MODELS = (Section, Photo, Tag, Post, Tagging, Source)


class HomePage(Page):
    app_label = "f"


class SectionPage(Page):
    app_label = "f"


class SourceObject(ChildObject):
    app_label = "f"
    name = fields.String()
    api_fields = ["name"]


class PostPage(Page):
    app_label = "f"
    text = RichText()
    photo = Related("images")
    rank = fields.Integer()
    tags = Tags()
    sources = Children(SourceObject)
    search_fields = ["text", "tags"]
    api_fields = ["text", "photo", "rank", "tags", "sources"]


class Picture(Image):
    app_label = "f"


TYPES = (HomePage, SectionPage, PostPage, Picture)
HOME, SECTIONS, POSTS, PHOTOS = 1, 1000, 1_000_000, 500
#: The content that is none of the site's rows.
CONTENT: dict[str, list[Any]] = {
    "locales": ["en", "fr"],
    "sites": [site(HOME)],
    "collections": [{"id": 1}],
    "pages": [{"id": HOME, "type": "f.HomePage", "title": "Home", "slug": "home"}],
}


def post_record(post: Any) -> Record:
    """The record of a post."""
    return {
        "title": post.headline,
        "slug": post.slug,
        "parent": HOME if post.section is None else SECTIONS + post.section,
        "text": post.text,
        "live": post.status == "published",
        "first_published_at": post.first_published_at,
        "photo": post.photo_id and PHOTOS + post.photo_id,
        "rank": post.rank,
        "tags": [tagging.tag.name for tagging in post.tagging_set],
        "sources": [{"id": source.id, "name": source.name} for source in post.source_set],
    }


def section_parent(section: Any) -> int:
    """The id of the page above a section."""
    return HOME if section.up is None else SECTIONS + section.up


def followed(**options: Any) -> list[Followed]:
    """The followed models; options are for posts."""
    tags = Tagging.select(Tagging, Tag).join(Tag).order_by(Tag.name)
    given: dict[str, Any] = {"changed": Post.changed, "prefetch": [tags, Source], **options}
    return [
        Followed(
            Section,
            SectionPage,
            {"title": Section.name, "parent": section_parent},
            ids_from=SECTIONS,
            changed=Section.changed,
        ),
        Followed(Post, PostPage, post_record, ids_from=POSTS, **given),
        Followed(
            Photo,
            Picture,
            {"title": Photo.caption, "file": Photo.path, "collection": Photo.album},
            ids_from=PHOTOS,
        ),
    ]


#: The backends that have been made, which hear of saved rows until they are closed.
made: list[PeeweeBackend] = []


@contextmanager
def open_database(backend: str) -> Iterator[peewee.Database]:
    """A site's own database, with empty tables."""
    address = fresh_address(backend)
    database = database_at(backend, address)
    with database.bind_ctx(MODELS):
        with database:
            if backend == "mariadb":
                database.execute_sql("ALTER DATABASE CHARACTER SET utf8mb4")
            database.create_tables(MODELS)
        yield database
    if isinstance(database, PooledDatabase):
        database.close_all()


def database_at(backend: str, address: str) -> peewee.Database:
    """The database at an address, as a site would open it."""
    opened: peewee.Database
    if backend == "sqlite":
        opened = peewee.SqliteDatabase(address.removeprefix("sqlite:///"))
    elif backend == "postgresql":
        opened = PooledPostgresqlDatabase(address, prefer_psycopg3=True)
    else:
        opened = connect(address.replace("mariadb:", "mysql+pool:"), charset="utf8mb4")
    return opened


def serve(
    database: peewee.Database,
    models: Sequence[Followed] = (),
    config: Mapping[str, Any] = {},
    content: Mapping[str, Any] | None = CONTENT,
    types: Any = TYPES,
    tables: bool = True,
) -> API:
    """The API of a site that serves the rows of its models.

    :param content: what is loaded; None: nothing.
    :param tables: whether tables are made.
    """
    app = Flask("site")
    app.config.update({"TESTING": True, **config})
    backend = PeeweeBackend.on(database, models or followed())
    made.append(backend)
    ContentAPI(app, types=types, backend=backend)
    with app.app_context():
        if tables:
            backend.create()
        if content is not None:
            backend.load(content)
    return API(app)
