"""The agent's DaemonSet: the node library in the node's own system, because the tools that it asks are there.

Two containers of one pod: `judge` tells the Node what stands, `watch` follows the kernel and the driver. Both change
root to the node's file system; Python (3.8 or newer) and the tools are the node's, the image only has chroot.
"""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import flightline_node
from flightline_node.inputs import INPUTS, defaults
from flightline_node.model import SettingsError
from flightline_node.settings import resolve_settings

from ..contract import KUBE_AGENT, KUBE_GPU_LABEL, KUBE_LABEL_TRUE
from ..node_package import contents
from .objects import Manifest, manifest
from .site import KubeSite

HOST = "/host"
RUN = "/run/flightline"
"""In the node's system: what the pod brings is mounted under it, and gone with the pod."""
LIBRARY, SETTINGS, ACCESS = f"{RUN}/library", f"{RUN}/settings", f"{RUN}/access"
PACKAGE = "flightline-node.pyz"
METRICS_PORT = 9817
TOKEN_S = 3607
"""kubelet renews it at four fifths. Above an hour, or the API server extends it and counts it as a legacy token."""


def manifests(site: KubeSite) -> list[Manifest]:
    """Library and settings, then who runs them. A change of either is another name, and so a rolling update."""
    package = _package()
    library = library_name(package)
    texts = _settings(site)
    settings = f"{KUBE_AGENT}-settings-{hashlib.sha256(json.dumps(texts, sort_keys=True).encode()).hexdigest()[:10]}"
    packed = {PACKAGE: base64.b64encode(package).decode()}
    return [
        manifest("v1", "ConfigMap", library, {"binaryData": packed, "immutable": True}),
        manifest("v1", "ConfigMap", settings, {"data": texts, "immutable": True}),
        manifest("apps/v1", "DaemonSet", KUBE_AGENT, {"spec": _daemonset(site, library, settings)}),
    ]


def library_name(package: bytes) -> str:
    """Of the ConfigMap with a library: it says which version an agent's pod has."""
    return f"{KUBE_AGENT}-library-{hashlib.sha256(package).hexdigest()[:10]}"


def own_library_name() -> str:
    """The name that this side's own library has."""
    return library_name(_package())


def _package() -> bytes:
    return contents(Path(flightline_node.__file__).resolve().parent)


def _settings(site: KubeSite) -> dict[str, str]:
    """node.json as a node judges itself by, watch.json as its watcher is set."""
    stored = {one.name: defaults().get(one.name, one.default) for one in INPUTS if one.stored}
    unknown = sorted(set(site.settings) - set(stored))
    if unknown:
        raise SettingsError(
            f"saw settings {', '.join(unknown)}; wanted some of {', '.join(stored)}; do: correct --settings"
        )
    node = {**stored, **site.settings, "instance_type": site.expected.instance_type, "host": "", "instance_id": ""}
    resolve_settings({**defaults(), **node})  # a mistake is said here, and not by a thousand nodes
    watch = json.dumps({"scheduler": "kubernetes"})
    return {"node.json": json.dumps(node, sort_keys=True, indent=1), "watch.json": watch}


def _daemonset(site: KubeSite, library: str, settings: str) -> dict[str, Any]:
    selected = {"app.kubernetes.io/name": KUBE_AGENT}
    annotations = {"prometheus.io/scrape": "true", "prometheus.io/port": str(METRICS_PORT)}
    return {
        "selector": {"matchLabels": selected},
        # A new library is tried on some nodes first; taints and conditions stay while a pod is away.
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
        "template": {
            "metadata": {"labels": selected, "annotations": annotations},
            "spec": {
                "serviceAccountName": KUBE_AGENT,
                "automountServiceAccountToken": False,
                "nodeSelector": {KUBE_GPU_LABEL: KUBE_LABEL_TRUE},
                # Whatever a node is tainted with, by us or by others, it is judged.
                "tolerations": [{"operator": "Exists"}],
                "priorityClassName": "system-node-critical",
                # The processes and the metadata service that the node library asks are the node's.
                "hostPID": True,
                "hostNetwork": True,
                "terminationGracePeriodSeconds": 20,
                "containers": [_judge(site), _watch(site)],
                "volumes": _volumes(library, settings),
            },
        },
    }


def _volumes(library: str, settings: str) -> list[dict[str, Any]]:
    token = {"serviceAccountToken": {"path": "token", "expirationSeconds": TOKEN_S}}
    authority = {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}}
    return [
        {"name": "host", "hostPath": {"path": "/", "type": "Directory"}},
        {"name": "library", "configMap": {"name": library}},
        {"name": "settings", "configMap": {"name": settings}},
        {"name": "access", "projected": {"sources": [token, authority], "defaultMode": 0o400}},
    ]


def _container(site: KubeSite, name: str, words: list[str]) -> dict[str, Any]:
    own = {"fieldRef": {"fieldPath": "spec.nodeName"}}
    return {
        "name": name,
        "image": site.agent_image,
        "command": ["/usr/sbin/chroot", HOST, "/usr/bin/python3", f"{LIBRARY}/{PACKAGE}"],
        "args": words,
        "env": [
            {"name": "FLIGHTLINE_NODE", "valueFrom": own},
            {"name": "FLIGHTLINE_KUBERNETES_ACCESS", "value": ACCESS},
            {"name": "PATH", "value": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
        ],
        "securityContext": {"privileged": True, "runAsUser": 0},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            # What is mounted on the node later, such as Lustre, is seen too.
            {"name": "host", "mountPath": HOST, "mountPropagation": "HostToContainer"},
            {"name": "library", "mountPath": HOST + LIBRARY, "readOnly": True},
            {"name": "settings", "mountPath": HOST + SETTINGS, "readOnly": True},
            {"name": "access", "mountPath": HOST + ACCESS, "readOnly": True},
        ],
    }


def _judge(site: KubeSite) -> dict[str, Any]:
    """No limits: the tests of level standard run in it, and they take what the node has."""
    words = ["kubernetes", "--settings", f"{SETTINGS}/node.json", "--metrics-port", str(METRICS_PORT)]
    words += ["--watch-settings", f"{SETTINGS}/watch.json", "--returns", "no" if _controller_acts(site) else "yes"]
    alive = {"httpGet": {"path": "/healthz", "port": METRICS_PORT}, "periodSeconds": 30, "timeoutSeconds": 10}
    return {
        **_container(site, "judge", words),
        "ports": [{"name": "metrics", "containerPort": METRICS_PORT, "hostPort": METRICS_PORT}],
        "livenessProbe": {**alive, "failureThreshold": 4, "initialDelaySeconds": 30},
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
    }


def _controller_acts(site: KubeSite) -> bool:
    return bool(site.control_image) and site.heal == "act"


def _watch(site: KubeSite) -> dict[str, Any]:
    words = ["watch", "--settings", f"{SETTINGS}/node.json", "--watch-settings", f"{SETTINGS}/watch.json"]
    limits = {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "512Mi"}}
    return {**_container(site, "watch", words), "resources": limits}
