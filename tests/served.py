"""HTTP servers of tests: a handler that answers in one call, and a server in a thread of its own until it is closed."""

import ssl
import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Answering(BaseHTTPRequestHandler):
    """`say` is the whole answer. No line is logged per request."""

    def say(self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def given(self) -> bytes:
        """The body of the request."""
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def log_message(self, *_: object) -> None:
        pass


class Serving(AbstractContextManager["Serving"]):
    """certificate: the file that has it and its key, or the two files; with it the server speaks TLS."""

    def __init__(self, handler: type[Answering], *certificate: Path, address: str = "127.0.0.1", port: int = 0) -> None:
        self._server = ThreadingHTTPServer((address, port), handler)
        self.port = self._server.server_port
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate[0], certificate[-1])
            # The handshake belongs to the connection's own thread: a client that connects and says nothing holds up nobody.
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def __exit__(self, *_: object) -> None:
        self.close()
