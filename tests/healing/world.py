"""A cluster in a directory, for tests: a scheduler, nodes with faults and a preflight, none of them real.

Everything is on disk, so that a controller that is killed and the next one see the same world. Each effect is a line
of effects.log, written before the effect shows, as a reboot that was asked for is not taken back by our death.
"""

import fcntl
import json
import os
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from flightline.healing.journal import incident as incidents
from flightline.healing.plan.jobs import RunningJob
from flightline.healing.plan.planner import SchedulerView
from flightline.healing.steps.ports import EdgeError, NodeFacts, StepOutcome, Verified
from flightline.healing.steps.slurm import SchedulerError
from flightline_node.model import Remedy

HEALS_AT = ("RESTART_APP", "RESET_GPU", "REBOOT")


@dataclass
class World:
    """The scheduler, the nodes and the preflight at once. pause: called at each edge, before and after an effect."""

    place_: Path
    pause: Callable[..., object] = lambda *_: None
    name: str = "world"
    keeps_lost: bool = True
    nodes_clock: str = ""
    """What the nodes' own clock says during a preflight."""
    measured: frozenset[str] | None = None
    """The checks that a preflight measures; None: all."""

    def make(self, hosts, faults=()):
        """Nodes that are well but for the faults, by host."""
        self.place_.mkdir(parents=True, exist_ok=True)
        well = {"fault": "", "out": False, "reason": "", "jobs": [], "boot": 1, "up": True, "token": 0}
        nodes = {host: {**well, "fault": dict(faults).get(host, "")} for host in hosts}
        self._write({"nodes": nodes, "up": True, "runs": 0})
        return self

    @contextmanager
    def changing(self):
        with (self.place_ / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            state = json.loads((self.place_ / "world.json").read_text())
            yield state
            self._write(state)

    def _write(self, state):
        draft = self.place_ / f"world.{os.getpid()}.tmp"
        draft.write_text(json.dumps(state))
        draft.replace(self.place_ / "world.json")

    def state(self):
        return json.loads((self.place_ / "world.json").read_text())

    def node(self, host):
        return self.state()["nodes"][host]

    def effects(self):
        path = self.place_ / "effects.log"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def _log(self, what, host, **more):
        with (self.place_ / "effects.log").open("ab", buffering=0) as log:
            log.write(json.dumps({"what": what, "host": host, **more}).encode() + b"\n")

    # What tests do to the world.

    def set(self, host, **values):
        with self.changing() as state:
            state["nodes"][host].update(values)

    def set_up(self, up):
        with self.changing() as state:
            state["up"] = up

    # The scheduler.

    def places(self, hosts):
        state = self.state()
        if not state["up"]:
            raise SchedulerError("world: the scheduler is down")
        nodes = state["nodes"]
        return {
            host: SchedulerView(
                nodes[host]["out"], nodes[host]["reason"], False, tuple(RunningJob(job) for job in nodes[host]["jobs"])
            )
            for host in hosts
            if host in nodes
        }

    def place(self, host):
        return self.places([host]).get(host, SchedulerView(known=False))

    @contextmanager
    def _ordered(self, what, host):
        """A node that the scheduler gives into our hands for an order."""
        self.pause(what)
        with self.changing() as state:
            node = state["nodes"][host]
            if not state["up"] or (node["out"] and not node["reason"].startswith("flightline: ")):
                raise SchedulerError(f"{what} {host}: refused")
            yield node
        self.pause(f"{what.removesuffix('e')}ed")

    def drain(self, host, reason):
        with self._ordered("drain", host) as node:
            self._log("drain", host)
            node.update(out=True, reason=reason)

    def resume(self, host):
        with self._ordered("resume", host) as node:
            if node["out"]:
                self._log("resume", host, fault=node["fault"])
                node.update(out=False, reason="")

    def signal(self, job):
        self._log("signal", job)

    def requeue(self, job):
        with self.changing() as state:
            self._log("requeue", job)
            for node in state["nodes"].values():
                node["jobs"] = [other for other in node["jobs"] if other != job]

    # The nodes.

    def facts(self, hosts, token):
        with self.changing() as state:
            nodes = state["nodes"]
            there = [host for host in hosts if nodes[host]["up"]]
            for host in there:
                nodes[host]["token"] = max(nodes[host]["token"], token)
        return {host: NodeFacts(f"boot-{nodes[host]['boot']}") for host in there}

    def repair(self, host, step: Remedy, incident):
        self.pause("repair")
        if not self.node(host)["up"]:
            raise EdgeError(f"{host}: no connection")
        with self.changing() as state:
            node, attempt = state["nodes"][host], incident.pending
            if attempt.token < node["token"]:
                return StepOutcome(incidents.NOT_DONE, "refused: a newer lease has asked this node")
            self._log(str(step), host, id=f"{incident.id}/{step}", jobs=node["jobs"], out=node["out"])
            fault = node["fault"]
            if fault in HEALS_AT and HEALS_AT.index(fault) <= HEALS_AT.index(step):
                node["fault"] = ""
            if step == Remedy.REBOOT:
                node["boot"] += 1
        self.pause("repaired")
        return StepOutcome(incidents.DONE)

    def release(self, host, run, token, judged_at):
        self.facts([host], token)
        self._log("release", host, judged_at=judged_at, run=run)

    # The preflight.

    def prove(self, hosts, level):
        self.pause("verify")
        with self.changing() as state:
            state["runs"] += 1
            run = f"R{state['runs']}"
            nodes = state["nodes"]
            found = {}
            for host in hosts:
                if nodes[host]["up"]:
                    fault = nodes[host]["fault"]
                    said = f"xid asks for {fault}" if fault else ""
                    found[host] = Verified(not fault, run, said, at=self.nodes_clock, measured=self.measured)
                    self._log("judged", host, go=not fault, level=level)
        self.pause("verified")
        return found
