"""The fabric test as the last stage of a deep preflight: which nodes take part, and the record of what came of it."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from flightline_node.know.expected import NO_TYPE, resolve
from flightline_node.model import BLOCKING, RECORD_SCHEMA, SettingsError, Status, Verdict

from ..fleet.baseline import BaselineError
from ..fleet.judgement import judge_run
from ..fleet.together import FABRIC_HOST, HOST
from ..record import intake
from ..run import baselines, inventory
from ..run.launchers import Gathering, Launcher
from ..store import sqlite as stores
from . import findings, storage
from .ansible import FabricError, FabricRequest, Rounds, fleet_of_hosts, with_baseline, with_places
from .by_launcher import LauncherRounds
from .drive import FabricNodes, drive
from .settings import FabricSettings, wanted_of

LEVEL = "deep"
HostVars = Mapping[str, Mapping[str, Any]]


class Stage:
    """Call it with a run and its store; it tests the nodes that are go, each instance type for itself.

    store: the run store's file; logs and baselines are beside it. chosen: the run was to make some checks only, not its
    level's.
    """

    def __init__(
        self,
        sources: Sequence[str],
        limit: str,
        store: Path,
        say: Callable[[str], None],
        chosen: bool = False,
    ) -> None:
        self.sources, self.limit, self.store, self.say, self.chosen = sources, limit, store, say, chosen
        self.place = store.parent / "fabric"

    def check(self) -> None:
        """Read what the inventory wants of the test before any node is touched. Raises SettingsError."""
        for given in inventory.hosts(self.sources, self.limit).values():
            wanted_of(given)

    def __call__(self, run: stores.Run, store: stores.Store, launcher: Launcher) -> stores.Record | None:
        """The record of what the nodes show together, and against a baseline in use; None where there is neither.

        launcher: who asked the nodes; it starts the tests where it can, else Ansible does. Never raises but for a bug.
        """
        began, started_at = time.monotonic(), stores.now_stamp()
        deep = run.level == LEVEL and len(run.hosts) >= 2
        used = baselines.in_use(self.store)
        if not deep and not used:
            return None
        found = baselines.findings(self.store, store.records(run.run_id)) if used else []
        if deep:
            worse = {one["device"].get(HOST) for one in found if Status(one["status"]) in BLOCKING}
            rows = judge_run(store, run.run_id).rows
            go = [row.host for row in rows if row.verdict is Verdict.GO and row.host not in worse]
            try:
                found += self._of_types(run, inventory.hosts(self.sources, self.limit), go, launcher)
            except (SettingsError, FabricError) as error:
                found += findings.for_nodes(go, Status.UNKNOWN, f"no test over several nodes: {error}")
        return intake.stamped(
            {
                "schema": RECORD_SCHEMA, "host": FABRIC_HOST, "instance_id": "", "instance_type": "",
                "started_at": started_at, "seconds": round(time.monotonic() - began, 3), "findings": found,
            }
        )  # fmt: skip

    def _of_types(self, run: stores.Run, hosts: HostVars, go: Sequence[str], launcher: Launcher) -> findings.Findings:
        by_type: dict[str, list[str]] = defaultdict(list)
        for host in go:
            by_type[str(hosts.get(host, {}).get("instance_type") or NO_TYPE)].append(host)
        return [one for name, nodes in by_type.items() for one in self._of_type(run, name, nodes, hosts, launcher)]

    def _of_type(
        self, run: stores.Run, name: str, nodes: Sequence[str], hosts: HostVars, launcher: Launcher
    ) -> findings.Findings:
        wanted = wanted_of(hosts.get(nodes[0], {}))
        why = "only some checks were to run" if self.chosen and wanted.run == "auto" else ""
        why = why or _not_for(wanted, name, nodes, hosts)
        if why:
            return findings.for_nodes(nodes, Status.SKIP, f"no test over several nodes: {why}")
        self.say(f"fabric: {len(nodes)} nodes of type {name} that passed alone, now together")
        asked = replace(wanted.asked, inventory=tuple(self.sources), limit=self.limit)
        if isinstance(launcher, Gathering):
            asked = replace(asked, launcher=launcher.starter, options=(*asked.options, *launcher.options))
        try:
            of_these = {node: hosts[node] for node in nodes}
            fleet = fleet_of_hosts(with_places(of_these) if asked.ask_ec2 else of_these, asked)
            fleet = with_baseline(fleet, self.store)
            play = (
                LauncherRounds(asked, fleet, run.run_id, launcher)
                if isinstance(launcher, Gathering)
                else Rounds(asked, fleet, run.run_id)
            )
            result = drive(
                fleet, play, self.place / run.run_id / name, self.say,
                least_share=wanted.least_share,
            )  # fmt: skip
            return [*findings.of_result(result), *self._storage(play, asked, fleet)]
        except KeyboardInterrupt:
            return findings.for_nodes(nodes, Status.UNKNOWN, "the test over several nodes was interrupted")
        except (FabricError, BaselineError, OSError) as error:
            return findings.for_nodes(nodes, Status.UNKNOWN, f"no test over several nodes: {error}")

    def _storage(self, play: Rounds | LauncherRounds, asked: FabricRequest, fleet: FabricNodes) -> findings.Findings:
        """The shared file system with all nodes at once, where the inventory names one."""
        if not asked.storage:
            return []
        if isinstance(play, LauncherRounds):
            starter = play.launcher.starter
            why = f"not tried with {starter}, which starts nothing at one moment; do: flightline fabric"
            return [storage.of_node(node, Status.SKIP, f"{asked.storage}: {why}") for node in fleet.ring]
        tries = storage.test(fleet.ring, play.storage, self.say)
        return storage.findings(asked.storage, fleet.ring, tries, asked.storage_mb_s)


def _not_for(wanted: FabricSettings, name: str, nodes: Sequence[str], hosts: HostVars) -> str:
    """Why these nodes are not tested together; '' when they are."""
    if wanted.run == "never":
        return "flightline_fabric says run: never"
    if any(hosts[node].get("demo_dir") for node in nodes):
        return "simulated nodes share one machine"
    if len(nodes) < 2:
        return f"one node of type {name} passed its own checks, wanted two"
    if not wanted.own_program and name == NO_TYPE:
        return "without an instance type flightline_fabric must name the program"
    if not wanted.own_program and resolve(name, hosts[nodes[0]].get("flightline_expected")).has_nvidia_gpu is False:
        return f"{name} has no NVIDIA GPU, and flightline_fabric names no program"
    return ""
