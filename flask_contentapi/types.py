"""The classes that a site declares its types with.

A type is a class with marshmallow fields. ``api_fields`` lists those that the API shows; without
it only built-in fields are shown::

    class BlogPage(Page):
        published_date = fields.Date()
        body = RichText()
        search_fields = ["body"]
        api_fields = ["published_date", "body"]

An instance is a content object in Python, ``BlogPage(id=1, parent=None, title=..., slug=...)``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal
from urllib.parse import quote

from marshmallow import ValidationError, fields, validate

from flask_contentapi.errors import suggest
from flask_contentapi.fields import Derived, Related, Rendition, Tags
from flask_contentapi.kinds import LONGEST_KEY, LONGEST_NAME, LONGEST_PATH
from flask_contentapi.sites import normal_path, read_host

#: How ``parent`` and ``alias_of`` are shown (contract, Fields).
_SUMMARY = "_,id,type,detail_url,html_url,title"
_FROM_ZERO = validate.Range(0, error="must be from 0 on")


def check_slug(slug: str) -> None:
    if not slug or "/" in slug or slug in (".", ".."):
        raise ValidationError("must be one part of an address, without a slash")
    if len(slug) > LONGEST_KEY:
        raise ValidationError(f"must be at most {LONGEST_KEY:,} characters")


def _check_old_path(path: str) -> None:
    if len(quote(path)) > LONGEST_PATH:
        raise ValidationError(f"must be at most {LONGEST_PATH:,} characters, percent-encoded")


def restriction_field() -> fields.Dict:
    """The field for a restriction."""
    return fields.Dict(
        validate=_check_restriction, error_messages={"invalid": 'must be as {{"type": "login"}}'}
    )


def _check_restriction(rule: Mapping[str, Any]) -> None:
    if not isinstance(rule.get("type"), str):
        raise ValidationError('must have a type, as {"type": "login"}')


@dataclass(eq=False)
class APIField:
    """One key of an answer.

    :param name: the key.
    :param field: the marshmallow field that serialises it. It can be left out for a stored field.
        A ``fields.Function`` computes the value from the object.
    :param source: the stored field that it shows, or a property or method of the class that
        computes it; by default the one with the key's own name. A stored field shown without
        ``field`` is the same field under another name, so lists can be filtered and ordered by
        it, but not by any other ``APIField``.
    :param needs: for computed keys, the stored fields that the computation reads; by default all
        except ``parent`` and ``alias_of`` are read from the storage.
    :param volatile: whether the value depends on more than the content, such as the time or
        another service. Answers that show it are never cached.
    """

    name: str
    field: fields.Field[Any] | None = None
    _: KW_ONLY
    source: str | None = None
    needs: Sequence[str] | None = None
    volatile: bool = False

    def __repr__(self) -> str:
        return f"APIField({self.name!r})"


@dataclass(eq=False)
class APIFilter:
    """An additional query parameter that compares a stored field.

    :param name: the parameter.
    :param source: the stored field; it need not be shown.
    :param operator: ``ge`` (the parameter's value or more), ``gt``, ``le`` or ``lt``.
    """

    name: str
    source: str
    operator: Literal["lt", "le", "gt", "ge"]


def class_in_place(name: str, value: Any) -> str:
    """What is wrong with an attribute that is a class of fields instead of a field; "" if it is
    none."""
    # A nested class statement has the name of the attribute, which is no mistake.
    if isinstance(value, type) and issubclass(value, fields.Field) and name != value.__name__:
        module = "fields." if value.__module__ == fields.__name__ else ""
        return f"is a class; write {module}{value.__name__}()."
    return ""


class Content:
    """What all declared classes have in common.

    :cvar app_label: first half of the type's label ``<app_label>.<ModelName>``; by default the
        name of the module, or of its package for a module named ``models``, ``types`` or
        ``content``.
    :cvar api_fields: names of fields to show after the built-in ones, or :class:`APIField`.
    :cvar search_fields: names of fields to search besides the built-in ones.
    :cvar meta_fields: built-in keys of ``meta``.
    :cvar body_fields: built-in keys outside ``meta``.
    """

    app_label: ClassVar[str]
    api_fields: ClassVar[Sequence[str | APIField]] = ()
    search_fields: ClassVar[Sequence[str]] = ()
    meta_fields: ClassVar[Sequence[str | APIField]] = ("type",)
    body_fields: ClassVar[Sequence[str | APIField]] = ("id",)
    built_in_search_fields: ClassVar[Sequence[str]] = ()

    id = fields.Integer(required=True, validate=_FROM_ZERO)

    def __init__(self, **values: Any) -> None:
        unknown = sorted(values.keys() - self.declared_fields().keys())
        if unknown:
            given = class_in_place(unknown[0], getattr(type(self), unknown[0], None))
            hint = f" It {given}" if given else suggest(unknown[0], self.declared_fields())
            raise TypeError(f"{type(self).__name__} has no field {', '.join(unknown)}.{hint}")
        self.__dict__.update(values)

    def __repr__(self) -> str:
        return f"<{self.type_label()} {self.__dict__.get('id')}>"

    @classmethod
    def declared_fields(cls) -> dict[str, fields.Field[Any]]:
        """The stored fields by name: those of base classes first, each in declared order."""
        found: dict[str, fields.Field[Any]] = {}
        for base in reversed(cls.__mro__):
            for name, value in vars(base).items():
                if isinstance(value, fields.Field) and not isinstance(value, Rendition):
                    found[name] = value
                else:
                    found.pop(name, None)
        return found

    @classmethod
    def type_label(cls) -> str:
        """``<app_label>.<ModelName>``."""
        app_label = getattr(cls, "app_label", None)
        if not app_label and cls.__module__ == "__main__":
            app_label = Path(getattr(sys.modules["__main__"], "__file__", None) or "app").stem
        *packages, last = cls.__module__.split(".")
        is_plain = packages and last in ("models", "types", "content")
        return f"{app_label or (packages[-1] if is_plain else last)}.{cls.__name__}"

    def to_record(self) -> dict[str, Any]:
        """The object as a content record."""
        return {"type": self.type_label(), **self.__dict__}


class ChildObject(Content):
    """An object inside another one, declared there with :class:`Children`."""

    def to_record(self) -> dict[str, Any]:
        """The object as an entry of a list in a content record."""
        return dict(self.__dict__)


class Entry(Content):
    """An object with its own address in the API.

    Subclass it for an endpoint besides pages, images and documents::

        class Person(Entry):
            endpoint = "people"
            name = fields.String(required=True)
            api_fields = ["name"]
            listing_default_fields = nested_default_fields = [*Entry.listing_default_fields, "name"]

    :cvar endpoint: the last part of the endpoint's address.
    :cvar listing_default_fields: the keys of items in lists without ``fields``.
    :cvar nested_default_fields: the keys of an object embedded in another one.
    :cvar detail_only_fields: keys that only detail views have.
    :cvar api_filters: additional query parameters of lists, :class:`APIFilter`.
    :cvar i18n_default_fields: keys that are shown without ``fields`` only if
        ``CMS_I18N_ENABLED`` is on.
    """

    endpoint: ClassVar[str]
    meta_fields: ClassVar[Sequence[str | APIField]] = (*Content.meta_fields, "detail_url")
    listing_default_fields: ClassVar[Sequence[str]] = ("id", "type", "detail_url")
    nested_default_fields: ClassVar[Sequence[str]] = ("id", "type", "detail_url")
    detail_only_fields: ClassVar[Sequence[str]] = ()
    api_filters: ClassVar[Sequence[APIFilter]] = ()
    i18n_default_fields: ClassVar[Sequence[str]] = ()


class Page(Entry):
    """The base of all page types (specification, 2.3)."""

    endpoint = "pages"
    meta_fields: ClassVar[Sequence[str | APIField]] = (
        *Entry.meta_fields,
        "html_url",
        "slug",
        "show_in_menus",
        "seo_title",
        "search_description",
        "first_published_at",
        "expires_at",
        "alias_of",
        "parent",
        "locale",
    )
    body_fields: ClassVar[Sequence[str | APIField]] = ("id", "title")
    built_in_search_fields: ClassVar[Sequence[str]] = ("title",)
    listing_default_fields: ClassVar[Sequence[str]] = (
        *Entry.listing_default_fields,
        "html_url",
        "slug",
        "first_published_at",
        "title",
    )
    nested_default_fields: ClassVar[Sequence[str]] = (*Entry.nested_default_fields, "title")
    detail_only_fields: ClassVar[Sequence[str]] = ("parent",)
    i18n_default_fields: ClassVar[Sequence[str]] = ("locale",)

    parent = Related("pages", shown=_SUMMARY, within_site=True)
    title = fields.String(required=True)
    slug = fields.String(required=True, validate=check_slug)
    live = fields.Boolean(load_default=True)
    first_published_at = fields.DateTime()
    show_in_menus = fields.Boolean()
    seo_title = fields.String()
    search_description = fields.String()
    go_live_at = fields.DateTime()
    expires_at = fields.DateTime()
    locale = fields.String(
        load_default=None,
        validate=validate.Length(
            1,
            LONGEST_NAME,
            error=f"must be the code of a language, as en, of at most {LONGEST_NAME} characters",
        ),
    )
    translation_key = fields.String(load_default=None)
    alias_of = Related("pages", shown=_SUMMARY)
    restriction = restriction_field()


class Media(Entry):
    """What images and documents have in common."""

    meta_fields: ClassVar[Sequence[str | APIField]] = (*Entry.meta_fields, "tags", "download_url")
    body_fields: ClassVar[Sequence[str | APIField]] = ("id", "title")
    built_in_search_fields: ClassVar[Sequence[str]] = ("title", "tags")
    listing_default_fields: ClassVar[Sequence[str]] = (
        *Entry.listing_default_fields,
        "tags",
        "download_url",
        "title",
    )
    nested_default_fields: ClassVar[Sequence[str]] = (
        *Entry.nested_default_fields,
        "download_url",
        "title",
    )

    title = fields.String(required=True)
    file = fields.String()
    tags = Tags()
    collection = fields.Integer()


class Image(Media):
    """The base of the site's image type (specification, 2.4)."""

    endpoint = "images"
    body_fields: ClassVar[Sequence[str | APIField]] = (
        *Media.body_fields,
        "width",
        "height",
        "renditions",
    )

    width = fields.Integer()
    height = fields.Integer()
    description = fields.String()
    focal_point_x = fields.Integer(validate=_FROM_ZERO)
    focal_point_y = fields.Integer(validate=_FROM_ZERO)
    focal_point_width = fields.Integer(validate=_FROM_ZERO)
    focal_point_height = fields.Integer(validate=_FROM_ZERO)


class Document(Media):
    """The base of the site's document type (specification, 2.5)."""

    endpoint = "documents"


def _site_name(site: str) -> str:
    try:
        hostname, port = read_host(site) if site else ("", None)
    except ValueError:
        wanted = "must be the host name of a site, as 'example.org', or 'example.org:8000'"
        raise ValidationError(wanted) from None
    return hostname if port is None else f"{hostname}:{port}"


def _site_path(values: Mapping[str, Any]) -> str:
    """What a redirect is found by: its site and its path in their normal form."""
    if values["redirect_page"] is None and not values["redirect_link"]:
        raise ValueError("must have a redirect_page or a redirect_link")
    path: str = values["site_name"] + normal_path(values["old_path"])
    return path


class Redirect(Entry):
    """A former address, and what is at its place now.

    A site that wants redirects adds the class to its types.
    """

    app_label = "wagtailredirects"
    endpoint = "redirects"
    body_fields: ClassVar[Sequence[str | APIField]] = ("id", "old_path", "location", "is_permanent")
    listing_default_fields: ClassVar[Sequence[str]] = (
        *Entry.listing_default_fields,
        "old_path",
        "location",
    )
    nested_default_fields: ClassVar[Sequence[str]] = listing_default_fields

    old_path = fields.String(required=True, validate=_check_old_path)
    site = fields.String(validate=_site_name)
    is_permanent = fields.Boolean()
    redirect_page = Related("pages")
    redirect_link = fields.String()
    site_name = Derived(lambda values: _site_name(values["site"]))
    site_path = Derived(_site_path)
