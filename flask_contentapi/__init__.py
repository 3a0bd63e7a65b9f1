"""Headless content delivery for Flask: pages, images and documents as a read-only JSON API."""

from flask_contentapi.addresses import PageURLs
from flask_contentapi.backend import Backend, Reader
from flask_contentapi.errors import (
    BackendUnavailable,
    ConfigurationError,
    ContentAPIError,
    ContentError,
    DeclarationError,
    Problem,
)
from flask_contentapi.extension import ContentAPI
from flask_contentapi.fields import Blocks, Children, Related, Rendition, RichText, Tags
from flask_contentapi.middleware import KeptAnswers
from flask_contentapi.signals import content_changed
from flask_contentapi.types import (
    APIField,
    APIFilter,
    ChildObject,
    Document,
    Entry,
    Image,
    Page,
    Redirect,
)

__all__ = [
    "APIField",
    "APIFilter",
    "Backend",
    "BackendUnavailable",
    "Blocks",
    "ChildObject",
    "Children",
    "ConfigurationError",
    "ContentAPI",
    "ContentAPIError",
    "ContentError",
    "DeclarationError",
    "Document",
    "Entry",
    "Image",
    "KeptAnswers",
    "Page",
    "PageURLs",
    "Problem",
    "Reader",
    "Redirect",
    "Related",
    "Rendition",
    "RichText",
    "Tags",
    "content_changed",
]

__version__ = "0.1.0"
