"""One message to a Slack incoming webhook, or as a bot. Standard library only: the Lambda functions ship this file.

http.client, because the webhook's path is the secret: urllib3 and slack_sdk write it to their debug logs and
into exceptions, http.client logs nothing, follows no redirect and retries nothing by itself.
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any
from urllib.parse import urlsplit

HOSTS = ("hooks.slack.com",)
API = "slack.com"
TIMEOUT_S = 10.0
MOST_READ, MOST_SAID = 65_536, 200
"""Bytes of an answer: a bot's has the whole message in it. Characters of it that a person is told."""
ATTEMPTS = 5
MAX_WAIT_S = 60.0
"""A Retry-After beyond this is not waited for: the message is kept and sent later."""


class SlackError(RuntimeError):
    """The message was not taken. later: it may be when tried again (rate limit, server error, network)."""

    def __init__(self, message: str, later: bool) -> None:
        super().__init__(message)
        self.later = later


def post(
    webhook: str,
    payload: Mapping[str, Any],
    hosts: Collection[str] = HOSTS,
    ca_file: str | None = None,
    sleep: Callable[[float], None] | None = None,
) -> int:
    """Send a message; returns the number of attempts. Raises SlackError, whose text never has the webhook in it."""
    return _send(_address(webhook, hosts), payload, {}, ca_file, sleep)[0]


def say(
    token: str,
    channel: str,
    payload: Mapping[str, Any],
    thread: str = "",
    api: str = API,
    ca_file: str | None = None,
    sleep: Callable[[float], None] | None = None,
) -> str:
    """Send a message as a bot, into a thread where one is named; returns the message's id, which names a thread.

    Raises SlackError, whose text never has the token in it. Source: Slack API reference, chat.postMessage.
    """
    host, _, port = api.partition(":")
    where = host, int(port or 443), "/api/chat.postMessage"
    message = {**payload, "channel": channel, **({"thread_ts": thread} if thread else {})}
    if not token.isascii() or not token.isprintable():
        raise SlackError("the Slack token has characters that no token has: nothing was sent", later=False)
    _, said = _send(where, message, {"Authorization": f"Bearer {token}"}, ca_file, sleep)
    try:
        answer = json.loads(said)
        if answer["ok"] is True:
            return str(answer["ts"])
        # Its words are one of a list ("channel_not_found"), and nothing that was sent.
        why = str(answer.get("error") or "no reason")[:80].replace(token, "***")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise SlackError("Slack's answer cannot be read", later=True) from None
    raise SlackError(
        f"Slack refused the message: {why}; check the token's scope chat:write and the channel", later=False
    )


def _send(
    where: tuple[str, int, str],
    payload: Mapping[str, Any],
    headers: Mapping[str, str],
    ca_file: str | None,
    sleep: Callable[[float], None] | None,
) -> tuple[int, str]:
    """The number of attempts, and the answer's text."""
    host, port, path = where
    body = json.dumps(payload).encode()
    try:
        context = ssl.create_default_context(cafile=ca_file or None)
    except OSError as error:
        raise SlackError(f"{ca_file}: no certificates can be read from it ({error.strerror})", later=False) from None
    for attempt in range(1, ATTEMPTS + 1):
        status, retry_after, said = _once(host, port, path, body, context, headers)
        if 200 <= status < 300:
            return attempt, said
        said = said[:MOST_SAID]
        if 300 <= status < 500 and status != 429:
            what = "token" if headers else "webhook"
            raise SlackError(f"Slack refused the message: HTTP {status} {said}; check the {what}", later=False)
        wait = _wait_s(attempt, retry_after)
        reason = f"HTTP {status} {said}".strip() if status else said
        if attempt == ATTEMPTS or wait > MAX_WAIT_S:
            raise SlackError(f"Slack did not take the message after {attempt} attempts: {reason}", later=True)
        (sleep or time.sleep)(wait)
    raise AssertionError("unreachable")


def _wait_s(attempt: int, retry_after: str) -> float:
    """As long as Slack says; twice as long each time when it says nothing that is a number of seconds."""
    try:
        seconds = float(retry_after)
    except ValueError:
        seconds = -1.0
    return seconds if seconds >= 0 else float(2 ** (attempt - 1))


def _address(webhook: str, hosts: Collection[str]) -> tuple[str, int, str]:
    try:
        url = urlsplit(webhook)
        host, port = url.hostname or "", url.port or 443
    except ValueError:
        raise SlackError("the Slack webhook is not an address", later=False) from None
    if url.scheme != "https" or host not in hosts or url.username is not None:
        raise SlackError(
            f"the Slack webhook must be https:// on {', '.join(sorted(hosts))}; it is {url.scheme or 'no'}:// on "
            f"{host or 'no host'}: nothing was sent",
            later=False,
        )
    return host, port, url.path + (f"?{url.query}" if url.query else "")


def _once(
    host: str, port: int, path: str, body: bytes, context: ssl.SSLContext, headers: Mapping[str, str]
) -> tuple[int, str, str]:
    """Status, Retry-After and the answer; status 0 when there was no answer."""
    connection = http.client.HTTPSConnection(host, port, timeout=TIMEOUT_S, context=context)
    try:
        connection.request("POST", path, body, {"Content-Type": "application/json; charset=utf-8", **headers})
        answer = connection.getresponse()
        said = " ".join(answer.read(MOST_READ).decode("utf-8", "replace").split())
        # An answer could repeat the secret.
        for secret in (path, *headers.values(), *(value.removeprefix("Bearer ") for value in headers.values())):
            said = said.replace(secret, "***")
        return answer.status, answer.getheader("Retry-After") or "", said
    except ssl.SSLError as error:
        return 0, "", f"TLS: {error.reason or type(error).__name__}"
    except (OSError, http.client.HTTPException) as error:
        # Not the error's own text: some name the request.
        return 0, "", f"no answer from {host} ({type(error).__name__})"
    finally:
        connection.close()
