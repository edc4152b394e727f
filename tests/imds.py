"""A stand-in of the instance metadata service, version 2, on loopback. Paths and forms after the EC2 user guide."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from .served import Answering, Serving


class MetadataStandIn:
    """values: path below /latest/ -> text. token: the one that is taken; tokenless: calls without any.

    token_status, status: what is answered instead of a token, and instead of everything; delay_s: before a token.
    """

    def __init__(self, values: dict[str, str | None]) -> None:
        self.values, self.token, self.tokenless = dict(values), "t-1", 0
        self.token_status, self.status, self.delay_s, self.url = 200, 200, 0.0, ""

    def put(self, path: str, lives: str | None) -> tuple[int, str]:
        time.sleep(self.delay_s)
        asked = path == "api/token" and lives
        return (self.token_status if asked else 400), self.token

    def get(self, path: str, token: str | None) -> tuple[int, str]:
        self.tokenless += token is None
        text = self.values.get(path)
        if token != self.token:
            return 401, ""
        return (404, "") if text is None else (200, text)


@contextmanager
def serving(values: dict[str, str | None] | None = None) -> Iterator[MetadataStandIn]:
    service = MetadataStandIn(values or {})

    class Handler(Answering):
        def answer(self, status: int, text: str) -> None:
            self.say(status if service.status == 200 else service.status, text.encode())

        def do_PUT(self) -> None:
            lives = self.headers["X-aws-ec2-metadata-token-ttl-seconds"]
            self.answer(*service.put(self.path.removeprefix("/latest/"), lives))

        def do_GET(self) -> None:
            token = self.headers["X-aws-ec2-metadata-token"]
            self.answer(*service.get(self.path.removeprefix("/latest/"), token))

    with Serving(Handler) as server:
        service.url = f"http://127.0.0.1:{server.port}"
        yield service
