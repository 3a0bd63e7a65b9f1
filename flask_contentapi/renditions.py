"""Renditions: images in the sizes and formats that a site names, and no others.

A size follows from that of the image by arithmetic, without opening a file. The words of specs, as
``fill-400x300|format-webp``, and every rounding, are those of the system that the API comes from (7
of what is beyond the contract). The address of a rendition never leads to another picture: it has a
digest of the spec, the name of the file and the focal point.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from hashlib import blake2b
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path, PurePosixPath
from string import Formatter
from threading import get_ident
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import quote

from werkzeug.security import safe_join

from flask_contentapi.errors import ConfigurationError, suggest
from flask_contentapi.logs import log

#: Left, top, right and bottom of a part of an image, in pixels.
Box = tuple[float, float, float, float]
#: The format that is written, by the ending of the name of the file. Browsers do not show all
#: formats, and of what moves one picture is left; anything else becomes a JPEG.
_WRITTEN = {"png": "png", "webp": "webp", "avif": "avif", "gif": "png", "bmp": "png", "ico": "png"}
#: The formats that a spec can name.
_FORMATS = ("jpeg", "png", "gif", "webp", "avif")
#: The quality of formats that lose something, from 0 to 100.
_QUALITY = {"jpeg": 76, "webp": 80, "avif": 61}


class FocalPoint(NamedTuple):
    """What matters in an image: the centre and the size of a part, in pixels."""

    x: int
    y: int
    width: int
    height: int

    @property
    def box(self) -> Box:
        """The part."""
        across, down = self.width / 2, self.height / 2
        return self.x - across, self.y - down, self.x + across, self.y + down


@dataclass(frozen=True)
class Transform:
    """How a rendition is made from an image: a part of it is cut out and scaled.

    :param size: the width and height of the rendition.
    :param scale: how many pixels of the rendition one of the image becomes, across and down.
    :param offset: where the corner of the image is, as seen from that of the part.
    """

    size: tuple[float, float]
    scale: tuple[float, float] = (1.0, 1.0)
    offset: tuple[float, float] = (0.0, 0.0)

    def resized(self, width: float, height: float) -> Transform:
        """The same part in another size."""
        size = max(width, 1), max(height, 1)
        across = self.scale[0] * size[0] / self.size[0]
        down = self.scale[1] * size[1] / self.size[1]
        return replace(self, size=size, scale=(across, down))

    def cropped(self, box: Box) -> Transform:
        """A part of the rendition; whole pixels."""
        left, top, right, bottom = _whole(box)
        offset = self.offset[0] - left / self.scale[0], self.offset[1] - top / self.scale[1]
        return replace(self, size=(right - left, bottom - top), offset=offset)

    @property
    def box(self) -> tuple[int, int, int, int]:
        """The part of the image that is cut out; by rounding it can be a pixel larger."""
        (x, y), (across, down), (width, height) = self.offset, self.scale, self.size
        return _whole((-x, -y, -x + width / across, -y + height / down))


def _whole(box: Box) -> tuple[int, int, int, int]:
    return math.floor(box[0]), math.floor(box[1]), math.ceil(box[2]), math.ceil(box[3])


#: One step of a spec.
Step = Callable[[Transform, FocalPoint | None], Transform]


@dataclass(frozen=True)
class Spec:
    """A spec that has been read.

    :param text: as it is written.
    :param steps: what changes the size, in order.
    :param format: the format that it names, or "".
    :param is_lossless: whether nothing of the picture may be lost.
    :param quality: the quality by format, from 0 to 100.
    :param background: what is behind transparent parts: red, green and blue; None: nothing.
    """

    text: str
    steps: tuple[Step, ...] = ()
    format: str = ""
    is_lossless: bool = False
    quality: Mapping[str, int] = field(default_factory=lambda: _QUALITY)
    background: tuple[int, int, int] | None = None

    def transform(
        self, size: tuple[float, float], focal_point: FocalPoint | None = None
    ) -> Transform:
        """How a rendition is made from an image of a size."""
        transform = Transform(size)
        for step in self.steps:
            transform = step(transform, focal_point)
        return transform

    def format_for(self, file: str) -> str:
        """The format of the rendition of a file. Drawings stay drawings."""
        ending = PurePosixPath(file.lower()).suffix[1:]
        if ending == "svg":
            return ending
        return self.format or _WRITTEN.get(ending, "jpeg")


@lru_cache(1024)
def read_spec(text: str) -> Spec:
    """Reads a spec.

    :raises ValueError: saying which part of it is wrong, and what would be right.
    """
    spec = Spec(text)
    for part in text.split("|"):
        name = part.partition("-")[0]
        if name not in _OPERATIONS:
            known = ", ".join(_OPERATIONS)
            hint = suggest(name, _OPERATIONS) or f" There are {known}."
            raise ValueError(f"{text!r} has the operation {name!r}, which does not exist.{hint}")
        pattern, change, example = _OPERATIONS[name]
        values = re.fullmatch(name + pattern, part)
        if values is None:
            raise ValueError(f"{part!r} must be as {example}.")
        spec = change(spec, *values.groups())
    return spec


def _with_step(spec: Spec, step: Step) -> Spec:
    return replace(spec, steps=(*spec.steps, step))


def _bounded(spec: Spec, *bounds: float, is_max: bool = True) -> Spec:
    """``max``, ``width`` and ``height``, within a size, and ``min``, covering it."""

    def step(transform: Transform, _: FocalPoint | None) -> Transform:
        width, height = transform.size
        fits = width <= bounds[0], height <= bounds[1]
        if all(fits) if is_max else any(fits):
            return transform
        across, down = bounds[0] / width, bounds[1] / height
        if across < down if is_max else across > down:
            return transform.resized(bounds[0], int(height * across))
        return transform.resized(int(width * down), bounds[1])

    return _with_step(spec, step)


def _scale(spec: Spec, percent: str) -> Spec:
    scale = float(percent) / 100

    def step(transform: Transform, _: FocalPoint | None) -> Transform:
        width, height = transform.size
        return transform.resized(int(width * scale), int(height * scale))

    return _with_step(spec, step)


def _fill(spec: Spec, across: str, down: str, closeness: str | None) -> Spec:
    """``fill``: exactly the shape, cut out around the focal point."""
    width, height = int(across), int(down)
    near = min(int(closeness or 0) / 100, 1)

    def step(transform: Transform, focal_point: FocalPoint | None) -> Transform:
        transform = transform.cropped(_crop_box(transform.size, (width, height), near, focal_point))
        return transform.resized(width, height) if width < transform.size[0] else transform

    return _with_step(spec, step)


def _crop_box(
    size: tuple[float, float], wanted: tuple[int, int], near: float, focal: FocalPoint | None
) -> Box:
    """The part of an image that has the shape of a wanted size.

    :param near: how close to the focal point it is cut, from 0 to 1.
    """
    shape = wanted[0] / wanted[1]
    across = min(size[0], size[1] * shape)
    down = across / shape
    x, y = size[0] / 2, size[1] / 2
    if focal is not None:
        x, y = focal.x, focal.y
        least = max(focal.width, focal.height * shape)
        spare = across - least, down - least / shape
        if spare[0] > 0 and spare[1] > 0:
            # No closer than where the part would have to be enlarged.
            most = (wanted[0] - least) / spare[0], (wanted[1] - least / shape) / spare[1]
            near = min(near, max(1 - most[0], 1 - most[1]))
            if near >= 0:
                across += (least - across) * near
                down += (least / shape - down) * near
    left = x - (x / size[0] - 0.5) * across
    top = y - (y / size[1] - 0.5) * down
    sides = []
    for n, (middle, length) in enumerate(((left, across), (top, down))):
        low, high = middle - length / 2, middle + length / 2
        if focal is not None:
            # All of what matters is in it,
            first, last = focal.box[n::2]
            low, high = (first, high - (low - first)) if low > first else (low, high)
            low, high = (low + (last - high), last) if high < last else (low, high)
        # but nothing outside the image.
        low, high = (0, high - low) if low < 0 else (low, high)
        sides.append((low - (high - size[n]), size[n]) if high > size[n] else (low, high))
    return sides[0][0], sides[1][0], sides[0][1], sides[1][1]


def _quality(format: str, spec: Spec, quality: str) -> Spec:
    return replace(spec, quality={**spec.quality, format: int(quality)})


def _background(spec: Spec, colour: str) -> Spec:
    digits = colour if len(colour) == 6 else "".join(digit * 2 for digit in colour)
    red, green, blue = bytes.fromhex(digits)
    return replace(spec, background=(red, green, blue))


_LENGTH = "0*([1-9][0-9]{0,5})"
_SIZE = f"-{_LENGTH}x{_LENGTH}"
#: The operations: what follows the name, what it does to a spec, and an example.
_OPERATIONS: Mapping[str, tuple[str, Callable[..., Spec], str]] = {
    "original": ("", lambda spec: spec, "original"),
    "max": (_SIZE, lambda spec, *size: _bounded(spec, *map(int, size)), "max-400x300"),
    "min": (
        _SIZE,
        lambda spec, *size: _bounded(spec, *map(int, size), is_max=False),
        "min-400x300",
    ),
    "width": (f"-{_LENGTH}", lambda spec, n: _bounded(spec, int(n), math.inf), "width-400"),
    "height": (f"-{_LENGTH}", lambda spec, n: _bounded(spec, math.inf, int(n)), "height-300"),
    "scale": (r"-(?=.*[1-9])([0-9]{1,6}(?:\.[0-9]{1,6})?)", _scale, "scale-50"),
    "fill": (
        rf"{_SIZE}(?:-c([0-9]{{1,6}}))?",
        _fill,
        "fill-400x300, or fill-400x300-c50 for closer to the focal point",
    ),
    "format": (
        rf"-({'|'.join(_FORMATS)})((?<=webp|avif)-lossless)?",
        lambda spec, name, option: replace(spec, format=name, is_lossless=bool(option)),
        f"format-{', format-'.join(_FORMATS)} or format-webp-lossless",
    ),
    **{
        f"{format}quality": (
            "-([0-9]{1,2}|100)",
            partial(_quality, format),
            f"{format}quality-{usual}, from 0 to 100",
        )
        for format, usual in _QUALITY.items()
    },
    "bgcolor": ("-([0-9A-Fa-f]{3}|[0-9A-Fa-f]{6})", _background, "bgcolor-fff or bgcolor-ffffff"),
}


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
    :param missing: the file of the image if that is why; "" otherwise.
    """

    def __init__(self, message: str, *, missing: str = "") -> None:
        super().__init__(message)
        self.missing = missing


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
            raise ConfigurationError(
                f"{prefix}MEDIA_FOLDER is '{media}', but {self._media} is no folder."
            )
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
        format = spec.format_for(picture.file)
        return f"{name}.{_digest(spec, picture)}.{'jpg' if format == 'jpeg' else format}"

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
            # It is none either if the name is too long, say.
            if not os.path.isfile(original):
                missing = path or picture.file
                raise RenditionError("The file of the image is missing.", missing=missing)
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


def _is_current(made: Path, original: Path) -> bool:
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
    make = _drawn if spec.format_for(picture.file) == "svg" else _painted
    try:
        with original.open("rb") as file:
            return make(file, spec, picture)
    except RenditionError:
        raise
    except Exception as error:
        # What is wrong with a file may end in any error.
        log.warning("The image %s: %s cannot be converted: %r", picture.id, original, error)
        raise RenditionError(f"The file of image {picture.id} cannot be converted.") from error


def _check_size(what: str, size: tuple[float, float]) -> None:
    if size[0] * size[1] > MAX_PIXELS:
        raise RenditionError(f"{what} would have more than {MAX_PIXELS:,} pixels.")


def _sized(image: Any, spec: Spec, picture: Picture) -> Any:
    size = image.get_size()
    if picture.size not in (None, size) and not isinstance(size[0], float):
        log.warning(
            "The image %s has %s x %s pixels, not %s x %s.", picture.id, *size, *picture.size
        )
    transform = spec.transform(size, picture.focal_point)
    _check_size(f"The rendition of image {picture.id}", transform.size)
    return image.crop(transform.box).resize(transform.size)


def _painted(file: BinaryIO, spec: Spec, picture: Picture) -> bytes:
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
    format = spec.format_for(picture.file)
    if format == "gif" and image.mode == "CMYK":
        made = PillowImage(made.image.convert("RGB"))
    background = spec.background or ((255, 255, 255) if format == "jpeg" else None)
    if background is not None:
        made = made.set_background_color_rgb(background)
    options: dict[str, Any] = {"lossless": True} if spec.is_lossless else {}
    options |= {"optimize": True} if format in ("jpeg", "png") else {}
    options |= {"progressive": True} if format == "jpeg" else {}
    if format in spec.quality and not spec.is_lossless:
        options["quality"] = spec.quality[format]
    output = BytesIO()
    getattr(made, f"save_as_{format}")(output, **options)
    return output.getvalue()


def _drawn(file: BinaryIO, spec: Spec, picture: Picture) -> bytes:
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
