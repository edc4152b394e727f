"""The nodes are asked by a launcher: who is asked what, until when, and what is kept of each.

From a node's answer on everything is the same whoever asked: the gate, the store, the judgement, the report.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from flightline_node.model import SettingsError

from ..store import sqlite as stores
from ..store.replies import record_of
from ..store.rows import absent_record
from ..store.run_rows import RunRows
from . import background
from .calls import Call, read
from .launchers import HostReply, Launcher
from .live import answer_of
from .play import INTERRUPTED, Follow

MARGIN_S = 30.0
"""For the launcher to start everywhere, above the nodes' own deadline."""


@dataclass(frozen=True)
class PreparedRun:
    """A run before anybody is asked. hosts: those of the inventory. rows: of nodes that nobody listed."""

    run: stores.Run
    calls: Sequence[Call]
    hosts: Mapping[str, stores.ExpectedHost]
    rows: Sequence[stores.Record]

    @property
    def deadline_s(self) -> int:
        """Of the slowest node."""
        return max((int(call.params["timeout_s"]) for call in self.calls), default=0)


def prepared(run_id: str, inventory: str, follow: Follow, launcher: Launcher, in_part: bool) -> PreparedRun:
    """Who is to be asked what, by a valid inventory and by what the launcher knows. in_part: by a limit.

    Raises SettingsError, LaunchError.
    """
    groups = read(follow.validated["calls"], secrets.token_hex(32))
    calls = [replace(call, name=launcher.known_as(call)) for call in groups]
    unlisted = {} if in_part else launcher.unlisted(calls)
    _refuse_twins(calls)
    hosts = {name: stores.ExpectedHost(name, **_identity(one)) for name, one in follow.hosts.items()}
    listed = {one["host"]: one for one in follow.validated.get("absent") or ()}
    absent = {name: one["message"] for name, one in listed.items()}
    absent.update({name: f"{said}; it is no host of the inventory" for name, said in unlisted.items()})
    lacking = [
        stores.ExpectedHost(name, listed.get(name, {}).get("instance_type", "")) for name in absent if name not in hosts
    ]
    started = stores.Run(run_id, stores.now_stamp(), follow.level, inventory, (*hosts.values(), *lacking))
    own = [absent_record(host, absent[host.host]) for host in lacking]
    return PreparedRun(started, calls, hosts, own)


@dataclass
class AskedRun:
    """What is known of a run while nodes answer, told by the launcher's threads, and when all were asked.

    interrupted: or given up. broken: why the asking did not end in order.
    """

    rows: RunRows
    follow: Follow
    calls: Mapping[str, Call] = field(default_factory=dict)
    hosts: Mapping[str, stores.ExpectedHost] = field(default_factory=dict)
    interrupted: bool = False
    broken: str = ""
    given_up: set[str] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def on_reply(self, one: HostReply) -> None:
        """Keep what came of a host; its first word counts, and an answer after it was given up is kept as late."""
        record = record_of(self.hosts[one.host], self.calls[one.host].params, one, self.rows.run.started_at)
        with self.lock:
            if one.host in self.given_up and one.answer is not None:
                self.given_up.discard(one.host)
                self.rows.put_late_record(record)
            if self.rows.awaits(one.host):
                self.rows.put(record)
                self.follow.tell(lambda watcher: watcher.answer(answer_of(record)))


def ask(made: PreparedRun, rows: RunRows, follow: Follow, launcher: Launcher) -> AskedRun:
    """Ask everybody, until each was told of or the deadline is over: then every host has a row."""
    state = AskedRun(rows, follow, {call.host: call for call in made.calls}, made.hosts)
    until = time.monotonic() + made.deadline_s + MARGIN_S
    work = background.begin(lambda: launcher.ask(made.calls, made.run.run_id, until, state.on_reply))
    why = "no answer before the deadline"
    with background.ending_as_interrupt():
        try:
            work.wait(until + MARGIN_S - time.monotonic())
        except KeyboardInterrupt:
            why, state.interrupted = INTERRUPTED, True
            background.ignore_interrupts()
    launcher.stop()
    work.wait(MARGIN_S)
    state.broken = (str(work.broken) or type(work.broken).__name__) if work.broken else ""
    for name in sorted(rows.missing()):
        state.given_up.add(name)
        state.on_reply(HostReply(name, trouble=f"{state.broken or why} (asked: {launcher.how})", lost=True))
    return state


def _identity(one: Mapping[str, str]) -> dict[str, str]:
    return {name: one.get(name, "") for name in ("instance_id", "instance_type", "place", "address")}


def _refuse_twins(calls: Sequence[Call]) -> None:
    seen: dict[str, str] = {}
    for call in calls:
        other = seen.setdefault(call.name, call.host)
        if other != call.host:
            raise SettingsError(
                f"saw {call.name} as the launcher's name of {other} and {call.host}; wanted one host for each; "
                "do: give each its own (slurm_node_name, instance_id)"
            )
