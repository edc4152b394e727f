"""The proof: a preflight of the level that found the fault, kept in the run store like any other."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flightline_node.model import EVIDENCE, SettingsError, Verdict

from ...run import cluster_inventory, inventory, launched
from ...run.launchers.kubernetes import KubernetesLauncher
from ...run.locate import open_store
from ...run.preflight import CannotRunError, Request, run
from .ports import EdgeError, Verified


class _Quiet:
    """Nobody looks at its progress."""

    def expect(self, *_: object) -> None:
        """Say nothing."""

    begin = answer = expect


@dataclass(frozen=True)
class Preflight:
    """Judges nodes of an inventory and keeps the run in a store's file."""

    inventory: tuple[str, ...]
    store: Path

    def prove(self, hosts: Collection[str], level: str) -> dict[str, Verified]:
        """Judge them now, by host or instance id. Raises EdgeError when the preflight itself cannot run."""
        named = self._named(hosts)
        with tempfile.TemporaryDirectory(prefix="flightline-limit-") as directory:
            limit = Path(directory) / "hosts"
            limit.write_text("".join(f"{host}\n" for host in named), encoding="utf-8")
            extra = {"flightline_level": level}
            request = Request(self._sources(), f"@{limit}", extra, self.store)
            try:
                by_agents = cluster_inventory.WORD in self.inventory
                done = launched.run(request, KubernetesLauncher(), _Quiet()) if by_agents else run(request, _Quiet())
                report = done.report
            except CannotRunError as error:
                raise EdgeError(f"preflight: {error}") from error
        records = self._records(report.run.id)
        return {
            named[row.host]: Verified(
                row.verdict is Verdict.GO,
                report.run.id,
                "; ".join(trouble.said for trouble in row.troubles[:3]),
                _serials(records.get(row.host, {})),
                row.host,
                str(records.get(row.host, {}).get("started_at") or ""),
                frozenset(check for check, status in row.cells.items() if status in EVIDENCE),
            )
            for row in report.rows
            if row.host in named
        }

    def _named(self, names: Collection[str]) -> dict[str, str]:
        """Host -> as it was named, for those of the inventory. An instance that just came is only known by its id."""
        if not any(name.startswith("i-") for name in names):
            return {name: name for name in names}
        try:
            hosts = inventory.hosts(self._sources())
        except SettingsError as error:
            raise EdgeError(str(error)) from error
        ids = {str(values.get("instance_id") or ""): host for host, values in hosts.items()}
        return {ids.get(name, name): name for name in names if name in ids or name in hosts}

    def _sources(self) -> tuple[str, ...]:
        """The inventories. Of a cluster on Kubernetes anew each time: a node may have come in another's place."""
        try:
            return cluster_inventory.resolved(self.inventory, self.store)
        except SettingsError as error:
            raise EdgeError(str(error)) from error

    def _records(self, run_id: str) -> dict[str, Mapping[str, Any]]:
        with open_store(self.store) as store:
            return {str(record["host"]): record for record in store.records(run_id)}


def _serials(record: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(gpu["serial"]) for gpu in record.get("gpus") or () if gpu.get("serial"))
