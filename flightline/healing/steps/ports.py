"""What the controller asks of the world; slurm.py, nodes.py, ec2.py and prove.py answer."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from flightline_node.model import Remedy

from ..journal.incident import Attempt, Incident
from ..plan.jobs import RunningJob
from ..plan.planner import OutsideView, SchedulerView


class EdgeError(RuntimeError):
    """Somebody outside could not be asked, or refused; the text says who, what was asked and what was said."""


@dataclass(frozen=True)
class StepOutcome:
    """What came of a step, an outcome of an attempt (NOT_YET where it has only begun), and why in words."""

    what: str
    detail: str = ""


@dataclass(frozen=True)
class NodeFacts:
    """A node as it answers itself. marker: its own quarantine, where it has one. jobs: what holds its GPUs.

    software: its GPU driver and image, as far as it knows them; what one node refuses, others with the same refuse too.
    """

    boot_id: str = ""
    marker: Mapping[str, Any] | None = None
    jobs: tuple[RunningJob, ...] = ()
    software: str = ""


@dataclass(frozen=True)
class Verified:
    """What a preflight said of one node. at: when it looked, by the node's own clock; '' where that is not known.

    measured: the checks that had evidence; None where that is not known.
    """

    go: bool
    run: str
    why: str = ""
    serials: tuple[str, ...] = ()
    host: str = ""
    at: str = ""
    measured: frozenset[str] | None = None


class Scheduler(Protocol):
    """Who starts jobs. Every method raises EdgeError."""

    @property
    def name(self) -> str:
        """What it is called in incidents."""

    @property
    def keeps_lost(self) -> bool:
        """Does a host that it lost stay out until somebody resumes it?"""

    def places(self, hosts: Collection[str]) -> Mapping[str, SchedulerView]:
        """What it says of these hosts."""

    def place(self, host: str) -> SchedulerView:
        """What it says of one host now."""

    def drain(self, host: str, reason: str) -> None:
        """Let no new job start there."""

    def resume(self, host: str) -> None:
        """Let jobs start there again."""

    def signal(self, job: str) -> None:
        """Send SIGUSR1 to a job: it is to save what it has."""

    def requeue(self, job: str) -> None:
        """Put a job back into the queue."""

    def let_go(self, hosts: Collection[str]) -> list[str]:
        """Let the suspects among these hosts ask again; their names."""


@runtime_checkable
class IdleHolder(Protocol):
    """A scheduler that lends idle nodes for a proof. Every method raises EdgeError."""

    def hold(self, hosts: Collection[str]) -> Collection[str]:
        """Let no job start there for a while; which of them it lent, for some may have got one meanwhile."""

    def hold_on(self) -> None:
        """Keep what is held: it goes back by itself when this is not said for HOLD_MIN, where the scheduler can."""

    def waiting(self, hosts: Collection[str], since: str) -> str:
        """Why their proof has to end, in words: a job that waits for them, a node that was taken out; '' for nothing.

        since: when they were taken.
        """

    def give_back(self, keep: Collection[str] = ()) -> Collection[str]:
        """Let jobs start again on all that is held but these; who that was, by the scheduler's names."""


HOLD_MIN = 15
"""After which a hold ends by itself, should its remediator have died: a proof's round says hold_on far more often."""


class NodeActions(Protocol):
    """The nodes themselves. Every method raises EdgeError."""

    def facts(self, hosts: Collection[str], token: int) -> Mapping[str, NodeFacts]:
        """What they answer; a host that gives no answer is left out. From then on they refuse steps of older leases."""

    def reach(self, asked: Mapping[str, Sequence[str]], token: int) -> Mapping[str, Mapping[str, str]]:
        """Neighbour -> HOST:PORT -> what answered there (flightline_node.act.reach)."""

    def repair(self, host: str, step: Remedy, incident: Incident) -> StepOutcome:
        """Restart, reset or reboot. The node refuses it when a newer lease than the pending attempt's has asked it."""

    def release(self, host: str, run: str, token: int, judged_at: str) -> None:
        """Tell the node's watcher that a run has proven it. From then on it refuses steps of older leases."""


class Machines(Protocol):
    """Who gives and takes instances. Every method raises EdgeError."""

    def before(self, incident: Incident) -> Mapping[str, Any]:
        """What has to be known to replace the instance, and to find out later whether that was done."""

    def seen(self, instance_ids: Collection[str]) -> Mapping[str, OutsideView]:
        """What EC2 says of these instances: state, status checks, scheduled events."""

    def replace(self, incident: Incident, before: Mapping[str, Any]) -> tuple[StepOutcome, Mapping[str, Any]]:
        """Have another instance in its place. Returns what to keep of it (Incident.swap)."""

    def reboot(self, incident: Incident) -> StepOutcome:
        """Reboot an instance that cannot be reached."""

    def successor(self, swap: Mapping[str, Any], taken: Collection[str]) -> str:
        """The instance that came in its place, none of those taken for others; '' while there is none."""

    def release(self, swap: Mapping[str, Any], incident: Incident) -> StepOutcome:
        """Report a kept bad instance and give it back."""

    def settle(self, incident: Incident, attempt: Attempt) -> tuple[StepOutcome | None, Mapping[str, Any]]:
        """What came of a replacement or release that was cut off; None while that cannot be told."""


class Prover(Protocol):
    """Who judges nodes."""

    def prove(self, hosts: Collection[str], level: str) -> Mapping[str, Verified]:
        """Judge them now, by host or instance id; one that got no verdict is left out. Raises EdgeError."""


@dataclass
class Ports:
    """Everything outside. machines: None where instances cannot be replaced from here."""

    scheduler: Scheduler
    nodes: NodeActions
    prover: Prover
    machines: Machines | None = None
