"""What the run store knows of a fleet: its nodes, what was last found on them, the serials of their GPUs."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...fleet.judgement import NO_SERIAL, judge_run
from ...fleet.lookup import find
from ...fleet.result import Report
from ...store.sqlite import LATEST, Run, Store, StoreError
from .observe import Sighting, from_report, groups_of

LOOKED_AT = 20
"""Runs among which the fleet's other nodes are looked for: one with --limit has only some."""
MOST_PAST = 10
"""Earlier records of a node in which the serial of a GPU that is lost now is looked for."""


@dataclass
class LastSeen:
    """A run, and the fleet around it. run: the newest that was looked at."""

    run: Run
    sightings: list[Sighting] = field(default_factory=list)
    groups: dict[str, str] = field(default_factory=dict)


def look(store: Store, name: str) -> LastSeen:
    """A run by id or "latest", with every node of its inventory. Raises StoreError.

    Of the latest run's inventory each node is seen as the newest run with it saw it: a proof of one node is a run too.
    """
    run = store.run(find(store, name).run_id)
    if name == LATEST and not run.finished_at:
        # Nodes that have not answered yet look lost in it: a healthy one must not be taken out for that.
        ended = [one for one in store.runs(LOOKED_AT) if one.finished_at]
        if not ended:
            raise StoreError(
                f"saw: only run {run.run_id}, not at its end; wanted: a whole one; do: wait, or name it: --run"
            )
        run = store.run(ended[0].run_id)
    alike = runs_alike(store, run)
    groups: dict[str, str] = {}
    for other in alike:
        groups = {**{host.host: host.instance_type for host in other.hosts if host.instance_type}, **groups}
    seen, found = LastSeen(run, groups=groups), dict[str, Sighting]()
    for other in [run, *(one for one in alike if name == LATEST and one.run_id != run.run_id and one.finished_at)]:
        if other.run_id != run.run_id and not {host.host for host in other.hosts} - found.keys():
            continue
        report = judge_run(store, other.run_id)
        for sighting in from_report(report, serials(store, report)):
            found.setdefault(sighting.host, sighting)
        seen.groups = {**groups_of(report), **seen.groups}
        if seen.groups.keys() <= found.keys():
            break
    seen.sightings = list(found.values())
    return seen


def runs_alike(store: Store, run: Run) -> list[Run]:
    """The latest runs of a run's inventory, newest first: together they have the fleet's nodes. Raises StoreError."""
    return [store.run(other.run_id) for other in store.runs(LOOKED_AT) if other.inventory == run.inventory]


def serials(store: Store, report: Report) -> dict[tuple[str, str], str]:
    """(host, PCI address or index) -> serial, for no-go nodes: a lost GPU no longer tells its own."""
    found: dict[tuple[str, str], str] = {}
    for row in report.rows:
        devices = [trouble.root.get("device") or {} for trouble in row.troubles]
        if not any(device and not device.get("serial") for device in devices):
            continue
        for past in store.history(row.host, MOST_PAST):
            if row.instance_id and past.instance_id != row.instance_id:
                continue  # another machine of that name
            for gpu in past.record.get("gpus") or ():
                serial = str(gpu.get("serial") or "")
                if serial not in NO_SERIAL:
                    for key in ("pci", "pci_bus_id", "index"):
                        if gpu.get(key) not in (None, ""):
                            found.setdefault((row.host, str(gpu[key])), serial)
    return found
