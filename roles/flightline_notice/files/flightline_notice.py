#!/usr/bin/env python3
"""Give training its checkpoint signal when EC2 says that this instance will be taken away.

Asks the instance metadata service (version 2 only) every five seconds, as EC2's user guide advises for interruption
notices, and sends a signal to the main process of every unit that matches, once for each notice. A spot notice comes
two minutes before the end; rebalance advice earlier or never; maintenance is told days ahead and signalled just before.
The end of a capacity block is in no metadata: the alert comes forty minutes before by EventBridge.
"""

from __future__ import annotations

import argparse
import http.client
import json
import subprocess
import sys
import time
from datetime import datetime, timezone
from typing import Any, Callable, Dict, Iterator, NamedTuple, Optional, Sequence, Tuple
from urllib.parse import urlsplit

SPOT = "meta-data/spot/instance-action"
REBALANCE = "meta-data/events/recommendations/rebalance"
MAINTENANCE = "meta-data/events/maintenance/scheduled"
TIMEOUT_S = 2.0
TOKEN_TTL_S = 21600
MAX_BYTES = 1 << 16
OK, UNAUTHORIZED, NOT_FOUND = 200, 401, 404
LEAD_S = 600
"""Seconds before scheduled maintenance at which the signal goes out."""
STILL_TO_COME = ("active", "")
"""States of an event that is not over: EC2 user guide, "Scheduled events"."""

Ask = Callable[[str, str, Dict[str, str]], Tuple[int, str]]


class Notice(NamedTuple):
    """What EC2 said. key: the same for every look at one notice. at: when it happens, epoch seconds, None not known."""

    kind: str
    key: str
    at: Optional[float]


def asker(endpoint: str) -> Ask:
    """Requests to one service: status and text, status 0 without an answer."""
    parts = urlsplit(endpoint)

    def ask(method: str, path: str, headers: Dict[str, str]) -> Tuple[int, str]:
        try:
            connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=TIMEOUT_S)
            try:
                connection.request(method, "/latest/" + path, headers=headers)
                answer = connection.getresponse()
                return answer.status, answer.read(MAX_BYTES).decode("utf-8", "replace")
            finally:
                connection.close()
        except (OSError, ValueError, http.client.HTTPException) as error:
            return 0, f"{type(error).__name__}: {error}"

    return ask


class Metadata:
    """The metadata service with its session token."""

    def __init__(self, ask: Ask) -> None:
        self._ask, self._token = ask, ""

    def get(self, path: str) -> Tuple[int, str]:
        """Status and text of a path; a token that is no longer taken is replaced once."""
        for _ in range(2):
            if not self._token:
                lives = {"X-aws-ec2-metadata-token-ttl-seconds": str(TOKEN_TTL_S)}
                status, self._token = self._ask("PUT", "api/token", lives)
                if status != OK:
                    why, self._token = self._token, ""
                    return 0, f"no session token: {status or why}"
            status, text = self._ask("GET", path, {"X-aws-ec2-metadata-token": self._token})
            if status != UNAUTHORIZED:
                return status, text
            self._token = ""
        return status, text


def notices(metadata: Metadata) -> Iterator[Notice]:
    """What the service has now. Raises OSError when it does not answer: no notice is not the same as no answer."""
    for kind, path in (("spot", SPOT), ("rebalance", REBALANCE), ("maintenance", MAINTENANCE)):
        status, text = metadata.get(path)
        if status == OK:
            yield from _read(kind, text)
        elif status != NOT_FOUND:
            raise OSError(f"{path}: {f'HTTP status {status}' if status else text}")


def _read(kind: str, text: str) -> Iterator[Notice]:
    try:
        body = json.loads(text)
    except ValueError:
        body = None
    if kind == "maintenance":
        for one in body if isinstance(body, list) else [{"EventId": "unreadable"}]:
            event: Dict[str, Any] = one if isinstance(one, dict) else {}
            if str(event.get("State", "")).lower() in STILL_TO_COME:
                before = str(event.get("NotBefore", ""))
                yield Notice(kind, f"{event.get('EventId') or event.get('Code')} {before}", _epoch(before))
        return
    # A notice that cannot be read is one: a checkpoint too many costs seconds, one too few the work since the last.
    said: Dict[str, Any] = body if isinstance(body, dict) else {}
    when = str(said.get("time") or said.get("noticeTime") or "unreadable")
    yield Notice(kind, when, _epoch(when))


def _epoch(text: str) -> Optional[float]:
    """RFC 3339 as of spot notices, or "21 Jan 2026 09:00:43 GMT" as of events."""
    for form in ("%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S.%fZ", "%d %b %Y %H:%M:%S GMT"):
        try:
            return datetime.strptime(text, form).replace(tzinfo=timezone.utc).timestamp()
        except ValueError:
            continue
    return None


def due(notice: Notice, now: float) -> bool:
    """Whether training must save now: maintenance has days, everything else has not."""
    return notice.kind != "maintenance" or notice.at is None or notice.at - now <= LEAD_S


class Watch:
    """Signals once for each notice."""

    def __init__(self, metadata: Metadata, tell: Callable[[Notice], bool], say: Callable[[str], None]) -> None:
        self._metadata, self._tell, self._say = metadata, tell, say
        self._done: Dict[Tuple[str, str], bool] = {}
        self._silent = False

    def look(self, now: float) -> None:
        """One look; a signal that failed is tried again at the next."""
        try:
            found = [one for one in notices(self._metadata) if due(one, now)]
        except OSError as error:
            if not self._silent:
                self._say(f"the metadata service does not answer, so no notice can be seen: {error}")
            self._silent = True
            return
        if self._silent:
            self._say("the metadata service answers again")
        self._silent = False
        for notice in found:
            if not self._done.get((notice.kind, notice.key)):
                self._done[notice.kind, notice.key] = self._tell(notice)


def signaller(unit: str, signal: str, say: Callable[[str], None]) -> Callable[[Notice], bool]:
    """Sends the signal to the units, and says so."""
    argv = ["systemctl", "kill", "--kill-who=main", f"--signal={signal}", unit]
    said = set()

    def tell(notice: Notice) -> bool:
        try:
            ended = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False)
            why = f"failed: {ended.stderr.strip()[-200:]}" if ended.returncode else ""
        except (OSError, subprocess.TimeoutExpired) as error:
            why = f"failed: {error}"
        line = f"{notice.kind} notice ({notice.key}): {signal} to {unit} {why or 'sent'}"
        if line not in said:
            said.add(line)
            say(line)
        return not why

    return tell


def _say(line: str) -> None:
    sys.stderr.write(f"flightline-notice: {line}\n")
    sys.stderr.flush()


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Look until the end."""
    parser = argparse.ArgumentParser(
        "flightline-notice",
        description=(__doc__ or "").split("\n\n")[0],
        epilog="Example: flightline-notice --unit 'flightline-train@*.service' --signal SIGUSR1",
    )
    parser.add_argument("--unit", default="flightline-train@*.service", help="units to signal; %(default)s")
    parser.add_argument("--signal", default="SIGUSR1", help="%(default)s")
    parser.add_argument("--every-s", type=float, default=5.0, help="seconds between looks; %(default)s")
    parser.add_argument("--endpoint", default="http://169.254.169.254", help="%(default)s")
    given = parser.parse_args(arguments)
    watch = Watch(Metadata(asker(given.endpoint)), signaller(given.unit, given.signal, _say), _say)
    try:
        while True:
            watch.look(time.time())
            time.sleep(given.every_s)
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
