"""A preflight by a launcher in place of Ansible: Ansible reads the inventory, the launcher asks the nodes.

From a node's answer on everything is the same: the gate, the store, the judgement, the report, the exit status.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from flightline_node.model import SettingsError

from ..store import sqlite as stores
from ..store.replies import record_of
from ..store.rows import absent_record
from ..store.run_rows import RunRows
from . import background, late_answers, playbooks
from . import calls as asking
from . import conclude as ending
from .launchers import HostReply, Launcher, LaunchError
from .live import answer_of
from .preflight import (
    INTERRUPTED,
    CannotRunError,
    Follow,
    Request,
    RunObserver,
    ending_as_interrupt,
    start,
    test_together,
    wait,
    why_not,
)

MARGIN_S = 30.0
"""For the launcher to start everywhere, above the nodes' own deadline."""


@dataclass
class _LaunchedRun:
    """What is known of a run while nodes answer. Told by the launcher's threads."""

    rows: RunRows
    watcher: RunObserver
    calls: Mapping[str, asking.Call]
    hosts: Mapping[str, stores.ExpectedHost]
    interrupted: bool = False
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
                self.watcher.answer(answer_of(record))


def run(request: Request, launcher: Launcher, watcher: RunObserver) -> ending.Conclusion:
    """Run a preflight to its end.

    Raises CannotRunError when no node was judged because of the tool, SettingsError for what cannot be asked.
    """
    run_id, follow = stores.new_run_id(), Follow(watcher)
    try:
        return _asked(request, prepared(request, run_id, follow, launcher), follow, launcher)
    except LaunchError as error:
        raise CannotRunError(str(error)) from error
    except KeyboardInterrupt:
        raise CannotRunError(f"interrupted before the end; what was measured: flightline report {run_id}") from None


def _validated(request: Request, run_id: str, follow: Follow) -> list[dict[str, Any]]:
    """What each host is asked, from the inventory. Raises CannotRunError for one that cannot be judged as it is."""
    with playbooks.workplace("run") as place:
        asked = replace(request, extra={**request.extra, "flightline_calls": True})
        work, runner = start(asked, run_id, place, follow, "validate")
        if wait(work, follow):
            raise CannotRunError("interrupted before a node was asked")
        if follow.refused or not follow.validated:
            raise CannotRunError(follow.refused or why_not(runner, playbooks.sources(request.inventory), place))
        return list(follow.validated["calls"])


@dataclass(frozen=True)
class PreparedRun:
    """A run before anybody is asked. hosts: those of the inventory. rows: of nodes that nobody listed."""

    run: stores.Run
    calls: Sequence[asking.Call]
    hosts: Mapping[str, stores.ExpectedHost]
    rows: Sequence[stores.Record]

    @property
    def deadline_s(self) -> int:
        """Of the slowest node."""
        return max((int(call.params["timeout_s"]) for call in self.calls), default=0)


def prepared(request: Request, run_id: str, follow: Follow, launcher: Launcher) -> PreparedRun:
    """Who is to be asked what, by the inventory and by what the launcher knows.

    Raises CannotRunError, SettingsError, LaunchError.
    """
    groups = _validated(request, run_id, follow)
    calls = [replace(call, name=launcher.known_as(call)) for call in asking.read(groups, secrets.token_hex(32))]
    unlisted = {} if request.limit else launcher.unlisted(calls)
    _refuse_twins(calls)
    hosts = {name: stores.ExpectedHost(name, **_identity(one)) for name, one in follow.hosts.items()}
    listed = {one["host"]: one for one in follow.validated.get("absent") or ()}
    absent = {name: one["message"] for name, one in listed.items()}
    absent.update({name: f"{said}; it is no host of the inventory" for name, said in unlisted.items()})
    lacking = [
        stores.ExpectedHost(name, listed.get(name, {}).get("instance_type", "")) for name in absent if name not in hosts
    ]
    sources = ", ".join(playbooks.sources(request.inventory))
    started = stores.Run(run_id, stores.now_stamp(), follow.level, sources, (*hosts.values(), *lacking))
    own = [absent_record(host, absent[host.host]) for host in lacking]
    return PreparedRun(started, calls, hosts, own)


def _asked(request: Request, made: PreparedRun, follow: Follow, launcher: Launcher) -> ending.Conclusion:
    started, run_id = made.run, made.run.run_id
    rows = RunRows(request.store, started)
    rows.open()
    for record in made.rows:
        rows.put(record)
    calls = {call.host: call for call in made.calls}
    state = _LaunchedRun(rows, follow.watcher, calls, made.hosts)
    given_up = _until_told(state, launcher, run_id, made.deadline_s)
    late_answers.leave_note(
        request.store, started, [calls[name] for name in sorted(state.given_up)], launcher.answers_at
    )
    if not given_up and not state.interrupted:
        with ending_as_interrupt():
            test_together(request, rows)
    directory = ending.report_dir(request.store, run_id, request.report_dir)
    outcome = ending.conclude(rows, directory, request.json_path, given_up)
    ending.publish(outcome, request.store, follow.publish)
    return outcome


def _until_told(state: _LaunchedRun, launcher: Launcher, run_id: str, deadline_s: int) -> str:
    """Wait until every host was told of or its deadline is over; returns what broke, or ""."""
    until = time.monotonic() + deadline_s + MARGIN_S
    work = background.begin(lambda: launcher.ask(list(state.calls.values()), run_id, until, state.on_reply))
    why = "no answer before the deadline"
    with ending_as_interrupt():
        try:
            work.wait(until + MARGIN_S - time.monotonic())
        except KeyboardInterrupt:
            why, state.interrupted = INTERRUPTED, True
    launcher.stop()
    work.wait(MARGIN_S)
    broken = (str(work.broken) or type(work.broken).__name__) if work.broken else ""
    for name in sorted(state.rows.missing()):
        state.given_up.add(name)
        state.on_reply(HostReply(name, trouble=f"{broken or why} (asked: {launcher.how})", lost=True))
    return broken


def _identity(one: Mapping[str, str]) -> dict[str, str]:
    return {name: one.get(name, "") for name in ("instance_id", "instance_type", "place", "address")}


def _refuse_twins(calls: Sequence[asking.Call]) -> None:
    seen: dict[str, str] = {}
    for call in calls:
        other = seen.setdefault(call.name, call.host)
        if other != call.host:
            raise SettingsError(
                f"saw {call.name} as the launcher's name of {other} and {call.host}; wanted one host for each; "
                "do: give each its own (slurm_node_name, instance_id)"
            )


__all__ = ["PreparedRun", "prepared", "run"]
