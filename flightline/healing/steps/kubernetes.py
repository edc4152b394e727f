"""Kubernetes: what it says of nodes and pods, and the three things that healing asks of it: cordon, uncordon, evict.

By kubectl, which has the site's way to log in. A cordon of ours has its reason as an annotation; one without it is
somebody else's and stays. The taint of the node's own agent is the agent's to lift, by a go.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flightline_node.kubernetes import standing
from flightline_node.kubernetes.drain import row_of
from flightline_node.kubernetes.names import (
    CLAIM_LABEL,
    CORDON,
    EFFECT,
    FAULT_TAINT,
    MARK_LABEL,
    STARTUP_TAINT,
    TYPE_LABEL,
)
from flightline_node.watch import claim, rule
from flightline_node.watch.rule import GOING, Row, RulePolicy
from flightline_node.watch.slurm import POLICY

from ...kubernetes.nodes import by_host, labels, listed
from ..journal.stamps import later
from ..plan.jobs import RunningJob
from ..plan.planner import SchedulerView
from .command import ran
from .ports import EdgeError

PROOF_TAINT = "flightline/proof"
"""While an idle node is proven. Pods that are there stay; the agents tolerate every taint."""
CHECKPOINT = "flightline/checkpoint"
"""A pod's annotation, as Slurm's comment: minutes between two since its start, or the moment of the next."""
JOBSET_LABEL = "jobset.sigs.k8s.io/jobset-name"
TIMEOUT_S = 30.0
ACCELERATORS = ("nvidia.com/", "aws.amazon.com/neuron")
MANAGED = (("karpenter.sh/nodepool", None, "Karpenter"), ("eks.amazonaws.com/compute-type", "auto", "EKS Auto Mode"))
"""Label, its value (None: any) and who repairs and replaces nodes that have it."""
GONE = SchedulerView(known=False, gone="the cluster has no such Node any more")
"""The list was whole: whoever deleted the Node, or replaced its machine, has decided."""
CLOCKS_S = 5.0
NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
"""Of a Node: a DNS subdomain."""
_ENDED = ("Succeeded", "Failed")


class KubernetesError(EdgeError):
    """kubectl or the API server did not do as asked; the text says what was asked and what was said."""


@dataclass
class KubernetesScheduler:
    """One cluster, kubectl's current context. kubectl: the program and words before every other."""

    kubectl: tuple[str, ...] = ("kubectl",)
    timeout_s: float = TIMEOUT_S
    policy: RulePolicy = POLICY
    name = "kubernetes"
    keeps_lost = False

    def places(self, hosts: Collection[str]) -> dict[str, SchedulerView]:
        """What it says of these hosts. Raises KubernetesError."""
        nodes = by_host(self._read("get", "nodes"), hosts)
        jobs = _jobs(self._read("get", "pods", "--all-namespaces"))
        return {host: _place(nodes[host], jobs) if host in nodes else GONE for host in hosts}

    def place(self, host: str) -> SchedulerView:
        """What it says of one host now. Raises KubernetesError."""
        node = self._node(host)
        if node is None:
            return GONE
        here = f"--field-selector=spec.nodeName={node['metadata']['name']}"
        return _place(node, _jobs(self._read("get", "pods", "--all-namespaces", here)))

    def drain(self, host: str, reason: str) -> None:
        """Cordon: no new pod, running ones go on. Raises KubernetesError, also for what somebody else has set."""
        wanted = claim.read(reason)
        if not wanted:
            raise KubernetesError(f"cordon {host}: saw the reason {reason[:200]!r}, wanted a claim of Flightline's")
        node = self._own(host, "cordon")
        if not _place(node, {}).out:
            self._ask_the_rule(node, wanted.reason[:63])
        self._patch(node, True, reason, wanted.reason[:63])

    def _ask_the_rule(self, node: Mapping[str, Any], reason: str) -> None:
        """By what the cluster says now; a node that leaves by itself at this very moment is not seen."""
        kind = labels(node).get(TYPE_LABEL)
        alike = [one["metadata"] for one in self._read("get", "nodes") if labels(one).get(TYPE_LABEL) == kind]
        me = str(node["metadata"]["name"])
        same = [one for one in alike if (one.get("labels") or {}).get(CLAIM_LABEL) == reason and one["name"] != me]
        rows = [*filter(lambda row: row.mark, map(row_of, same)), Row(me, GOING)]
        found = rule.decide(me, rows, len(alike), self.policy, by_person=True)
        if found.do != rule.DRAIN:
            raise KubernetesError(f"cordon {me}: {found.why}")

    def let_go(self, hosts: Collection[str]) -> list[str]:
        """Let the suspects among these hosts ask again; their names. Raises KubernetesError."""
        suspects = sorted(host for host, place in self.places(hosts).items() if place.suspect)
        for host in suspects:
            self._run(
                "label", "node", str((self._node(host) or {})["metadata"]["name"]), f"{CLAIM_LABEL}-", f"{MARK_LABEL}-"
            )
        return suspects

    def resume(self, host: str) -> None:
        """Uncordon, where Flightline cordoned. Raises KubernetesError."""
        found = self._node(host)
        if found is not None and _annotation(found, CORDON):
            self._patch(self._own(host, "uncordon"), None, None, None)

    def signal(self, job: str) -> None:
        """Nothing: an eviction sends SIGTERM first, and waits as long as the pod says."""

    def requeue(self, job: str) -> None:
        """Evict a pod, as its PodDisruptionBudget allows; its controller makes another. Raises KubernetesError."""
        namespace, _, pod = job.partition("/")
        meta = {"name": pod, "namespace": namespace}
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta}
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/eviction"
        self._run("create", "--raw", path, "-f", "-", given=json.dumps(eviction))

    def hold(self, hosts: Collection[str]) -> list[str]:
        """Taint them; one that got a pod meanwhile goes back at once, and one that another manages is not taken."""
        self.give_back()
        nodes = {host: node for host, node in by_host(self._read("get", "nodes"), hosts).items() if not _manager(node)}
        if nodes:
            names = [str(node["metadata"]["name"]) for node in nodes.values()]
            self._run("taint", "nodes", *names, f"{PROOF_TAINT}=idle:{EFFECT}", "--overwrite")
        lent = [host for host, place in self.places(nodes).items() if not (place.jobs or place.out)]
        if len(lent) < len(nodes):
            self.give_back(keep=lent)
        return lent

    def hold_on(self) -> None:
        """Nothing: a taint stays until the next remediator takes it away."""

    def waiting(self, hosts: Collection[str], since: str) -> str:
        """A pod with accelerators that came since then and finds no node; one from before found none without us."""
        for pod in self._read("get", "pods", "--all-namespaces", "--field-selector=status.phase=Pending"):
            meta, conditions = pod["metadata"], (pod.get("status") or {}).get("conditions") or []
            waits = any(one.get("type") == "PodScheduled" and one.get("status") == "False" for one in conditions)
            # A stamp of the server's has whole seconds, and its clock is not ours.
            if waits and _holds(pod["spec"]) and str(meta.get("creationTimestamp")) > later(since, -CLOCKS_S)[:19]:
                return f"pod {meta.get('namespace')}/{meta['name']} waits"
        return ""

    def give_back(self, keep: Collection[str] = ()) -> list[str]:
        """Take the taint away."""
        nodes = self._read("get", "nodes")
        kept = {str(node["metadata"]["name"]) for node in by_host(nodes, keep).values()}
        tainted = {str(node["metadata"]["name"]) for node in nodes if PROOF_TAINT in _taints(node)}
        free = sorted(tainted - kept)
        if free:
            self._run("taint", "nodes", *free, f"{PROOF_TAINT}-")
        return free

    def _node(self, host: str) -> Mapping[str, Any] | None:
        """The Node of a host: by its name, where thousands need not be read for one; else by what else it is called."""
        named = self._read("get", "nodes", f"--field-selector=metadata.name={host}") if NAME.fullmatch(host) else []
        return named[0] if named else by_host(self._read("get", "nodes"), [host]).get(host)

    def _own(self, host: str, verb: str) -> Mapping[str, Any]:
        """The Node, where nobody else holds it."""
        found = self._node(host)
        if found is None:
            raise KubernetesError(f"{verb} {host}: the cluster has no Node of that name, address or instance")
        if manager := _manager(found):
            raise KubernetesError(f"{verb} {host}: a node of {manager}, which repairs it itself; it stays as it is")
        foreign = _place(found, {}).foreign
        if foreign and not (verb == "cordon" and not found["spec"].get("unschedulable")):
            raise KubernetesError(f"{verb} {host}: {foreign}; it stays as it is")
        return found

    def _patch(self, node: Mapping[str, Any], cordoned: bool | None, text: str | None, reason: str | None) -> None:
        """Refused by the server when the Node has changed since it was read, or is another of the same name."""
        meta = node["metadata"]
        held = {name: meta.get(name) for name in ("uid", "resourceVersion")}
        if not all(held.values()):
            raise KubernetesError(
                f"patch {meta['name']}: saw a Node without uid and resourceVersion; it stays as it is"
            )
        marks = {CLAIM_LABEL: reason, MARK_LABEL: None}
        change = {
            "metadata": {**held, "annotations": {CORDON: text}, "labels": marks},
            "spec": {"unschedulable": cordoned},
        }
        self._run("patch", "node", meta["name"], "--type=merge", "-p", json.dumps(change))

    def _read(self, *words: str) -> list[Mapping[str, Any]]:
        text = self._run(*words, "-o", "json")
        try:
            return listed(text)
        except ValueError as error:
            raise KubernetesError(f"kubectl {' '.join(words)}: printed no list of objects ({error})") from None

    def _run(self, *words: str, given: str | None = None) -> str:
        argv = [*self.kubectl, f"--request-timeout={self.timeout_s:g}s", *words]
        return ran(argv, " ".join(("kubectl", *words[:3])), 2 * self.timeout_s, KubernetesError, given or "")


def _manager(node: Mapping[str, Any]) -> str:
    own = labels(node)
    return next((who for name, value, who in MANAGED if name in own and value in (None, own[name])), "")


def _taints(node: Mapping[str, Any]) -> set[str]:
    return {str(one.get("key")) for one in node["spec"].get("taints") or []}


def _annotation(node: Mapping[str, Any], name: str) -> str:
    return str((node["metadata"].get("annotations") or {}).get(name) or "")


def _place(node: Mapping[str, Any], jobs: Mapping[str, Sequence[RunningJob]]) -> SchedulerView:
    """An operator's cordon says more than a taint of ours, and is named first."""
    taints = _taints(node)
    here = tuple(jobs.get(str(node["metadata"]["name"]), ()))
    conditions: list[Mapping[str, Any]] = (node.get("status") or {}).get("conditions") or []
    ready: Mapping[str, Any] = next((one for one in conditions if one.get("type") == "Ready"), {})
    if ready.get("status") == "Unknown":
        # The node controller's word for a kubelet that went silent. Source: Kubernetes, Nodes, "Node status".
        since, cordoned = str(ready.get("lastTransitionTime") or ""), bool(node["spec"].get("unschedulable"))
        why = (_annotation(node, CORDON) or "cordoned") if cordoned else str(ready.get("reason") or "")
        # Its pods run no more, whatever the API server still lists.
        return SchedulerView(True, why, since=since, lost=not cordoned, silent=True, address=_kubelet(node))
    if node["spec"].get("unschedulable"):
        return SchedulerView(True, _annotation(node, CORDON) or "cordoned", jobs=here)
    if FAULT_TAINT in taints:
        stands = standing.read(node)
        return SchedulerView(True, stands.why if stands else f"tainted {FAULT_TAINT}", jobs=here)
    if STARTUP_TAINT in taints:
        return SchedulerView(True, "its agent has not proven it yet", jobs=here)
    reason, mark = (str(labels(node).get(name) or "") for name in (CLAIM_LABEL, MARK_LABEL))
    return SchedulerView(jobs=here, mark=claim.Claim("node", "", claim.AGENT, "quick", reason, mark=mark).text)


def _kubelet(node: Mapping[str, Any]) -> str:
    """HOST:PORT of its kubelet, '' where the Node names no address."""
    status = node.get("status") or {}
    listed = [one["address"] for one in status.get("addresses") or [] if one.get("type") == "InternalIP"]
    port = ((status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}).get("Port") or 10250
    return f"{listed[0]}:{port}" if listed else ""


def _jobs(pods: Sequence[Mapping[str, Any]]) -> dict[str, list[RunningJob]]:
    """Node -> pods that hold accelerators: what a repair would cost. Others are rescheduled by their controllers."""
    holding = [
        pod
        for pod in pods
        if pod["spec"].get("nodeName") and (pod.get("status") or {}).get("phase") not in _ENDED and _holds(pod["spec"])
    ]
    places: dict[tuple[str, str], set[str]] = {}
    for pod in holding:
        places.setdefault(_whole(pod), set()).add(str(pod["spec"]["nodeName"]))
    found: dict[str, list[RunningJob]] = {}
    for pod in holding:
        spec, meta, status = pod["spec"], pod["metadata"], pod.get("status") or {}
        space, whole = _whole(pod)
        says = str((meta.get("annotations") or {}).get(CHECKPOINT) or "")
        about = int(spec.get("priority") or 0), len(places[space, whole]), str(status.get("startTime") or ""), says
        found.setdefault(str(spec["nodeName"]), []).append(RunningJob(f"{space}/{meta['name']}", space, whole, *about))
    return found


def _whole(pod: Mapping[str, Any]) -> tuple[str, str]:
    """Namespace, and what the pod is a part of: its JobSet, else its controller, else itself."""
    meta = pod["metadata"]
    owner: Mapping[str, Any] = next(iter(meta.get("ownerReferences") or []), {})
    name = labels(pod).get(JOBSET_LABEL) or owner.get("name") or meta["name"]
    return str(meta.get("namespace") or "default"), str(name)


def _holds(spec: Mapping[str, Any]) -> bool:
    wanted = [(one.get("resources") or {}).get("limits") or {} for one in spec.get("containers") or []]
    return any(name.startswith(ACCELERATORS) for limits in wanted for name in limits)
