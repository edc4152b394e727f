"""A preflight that nobody waits for: the nodes are asked, a function of the stack judges, the run is fetched later.

The order is written before the first node is asked: from then on the run ends by itself, whatever becomes of this side.
"""

from __future__ import annotations

import json
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from ..store.atomic import write_atomic
from ..store.replies import record_of
from ..store.sqlite import SqliteStore, StoreError, new_run_id
from . import late_answers
from .launched import MARGIN_S, PreparedRun, prepared
from .launchers import LaunchError, make
from .preflight import CannotRunError, Follow, Request, RunObserver

if TYPE_CHECKING:
    from ..cloud.awsstore import AwsStore
    from ..cloud.orders import Order
    from .launchers.ssm import SsmLauncher

VIA = "ssm"


def ask(request: Request, watcher: RunObserver) -> list[str]:
    """Ask the nodes and return; what was done and how to go on, in lines.

    Raises CannotRunError when nobody could be asked, SettingsError for what cannot be asked so.
    """
    from .launchers.ssm import SsmLauncher

    launcher = make(VIA)
    assert isinstance(launcher, SsmLauncher)
    try:
        return _ask(request, launcher, Follow(watcher))
    except (LaunchError, StoreError) as error:
        raise CannotRunError(str(error)) from error


def _ask(request: Request, launcher: SsmLauncher, follow: Follow) -> list[str]:
    from ..cloud.clients import explain, is_aws_error

    made = prepared(request, new_run_id(), follow, launcher)
    run_id, until = made.run.run_id, time.monotonic() + made.deadline_s
    order = _order(made, launcher)
    note = {name: launcher.answers_at[name] for name in ("region", "results_table", "results_bucket")}
    try:
        _write(order, _aws(note), note)
    except Exception as error:
        if not is_aws_error(error):
            raise
        why = explain(error, f"s3://{note['results_bucket']}")
        raise LaunchError(f"saw {why}; wanted the run's order in the bucket") from error
    lines = _noted(request.store, made, note)
    ready = [call for call in made.calls if call.name in order.nodes]
    try:
        launcher.send(ready, run_id, until)
    except KeyboardInterrupt:
        # Whoever was not asked is unreachable in the verdict, which comes all the same.
        why = f"saw an interrupt while nodes were asked, wanted all asked; do: flightline report {run_id}"
        raise CannotRunError(why) from None
    by = datetime.now(timezone.utc) + timedelta(seconds=made.deadline_s + MARGIN_S)
    return [
        *lines,
        f"asked {len(ready)} of {len(made.run.hosts)} nodes through {launcher.how}; the verdict comes by "
        f"{by.isoformat(timespec='seconds')} at the latest, without this command",
        f"then: flightline report {run_id}",
    ]


def _noted(path: Path, made: PreparedRun, note: dict[str, str]) -> list[str]:
    """Remember here where the run is judged; a store that refuses it is a warning: the run is on its way."""
    run_id = made.run.run_id
    try:
        with SqliteStore(path) as store:
            store.start(made.run)
        write_atomic(_note(path, run_id), json.dumps(note).encode())
    except (OSError, StoreError) as error:
        look = f"flightline report {run_id} --store aws:{note['results_table']}"
        return [f"warning: {error}; the run is not known here: {look}"]
    return []


def _order(made: PreparedRun, launcher: SsmLauncher) -> Order:
    ready, lost = launcher.sort_out(made.calls)
    params = {call.host: call.params for call in made.calls}
    rows = [*made.rows, *(record_of(made.hosts[one.host], params[one.host], one) for one in lost)]
    return late_answers.order_of(made.run, made.deadline_s, launcher.how, ready, rows)


def _write(order: Order, aws: AwsStore, note: dict[str, str]) -> None:
    """The run into the table, then its order: the function never meets an order without its run."""
    from ..cloud import blobs, orders
    from ..cloud.clients import Clients

    aws.start(order.run)
    key = orders.key_of(order.run.run_id)
    blobs.put(Clients(note["region"]).get("s3"), note["results_bucket"], key, orders.pack(order))


def fetch(store: SqliteStore, run_id: str) -> list[str]:
    """Bring what the stack has of a run into the store; what is to be said of it, in sentences.

    Raises StoreError when it cannot be had and nothing of it was fetched before.
    """
    path = _note(store.path, run_id)
    if not path.is_file():
        return late_answers.fetch(store, run_id)
    try:
        note = json.loads(path.read_text(encoding="utf-8"))
        return _fetched(store, _aws(note), run_id)
    except StoreError as error:
        if not store.run(run_id).finished_at:
            raise
        return [f"what came since the last look could not be fetched: {error}"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        return [f"{path}: saw {type(error).__name__}: {error}; wanted where run {run_id} was asked; it is not fetched"]


def _fetched(store: SqliteStore, aws: AwsStore, run_id: str) -> list[str]:
    run, mine = aws.run(run_id), store.answered(run_id)
    if aws.answered(run_id) - mine:
        for record in aws.records(run_id):
            if record["host"] not in mine:
                store.save(run_id, record)
    for record in aws.late(run_id):
        store.save_late_record(run_id, record)
    if run.finished_at:
        store.finish(run_id, run.finished_at, run.verdict)
        return []
    found = len(store.answered(run_id))
    return [f"run {run_id} has no verdict yet: {found} of {len(run.hosts)} nodes are known; this is what is there now"]


def _aws(note: dict[str, str]) -> AwsStore:
    from ..cloud.awsstore import AwsStore
    from ..cloud.clients import Clients

    return AwsStore(note["results_table"], note["results_bucket"], Clients(note["region"]))


def _note(store: Path, run_id: str) -> Path:
    """Where it is kept which stack judges a run."""
    return store.parent / "detached" / f"{run_id}.json"
