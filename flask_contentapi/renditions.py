"""Renditions: images in the sizes and formats that a site names, and no others.

The address of a rendition never leads to another picture: it has a digest of the spec, the name of
the file and the focal point.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import blake2b
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from string import Formatter
from threading import get_ident
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import quote

from werkzeug.security import safe_join

from flask_contentapi.errors import ConfigurationError
from flask_contentapi.logs import log
from flask_contentapi.specs import FocalPoint, Spec, read_spec

try:
    import fcntl
except ImportError:  # Windows; there two processes may make the same file, each a whole one
    fcntl = None  # type: ignore[assignment]

#: How many pixels an image may have, and a rendition. Each takes four bytes several times.
MAX_PIXELS = 80_000_000
#: How many bytes a drawing may have, which takes many times that in memory.
MAX_DRAWING = 4 << 20
#: The formats that are read, in Pillow's words; to read others it may run other programs.
_READ = ("JPEG", "PNG", "GIF", "WEBP", "AVIF", "BMP", "TIFF", "ICO", "HEIF")
#: The types of files by the ending of their names.
MIME_TYPES = {
    "avif": "image/avif",
    "gif": "image/gif",
    "jpg": "image/jpeg",
    "png": "image/png",
    "svg": "image/svg+xml",
    "webp": "image/webp",
}
#: What the template of an address can contain.
PLACEHOLDERS = (
    *("id", "name", "hash", "file", "url", "format", "width", "height"),
    *("left", "top", "right", "bottom", "crop_width", "crop_height"),
)
#: The names of files that are renditions, or became none because a process was ended.
_FILE = re.compile(r"\.?[\w.~-]+\.[0-9a-f]{16}\.[a-z]{3,4}(\.[0-9-]+)?", re.ASCII)
#: After how many seconds such a file is certainly not being written any more.
PART_AGE = 3600
#: How many files are made at once by all processes, at most.
LOCKS = 8


class Picture(NamedTuple):
    """What is known of an image.

    :param id: its id.
    :param file: the name of its file, below the folder of all files; "" if it has none.
    :param size: its width and height in pixels; None if they are not known.
    :param focal_point: what matters in it, or None.
    :param alt: what it shows, in words.
    """

    id: int
    file: str
    size: tuple[int, int] | None
    focal_point: FocalPoint | None
    alt: str


class RenditionError(Exception):
    """A rendition cannot be made.

    :param message: a sentence for clients, which tells nothing of the server.
    :param is_missing: whether the file of the image is not there.
    """

    def __init__(self, message: str, *, is_missing: bool = False) -> None:
        super().__init__(message)
        self.is_missing = is_missing


def name_of(spec: str) -> str:
    """The name of the renditions with a spec that has no name of its own."""
    return spec.replace("|", "~")


def unknown_placeholders(template: str) -> list[str]:
    """The placeholders of a template that there are not.

    :raises ValueError: if it is no template.
    """
    named = [name for _, name, _, _ in Formatter().parse(template) if name is not None]
    return [name for name in named if name not in PLACEHOLDERS]


class Renditions:
    """The renditions of one instance.

    :param named: the specs that the site names, by name.
    :param declared: further specs, of the fields of types.
    :param template: the template of addresses on another server; None: they are made here.
    :ivar names: the names that the site has given.
    :ivar specs: all specs, by name.
    """

    def __init__(
        self, named: Mapping[str, str], declared: Iterable[str] = (), template: str | None = None
    ) -> None:
        self.names = [*named]
        others = {name_of(text): text for text in declared if text not in named.values()}
        self.specs = {name: read_spec(text) for name, text in {**named, **others}.items()}
        self._template = template
        self._media = self._folder = Path()

    @property
    def are_made_here(self) -> bool:
        """Whether this instance has renditions, and makes them."""
        return bool(self.specs) and self._template is None

    def open(self, prefix: str, root: Path, media: Path | None, folder: Path | None) -> None:
        """Says where files are.

        :param prefix: the prefix of the keys of settings, for messages.
        :param root: what relative paths start from.
        :param media: the folder of all files.
        :param folder: the folder for renditions; it is created.
        :raises ConfigurationError: if renditions could not be made.
        """
        if not self.are_made_here:
            return
        missing = [name for name in ("PIL", "willow") if find_spec(name) is None]
        if missing:
            raise ConfigurationError(
                "Renditions need Pillow and Willow, as 'pip install "
                '"flask_contentapi[renditions]"\' installs them, or '
                f"{prefix}RENDITION_URL, the address of a server that makes them."
            )
        if media is None or folder is None:
            key = "MEDIA_FOLDER" if media is None else "RENDITION_FOLDER"
            raise ConfigurationError(
                f"{prefix}{key} is not set, so that renditions cannot be made. Name the folder, or "
                f"set {prefix}RENDITION_URL."
            )
        self._media, self._folder = root / media, root / folder
        if not self._media.is_dir():
            raise ConfigurationError(f"{prefix}MEDIA_FOLDER is '{media}', which is no folder.")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            said = f"which cannot be created: {error.strerror}"
            raise ConfigurationError(f"{prefix}RENDITION_FOLDER is '{folder}', {said}.") from error

    def named(self, spec: str) -> str:
        """The name of the renditions with a declared spec."""
        return next((n for n in self.names if self.specs[n].text == spec), name_of(spec))

    def file_name(self, picture: Picture, name: str) -> str:
        """The last part of an address, and the name of the file."""
        spec = self.specs[name]
        return f"{name}.{_digest(spec, picture)}.{_ending(spec.format_for(picture.file))}"

    def describe(
        self, picture: Picture, name: str, address: str, url: str | None
    ) -> dict[str, Any] | None:
        """A rendition as answers show it; None if the image has no file that it is made from.

        :param picture: the image.
        :param name: the name of the rendition.
        :param address: the address of the image's renditions here, with a slash at the end.
        :param url: the address of the image's file; None if it has none, or the file is not here.
        """
        spec = self.specs[name]
        made = spec.transform(picture.size, picture.focal_point) if picture.size else None
        if url is None or (made is None and self._template is not None):
            return None
        width, height = made.size if made is not None else (None, None)
        where = address + self.file_name(picture, name)
        if self._template is not None and made is not None:
            left, top, right, bottom = made.box
            parts = [picture.id, name, _digest(spec, picture), quote(picture.file.lstrip("/"))]
            parts += [quote(url, safe=""), spec.format_for(picture.file), width, height]
            parts += [left, top, right, bottom, right - left, bottom - top]
            where = self._template.format(**dict(zip(PLACEHOLDERS, parts, strict=True)))
        return {"url": where, "width": width, "height": height, "alt": picture.alt}

    # Files.

    def file(self, endpoint: str, picture: Picture, name: str) -> Path:
        """The file of a rendition, which is made if it is not there yet.

        :param endpoint: the endpoint of the image.
        :raises RenditionError: if it cannot be made.
        """
        made = self.path(endpoint, picture, name)
        path = safe_join(str(self._media), picture.file.lstrip("/"))
        original = Path(path) if path is not None else self._folder / "nothing"
        if not _is_current(made, original):
            if not _is_file(original):
                raise RenditionError("The file of the image is missing.", is_missing=True)
            try:
                with self._locked(made.name):
                    if not _is_current(made, original):
                        self._make(original, picture, self.specs[name], made)
            except OSError as error:
                log.error("%s cannot be written: %s", made, error)
                raise RenditionError("The rendition cannot be written.") from error
        return made

    def remove(self, valid: Iterable[Path]) -> Iterator[Path]:
        """Removes all renditions but some; returns those removed."""
        kept, long_ago = {*valid}, time.time() - PART_AGE
        for path in self._folder.glob("*/*/*"):
            is_written = path.name.startswith(".") and path.stat().st_mtime > long_ago
            if _FILE.fullmatch(path.name) and path not in kept and not is_written:
                path.unlink(missing_ok=True)
                yield path
                with suppress(OSError):  # others are in it
                    path.parent.rmdir()

    def path(self, endpoint: str, picture: Picture, name: str) -> Path:
        """Where the file of a rendition is, or would be."""
        return self._folder / endpoint / str(picture.id) / self.file_name(picture, name)

    @contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        """Lets no other process make the same file meanwhile."""
        number = int(blake2b(name.encode(), digest_size=1).hexdigest(), 16) % LOCKS
        with (self._folder / f".lock-{number}").open("ab") as lock:
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _make(self, original: Path, picture: Picture, spec: Spec, made: Path) -> None:
        moment = original.stat().st_mtime_ns
        content = _rendered(original, picture, spec)
        made.parent.mkdir(parents=True, exist_ok=True)
        part = made.with_name(f".{made.name}.{os.getpid()}-{get_ident()}")
        try:
            with part.open("wb") as file:
                file.write(content)
                file.flush()
                # Otherwise the name can outlive a loss of power without the content.
                os.fsync(file.fileno())
            os.utime(part, ns=(moment, moment))
            os.replace(part, made)
        finally:
            part.unlink(missing_ok=True)


def _digest(spec: Spec, picture: Picture) -> str:
    point = "" if picture.focal_point is None else "-".join(map(str, picture.focal_point))
    shaping = "\0".join((spec.text, picture.file, point))
    return blake2b(shaping.encode(), digest_size=8).hexdigest()


def _ending(format: str) -> str:
    return "jpg" if format == "jpeg" else format


def _is_file(path: Path) -> bool:
    """Whether there is a file that can be read; none can have too long a name, say."""
    with suppress(OSError):
        return path.is_file()
    return False


def _is_current(made: Path, original: Path) -> bool:
    """Whether a file is there, and not older than what it is made from."""
    try:
        moment = made.stat().st_mtime_ns
    except OSError:
        return False
    with suppress(OSError):
        return moment >= original.stat().st_mtime_ns
    return True


def _rendered(original: Path, picture: Picture, spec: Spec) -> bytes:
    """The content of the file of a rendition.

    :raises RenditionError: if it cannot be made.
    """
    what, format = f"The image {picture.id}", spec.format_for(picture.file)
    make = _drawn if format == "svg" else _painted
    try:
        with original.open("rb") as file:
            return make(file, spec, picture)
    except RenditionError:
        raise
    except Exception as error:
        # What is wrong with a file may end in any error.
        log.warning("%s: %s cannot be converted: %r", what, original, error)
        raise RenditionError(f"The file of image {picture.id} cannot be converted.") from error


def _check_size(what: str, size: tuple[float, float]) -> None:
    if size[0] * size[1] > MAX_PIXELS:
        raise RenditionError(f"{what} would have more than {MAX_PIXELS:,} pixels.")


def _sized(image: Any, spec: Spec, picture: Picture) -> Any:
    """An image of Willow, cut out and scaled."""
    size = image.get_size()
    if picture.size not in (None, size) and not isinstance(size[0], float):
        log.warning(
            "The image %s has %s x %s pixels, not %s x %s.", picture.id, *size, *picture.size
        )
    transform = spec.transform(size, picture.focal_point)
    _check_size(f"The rendition of image {picture.id}", transform.size)
    return image.crop(transform.box).resize(transform.size)


def _painted(file: BinaryIO, spec: Spec, picture: Picture) -> bytes:
    """The rendition of a picture of pixels."""
    from PIL import Image, ImageOps
    from willow.plugins.pillow import PillowImage  # type: ignore[import-untyped]

    Image.init()
    try:
        opened = Image.open(file, formats=[name for name in _READ if name in Image.OPEN])
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        _check_size(f"The image {picture.id}", (math.inf, 1))
        raise
    _check_size(f"The image {picture.id}", opened.size)
    image = ImageOps.exif_transpose(opened)
    if image.mode.startswith("I"):  # 16 bits for each pixel
        image = image.point(lambda value: value / 256).convert("L")
    image = image.convert("RGBA") if image.mode in ("LA", "PA") else image
    # A rendition does not tell where and when a picture was taken.
    kept = ("icc_profile", "transparency")
    image.info = {name: value for name, value in image.info.items() if name in kept}
    made = _sized(PillowImage(image), spec, picture)
    format, quality = spec.format_for(picture.file), dict(spec.quality)
    if format == "gif" and image.mode == "CMYK":
        made = PillowImage(made.image.convert("RGB"))
    background = spec.background or ((255, 255, 255) if format == "jpeg" else None)
    if background is not None:
        made = made.set_background_color_rgb(background)
    options: dict[str, Any] = {"lossless": True} if spec.is_lossless else {}
    options |= {"optimize": True} if format in ("jpeg", "png") else {}
    options |= {"progressive": True} if format == "jpeg" else {}
    if format in quality and not spec.is_lossless:
        options["quality"] = quality[format]
    output = BytesIO()
    getattr(made, f"save_as_{format}")(output, **options)
    return output.getvalue()


def _drawn(file: BinaryIO, spec: Spec, picture: Picture) -> bytes:
    """The rendition of a drawing, which is one again."""
    from willow.image import SvgImageFile  # type: ignore[import-untyped]
    from willow.svg import SvgImage, SvgWrapper  # type: ignore[import-untyped]

    if os.fstat(file.fileno()).st_size > MAX_DRAWING:
        raise RenditionError(f"The drawing {picture.id} has more than {MAX_DRAWING:,} bytes.")
    drawing = SvgWrapper(SvgImageFile(file).dom)
    if drawing.root.tag.rpartition("}")[2] != "svg":
        raise ValueError("it is no SVG")
    output = BytesIO()
    _sized(SvgImage(drawing), spec, picture).image.write(output)
    return output.getvalue()
