"""The settings of one instance, read from the application's configuration and checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from flask import Config

from flask_contentapi.errors import ConfigurationError, suggest
from flask_contentapi.kinds import INT64
from flask_contentapi.markup import FORMATS, missing_packages
from flask_contentapi.renditions import PLACEHOLDERS, read_spec, unknown_placeholders
from flask_contentapi.search import STOP_WORDS, words
from flask_contentapi.sites import Host

_DEFAULT_LIMIT = 20
#: The site-wide setting, for instances without their own.
_I18N = "CMS_I18N_ENABLED"
_SITE_WIDE = "I18N_ENABLED"
#: The similarity at which a key without our prefix is almost certainly meant for it.
_SURELY = 0.92
#: The names of renditions, which are in their addresses.
_RENDITION = re.compile(r"[A-Za-z0-9_-]{1,100}")
_PATH = re.compile(r"/|(/[A-Za-z0-9._~!$&'()*+,;=:@-]+)+/?")


def _url_prefix(value: Any) -> str:
    if not isinstance(value, str) or not _PATH.fullmatch(value):
        raise ValueError(
            "a path of ASCII without spaces that starts with a slash, such as '/api/v2'"
        )
    return value.rstrip("/")


def _base_url(value: Any) -> str | None:
    if value is None:
        return None
    address = _read_address(value)
    if address is None:
        raise ValueError(
            "None or an address of scheme, host and path, such as 'https://example.org'"
        )
    return address.rstrip("/")


def _read_address(value: Any) -> str | None:
    """An address of only scheme, host and path, with its host in its normal form; None if a value
    is none."""
    if not isinstance(value, str) or re.search(r"[\s?#@]", value):
        return None
    try:
        parts = urlsplit(value)
    except ValueError:
        return None
    host = Host.of(parts.scheme, parts.netloc)
    is_written = parts.scheme in ("http", "https") and host.name and parts.path.isascii()
    return host.address + parts.path if is_written else None


def _media_url(value: Any) -> str:
    is_path = isinstance(value, str) and re.fullmatch(r"/(?!/)[^\s?#]*", value)
    address = value if is_path else _read_address(value)
    if address is None:
        raise ValueError(
            "a path from the root, such as '/media/', or an address, such as 'https://cdn.example/'"
        )
    return f"{address.rstrip('/')}/"


def _checked(wanted: str, fits: Callable[[Any], bool]) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if not fits(value):
            raise ValueError(wanted)
        return value

    return check


def _is_whole(value: Any, least: int = 0) -> bool:
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return is_integer and least <= value <= INT64[-1]


_boolean = _checked("True or False", lambda value: isinstance(value, bool))
_boolean_or_none = _checked(
    "True, False, or None for debug mode alone",
    lambda value: value is None or isinstance(value, bool),
)
_maximum = _checked(
    "a whole number from 1 on, or None for no maximum",
    lambda value: value is None or _is_whole(value, 1),
)
_bytes = _checked("a whole number of bytes from 0 on", _is_whole)
_seconds = _checked("a whole number of seconds from 0 on", _is_whole)
_seconds_or_none = _checked(
    "None or a whole number of seconds from 0 on", lambda value: value is None or _is_whole(value)
)
_header = _checked(
    "None, 'Cache-Tag' or 'Surrogate-Key'",
    lambda value: value in (None, "Cache-Tag", "Surrogate-Key"),
)


def _rich_text_format(value: Any) -> str:
    if value not in [*FORMATS]:
        raise ValueError(f"one of {', '.join(FORMATS)}")
    if missing := missing_packages(value):
        raise ValueError(
            f"db_html, unless {' and '.join(missing)} {'are' if missing[1:] else 'is'} installed, "
            "as 'pip install \"flask_contentapi[richtext]\"' does"
        )
    return str(value)


def _renditions(value: Any) -> dict[str, str]:
    wanted = "a dict of names and specs, such as {'thumb': 'fill-200x200'}"
    if not isinstance(value, Mapping):
        raise ValueError(wanted)
    for name, spec in value.items():
        if not isinstance(name, str) or not _RENDITION.fullmatch(name):
            letters = "a name has letters of ASCII, digits, - and _"
            raise ValueError(f"{wanted}, but {name!r} cannot be in an address: {letters}")
        if not isinstance(spec, str):
            raise ValueError(f"{wanted}, but {name!r} is {spec!r}")
        try:
            read_spec(spec)
        except ValueError as error:
            raise ValueError(f"{wanted}, but in {name!r}, {error}".rstrip(".")) from None
        if spec != name and _is_spec(name):
            raise ValueError(f"{wanted}, but {name!r} is the name of another spec")
    return dict(value)


def _is_spec(text: str) -> bool:
    with suppress(ValueError):
        return bool(read_spec(text))
    return False


def _rendition_url(value: Any) -> str | None:
    if value is None:
        return None
    example = "'https://img.example.org/crop:{crop_width}:{crop_height}/plain/{url}'"
    wanted = f"None or a template of addresses, such as {example}"
    if not isinstance(value, str):
        raise ValueError(wanted)
    try:
        unknown = unknown_placeholders(value)
    except ValueError:
        raise ValueError(wanted) from None
    if unknown or not re.match(r"https?://|/", value):
        known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
        raise ValueError(f"{wanted}, with {known}")
    return value


def _folder(value: Any) -> Path | None:
    if value is not None and not (isinstance(value, str | Path) and str(value)):
        raise ValueError("None or the path of a folder")
    return None if value is None else Path(value)


def _release(value: Any) -> str:
    # Environment variables that look like numbers become numbers, and commit hashes can.
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise ValueError("a text")
    return value


def _stop_words(value: Any) -> frozenset[str]:
    is_list = isinstance(value, Iterable) and not isinstance(value, str | Mapping)
    given: list[Any] = [*value] if is_list else [None]
    if not all(isinstance(word, str) for word in given):
        raise ValueError("a list of words")
    return frozenset(word for text in given for word in words(text))


def _setting(default: Any, check: Callable[[Any], Any], written: str = "", key: str = "") -> Any:
    """An attribute of :class:`Settings`.

    :param check: returns the attribute for what is configured; raises a ValueError that says what
        it must be.
    :param written: what is written in environment variables, if that is not evident.
    :param key: its key without the prefix, if that is not its name.
    """
    metadata = {"key": key, "default": default, "check": check, "written": written}
    return field(default_factory=lambda: default, metadata=metadata)


@dataclass(frozen=True)
class Settings:
    """Checked settings (contract, Settings).

    :param url_prefix: the path that all addresses of the API start with, without a trailing
        slash.
    :param base_url: what addresses in answers start with, without a trailing slash; None: the
        host that the request is sent to.
    :param media_url: the path or address that file names are appended to, with a trailing slash.
    :param limit_max: the greatest limit of a list, in objects; None: no maximum.
    :param embed_max: how many objects an answer may embed; None: any number.
    :param search_enabled: whether lists can be searched.
    :param stream_enabled: whether lists can be sent as a whole, one object a line.
    :param sites_enabled: whether the sites and the languages have endpoints, too.
    :param explorer: whether there is the page for people; None: in debug mode.
    :param i18n: whether pages have languages that clients can filter by.
    :param stop_words: words that searches ignore, as :func:`flask_contentapi.search.words`
        returns them.
    :param rich_text_format: the format of rich text if the client names none.
    :param renditions: the specs of renditions, by name.
    :param rendition_url: the template of the addresses of renditions that another server makes.
    :param media_folder: the folder of all files.
    :param rendition_folder: the folder of renditions.
    :param cache_size: the size of the cache of answers, in bytes; 0: no cache.
    :param cache_max_age: ``max-age`` of responses, in seconds; None: caches must revalidate.
    :param cache_stale: ``stale-while-revalidate`` of responses, in seconds.
    :param cache_tag_header: the header with the cache tags of a response; None: no header.
    :param release: the release of the site, which ETags depend on.
    """

    url_prefix: str = _setting("/api/v2", _url_prefix)
    base_url: str | None = _setting(None, _base_url, "null for None")
    media_url: str = _setting("/media/", _media_url)
    limit_max: int | None = _setting(20, _maximum, "100 or null")
    embed_max: int | None = _setting(10_000, _maximum, "10000 or null")
    search_enabled: bool = _setting(True, _boolean, "true or false")
    stream_enabled: bool = _setting(False, _boolean, "true or false")
    sites_enabled: bool = _setting(False, _boolean, "true or false")
    explorer: bool | None = _setting(None, _boolean_or_none, "true, false or null")
    i18n: bool = _setting(False, _boolean, "true or false", key=_SITE_WIDE)
    stop_words: frozenset[str] = _setting(STOP_WORDS, _stop_words, '["der", "die"]')
    rich_text_format: str = _setting("db_html", _rich_text_format, "html")
    renditions: Mapping[str, str] = _setting({}, _renditions, '{"thumb": "fill-200x200"}')
    rendition_url: str | None = _setting(None, _rendition_url, "null for None")
    rendition_folder: Path | None = _setting(None, _folder, "null for None")  # noqa: RUF009
    media_folder: Path | None = _setting(None, _folder, "null for None")  # noqa: RUF009
    cache_size: int = _setting(16 << 20, _bytes, "16777216")
    cache_max_age: int | None = _setting(None, _seconds_or_none, "60 or null")
    cache_stale: int = _setting(0, _seconds, "60", key="CACHE_STALE_WHILE_REVALIDATE")
    cache_tag_header: str | None = _setting(None, _header, "null for None")
    release: str = _setting("", _release, "it in double quotes, as '\"1e5\"'")

    @property
    def default_limit(self) -> int:
        """The limit of a list if the client gives none."""
        return _DEFAULT_LIMIT if self.limit_max is None else min(_DEFAULT_LIMIT, self.limit_max)

    @property
    def makes_renditions(self) -> bool:
        """Whether renditions are made here."""
        return self.media_folder is not None and self.rendition_url is None

    @property
    def shaping(self) -> dict[str, Any]:
        """The settings that answers depend on, without those about caching and folders."""
        others = ("cache_size", "cache_max_age", "cache_stale", "media_folder", "rendition_folder")
        return {name: value for name, value in vars(self).items() if name not in others}

    @classmethod
    def from_config(cls, config: Mapping[str, Any], prefix: str) -> Settings:
        """The settings of an application.

        :raises ConfigurationError: naming each wrong key and what it may be.
        """
        values, problems = dict[str, Any](), []
        for name, setting in _SETTINGS.items():
            _, default, check, written = setting.metadata.values()
            key = _key(config, prefix, name)
            value = config.get(key, default)
            try:
                values[setting.name] = check(value)
            except ValueError as error:
                # Flask reads environment variables as JSON; what is not JSON becomes a text.
                is_text = isinstance(value, str) or isinstance(default, str) or "true" in written
                hint = f"; in environment variables write {written}" if written and is_text else ""
                message = f"{key} is {value!r}; it must be {error}{hint}"
                problems.append(message if message.endswith("?") else f"{message}.")
        if problems:
            raise ConfigurationError("\n".join(problems))
        return cls(**values)


#: All settings, by their keys without the prefix.
_SETTINGS = {one.metadata["key"] or one.name.upper(): one for one in fields(Settings)}
#: The same keys, and that of the setting that the extension reads.
_NAMES = (*_SETTINGS, "BACKEND")


def no_backend(prefix: str) -> str:
    """The message if no backend is given or configured."""
    return f"{prefix}BACKEND is not set, and no backend is given in Python; so there is no content."


def doubtful_settings(
    config: Mapping[str, Any], prefix: str, others: Iterable[str] = (), *, all_known: bool = True
) -> Iterator[str]:
    """A message about each key that looks like a setting of an instance but is not.

    Also one if debug mode is on because of a text, as ``no`` in an environment variable, and one
    about each setting in the environment that the application has not taken from there.

    :param others: the prefixes of the other instances; one of them may start with this one.
    :param all_known: whether there are no other instances; if not, keys that may be settings of
        a later instance are ignored.
    """
    debug = config.get("DEBUG")
    if isinstance(debug, str) and debug:
        yield (
            f"DEBUG is {debug!r}, a text, and so debug mode is on; it must be True or False; in "
            "environment variables write true or false."
        )
    environment = Config("")
    environment.from_prefixed_env()
    for key in (_I18N, *(prefix + name for name in _NAMES)):
        if key in environment and config.get(key, ...) != environment[key]:
            yield (
                f"FLASK_{key} is set, but {key} is something else: call "
                "app.config.from_prefixed_env() before ContentAPI."
            )
    longer = tuple(other for other in others if len(other) > len(prefix))
    known = {_I18N, *(start + name for start in (prefix, *others) for name in _NAMES)}
    # Likely abbreviations, too short to be found by similarity.
    shortened = f"{prefix}I18N", "CMS_I18N"
    endings = () if all_known else tuple(f"_{name}" for name in _NAMES)
    for key in config if prefix else ():
        if key in known or key.endswith(endings):
            continue
        means_i18n = key in shortened or suggest(key, [_I18N], likeness=_SURELY)
        if means_i18n and (key == shortened[0] or not key.startswith((prefix, *others))):
            yield f"There is no setting {key}. Did you mean {_I18N}?"
        elif key.startswith(prefix) and not key.startswith(longer):
            hint = re.sub(r"'(\w+)'", rf"{prefix}\1", suggest(key.removeprefix(prefix), _NAMES))
            yield f"There is no setting {key}.{hint}"


def _key(config: Mapping[str, Any], prefix: str, name: str) -> str:
    """The key of a setting; for one setting the site-wide key, unless the instance has its own."""
    own = prefix + name
    return _I18N if name == _SITE_WIDE and own not in config else own
