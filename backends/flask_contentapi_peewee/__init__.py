"""The database backend of flask_contentapi: SQLite, PostgreSQL and MariaDB through peewee."""

from flask_contentapi_peewee.backend import (
    MariaDBBackend,
    PeeweeBackend,
    PostgreSQLBackend,
    SQLiteBackend,
)

__all__ = [
    "MariaDBBackend",
    "PeeweeBackend",
    "PostgreSQLBackend",
    "SQLiteBackend",
]
