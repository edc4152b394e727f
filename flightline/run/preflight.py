"""Run playbooks/preflight.yml through ansible-runner, follow it, and conclude the run.

The inner playbook's callback keeps the results; this side shows progress and ends the run, also when the
playbook was interrupted or broke half-way: what was measured is judged.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from flightline_node.model import SettingsError

from ..console import DEBUG_ENV, EXIT_BROKEN
from ..store import sqlite as stores
from ..store.run_rows import FOLDER_ENV, RunRows
from . import ansible_errors, background, live, no_verdict, playbooks, process_tree
from . import conclude as ending
from .background import Background
from .live import HostOutcome
from .places import REPORT_ENV

VALIDATE_TASK = "flightline_validate"
LIVE_FILE = "live.jsonl"
POLL_S = 0.2
OVERDUE_S = 30.0
"""Every host's deadline has passed and Ansible still runs: the run is ended and judged."""
INTERRUPT_GRACE_S = 5.0
INTERRUPTED = "it was interrupted"
NO_VERDICT_FILE = "no-verdict"
"""In the workplace of a run: how the guard of its exit status ended it."""


class CannotRunError(RuntimeError):
    """The preflight itself could not run; the text says why."""


class LauncherWantedError(Exception):
    """The inventory names a launcher (flightline_via): no node was asked yet."""

    def __init__(self, via: str) -> None:
        super().__init__(via)
        self.via = via


Together = Callable[[stores.Run, stores.Store], "stores.Record | None"]
"""A run and its store -> the record of what the nodes show together."""


@dataclass(frozen=True)
class Request:
    """What to run. extra: variables for every host, above the inventory's. timeout_s: of each host; 0 as they say.

    together: what tests the nodes together once each was judged, and gives a record of it or nothing.
    """

    inventory: tuple[str, ...] = ()
    limit: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    store: Path = field(default_factory=stores.default_path)
    report_dir: Path | None = None
    forks: int = 0
    timeout_s: int = 0
    json_path: Path | None = None
    together: Together | None = None


class RunObserver(Protocol):
    """Who is told how the run goes."""

    def expect(self, hosts: Sequence[str], ends_at: float | None) -> None:
        """The inventory is in order and has these hosts.

        ends_at: time.time() at which the run has ended at the latest; None when it has no deadline.
        """

    def begin(self, host: str) -> None:
        """A host is asked now."""

    def answer(self, answer: HostOutcome) -> None:
        """A host ended."""


@dataclass
class Follow:
    """What is known of a run while it goes, from its own lines. pid: of the ansible-playbook process, once it spoke."""

    watcher: RunObserver
    lines: live.LiveLines | None = None
    pid: int = 0
    refused: str = ""
    via: str = ""
    hosts: dict[str, dict[str, str]] = field(default_factory=dict)
    level: str = "quick"
    publish: Any = None
    started_at: str = field(default_factory=stores.now_stamp)
    stop: threading.Event = field(default_factory=threading.Event)
    ends_at: float = 0.0
    deaf: bool = False
    trouble: str = ""
    validated: Mapping[str, Any] = field(default_factory=dict)

    def event(self, event: Mapping[str, Any]) -> bool:
        """Take the process's number from an event of the runner; False, because nobody needs its file.

        And why validation broke off where it could not say so itself. Never raises: that would end the runner's thread.
        """
        with suppress(AttributeError, TypeError, ValueError):
            self.pid = int(event.get("pid") or self.pid)
            data = event.get("event_data") or {}
            task = str(data.get("task_action")).rpartition(".")[2]
            if task == VALIDATE_TASK and event.get("event") == "runner_on_failed":
                self.refused = self.refused or str(data.get("res", {}).get("msg") or "no message")
        return False

    def listen(self) -> None:
        """Take what the run has said since the last time. Never raises."""
        try:
            for kind, what in self.lines.new() if self.lines else ():
                self._hear(kind, what)
        except Exception as error:
            self.trouble = self.trouble or f"a line was not understood: {type(error).__name__}: {error}"

    def _hear(self, kind: str, what: Any) -> None:
        if kind == live.VALIDATED:
            self.validated = what
            self.hosts = dict(what.get("hosts") or {})
            self.level = str(what.get("level") or self.level)
            self.publish = what.get("publish")
            self.ends_at = float(what.get("ends_at") or 0)
            self._tell(lambda watcher: watcher.expect(tuple(self.hosts), self.ends_at or None))
        elif kind == live.REFUSED:
            self.refused, self.via = str(what["msg"]), str(what.get("via") or "")
        elif kind == live.BEGUN:
            self._tell(lambda watcher: watcher.begin(str(what)))
        elif kind == live.ANSWERED and what["host"] in self.hosts:  # else of a node that nobody listed
            self._tell(lambda watcher: watcher.answer(live.outcome_in(what)))

    def _tell(self, say: Callable[[RunObserver], None]) -> None:
        """A terminal that is gone must not end the run."""
        if not self.deaf:
            try:
                say(self.watcher)
            except (OSError, ValueError):
                self.deaf = True


def run(request: Request, watcher: RunObserver) -> ending.Conclusion:
    """Run a preflight to its end.

    Raises CannotRunError when no node was judged because of the tool, SettingsError without playbooks or inventory.
    """
    run_id = stores.new_run_id()
    follow = Follow(watcher)
    look = f"run {run_id} has no verdict; what was measured: flightline report {run_id}"
    try:
        with playbooks.workplace("run") as place:
            work, runner = start(request, run_id, place, follow)
            given_up = wait(work, follow)
            if work.broken and not given_up:
                follow.trouble = follow.trouble or f"ansible-runner broke off: {background.why(work.broken)}"
            return _end(request, run_id, place, runner, follow, given_up)
    except (CannotRunError, LauncherWantedError, SettingsError):
        raise
    except KeyboardInterrupt:
        raise CannotRunError(f"interrupted before the end; {look}") from None
    except Exception as error:
        if os.environ.get(DEBUG_ENV):
            raise
        text = f"internal error: {type(error).__name__}: {error} ({DEBUG_ENV}=1 shows where)"
        raise CannotRunError(f"{text}; {look}") from error


def start(
    request: Request, run_id: str, place: Path, follow: Follow, playbook: str = "preflight"
) -> tuple[Background, Any]:
    """Start a playbook; returns the runner's work and the runner."""
    own = playbooks.find()
    arguments = [part for source in playbooks.sources(request.inventory) for part in ("-i", playbooks.absolute(source))]
    if request.forks:
        arguments += ["--forks", str(request.forks)]
    follow.lines = live.LiveLines(place / LIVE_FILE)
    timeout = {"flightline_timeout_s": request.timeout_s} if request.timeout_s else {}
    for name, value in {**request.extra, **timeout}.items():
        arguments += ["-e", _extra(name, value)]
    if request.limit:
        arguments += ["--limit", request.limit]
    return background.play(
        private_data_dir=str(place),
        project_dir=str(own.root),
        playbook=str(own.playbook(playbook)),
        cmdline=shlex.join(arguments),
        envvars=_environment(request, run_id, own, place),
        event_handler=follow.event,
        only_failed_event_data=True,
        quiet=True,
        # Its own would catch Ctrl-C, kill ansible-playbook alone and leave the nodes' processes running.
        cancel_callback=follow.stop.is_set,
    )


def _extra(name: str, value: Any) -> str:
    return json.dumps({name: value})


def _environment(request: Request, run_id: str, own: playbooks.Playbooks, place: Path) -> dict[str, str]:
    reports = ending.report_dir(request.store, run_id, request.report_dir)
    return {
        **playbooks.environment(own),
        # ansible-runner puts its own directory here.
        **({"ANSIBLE_CALLBACK_PLUGINS": str(own.callbacks)} if own.callbacks else {}),
        "FLIGHTLINE_SUMMARY": "off",
        stores.RUN_ID_ENV: run_id,
        stores.STORE_ENV: str(request.store),
        # From where the user stands, because Ansible runs where the playbooks are.
        **({REPORT_ENV: str(reports)} if request.report_dir or os.environ.get(REPORT_ENV) else {}),
        no_verdict.FILE_ENV: str(place / NO_VERDICT_FILE),
        FOLDER_ENV: str(place),
        live.LIVE_ENV: str(place / LIVE_FILE),
    }


def wait(work: Background, follow: Follow) -> str:
    """Wait for the playbook; returns why it was given up, or "".

    On Ctrl-C, SIGTERM, a hang-up, or when every deadline has long passed, it and its children are ended first. A second
    Ctrl-C changes nothing: what was measured is judged.
    """
    why = ""
    with ending_as_interrupt():
        try:
            while not work.wait(POLL_S):
                follow.listen()
                if follow.ends_at and time.time() > follow.ends_at + OVERDUE_S:
                    why = "it was still running when every host's deadline had passed"
                    break
            else:
                follow.listen()
                return ""
        except KeyboardInterrupt:
            why = INTERRUPTED
        with _deaf_to_signals():
            _stop(work, follow)
            follow.listen()
    if why == INTERRUPTED:
        # Until the process ends: what comes now is the verdict, and a Ctrl-C more would cost it. SIGTERM still ends it.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return why


def _stop(work: Background, follow: Follow) -> None:
    if follow.pid:
        # Not the runner's own cancelling: it kills ansible-playbook alone, whose workers lead process groups
        # of their own and would go on. Nor does ansible-playbook always end them when it is interrupted.
        below = process_tree.descendants(follow.pid)
        with suppress(OSError):
            os.kill(follow.pid, signal.SIGINT)
        work.wait(INTERRUPT_GRACE_S)
        process_tree.end_with_sessions(below)
    follow.stop.set()
    work.wait(INTERRUPT_GRACE_S)


@contextmanager
def _deaf_to_signals() -> Iterator[None]:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def ending_as_interrupt() -> Iterator[None]:
    """SIGTERM and a hang-up as Ctrl-C."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    # What is ignored stays so: nohup does that to the hang-up.
    wanted = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, interrupt) for number in wanted}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(request: Request, run_id: str, place: Path, runner: Any, follow: Follow, given_up: str) -> ending.Conclusion:
    if follow.via:
        raise LauncherWantedError(follow.via)
    if follow.refused:
        raise CannotRunError(follow.refused)
    rows = RunRows.find(request.store, run_id, place, create=bool(follow.hosts))
    if rows is None:
        raise CannotRunError(why_not(runner, playbooks.sources(request.inventory), place))
    directory = ending.report_dir(request.store, run_id, request.report_dir)
    # 2 is the callback's guard: hosts that fail do not end a play.
    broken = _broken(runner, place) if runner.rc == EXIT_BROKEN and not given_up else ""
    if request.together and not broken and not given_up:
        with ending_as_interrupt():
            test_together(request, rows)
    outcome = ending.conclude(rows, directory, request.json_path, broken)
    if follow.trouble:
        outcome.troubles.append(follow.trouble)
    ending.publish(outcome, request.store, follow.publish)
    return outcome


def test_together(request: Request, rows: RunRows) -> None:
    """Keep what the nodes show together beside their own records."""
    record = request.together(rows.run, rows.read()) if request.together else None
    if record is not None:
        rows.put(record)


def _broken(runner: Any, place: Path) -> str:
    """Why the playbook has no verdict, in the guard's words or Ansible's."""
    own = _guards_words(place).partition(no_verdict.MARK)[2]
    return own or ansible_errors.why(runner.stdout.read().splitlines()) or "ansible-playbook did not end in order"


def _guards_words(place: Path) -> str:
    """Not from what ansible-playbook printed: ansible-runner can lose the end of it."""
    with suppress(OSError):
        return (place / NO_VERDICT_FILE).read_text(encoding="utf-8")
    return ""


def why_not(runner: Any, sources: Iterable[str], place: Path) -> str:
    """The guard's sentence and what Ansible itself said, its errors first; it prints them without an event."""
    gone = [source for source in sources if no_verdict.missing(source)]
    if gone:
        return no_verdict.no_inventory(gone[0])
    own, said = _guards_words(place), ansible_errors.why(runner.stdout.read().splitlines())
    if own and said:
        return f"{own} (Ansible said: {said})"
    return own or said or f"ansible-playbook ended with status {runner.rc} before any node was judged"
