"""Publish runs: DynamoDB and S3 first, then people are told; in order, each once, whenever it was interrupted.

A run is queued on disk (outbox.py) before anything is sent. Its stages are stored, planned, told, remembered; a
stage that was cut off is done again and changes nothing: items are functions of the run, objects and headers are
written once, and the digest is decided once and kept before it is sent. Only a message whose acknowledgement was
lost can come twice: it carries a key, by which a FIFO topic and other readers drop it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flightline_node.model import SettingsError

from .. import report as reports
from ..fleet.judgement import judge_run
from ..store.bundles import bundle_file
from ..store.sqlite import Run, SqliteStore, StoreError, spill_files
from ..tell import digest as messages
from ..tell.channels import CHANNELS
from ..tell.voice import Voice
from . import blobs, outbox
from .alerts import alerts_of, digest_of, healthy
from .awsstore import AwsStore, StoreRefusedError
from .clients import Clients, explained
from .publish_settings import Publish
from .publish_settings import publish as read_settings
from .telling import voice_of

HOUR_S = 3600.0


@dataclass
class Published:
    """What came of it: notes are good news, troubles say what waits and why, one sentence each."""

    notes: list[str] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)


class PublishError(RuntimeError):
    """Something could not be sent now."""


def publish_run(store: Path, run_id: str, settings: Publish) -> Published:
    """Queue a run and send what is queued. Never raises for what cannot be reached: it is told and kept."""
    try:
        with outbox.Outbox(store) as queue:
            queue.add(run_id, settings.target, settings.to_dict())
        return drain(store)
    except StoreError as error:
        return Published(troubles=[f"run {run_id} was not published: {error}; later: flightline publish {run_id}"])


def drain(store: Path, wait_s: float = outbox.LOCK_WAIT_S) -> Published:
    """Send everything that is queued, in order. A target that refuses keeps its later runs waiting, no other's."""
    outcome = Published()
    with outbox.Outbox(store) as queue, queue.lock(wait_s) as mine:
        if not mine:
            return Published(troubles=["another publisher is at work on this queue; it sends what is waiting"])
        stopped: set[str] = set()
        while jobs := [job for job in queue.open_jobs() if job.target not in stopped]:
            job = jobs[0]
            try:
                work = _Job(store, queue, job)
                outcome.notes.append(work.run())
                outcome.troubles += work.troubles
            except (StoreRefusedError, SettingsError) as error:
                queue.advance(job, outbox.DONE)
                text = (
                    f"run {job.run_id} is not published: {error}; it is not tried again, the run itself is in {store}"
                )
                outcome.troubles.append(text)
            except (StoreError, PublishError) as error:
                stopped.add(job.target)
                queue.failed(job, str(error))
                outcome.troubles.append(f"run {job.run_id} waits to be published: {error}; then: flightline publish")
    return outcome


class _Job:
    """One run on its way to one target."""

    def __init__(self, store: Path, queue: outbox.Outbox, job: outbox.PublishJob) -> None:
        settings = read_settings(job.settings)
        assert settings is not None, "a job has a target"
        self.settings, self.store, self.queue, self.job = settings, store, queue, job
        self.clients = Clients(settings.region)
        self.aws = AwsStore(settings.table, settings.bucket, self.clients, settings.ttl_days)
        self.said: list[str] = []
        self.troubles: list[str] = []

    def run(self) -> str:
        """Do the stages that are left; returns what was done, in a sentence."""
        with SqliteStore(self.store, create=False) as local:
            run = self._find(local)
            if run is None:
                self.job = self.queue.advance(self.job, outbox.DONE)
                return f"run {self.job.run_id} is not in the run store any more: dropped from the queue"
            if self.job.stage == outbox.WAITING:
                self._stage(outbox.STORED, f"s3://{self.settings.bucket}", lambda: self._keep(local, run))
            if self.job.stage == outbox.STORED:
                self.job = self.queue.advance(self.job, outbox.PLANNED, self._plan(local, run))
        if self.job.stage == outbox.PLANNED:
            self._tell(voice_of(self.settings, self.clients))
        self._stage(outbox.DONE, self.aws.path, self._remember)
        return f"run {self.job.run_id} published: {', '.join(self.said) or 'nothing was left to do'}"

    def _find(self, local: SqliteStore) -> Run | None:
        try:
            return local.run(self.job.run_id)
        except StoreError:
            local.runs(1)  # raises when it is the store that cannot be read
            if spill_files(self.store):
                raise
            return None

    def _stage(self, stage: str, where: str, work: Callable[[], None]) -> None:
        with _explained(where):
            work()
        self.job = self.queue.advance(self.job, stage)

    def _keep(self, local: SqliteStore, run: Run) -> None:
        """Everything of the run; what an item points to is there before the item."""
        if self.settings.table:
            self.aws.start(run)
        places = self._bundles(run) if self.settings.bucket else {}
        if self.settings.table:
            known = self.queue.gpus(self.settings.target)
            written = self.aws.save_many(run, local.records(run.run_id), places, known)
            self.queue.add_gpus(self.settings.target, written)
            stats = self.aws.stats
            self.said.append(f"{stats.items:,} items to {self.aws.path} in {stats.calls:,} batches")
        if self.settings.bucket:
            self._report(local, run)
        if self.settings.table and run.finished_at:
            self.aws.finish(run.run_id, run.finished_at, run.verdict)

    def _bundles(self, run: Run) -> dict[str, str]:
        client, bucket, places = self.clients.get("s3"), self.settings.bucket, dict[str, str]()
        for host in run.hosts:
            path = bundle_file(self.store, run.run_id, host.host)
            if path.is_file():
                key = blobs.run_key(run.run_id, "bundles", f"{host.host}.tar.gz")
                places[host.host] = blobs.put_file(client, bucket, key, path, blobs.PACKED)
        if places:
            self.said.append(f"{len(places):,} bundles to s3://{bucket}")
        return places

    def _report(self, local: SqliteStore, run: Run) -> None:
        report = judge_run(local, run.run_id)
        with tempfile.TemporaryDirectory(prefix="flightline-report-") as directory:
            paths = reports.write_all(report, lambda: local.records(run.run_id), Path(directory))
            blobs.put_report(self.clients.get("s3"), self.settings.bucket, run.run_id, paths)
        self.said.append(f"report to s3://{self.settings.bucket}")

    def _plan(self, local: SqliteStore, run: Run) -> dict[str, Any]:
        """Decide once what is told. From the run's own moment, so that a delay changes nothing."""
        settings = self.settings
        if not settings.tells:
            return {}
        report, now = judge_run(local, run.run_id), run.finished_at or run.started_at
        known = self.aws.alerts(settings.scope) if settings.table else self.queue.alerts(settings.scope)
        plan = messages.plan(known, alerts_of(report), healthy(report), now, settings.renotify_hours * HOUR_S)
        store = self.aws.path if settings.table else ""
        digest = digest_of(report, plan, settings.scope, settings.link_of(run.run_id), store)
        return {"digest": digest.to_json() if digest else "", "put": plan.put, "drop": plan.drop, "now": now}

    def _digest(self) -> messages.Digest | None:
        text = self.job.plan.get("digest")
        return messages.Digest.from_json(text) if text else None

    def _tell(self, voice: Voice) -> None:
        """Through every channel that has not been told. Raises PublishError while one of them waits."""
        digest, sent = self._digest(), _Sent(self)
        if digest:
            outcome = voice.tell(digest, sent)
            self.said += [
                f"{CHANNELS[name].title} told of {len(digest.alerts):,} troubles, {len(digest.recovered):,} recovered"
                for name in outcome.delivered
            ]
            for name, why in outcome.refused.items():
                about = f"{CHANNELS[name].title} was not told of run {self.job.run_id} and will not be"
                self.troubles.append(f"{about}: {why}")
            if outcome.waits:
                raise PublishError("; ".join(outcome.waits.values()))
        self.job = self.queue.advance(self.job, outbox.TOLD)

    def _remember(self) -> None:
        put, drop = self.job.plan.get("put") or {}, self.job.plan.get("drop") or []
        if not put and not drop:
            return
        if self.settings.table:
            self.aws.remember(self.settings.scope, put, drop, self.job.plan["now"])
        else:
            self.queue.remember(self.settings.scope, put, drop)


@dataclass
class _Sent:
    """What was told of a job's message: a list in its plan, on disk after each channel."""

    work: _Job

    def begin(self, channel: str) -> bool:
        return channel not in self.work.job.plan.get("sent", ())

    def sent(self, channel: str, thread: str) -> None:
        job = self.work.job
        plan = {**job.plan, "sent": [*job.plan.get("sent", ()), channel]}
        self.work.job = self.work.queue.advance(job, job.stage, plan)

    def not_sent(self, channel: str) -> None:
        """It is not in the list."""


@contextmanager
def _explained(where: str) -> Iterator[None]:
    """Turn what AWS says into a PublishError that names it."""
    with explained(PublishError, where):
        try:
            yield
        except OSError as error:
            raise PublishError(f"{error.filename or ''} {error.strerror or error}".strip()) from error
