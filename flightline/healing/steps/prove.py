"""The proof: a preflight of the level that found the fault, kept in the run store like any other."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from flightline_node.model import EVIDENCE, SettingsError, Verdict

from ...fleet.judgement import judge_run
from ...record.intake import is_go
from ...run import cluster_inventory, inventory, launchers, process_tree
from ...run.conclude import Conclusion, publish
from ...run.live import RunObserver
from ...run.locate import open_store
from ...run.preflight import CannotRunError, Request, run
from ...store.sqlite import LATEST, TOGETHER, Record, Run, SqliteStore, StoreError, now_stamp
from . import apart
from .ports import EdgeError, Verified


@dataclass
class BegunProof:
    """A preflight of idle nodes under way. place: its own files, its run store among them; store: where it ends up.

    stopped: it was ended early, so that what a node did not answer says nothing of that node.
    """

    process: subprocess.Popen[bytes]
    place: Path
    store: Path
    stopped: bool = False

    @property
    def over(self) -> bool:
        """Has it ended by itself?"""
        return self.process.poll() is not None

    def stop(self) -> None:
        """End it and all that it started, the connections to the nodes too, whose tests end with those."""
        self.stopped = not self.over
        process_tree.end_with_sessions(process_tree.descendants(self.process.pid))
        self.process.kill()
        self.process.wait()

    def answers(self) -> tuple[Run | None, list[Record]]:
        """The run and what its nodes answered; of one that was stopped only what nodes said themselves."""
        try:
            with SqliteStore(self.place / apart.STORE, create=False) as store:
                run = store.run(LATEST)
                found = [record for record in store.records(run.run_id) if record["host"] != TOGETHER]
        except StoreError:
            return None, []
        return run, [record for record in found if len(record["findings"]) > 1 or not self.stopped]

    def sick(self) -> list[str]:
        """Hosts that it found no-go."""
        return [str(record["host"]) for record in self.answers()[1] if not is_go(record)]

    def keep(self) -> str:
        """Put the run among the others, and publish it; its id, or '' where nobody answered. Raises StoreError."""
        run, records = self.answers()
        said = self.process.stderr.read().decode("utf-8", "replace").strip() if self.process.stderr else ""
        shutil.rmtree(self.place, ignore_errors=True)
        if run is None or not records:
            if self.stopped:
                return ""
            raise EdgeError(f"preflight of idle nodes: {said[-300:] or 'nobody was asked'}")
        names = {str(record["host"]) for record in records}
        own = tuple(host for host in run.hosts if host.host in names or not self.stopped)
        with SqliteStore(self.store) as store:
            store.start(replace(run, hosts=own, finished_at="", verdict=""))
            for record in records:
                store.save(run.run_id, record)
            report = judge_run(store, run.run_id)
            store.finish(run.run_id, now_stamp(), str(report.verdict))
        publish(Conclusion(report), self.store, None)
        return run.run_id


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
            # Not as the inventory says: a scheduler starts nothing on a node that is out of service.
            launcher = launchers.make(cluster_inventory.launcher_of(self.inventory) or launchers.DEFAULT)
            request = Request(self._sources(), f"@{limit}", extra, self.store)
            try:
                report = run(request, RunObserver(), launcher).report
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

    def begin(self, hosts: Collection[str], level: str) -> BegunProof:
        """Judge idle nodes in a process of its own, which ends with this one. Raises EdgeError."""
        place = Path(tempfile.mkdtemp(prefix="flightline-proof-"))
        limit = place / "hosts"
        limit.write_text("".join(f"{host}\n" for host in hosts), encoding="utf-8")
        asked = {"inventory": self._sources(), "via": cluster_inventory.launcher_of(self.inventory)}
        asked |= {"limit": f"@{limit}", "level": level, "place": str(place)}
        argv = [sys.executable, "-m", apart.__name__]
        process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        assert process.stdin
        process.stdin.write(json.dumps(asked).encode() + b"\n")
        process.stdin.flush()
        return BegunProof(process, place, self.store)

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
