"""Ask through Slurm: one srun for all idle nodes, one for each busy node, which waits in the queue until the deadline.

Sources: the manual pages of srun, sinfo and scancel of Slurm 22.05. A job with --exclusive has all CPUs and GPUs of its
nodes, a step of it without --exact all of the job's; --cpu-bind=none keeps the probes off the one core of a task.
Slurm says which task is which node: task n of an arbitrary distribution runs on line n of SLURM_HOSTFILE, and srun
labels its lines with n. What a task says of itself decides nothing; it must agree. Its answer comes in frames.
"""

from __future__ import annotations

import base64
import json
import math
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from flightline_node import bounds
from flightline_node.tell.frames import MARK

from ...record.answers import most_bytes, said
from ...record.outputs import BEGUN, ENDED, heard
from .. import library_call
from ..calls import Call, packed
from . import HostReply, LaunchError

TOOLS = ("sinfo", "srun", "scancel")
ASK_S = 60
"""For sinfo and scancel: slurmctld itself gives a client ten seconds (MessageTimeout), some sites more."""
GRACE_S = 10.0
MOST_WAITING = 64
"""Busy nodes in the queue at a time: an srun each, of some 10 MB."""
LINE_BYTES = 4096
BUSY = ("allocated", "mixed", "completing", "reserved", "maint", "planned")
READY = ("idle",)
_LABEL = re.compile(r"\s*(\d+): (.*)", re.S)
_SIGNS = "*~#!%$@^-+"
"""What sinfo hangs on a state: not responding, powered down, rebooting and so on. Source: sinfo(1)."""
NOT_RESPONDING = "*"


@dataclass
class _Task:
    """What one task of an srun has said."""

    name: str = ""
    lines: list[str] = field(default_factory=list)
    size: int = 0
    ended: int | None = None
    mismatch: str = ""


class SlurmLauncher:
    """The launcher. options: more words for srun, such as --reservation=NAME or --partition=NAME."""

    how = "srun"
    answers_at: Mapping[str, str] = {}

    def __init__(self, options: Sequence[str] = ()) -> None:
        self.options = tuple(options)
        self._job = ""
        self._running: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()
        self._stopped = False
        self._states: dict[str, SinfoState] = {}

    def known_as(self, call: Call) -> str:
        """See Launcher."""
        return call.name

    def unlisted(self, calls: Sequence[Call]) -> Mapping[str, str]:
        """Nodes of Slurm that are no host of the inventory."""
        self._states = states()
        known = {call.name for call in _by_slurms_names(calls, self._states)}
        return {name: f"Slurm has it, {one.state}" for name, one in self._states.items() if name not in known}

    def ask(self, calls: Sequence[Call], run_id: str, until: float, on_reply: Callable[[HostReply], None]) -> None:
        """See Launcher."""
        self._job = f"flightline-{run_id}"
        self._states = self._states or states()
        ready: list[Call] = []
        busy: list[Call] = []
        for call in _by_slurms_names(calls, self._states):
            why = _unfit(call.name, self._states.get(call.name))
            if why:
                on_reply(HostReply(call.host, trouble=why, lost=True))
            else:
                (ready if self._states[call.name].state in READY else busy).append(call)
        # The library's place is part of what all tasks of an srun run.
        groups = [[call for call in ready if call.installed == place] for place in {call.installed for call in ready}]
        groups += [[call] for call in busy]
        if not groups:
            return
        with ThreadPoolExecutor(min(len(groups), MOST_WAITING), "srun") as pool:
            list(pool.map(lambda group: self._round(group, until, on_reply), groups))

    def stop(self) -> None:
        """End every srun and its job."""
        with self._lock:
            self._stopped = True
            running = list(self._running)
        if self._job:
            with suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(
                    ["scancel", "--name", self._job], check=False, stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=ASK_S,
                )  # fmt: skip
        for process in running:
            _end(process)

    def _round(self, calls: Sequence[Call], until: float, on_reply: Callable[[HostReply], None]) -> None:
        """One srun over some nodes: each is told of once, whatever comes."""
        listening = _Listening(calls, on_reply)
        with tempfile.TemporaryDirectory(prefix="flightline-srun-") as place, tempfile.TemporaryFile() as errors:
            process = self._start(calls, until, Path(place), errors)
            if process is None:
                listening.close("the run was stopped before it was asked")
                return
            timer = threading.Timer(max(until - time.monotonic(), 0), _end, [process])
            timer.start()
            try:
                assert process.stdout
                is_start = True
                for line in iter(lambda: process.stdout.readline(LINE_BYTES), b""):  # type: ignore[union-attr]
                    if is_start:  # the rest of a long line has a task's own words where srun's label is
                        listening.take(line.decode("utf-8", "replace"))
                    is_start = line.endswith(b"\n")
                process.wait()
            finally:
                timer.cancel()
                with self._lock:
                    self._running.remove(process)
            errors.seek(0)
            listening.close(_last_words(errors.read(1 << 16).decode("utf-8", "replace")))

    def _start(self, calls: Sequence[Call], until: float, place: Path, errors: Any) -> subprocess.Popen[bytes] | None:
        nodes = place / "nodes"
        nodes.write_text("".join(f"{call.name}\n" for call in calls), encoding="utf-8")
        given = base64.b64encode(zlib.compress(json.dumps(packed(calls)).encode()))
        asked = place / "asked"
        asked.write_bytes(given)
        argv = [*self._argv(len(calls), until), "/bin/sh", "-c", _script(calls)]
        env = {**os.environ, "SLURM_HOSTFILE": str(nodes)}
        with self._lock, asked.open("rb") as standard_input:
            if self._stopped:
                return None
            process = subprocess.Popen(
                argv, stdin=standard_input, stdout=subprocess.PIPE, stderr=errors, start_new_session=True, env=env
            )
            self._running.append(process)
        return process

    def _argv(self, nodes: int, until: float) -> list[str]:
        minutes = max(1, math.ceil((until - time.monotonic()) / 60)) + 1
        return [
            "srun", f"--job-name={self._job}", f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1",
            "--distribution=arbitrary", f"--time={minutes}", "--exclusive", "--mem=0", "--cpu-bind=none",
            "--mem-bind=none",
            # A node that fails, or a task that ends badly, must not end the others.
            "--no-kill", "--kill-on-bad-exit=0", "--wait=0", "--label", "--export=HOME", "--chdir=/", "--mpi=none",
            *self.options,
        ]  # fmt: skip


@dataclass(frozen=True)
class SinfoState:
    """Of a node, by sinfo. state: without the signs that it hangs on."""

    state: str
    reason: str = ""
    address: str = ""


def states() -> dict[str, SinfoState]:
    """Slurm's nodes by name. Raises LaunchError."""
    lacking = [tool for tool in TOOLS if not shutil.which(tool)]
    if lacking:
        raise LaunchError(
            f"saw no {', '.join(lacking)} on the PATH; wanted Slurm's client commands; "
            "do: run this on the cluster's head node"
        )
    argv = ["sinfo", "--noheader", "--Node", "--format=%N|%T|%o|%E"]
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, check=False, timeout=ASK_S, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LaunchError(f"saw {said(str(error))} of sinfo; wanted Slurm's nodes; do: look at slurmctld") from error
    if done.returncode:
        raise LaunchError(f"saw sinfo end with {said(done.stderr)}; wanted Slurm's nodes; do: look at slurmctld")
    return read_states(done.stdout)


def read_states(text: str) -> dict[str, SinfoState]:
    """What `sinfo --Node --format=%N|%T|%o|%E` prints; a node of two partitions comes twice."""
    found = {}
    for line in text.splitlines():
        name, _, rest = line.strip().partition("|")
        state, _, rest = rest.partition("|")
        address, _, reason = rest.partition("|")
        if name and state:
            plain = state.lower().rstrip(_SIGNS)
            found[name] = SinfoState("not responding" if NOT_RESPONDING in state else plain, reason.strip(), address)
    return found


def _by_slurms_names(calls: Sequence[Call], known: Mapping[str, SinfoState]) -> list[Call]:
    """The calls with the names of Slurm's nodes: a host that it knows by another name is found by its address."""
    at: dict[str, list[str]] = {}
    for name, one in known.items():
        at.setdefault(one.address, []).append(name)
    named = {call.name for call in calls if call.name in known}
    found = []
    for call in calls:
        here = at.get(call.address, []) if call.name not in known else []
        free = len(here) == 1 and here[0] not in named
        found.append(replace(call, name=here[0]) if free else call)
    return found


def _unfit(name: str, found: SinfoState | None) -> str:
    """Why srun cannot start on a node, or ""."""
    if found is None:
        return f"Slurm has no node {name} (asked: sinfo)"
    if found.state in READY or found.state in BUSY:
        return ""
    why = "" if found.reason.lower() in ("", "none") else f" ({found.reason})"
    return f"Slurm says {name} is {found.state}{why}, so srun starts nothing there"


def _script(calls: Sequence[Call]) -> str:
    """What each task runs. The library is where the inventory says: alike for the nodes of one srun."""
    end_s = max(int(call.params["timeout_s"]) for call in calls) + bounds.NODE_GRACE_S
    return library_call.script('"$SLURMD_NODENAME"', library_call.own_key(), end_s, calls[0].installed)


class _Listening:
    """Reads the labelled lines of one srun. Nobody is told of before it has ended: what comes last may be a doubt."""

    def __init__(self, calls: Sequence[Call], on_reply: Callable[[HostReply], None]) -> None:
        """calls: in the order of srun's tasks."""
        self._told = on_reply
        self._tasks = [(call, _Task()) for call in calls]

    def take(self, line: str) -> None:
        """One line of srun's output; what is not ours is passed over."""
        found = _LABEL.match(line)
        if not found or int(found[1]) >= len(self._tasks):
            return
        call, task = self._tasks[int(found[1])]
        text = found[2].strip()
        word, _, rest = text.partition(" ")
        if word == BEGUN:
            _begin(call, task, found[1], rest)
        elif word == MARK and task.name and task.ended is None:
            _keep(call, task, text)
        elif word == ENDED and task.name and task.ended is None and rest.isdigit():
            task.ended = int(rest)

    def close(self, why: str) -> None:
        """Srun has ended, for this reason: tell of every host once."""
        for call, task in self._tasks:
            if task.mismatch:
                reply = HostReply(call.host, trouble=task.mismatch)
            elif task.ended is not None:
                reply = heard(call.host, task.lines, task.ended, most_bytes(bool(call.params.get("return_bundle"))))
            elif task.name:
                trouble = f"srun ended before its answer was whole: {why}"
                reply = HostReply(call.host, trouble=trouble, lost=not task.lines)
            else:
                reply = HostReply(call.host, trouble=f"srun started nothing on {call.name}: {why}", lost=True)
            self._told(reply)


def _begin(call: Call, task: _Task, number: str, name: str) -> None:
    """A task says its node's name: it must be where srun started it, and say so once."""
    if name != call.name:
        task.mismatch = task.mismatch or f"task {number} of srun runs on {call.name} and answered as {said(name)!r}"
    elif task.name:
        task.mismatch = task.mismatch or f"task {number} of srun on {call.name} answered twice"
    task.name = task.name or name


def _keep(call: Call, task: _Task, text: str) -> None:
    task.size += len(text)
    if task.size > 2 * most_bytes(bool(call.params.get("return_bundle"))):
        task.mismatch = task.mismatch or "its answer is endless: more than twice of what is taken"
        task.lines.clear()
    else:
        task.lines.append(text)


def _last_words(errors: str) -> str:
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    on_reply = [line for line in lines if "error:" in line] or lines
    return said(on_reply[-1]) if on_reply else "it gave no reason before the deadline"


def _end(process: subprocess.Popen[bytes]) -> None:
    """Srun passes the signal on to its tasks, and ends its job."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        with suppress(OSError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S)
