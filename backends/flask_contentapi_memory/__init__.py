"""The in-memory backend of flask_contentapi."""

from flask_contentapi_memory.backend import MemoryBackend

__all__ = ["MemoryBackend"]
