"""The backend of flask_contentapi that serves a folder of JSON files."""

from flask_contentapi_jsonfiles.backend import JSONFilesBackend

__all__ = ["JSONFilesBackend"]
