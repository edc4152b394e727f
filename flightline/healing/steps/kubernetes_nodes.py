"""The nodes of a cluster on Kubernetes: their agents' own library takes the step, by `kubectl exec`.

Nothing else has to reach a node: no SSH, no Session Manager. The pod's container is privileged and sees the node's own
processes and services, so that a step there is a step on the node.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from ...kubernetes.agent import LIBRARY, PACKAGE
from ...kubernetes.nodes import by_host
from ...run.launchers import LaunchError
from ...run.launchers.kubernetes import MOST_AT_ONCE, KubernetesLauncher
from .nodes import AnsibleNodes, NodeReply, answer_of
from .ports import EdgeError

OWN = f"{LIBRARY}/{PACKAGE}"
ABSENT = NodeReply({}, False, "the cluster has no Node of that name, address or instance, or no agent runs there")


@dataclass
class KubernetesNodes(AnsibleNodes):
    """As AnsibleNodes, asked through the cluster's API. kubectl: words for it, such as --context=NAME."""

    kubectl: tuple[str, ...] = ()

    def ask(
        self, hosts: Collection[str], action: str, token: int, more: Mapping[str, Any] | None = None
    ) -> dict[str, NodeReply]:
        """One step on these hosts. Raises EdgeError when the cluster itself cannot be asked."""
        cluster = KubernetesLauncher(self.kubectl)  # anew each time: a Node that was replaced has another pod
        try:
            nodes, pods = by_host(cluster.nodes(), hosts), cluster.running_pods()
        except LaunchError as error:
            raise EdgeError(str(error)) from error
        agents = {host: pods.get(str(node["metadata"]["name"]), "") for host, node in nodes.items()}

        def one(host: str) -> NodeReply:
            words = ["/usr/bin/python3", OWN, "repair", _step(action, token, more or {}, host)]
            return self._run([*cluster.in_agent(agents[host]), *words]) if agents.get(host) else ABSENT

        with ThreadPoolExecutor(max(1, min(len(hosts), MOST_AT_ONCE)), "kubectl") as pool:
            return dict(zip(hosts, pool.map(one, hosts), strict=True))

    def _run(self, argv: Sequence[str]) -> NodeReply:
        try:
            done = subprocess.run(
                argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=self.timeout_s, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return NodeReply({}, trouble=f"kubectl exec: {error}"[:300])
        return answer_of({name: getattr(done, name).decode("utf-8", "replace") for name in ("stdout", "stderr")})


def _step(action: str, token: int, given: Mapping[str, Any], host: str) -> str:
    step = {"action": action, "token": token, "package": OWN}
    step["marker"] = (given.get("flightline_heal_markers") or {}).get(host)
    step["targets"] = (given.get("flightline_heal_targets") or {}).get(host, [])
    return json.dumps({**step, **{name: given.get(f"flightline_heal_{name}", "") for name in ("run", "judged_at")}})
