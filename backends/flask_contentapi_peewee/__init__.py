"""The database backend of flask_contentapi: SQLite, PostgreSQL and MariaDB through peewee."""

from flask_contentapi_peewee.backend import (
    MariaDBBackend,
    PeeweeBackend,
    PostgreSQLBackend,
    SQLiteBackend,
)
from flask_contentapi_peewee.followed import Followed

__all__ = [
    "Followed",
    "MariaDBBackend",
    "PeeweeBackend",
    "PostgreSQLBackend",
    "SQLiteBackend",
]
