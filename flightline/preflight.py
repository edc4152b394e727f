"""Run playbooks/preflight.yml through ansible-runner, follow it, and conclude the run.

The inner playbook's callback keeps the results; this side shows progress and ends the run, also when the
playbook was interrupted or broke half-way: what was measured is judged.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import ansible_runner

from flightline_node.model import Status

from . import ansible_says, processes
from . import conclude as ending
from . import store as stores
from .causes import troubles
from .cli import DEBUG_ENV
from .intake import STAMP, is_go
from .recorder import broken_record, unreachable_record

ROOT = Path(__file__).resolve().parents[1]
PLAYBOOK = ROOT / "playbooks" / "preflight.yml"
INVENTORY_ENV = "FLIGHTLINE_INVENTORY"
DEFAULT_INVENTORY = ROOT / "inventory" / "demo"
NODE_TASK = "flightline_node"
VALIDATE_TASK = "flightline_validate"
POLL_S = 0.2
OVERDUE_S = 30.0
"""Every host's deadline has passed and Ansible still runs: the run is ended and judged."""
INTERRUPT_GRACE_S = 5.0
INTERRUPTED = "it was interrupted"
KILL_GRACE_S = 1.0


class CannotRunError(RuntimeError):
    """The preflight itself could not run; the text says why."""


@dataclass(frozen=True)
class Request:
    """What to run. extra: variables for every host, above the inventory's. timeout_s: of each host; 0 as they say."""

    inventory: tuple[str, ...] = ()
    limit: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    store: Path = field(default_factory=stores.default_path)
    report_dir: Path | None = None
    forks: int = 0
    timeout_s: int = 0
    json_path: Path | None = None


@dataclass(frozen=True)
class Answer:
    """One host as it ends. why: the root causes of what blocks it, most urgent first."""

    host: str
    go: bool
    status: Status
    seconds: float
    why: list[str]


class Watcher(Protocol):
    """Who is told how the run goes; called from the runner's thread."""

    def expect(self, hosts: Sequence[str], ends_at: float | None) -> None:
        """The inventory is in order and has these hosts.

        ends_at: time.time() at which the run has ended at the latest; None when it has no deadline.
        """

    def begin(self, host: str) -> None:
        """A host is asked now."""

    def answer(self, answer: Answer) -> None:
        """A host ended."""


@dataclass
class _Follow:
    """Reads ansible-runner's events. pid: of the ansible-playbook process, once it spoke."""

    watcher: Watcher
    pid: int = 0
    refused: str = ""
    hosts: dict[str, dict[str, str]] = field(default_factory=dict)
    level: str = "quick"
    publish: Any = None
    started_at: str = field(default_factory=stores.now_stamp)
    stop: threading.Event = field(default_factory=threading.Event)
    ends_at: float = 0.0
    deaf: bool = False
    trouble: str = ""

    def event(self, event: Mapping[str, Any]) -> bool:
        """Take one event; True keeps its file, from which a lost row can be recovered.

        Never raises: that would end the runner's thread, and with it the run.
        """
        try:
            return self._event(event)
        except Exception as error:
            self.trouble = self.trouble or f"an event was not understood: {type(error).__name__}: {error}"
            return True

    def _event(self, event: Mapping[str, Any]) -> bool:
        self.pid = int(event.get("pid") or self.pid)
        kind, data = str(event.get("event")), event.get("event_data") or {}
        if not kind.startswith("runner_on_"):
            return False
        task = str(data.get("task_action")).rpartition(".")[2]
        if task == VALIDATE_TASK and kind == "runner_on_ok":
            self.hosts = dict(data.get("res", {}).get("hosts") or {})
            self.level = str(data.get("res", {}).get("level") or self.level)
            self.publish = data.get("res", {}).get("publish")
            self.ends_at = float(data.get("res", {}).get("ends_at") or 0)
            self._tell(lambda watcher: watcher.expect(tuple(self.hosts), self.ends_at or None))
        elif task == VALIDATE_TASK and kind == "runner_on_failed":
            self.refused = str(data.get("res", {}).get("msg") or "no message")
        elif task == NODE_TASK and kind == "runner_on_start":
            self._tell(lambda watcher: watcher.begin(str(data.get("host"))))
        record = _record(kind, data) if task == NODE_TASK else None
        if record:
            self._tell(lambda watcher: watcher.answer(_answer(record)))
        return record is not None

    def _tell(self, say: Callable[[Watcher], None]) -> None:
        """A terminal that is gone must not end the runner's thread, and with it the run."""
        if not self.deaf:
            try:
                say(self.watcher)
            except (OSError, ValueError):
                self.deaf = True


def _record(kind: str, data: Mapping[str, Any]) -> stores.Record | None:
    host, res = stores.Host(str(data.get("host"))), data.get("res") or {}
    if kind == "runner_on_unreachable":
        return unreachable_record(host, str(res.get("msg") or ""))
    if kind == "runner_on_failed":
        return broken_record(host, str(res.get("msg") or ""))
    if kind == "runner_on_ok":
        record = res.get("record")
        if isinstance(record, dict) and STAMP in record:  # the action plugin has let it through the gate
            return {**record, "host": host.host}
        return broken_record(host, "the module returned no record that has passed the gate")
    return None


def _answer(record: stores.Record) -> Answer:
    return Answer(
        record["host"],
        is_go(record),
        stores.worst_of(record),
        float(record.get("seconds") or 0),
        [trouble.said for trouble in troubles(record.get("findings", []))],
    )


def run(request: Request, watcher: Watcher) -> ending.Outcome:
    """Run a preflight to its end. Raises CannotRunError when no node was judged because of the tool."""
    run_id = stores.new_run_id()
    follow = _Follow(watcher)
    look = f"run {run_id} has no verdict; what was measured: flightline report {run_id}"
    try:
        with _workplace() as place:
            thread, runner = _start(request, run_id, place, follow)
            given_up = _wait(thread, follow)
            return _end(request, run_id, runner, follow, given_up)
    except CannotRunError:
        raise
    except KeyboardInterrupt:
        raise CannotRunError(f"interrupted before the end; {look}") from None
    except Exception as error:
        if os.environ.get(DEBUG_ENV):
            raise
        text = f"internal error: {type(error).__name__}: {error} ({DEBUG_ENV}=1 shows where)"
        raise CannotRunError(f"{text}; {look}") from error


@contextmanager
def _workplace() -> Iterator[Path]:
    place = Path(tempfile.mkdtemp(prefix="flightline-run-"))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _start(request: Request, run_id: str, place: Path, follow: _Follow) -> tuple[threading.Thread, Any]:
    arguments = [part for source in _sources(request) for part in ("-i", _absolute(source))]
    if request.forks:
        arguments += ["--forks", str(request.forks)]
    timeout = {"flightline_timeout_s": request.timeout_s} if request.timeout_s else {}
    for name, value in {**request.extra, **timeout}.items():
        arguments += ["-e", _extra(name, value)]
    if request.limit:
        arguments += ["--limit", request.limit]
    thread, runner = ansible_runner.run_async(
        private_data_dir=str(place),
        project_dir=str(ROOT),
        playbook=str(PLAYBOOK),
        cmdline=shlex.join(arguments),
        envvars=_environment(request, run_id),
        event_handler=follow.event,
        quiet=True,
        # Its own would catch Ctrl-C, kill ansible-playbook alone and leave the nodes' processes running.
        cancel_callback=follow.stop.is_set,
    )
    return thread, runner


def _sources(request: Request) -> tuple[str, ...]:
    return request.inventory or (os.environ.get(INVENTORY_ENV) or str(DEFAULT_INVENTORY),)


def _absolute(source: str) -> str:
    """A path from where the user stands, because Ansible runs in the repository's root; a host list stays."""
    return source if "," in source else str(Path(source).absolute())


def _extra(name: str, value: Any) -> str:
    return json.dumps({name: value})


def _environment(request: Request, run_id: str) -> dict[str, str]:
    tools = str(Path(sys.executable).parent)
    return {
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        # ansible-runner puts its own directory here, and would switch host-key checking off.
        "ANSIBLE_CALLBACK_PLUGINS": str(ROOT / "plugins" / "callback"),
        "ANSIBLE_HOST_KEY_CHECKING": os.environ.get("ANSIBLE_HOST_KEY_CHECKING", "True"),
        "PATH": os.pathsep.join((tools, os.environ.get("PATH", os.defpath))),
        # Ansible refuses a locale without UTF-8.
        **({} if _speaks_utf8() else {"LC_ALL": "C.UTF-8"}),
        "ANSIBLE_NOCOLOR": "1",
        "FLIGHTLINE_SUMMARY": "off",
        stores.RUN_ID_ENV: run_id,
        stores.STORE_ENV: str(request.store),
    }


def _speaks_utf8() -> bool:
    named = next((value for value in map(os.environ.get, ("LC_ALL", "LC_CTYPE", "LANG")) if value), "")
    return named.lower().replace("-", "").endswith("utf8")


def _wait(thread: threading.Thread, follow: _Follow) -> str:
    """Wait for the playbook; returns why it was given up, or "".

    On Ctrl-C, SIGTERM, a hang-up, or when every deadline has long passed, it and its children are ended first. A second
    Ctrl-C changes nothing: what was measured is judged.
    """
    why = ""
    with _ending_as_interrupt():
        try:
            while thread.is_alive():
                thread.join(POLL_S)
                if follow.ends_at and time.time() > follow.ends_at + OVERDUE_S:
                    why = "it was still running when every host's deadline had passed"
                    break
            else:
                return ""
        except KeyboardInterrupt:
            why = INTERRUPTED
        with _deaf_to_signals():
            _stop(thread, follow)
    if why == INTERRUPTED:
        # Until the process ends: what comes now is the verdict, and a Ctrl-C more would cost it. SIGTERM still ends it.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return why


def _stop(thread: threading.Thread, follow: _Follow) -> None:
    if follow.pid:
        # Not the runner's own cancelling: it kills ansible-playbook alone, whose workers lead process groups
        # of their own and would go on. Nor does ansible-playbook always end them when it is interrupted.
        below = processes.descendants(follow.pid)
        with suppress(OSError):
            os.kill(follow.pid, signal.SIGINT)
        thread.join(INTERRUPT_GRACE_S)
        processes.end(below, KILL_GRACE_S)
    follow.stop.set()
    thread.join(INTERRUPT_GRACE_S)


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
def _ending_as_interrupt() -> Iterator[None]:
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


def _end(request: Request, run_id: str, runner: Any, follow: _Follow, given_up: str) -> ending.Outcome:
    if follow.refused:
        raise CannotRunError(follow.refused)
    run, stored, trouble = _what_was_kept(request.store, run_id, opened=bool(follow.hosts))
    kept = {record["host"]: record for record in _lost(runner, stored)}
    if run is None and not kept:
        raise CannotRunError(_why(runner, _sources(request)))
    if run is None:
        hosts = tuple(stores.Host(name, **known) for name, known in follow.hosts.items())
        run = stores.Run(run_id, follow.started_at, follow.level, ", ".join(request.inventory), hosts)
    directory = ending.report_dir(request.store, run_id, request.report_dir)
    # 2 is the callback's guard: hosts that fail do not end a play.
    broken = _broken(runner) if runner.rc == ending.EXIT_BROKEN and not given_up else ""
    outcome = ending.conclude(request.store, run, kept, directory, trouble, request.json_path, broken)
    if follow.trouble:
        outcome.troubles.append(follow.trouble)
    ending.publish(outcome, request.store, follow.publish)
    return outcome


def _broken(runner: Any) -> str:
    """Why the playbook has no verdict, in the callback's words or Ansible's."""
    said = runner.stdout.read()
    own = re.search(r"has no verdict: (.*?)(?:; what was measured|$)", said, re.M)
    return own[1] if own else ansible_says.why(said.splitlines()) or "ansible-playbook did not end in order"


def _what_was_kept(path: Path, run_id: str, opened: bool) -> tuple[stores.Run | None, set[str], str]:
    try:
        # Opened as the run opened it: what it could not make is named as that, and not as a store that is not there.
        with stores.SqliteStore(path, create=opened) as store:
            return store.run(run_id), store.answered(run_id), ""
    except stores.StoreError as error:
        return None, set(), str(error)


def _lost(runner: Any, stored: set[str]) -> Iterator[stores.Record]:
    """Records of hosts that ended and that the store does not have, from the runner's own event files."""
    if runner.status == "running":
        runner.status = "failed"  # its thread has died or was given up; it would wait here for more, for ever
    for event in runner.events:
        kind, data = str(event.get("event")), event.get("event_data") or {}
        if data.get("host") not in stored and str(data.get("task_action")).endswith(NODE_TASK):
            record = _record(kind, data)
            if record:
                yield record


def _why(runner: Any, sources: Iterable[str]) -> str:
    """What Ansible itself said, its errors first; it prints them without an event."""
    gone = [source for source in sources if "," not in source and not Path(source).exists()]
    if gone:
        return f"{gone[0]}: no such inventory; wanted a file, a directory, or a list of hosts with a comma (host,)"
    said = ansible_says.why(runner.stdout.read().splitlines())
    return said or f"ansible-playbook ended with status {runner.rc} before any node was judged"
