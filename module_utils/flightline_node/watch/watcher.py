"""The watcher itself: one loop that waits for the kernel, the tools it keeps running, and the clock."""

from __future__ import annotations

import os
import select
import signal
import time
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ..ask import decided
from ..kubernetes import names
from ..model import Finding
from . import claim, report, slurm
from . import marker as marking
from .intake import Intake
from .journal import JournalFeed
from .kmsg import NOWHERE, Batch, Hole, Kmsg, Mark, boot_id
from .latch import Latch
from .options import Options
from .out_of_service import Hands, complain
from .samples import SampleFeed
from .smi import SmiFeed
from .systemd import SystemdNotifier
from .verdicts import KERNEL, Rules

SETTLE_S = 0.005
"""A trouble has several lines: after the first of note the rest is awaited before they are judged together."""
JUDGE_SHARE, LONGEST_PAUSE_S = 10.0, 0.15
"""In a storm: pause this many times what judging took, a tenth of a core; but no fault waits longer than the pause."""
WARM_UP = b"3,0,0,-;NVRM: Xid (PCI:0000:00:00): 79, pid=0, GPU has fallen off the bus.\n"
"""Read and judged once at the start: tables and patterns are made when they are first used; a fault must not wait."""
STATE_EVERY_S = 5.0
REOPEN_S = 5.0
LONGEST_WAIT_S = 5.0
LAST_WORDS_S = 2.0


class Watcher:
    """Follows, judges and takes out of service. Everything that changes over time is here; the rest are its parts."""

    def __init__(
        self, options: Options, rules: Rules, who: Mapping[str, str], hands: Hands, feeds: Sequence[Any] = ()
    ) -> None:
        self._options, self._rules, self._who, self._hands = options, rules, who, hands
        self._journal = JournalFeed(rules, options.path)
        self._feeds = [*feeds, self._journal]
        self._settled_s = 0.0
        self._directory = Path(options.directory)
        self._boot = boot_id(options.root)
        self._intake = Intake()
        self._clock = marking.Clock()
        self._latch = Latch(who["host"], who["instance_id"], self._boot)
        self._notifier = SystemdNotifier()
        self._kmsg: Optional[Kmsg] = None
        self._settled_seq = -1
        self._released_at = 0
        self._lost = 0
        self._judge_next = self._beat_next = self._state_next = self._reopen_next = self._alive_next = 0.0
        self._pending = False
        self._said_unreadable = False
        self._saved: Dict[str, Any] = {}
        self._stop = False
        self._woken = -1

    def run(self) -> None:
        """Watch until asked to end. Raises OSError when there is nowhere to write."""
        self._listen_for_the_end()
        self.begin()
        try:
            while not self._stop:
                self.step()
        finally:
            self.end()

    def begin(self) -> None:
        """Find out where the last watcher stopped, and be ready. Raises OSError."""
        self._directory.mkdir(mode=0o755, parents=True, exist_ok=True)
        warm = Intake()
        warm.take(WARM_UP)
        self._rules.judge(KERNEL, {"kernel": warm.facts()})
        self._remember()
        self._open()
        self._notifier.say("READY=1", "STATUS=watching")

    def end(self) -> None:
        """Keep what the next watcher needs, and leave nothing running."""
        self._notifier.say("STOPPING=1")
        for feed in self._feeds:
            feed.close()
        self._keep_state(force=True)
        self._hands.finish(LAST_WORDS_S)
        if self._kmsg:
            self._kmsg.close()
            self._kmsg = None

    def step(self, longest_s: float = LONGEST_WAIT_S) -> None:
        """Wait for something to happen and deal with it."""
        handles = [feed.fd for feed in self._feeds if feed.fd is not None]
        handles += [self._kmsg.fd] if self._kmsg else []
        handles += [self._woken] if self._woken >= 0 else []
        ready, _, _ = select.select(handles, [], [], min(longest_s, self._wait_s()))
        now = time.monotonic()
        self._look_for_release()
        if self._kmsg and self._kmsg.fd in ready:
            self._read_kernel()
        elif self._kmsg is None and now >= self._reopen_next:
            self._open()
        if self._pending and time.monotonic() >= self._judge_next:
            self._judge_kernel()
        for feed in self._feeds:
            now = time.monotonic()
            found = feed.step(feed.fd in ready, now)
            # The monotonic clock begins with the boot. What the kernel said counts from its first line.
            self._found(found if feed is self._journal or now >= self._options.boot_grace_s else [])
        self._tick(time.monotonic())

    def _wait_s(self) -> float:
        now = time.monotonic()
        dues: List[float] = [self._beat_next, *(feed.due for feed in self._feeds)]
        if self._notifier.watchdog_s:
            dues.append(self._alive_next)
        if self._pending:
            dues.append(self._judge_next)
        if self._kmsg is None:
            dues.append(self._reopen_next)
        return max(0.0, min(dues) - now)

    def _tick(self, now: float) -> None:
        if self._notifier.watchdog_s and now >= self._alive_next:
            self._alive_next = now + self._notifier.watchdog_s / 3
            self._notifier.say("WATCHDOG=1")
        self._keep_state()
        if now >= self._beat_next:
            self._beat_next = now + self._options.beat_every_s
            counts = {"kernel_lines_suppressed": self._intake.suppressed, "kernel_records_lost": self._lost}
            for feed in self._feeds:
                counts.update(feed.counts())
            suspect = (self._hands.scheduler() or {}).get("state") == slurm.SUSPECT
            states = {"WatchQuarantined": self._latch.marker is not None and not suspect, "WatchSuspect": suspect,
                      "WatchBlind": self._kmsg is None}  # fmt: skip
            line = report.beat(self._who, self._options.namespace, states, counts)
            try:
                report.append(Path(self._options.heartbeat_log), line)
            except OSError as error:
                complain(f"saw: {error}; wanted: a heartbeat in {self._options.heartbeat_log}; do: check free space")

    # ---- where reading stopped

    def _remember(self) -> None:
        """Go on where the last watcher stopped: its marker, and what a release has settled in this boot."""
        try:
            self._latch.load(marking.read(self._directory))
        except marking.MarkerError as error:
            complain(str(error))
        if self._latch.marker:
            self._hands.resume(self._latch.marker)
        else:
            self._hands.released()  # while no watcher ran: what the last one had marked ends too
        self._look_for_release(first=True)
        try:
            self._saved = marking.read_json(self._directory / marking.STATE) or {}
        except marking.MarkerError as error:
            complain(str(error))

    def _look_for_release(self, first: bool = False) -> None:
        try:
            changed = (self._directory / marking.RELEASED).stat().st_mtime_ns
        except OSError:
            return
        if changed == self._released_at:
            return
        self._released_at = changed
        try:
            settled = marking.read_json(self._directory / marking.RELEASED) or {}
        except marking.MarkerError as error:
            complain(str(error))
            return
        if settled.get("boot_id") == self._boot:
            number, since = settled.get("seq"), settled.get("uptime_s")
            self._settled_s = float(since) if isinstance(since, (int, float)) else 0.0
            self._settled_seq = number if isinstance(number, int) else self._kmsg.last.seq if self._kmsg else -1
        if first:
            return
        self._intake.forget()
        self._latch.load(None)
        self._hands.released()
        self._pending = False
        for feed in self._feeds:
            feed.forget()
        self._journal.settle(self._settled_s)
        complain(f"released by run {settled.get('run')}")
        if self._kmsg and isinstance(settled.get("seq"), int):
            # Read again from there: what came while the release was being written is not settled by it.
            self._kmsg.close()
            self._open()

    def _open(self) -> None:
        """Open the kernel's buffer. Its lines since the last settled trouble are read again, for what later ones mean.

        They are judged as one; what is latched already stays the same trouble, so nothing is told twice.
        """
        self._reopen_next = time.monotonic() + REOPEN_S
        try:
            self._kmsg = Kmsg(self._options.kmsg, Mark(self._settled_seq, -1))
        except OSError as error:
            self._unreadable(error)
            return
        self._said_unreadable = False
        batch = self._kmsg.read()
        self._take(batch._replace(holes=self._missed(batch)))

    def _missed(self, batch: Batch) -> Tuple[Hole, ...]:
        """The holes in what is read at the start. Where nobody watched before, nothing is missed."""
        if batch.first == NOWHERE:
            return ()
        seen = self._settled()
        holes = [Hole(seen, batch.first)] if seen.seq >= 0 else []
        holes += [hole for hole in batch.holes if hole.after.seq >= batch.first.seq]
        cut = [Hole(max(hole.after, seen), hole.before) for hole in holes]
        return tuple(hole for hole in cut if hole.size > 0)

    def _settled(self) -> Mark:
        """What the last watcher read, or what a release has settled, the later of both; NOWHERE for neither."""
        seq, us = self._saved.get("seq"), self._saved.get("us")
        ours = self._saved.get("boot_id") == self._boot and isinstance(seq, int)
        read = Mark(int(str(seq)), us if isinstance(us, int) else -1) if ours else NOWHERE
        return max(read, Mark(self._settled_seq, -1)) if ours else NOWHERE

    def _unreadable(self, error: OSError) -> None:
        if not self._said_unreadable:
            complain(f"saw: {error}; wanted: {self._options.kmsg} readable; do: run as root with CAP_SYSLOG")
        self._said_unreadable = True

    def _keep_state(self, force: bool = False) -> None:
        now = time.monotonic()
        last = self._kmsg.last if self._kmsg else NOWHERE
        if last.seq < 0 or (now < self._state_next and not force):
            return
        state = {"boot_id": self._boot, "seq": last.seq, "us": last.us}
        if state != self._saved:
            self._state_next, self._saved = now + STATE_EVERY_S, state
            self._hands.save_state(state)

    # ---- the kernel

    def _read_kernel(self) -> None:
        assert self._kmsg is not None
        try:
            batch = self._kmsg.read()
            if self._take(batch) and not batch.more:
                time.sleep(SETTLE_S)
                self._take(self._kmsg.read())
        except OSError as error:
            self._unreadable(error)
            self._kmsg.close()
            self._kmsg, self._reopen_next = None, time.monotonic() + REOPEN_S

    def _take(self, batch: Batch) -> int:
        if batch.holes:
            self._lost += batch.lost
            complain(f"{batch.lost} kernel messages were overwritten before they were read: asking the journal")
            self._journal.ask(batch.holes, self._settled_s)
        found = self._intake.take(batch.data) if batch.data else 0
        self._pending = self._pending or found > 0
        return found

    def _judge_kernel(self) -> None:
        began = time.monotonic()
        self._pending = False
        self._found(self._rules.judge(KERNEL, {"kernel": self._intake.facts()}))
        took = time.monotonic() - began
        self._judge_next = time.monotonic() + min(took * JUDGE_SHARE, LONGEST_PAUSE_S)

    # ---- what was found

    def _found(self, findings: List[Finding]) -> None:
        if not findings:
            return
        now = self._clock.stamp()
        run = f"watch-{self._who['host']}-{''.join(ch for ch in now if ch.isalnum())}"
        before = self._latch.version
        fresh = self._latch.take(findings, run, now)
        if fresh and self._latch.marker:
            self._hands.quarantine(self._latch.marker, run, report.record(self._who, fresh, self._rules.gpus, now))
            for finding in fresh:
                complain(f"quarantine, run {run}: {finding.status} {finding.check}: {finding.message}")
        elif self._latch.version != before and self._latch.marker:
            self._hands.quarantine(self._latch.marker, run, None)

    def _listen_for_the_end(self) -> None:
        self._woken, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end)

    def _end(self, *_: object) -> None:
        self._stop = True


def feeds_of(options: Options, rules: Rules, nvidia: bool) -> List[Any]:
    """What is followed besides the kernel; an interval of 0 leaves it out."""
    feeds: List[Any] = []
    if nvidia and options.smi_every_s:
        feeds.append(SmiFeed(rules, options.path, options.smi_every_s))
    if options.sample_every_s:
        dcgm_s = options.dcgm_every_s if nvidia else 0.0
        feeds.append(SampleFeed(rules, options.root, options.path, options.sample_every_s, dcgm_s))
    return feeds


def scheduler_of(options: Options) -> str:
    """Slurm, Kubernetes or none: as the site says, else by what the process and the node have."""
    if options.scheduler != "auto":
        return options.scheduler
    if os.environ.get(names.NODE_ENV):
        return "kubernetes"
    return "slurm" if slurm.is_there(options.path, options.root) else "none"


def hands_of(options: Options) -> Hands:
    """The hands for this node's scheduler."""
    kind = scheduler_of(options)
    node = options.slurm_node or next(decided.own_names(options.root))
    directory, log = Path(options.directory), Path(options.log)
    if kind == "slurm":
        ask, free = slurm.asking(options.path), [False]

        def drain(reason: str, _: str, again: bool) -> slurm.DrainResult:
            with marking.locked(directory, marking.CLAIM_LOCK):
                eager, free[0] = free[0], False
                return slurm.drain(node, reason, ask, options.policy, options.suspects, again=again, eager=eager)

        def lift() -> str:
            try:
                free[0] = slurm.lift(node, ask, lambda there: there.by == claim.WATCH)
            except (slurm.AwayError, OSError) as error:
                return str(error)
            return ""

        return Hands(directory, log, drain, kind, lift)
    if kind == "kubernetes":
        from ..kubernetes import drain as kubernetes  # TLS is a third of a watcher's memory, and only this one needs it

        def taint(reason: str, run: str, again: bool) -> slurm.DrainResult:
            with marking.locked(directory, marking.CLAIM_LOCK):
                return kubernetes.taint(reason, run, os.environ, options, again)

        return Hands(directory, log, taint, kind, lambda: kubernetes.lift(os.environ))
    return Hands(directory, log, None, kind)
