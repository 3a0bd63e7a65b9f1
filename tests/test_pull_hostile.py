"""Sources that are broken or mean harm: one sentence each, soon, and nothing is written."""

from __future__ import annotations

import json
import socket
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from click.testing import CliRunner

from flask_contentapi.__main__ import main
from flask_contentapi.importers import source
from flask_contentapi.importers.source import Cache, Source, SourceError
from tests.scarcity import full_disk, on_posix
from tests.stores import on_memory

pytestmark = [on_memory, pytest.mark.slow]

#: The status, the headers, and the body in parts.
Response = tuple[int, Mapping[str, str], Iterable[bytes]]
Answer = Callable[[str, Mapping[str, str]], Response]


def page(identity: int, **given: Any) -> dict[str, Any]:
    slug = given.pop("slug", f"p{identity}")
    meta = {
        "type": "blog.Post",
        "detail_url": f"http://localhost/api/pages/{identity}/",
        "html_url": "http://localhost/" + ("" if identity == 1 else f"{slug}/"),
        "slug": slug,
        **given.pop("meta", {}),
    }
    return {"id": identity, "meta": meta, "title": f"Page {identity}", **given}


def answered(data: Any, status: int = 200) -> Response:
    body = data if isinstance(data, bytes) else json.dumps(data).encode()
    return status, {"Content-Type": "application/json", "Content-Length": str(len(body))}, [body]


def listed(items: list[Any], query: Mapping[str, str], total: int | None = None) -> Response:
    start, limit = int(query.get("offset", 0)), int(query.get("limit", 20))
    if limit > 20:
        return answered({"message": "limit cannot be higher than 20"}, 400)
    count = len(items) if total is None else total
    return answered({"meta": {"total_count": count}, "items": items[start : start + limit]})


def site(pages: list[dict[str, Any]], parents: Mapping[int, Any] | None = None) -> Answer:
    """A source with some pages, all honest but for what is in them."""

    def answer(path: str, query: Mapping[str, str]) -> Response:
        if path == "pages/":
            return listed(pages, query)
        for own in pages:
            if path == f"pages/{own['id']}/":
                above = (parents or {}).get(own["id"])
                parent = {"parent": above and page(above)}
                return answered({**own, "meta": {**own["meta"], **parent}})
        return answered({"message": "not found"}, 404)

    return answer


def always(*response: Any) -> Answer:
    return lambda path, query: response


def first_list(answer: Answer) -> Answer:
    """Answers so to the first list alone, and honestly to the rest."""
    honest = site([page(1)])
    return lambda path, query: (answer if "fields" in query else honest)(path, query)


def endless(data: bytes) -> Iterator[bytes]:
    while True:
        yield data


def dripping() -> Iterator[bytes]:
    for byte in b'{"meta": {}}' * 100:
        time.sleep(0.2)
        yield bytes([byte])


def bomb() -> Iterator[bytes]:
    """300 MiB, packed."""
    packer = zlib.compressobj(wbits=31)
    for _ in range(300):
        yield packer.compress(bytes(1 << 20))
    yield packer.flush()


@pytest.fixture
def serve() -> Iterator[Callable[[Answer], str]]:
    """Serves answers; gives the address of their API."""
    servers = []

    def start(answer: Answer) -> str:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
                status, headers, body = answer(parts.path.removeprefix("/api/"), query)
                self.send_response(status)
                for name, value in {"Connection": "close", **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.close_connection = True
                try:
                    for part in body:
                        self.wfile.write(part)
                        self.wfile.flush()
                except OSError:
                    pass

            def log_message(self, *arguments: Any) -> None:
                """Says nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}/api/"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "BACKOFF", 0.01)


def refused(url: str, folder: Path, *options: str) -> str:
    """The sentence in which a pull is refused."""
    start = time.monotonic()
    done = CliRunner().invoke(main, ["pull", url, str(folder / "mirror"), *options])
    assert done.exit_code == 1, done.output
    assert isinstance(done.exception, SystemExit)
    assert time.monotonic() - start < 30
    assert not (folder / "mirror").exists()
    assert done.output.count("\n") == 1
    return done.output


def html(path: str, query: Mapping[str, str]) -> Response:
    body = b"<!DOCTYPE html><p>Welcome"
    return 200, {"Content-Type": "text/html", "Content-Length": str(len(body))}, [body]


def growing(path: str, query: Mapping[str, str]) -> Response:
    start = int(query.get("offset", 0))
    items = [page(start + n + 1) for n in range(20)]
    return listed([{}] * start + items, query, total=start + 40)


REDIRECT = "which is not followed; if that is the API, pull from there."
JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        pytest.param(html, "text/html, no JSON; is it the address of an API?", id="html"),
        pytest.param(
            always(302, {"Location": "file:///etc/passwd"}, []),
            f"redirects to 'file:///etc/passwd', {REDIRECT}",
            id="redirect to a file",
        ),
        pytest.param(
            always(307, {"Location": "http://169.254.169.254/latest/meta-data/"}, []),
            f"redirects to 'http://169.254.169.254/latest/meta-data/', {REDIRECT}",
            id="redirect to metadata",
        ),
        pytest.param(
            always(200, {**JSON, "Content-Length": str(1 << 30)}, endless(b" " * 65536)),
            "sends more than 64 MiB.",
            id="told gigabyte",
        ),
        pytest.param(
            always(200, JSON, endless(b" " * (1 << 20))), "sends more than 64 MiB.", id="gigabytes"
        ),
        pytest.param(
            always(200, {**JSON, "Content-Encoding": "gzip"}, bomb()),
            "sends more than 64 MiB.",
            id="gzip bomb",
        ),
        pytest.param(
            always(200, {**JSON, "Content-Encoding": "gzip, gzip"}, bomb()),
            "is packed as 'gzip, gzip'; only gzip was asked for.",
            id="gzip bomb in another",
        ),
        pytest.param(
            always(200, {**JSON, "Content-Length": "100"}, [b'{"meta"']),
            "breaks off its answer",
            id="half body",
        ),
        pytest.param(always(200, JSON, dripping()), "is not answered within 1 s.", id="slow body"),
        pytest.param(
            always(503, {"Retry-After": "86400", "Content-Length": "0"}, []),
            "answers 503, and asks to wait for 86400 s; pull again after that.",
            id="long wait",
        ),
        pytest.param(
            always(500, {"Content-Length": "0"}, []), "answers 500, 4 times.", id="broken"
        ),
        pytest.param(always(401, {"Content-Length": "0"}, []), "asks for a login", id="login"),
        pytest.param(
            lambda path, query: listed([page(1)], query, total=10**9),
            "has the total_count 1000000000; it can be from 0 to 1,000,000.",
            id="endless pages",
        ),
        pytest.param(growing, "says that there are 40 and then 60", id="growing list"),
        pytest.param(
            lambda path, query: listed([page(1)], query, total=7),
            "says that there are 7 and then 7, and has 1 from offset 0 on.",
            id="lying total_count",
        ),
        pytest.param(site([page(1), page(1)]), "has 1 twice.", id="repeated ids"),
        pytest.param(
            site(
                [page(1), page(2, meta={"html_url": "http://localhost/odd/"}), page(3)],
                {2: 3, 3: 2},
            ),
            "has the parent 3, which does not come before it, as it does in a tree.",
            id="circle",
        ),
        pytest.param(
            site([page(1), page(2, slug="x/" * 100_000 + "x", meta={"slug": "x"})]),
            "has a page below 100,000 hidden ones; a tree has at most 400 levels.",
            id="endless address",
        ),
        pytest.param(
            site([page(1, meta={"type": "blog.Post; import os"})]),
            "has the type 'blog.Post; import os'; it is to be as blog.ArticlePage.",
            id="code as a type",
        ),
        pytest.param(
            lambda path, query: answered(b"[" * 10_000 + b"]" * 10_000),
            "answers with what cannot be read",
            id="deep nesting",
        ),
        pytest.param(
            always(*answered({"items": 3})), "is no list of objects with id and meta", id="no list"
        ),
        pytest.param(site([page("x")]), "is no list of objects", id="no ids"),  # type: ignore[arg-type]
        pytest.param(site([]), "shows no pages.", id="nothing"),
    ],
)
def test_source_is_refused(
    serve: Callable[[Answer], str], tmp_path: Path, answer: Answer, said: str
) -> None:
    assert said in refused(serve(answer), tmp_path, "--timeout", "1" if "within" in said else "20")


def test_slow_headers_end(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def drip() -> None:
            connection, _ = listening.accept()
            connection.recv(4096)
            with suppress(OSError), connection:
                for byte in b"HTTP/1.1 200 OK\r\n" + b"X-A: b\r\n" * 1000:
                    time.sleep(0.1)
                    connection.send(bytes([byte]))

        Thread(target=drip, daemon=True).start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/api/"
        assert "is not answered within 1 s." in refused(url, tmp_path, "--timeout", "1")


def test_busy_source_is_asked_again(serve: Callable[[Answer], str], tmp_path: Path) -> None:
    honest, calls = site([page(1), page(2)]), []

    def busy(path: str, query: Mapping[str, str]) -> Response:
        calls.append(path)
        if len(calls) % 3 == 1:
            return 429, {"Retry-After": "0", "Content-Length": "0"}, []
        return honest(path, query)

    done = CliRunner().invoke(main, ["pull", serve(busy), str(tmp_path / "mirror")])
    assert done.exit_code == 0, done.output
    assert "2 pages" in done.output


def test_odd_keys_are_told(serve: Callable[[Answer], str], tmp_path: Path) -> None:
    odd = {"x = 1\nimport os": 1, "__class__": 2, "def": 3, "live": 4, "limit": 5, "ﬁn": 6}
    done = CliRunner().invoke(
        main, ["pull", serve(site([page(1), page(2, **odd)])), str(tmp_path / "mirror")]
    )
    assert done.exit_code == 0, done.output
    assert r"blog.Post has no 'x = 1\nimport os', ﬁn in its api_fields, so" in done.output
    record = json.loads((tmp_path / "mirror" / "content" / "pages.json").read_text())[1]
    own = {"own__class__": 2, "def_": 3, "live_": 4, "limit": 5}
    assert record.items() >= own.items()


def test_code_is_no_code(serve: Callable[[Answer], str], tmp_path: Path) -> None:
    blocks = [{"type": "'}) or print('broken' + ' out') #\n", "value": "<p>a</p>", "id": "1"}]
    url = serve(site([page(1), page(2, body=blocks)]))
    done = CliRunner().invoke(main, ["pull", url, str(tmp_path / "mirror")])
    assert done.exit_code == 0, done.output
    assert "broken out" not in done.output


def test_hidden_parent_has_a_place_of_its_own(
    serve: Callable[[Answer], str], tmp_path: Path
) -> None:
    # Its address says that it is below the home page, its detail that the page above is hidden.
    url = serve(site([page(1), page(2, meta={"type": "blog.Other"})]))
    done = CliRunner().invoke(main, ["pull", url, str(tmp_path / "mirror")])
    assert done.exit_code == 0, done.output
    home, hidden, shown = json.loads((tmp_path / "mirror" / "content" / "pages.json").read_text())
    assert (hidden["live"], hidden["slug"], hidden["parent"]) == (False, "hidden-2", home["id"])
    assert shown["parent"] == hidden["id"]


def test_places_that_are_read_again_keep_hidden_pages(
    serve: Callable[[Answer], str], tmp_path: Path
) -> None:
    # The detail of the second page says that its address is no guide to its place.
    deep = page(3, slug="x/p3", meta={"slug": "p3"})
    url = serve(site([page(1), page(2, meta={"type": "blog.Other"}), deep]))
    done = CliRunner().invoke(main, ["pull", url, str(tmp_path / "mirror")])
    assert done.exit_code == 0, done.output
    records = json.loads((tmp_path / "mirror" / "content" / "pages.json").read_text())
    places = {record["slug"]: record.get("parent") for record in records}
    ids = {record["slug"]: record["id"] for record in records}
    assert (places["x"], places["p3"]) == (1, ids["x"])


def with_others(endpoint: str, *items: dict[str, Any]) -> Answer:
    """A source with a page, and some objects at another endpoint."""
    honest = site([page(1)])

    def answer(path: str, query: Mapping[str, str]) -> Response:
        if path == f"{endpoint}/":
            return listed([*items], query)
        shown = [item for item in items if path == f"{endpoint}/{item['id']}/"]
        return answered(shown[0]) if shown else honest(path, query)

    return answer


def an_image(identity: int, url: str) -> dict[str, Any]:
    meta = {
        "type": "wagtailimages.Image",
        "detail_url": f"http://localhost/api/images/{identity}/",
        "download_url": url,
    }
    return {"id": identity, "meta": meta, "title": "Owl", "width": 1, "height": 1}


def a_redirect(location: str) -> dict[str, Any]:
    meta = {"type": "wagtailredirects.Redirect", "detail_url": "http://localhost/api/redirects/1/"}
    return {"id": 1, "meta": meta, "old_path": "/old", "location": location}


@pytest.mark.parametrize("url", ["http://[x/p2/", "http://localhost:port/", "http://x:99999/p2/"])
@pytest.mark.parametrize(
    "made",
    [
        lambda url: site([page(1, meta={"html_url": url}), page(2)], {2: 1}),
        lambda url: site([page(1), page(2, meta={"html_url": url})], {2: 1}),
        lambda url: with_others("images", an_image(1, url)),
        lambda url: with_others("redirects", a_redirect(url)),
    ],
    ids=["home page", "page", "image", "redirect"],
)
def test_what_is_no_address_is_left_out(
    serve: Callable[[Answer], str], tmp_path: Path, made: Callable[[str], Answer], url: str
) -> None:
    done = CliRunner().invoke(main, ["pull", serve(made(url)), str(tmp_path / "mirror"), "--media"])
    assert done.exit_code == 0, done.output


def test_names_of_the_code_are_keys(serve: Callable[[Answer], str], tmp_path: Path) -> None:
    odd = {"cms": "a", "Related": "b", "Tags": ["c"], "fields": "d", "TYPES": 1}
    folder = tmp_path / "mirror"
    url = serve(site([page(1), page(2, **odd, later="e", tags=["f"])]))
    done = CliRunner().invoke(main, ["pull", url, str(folder)])
    assert done.exit_code == 0, done.output
    record = json.loads((folder / "content" / "pages.json").read_text())[1]
    own = {"cms_": "a", "Related_": "b", "Tags_": ["c"], "fields_": "d", "TYPES_": 1}
    assert record.items() >= own.items()


def test_names_of_python_are_types(serve: Callable[[Answer], str], tmp_path: Path) -> None:
    labels = ["a.__name__", "a.__builtins__", "a.None", "a.fields", "a.Post"]
    pages = [page(n, meta={"type": label}) for n, label in enumerate(labels, 1)]
    # The list of each type has the pages of all, as if each derived from the others.
    url = serve(site(pages, dict.fromkeys(range(2, 6), 1)))
    done = CliRunner().invoke(main, ["pull", url, str(tmp_path / "mirror")])
    assert done.exit_code == 0, done.output
    records = json.loads((tmp_path / "mirror" / "content" / "pages.json").read_text())
    assert [record["type"] for record in records] == labels


@pytest.mark.parametrize(
    "label", ['blog.Kid(print("broken out") or cms.ChildObject): #', "Kid", "."]
)
def test_label_of_child_objects_is_no_code(
    serve: Callable[[Answer], str], tmp_path: Path, label: str
) -> None:
    kids = [{"id": 1, "meta": {"type": label}, "name": "Ada"}]
    url = serve(site([page(1), page(2, kids=kids), page(3, kids=5)]))
    done = CliRunner().invoke(main, ["pull", url, str(tmp_path / "mirror")])
    assert done.exit_code == 0, done.output
    assert "broken out" not in done.output
    record = json.loads((tmp_path / "mirror" / "content" / "pages.json").read_text())[1]
    assert record["kids"] == kids


@pytest.mark.parametrize(
    "private",
    [
        *("169.254.169.254", "127.0.0.1", "::1", "::ffff:10.0.0.1", "fd00::1", "fe80::1%eth0"),
        *("2002:7f00:1::", "64:ff9b::a9fe:a9fe", "100.64.0.1", "0.0.0.1", "224.0.0.1"),
    ],
)
def test_private_network_is_not_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, private: str
) -> None:
    hosts = {"cms.example": "93.184.216.34", "media.example": private}
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda host, *_, **__: [(0, 0, 0, "", (hosts[host], 0))]
    )
    asked = Source("https://cms.example/api/", Cache(tmp_path / "answers.db"))
    for url in ("https://media.example/a.png", "http://media.example/a.png", "file:///etc/passwd"):
        with pytest.raises(SourceError, match="is not asked"):
            asked.download(url, BytesIO())
    asked.close()


def test_other_hosts_get_no_headers(serve: Callable[[Answer], str], tmp_path: Path) -> None:
    asked = Source(serve(site([page(1)])), Cache(tmp_path / "answers.db"), headers=[("A", "b")])
    assert asked.same_host(f"{asked.base}pages/")
    assert not asked.same_host("http://127.0.0.1:1/x.png")
    asked.close()


def test_hosts_share_no_connections(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[tuple[str, int]] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked.append((self.headers["Host"].partition(":")[0], self.client_address[1]))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *arguments: Any) -> None:
            """Says nothing."""

    entry = (0, 0, 0, "", ("127.0.0.1", 0))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [entry])
    pulled = Source(f"http://a.example:{server.server_port}/", Cache(tmp_path / "answers.db"))
    for host in ("a", "b", "a"):
        pulled.download(f"http://{host}.example:{server.server_port}/x.png", BytesIO())
    pulled.close()
    server.shutdown()
    server.server_close()
    # One is used again, but not for what only has the same network address.
    assert [host for host, _ in asked] == ["a.example", "b.example", "a.example"]
    assert asked[0] == asked[2]
    assert asked[0][1] != asked[1][1]


@pytest.mark.parametrize(
    ("urls", "files"),
    [
        (["/media/a/b.png", "/media/a"], ["a/b.png"]),
        (["/media/a", "/media/a/b.png"], ["a"]),
        (["/media/a.png", "/other/media/a.png"], ["a.png", "other/media/a.png"]),
        (["/media/" + "a" * 300, "/media/a.png"], ["a.png"]),
        (["/media/" + "a" * 255, "/media/" + "b" * 251], ["a" * 255, "b" * 251]),
    ],
)
def test_files_that_cannot_be_written_are_told(
    serve: Callable[[Answer], str], tmp_path: Path, urls: list[str], files: list[str]
) -> None:
    found: list[Response] = [answered(b"a picture")]

    def answer(path: str, query: Mapping[str, str]) -> Response:
        return found[0] if path in urls else images(path, query)

    images = with_others("images", *(an_image(n, url) for n, url in enumerate(urls, 1)))
    done = CliRunner().invoke(main, ["pull", serve(answer), str(tmp_path / "mirror"), "--media"])
    assert done.exit_code == 0, done.output
    media = tmp_path / "mirror" / "media"
    assert {path.relative_to(media).as_posix() for path in media.rglob("*") if path.is_file()} == {
        *files
    }
    assert done.output.count("Note: ") == len(urls) - len(files)


def test_host_is_no_folder_above(serve: Callable[[Answer], str], tmp_path: Path) -> None:
    images = [an_image(1, "http://127.0.0.1:1/x.png"), an_image(2, "http://../x.png")]
    url = serve(with_others("images", *images))
    done = CliRunner().invoke(main, ["pull", url, str(tmp_path / "mirror"), "--media"])
    assert done.exit_code == 0, done.output
    records = json.loads((tmp_path / "mirror" / "content" / "images.json").read_text())
    assert [record["file"] for record in records] == ["x.png", "1/x.png"]


def test_two_pulls_at_once_are_refused(serve: Callable[[Answer], str], tmp_path: Path) -> None:
    other = Cache(tmp_path / ".mirror.answers.db")
    assert "answers.db': another pull is at work." in refused(serve(site([page(1)])), tmp_path)
    other.close()


@on_posix
def test_a_full_disk_is_told(serve: Callable[[Answer], str], tmp_path: Path) -> None:
    url = serve(site([page(1)]))
    with full_disk():
        said = refused(url, tmp_path)
    assert "answers.db': disk I/O error." in said
    assert [*tmp_path.iterdir()] == []


@on_posix
def test_a_full_disk_is_told_while_content_is_written(
    serve: Callable[[Answer], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = serve(site([page(1)]))

    def full(*args: Any, **options: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("flask_contentapi.importers.pull.write_record", full)
        said = refused(url, tmp_path)
    assert (
        said == "Error: The output or a file cannot be read or written: No space left on device.\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == [".mirror.answers.db"]
    done = CliRunner().invoke(main, ["pull", url, str(tmp_path / "mirror")])
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("url", ["cms.example", "ftp://cms.example/", "https://a:b@cms.example/"])
def test_address_is_checked(tmp_path: Path, url: str) -> None:
    assert "is no address of an API" in refused(url, tmp_path)


def test_nothing_is_left_without_answers(tmp_path: Path) -> None:
    refused("http://127.0.0.1:1/api/", tmp_path)
    refused("cms.example", tmp_path)
    assert [*tmp_path.iterdir()] == []
