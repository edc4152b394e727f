"""Give training its checkpoint signal when EC2 or its group says that this instance will be taken away.

Asks the instance metadata service (version 2 only) every five seconds, as EC2's user guide advises for interruption
notices, and sends a signal to the main process of every unit that matches, once for each notice. A spot notice comes
two minutes before the end; rebalance advice earlier or never; maintenance is told days ahead and signalled just before.
A group that ends this instance says so in its target lifecycle state. Before a certain end, ending.py does the rest.
The end of a capacity block is in no metadata: the alert comes forty minutes before by EventBridge.
"""

from __future__ import annotations

import argparse
import json
import time
from datetime import datetime, timezone
from typing import Any, Callable, Dict, Iterator, NamedTuple, Optional, Sequence, Tuple

from ..ask.metadata import ENDPOINT, LIFECYCLE, MAINTENANCE, NOT_FOUND, OK, REBALANCE, SPOT, MetadataSession, said
from .ending import BOOT_ENV, Ending, EndingPlan
from .program import journal

PROGRAM = "flightline-notice"
TIMEOUT_S = 2.0
TOKEN_TTL_S = 21600
LEAD_S = 600
"""Seconds before scheduled maintenance at which the signal goes out."""
GROUP, ENDS = "group", frozenset({"group", "spot"})
"""The kind of notice by which the group waits, and those after which this instance is no more."""
TERMINATED = "Terminated"
"""Source: EC2 Auto Scaling user guide, "Retrieve the target lifecycle state through instance metadata"."""
STILL_TO_COME = ("active", "")
"""States of an event that is not over: EC2 user guide, "Scheduled events"."""


class Notice(NamedTuple):
    """What EC2 said. key: the same for every look at one notice. at: when it happens, epoch seconds, None not known."""

    kind: str
    key: str
    at: Optional[float]


def notices(metadata: MetadataSession) -> Iterator[Notice]:
    """What the service has now. Raises OSError when it does not answer: no notice is not the same as no answer."""
    asked = (("spot", SPOT), (GROUP, LIFECYCLE), ("rebalance", REBALANCE), ("maintenance", MAINTENANCE))
    for kind, path in asked:
        status, text = metadata.get(path)
        if status == OK:
            yield from _read(kind, text)
        elif status != NOT_FOUND:
            raise OSError(f"{path}: {said(status, text)}")


def _read(kind: str, text: str) -> Iterator[Notice]:
    if kind == GROUP:
        if text.strip() == TERMINATED:
            yield Notice(kind, TERMINATED, None)
        return
    try:
        body = json.loads(text)
    except ValueError:
        body = None
    if kind == "maintenance":
        for found in body if isinstance(body, list) else [{"EventId": "unreadable"}]:
            event: Dict[str, Any] = found if isinstance(found, dict) else {}
            if str(event.get("State", "")).lower() in STILL_TO_COME:
                before = str(event.get("NotBefore", ""))
                yield Notice(kind, f"{event.get('EventId') or event.get('Code')} {before}", _epoch(before))
        return
    # A notice that cannot be read is one: a checkpoint too many costs seconds, one too few the work since the last.
    one: Dict[str, Any] = body if isinstance(body, dict) else {}
    when = str(one.get("time") or one.get("noticeTime") or "unreadable")
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


class NoticeWatch:
    """Signals once for each notice. hold: asked at every look while the group waits for this node."""

    def __init__(
        self,
        metadata: MetadataSession,
        tell: Callable[[Notice], bool],
        say: Callable[[str], None],
        hold: Callable[[float], None] = lambda now: None,
    ) -> None:
        self._metadata, self._tell, self._say, self._hold = metadata, tell, say, hold
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
        if any(notice.kind == GROUP for notice in found):
            self._hold(now)


def teller(ending: Ending) -> Callable[[Notice], bool]:
    """Does what a notice asks for: everything before a certain end, else the signal alone."""

    def tell(notice: Notice) -> bool:
        about = f"{notice.kind} notice ({notice.key})"
        return ending.begin(about) if notice.kind in ENDS else ending.tell(about)

    return tell


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Look until the end."""
    parser = argparse.ArgumentParser(
        PROGRAM,
        description=(__doc__ or "").split("\n\n")[0],
        epilog="Example: flightline-notice --unit 'flightline-train@*.service' --signal SIGUSR1",
    )
    parser.add_argument("--unit", default="flightline-train@*.service", help="units to signal; %(default)s")
    parser.add_argument("--signal", default="SIGUSR1", help="%(default)s")
    parser.add_argument("--slurm-node", default="", help="this node's name in Slurm; unless given, by its host name")
    parser.add_argument("--slurm-jobs", default="", help="names of Slurm jobs to signal, with commas")
    parser.add_argument("--group", default="", help="Auto Scaling group that waits for this node")
    parser.add_argument("--hook", default="", help="the group's termination hook")
    parser.add_argument("--limit-s", type=float, default=0.0, help="seconds that jobs may keep the node; %(default)s")
    parser.add_argument("--boot-env", default=BOOT_ENV, help="where the stack says where words go; %(default)s")
    parser.add_argument("--every-s", type=float, default=5.0, help="seconds between looks; %(default)s")
    parser.add_argument("--endpoint", default=ENDPOINT, help="%(default)s")
    given = parser.parse_args(arguments)
    say = journal(PROGRAM)
    metadata = MetadataSession(given.endpoint, TOKEN_TTL_S, TIMEOUT_S)
    names = (given.slurm_node, given.slurm_jobs, given.group, given.hook)
    ending = Ending(EndingPlan(given.unit, given.signal, *names, given.limit_s, given.boot_env), metadata, say)
    watch = NoticeWatch(metadata, teller(ending), say, ending.hold)
    try:
        while True:
            watch.look(time.time())
            time.sleep(given.every_s)
    except KeyboardInterrupt:
        return 130
