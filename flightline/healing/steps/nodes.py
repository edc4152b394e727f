"""The nodes themselves, through Ansible: playbooks/remediate.yml, one step per call."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ansible_runner

from flightline_node.model import Remedy
from flightline_node.watch import claim

from ...run import playbooks
from ..journal import incident as incidents
from ..journal.incident import Incident
from ..journal.stamps import now_utc
from ..plan.jobs import RunningJob
from ..plan.observe import MARKER_SCHEMA
from ..plan.planner import SchedulerView, is_lost
from .ports import EdgeError, NodeFacts, StepOutcome

TIMEOUT_S = 900
DAEMONS = ("slurmd.service",)
MODULE = "flightline_repair"
INTERPRETER = "ANSIBLE_PYTHON_INTERPRETER"
"""For nodes whose inventory names none: a sick node is not asked which ones it has."""


@dataclass(frozen=True)
class NodeReply:
    """What one node said. reached: it could be connected to."""

    said: Mapping[str, Any]
    reached: bool = True
    trouble: str = ""


@dataclass
class AnsibleNodes:
    """Nodes of an inventory. names: instance id -> host, for replacements that only have an id."""

    inventory: tuple[str, ...]
    timeout_s: int = TIMEOUT_S

    def facts(self, hosts: Collection[str], token: int) -> dict[str, NodeFacts]:
        """What they answer."""
        found = {}
        for host, answer in self.ask(hosts, "look", token).items():
            if answer.said:
                marker = answer.said.get("marker")
                jobs = tuple(RunningJob(f"process {pid}") for pid in answer.said.get("jobs") or ())
                known = (str(answer.said.get(name) or "") for name in ("boot_id", "software"))
                boot, software = known
                found[host] = NodeFacts(boot, marker, jobs, software)
        return found

    def reach(self, asked: Mapping[str, Sequence[str]], token: int) -> dict[str, dict[str, str]]:
        """Neighbour -> HOST:PORT -> what answered it there; a neighbour that gives no answer is left out."""
        said = self.ask(list(asked), "reach", token, {"flightline_heal_targets": dict(asked)})
        return {host: answer.said["reached"] for host, answer in said.items() if answer.said.get("reached")}

    def repair(self, host: str, step: Remedy, incident: Incident) -> StepOutcome:
        """Restart, reset or reboot."""
        token = incident.pending.token if incident.pending else 0
        # Of a host that only its scheduler lost, the daemon is restarted with what it left behind.
        more = {"flightline_heal_units": list(DAEMONS)} if is_lost(incident) else {}
        answer = self.ask([host], step.row.action, token, more).get(host, NodeReply({}, trouble="no answer"))
        if not answer.reached:
            return StepOutcome(incidents.NOT_DONE, f"no connection: {answer.trouble}")
        if not answer.said:
            raise EdgeError(f"{host}: {step}: {answer.trouble}")
        return StepOutcome(str(answer.said.get("outcome", incidents.UNKNOWN)), str(answer.said.get("detail", "")))

    def release(self, host: str, run: str, token: int, judged_at: str) -> None:
        """Tell the node's watcher that a run has proven it. Raises EdgeError when the node does not take it."""
        more = {"flightline_heal_run": run, "flightline_heal_judged_at": judged_at}
        answer = self.ask([host], "release", token, more).get(host, NodeReply({}, trouble="no answer"))
        if answer.said.get("outcome") != incidents.DONE:
            said = answer.said.get("detail") or answer.trouble
            raise EdgeError(f"{host}: the quarantine was not released: {said}")

    def mark(
        self,
        host: str,
        token: int,
        reason: str,
        findings: Sequence[Mapping[str, Any]] = (),
        by: str = "flightline-remediate",
    ) -> None:
        """Set the marker, where the node has none. Token 0: a person asks. Raises EdgeError."""
        since = now_utc()
        about = {"schema": MARKER_SCHEMA, "node": host, "instance_id": "", "since": since, "by": by}
        seen = {"run": "", "boot_id": "", "findings": list(findings), "latched": {}}
        scheduler = {"kind": "none", "state": "absent", "reason": reason, "at": since}
        marker = {**about, **seen, "scheduler": scheduler}
        answer = self.ask([host], "mark", token, {"flightline_heal_markers": {host: marker}}).get(host)
        if answer is None or answer.said.get("outcome") != incidents.DONE:
            raise EdgeError(f"{host}: the marker was not set: {answer.trouble if answer else 'no answer'}")

    def ask(
        self, hosts: Collection[str], action: str, token: int, more: Mapping[str, Any] | None = None
    ) -> dict[str, NodeReply]:
        """One step on these hosts. Raises EdgeError when Ansible itself cannot run."""
        extra = {"flightline_heal": action, "flightline_heal_token": token, **(more or {})}
        own, interpreter = playbooks.find(), os.environ.get(INTERPRETER, "python3")
        with playbooks.workplace("heal") as place:
            limit = place / "hosts"
            limit.write_text("".join(f"{host}\n" for host in hosts), encoding="utf-8")
            words = [part for source in self.inventory for part in ("-i", playbooks.absolute(source))]
            words += ["--limit", f"@{limit}", "-e", json.dumps(extra)]
            answers: dict[str, NodeReply] = {}
            runner = ansible_runner.run(
                private_data_dir=str(place),
                project_dir=str(own.root),
                playbook=str(own.playbook("remediate")),
                cmdline=shlex.join(words),
                envvars={**playbooks.environment(own), "FLIGHTLINE_SUMMARY": "off", INTERPRETER: interpreter},
                event_handler=lambda event: _heard(event, answers),
                quiet=True,
                timeout=self.timeout_s,
            )
            if not answers and hosts:
                said = " ".join(runner.stdout.read().split())[-300:]
                raise EdgeError(f"ansible-playbook remediate.yml: status {runner.rc}: {said}")
            return answers


@dataclass
class Markers:
    """Where there is no scheduler: the node's marker is its quarantine, and what computes on its GPUs is its job."""

    nodes: AnsibleNodes
    token: int
    name: str = "marker"
    keeps_lost: bool = True

    def places(self, hosts: Collection[str]) -> dict[str, SchedulerView]:
        """What the nodes say of themselves; one that gives no answer is not known."""
        return {host: _place(facts) for host, facts in self.nodes.facts(hosts, self.token).items()}

    def place(self, host: str) -> SchedulerView:
        """What one says now."""
        return self.places([host]).get(host, SchedulerView(known=False))

    def drain(self, host: str, reason: str) -> None:
        """Set its marker."""
        self.nodes.mark(host, self.token, reason)

    def resume(self, host: str) -> None:
        """Nothing more: its marker went with the release."""

    def signal(self, job: str) -> None:
        """Nobody knows what it would do to a process."""

    def requeue(self, job: str) -> None:
        """Nobody could start it again."""
        raise EdgeError(f"{job}: without a scheduler no job is requeued")

    def let_go(self, hosts: Collection[str]) -> list[str]:
        """Nobody counts without a scheduler, so there are no suspects."""
        return []


def _place(facts: NodeFacts) -> SchedulerView:
    if facts.marker is None:
        return SchedulerView(jobs=facts.jobs)
    by = str(facts.marker.get("by") or "")
    who = by.removeprefix("flightline-") if by.startswith("flightline-") else ""
    if who not in claim.WRITERS:
        return SchedulerView(True, f"marker of {by or 'somebody'}", jobs=facts.jobs)
    ours = claim.Claim("quarantine", "marker", who, "quick", "quarantined", str(facts.marker.get("run") or ""))
    return SchedulerView(True, ours.text, jobs=facts.jobs)


def _heard(event: Mapping[str, Any], answers: dict[str, NodeReply]) -> bool:
    kind, data = str(event.get("event")), event.get("event_data") or {}
    host, res = str(data.get("host")), data.get("res") or {}
    if kind == "runner_on_unreachable":
        answers[host] = NodeReply({}, False, str(res.get("msg") or "")[:300])
    elif kind in ("runner_on_ok", "runner_on_failed") and str(data.get("task_action")).rpartition(".")[2] == MODULE:
        answers[host] = NodeReply(res) if "outcome" in res else NodeReply({}, trouble=_words(res))
    return False


def answer_of(res: Mapping[str, Any]) -> NodeReply:
    """What the step printed last, from its stdout and stderr."""
    try:
        said = json.loads(str(res.get("stdout") or "").strip().splitlines()[-1])
    except (ValueError, IndexError):
        return NodeReply({}, trouble=_words(res))
    return NodeReply(said if isinstance(said, dict) else {})


def _words(res: Mapping[str, Any]) -> str:
    text = " ".join(str(res.get(key) or "") for key in ("msg", "stderr", "module_stderr", "stdout", "module_stdout"))
    return " ".join(text.split())[:300] or "no answer that can be read"
