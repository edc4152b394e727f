"""The verdict of a run, by the fleet code of the control side.

It is given once, when all is in or the deadline is over, and again with what comes late; the first and its report stay.

Everything here may be done twice: rows and objects are written once, the first closing of a run stays, and a claim
keeps two invocations from judging at the same time.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from flightline.cloud import blobs
from flightline.cloud.alerts import alerts_of, headline, healthy
from flightline.cloud.awsstore import AwsStore
from flightline.cloud.orders import Order
from flightline.fleet.judgement import as_judged, judge_run
from flightline.fleet.result import Report
from flightline.report import write_all
from flightline.store.rows import unreachable_record
from flightline.store.sqlite import Record

from ..common import stamps
from ..common.claims import BUSY, IS_DONE, Claims
from ..common.errors import TryAgain
from ..common.notify import NoticeContext, Notifier
from .answers import Answers, rows

GIVEN_UP = "no answer before the deadline"


@dataclass(frozen=True)
class Judge:
    """store: the results table. s3, bucket: where reports go. notifier: who tells people, of this scope."""

    store: AwsStore
    s3: Any
    bucket: str
    claims: Claims
    notifier: Notifier
    answers: Answers
    scope: str

    def first(self, order: Order, is_due: bool) -> bool:
        """Judge the run unless that was done; False when an answer is still on its way into the table.

        Raises TryAgain when another invocation is at it.
        """
        run_id = order.run.run_id
        with self.store.holding(run_id):
            missing = order.expected().keys() - self.store.answered(run_id)
            if missing and not is_due:
                return False
            if missing:
                self._give_up(order, missing)
                self.store.look_again(run_id, missing)
            self._first(order)
        return True

    def _first(self, order: Order) -> None:
        run_id = order.run.run_id
        with self._once(f"verdict:{run_id}") as is_mine:
            if not is_mine:
                return
            report = judge_run(self.store, run_id, late=False)
            self.store.finish(run_id, stamps.now(), str(report.verdict))
            report.run = replace(report.run, finished_at=self.store.run(run_id).finished_at)
            self._write(report, lambda: self.store.records(run_id), ())
            self._tell(report, report.run.finished_at)

    def again(self, order: Order) -> None:
        """Judge a closed run with what came late, once for the same late nodes. Raises TryAgain as `first`."""
        run_id = order.run.run_id
        late = [str(record["host"]) for record in self.store.late(run_id)]
        if not late:
            return
        digest = hashlib.sha256("\n".join(late).encode("utf-8", "replace")).hexdigest()[:16]
        with self._once(f"verdict:{run_id}:{digest}") as is_mine:
            if is_mine:
                report = judge_run(self.store, run_id)
                self._write(report, lambda: as_judged(self.store, run_id), (f"late-{len(late)}-{digest}",))
                self._tell(report, stamps.now(), f"late: {len(late)} answered after the deadline; first {report.first}")

    @contextmanager
    def _once(self, key: str) -> Iterator[bool]:
        """Whether this is to be done here; False when it was done. What is not done in the end is given back."""
        state = self.claims.take(key)
        if state == BUSY:
            raise TryAgain(f"another invocation is at {key}")
        if state == IS_DONE:
            yield False
            return
        try:
            yield True
        except BaseException:
            self.claims.release(key)
            raise
        self.claims.done(key)

    def _give_up(self, order: Order, missing: Collection[str]) -> None:
        """The rows of hosts that gave no answer; one that comes at this moment stays."""
        expected, words = order.expected(), f"{GIVEN_UP} (asked: {order.how})"
        self.answers.keep(rows(order, (unreachable_record(expected[host], words) for host in sorted(missing))))

    def _write(self, report: Report, records: Callable[[], Iterator[Record]], below: tuple[str, ...]) -> None:
        """The report's files in the bucket; what is there already stays."""
        with tempfile.TemporaryDirectory(prefix="flightline-report-") as directory:
            paths = write_all(report, records, Path(directory))
            blobs.put_report(self.s3, self.bucket, report.run.id, paths, *below)

    def _tell(self, report: Report, at: str, *more: str) -> None:
        """People are told of what is new, and always that there is a verdict: nobody waits for it."""
        facts = (*more, f"run {report.run.id}", f"level {report.run.level}", f"flightline report {report.run.id}")
        title = "; ".join((headline(report, self.scope), *more))
        notice = NoticeContext(title, stamps.utc(at), report.run.id, facts=lambda alerts: facts)
        if not self.notifier.tell(alerts_of(report), healthy(report), notice):
            self.notifier.announce(notice)
