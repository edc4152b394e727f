"""Slurm: what it says of nodes and jobs, and the three things that healing asks of it.

Plain `scontrol -o` and `squeue -o`, which Slurm 22.05 to 25.x print alike; their JSON changed with every release.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

from flightline_node.watch import claim, rule
from flightline_node.watch.rule import RulePolicy
from flightline_node.watch.slurm import LOST, POLICY, AwayError, SettledError, SlurmMarks, SlurmNode, listed, named

from ..plan.planner import RunningJob, SchedulerView
from .ports import EdgeError

TIMEOUT_S = 15.0
"""Slurm's own MessageTimeout is 10 s: a controller that takes longer is not answering."""
RESERVED = frozenset({"MAINT", "MAINTENANCE", "RESERVED"})
CONFIGS = ("/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf", "/opt/slurm/etc/slurm.conf")

_RANGES = re.compile(r"\[([^\]]*)\]")


class SchedulerError(EdgeError):
    """The scheduler did not do as asked; the text says what was asked and what it said."""


@dataclass
class SlurmScheduler:
    """One cluster. tools: directory of scontrol and squeue, '' for those on the path."""

    tools: str = ""
    timeout_s: float = TIMEOUT_S
    policy: RulePolicy = POLICY
    name = "slurm"
    keeps_lost = True

    def places(self, hosts: Collection[str]) -> dict[str, SchedulerView]:
        """What Slurm says of these hosts; a host that it does not know is left out. Raises SchedulerError."""
        nodes = listed(self._run("scontrol", "-o", "show", "node"))
        jobs = _jobs(self._run("squeue", "-h", "-a", "-t", "R,CG,S,CF,ST,SO,SI", "-o", "%A|%u|%N|%j"))
        return {host: _place(node, jobs) for host, node in named(nodes, hosts).items()}

    def place(self, host: str) -> SchedulerView:
        """What it says of one host now. Raises SchedulerError."""
        return self.places([host]).get(host, SchedulerView(known=False))

    def drain(self, host: str, reason: str) -> None:
        """Let no new job start, by the rule that nodes follow too; running ones go on. Raises SchedulerError.

        Also for what somebody else has set. One that is out already only gets the reason.
        """
        name, wanted = self._own(host, "drain"), claim.read(reason)
        if not wanted:
            raise SchedulerError(f"drain {host}: saw the reason {reason[:200]!r}, wanted a claim of Flightline's")
        marks = SlurmMarks(name, wanted, lambda argv: self._run(*argv))
        if self.place(host).out:
            marks.drain()
            return
        try:
            found, _, _ = rule.follow(marks, self.policy, time.sleep, by_person=True)
        except (AwayError, SettledError, rule.MarkLostError) as error:
            raise SchedulerError(f"drain {host}: it changed meanwhile: {error}") from error
        if found.do != rule.DRAIN:
            raise SchedulerError(f"drain {host}: {found.why}")

    def let_go(self, hosts: Collection[str]) -> list[str]:
        """Let the suspects among these hosts ask again; their names. Raises SchedulerError.

        What a remediator that was killed had marked goes too.
        """
        nodes, found = named(listed(self._run("scontrol", "-o", "show", "node")), hosts), []
        for host, node in sorted(nodes.items()):
            there = claim.read(node.extra)
            if there and (there.mark in (rule.HELD, rule.TOLD) or there.by == claim.REMEDIATE):
                self._run("scontrol", "update", f"NodeName={node.name}", "Extra=")
                found.append(host)
        return found

    def resume(self, host: str) -> None:
        """Let jobs start again, where Flightline took the node out. Raises SchedulerError."""
        place = self.place(host)
        if not place.known or not place.out:
            return
        self._run("scontrol", "update", f"NodeName={self._own(host, 'resume')}", "State=RESUME")

    def signal(self, job: str) -> None:
        """Tell a job to save: SIGUSR1 to its batch script and its steps. Raises SchedulerError."""
        self._run("scancel", "--full", "--signal=USR1", job)

    def requeue(self, job: str) -> None:
        """Put a job back into the queue. Raises SchedulerError."""
        self._run("scontrol", "requeue", job)

    def _own(self, host: str, verb: str) -> str:
        """Slurm's name of a node that nobody else holds."""
        nodes = named(listed(self._run("scontrol", "-o", "show", "node")), [host])
        if host not in nodes:
            raise SchedulerError(f"{verb} {host}: Slurm has no node of that name")
        foreign = _place(nodes[host], {}).foreign
        if foreign:
            raise SchedulerError(f"{verb} {host}: {foreign}; it stays as it is")
        return nodes[host].name

    def _run(self, tool: str, *arguments: str) -> str:
        argv = [str(Path(self.tools) / tool) if self.tools else tool, *arguments]
        # The fields that are read shall not depend on the site's taste.
        env = {key: value for key, value in os.environ.items() if not key.startswith(("SQUEUE_", "SCONTROL_"))}
        try:
            done = subprocess.run(argv, capture_output=True, timeout=self.timeout_s, check=False, env=env)
        except FileNotFoundError:
            raise SchedulerError(f"{tool}: not found; run this where Slurm's commands are") from None
        except subprocess.TimeoutExpired:
            raise SchedulerError(f"{tool} {arguments[0]}: no answer within {self.timeout_s:g} s") from None
        except OSError as error:
            raise SchedulerError(f"{tool}: {error.strerror}") from error
        if done.returncode:
            said = " ".join((done.stderr or done.stdout).decode("utf-8", "replace").split())[:300]
            raise SchedulerError(f"{tool} {' '.join(arguments[:2])}: status {done.returncode}: {said}")
        return done.stdout.decode("utf-8", "replace")


def is_here() -> bool:
    """Are Slurm's commands here, and a cluster that they belong to?"""
    config = os.environ.get("SLURM_CONF")
    known = bool(config) or any(Path(path).exists() for path in CONFIGS) or Path("/run/slurm/conf").exists()
    return known and shutil.which("scontrol") is not None


def _place(node: SlurmNode, jobs: Mapping[str, Sequence[RunningJob]]) -> SchedulerView:
    reserved = bool(node.states & RESERVED or node.reservation)
    lost = "DOWN" in node.states and "DRAIN" not in node.states and node.reason in LOST
    here = tuple(jobs.get(node.name, ()))
    known = {"since": _moment(node.since), "lost": lost, "silent": node.silent, "mark": node.extra}
    return SchedulerView(node.out, node.reason, reserved, here, **known)  # type: ignore[arg-type]


def _moment(stamp: str) -> str:
    """A stamp of scontrol's, in UTC: whole seconds of this machine's time, so it was at the latest at their end."""
    try:
        return (datetime.fromisoformat(stamp) + timedelta(milliseconds=999)).astimezone(timezone.utc).isoformat()
    except ValueError:
        return ""


def _jobs(text: str) -> dict[str, list[RunningJob]]:
    """Node name -> jobs."""
    found: dict[str, list[RunningJob]] = {}
    for line in text.splitlines():
        number, user, listed, name = (*line.split("|", 3), "", "", "", "")[:4]
        for node in expand(listed):
            found.setdefault(node, []).append(RunningJob(number, user, name))
    return found


def expand(hosts: str) -> list[str]:
    """Names of a host list: 'n[1-2,07],rack[1-2]n5' gives n1 n2 n07 rack1n5 rack2n5."""
    return ["".join(parts) for item in _items(hosts) for parts in itertools.product(*_parts(item))]


def _items(hosts: str) -> list[str]:
    """Comma-separated items; a comma in brackets separates nothing."""
    return [item for item in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", hosts) if item.strip()]


def _parts(item: str) -> Iterator[list[str]]:
    for number, text in enumerate(_RANGES.split(item.strip())):
        yield [text] if number % 2 == 0 else [name for part in text.split(",") for name in _range(part)]


def _range(part: str) -> list[str]:
    first, dash, last = part.partition("-")
    if not dash:
        return [part]
    return [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]
