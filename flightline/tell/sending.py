"""One HTTPS POST that is tried again where that may help, and whose secrets are in no text.

http.client, because a webhook's path is the secret: urllib3 and slack_sdk write it to their debug logs and
into exceptions, http.client logs nothing, follows no redirect and retries nothing by itself.
"""

from __future__ import annotations

import http.client
import ssl
import time
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from .channel import DeliveryError

TIMEOUT_S = 10.0
MOST_READ, MOST_SAID = 65_536, 200
"""Bytes of an answer: a bot's has the whole message in it. Characters of it that a person is told."""
ATTEMPTS = 5
MAX_WAIT_S = 60.0
"""A Retry-After beyond this is not waited for: the message is kept and sent later."""
_SCHEMES = ("Bearer ",)


class Answer(NamedTuple):
    """attempts: how often it was asked. said: the answer's text, without the secrets."""

    attempts: int
    said: str


def post(
    who: str,
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    secrets: Collection[str],
    hosts: Collection[str] = (),
    ca_file: str = "",
    sleep: Callable[[float], None] | None = None,
) -> Answer:
    """Send JSON to an address, of which path and query are secret. who: is told of, in errors.

    secrets: other texts that no answer may repeat. hosts: those that the address may have, with a dot before it any
    below it; any at all where none is named. Raises DeliveryError.
    """
    host, port, path = _address(who, url, hosts)
    hidden = (path, *secrets, *headers.values(), *(v.removeprefix(s) for v in headers.values() for s in _SCHEMES))
    try:
        context = ssl.create_default_context(cafile=ca_file or None)
    except OSError as error:
        raise DeliveryError(f"{ca_file}: no certificates can be read from it ({error.strerror})", later=False) from None
    for attempt in range(1, ATTEMPTS + 1):
        status, retry_after, said = _once(host, port, path, body, context, headers)
        for secret in hidden:
            said = said.replace(secret, "***") if len(secret) > 1 else said
        if 200 <= status < 300:
            return Answer(attempt, said)
        said = said[:MOST_SAID]
        if 300 <= status < 500 and status != 429:
            raise DeliveryError(
                f"{who} refused the message: HTTP {status} {said}; check the address and the key", later=False
            )
        wait = _wait_s(attempt, retry_after)
        reason = f"HTTP {status} {said}".strip() if status else said
        if attempt == ATTEMPTS or wait > MAX_WAIT_S:
            raise DeliveryError(f"{who} did not take the message after {attempt} attempts: {reason}", later=True)
        (sleep or time.sleep)(wait)
    raise AssertionError("unreachable")


def _wait_s(attempt: int, retry_after: str) -> float:
    """As long as the answer says; twice as long each time when it says nothing that is a number of seconds."""
    try:
        seconds = float(retry_after)
    except ValueError:
        seconds = -1.0
    return seconds if seconds >= 0 else float(2 ** (attempt - 1))


def _address(who: str, given: str, hosts: Collection[str]) -> tuple[str, int, str]:
    try:
        url = urlsplit(given)
        host, port = url.hostname or "", url.port or 443
    except ValueError:
        raise DeliveryError(f"the address of {who} is not an address", later=False) from None
    allowed = not hosts or any(host == one or (one.startswith(".") and host.endswith(one)) for one in hosts)
    if url.scheme != "https" or not host or not allowed or url.username is not None:
        raise DeliveryError(
            f"the address of {who} must be https:// on {', '.join(sorted(hosts)) or 'some host'}; it is "
            f"{url.scheme or 'no'}:// on {host or 'no host'}: nothing was sent",
            later=False,
        )
    return host, port, (url.path or "/") + (f"?{url.query}" if url.query else "")


def _once(
    host: str, port: int, path: str, body: bytes, context: ssl.SSLContext, headers: Mapping[str, str]
) -> tuple[int, str, str]:
    """Status, Retry-After and the answer; status 0 when there was no answer."""
    connection = http.client.HTTPSConnection(host, port, timeout=TIMEOUT_S, context=context)
    try:
        connection.request("POST", path, body, {"Content-Type": "application/json; charset=utf-8", **headers})
        answer = connection.getresponse()
        said = " ".join(answer.read(MOST_READ).decode("utf-8", "replace").split())
        return answer.status, answer.getheader("Retry-After") or "", said
    except ssl.SSLError as error:
        return 0, "", f"TLS: {error.reason or type(error).__name__}"
    except (OSError, http.client.HTTPException) as error:
        # Not the error's own text: some name the request.
        return 0, "", f"no answer from {host} ({type(error).__name__})"
    finally:
        connection.close()
