"""The starts of one run on this node: what an end means, and when the next one begins."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import time
from typing import Any, BinaryIO, Callable, Dict, List, Optional, cast

from . import claiming, faults, herald, journals, obstacles, ranks, told, words
from .faults import StartFault
from .plan import LaunchPlan, is_here
from .said import REPORT, TorchrunReport
from .starts import StartEvidence
from .watching import REQUEUE as REQUEUE_IT
from .watching import StallWatch

DONE, BROKEN, FAILED, OWN_FAULT, REQUEUE, REFUSED = 0, 2, 1, 70, 75, 77
ENDS = {DONE: "finished", FAILED: "failed", OWN_FAULT: "failed", REQUEUE: "running", REFUSED: "refused"}
"""Words of the training table; a run that is to be started again goes on."""
TELL_S = 3600.0
"""How often a run that goes on for months is told of."""
MOST_PAUSE_S = 600.0
"""Between starts, after one hardware error upon the other. Own choice."""
REMEDIES = {
    words.HARDWARE: "a word of hardware, no fault of the program; do: flightline check this node",
    words.SPACE: "a disk is full; do: make room there, or keep fewer checkpoints",
    words.MEMORY: "memory did not do; do: a smaller batch, or more ranks",
}


class JobRun:
    """The starts of one run on this node."""

    def __init__(self, plan: LaunchPlan, say: Callable[[str], None]) -> None:
        self.plan, self.say, self.told = plan, say, 0
        self.interruptions: List[Dict[str, Any]] = []
        self.cost, self._told_at = told.RunCost(plan), 0.0
        self._process: Optional[subprocess.Popen[bytes]] = None
        self.evidence, self._repeats, self._failed, self._hard = StartEvidence(plan), faults.Repeats(), 0, 0
        self._hung, self._begun, self._sick = "", 0, ""
        self.herald = herald.Herald(plan.meeting)

    def told_of(self) -> int:
        """Run, and tell how it went; the exit status."""
        self._tell("running")
        status = self._until_over()
        self.cost.tell(now=True)
        self._tell(ENDS[status], exit_status=status)
        if status == DONE:
            self.herald.finished()
        return status

    def _tell(self, status: str, **more: Any) -> None:
        self._told_at = time.monotonic()
        usd = self.cost.usd
        spent = {} if usd is None else {"cost_usd": round(usd, 2)}
        more = {**more, **spent, "interruptions": self.interruptions}
        why = told.tell(self.plan, status, **more) if self.plan.about else ""
        if why:
            self.say(why)

    def _until_over(self) -> int:
        changed, meeting = self._prepared(), self.plan.meeting
        if changed:
            self.say(changed)
            return REFUSED
        while self._failed <= self.plan.restarts:
            refused = self._sick or obstacles.refused(self.plan)
            if refused:
                self.say(refused)
                self._let_others_go()
                return REFUSED
            began, self.evidence.folder, self._hung = time.time(), "", ""
            self.herald.begin()
            obstacle = obstacles.taken(meeting)
            status = FAILED if obstacle else self._start()
            over = self._over(status, began)
            if over is not None:
                self.evidence.end(over, StartFault("", None))
                return over
            alone = not obstacle and not journals.ranks_started(self.plan, began)
            they = herald.ask(meeting) if alone and meeting.host else ""
            if they == herald.FINISHED:
                return self._not_wanted()
            if they == herald.RUNNING:
                self.say("no rank was wanted here, and the run goes on: this node waits on as a spare")
            elif self._judged(status, began, obstacle or (obstacles.apart(meeting) if alone else "")):
                return OWN_FAULT
            self._pause()
            if self.told:
                return REQUEUE
            # The others may have ended a moment after the wait for them did.
            if they and herald.ask(meeting) == herald.FINISHED:
                return self._not_wanted()
        self.say(f"failed {self._failed} times, wanted fewer; do: flightline blame {self.plan.journal}")
        return FAILED

    def _not_wanted(self) -> int:
        self.say("the run is finished: this spare was not wanted")
        return DONE

    def _judged(self, status: int, began: float, why: str) -> bool:
        """Is the program itself to blame for the end of this start? Else it counts, and the next one begins.

        Hardware counts only where it is the same at the same step: a start that came further is none that is in vain.
        """
        seen = faults.fault(self.plan, began, self.evidence.folder)
        self._repeats.add(seen)
        self.evidence.end(status, seen)
        remedy = f" ({REMEDIES[seen.word]})" if seen.word in REMEDIES else ""
        text = f"{seen.text}{remedy}" if seen.text else self._hung or why
        own = self._repeats.own()
        if own:
            self.say(f"{own}{remedy}; it ends here")
            return True
        self._interrupted(max(0, self._begun - 1), status, text, seen.step)
        self._hard = self._hard + 1 if seen.word == words.HARDWARE else 0
        if claiming.is_of_this_node(seen) and claiming.others_can_go_on(self.plan):
            held = claiming.take_out(self.plan, seen, self.evidence.folder)
            if held.left:
                self._sick = f"this node is claimed, and the run goes on without it: {held.why}"
            else:
                self.say(f"this node stays: {held.why}")
        self._failed += not (seen.word == words.HARDWARE and self._repeats.times == 1)
        return False

    def _pause(self) -> None:
        """Before the next start; longer each time where one hardware error follows the other."""
        longer = min(MOST_PAUSE_S, self.plan.pause_s * 2 ** min(self._hard, 16))
        until = time.monotonic() + max(self.plan.pause_s, longer)
        # A signal does not end a sleep.
        while not (self.told or self._sick) and time.monotonic() < until:
            time.sleep(min(0.2, max(0.0, until - time.monotonic())))

    def _prepared(self) -> str:
        """Listen to signals, take as many open files as there may be, and look at the data set: why not, or ''."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
            signal.signal(number, self._hear)
        few = obstacles.raise_files()
        if few:
            self.say(few)
        # Once for all nodes: without the one where they meet no rank is started.
        host = self.plan.meeting.host
        return obstacles.data_changed(self.plan.manifest) if not host or is_here(host) else ""

    def _interrupted(self, start: int, status: int, why: str, step: Optional[int]) -> None:
        self.say(f"start {start} ended with {status}: {why or 'no exception of its own on this node'}")
        self._note(why, step)

    def _note(self, why: str, step: Optional[int]) -> None:
        # The newest: a record has its limits, and the journals have all.
        one = {"at": int(time.time()), "text": why[:200], "step": step}
        self.interruptions = [*self.interruptions[-49:], one]
        told.interrupted(self.plan)
        self._tell("running")

    def _over(self, status: int, began: float) -> Optional[int]:
        if self._hung and self.plan.on_stall == REQUEUE_IT:
            self.say("it hung, and goes back into the queue")
            return REQUEUE
        if (status == 0 or journals.said(self.plan, "finished", began)) and not self.told:
            return DONE
        if self.told:
            self.say(f"ended with {status} after {signal.Signals(self.told).name}")
            return REQUEUE
        if journals.said(self.plan, "requeue", began):
            self.say("a rank of another node was told to end; the run is saved")
            return REQUEUE
        return None

    def _let_others_go(self) -> None:
        """In a job of Slurm without a spare the others would wait for this sick node: the job starts again elsewhere.

        Only of a node in quarantine or claimed: for any other reason the job could come back here.
        """
        job, nodes = os.environ.get("SLURM_JOB_ID"), int(os.environ.get("SLURM_JOB_NUM_NODES") or 0)
        marked = obstacles.in_quarantine(self.plan)
        if job and nodes <= self.plan.meeting.least and (marked or self._sick):
            self.say(f"no spare in job {job}: it goes back into the queue")
            claiming.give_job_back(job, not marked)

    def _start(self) -> int:
        environment = {**os.environ, **self.plan.environment}
        as_user: Dict[str, Any] = {}
        if self.plan.user and os.geteuid() == 0:
            entry = pwd.getpwnam(self.plan.user)
            os.chown(self.plan.logs, entry.pw_uid, entry.pw_gid)
            groups = os.getgrouplist(self.plan.user, entry.pw_gid)
            as_user = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": groups}
            environment.update(HOME=entry.pw_dir, USER=self.plan.user, LOGNAME=self.plan.user)
        argv = self.evidence.begin()
        environment = {**environment, **self.evidence.environment(environment)}
        self._begun += 1
        self._process = subprocess.Popen(
            argv, cwd=self.plan.workdir, env=environment, stderr=subprocess.PIPE, **as_user
        )
        report = TorchrunReport(cast(BinaryIO, self._process.stderr))
        status = self._wait(self._process)
        self.evidence.keep(REPORT, report.text())
        return status

    def _wait(self, process: subprocess.Popen[bytes]) -> int:
        """Its exit status. Once told to end, the ranks have the grace; then everything is killed, as after a hang."""
        end: Optional[float] = None
        ask_to_end, told_at = False, 0.0
        watch = StallWatch(self.plan, self.evidence, process.pid, self._stalls)
        while True:
            try:
                return process.wait(timeout=0.2)
            except subprocess.TimeoutExpired:
                pass
            self.cost.tell()
            if time.monotonic() > self._told_at + TELL_S:
                self._tell("running")
            if self.told and end is None:
                end, told_at = time.monotonic() + self.plan.grace_s, time.time()
                self._tell_ranks(process.pid, self.plan.save_signal or signal.SIGTERM)
                ask_to_end = bool(self.plan.save_signal)
            late = end is not None and time.monotonic() > end - self.plan.grace_s / 3
            if ask_to_end and (late or journals.saved(self.evidence.folder, told_at)):
                ask_to_end = False
                self._tell_ranks(process.pid, signal.SIGTERM)
            if watch.ranks:
                self.herald.running()
            if end is None and watch.look():
                self._hung = f"it hung: {watch.hung}"
                watch.end()
                return process.wait()
            if end is not None and time.monotonic() > end:
                self.say(
                    f"the ranks did not end in {self.plan.grace_s:.0f} s after {signal.Signals(self.told).name}: killed"
                )
                for pid in [*ranks.below(process.pid), process.pid]:
                    ranks.send(pid, signal.SIGKILL)
                return process.wait()

    def _stalls(self, text: str) -> None:
        self.say(text)
        self._note(text, None)

    def _tell_ranks(self, torchrun: int, number: int) -> None:
        """The ranks themselves: torchrun would end them 30 s after it was told, saved or not."""
        found = [pid for pid in ranks.below(torchrun) if ranks.is_rank(pid)]
        why = f"{signal.Signals(self.told).name}: {signal.Signals(number).name}"
        self.say(f"{why} to {len(found)} ranks")
        for pid in found:
            ranks.send(pid, number)

    def _hear(self, number: int, _frame: Any) -> None:
        self.told = self.told or number
