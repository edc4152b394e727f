"""A directory bucket (S3 Express One Zone) on the emulator: sessions, lists in no order, prefixes that end in "/".

Rules from the S3 API reference (CreateSession, ListObjectsV2). It proves requests, not IAM or throughput.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import parse_qs

from .emulated import Cloud, _plain, lead_to

BUCKET = "demo--use1-az4--x-s3"
SESSION = (
    b'<?xml version="1.0" encoding="UTF-8"?><CreateSessionResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
    b"<Credentials><SessionToken>of-this-session</SessionToken><SecretAccessKey>s</SecretAccessKey><AccessKeyId>A"
    b"</AccessKeyId><Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></CreateSessionResult>"
)
XML = "application/xml"
ROW = re.compile(rb"<Contents>.*?</Contents>", re.S)


class ExpressZone(Cloud):
    """The emulator, where the bucket of that name is a directory bucket."""

    def _answer(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if not environ["PATH_INFO"].startswith(f"/{BUCKET}"):
            return super()._answer(environ, start_response)
        asked = parse_qs(environ["QUERY_STRING"], keep_blank_values=True)
        if "session" in asked:
            return _plain(start_response, "200 OK", XML, SESSION)
        if environ["REQUEST_METHOD"] != "PUT" and environ.get("HTTP_X_AMZ_S3SESSION_TOKEN") != "of-this-session":
            return _plain(start_response, "403 Forbidden", XML, b"<Error><Code>AccessDenied</Code></Error>")
        if not asked.get("prefix", ["/"])[0].endswith("/"):
            return _plain(start_response, "400 Bad Request", XML, b"<Error><Code>InvalidRequest</Code></Error>")
        answer = b"".join(super()._answer(environ, start_response))
        rows = ROW.findall(answer)
        # Not by name, and not the other way round either.
        mixed = iter(sorted(rows, key=lambda row: row[::-1]))
        return [ROW.sub(lambda _: next(mixed), answer)]


def directory_bucket(monkeypatch: Any) -> Iterator[ExpressZone]:
    """BUCKET, and the environment leads to it: express = pytest.fixture(directory_bucket)."""
    server = ExpressZone()
    lead_to(server, monkeypatch)
    server.bucket(BUCKET)
    yield server
    server.close()
