"""AWS's own host names, with TLS, in front of the emulator; and the launch hook of a group, which the emulator lacks.

What goes to S3 is passed on unchanged; nothing else is there for a node. CompleteLifecycleAction, which the alert router asks
for, is done by the model of a hook below, after the Auto Scaling user guide ("How lifecycle hooks work"): an instance waits
until somebody completes the action or the time since launch is over; CONTINUE puts it into service, everything else ends it.
"""

import http.client
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tests.served import Answering, Serving

PORT = 443
HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "date", "server", "content-length"})


@dataclass
class Hook:
    """The launch hook of one group. ended: is told of an instance whose launch was given up, as EC2 ends it at once."""

    ended: Callable[[str], None]
    limit_s: float = 1200.0
    deadlines: dict[str, float] = field(default_factory=dict)
    state: dict[str, str] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)

    def launch(self, instance: str) -> None:
        """An instance begins to wait."""
        self.calls.clear()
        self.state[instance] = "Pending:Wait"
        self.deadlines[instance] = time.monotonic() + self.limit_s

    def completed(self, given: Mapping[str, str]) -> None:
        """What the router asked for, and the group took."""
        self.calls.append(given["LifecycleActionResult"])
        self._end(given["InstanceId"], given["LifecycleActionResult"])

    def expire(self) -> None:
        """Give up what waited too long: the hook's default result."""
        for instance, deadline in list(self.deadlines.items()):
            if self.state[instance] == "Pending:Wait" and time.monotonic() > deadline:
                self.calls.append("timeout")
                self._end(instance, "ABANDON")

    def _end(self, instance: str, result: str) -> None:
        del self.deadlines[instance]
        self.state[instance] = "InService" if result == "CONTINUE" else "Terminated"
        if result != "CONTINUE":
            self.ended(instance)


class Request(Answering):
    """One request of a node."""

    protocol_version = "HTTP/1.1"
    hook: Hook
    emulator: int
    refused: set[str]

    def _answer(self) -> None:
        body = self.given()
        host = self.headers["Host"]
        if not host.startswith("s3.") and ".s3." not in host:
            self.say(403, b"<Error><Code>AccessDenied</Code></Error>")
            return
        key = unquote(urlsplit(self.path).path)
        self.hook.calls.append(f"{self.command} {key}")
        if any(word in key for word in self.refused):
            self.say(403, b"<Error><Code>AccessDenied</Code></Error>")
            return
        there = http.client.HTTPConnection("127.0.0.1", self.emulator, timeout=60)
        there.request(self.command, self.path, body or None, dict(self.headers.items()))
        answer = there.getresponse()
        given = dict(answer.getheaders())
        back = {key: value for key, value in given.items() if key.lower() not in HOP_BY_HOP}
        length = {"Content-Length": given.get("Content-Length", "0")} if self.command == "HEAD" else {}
        self.say(answer.status, answer.read(), {**back, **length})
        there.close()

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _answer


class Front:
    """The server on an address of the bed. refused: parts of S3 keys that nobody may read or write."""

    def __init__(self, address: str, certificate: Path, hook: Hook, emulator: int) -> None:
        self.refused: set[str] = set()
        members = {"hook": hook, "emulator": emulator, "refused": self.refused}
        self.close = Serving(type("Handler", (Request,), members), certificate, address=address, port=PORT).close
