"""What is done on a node that will end: it gets no new job, those that run are told, and its group waits for them.

A spot interruption and a group that ends a node (a smaller count, a schedule, a refresh, a rebalance) go the same way.
The first comes two minutes before the end whatever runs. The second is held by the group's termination hook for as long
as jobs may keep a node. When they are done before, the node leaves its word in S3 as after a boot, and the alert router
lets it go: a node tells its group nothing itself. One that says nothing ends with the hook's time.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path
from typing import Callable, NamedTuple, Optional, Sequence, Set, Tuple

from ..ask import decided
from ..ask.metadata import OK, MetadataSession, said
from ..watch import slurm
from .program import ran

ASK_S, AWS_S = 20.0, 60.0
LOOK_S, AGAIN_S = 15.0, 60.0
"""Between two looks for jobs, and until the word is left again: nobody knows that it came until the node ends."""
BOOT_ENV = "/etc/flightline/boot.env"
SCHEMA = "flightline-ending/1"
STATES = "--state=active,activating,deactivating,reloading"
DRAIN, UNITS, JOBS = "drain", "units", "jobs"
INSTANCE = "meta-data/instance-id"


class EndingPlan(NamedTuple):
    """What is told and who waits. slurm_node: '' for the one of this host's name. slurm_jobs: names, with commas.

    group, hook: '' where no group waits. limit_s: how long a job may keep the node. boot_env: where its words go.
    """

    unit: str
    signal: str
    slurm_node: str = ""
    slurm_jobs: str = ""
    group: str = ""
    hook: str = ""
    limit_s: float = 0.0
    boot_env: str = BOOT_ENV


class UnknownError(Exception):
    """A tool gave no answer: nothing follows from it."""


class Ending:
    """The end of this node."""

    def __init__(self, plan: EndingPlan, metadata: MetadataSession, say: Callable[[str], None]) -> None:
        self._plan, self._metadata, self._say = plan, metadata, say
        self._done: Set[str] = set()
        self._told: Set[str] = set()
        self._since: Optional[float] = None
        self._looked = self._said = float("-inf")
        self._stamp = time.strftime(f"%Y%m%dT%H%M%SZ-{os.getpid()}", time.gmtime())
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
        """Look whether a job still runs here, and say so when none does, or at the limit."""
        since = self._since = now if self._since is None else self._since
        if not (self._plan.group and self._plan.hook) or now - self._looked < LOOK_S:
            return
        self._looked = now
        busy = "" if self._over else self._busy()
        if busy and now - since < self._plan.limit_s:
            self._once(f"held for {busy}, at most {self._plan.limit_s / 60:g} min")
            return
        self._over = True
        self._once(f"let go at its limit, with {busy}" if busy else "let go: its jobs are done")
        if now - self._said >= AGAIN_S and self._leave_word():
            self._said = now

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

    def _leave_word(self) -> bool:
        """As a boot's outcome: under this instance's ARN, where IAM lets nobody else write."""
        status, text = self._metadata.get(INSTANCE)
        if status != OK:
            self._once(f"the group could not be told: {INSTANCE}: {said(status, text)}")
            return False
        instance, (region, place) = text.strip(), self._place()
        word = {"schema": SCHEMA, "instance_id": instance, "result": "CONTINUE", "first": False}
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(word, file)
            file.flush()
            url = f"{place}/{instance}/{self._stamp}/outcome.json"
            argv = ["aws", "--region", region, "s3", "cp", "--only-show-errors", file.name, url]
            status, text = ran(argv, AWS_S) if place else (1, "no RESULTS_URL")
        if status:
            self._once(f"the group could not be told ({self._plan.boot_env}): {text[-200:]}")
        return status == 0

    def _place(self) -> Tuple[str, str]:
        """Region and place of words, as the node's user data has them; '' where there is none."""
        try:
            lines = Path(self._plan.boot_env).read_text(encoding="utf-8").splitlines()
        except OSError:
            lines = []
        given = dict(line.split("=", 1) for line in lines if "=" in line)
        return given.get("REGION", "").strip("'"), given.get("RESULTS_URL", "").strip("'")

    def _once(self, line: str) -> None:
        if line not in self._told:
            self._told.add(line)
            self._say(line)
