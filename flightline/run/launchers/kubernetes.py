"""Ask through Kubernetes: `kubectl exec` into the agent's pod of each node, which has the node library with it.

The pod's library is named by its checksum, so an agent of another version is known before it is asked. What the node
answers comes in frames, as from every launcher; the task on the node ends itself at its deadline.
"""

from __future__ import annotations

import base64
import json
import shlex
import subprocess
import threading
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from flightline_node import bounds

from ...contract import KUBE_AGENT, KUBE_NAMESPACE
from ...kubernetes.agent import HOST, LIBRARY, PACKAGE, own_library_name
from ...kubernetes.inventory import is_accelerated
from ...kubernetes.nodes import KubeObject, by_any_name, listed
from ...record.answers import most_bytes, said
from ...record.outputs import BEGUN, ENDED, read
from ..calls import Call, packed
from . import HostReply, LaunchError

ASK_S = 60
MOST_AT_ONCE = 64
"""Nodes asked at a time: a kubectl each, of some 40 MB."""
GRACE_S = 10.0


class KubernetesLauncher:
    """The launcher. options: more words for kubectl, such as --context=NAME."""

    how = "kubectl exec"
    answers_at: Mapping[str, str] = {}

    def __init__(self, options: Sequence[str] = ()) -> None:
        self.kubectl = ("kubectl", *options)
        self._nodes: list[KubeObject] | None = None
        self._known: dict[str, KubeObject] | None = None
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def known_as(self, call: Call) -> str:
        """The Node's name, where the cluster has one of the host's name, address or instance id."""
        own = (call.name, call.host, call.address, str(call.params.get("instance_id") or ""))
        if self._known is None:
            self._known = by_any_name(self.nodes())
        node = next((self._known[name] for name in own if name in self._known), None)
        return str(node["metadata"]["name"]) if node else call.name

    def unlisted(self, calls: Sequence[Call]) -> Mapping[str, str]:
        """GPU nodes of the cluster that are no host of the inventory."""
        known = {call.name for call in calls}
        names = (str(node["metadata"]["name"]) for node in self.nodes() if is_accelerated(node))
        return {name: "Kubernetes has it" for name in names if name not in known}

    def ask(self, calls: Sequence[Call], run_id: str, until: float, on_reply: Callable[[HostReply], None]) -> None:
        """See Launcher."""
        pods = {str(pod["spec"].get("nodeName")): pod for pod in self._pods()}
        nodes = {str(node["metadata"]["name"]) for node in self.nodes()}
        library = own_library_name()
        due: list[tuple[Call, str]] = []
        for call in calls:
            pod = pods.get(call.name)
            why = _unfit(call.name, nodes, pod, library)
            if why or pod is None:
                on_reply(HostReply(call.host, trouble=why, lost=True))
            else:
                due.append((call, str(pod["metadata"]["name"])))
        if due:
            with ThreadPoolExecutor(min(len(due), MOST_AT_ONCE), "kubectl") as pool:
                list(pool.map(lambda one: on_reply(self._one(one[0], one[1], until)), due))

    def stop(self) -> None:
        """End every kubectl; what runs on a node ends at its own deadline."""
        with self._lock:
            self._stopped = True
            running = list(self._running)
        for process in running:
            process.terminate()

    def _one(self, call: Call, pod: str, until: float) -> HostReply:
        given = base64.b64encode(zlib.compress(json.dumps(packed([call])).encode()))
        with self._lock:
            if self._stopped:
                return HostReply(call.host, trouble="the run was stopped before it was asked", lost=True)
            process = subprocess.Popen(
                [*self.in_agent(pod), "/bin/sh", "-c", _script(call)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )  # fmt: skip
            self._running.add(process)
        try:
            out, errors = process.communicate(given, max(until - time.monotonic(), 0.1))
        except subprocess.TimeoutExpired:
            process.kill()
            out, errors = process.communicate()
        finally:
            with self._lock:
                self._running.discard(process)
        return _reply(call, out, errors)

    def in_agent(self, pod: str) -> list[str]:
        """The words before what is to run on the node of an agent's pod, its standard input given."""
        words = ["exec", "-i", f"--namespace={KUBE_NAMESPACE}", pod, "--container=judge", "--"]
        return [*self.kubectl, *words, "/usr/sbin/chroot", HOST]

    def running_pods(self) -> dict[str, str]:
        """Node -> its agent's pod, of those that run. Raises LaunchError."""
        pods = [pod for pod in self._pods() if (pod.get("status") or {}).get("phase") == "Running"]
        return {str(pod["spec"].get("nodeName")): str(pod["metadata"]["name"]) for pod in pods}

    def nodes(self) -> list[KubeObject]:
        """The cluster's Nodes, asked for once. Raises LaunchError."""
        if self._nodes is None:
            self._nodes = self._list("get", "nodes")
        return self._nodes

    def _pods(self) -> list[KubeObject]:
        return self._list(
            "get", "pods", f"--namespace={KUBE_NAMESPACE}", f"--selector=app.kubernetes.io/name={KUBE_AGENT}"
        )

    def _list(self, *words: str) -> list[KubeObject]:
        try:
            done = subprocess.run(
                [*self.kubectl, *words, "-o", "json"],
                capture_output=True, check=False, timeout=ASK_S, stdin=subprocess.DEVNULL,
            )  # fmt: skip
            if done.returncode == 0:
                return listed(done.stdout)
            trouble = done.stderr.decode("utf-8", "replace")
        except FileNotFoundError:
            raise LaunchError("saw no kubectl on the PATH; wanted Kubernetes' client; do: install it") from None
        except (OSError, subprocess.TimeoutExpired, ValueError) as error:
            trouble = str(error)
        raise LaunchError(f"saw {said(trouble)} of kubectl {words[1]}; wanted a list; do: kubectl {' '.join(words)}")


def _unfit(name: str, nodes: set[str], pod: KubeObject | None, library: str) -> str:
    """Why nothing can be asked there, or ""."""
    if name not in nodes:
        return f"Kubernetes has no Node {name} (asked: kubectl get nodes)"
    if pod is None:
        return (
            f"saw no agent's pod on {name}; wanted one of the DaemonSet {KUBE_AGENT}; do: flightline kube, and apply it"
        )
    phase = str((pod.get("status") or {}).get("phase"))
    if phase != "Running":
        return f"the agent's pod {pod['metadata']['name']} is {phase}, so nothing can be asked there"
    has = [
        str((one.get("configMap") or {}).get("name"))
        for one in pod["spec"].get("volumes") or []
        if one.get("name") == "library"
    ]
    if has != [library]:
        return (
            f"saw an agent with {', '.join(has) or 'no library'}; wanted {library}; do: flightline kube, and apply it"
        )
    return ""


def _script(call: Call) -> str:
    """It says who it is first and how it ended last."""
    end_s = int(call.params["timeout_s"]) + bounds.NODE_GRACE_S
    inner = f"timeout --foreground -k 5 {end_s} python3 {LIBRARY}/{PACKAGE} call - {shlex.quote(call.name)}"
    return f"echo {BEGUN} {shlex.quote(call.name)}; {inner}; echo {ENDED} $?"


def _reply(call: Call, out: bytes, errors: bytes) -> HostReply:
    most = most_bytes(bool(call.params.get("return_bundle")))
    if len(out) > 2 * most:
        return HostReply(call.host, trouble="its answer is endless: more than twice of what is taken")
    text = out.decode("utf-8", "replace")
    if not any(line.startswith(f"{ENDED} ") for line in text.splitlines()):
        why = said(errors.decode("utf-8", "replace").strip().rpartition("\n")[2]) or "it gave no reason"
        return HostReply(call.host, trouble=f"kubectl exec ended before its answer was whole: {why}", lost=not out)
    return read(call.host, call.name, text, most)
