"""What is done on a node that will end: it gets no new job, those that run are told, and its group waits for them.

A spot interruption and a group that ends a node (a smaller count, a schedule, a refresh, a rebalance) go the same way.
The first comes two minutes before the end whatever runs. The second is held by the group's termination hook: it is kept
waiting while a job runs, up to a limit, and then told to go on. A node that says nothing ends with the hook's time.
"""

from __future__ import annotations

import os
from typing import Callable, Dict, NamedTuple, Optional, Sequence, Set

from ..ask import decided
from ..ask.metadata import OK, MetadataSession, said
from ..watch import slurm
from .program import ran

ASK_S, AWS_S = 20.0, 60.0
LOOK_S, BEAT_S = 15.0, 60.0
"""Between two looks for jobs, and two beats: the hook's own time is five minutes (infra/planning/lifecycle.py)."""
STATES = "--state=active,activating,deactivating,reloading"
DRAIN, UNITS, JOBS = "drain", "units", "jobs"
IDENTITY = {"instance": "meta-data/instance-id", "region": "meta-data/placement/region"}


class EndingPlan(NamedTuple):
    """What is told and who waits. slurm_node: '' for the one of this host's name. slurm_jobs: names, with commas.

    group, hook: '' where no group waits. limit_s: how long a job may keep the node.
    """

    unit: str
    signal: str
    slurm_node: str = ""
    slurm_jobs: str = ""
    group: str = ""
    hook: str = ""
    limit_s: float = 0.0


class UnknownError(Exception):
    """A tool gave no answer: nothing follows from it."""


class Ending:
    """The end of this node."""

    def __init__(self, plan: EndingPlan, metadata: MetadataSession, say: Callable[[str], None]) -> None:
        self._plan, self._metadata, self._say = plan, metadata, say
        self._done: Set[str] = set()
        self._told: Set[str] = set()
        self._since: Optional[float] = None
        self._looked = self._beat = float("-inf")
        self._over = False

    def begin(self, about: str) -> bool:
        """Drain this node and tell its jobs; what failed is tried again, what was told is not told twice."""
        for part, act in ((DRAIN, self._drain), (UNITS, self._tell_units), (JOBS, self._tell_jobs)):
            if part in self._done:
                continue
            try:
                act(about)
                self._done.add(part)
            except UnknownError as error:
                self._once(f"{about}: {error}")
        return {DRAIN, UNITS, JOBS} <= self._done

    def tell(self, about: str) -> bool:
        """Tell the jobs only: of a node that goes on after it, or may."""
        before, self._done = self._done, {DRAIN}
        told = self.begin(about)
        self._done = before
        return told

    def hold(self, now: float) -> None:
        """Keep the group waiting while a job runs here, and let it go on after that."""
        since = self._since = now if self._since is None else self._since
        if self._over or not (self._plan.group and self._plan.hook) or now - self._looked < LOOK_S:
            return
        self._looked = now
        busy = self._busy()
        if busy and now - since < self._plan.limit_s:
            self._once(f"held for {busy}, at most {self._plan.limit_s / 60:g} min")
            if now - self._beat >= BEAT_S and self._ask_group("record-lifecycle-action-heartbeat"):
                self._beat = now
            return
        self._once(f"let go at its limit, with {busy}" if busy else "let go: its jobs are done")
        self._over = self._ask_group("complete-lifecycle-action", "--lifecycle-action-result", "CONTINUE")

    def _drain(self, about: str) -> None:
        own = self._slurm_node()
        if own is None or "DRAIN" in own.states:
            return  # what somebody drained keeps its reason
        # No claim: nobody returns this node, and nobody heals it.
        reason = f"Reason=this instance ends: {about}"
        self._told_slurm(["scontrol", "update", f"NodeName={own.name}", "State=DRAIN", reason])

    def _tell_units(self, about: str) -> None:
        plan = self._plan
        status, text = ran(["systemctl", "kill", "--kill-who=main", f"--signal={plan.signal}", plan.unit], ASK_S)
        line = f"{about}: {plan.signal} to {plan.unit}"
        if status:
            raise UnknownError(f"{plan.signal} to {plan.unit} failed: {text[-200:]}")
        self._once(f"{line} sent")

    def _tell_jobs(self, about: str) -> None:
        own = self._slurm_node() if self._plan.slurm_jobs else None
        named = ["--states=RUNNING", f"--name={self._plan.slurm_jobs}"]
        name = self._plan.signal.replace("SIG", "", 1)
        for job in self._jobs(own.name, *named) if own else ():
            self._answer(["scancel", "--batch", f"--signal={name}", job])
            self._once(f"{about}: {name} to job {job} sent")

    def _busy(self) -> str:
        """What keeps this node; '' only where everybody that may know says that nothing does."""
        try:
            if DRAIN not in self._done:
                raise UnknownError("it could not be drained")
            units = self._answer(
                ["systemctl", "list-units", "--plain", "--no-legend", "--all", STATES, self._plan.unit]
            )
            own = self._slurm_node()
            jobs = self._jobs(own.name) if own else []
        except UnknownError as error:
            return f"what is not known ({error})"
        return ", ".join(
            [*(line.split()[0] for line in units.splitlines() if line.strip()), *(f"job {n}" for n in jobs)]
        )

    def _jobs(self, node: str, *more: str) -> Sequence[str]:
        return self._answer(["squeue", "--noheader", "--format=%A", f"--nodelist={node}", *more]).split()

    def _slurm_node(self) -> Optional[slurm.SlurmNode]:
        """Slurm's node of this host; None where there is none. Raises UnknownError."""
        if not slurm.configured(os.environ):
            return None
        names = [self._plan.slurm_node] if self._plan.slurm_node else list(decided.own_names())
        found = slurm.named(slurm.listed(self._told_slurm(["scontrol", "-o", "show", "node"])), names)
        for name in names:
            if name in found:
                return found[name]
        raise UnknownError(f"Slurm has no node {names[0]}")

    def _told_slurm(self, argv: Sequence[str]) -> str:
        try:
            return slurm.asking(os.environ.get("PATH", os.defpath))(argv)
        except (slurm.AwayError, OSError) as error:
            raise UnknownError(str(error)) from None

    def _answer(self, argv: Sequence[str]) -> str:
        status, text = ran(argv, ASK_S)
        if status:
            raise UnknownError(f"{argv[0]} {argv[1]}: status {status} {text[-200:]}".strip())
        return text

    def _ask_group(self, what: str, *more: str) -> bool:
        known: Dict[str, str] = {}
        for name, path in IDENTITY.items():
            status, text = self._metadata.get(path)
            if status != OK:
                self._once(f"the group could not be told: {path}: {said(status, text)}")
                return False
            known[name] = text.strip()
        plan = self._plan
        names = ["--auto-scaling-group-name", plan.group, "--lifecycle-hook-name", plan.hook]
        argv = [
            "aws",
            "--region",
            known["region"],
            "autoscaling",
            what,
            *names,
            "--instance-id",
            known["instance"],
            *more,
        ]
        status, text = ran(argv, AWS_S)
        if status:
            self._once(f"the group could not be told ({what}): {text[-200:]}")
        return status == 0

    def _once(self, line: str) -> None:
        if line not in self._told:
            self._told.add(line)
            self._say(line)
