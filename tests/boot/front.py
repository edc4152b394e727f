"""AWS's own host names, with TLS, in front of the emulator; and the launch hook of a group, which the emulator lacks.

What goes to S3 is passed on unchanged. RecordLifecycleActionHeartbeat and CompleteLifecycleAction are answered by the model
of a hook below, after the Auto Scaling user guide ("How lifecycle hooks work"): an instance waits until somebody completes
the action or the time since launch or the last beat is over; CONTINUE puts it into service, everything else ends it.
"""

import http.client
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from tests.served import Answering, Serving

PORT = 443
HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "date", "server", "content-length"})
_NAMESPACE = "http://autoscaling.amazonaws.com/doc/2011-01-01/"


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

    def act(self, action: str, given: dict[str, str]) -> str:
        """Take a call; returns an error's text, or nothing."""
        instance = given.get("InstanceId", "")
        if self.state.get(instance) != "Pending:Wait":
            return f"No active Lifecycle Action found with instance ID {instance}"
        if action == "RecordLifecycleActionHeartbeat":
            self.calls.append("heartbeat")
            self.deadlines[instance] = time.monotonic() + self.limit_s
            return ""
        self.calls.append(given["LifecycleActionResult"])
        self._end(instance, given["LifecycleActionResult"])
        return ""

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
        if host.startswith("autoscaling."):
            self._autoscaling({key: found[0] for key, found in parse_qs(body.decode()).items()})
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

    def _autoscaling(self, given: dict[str, str]) -> None:
        action = given.get("Action", "")
        trouble = self.hook.act(action, given)
        if trouble:
            text = f"<Error><Type>Sender</Type><Code>ValidationError</Code><Message>{trouble}</Message></Error>"
            self.say(400, f'<ErrorResponse xmlns="{_NAMESPACE}">{text}</ErrorResponse>'.encode())
            return
        self.say(200, f'<{action}Response xmlns="{_NAMESPACE}"><{action}Result/></{action}Response>'.encode())


class Front:
    """The server on an address of the bed. refused: parts of S3 keys that nobody may read or write."""

    def __init__(self, address: str, certificate: Path, hook: Hook, emulator: int) -> None:
        self.refused: set[str] = set()
        members = {"hook": hook, "emulator": emulator, "refused": self.refused}
        self.close = Serving(type("Handler", (Request,), members), certificate, address=address, port=PORT).close
