"""Specs: how a picture becomes another one, as ``fill-400x300|format-webp``.

The words, and every rounding, are those of the system that the API comes from (7 of what is beyond
the contract). A size follows from that of the image by arithmetic, without opening a file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import PurePosixPath
from typing import NamedTuple

from flask_contentapi.errors import suggest

#: Left, top, right and bottom of a part of an image, in pixels.
Box = tuple[float, float, float, float]
#: The format that is written, by the ending of the name of the file. Browsers do not show all
#: formats, and of what moves one picture is left; anything else becomes a JPEG.
_WRITTEN = {
    "jpg": "jpeg",
    "jpeg": "jpeg",
    "png": "png",
    "webp": "webp",
    "avif": "avif",
    "svg": "svg",
    "gif": "png",
    "bmp": "png",
    "ico": "png",
}
#: The formats that a spec can name.
_FORMATS = ("jpeg", "png", "gif", "webp", "avif")
_LOSSLESS = ("webp", "avif")
_SIZE = re.compile(r"0*([1-9][0-9]{0,5})x0*([1-9][0-9]{0,5})")
_PIXELS = re.compile(r"0*([1-9][0-9]{0,5})")
_PERCENT = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?")
_CLOSENESS = re.compile(r"c([0-9]{1,6})")
_QUALITY = re.compile(r"[0-9]{1,2}|100")
_COLOUR = re.compile(r"[0-9A-Fa-f]{3}|[0-9A-Fa-f]{6}")


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
    """The pixels that a box touches."""
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
    quality: tuple[tuple[str, int], ...] = (("jpeg", 76), ("webp", 80), ("avif", 61))
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
        name, *values = part.split("-")
        if name not in _OPERATIONS:
            known = ", ".join(_OPERATIONS)
            hint = suggest(name, _OPERATIONS) or f" There are {known}."
            raise ValueError(f"{text!r} has the operation {name!r}, which does not exist.{hint}")
        read, example = _OPERATIONS[name]
        try:
            spec = read(spec, name, *values)
        except (TypeError, ValueError):
            raise ValueError(f"{text!r} has {part!r}; it must be as {example}.") from None
    return spec


def _match(pattern: re.Pattern[str], value: str) -> re.Match[str]:
    found = pattern.fullmatch(value)
    if found is None:
        raise ValueError
    return found


def _with_step(spec: Spec, step: Step) -> Spec:
    return replace(spec, steps=(*spec.steps, step))


def _original(spec: Spec, name: str) -> Spec:
    return spec


def _bounded(spec: Spec, name: str, size: str) -> Spec:
    """``max``, within a size, and ``min``, covering it."""
    wanted = _match(_SIZE, size)
    return _with_bounds(spec, (int(wanted[1]), int(wanted[2])), name == "max")


def _side(spec: Spec, name: str, length: str) -> Spec:
    """``width`` and ``height``: at most so long."""
    wanted = int(_match(_PIXELS, length)[1])
    return _with_bounds(spec, (wanted, math.inf) if name == "width" else (math.inf, wanted), True)


def _with_bounds(spec: Spec, bounds: tuple[float, float], is_max: bool) -> Spec:
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


def _scale(spec: Spec, name: str, percent: str) -> Spec:
    scale = float(_match(_PERCENT, percent)[0]) / 100
    if not scale:
        raise ValueError

    def step(transform: Transform, _: FocalPoint | None) -> Transform:
        width, height = transform.size
        return transform.resized(int(width * scale), int(height * scale))

    return _with_step(spec, step)


def _fill(spec: Spec, name: str, size: str, closeness: str = "c0") -> Spec:
    """``fill``: exactly the shape, cut out around the focal point."""
    wanted = _match(_SIZE, size)
    width, height = int(wanted[1]), int(wanted[2])
    near = min(int(_match(_CLOSENESS, closeness)[1]) / 100, 1)

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
        x, y = (focal.box[0] + focal.box[2]) / 2, (focal.box[1] + focal.box[3]) / 2
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
    for low, high, n in (
        (left - across / 2, left + across / 2, 0),
        (top - down / 2, top + down / 2, 1),
    ):
        if focal is not None:
            # All of what matters is in it,
            first, last = focal.box[n::2]
            low, high = (first, high - (low - first)) if low > first else (low, high)
            low, high = (low + (last - high), last) if high < last else (low, high)
        # but nothing outside the image.
        low, high = (0, high - low) if low < 0 else (low, high)
        sides.append((low - (high - size[n]), size[n]) if high > size[n] else (low, high))
    return sides[0][0], sides[1][0], sides[0][1], sides[1][1]


def _format(spec: Spec, name: str, format: str, option: str = "") -> Spec:
    if format not in _FORMATS or option not in ("", *["lossless"] * (format in _LOSSLESS)):
        raise ValueError
    return replace(spec, format=format, is_lossless=bool(option))


def _quality(spec: Spec, name: str, quality: str) -> Spec:
    given = name.removesuffix("quality"), int(_match(_QUALITY, quality)[0])
    return replace(spec, quality=(*dict([*spec.quality, given]).items(),))


def _background(spec: Spec, name: str, colour: str) -> Spec:
    digits = _match(_COLOUR, colour)[0]
    if len(digits) == 3:
        digits = "".join(digit * 2 for digit in digits)
    red, green, blue = bytes.fromhex(digits)
    return replace(spec, background=(red, green, blue))


#: The operations, each with an example.
_OPERATIONS: Mapping[str, tuple[Callable[..., Spec], str]] = {
    "original": (_original, "original"),
    "max": (_bounded, "max-400x300"),
    "min": (_bounded, "min-400x300"),
    "width": (_side, "width-400"),
    "height": (_side, "height-300"),
    "scale": (_scale, "scale-50"),
    "fill": (_fill, "fill-400x300, or fill-400x300-c50 for closer to the focal point"),
    "format": (_format, f"format-{', format-'.join(_FORMATS)} or format-webp-lossless"),
    "jpegquality": (_quality, "jpegquality-76, from 0 to 100"),
    "webpquality": (_quality, "webpquality-80, from 0 to 100"),
    "avifquality": (_quality, "avifquality-61, from 0 to 100"),
    "bgcolor": (_background, "bgcolor-fff or bgcolor-ffffff"),
}
