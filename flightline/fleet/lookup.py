"""Look runs up, and compare two: what is new, what is gone, what is the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from flightline_node.judge.kernel_history import pci_key
from flightline_node.model import BLOCKING, EVIDENCE, Verdict, device_label
from flightline_node.suggest import meant

from ..store.rows import ABSENT
from ..store.sqlite import LATEST, Run, Store, StoreError
from .causes import Finding, Trouble
from .result import NodeRow, Report

LOOKED_AT = 500
"""Runs among which a misspelt id is looked for."""


def find(store: Store, name: str) -> Run:
    """A run by id or "latest". Raises StoreError that names the runs that look like it."""
    try:
        return store.run(name)
    except StoreError as error:
        if name == LATEST:
            raise
        near = meant(name, [run.run_id for run in store.runs(LOOKED_AT)])
        raise StoreError(f"{error}{near}") from error


def failed_hosts(report: Report) -> tuple[list[str], list[str]]:
    """No-go hosts that can be judged again, and those that are in no inventory (launched by no one)."""
    bad = [row for row in report.rows if row.verdict is Verdict.NO_GO]
    gone = [row.host for row in bad if ABSENT in row.cells]
    return [row.host for row in bad if row.host not in set(gone)], gone


@dataclass(frozen=True)
class Change:
    """One trouble of one node. was: its message in the earlier run, where it was there too."""

    host: str
    check: str
    device: str
    status: str
    remedy: str
    message: str


@dataclass
class Difference:
    """What changed from one run to a later one.

    unjudged: troubles of nodes that the later run did not measure again, so that nothing says they are over.
    """

    new: list[Change] = field(default_factory=list)
    gone: list[Change] = field(default_factory=list)
    same: list[Change] = field(default_factory=list)
    unjudged: list[Change] = field(default_factory=list)
    appeared: list[str] = field(default_factory=list)
    vanished: list[str] = field(default_factory=list)

    @property
    def is_worse(self) -> bool:
        """Is there anything that the earlier run did not have, or that nobody looked at again?"""
        return bool(self.new or self.unjudged or self.vanished)


def difference(before: Report, after: Report) -> Difference:
    """Compare the root causes of two runs, node by node."""
    old, new = _rows(before), _rows(after)
    found = Difference(
        appeared=[host for host in new if host not in old], vanished=[host for host in old if host not in new]
    )
    for host, row in new.items():
        _compare(old.get(host), row, found)
    return found


def _rows(report: Report) -> Mapping[str, NodeRow]:
    return {row.host: row for row in report.rows}


def _compare(old: NodeRow | None, new: NodeRow, found: Difference) -> None:
    then = _troubles(old) if old else {}
    now, everything = _troubles(new), {_key(one) for one in _blocking(new)}
    for key, trouble in now.items():
        (found.same if key in then else found.new).append(_change(new.host, trouble))
    for key, trouble in then.items():
        if key not in now and key not in everything:
            over = new.cells.get(key[0]) in EVIDENCE - BLOCKING or _told_well(new, key)
            (found.gone if over else found.unjudged).append(_change(new.host, trouble))


def _told_well(row: NodeRow, key: tuple[str, str]) -> bool:
    """The check failed for another part, so it did look at this one."""
    return any(one["check"] == key[0] and one["status"] == "FAIL" and one.get("device") for one in row.findings)


def _blocking(row: NodeRow) -> Iterable[Finding]:
    return (one for trouble in row.troubles for one in (trouble.root, *trouble.explained))


def _troubles(row: NodeRow) -> dict[tuple[str, str], Trouble]:
    found: dict[tuple[str, str], Trouble] = {}
    for trouble in row.troubles:
        found.setdefault(_key(trouble.root), trouble)
    return found


def _key(finding: Finding) -> tuple[str, str]:
    """What makes a trouble the same in another run: the check and the part, by what outlives a reboot."""
    device = finding.get("device") or {}
    known = next((str(device[key]) for key in ("serial", "uuid") if device.get(key)), "")
    return str(finding["check"]), known or (pci_key(str(device["pci"])) if device.get("pci") else device_label(device))


def _change(host: str, trouble: Trouble) -> Change:
    root = trouble.root
    label = device_label(root.get("device") or {})
    words = (str(root.get(key, "")) for key in ("status", "remedy", "message"))
    return Change(host, str(root["check"]), label, *words)


def classes(found: Difference) -> Iterator[tuple[str, str, list[Change]]]:
    """Name for scripts, heading for people, and the changes of each kind, worst news first."""
    yield "new", "New", found.new
    yield "unjudged", "Not judged again (nothing says that it is over)", found.unjudged
    yield "same", "Still there", found.same
    yield "gone", "Gone", found.gone
