"""Prints how many requests a WSGI application answers in a second of processor time.

The arguments are the paths to ask for. The application is the
mirror in ``MIRROR`` or, without that, Wagtail; no server is in between.
"""

import io
import os
import runpy
import sys
import time
from urllib.parse import unquote

#: How long each path is asked for, in seconds of processor time, whatever else is running.
SECONDS = 1.0


def application():
    """What answers."""
    mirror = os.environ.get("MIRROR")
    if mirror:
        sys.path.insert(0, mirror)
        return runpy.run_path(f"{mirror}/app.py")["app"]
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings")
    from django.core.wsgi import get_wsgi_application

    return get_wsgi_application()


def ask(answer, address):
    """Asks once; only an answer counts."""
    path, _, query = address.partition("?")
    environment = {
        "REQUEST_METHOD": "GET",
        "PATH_INFO": unquote(path),
        "QUERY_STRING": query,
        "SCRIPT_NAME": "",
        "SERVER_NAME": "main.example",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "HTTP_HOST": "main.example",
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(),
        "wsgi.errors": sys.stderr,
    }
    statuses = []
    body = answer(environment, lambda status, headers, error=None: statuses.append(status))
    assert b"".join(body), address
    assert statuses == ["200 OK"], (address, statuses)


def main():
    answer = application()
    for address in sys.argv[1:]:
        ask(answer, address)
        number, start = 0, time.process_time()
        while time.process_time() - start < SECONDS:
            ask(answer, address)
            number += 1
        print(round(number / (time.process_time() - start), 1))


if __name__ == "__main__":
    main()
