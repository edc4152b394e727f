"""Slurm: what it says of nodes and jobs, and the three things that healing asks of it.

Plain `scontrol -o` and `squeue -o`, which Slurm 22.05 to 25.x print alike; their JSON changed with every release.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

from flightline_node.watch import claim, rule
from flightline_node.watch import slurm as parts
from flightline_node.watch.rule import RulePolicy
from flightline_node.watch.slurm import LOST, POLICY, AwayError, SettledError, SlurmMarks, SlurmNode

from ..plan.jobs import RunningJob
from ..plan.planner import SchedulerView
from .command import ran
from .ports import HOLD_MIN, EdgeError

TIMEOUT_S = 15.0
"""Slurm's own MessageTimeout is 10 s: a controller that takes longer is not answering."""
ROOM = frozenset({"IDLE", "MIXED"})
RESERVED = frozenset({"MAINT", "MAINTENANCE", "RESERVED"})

PROOF = "flightline-proof"
"""The one reservation of ours: idle nodes that are being proven."""
WAITS = re.compile(r"Resources|Priority|ReqNodeNotAvail.*|Nodes_required_for_job.*", re.IGNORECASE)
"""Reasons of a pending job that more nodes may end; None is one that was not looked at yet. Source: squeue(1), "JOB
REASON CODES"; of the longer ones as slurmctld 22.05 prints them."""

TASTE = ("SQUEUE_", "SCONTROL_", "SLURM_TIME_")
JOB_FIELDS = "%A|%u|%N|%Q|%D|%S|%j|%k"
"""Id, user, nodes, priority, how many nodes, start, name, comment; the last two may have any character."""
CHECKPOINT = re.compile(r"\bflightline:checkpoint=(\S+)")
"""In a job's comment: sbatch --comment, or scontrol update JobId=... Comment=... by the job itself."""

_RESERVATION = re.compile(r"^ReservationName=(\S+).*? Nodes=(\S+).*? State=(\S+)", re.MULTILINE)
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
        nodes = self._nodes()
        jobs = _jobs(self._run("squeue", "-h", "-a", "-t", "R,CG,S,CF,ST,SO,SI", "-o", JOB_FIELDS))
        return {host: _place(node, jobs) for host, node in parts.named(nodes, hosts).items()}

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
        nodes, found = parts.named(parts.listed(self._run("scontrol", "-o", "show", "node")), hosts), []
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

    def hold(self, hosts: Collection[str]) -> list[str]:
        """Take them into the reservation, by Slurm's own leave; a job that has started meanwhile keeps its node."""
        self.give_back()
        names = {node.name: host for host, node in self._named(hosts).items()}
        flags = ("StartTime=now", f"Duration={HOLD_MIN}", "Users=root", "Flags=MAINT,IGNORE_JOBS")
        self._run("scontrol", "create", "reservation", f"ReservationName={PROOF}", f"Nodes={','.join(names)}", *flags)
        places = self.places(names.values())
        lent = [host for host, place in places.items() if not (place.jobs or place.out)]
        if len(lent) < len(names):
            self.give_back(keep=lent)
        return lent

    def hold_on(self) -> None:
        """Move its end away from now."""
        self._run("scontrol", "update", f"ReservationName={PROOF}", f"EndTime=now+{HOLD_MIN}minutes")

    def waiting(self, hosts: Collection[str], since: str) -> str:
        """A pending job that could start with what is held and what is free: one for more nodes ends no proof."""
        nodes = self._nodes()
        own = parts.named(nodes, hosts)
        held = {node.name for node in own.values()}
        if taken := [host for host, node in own.items() if node.out or node.states & RESERVED]:
            return f"{taken[0]} was taken out of service or reserved"
        room = [node for node in nodes if node.states & ROOM and not node.out]
        said = self._run("squeue", "-h", "-a", "-t", "PD", "-o", "%A|%D|%P|%n|%r")
        for line in said.splitlines():
            job, count, partitions, named, why = (*line.split("|", 4), "", "", "", "")[:5]
            may = {node.name for node in room if node.partitions & set(partitions.split(","))}
            fits = count.isdigit() and int(count) <= len(may) and held & may
            if fits and WAITS.fullmatch(why.strip("()").replace(" ", "_")) and held & set(expand(named) or held):
                return f"job {job} waits ({why})"
        return ""

    def give_back(self, keep: Collection[str] = ()) -> list[str]:
        """End the reservation, or leave these nodes alone in it."""
        held = next((expand(nodes) for name, nodes, _ in self._reservations() if name == PROOF), [])
        kept = {node.name for node in self._named(keep).values()} & set(held) if keep else set[str]()
        if held:
            what = ("update", f"Nodes={','.join(sorted(kept))}") if kept else ("delete",)
            self._run("scontrol", *what, f"ReservationName={PROOF}")
        return sorted(set(held) - kept)

    def _named(self, hosts: Collection[str]) -> dict[str, SlurmNode]:
        return parts.named(self._nodes(), hosts)

    def _nodes(self) -> list[SlurmNode]:
        """Every node; one that only our own reservation holds is not shown as reserved."""
        nodes = parts.listed(self._run("scontrol", "-o", "show", "node"))
        if not any(node.states & RESERVED for node in nodes):
            return nodes
        own, others = set[str](), set[str]()
        for name, listed, state in self._reservations():
            if name == PROOF or state == "ACTIVE":
                (own if name == PROOF else others).update(expand(listed))
        free = own - others
        return [
            one._replace(states=one.states - RESERVED, reservation="") if one.name in free else one for one in nodes
        ]

    def _reservations(self) -> list[tuple[str, str, str]]:
        """Name, nodes and state of each."""
        return _RESERVATION.findall(self._run("scontrol", "-o", "show", "reservation"))

    def _own(self, host: str, verb: str) -> str:
        """Slurm's name of a node that nobody else holds."""
        nodes = parts.named(self._nodes(), [host])
        if host not in nodes:
            raise SchedulerError(f"{verb} {host}: Slurm has no node of that name")
        foreign = _place(nodes[host], {}).foreign
        if foreign:
            raise SchedulerError(f"{verb} {host}: {foreign}; it stays as it is")
        return nodes[host].name

    def _run(self, tool: str, *arguments: str) -> str:
        argv = [str(Path(self.tools) / tool) if self.tools else tool, *arguments]
        # The fields that are read shall not depend on the site's taste.
        env = {key: value for key, value in os.environ.items() if not key.startswith(TASTE)}
        return ran(argv, " ".join((tool, *arguments[:2])), self.timeout_s, SchedulerError, env=env)


def is_here() -> bool:
    """Are Slurm's commands here, and a cluster that they belong to?"""
    return parts.configured(os.environ) and shutil.which("scontrol") is not None


def _place(node: SlurmNode, jobs: Mapping[str, Sequence[RunningJob]]) -> SchedulerView:
    reserved = bool(node.states & RESERVED or node.reservation)
    lost = "DOWN" in node.states and "DRAIN" not in node.states and node.reason in LOST
    here = tuple(jobs.get(node.name, ()))
    known = {"since": _moment(node.since), "lost": lost, "silent": node.silent, "mark": node.extra}
    known["address"] = f"{node.names[2] or node.name}:{node.port}"
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
        number, user, listed, priority, nodes, started, rest = (*line.split("|", 6), *[""] * 6)[:7]
        name, says = rest.rpartition("|")[0], CHECKPOINT.search(rest)
        rank, many = (int(text) if text.isdigit() else 0 for text in (priority, nodes))
        job = RunningJob(number, user, name, rank, many, _moment(started), says[1] if says else "")
        for node in expand(listed):
            found.setdefault(node, []).append(job)
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
