"""The control side in the cluster: a preflight of the fleet every night, and healing, of an image with this package.

It steps onto nodes by `kubectl exec` into the agents' pods, which are privileged: this account has the GPU nodes.
"""

from __future__ import annotations

import json
from typing import Any

from flightline_node.model import SettingsError

from ..contract import KUBE_CONTROL, KUBE_NAMESPACE
from .objects import Manifest, manifest
from .rights import RBAC, binding
from .site import KubeSite

NIGHTLY, HEALING = "flightline-nightly", "flightline-remediate"
SCHEDULE = "15 3 * * *"
EVERY_S = 60
MOST_S = 4 * 3600
"""Of a nightly preflight, far above its own deadline: a pod that hangs must not keep the next night's from starting."""
PLACE = "/work"


def manifests(site: KubeSite) -> list[Manifest]:
    """Nothing without an image."""
    if not site.control_image:
        return []
    if not site.publish.get("table"):
        raise SettingsError(
            "saw outputs without results_table; wanted the stack's table, where runs and incidents are kept; "
            "do: make outputs STACK=..., or leave --control-image out"
        )
    rules = [
        # kubectl asks by a WebSocket, a GET; by SPDY, a POST, where that is not to be had.
        {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["get", "create"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
    ]
    found = [
        manifest(RBAC, "Role", KUBE_CONTROL, {"rules": rules}),
        binding("Role", KUBE_CONTROL, KUBE_CONTROL, KUBE_NAMESPACE),
        manifest("batch/v1", "CronJob", NIGHTLY, {"spec": _nightly(site)}),
    ]  # fmt: skip
    return found + [manifest("apps/v1", "Deployment", HEALING, {"spec": _healing(site)})] * (site.heal != "off")


def _nightly(site: KubeSite) -> dict[str, Any]:
    """Level quick: busy nodes cannot be judged deeper; their agents do that when no GPU pod runs."""
    pod = {**_pod(site, ["preflight", "-i", "kubernetes"]), "restartPolicy": "Never"}
    # Exit status 1 is a verdict, no-go, and shows as a failed Job; asking again would not change it.
    job = {"backoffLimit": 0, "activeDeadlineSeconds": MOST_S, "ttlSecondsAfterFinished": 7 * 86_400}
    when = {"schedule": SCHEDULE, "concurrencyPolicy": "Forbid", "startingDeadlineSeconds": 3600}
    return {**when, "jobTemplate": {"spec": {**job, "template": {"spec": pod}}}}


def _healing(site: KubeSite) -> dict[str, Any]:
    words = ["remediate", "-i", "kubernetes", "--mode", site.heal, "--every", str(EVERY_S), "--ec2"]
    selected = {"app.kubernetes.io/name": HEALING}
    return {
        "replicas": 1,
        # The lease keeps two apart; there is no use in a second.
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": selected},
        "template": {"metadata": {"labels": selected}, "spec": _pod(site, words, FLIGHTLINE_STORE=_table(site))},
    }


def _table(site: KubeSite) -> str:
    return f"aws:{site.publish['table']}"


def _pod(site: KubeSite, words: list[str], **env: str) -> dict[str, Any]:
    given = {"FLIGHTLINE_PUBLISH": json.dumps(dict(site.publish)), "AWS_REGION": site.region, "HOME": PLACE, **env}
    user = {"runAsNonRoot": True, "runAsUser": 10_001, "fsGroup": 10_001, "seccompProfile": {"type": "RuntimeDefault"}}
    rights = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
    temporary = {"name": "work", "mountPath": "/tmp", "subPath": "tmp"}  # noqa: S108  # Ansible's own files
    container = {
        "name": "flightline",
        "image": site.control_image,
        "command": ["flightline", *words],
        "workingDir": PLACE,
        "env": [{"name": name, "value": value} for name, value in given.items()],
        "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"memory": "4Gi"}},
        "securityContext": rights,
        "volumeMounts": [{"name": "work", "mountPath": PLACE}, temporary],
    }
    return {
        "serviceAccountName": KUBE_CONTROL,
        # kubectl's way to the API; AWS is asked by Pod Identity.
        "automountServiceAccountToken": True,
        "securityContext": user,
        "containers": [container],
        "volumes": [{"name": "work", "emptyDir": {"sizeLimit": "8Gi"}}],
    }
