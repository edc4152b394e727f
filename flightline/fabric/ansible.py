"""The edge of a fabric test: which nodes an inventory names, and one round of playbooks/fabric_round.yml."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from flightline_node.know.expected import NO_TYPE, resolve
from flightline_node.model import SettingsError

from ..configure import slurm_plan
from ..run import ansible_errors, background, baselines, inventory, playbooks, process_tree
from . import topology
from .drive import READY, FabricNodes, RoundAnswer

MODULES = ("flightline_collective", "flightline_shared_io")
LAUNCH_S = 90
"""Ansible and the launcher may take this long beyond the ranks' deadline."""
LEAST_FORKS = 20
STORAGE_AHEAD_S, STORAGE_MIB = 15.0, 4096
"""Ansible has reached every node by then; so much is written at most."""
GRACE_S = 5.0


class FabricError(RuntimeError):
    """The test itself could not run; the text says why."""


@dataclass(frozen=True)
class FabricRequest:
    """What the user asked for. ranks: 0 as many as the type has GPUs; ask_ec2: where the instances stand.

    program: the test and its arguments; {collective} in its path stands for each collective's name. storage: where the
    shared file system is mounted, '' for none; storage_mb_s: its throughput, 0 where nobody says;
    storage_s: how long each node writes.
    """

    inventory: tuple[str, ...]
    limit: str = ""
    collectives: tuple[str, ...] = ("all_reduce",)
    program: tuple[str, ...] = ()
    ranks: int = 0
    launcher: str = "mpirun"
    options: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    deadline_s: int = 300
    forks: int = 0
    ask_ec2: bool = False
    storage: str = ""
    storage_mb_s: float = 0.0
    storage_s: float = 20.0


def fleet_of(asked: FabricRequest) -> FabricNodes:
    """The inventory's nodes, near ones beside each other.

    Raises FabricError, and SettingsError for an unknown type or an inventory that cannot be read.
    """
    hosts = inventory.hosts(asked.inventory, asked.limit)
    return fleet_of_hosts(with_places(hosts) if asked.ask_ec2 else hosts, asked)


def fleet_of_hosts(hosts: Mapping[str, Mapping[str, Any]], asked: FabricRequest) -> FabricNodes:
    """The same of hosts whose variables are known."""
    found = dict(sorted(hosts.items()))
    names = list(found)
    if len(names) < 2:
        raise FabricError(f"saw {len(names)} hosts in the inventory, wanted two or more; do: look at -i and --limit")
    types = sorted({str(given.get("instance_type") or NO_TYPE) for given in found.values()})
    if len(types) > 1:
        raise FabricError(f"saw the instance types {', '.join(types)}, wanted one; do: name its nodes with --limit")
    networks = topology.networks(found)
    expected = resolve(types[0], found[names[0]].get("flightline_expected"))
    return FabricNodes(
        tuple(sorted(names, key=lambda name: (networks[name], name))),
        {name: _known_as(name, given, asked.launcher) for name, given in found.items()},
        expected,
        asked.collectives,
        {name: nodes[-1] for name, nodes in networks.items() if nodes},
        topology.outside(found),
        asked.ranks or expected.gpu_count or 1,
    )


def with_baseline(fleet: FabricNodes, store: Path) -> FabricNodes:
    """The fleet with what pairs of known-good nodes reached, where a baseline is in use. Raises BaselineError."""
    name = fleet.expected.instance_type
    found = baselines.of_type(store, name)
    return replace(fleet, pair_floors=found.pair_floors) if found else fleet


def with_places(hosts: Mapping[str, Mapping[str, Any]], client: Any = None) -> dict[str, Mapping[str, Any]]:
    """The hosts with what EC2 says of their place in the network; one that it does not know stays as it is.

    client: boto3's for ec2; made here when not given. Raises FabricError when EC2 does not answer.
    """
    ids = topology.ids_of(hosts)
    if not ids:
        return dict(hosts)
    import boto3
    from botocore.exceptions import BotoCoreError, ClientError

    from ..cloud import clients
    from ..cloud import topology as ec2

    try:
        stands = ec2.stands(list(ids), client or boto3.client("ec2", config=clients.config()))
    except (BotoCoreError, ClientError) as error:
        raise FabricError(f"saw {error}, wanted EC2 to say where the instances stand") from error
    places = {
        ids[name]: {"network_nodes": list(stand.network_nodes), "placement_group": stand.placement_group}
        for name, stand in stands.items()
        if name in ids
    }
    return {host: {**given, **places.get(host, {})} for host, given in hosts.items()}


def _known_as(name: str, given: Mapping[str, Any], launcher: str) -> str:
    """What the launcher calls a node: Slurm by its own name for it."""
    return slurm_plan.node_name(name, given, {}) if launcher == "srun" else slurm_plan.address(name, given)


@dataclass(frozen=True)
class PlayStep:
    """One play. state: ready, run or ended; name: the round's; hosts: whom it is limited to."""

    state: str
    name: str
    hosts: Sequence[str]


@dataclass
class Rounds:
    """Plays rounds with ansible-runner; call it with a round's name, its tests and their collective."""

    asked: FabricRequest
    fleet: FabricNodes
    run_id: str
    pid: int = 0

    def __call__(self, name: str, tests: Mapping[str, Sequence[str]], collective: str) -> dict[str, RoundAnswer]:
        """Each host's answer. Raises FabricError when Ansible could not play; KeyboardInterrupt ends what was begun.

        A test whose launcher ended well has no rank left; of the others every node ends what it still has.
        """
        hosts = list(tests) or list(self.fleet.ring)
        try:
            answers = self._play(PlayStep("run" if tests else READY, name, hosts), tests, collective)
            broken = [leader for leader in tests if not _ended_well(answers.get(leader))]
        except KeyboardInterrupt:
            if tests:
                self._end(name, tests, tests)
            raise
        for host, answer in self._end(name, tests, broken).items() if broken else ():
            answers[host] = _joined(answers.get(host), answer)
        return answers

    def storage(self, hosts: Sequence[str]) -> dict[str, RoundAnswer]:
        """What each host measures of the shared file system, all from the same moment on. Raises FabricError."""
        ahead_s = STORAGE_AHEAD_S + len(hosts) / max(self.asked.forks or max(LEAST_FORKS, len(hosts)), 1)
        wanted = {
            "mount": self.asked.storage, "start_at": time.time() + ahead_s, "seconds": self.asked.storage_s,
            "size_mib": STORAGE_MIB,
        }  # fmt: skip
        return self._play(PlayStep("storage", "storage", hosts), {}, "", {"flightline_fabric_storage": wanted})

    def _end(self, name: str, tests: Mapping[str, Sequence[str]], leaders: Iterable[str]) -> dict[str, RoundAnswer]:
        """End on every node of these tests what is left of them."""
        named = {address: host for host, address in self.fleet.addresses.items()}
        hosts = {named.get(node, node) for leader in leaders for node in (leader, *tests[leader])}
        return self._play(PlayStep("ended", name, sorted(hosts)), {}, "")

    def _play(
        self, step: PlayStep, tests: Mapping[str, Sequence[str]], collective: str, more: Mapping[str, Any] | None = None
    ) -> dict[str, RoundAnswer]:
        answers: dict[str, RoundAnswer] = {}
        own = playbooks.find()
        with playbooks.workplace("fabric") as place:
            # A file: a command line has no room for thousands of names.
            listed = place / "hosts"
            listed.write_text("".join(f"{host}\n" for host in step.hosts), encoding="utf-8")
            work, runner = background.play(
                private_data_dir=str(place),
                project_dir=str(own.root),
                playbook=str(own.playbook("fabric_round")),
                inventory=[playbooks.absolute(source) for source in self.asked.inventory],
                limit=f"@{listed}",
                extravars={**self._variables(step, tests, collective), **(more or {})},
                # Those of the shared file system begin at one moment.
                forks=self.asked.forks or max(LEAST_FORKS, len(step.hosts if more else tests)),
                envvars=playbooks.environment(own),
                event_handler=lambda event: self._take(event, answers),
                quiet=True,
                # Its own would catch Ctrl-C here and end ansible-playbook alone.
                cancel_callback=lambda: False,
            )
            until = time.monotonic() + self.asked.deadline_s + LAUNCH_S + len(step.hosts)
            try:
                work.wait(until - time.monotonic())
            finally:
                if not work.ended:
                    self._stop()
                    work.wait(GRACE_S)
            if not answers:
                broken = background.why(work.broken) if work.broken else ""
                said = ansible_errors.why(runner.stdout.read().splitlines()) or broken
                raise FabricError(f"saw {said or 'no answer of Ansible'}, wanted round {step.name} to be played")
        return answers

    def _variables(self, step: PlayStep, tests: Mapping[str, Sequence[str]], collective: str) -> dict[str, Any]:
        asked = self.asked
        program = [part.replace("{collective}", collective or asked.collectives[0]) for part in asked.program]
        return {
            "flightline_fabric_state": step.state,
            "flightline_fabric_id": f"{self.run_id}-{step.name}",
            "flightline_fabric_tests": {host: list(nodes) for host, nodes in tests.items()},
            "flightline_fabric_ranks": self.fleet.ranks,
            "flightline_fabric_program": program,
            "flightline_fabric_deadline_s": asked.deadline_s,
            "flightline_fabric_environment": dict(asked.environment),
            "flightline_fabric_launcher": asked.launcher,
            "flightline_fabric_launcher_options": list(asked.options),
        }

    def _stop(self) -> None:
        if self.pid:
            process_tree.end(process_tree.descendants(self.pid), GRACE_S)

    def _take(self, event: Mapping[str, Any], answers: dict[str, RoundAnswer]) -> bool:
        """Take one of the runner's events; its file is not kept."""
        self.pid = int(event.get("pid") or self.pid)
        kind, data = str(event.get("event")), event.get("event_data") or {}
        ended = kind in ("runner_on_ok", "runner_on_failed", "runner_on_unreachable")
        if ended and str(data.get("task_action")).rpartition(".")[2] in MODULES:
            host = str(data.get("host"))
            answers[host] = _joined(answers.get(host), _answer(kind, data.get("res") or {}))
        return False


def _answer(kind: str, res: Mapping[str, Any]) -> RoundAnswer:
    said = " ".join(str(res.get("msg") or "no message").split())
    if kind == "runner_on_unreachable":
        return RoundAnswer(trouble=f"unreachable: {said}", lost=True)
    facts = res.get("facts")
    if kind == "runner_on_failed" or not isinstance(facts, Mapping):
        return RoundAnswer(trouble=said)
    return RoundAnswer(facts, strays=tuple(map(str, facts.get("left") or ())))


def _ended_well(answer: RoundAnswer | None) -> bool:
    return answer is not None and not answer.trouble and answer.facts.get("rc") == 0


def _joined(first: RoundAnswer | None, second: RoundAnswer) -> RoundAnswer:
    """A host's test and what the last task found: trouble in either counts, the test's facts stay."""
    if first is None:
        return second
    facts = {**second.facts, **first.facts}
    return RoundAnswer(facts, first.trouble or second.trouble, first.lost or second.lost, first.strays + second.strays)


__all__ = ["FabricError", "FabricRequest", "Rounds", "SettingsError", "fleet_of"]
