"""What the machines can reach: a file server and a caching proxy to Debian, on the bridge's address.

`python -m tests.integration.bed.server STATE HOST=SCHEME ...`: serves STATE/www; asks only the hosts named, which are
those of the outer machine's apt configuration. Packages are kept in STATE/cache; indexes are always asked for again.
"""

import contextlib
import os
import shutil
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import defaultdict
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from . import layout, timesource, vendors

UPSTREAM_TIMEOUT_S = 60
PAUSES_S = (1, 4, 10)
"""A mirror's bad minute is none of the roles' faults."""
PASSED_ON = ("If-Modified-Since", "Cache-Control")
PASSED_BACK = ("Last-Modified", "Content-Type")


class Bed(ThreadingHTTPServer):
    """The server and what its requests share."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], state: Path, upstream: dict[str, str]) -> None:
        super().__init__(address, Request)
        self.www, self.cache, self.upstream = state / "www", state / "cache", upstream
        self.locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)


class Request(BaseHTTPRequestHandler):
    """GET of a file, or of a whole URL as a proxy gets it."""

    protocol_version = "HTTP/1.1"
    server: Bed

    def do_GET(self) -> None:
        """Answer from the shelf, the cache or upstream."""
        target = urlsplit(self.path)
        if target.netloc in ("", f"{layout.GATEWAY}:{layout.PORT}"):  # apt asks its proxy for the shelf as well
            self._file(self.server.www, unquote(target.path))
        elif target.netloc not in self.server.upstream:
            self.send_error(HTTPStatus.FORBIDDEN, "not a host of the outer machine's apt configuration")
        elif target.path.endswith(".deb") or "/by-hash/" in target.path:
            self._cached(target.netloc, target.path)
        else:
            self._fresh(target.netloc, target.path)

    do_HEAD = do_GET

    def _file(self, base: Path, name: str) -> None:
        path = (base / name.lstrip("/")).resolve()
        if not path.is_relative_to(base.resolve()) or not path.is_file():
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        with path.open("rb") as source:
            # pip reads a page of links only when it is called one.
            kind = {"Content-Type": "text/html"} if path.suffix == ".html" else {}
            self._head(HTTPStatus.OK, {"Content-Length": str(os.fstat(source.fileno()).st_size), **kind})
            if self.command == "GET":
                shutil.copyfileobj(source, self.wfile)

    def _cached(self, host: str, name: str) -> None:
        """Four machines that want the same package wait for one download."""
        path = self.server.cache / host / unquote(name).lstrip("/")
        with self.server.locks[str(path)]:
            if not path.is_file():
                try:
                    self._download(host, name, path)
                except OSError as error:
                    self._failed(error)
                    return
        self._file(self.server.cache / host, unquote(name))

    def _download(self, host: str, name: str, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._open(host, name, {}) as answer, tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as draft:
            shutil.copyfileobj(answer, draft)
        Path(draft.name).rename(path)

    def _open(self, host: str, name: str, headers: dict[str, str]) -> Any:
        return ask(f"{self.server.upstream[host]}://{host}{name}", headers)

    def _fresh(self, host: str, name: str) -> None:
        given = {key: self.headers[key] for key in PASSED_ON if self.headers[key]}
        try:
            with self._open(host, name, given) as answer:
                data = answer.read()
                back = {key: answer.headers[key] for key in PASSED_BACK if answer.headers[key]}
        except OSError as error:
            self._failed(error)
            return
        self._head(HTTPStatus.OK, {**back, "Content-Length": str(len(data))})
        if self.command == "GET":
            self.wfile.write(data)

    def _failed(self, error: OSError) -> None:
        code = error.code if isinstance(error, urllib.error.HTTPError) else HTTPStatus.BAD_GATEWAY
        self._head(code, {} if code == HTTPStatus.NOT_MODIFIED else {"Content-Length": "0"})

    def _head(self, code: int, headers: dict[str, str]) -> None:
        self.send_response(code)
        for key, value in headers.items():
            self.send_header(key, value)
        self.end_headers()


def ask(url: str, headers: dict[str, str]) -> Any:
    """Open a URL of a mirror, again after a pause when it does not answer or has trouble of its own. Raises OSError."""
    request = urllib.request.Request(url, headers=headers)
    for pause_s in PAUSES_S:
        try:
            return urllib.request.urlopen(request, timeout=UPSTREAM_TIMEOUT_S)
        except urllib.error.HTTPError as error:
            if error.code < HTTPStatus.INTERNAL_SERVER_ERROR:
                raise
        except OSError:
            pass
        time.sleep(pause_s)
    return urllib.request.urlopen(request, timeout=UPSTREAM_TIMEOUT_S)


def main(arguments: list[str]) -> None:
    """Serve until ended."""
    threading.Thread(target=timesource.serve, args=(layout.BRIDGE,), daemon=True).start()
    state, upstream = Path(arguments[0]), dict(pair.split("=", 1) for pair in arguments[1:])
    vendors.serve(state)
    with Bed((layout.GATEWAY, layout.PORT), state, upstream) as bed, contextlib.suppress(KeyboardInterrupt):
        bed.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
