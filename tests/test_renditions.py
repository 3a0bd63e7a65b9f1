"""Images in the sizes and formats that a site names, and no others."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from marshmallow import fields
from PIL import Image as Pixels
from PIL import ImageCms
from werkzeug.test import TestResponse

from flask_contentapi import (
    APIField,
    Blocks,
    ChildObject,
    Children,
    ConfigurationError,
    DeclarationError,
    Image,
    Page,
    Related,
    Rendition,
)
from flask_contentapi.renditions import MAX_DRAWING
from tests.api import API
from tests.conftest import MakeAPI
from tests.databases import noted, on_databases
from tests.samples import image, page, private, site
from tests.stores import on_all, on_memory
from tests.temporary import new_folder

pytestmark = [on_memory, pytest.mark.slow]

THUMB = {"thumb": "fill-20x20"}
NARROW: dict[str, Any] = {"focal_point_width": 4, "focal_point_height": 4}
#: The orientation of EXIF for pictures that are turned by a quarter, and the tags that name it and
#: the maker of a camera.
TURNED, ORIENTATION, MAKER = 6, 0x0112, 0x010F


class Slide(ChildObject):
    picture = Related("images")
    small = Rendition("picture", "max-10x10")
    api_fields = ["small"]


class Story(Page):
    photo = Related("images")
    photos = Children(Slide)
    small = Rendition("photo", "fill-20x20")
    api_fields = [
        "photo",
        "small",
        "photos",
        APIField("large", Rendition("photo", "max-100x100|format-webp")),
    ]


class Photo(Image):
    app_label = "media"


TYPES = [Story, Photo]
#: What makes an API with the folders for renditions.
MakeGallery = Callable[..., "Gallery"]


def content_of(file: str = "photo.jpg", size: tuple[int, int] = (80, 40), **values: Any) -> Any:
    """A site with one story about the image 1, and what is shown of it."""
    shown = {"file": file, "width": size[0], "height": size[1], **values}
    story = page(2, 1, type=Story.type_label(), photo=1, photos=[{"id": 1, "picture": 1}])
    return {
        "sites": [site(1, is_default=True)],
        "collections": [{"id": 1, "name": "Vault", "restriction": private()}],
        "images": [image(1, type="media.Photo", title="An owl", **shown)],
        "pages": [page(1, type=Story.type_label()), story],
    }


class Gallery:
    """The API of a site with one image, whose file is in a folder.

    :param api: the API.
    :param media: the folder.
    :param made: the folder for renditions.
    """

    def __init__(self, api: API, media: Path, made: Path) -> None:
        self.api, self.media, self.made = api, media, made

    def save(self, pixels: Pixels.Image, name: str = "photo.jpg", **options: Any) -> None:
        pixels.save(self.media / name, **options)

    def shown(self, name: str = "thumb") -> Any:
        """A rendition as the API shows it."""
        return self.api.json("images/1/?fields=_,renditions")["renditions"][name]

    def get(self, name: str = "thumb", **options: Any) -> TestResponse:
        """The answer at the address of a rendition."""
        path = urlsplit(self.shown(name)["url"]).path
        return self.api.get(path.removeprefix(f"{self.api.prefix}/"), buffered=True, **options)

    def pixels(self, name: str = "thumb") -> Pixels.Image:
        """The picture at the address of a rendition."""
        response = self.get(name)
        assert response.status_code == 200, response.text
        opened = Pixels.open(BytesIO(response.data))
        opened.load()
        return opened

    def grey(self, at: tuple[int, int] = (5, 5), name: str = "thumb") -> int:
        """How bright a place of a rendition is, from 0 to 255."""
        found: Any = self.pixels(name).convert("L").getpixel(at)
        return int(found)

    def files(self) -> set[str]:
        """The names of all files of renditions."""
        return {path.name for path in self.made.glob("*/*/*")}

    def command(self, *arguments: str) -> Any:
        """The result of the command that makes renditions."""
        runner = self.api.app.test_cli_runner()
        return runner.invoke(args=["contentapi", "renditions", *arguments])


@pytest.fixture
def make_gallery(make_api: MakeAPI) -> MakeGallery:
    def make(
        renditions: Mapping[str, str] = THUMB, content: Any = None, /, **settings: Any
    ) -> Gallery:
        media, made = new_folder(), new_folder()
        options = {key: settings.pop(key) for key in ("can_view", "types") if key in settings}
        config = {
            "CMSAPI_RENDITIONS": renditions,
            "CMSAPI_MEDIA_FOLDER": str(media),
            "CMSAPI_RENDITION_FOLDER": str(made),
            **settings,
        }
        api = make_api(content or content_of(), **{"types": TYPES, **options}, config=config)
        gallery = Gallery(api, media, made)
        gallery.save(Pixels.new("RGB", (80, 40), "red"))
        return gallery

    return make


@pytest.fixture
def gallery(make_gallery: MakeGallery) -> Gallery:
    return make_gallery()


# What answers show.


def test_image_shows_named_renditions(gallery: Gallery) -> None:
    shown = gallery.shown()
    start = "http://localhost/api/v2/images/1/renditions/thumb."
    assert shown["url"].startswith(start)
    assert shown["url"].endswith(".jpg")
    assert {**shown, "url": ""} == {"url": "", "width": 20, "height": 20, "alt": "An owl"}


@pytest.mark.parametrize("query", ["", "?fields=*", "?fields=*,-title"])
@pytest.mark.parametrize("view", ["images/", "images/1/"])
def test_renditions_are_shown_only_if_named(gallery: Gallery, view: str, query: str) -> None:
    assert "renditions" not in gallery.api.get(f"{view}{query}").text


def test_renditions_are_shown_besides_all_fields(gallery: Gallery) -> None:
    (item,) = gallery.api.items("images/?fields=*,renditions")
    assert [*item][-3:] == ["width", "height", "renditions"]


def test_embedded_image_shows_renditions(gallery: Gallery) -> None:
    story = gallery.api.json("pages/2/?fields=_,photo(_,renditions)")
    assert story["photo"]["renditions"]["thumb"] == gallery.shown()


def test_renditions_are_no_filter(gallery: Gallery) -> None:
    assert "renditions" in gallery.api.refusal("images/?renditions=thumb")


def test_field_shows_one_rendition(gallery: Gallery) -> None:
    small = gallery.api.json("pages/2/?fields=_,small")["small"]
    url = gallery.shown()["url"]
    assert small == {"url": url, "full_url": url, "width": 20, "height": 20, "alt": "An owl"}
    assert [*small] == ["url", "full_url", "width", "height", "alt"]


def test_child_object_shows_a_rendition(gallery: Gallery) -> None:
    (slide,) = gallery.api.json("pages/2/?fields=_,photos")["photos"]
    assert (slide["small"]["width"], slide["small"]["height"]) == (10, 5)


def test_rendition_without_image_is_null(gallery: Gallery) -> None:
    assert gallery.api.json("pages/1/?fields=_,small,large") == {"small": None, "large": None}


def test_rendition_of_hidden_image_is_null(make_gallery: MakeGallery) -> None:
    api = make_gallery(THUMB, content_of(collection=1)).api
    story = api.json("pages/2/?fields=_,small,photos(_,small)")
    assert story == {"small": None, "photos": [{"small": None}]}


def test_description_is_the_alternative_text(make_gallery: MakeGallery) -> None:
    gallery = make_gallery(THUMB, content_of(description="It looks at you"))
    assert gallery.shown()["alt"] == "It looks at you"


def test_image_without_file_has_no_renditions(make_gallery: MakeGallery) -> None:
    gallery = make_gallery(THUMB, content_of(""))
    assert gallery.shown() is None
    assert gallery.api.json("pages/2/?fields=_,small") == {"small": None}


def test_image_elsewhere_has_no_renditions(make_gallery: MakeGallery) -> None:
    assert make_gallery(THUMB, content_of("https://other.test/a.jpg")).shown() is None


def test_without_known_size_there_is_none(make_gallery: MakeGallery) -> None:
    gallery = make_gallery(THUMB, content_of(width=None, height=0))
    assert (gallery.shown()["width"], gallery.shown()["height"]) == (None, None)
    assert gallery.pixels().size == (20, 20)


def test_impossible_size_is_unknown(make_gallery: MakeGallery) -> None:
    gallery = make_gallery({"large": "scale-200"}, content_of(size=(2**63 - 1, 40)))
    assert (gallery.shown("large")["width"], gallery.shown("large")["height"]) == (None, None)
    assert gallery.pixels("large").size == (160, 80)


def test_own_field_hides_renditions(make_gallery: MakeGallery) -> None:
    class Photo(Image):
        app_label = "media"
        renditions = fields.String()
        api_fields = ["renditions"]

    api = make_gallery(THUMB, content_of(renditions="two"), types=[Story, Photo]).api
    assert api.json("images/1/?fields=*")["renditions"] == "two"


@on_all
def test_all_backends_show_the_same(make_gallery: MakeGallery) -> None:
    point = {"focal_point_x": 60, "focal_point_y": 20} | NARROW
    content = content_of(description="Eyes", **point)
    api = make_gallery({"near": "fill-10x10-c100"}, content).api
    near = {"url": "near.ac57c6aea4e32938.jpg", "width": 10, "height": 10, "alt": "Eyes"}
    shown = api.json("images/1/?fields=_,renditions")["renditions"]["near"]
    assert {**shown, "url": shown["url"].rpartition("/")[2]} == near
    (record,) = api.dump()["images"]
    assert {name: record[name] for name in point} == point
    assert record["description"] == "Eyes"


@on_all
def test_all_backends_show_those_of_relations(make_gallery: MakeGallery) -> None:
    api = make_gallery(THUMB, content_of()).api
    seen = api.json("pages/2/")
    for shown, size in ((seen["small"], (20, 20)), (seen["photos"][0]["small"], (10, 5))):
        assert (shown["width"], shown["height"], shown["alt"]) == (*size, "An owl")
    api.load(content_of(collection=1))
    hidden = api.json("pages/2/")
    assert (hidden["small"], hidden["large"], hidden["photos"][0]["small"]) == (None,) * 3


@on_databases
def test_relations_with_renditions_take_a_statement_each(make_gallery: MakeGallery) -> None:
    taken = []
    for count in (2, 100):
        numbers = range(2, 2 + count)
        pictures = {"images": [image(n, width=9, height=9, file="a.png") for n in numbers]}
        stories = [
            page(n, 1, type=Story.type_label(), photo=n, photos=[{"id": n, "picture": n}])
            for n in numbers
        ]
        content = content_of()
        api = make_gallery(
            THUMB,
            {**content, **pictures, "pages": [content["pages"][0], *stories]},
            CMSAPI_LIMIT_MAX=None,
            CMSAPI_CACHE_SIZE=0,
        ).api
        path = f"pages/?type={Story.type_label()}&child_of=1&fields=*&limit=100"
        api.get(path)
        with noted(api) as statements:
            assert api.json(path)["items"][-1]["large"]["width"] == 9
        taken.append(len(statements))
    # The pages and their number, what photo leads to, and what pictures lead to.
    assert taken == [4, 4]


@pytest.mark.parametrize(
    "changed", [{"focal_point_x": 7}, {"file": "other.jpg"}], ids=["focal point", "file"]
)
def test_address_changes_with_the_picture(make_gallery: MakeGallery, changed: Any) -> None:
    point = {"focal_point_x": 4, "focal_point_y": 4} | NARROW
    before = make_gallery(THUMB, content_of(**point))
    after = make_gallery(THUMB, content_of(**point))
    assert before.shown() == after.shown()
    changed = {**content_of(**point)["images"][0], **changed}
    after.api.load({**content_of(), "images": [changed]})
    assert before.shown()["url"] != after.shown()["url"]


def test_address_changes_with_the_spec(gallery: Gallery, make_gallery: MakeGallery) -> None:
    assert gallery.shown()["url"] != make_gallery({"thumb": "fill-20x21"}).shown()["url"]


def test_renditions_of_a_list_cost_nothing(make_gallery: MakeGallery) -> None:
    gallery = make_gallery()
    (gallery.media / "photo.jpg").unlink()
    gallery.api.items("images/?fields=renditions")
    assert gallery.files() == set()


# Files.


def test_rendition_is_sent(gallery: Gallery) -> None:
    assert gallery.pixels().size == (20, 20)
    assert gallery.get().mimetype == "image/jpeg"


def test_caches_keep_it_for_a_year(gallery: Gallery) -> None:
    response = gallery.get()
    assert response.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    known = gallery.get(headers={"If-None-Match": response.headers["ETag"]})
    assert (known.status_code, known.data) == (304, b"")


def test_head_has_no_body(gallery: Gallery) -> None:
    response = gallery.get(method="HEAD")
    assert (response.status_code, response.data) == (200, b"")


def test_rendition_has_the_tag_of_its_image(make_gallery: MakeGallery) -> None:
    gallery = make_gallery(CMSAPI_CACHE_TAG_HEADER="Cache-Tag")
    assert gallery.get().headers["Cache-Tag"] == "content, images-1"


def test_rendition_of_hidden_image_is_not_found(make_gallery: MakeGallery) -> None:
    gallery = make_gallery()
    path = urlsplit(gallery.shown()["url"]).path.removeprefix("/api/v2/")
    assert gallery.get().status_code == 200
    gallery.api.load(content_of(collection=1))
    assert "may not be seen" in gallery.api.refusal(path, 404)


def test_token_shows_a_hidden_image(make_gallery: MakeGallery) -> None:
    gallery = make_gallery(THUMB, content_of(collection=1), SECRET_KEY="owl")  # noqa: S106 - of a test
    (state,) = gallery.api.app.extensions["contentapi"].values()
    with gallery.api.app.test_request_context():
        tokens = [state.previews.write(("images", n), 60, None) for n in (1, 2)]
    path = "images/1/renditions/thumb.former.jpg?preview="
    moved = gallery.api.get(path + tokens[0])
    assert moved.headers["Cache-Control"] == "no-store"
    shown = gallery.api.follow(moved.headers["Location"])
    assert (shown.status_code, shown.mimetype) == (200, "image/jpeg")
    assert shown.headers["Cache-Control"] == "private, no-store"
    shown.close()
    assert gallery.api.status(path + tokens[1]) == 404
    assert gallery.api.status(path.partition("?")[0]) == 404


def test_what_some_may_see_is_private(make_gallery: MakeGallery) -> None:
    gallery = make_gallery(THUMB, content_of(collection=1), can_view=lambda rule: True)
    response = gallery.get()
    assert response.headers["Cache-Control"].startswith("private, ")
    assert response.headers["Vary"] == "Cookie, Authorization"


def test_former_address_leads_to_the_present_one(gallery: Gallery) -> None:
    response = gallery.api.get("images/1/renditions/thumb.0123456789abcdef.png")
    assert (response.status_code, response.headers["Cache-Control"]) == (302, "no-store")
    assert response.headers["Location"] == gallery.shown()["url"]


@pytest.mark.parametrize("file", ["fill-9x9.0123456789abcdef.jpg", "thumbs", ".jpg", "..", "a.b.c"])
def test_nothing_else_can_be_asked_for(gallery: Gallery, file: str) -> None:
    message = gallery.api.refusal(f"images/1/renditions/{file}", 404)
    assert "there are thumb, max-100x100~format-webp, max-10x10." in message


def test_rendition_of_nothing_is_not_found(gallery: Gallery) -> None:
    assert gallery.api.status("images/7/renditions/thumb.0123456789abcdef.jpg") == 404
    assert gallery.api.status("documents/1/renditions/thumb.0123456789abcdef.jpg") == 404


@pytest.mark.parametrize("format", ["jpeg", "png", "webp", "avif", "gif"])
@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "P", "1", "LA", "CMYK"])
def test_every_mode_is_written(make_gallery: MakeGallery, format: str, mode: str) -> None:
    source = "jpg" if mode in ("RGB", "CMYK") else "png"
    gallery = make_gallery({format: f"max-20x20|format-{format}"}, content_of(f"photo.{source}"))
    gallery.save(Pixels.new("RGB", (80, 40), "red").convert(mode), f"photo.{source}")
    made = gallery.pixels(format)
    assert (made.format, made.size) == (format.upper(), (20, 10))


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("a.JPG", "JPEG"),
        ("a.jpeg", "JPEG"),
        ("a.png", "PNG"),
        ("a.webp", "WEBP"),
        ("a.avif", "AVIF"),
        ("a.gif", "PNG"),
        ("a.bmp", "PNG"),
        ("a.tif", "JPEG"),
        ("a", "JPEG"),
    ],
)
def test_ending_decides_the_format(make_gallery: MakeGallery, name: str, wanted: str) -> None:
    gallery = make_gallery(THUMB, content_of(name))
    gallery.save(Pixels.new("RGB", (80, 40)), name, format=None if "." in name else "PNG")
    assert gallery.pixels().format == wanted


def test_quality_decides_the_size(make_gallery: MakeGallery) -> None:
    gallery = make_gallery({"fine": "original|jpegquality-95", "rough": "original|jpegquality-5"})
    gallery.save(Pixels.effect_noise((80, 40), 90))
    assert len(gallery.get("fine").data) > 2 * len(gallery.get("rough").data)


def test_lossless_loses_nothing(make_gallery: MakeGallery) -> None:
    noise = Pixels.effect_noise((80, 40), 90).convert("RGB")
    gallery = make_gallery({"exact": "original|format-webp-lossless"}, content_of("a.png"))
    gallery.save(noise, "a.png")
    assert gallery.pixels("exact").convert("RGB").tobytes() == noise.tobytes()


def test_turned_picture_is_upright(make_gallery: MakeGallery) -> None:
    exif = Pixels.Exif()
    exif[ORIENTATION] = TURNED
    gallery = make_gallery({"all": "original"}, content_of(size=(40, 80)))
    upright = Pixels.new("RGB", (40, 80), "white")
    upright.paste("black", (0, 0, 40, 40))
    gallery.save(upright.transpose(Pixels.Transpose.ROTATE_90), exif=exif)
    assert gallery.pixels("all").size == (40, 80)
    assert gallery.grey((20, 10), "all") < 50
    assert gallery.grey((20, 70), "all") > 200


def test_camera_and_place_are_left_out(make_gallery: MakeGallery) -> None:
    exif = Pixels.Exif()
    exif[MAKER] = "Owl & Sons"
    gallery = make_gallery({f: f"original|format-{f}" for f in ("jpeg", "png", "webp", "avif")})
    gallery.save(Pixels.new("RGB", (80, 40)), exif=exif, comment="Owl & Sons", xmp=b"Owl & Sons")
    assert b"Owl & Sons" in (gallery.media / "photo.jpg").read_bytes()
    for name in ("jpeg", "png", "webp", "avif"):
        assert b"Owl & Sons" not in gallery.get(name).data


@pytest.mark.parametrize("format", ["jpeg", "png", "webp", "avif"])
def test_colour_profile_is_kept(make_gallery: MakeGallery, format: str) -> None:
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    gallery = make_gallery({"thumb": f"fill-20x20|format-{format}"})
    gallery.save(Pixels.new("RGB", (80, 40)), icc_profile=profile)
    assert gallery.pixels().info["icc_profile"] == profile


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ("fill-20x20", (0, 0, 0, 0)),
        ("fill-20x20|format-webp", (0, 0, 0, 0)),
        ("fill-20x20|bgcolor-00f", (0, 0, 255, 255)),
        ("fill-20x20|format-jpeg", (254, 254, 254, 255)),
        ("fill-20x20|format-jpeg|bgcolor-000000", (0, 0, 0, 255)),
    ],
)
def test_transparent_parts(make_gallery: MakeGallery, spec: str, wanted: Any) -> None:
    gallery = make_gallery({"thumb": spec}, content_of("a.png"))
    gallery.save(Pixels.new("RGBA", (80, 40), (255, 0, 0, 0)), "a.png")
    found: Any = gallery.pixels().convert("RGBA").getpixel((5, 5))
    assert found[3] == wanted[3]
    assert found[3] == 0 or all(abs(a - b) < 3 for a, b in zip(found, wanted, strict=True))


def test_picture_that_moves_becomes_its_first_one(make_gallery: MakeGallery) -> None:
    gallery = make_gallery(THUMB, content_of("a.gif"))
    red, blue = (Pixels.new("RGB", (80, 40), colour) for colour in ("red", "blue"))
    gallery.save(red, "a.gif", save_all=True, append_images=[blue])
    made = gallery.pixels()
    assert (made.format, made.convert("RGB").getpixel((5, 5))) == ("PNG", (255, 0, 0))


def test_sixteen_bits_become_eight(make_gallery: MakeGallery) -> None:
    gallery = make_gallery({"thumb": "fill-20x20|format-jpeg"}, content_of("a.png"))
    gallery.save(Pixels.new("I;16", (80, 40), 32768), "a.png")
    assert abs(gallery.grey() - 128) < 3


def test_focal_point_is_in_the_picture(make_gallery: MakeGallery) -> None:
    point = {"focal_point_x": 75, "focal_point_y": 20} | NARROW
    gallery = make_gallery(THUMB, content_of(**point))
    pixels = Pixels.new("RGB", (80, 40), "white")
    pixels.paste("black", (60, 0, 80, 40))
    gallery.save(pixels)
    assert gallery.grey((17, 10)) < 50


DRAWING = '<svg xmlns="http://www.w3.org/2000/svg" width="80" height="40"><circle r="9"/></svg>'


def test_drawing_stays_a_drawing(make_gallery: MakeGallery) -> None:
    gallery = make_gallery({"thumb": "fill-20x20|format-webp"}, content_of("a.svg"))
    (gallery.media / "a.svg").write_text(DRAWING)
    response = gallery.get()
    assert response.mimetype == "image/svg+xml"
    assert 'width="20" height="20" viewBox="20.0 0.0 40.0 40.0"' in response.text
    # Its scripts do not run.
    assert "sandbox" in response.headers["Content-Security-Policy"]


def test_name_of_file_can_have_any_sign(make_gallery: MakeGallery) -> None:
    gallery = make_gallery(THUMB, content_of("/Ein Kauz %41?.jpg"))
    gallery.save(Pixels.new("RGB", (80, 40)), "Ein Kauz %41?.jpg")
    assert gallery.pixels().size == (20, 20)


def test_file_that_was_replaced_is_made_again(gallery: Gallery) -> None:
    assert gallery.pixels().convert("RGB").getpixel((5, 5)) == (254, 0, 0)
    gallery.save(Pixels.new("RGB", (80, 40), "blue"))
    future = (gallery.media / "photo.jpg").stat().st_mtime + 5
    os.utime(gallery.media / "photo.jpg", (future, future))
    assert gallery.pixels().convert("RGB").getpixel((5, 5)) == (0, 0, 254)


def test_rendition_outlives_its_original(gallery: Gallery) -> None:
    assert gallery.get().status_code == 200
    (gallery.media / "photo.jpg").unlink()
    assert gallery.get().status_code == 200


def test_wrong_size_in_the_record_is_logged(
    make_gallery: MakeGallery, caplog: pytest.LogCaptureFixture
) -> None:
    gallery = make_gallery({"all": "original"}, content_of(size=(40, 80)))
    assert gallery.pixels("all").size == (80, 40)
    assert "The image 1 has 80 x 40 pixels, not 40 x 80." in caplog.text


# Files that cannot be converted.


def _bomb() -> bytes:
    made = BytesIO()
    Pixels.new("1", (10_000, 9_000)).save(made, "PNG")
    return made.getvalue()


def _broken() -> bytes:
    made = BytesIO()
    Pixels.effect_noise((200, 200), 90).save(made, "JPEG")
    return made.getvalue()[:-9000]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jpg", b""),
        ("a.jpg", b"<!DOCTYPE html><html><body>I am no picture</body></html>"),
        ("a.jpg", DRAWING.encode()),
        ("a.jpg", _broken()),
        ("a.jpg", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n"),
        ("a.png", _bomb()),
        ("a.svg", b"\xff\xd8\xff\xe0 no drawing"),
        ("a.svg", b"<html xmlns='http://www.w3.org/1999/xhtml'><script/></html>"),
        ("a.svg", b'<!DOCTYPE x [<!ENTITY a "a">]><svg>&a;</svg>'),
        ("a.svg", DRAWING.encode() + b" " * MAX_DRAWING),
    ],
    ids="empty HTML lying broken EPS bomb noSVG XHTML entity huge".split(),
)
def test_what_is_no_picture_is_refused(
    make_gallery: MakeGallery, name: str, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    gallery = make_gallery(THUMB, content_of(name))
    (gallery.media / name).write_bytes(content)
    response = gallery.get()
    assert response.status_code == 500
    assert response.headers["Cache-Control"] == "no-store"
    message = response.get_json()["message"]
    assert "1" in message
    assert str(gallery.media) not in message
    assert gallery.files() == set()


def test_missing_file_is_not_found(gallery: Gallery) -> None:
    (gallery.media / "photo.jpg").unlink()
    response = gallery.get()
    assert response.status_code == 404
    assert response.get_json() == {"message": "The file of the image is missing."}


@pytest.mark.parametrize("name", ["../secret.jpg", "a/../../secret.jpg", "sub", "a" * 300])
def test_files_outside_the_folder_are_missing(make_gallery: MakeGallery, name: str) -> None:
    gallery = make_gallery(THUMB, content_of(name))
    (gallery.media / "sub").mkdir()
    gallery.save(Pixels.new("RGB", (80, 40)), "../secret.jpg")
    assert gallery.get().status_code == 404


def test_full_disk_leaves_nothing_behind(
    gallery: Gallery, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    response = gallery.get()
    assert response.status_code == 500
    assert response.get_json() == {"message": "The rendition cannot be written."}
    assert "No space left" in caplog.text
    assert gallery.files() == set()


# Several processes at once.


def test_content_is_there_before_the_name(
    gallery: Gallery, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[int] = []

    def sync(file: int) -> None:
        assert [name[0] for name in gallery.files()] == ["."]
        kept.append(os.fstat(file).st_size)

    monkeypatch.setattr(os, "fsync", sync)
    assert len(gallery.get().data) == kept[0]


def test_ten_threads_make_one(gallery: Gallery, monkeypatch: pytest.MonkeyPatch) -> None:
    from flask_contentapi import renditions

    made, make = [], renditions._rendered

    def noting(*given: Any) -> bytes:
        made.append(given)
        return make(*given)

    monkeypatch.setattr(renditions, "_rendered", noting)
    with ThreadPoolExecutor(10) as pool:
        answers = [*pool.map(lambda _: gallery.get().data, range(10))]
    assert len(made) == 1
    assert len({*answers}) == 1


#: Makes a rendition, and notes that it does.
_PROCESS = """
import sys
from pathlib import Path
from flask_contentapi import renditions as module

media, made, noted = map(Path, sys.argv[1:])
make = module._rendered

def noting(*given):
    with noted.open("a") as file:
        file.write("made ")
    return make(*given)

module._rendered = noting
renditions = module.Renditions({"thumb": "fill-20x20"})
renditions.open("", media, media, made)
picture = module.Picture(1, "photo.jpg", (80, 40), None, "")
print(renditions.file("images", picture, "thumb").stat().st_size)
"""


def test_ten_processes_make_one(gallery: Gallery) -> None:
    noted = gallery.media / "noted"
    command = [sys.executable, "-c", _PROCESS, *map(str, (gallery.media, gallery.made, noted))]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(10)]
    sizes = {process.communicate()[0] for process in started}
    assert noted.read_text() == "made "
    assert len(sizes) == 1
    assert int(sizes.pop()) > 0


# The command.


def test_command_makes_all(gallery: Gallery) -> None:
    assert gallery.command().output == "3 made.\n"
    assert len(gallery.files()) == 3
    assert gallery.command().output == "0 made.\n"
    made = gallery.shown()["url"].rpartition("/")[2]
    assert made in gallery.files()


def test_command_makes_those_of_hidden_images(make_gallery: MakeGallery) -> None:
    gallery = make_gallery(THUMB, content_of(collection=1))
    assert gallery.command().output == "3 made.\n"


def test_command_reports_what_cannot_be_made(gallery: Gallery) -> None:
    (gallery.media / "photo.jpg").unlink()
    result = gallery.command()
    where = f"It would be '{gallery.media / 'photo.jpg'}'."
    assert result.output == f"images 1: The file of the image is missing. {where}\n0 made.\n"
    assert result.exit_code == 1


def test_purge_removes_what_is_valid_no_longer(gallery: Gallery) -> None:
    gallery.command()
    gallery.api.load(content_of(description="new", focal_point_x=1))
    assert gallery.command("--purge").output == "0 removed.\n"
    point = {"focal_point_x": 4, "focal_point_y": 4} | NARROW
    gallery.api.load(content_of(**point))
    foreign = gallery.made / "images" / "1" / "README"
    foreign.write_text("keep")
    assert gallery.command("--purge").output == "3 removed.\n"
    assert gallery.files() == {"README"}
    gallery.command()
    assert gallery.command("--purge").output == "0 removed.\n"
    assert len(gallery.files()) == 4


def test_purge_leaves_what_is_being_written(gallery: Gallery) -> None:
    gallery.get()
    (name,) = gallery.files()
    for age, number in ((0, "1-1"), (7200, "2-2")):
        part = gallery.made / "images" / "1" / f".{name}.{number}"
        part.touch()
        os.utime(part, (part.stat().st_atime, part.stat().st_mtime - age))
    assert gallery.command("--purge").output == "1 removed.\n"
    assert gallery.files() == {name, f".{name}.1-1"}


def test_command_says_if_there_is_nothing_to_make(make_api: MakeAPI) -> None:
    runner = make_api({}, types=[Photo]).app.test_cli_runner()
    result = runner.invoke(args=["contentapi", "renditions"])
    assert result.exit_code == 1
    assert "CMSAPI_RENDITIONS" in result.output


# Other servers.


def test_another_server_can_make_them(make_gallery: MakeGallery) -> None:
    template = (
        "https://img.test/{crop_width}x{crop_height}+{left}+{top}/{width}x{height}/{url}.{format}"
    )
    gallery = make_gallery(THUMB, content_of("a b.png"), CMSAPI_RENDITION_URL=template)
    url = "http%3A%2F%2Flocalhost%2Fmedia%2Fa%2520b.png"
    assert gallery.shown()["url"] == f"https://img.test/40x40+20+0/20x20/{url}.png"
    assert gallery.api.status("images/1/renditions/thumb.0123456789abcdef.png") == 404


def test_another_server_can_make_those_of_others(make_gallery: MakeGallery) -> None:
    template = {"CMSAPI_RENDITION_URL": "https://img.test/{url}"}
    gallery = make_gallery(THUMB, content_of("https://other.test/a.jpg"), **template)
    assert gallery.shown()["url"] == "https://img.test/https%3A%2F%2Fother.test%2Fa.jpg"


def test_another_server_needs_the_size(make_gallery: MakeGallery) -> None:
    template = {"CMSAPI_RENDITION_URL": "https://img.test/{url}"}
    assert make_gallery(THUMB, content_of(width=None), **template).shown() is None


# Mistakes of the site.


@pytest.mark.parametrize(
    ("renditions", "said"),
    [
        ("fill-20x20", "it must be a dict of names and specs"),
        ({"thumb": 20}, "'thumb' is 20"),
        ({"a/b": "original"}, "'a/b' cannot be in an address"),
        ({"": "original"}, "'' cannot be in an address"),
        ({"thumb": "fil-20x20"}, "has the operation 'fil', which does not exist. Did you mean"),
        ({"thumb": ""}, "has the operation '', which does not exist. There are original, max"),
        ({"thumb": "fill-20"}, ", but in 'thumb', 'fill-20' must be as fill-400x300, or"),
        ({"thumb": "fill-20x20-50"}, "'fill-20x20-50' must be as fill-400x300"),
        ({"thumb": "fill-0x20"}, "must be as fill-400x300"),
        ({"thumb": "width--5"}, "must be as width-400"),
        ({"thumb": "scale-0"}, "must be as scale-50"),
        ({"thumb": "max-20x20|format-tiff"}, "in 'thumb', 'format-tiff' must be as format-jpeg"),
        ({"thumb": "format-jpeg-lossless"}, "must be as format-jpeg, format-png"),
        ({"thumb": "jpegquality-101"}, "must be as jpegquality-76, from 0 to 100"),
        ({"thumb": "bgcolor-ggg"}, "must be as bgcolor-fff"),
        ({"fill-20x20": "fill-30x30"}, "'fill-20x20' is the name of another spec"),
    ],
)
def test_wrong_specs(make_gallery: MakeGallery, renditions: Any, said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        make_gallery(renditions)
    assert "CMSAPI_RENDITIONS is" in str(caught.value)
    assert said in str(caught.value)
    assert "?." not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"CMSAPI_MEDIA_FOLDER": None}, "CMSAPI_MEDIA_FOLDER is not set"),
        (
            {"CMSAPI_MEDIA_FOLDER": "nowhere"},
            "CMSAPI_MEDIA_FOLDER is 'nowhere', but /",
        ),
        ({"CMSAPI_MEDIA_FOLDER": 3}, "CMSAPI_MEDIA_FOLDER is 3; it must be None or the path of a"),
        ({"CMSAPI_RENDITION_FOLDER": None}, "CMSAPI_RENDITION_FOLDER is not set"),
        ({"CMSAPI_RENDITION_FOLDER": "/dev/null/a"}, "cannot be created: Not a directory"),
        ({"CMSAPI_RENDITION_URL": "{url"}, "it must be None or a template of addresses"),
        ({"CMSAPI_RENDITION_URL": "http://img.test/{size}"}, "{width}, {height}"),
        ({"CMSAPI_RENDITION_URL": "img.test/{url}"}, "it must be None or a template of addresses"),
    ],
)
def test_wrong_settings(make_gallery: MakeGallery, settings: Any, said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        make_gallery(**settings)
    assert said in str(caught.value)


def test_missing_packages_are_named(
    make_gallery: MakeGallery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flask_contentapi.renditions.find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match=r'pip install "flask_contentapi\[renditions\]"'):
        make_gallery()


@pytest.mark.parametrize(
    ("field", "said"),
    [
        (Rendition("phot", "original"), "has a Rendition of 'phot', which is no relation to one"),
        (Rendition("phot", "original"), "Did you mean 'photo'?"),
        (Rendition("title", "original"), "has a Rendition of 'title', which is no relation"),
        (Rendition("other", "original"), "has a Rendition of 'other', which is no relation"),
        (Rendition("photos", "original"), "Did you mean 'photo'?"),
        (Rendition("photo", "huge"), "has a Rendition; 'huge' has the operation 'huge'"),
    ],
)
def test_wrong_fields(make_gallery: MakeGallery, field: Rendition, said: str) -> None:
    class Wrong(Page):
        photo = Related("images")
        photos = fields.List(Related("images"))
        other = Related("documents")
        small = field
        api_fields = ["small"]

    with pytest.raises(DeclarationError) as caught:
        make_gallery(types=[Wrong])
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "field",
    [
        Blocks({"image": Rendition("photo", "original")}),
        fields.List(Rendition("photo", "original")),
    ],
    ids=["blocks", "list"],
)
def test_rendition_inside_another_field(make_gallery: MakeGallery, field: Any) -> None:
    class Wrong(Page):
        photo = Related("images")
        inner = field

    with pytest.raises(DeclarationError, match="has Rendition where it would not be followed"):
        make_gallery(types=[Wrong])
