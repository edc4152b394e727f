"""Rounds over a bed without Ansible: each leader's test is started by the module's own code, in the leader's namespace.

What Ansible adds to a case is its start, five times; the command itself is held to the same bed by test_on_bed.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from flightline.fabric.drive import FabricNodes, FabricResult, RoundAnswer, drive
from flightline_host.host import Host, Problem
from flightline_host.trial import collective
from flightline_node.know.expected import resolve
from tests.beds import program as program_of

from .bed import Bed


def fleet_of(bed: Bed, collectives: Sequence[str] = ("all_reduce",)) -> FabricNodes:
    """The bed's hosts, without an instance type."""
    return FabricNodes(
        tuple(bed.names), {name: bed.address(name) for name in bed.names}, resolve("none"), tuple(collectives), ranks=1
    )


class Direct:
    """Plays rounds on a bed; call it as the command calls its own."""

    def __init__(self, bed: Bed, run_id: str, program: Sequence[str], deadline_s: int = 40) -> None:
        self.bed, self.run_id, self.program, self.deadline_s = bed, run_id, tuple(program), deadline_s
        for name in bed.names:
            place = bed.place / f"bin-{name}"
            place.mkdir(exist_ok=True)
            into = f"exec ip netns exec {bed.space(name)} unshare --uts sh -c 'hostname {name}; exec \"$@\"' sh"
            program_of(place / "mpirun", f'#!/bin/sh\n{into} /usr/bin/mpirun "$@"\n')

    def __call__(self, name: str, tests: Mapping[str, Sequence[str]], collective_name: str) -> dict[str, RoundAnswer]:
        if not tests:
            return {host: RoundAnswer({"machine": host, "hostname": host, "problems": []}) for host in self.bed.names}
        with ThreadPoolExecutor(len(tests)) as pool:
            return dict(pool.map(lambda one: (one[0], self._test(name, *one)), tests.items()))

    def _test(self, name: str, leader: str, nodes: Sequence[str]) -> RoundAnswer:
        given = {
            "state": "run", "id": f"{self.run_id}-{name}", "nodes": list(nodes), "ranks": 1,
            "program": list(self.program), "deadline_s": self.deadline_s, "environment": {}, "launcher": "mpirun",
            "launcher_options": self.bed.options, "search": [str(self.bed.place / f"bin-{leader}")],
        }  # fmt: skip
        try:
            facts = collective.run(Host(), given)
        except Problem as problem:
            return RoundAnswer(trouble=str(problem))
        return RoundAnswer(facts)


def play(bed: Bed, run_id: str, place: Path, program: str, least_share: float) -> FabricResult:
    """One whole test of the bed."""
    argv = [str(bed.program), *program.split()]
    return drive(fleet_of(bed), Direct(bed, run_id, argv), place, lambda _: None, least_share=least_share)
