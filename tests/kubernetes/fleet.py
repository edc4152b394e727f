"""Nodes of the test's cluster: what kubelet would register, and the agent and watcher as real processes beside it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flightline import contract
from flightline.kubernetes import agent, namespaces, rights, site
from tests.healing.fleet import Watched

from .cluster import Cluster, made

OUTPUTS = {
    "cluster_name": "demo",
    "region": "us-east-1",
    "instance_type": "p5.48xlarge",
    "node_count": "4",
    "efa_count": "32",
    "checkpoints_url": "s3://demo-checkpoints/",
    "fsx_dns_name": "fs-0123456789abcdef0.fsx.us-east-1.amazonaws.com",
    "fsx_mount_name": "abcd1234",
}
SITE = site.of_outputs(OUTPUTS)
XID = "NVRM: Xid (PCI:0000:53:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."


def named(test: str) -> str:
    """A node's name of a test's; its end tells parameters apart."""
    return "".join(ch if ch.isalnum() else "-" for ch in test.lower())[-50:].strip("-")


def install(plane: Cluster) -> None:
    """Namespaces, rights and the DaemonSet, as a user applies them."""
    plane.apply(*namespaces.manifests(SITE), *rights.manifests())
    plane.apply(*agent.manifests(SITE))


P5 = {
    "cpu": "190", "memory": "1980Gi", "hugepages-2Mi": "10256Mi", "ephemeral-storage": "100Gi", "pods": "110",
    contract.KUBE_GPU_RESOURCE: "8", contract.KUBE_EFA_RESOURCE: "32",
}  # fmt: skip
"""What a kubelet of a p5.48xlarge may promise. Made up: the type's size, less what EKS and the huge pages hold back."""


def register(plane: Cluster, name: str, kwok: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """A GPU node as kubelet registers it, with the startup taint. kwok: its resources, and kwok says that it is ready."""
    startup = {"key": contract.KUBE_STARTUP_TAINT, "effect": contract.KUBE_TAINT_EFFECT}
    labels = {
        contract.KUBE_GPU_LABEL: contract.KUBE_LABEL_TRUE,
        contract.KUBE_TYPE_LABEL: "p5.48xlarge",
        "kubernetes.io/hostname": name,
    }
    whole = {"taints": [startup], "providerID": f"aws:///us-east-1a/i-{name:0>17}", **spec}
    capacity = {"capacity": kwok, "allocatable": kwok}
    node = plane.ask(
        "POST", "/api/v1/nodes", made("Node", name, metadata={"labels": labels}, spec=whole, status=capacity)
    )
    if kwok:
        return node
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "made by the test"}
    own = {"cpu": "192", contract.KUBE_GPU_RESOURCE: "8"}
    plane.say_status(f"/api/v1/nodes/{name}", {"conditions": [ready], "capacity": own})
    # The API server adds not-ready to a new node; the node lifecycle controller takes it away again, here the test does.
    return plane.merge_node(name, spec={"taints": whole["taints"]})


def alive(node: dict[str, Any]) -> bool:
    """Ready, and the node lifecycle controller knows it."""
    ready = {one["status"] for one in node.get("status", {}).get("conditions") or [] if one["type"] == "Ready"}
    new = any(one["key"].startswith("node.kubernetes.io/not-") for one in node["spec"].get("taints") or [])
    return ready == {"True"} and not new


def token(plane: Cluster, node: str, seconds: int = 3600) -> str:
    """The token that kubelet would give to the agent's pod on a node: bound to the pod, and by it to the node."""
    account = contract.KUBE_AGENT
    spec = {"serviceAccountName": account, "nodeName": node, "tolerations": [{"operator": "Exists"}]}
    spec["containers"] = [{"name": "judge", "image": "none"}]
    where = f"/api/v1/namespaces/{contract.KUBE_NAMESPACE}"
    pod = plane.ask("POST", f"{where}/pods", made("Pod", f"agent-{node}", contract.KUBE_NAMESPACE, spec=spec))
    bound = {"apiVersion": "v1", "kind": "Pod", "name": f"agent-{node}", "uid": pod["metadata"]["uid"]}
    asked = {"spec": {"expirationSeconds": seconds, "boundObjectRef": bound}}
    return plane.ask("POST", f"{where}/serviceaccounts/{account}/token", asked)["status"]["token"]


@dataclass
class KubeNode:
    """One node: its kernel (a pipe), its watcher and its agent, both asking the real API server by the pod's token."""

    plane: Cluster
    name: str
    place: Path
    watched: Watched = field(init=False)
    judge: subprocess.Popen[bytes] | None = None

    def __post_init__(self) -> None:
        env = {
            "FLIGHTLINE_NODE": self.name,
            "FLIGHTLINE_KUBERNETES_SERVER": self.plane.server,
            "FLIGHTLINE_KUBERNETES_ACCESS": str(self.place / "access"),
        }
        self.watched = Watched(self.name, self.place / "watched", env, scheduler="kubernetes")
        self.settings = self.place / "node.json"

    def register(self, **spec: Any) -> KubeNode:
        register(self.plane, self.name, **spec)
        access = self.place / "access"
        access.mkdir(parents=True)
        self.renew()
        (access / "ca.crt").write_bytes(self.plane.authority.read_bytes())
        self.judged_by("xid")
        return self

    def renew(self, text: str = "") -> None:
        (self.place / "access" / "token").write_text(text or token(self.plane, self.name))

    def judged_by(self, *checks: str, **changes: Any) -> None:
        """What the agent judges. The machine of the test has no GPU: xid reads its kernel's messages, and is go."""
        from tests.healing.fleet import SITE as settings

        wanted = {**settings, "host": self.name, "instance_type": "none", "checks": list(checks), **changes}
        self.settings.write_text(json.dumps(wanted))

    def watch(self) -> KubeNode:
        self.watched.up()
        return self

    def join(self, *more: str, every_s: float = 3600) -> KubeNode:
        """The agent."""
        argv = [
            sys.executable, "-m", "flightline_node", "kubernetes", "--settings", str(self.settings),
            "--log", str(self.place / "records.jsonl"), "--directory", str(self.place / "watched" / "lib"),
            "--metrics-address", "127.0.0.1", "--metrics-port", "0", "--every", str(every_s), "--look-every", "0.3",
            "--kmsg", str(self.place / "watched" / "kmsg"), *more,
        ]  # fmt: skip
        env = {**os.environ, **self.watched.env}
        with (self.place / "agent.log").open("ab") as log:
            self.judge = subprocess.Popen(argv, stderr=log, stdout=log, stdin=subprocess.DEVNULL, env=env)
        return self

    def said(self) -> str:
        return (self.place / "agent.log").read_text()

    def leave(self) -> None:
        if self.judge:
            self.judge.terminate()
            self.judge.wait(60)
            self.judge = None

    def down(self) -> None:
        self.leave()
        if hasattr(self.watched, "process"):
            self.watched.down()

    def taints(self) -> set[str]:
        return {one["key"] for one in self.plane.node(self.name)["spec"].get("taints") or []}

    def condition(self) -> dict[str, str]:
        found = self.plane.node(self.name)["status"]["conditions"]
        return next((one for one in found if one["type"] == contract.KUBE_CONDITION), {})
