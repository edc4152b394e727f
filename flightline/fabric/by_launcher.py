"""Rounds by a launcher that starts one program over several nodes from this machine, so no node needs Ansible."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from flightline_host.host import Host, Problem
from flightline_host.trial import collective

from ..run.launchers import Gathering, LaunchError
from .ansible import FabricError, FabricRequest
from .drive import READY, FabricNodes, RoundAnswer

MOST_AT_ONCE = 64
"""Starters at a time, some 10 MB each; the others of a round wait."""
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
        [ $signal = 0 ] && echo {stray} "{node}" "$(cat /proc/$pid/comm)"
    done
    [ -z "$found" ] || sleep 2
done
"""
"""What is asked to end, then killed, then still there is told."""


@dataclass
class LauncherRounds:
    """Plays rounds with a launcher; call it as drive() does. Raises FabricError where it does not work here."""

    asked: FabricRequest
    fleet: FabricNodes
    run_id: str
    launcher: Gathering

    def __call__(self, name: str, tests: Mapping[str, Sequence[str]], collective_name: str) -> dict[str, RoundAnswer]:
        """Each host's answer; KeyboardInterrupt ends the round's jobs."""
        if name == READY:
            return self._ready()
        with ThreadPoolExecutor(min(len(tests), MOST_AT_ONCE), self.launcher.starter) as pool:
            try:
                played = pool.map(lambda one: self._test(name, tests[one], one, collective_name), tests)
                answers = dict(zip(tests, played, strict=True))
            except KeyboardInterrupt:
                pool.shutdown(wait=False, cancel_futures=True)
                for leader in tests:
                    self.launcher.cancel(f"flightline-{self._job(name, leader)}")
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
            "environment": dict(self.asked.environment), "launcher": self.launcher.starter, "search": [],
            "elsewhere": True, "launcher_options": [*self.launcher.start_options, *self.asked.options],
        }  # fmt: skip
        try:
            return RoundAnswer(collective.run(Host(), given))
        except Problem as problem:
            return RoundAnswer(trouble=str(problem))

    def _ready(self) -> dict[str, RoundAnswer]:
        """Who each node is, by its own word; one that is not free is not asked."""
        nodes = {host: self.fleet.addresses[host] for host in self.fleet.ring}
        try:
            taken = self.launcher.taken(nodes.values())
        except LaunchError as error:
            raise FabricError(str(error)) from error
        free = {host: node for host, node in nodes.items() if node not in taken}
        answers = {host: RoundAnswer(trouble=taken[node], lost=True) for host, node in nodes.items() if node in taken}
        return {**answers, **(self._said(free) if free else {})}

    def _said(self, free: Mapping[str, str]) -> dict[str, RoundAnswer]:
        program = shlex.quote(self.asked.program[0].replace("{collective}", self.asked.collectives[0]))
        node = self.launcher.node_word
        script = f'[ -x {program} ] && has=yes || has=no; echo {SAID} "{node}" "{_IDENTITY}" "$(uname -n)" $has'
        answer = self._run(f"{self.run_id}-ready", list(free.values()), ["/bin/sh", "-c", script], 1, TELL_S)
        told = str(answer.facts.get("output") or "")
        said = {one[1]: one for one in _WHO.finditer(told)}
        starter = self.launcher.starter
        why = answer.trouble or " ".join(told.split()[-30:]) or f"{starter} said nothing"
        found = {}
        for host, node in free.items():
            one = said.get(node)
            if one is None:
                found[host] = RoundAnswer(trouble=f"{starter} started nothing on {node}: {why}", lost=True)
                continue
            lacks = [] if one[4] == "yes" else [f"no program {program}"]
            # The launcher's own name is part of it: several may share a machine, as in a test.
            found[host] = RoundAnswer({"machine": f"{one[2]} {one[3]} {node}", "hostname": one[3], "problems": lacks})
        return found

    def _end(self, name: str, leader: str, nodes: Sequence[str], answers: dict[str, RoundAnswer]) -> None:
        """End what is left of a test on its nodes, and keep what would not end."""
        job = self._job(name, leader)
        self.launcher.cancel(f"flightline-{job}")
        mark = shlex.quote(f"{collective.MARK}={job}")
        script = _SWEEP.format(mark=mark, stray=STRAY, node=self.launcher.node_word)
        swept = self._run(f"{job}-end", nodes, ["/bin/sh", "-c", script], 1, TELL_S)
        hosts = {address: host for host, address in self.fleet.addresses.items()}
        for node, process in _STRAY.findall(str(swept.facts.get("output") or "")):
            host = hosts.get(node, node)
            before = answers.get(host, RoundAnswer())
            strays = tuple(dict.fromkeys((*before.strays, process)))
            answers[host] = RoundAnswer(before.facts, before.trouble, before.lost, strays)
