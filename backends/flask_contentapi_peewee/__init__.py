"""The database backend of flask_contentapi: SQLite, PostgreSQL and MariaDB through peewee."""

from flask_contentapi_peewee.backend import (
    MariaDBBackend,
    PeeweeBackend,
    PostgreSQLBackend,
    SQLiteBackend,
)
from flask_contentapi_peewee.mapping import ChildRows, MappedModel, TagRows

__all__ = [
    "ChildRows",
    "MappedModel",
    "MariaDBBackend",
    "PeeweeBackend",
    "PostgreSQLBackend",
    "SQLiteBackend",
    "TagRows",
]
