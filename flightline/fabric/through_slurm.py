"""Rounds from a head node by srun alone: each test is a job step that this machine starts, so no node needs Ansible."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from flightline_host.host import Host, Problem
from flightline_host.trial import collective

from ..run.launchers import LaunchError
from ..run.launchers.slurm import ASK_S, BUSY, states
from ..run.launchers.slurm import READY as IDLE
from .ansible import FabricError, FabricRequest
from .drive import READY, FabricNodes, RoundAnswer

MOST_AT_ONCE = 64
"""Runs of srun at a time, some 10 MB each; the others of a round wait."""
WAIT_S = 60
"""For nodes that were idle a moment ago."""
TELL_S = 60
SAID, STRAY = "flightline-node", "flightline-stray"
_WHO = re.compile(rf"{SAID} (\S+) (\S+) (\S+) (yes|no)$", re.M)
_STRAY = re.compile(rf"{STRAY} (\S+) (\S+)$", re.M)
_IDENTITY = "$(cat /proc/sys/kernel/random/boot_id)-$(cat /etc/machine-id 2>/dev/null)"
_SWEEP = """
for signal in TERM KILL 0; do
    found=
    for file in /proc/[0-9]*/environ; do
        pid=${{file#/proc/}}; pid=${{pid%/environ}}
        tr '\\0' '\\n' <"$file" 2>/dev/null | grep -qxF {mark} || continue
        kill -$signal "$pid" 2>/dev/null || continue
        found=1
        [ $signal = 0 ] && echo {stray} "$SLURMD_NODENAME" "$(cat /proc/$pid/comm)"
    done
    [ -z "$found" ] || sleep 2
done
"""
"""What is asked to end, then killed, then still there is told."""


@dataclass
class SlurmRounds:
    """Plays rounds with srun; call it as drive() does. Raises FabricError where Slurm's commands do not work here."""

    asked: FabricRequest
    fleet: FabricNodes
    run_id: str

    def __call__(self, name: str, tests: Mapping[str, Sequence[str]], collective_name: str) -> dict[str, RoundAnswer]:
        """Each host's answer; KeyboardInterrupt ends the round's jobs."""
        if name == READY:
            return self._ready()
        with ThreadPoolExecutor(min(len(tests), MOST_AT_ONCE), "srun") as pool:
            try:
                played = pool.map(lambda one: self._test(name, tests[one], one, collective_name), tests)
                answers = dict(zip(tests, played, strict=True))
            except KeyboardInterrupt:
                pool.shutdown(wait=False, cancel_futures=True)
                for leader in tests:
                    self._cancel(self._job(name, leader))
                raise
        for leader, nodes in tests.items():
            if answers[leader].trouble or answers[leader].facts.get("rc") != 0:
                self._end(name, leader, nodes, answers)
        return answers

    def _job(self, name: str, leader: str) -> str:
        return f"{self.run_id}-{name}-{self.fleet.ring.index(leader)}"

    def _test(self, name: str, nodes: Sequence[str], leader: str, collective_name: str) -> RoundAnswer:
        program = [part.replace("{collective}", collective_name) for part in self.asked.program]
        return self._run(self._job(name, leader), nodes, program, self.fleet.ranks, self.asked.deadline_s)

    def _run(self, job: str, nodes: Sequence[str], program: Sequence[str], ranks: int, deadline_s: int) -> RoundAnswer:
        given: dict[str, Any] = {
            "id": job, "nodes": list(nodes), "ranks": ranks, "program": list(program), "deadline_s": deadline_s,
            "environment": dict(self.asked.environment), "launcher": "srun", "search": [], "elsewhere": True,
            "launcher_options": [f"--immediate={WAIT_S}", *self.asked.options],
        }  # fmt: skip
        try:
            return RoundAnswer(collective.run(Host(), given))
        except Problem as problem:
            return RoundAnswer(trouble=str(problem))

    def _ready(self) -> dict[str, RoundAnswer]:
        """Who each node is, by its own word; one that Slurm says is not free is not asked."""
        try:
            known = states()
        except LaunchError as error:
            raise FabricError(str(error)) from error
        answers, free = {}, {}
        for host in self.fleet.ring:
            node = self.fleet.addresses[host]
            one = known.get(node)
            if one is None or one.state not in IDLE:
                busy = "a job has it" if one and one.state in BUSY else f"it is {one.state}" if one else "no such node"
                answers[host] = RoundAnswer(trouble=f"Slurm says of {node}: {busy}; wanted it idle", lost=True)
            else:
                free[host] = node
        if free:
            answers.update(self._said(free))
        return answers

    def _said(self, free: Mapping[str, str]) -> dict[str, RoundAnswer]:
        program = shlex.quote(self.asked.program[0].replace("{collective}", self.asked.collectives[0]))
        script = (
            f'[ -x {program} ] && has=yes || has=no; echo {SAID} "$SLURMD_NODENAME" "{_IDENTITY}" "$(uname -n)" $has'
        )
        answer = self._run(f"{self.run_id}-ready", list(free.values()), ["/bin/sh", "-c", script], 1, TELL_S)
        told = str(answer.facts.get("output") or "")
        said = {one[1]: one for one in _WHO.finditer(told)}
        why = answer.trouble or " ".join(told.split()[-30:]) or "srun said nothing"
        found = {}
        for host, node in free.items():
            one = said.get(node)
            if one is None:
                found[host] = RoundAnswer(trouble=f"srun started nothing on {node}: {why}", lost=True)
                continue
            lacks = [] if one[4] == "yes" else [f"no program {program}"]
            # slurmd's own name is part of it: several may share a machine, as in a test.
            found[host] = RoundAnswer({"machine": f"{one[2]} {one[3]} {node}", "hostname": one[3], "problems": lacks})
        return found

    def _end(self, name: str, leader: str, nodes: Sequence[str], answers: dict[str, RoundAnswer]) -> None:
        """End what is left of a test on its nodes, and keep what would not end."""
        job = self._job(name, leader)
        self._cancel(job)
        script = _SWEEP.format(mark=shlex.quote(f"{collective.MARK}={job}"), stray=STRAY)
        swept = self._run(f"{job}-end", nodes, ["/bin/sh", "-c", script], 1, TELL_S)
        hosts = {address: host for host, address in self.fleet.addresses.items()}
        for node, process in _STRAY.findall(str(swept.facts.get("output") or "")):
            host = hosts.get(node, node)
            before = answers.get(host, RoundAnswer())
            strays = tuple(dict.fromkeys((*before.strays, process)))
            answers[host] = RoundAnswer(before.facts, before.trouble, before.lost, strays)

    def _cancel(self, job: str) -> None:
        with suppress(OSError, subprocess.TimeoutExpired):
            argv = ["scancel", "--name", f"flightline-{job}"]
            subprocess.run(
                argv, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                timeout=ASK_S,
            )  # fmt: skip
