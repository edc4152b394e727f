"""A training run over all nodes as a JobSet (jobset.x-k8s.io), and the file system that it reads.

The gate is the taint: a pod lands only on a node that was proven. A run that ends because it saved and was told to, or
because its pods were evicted, begins again and costs none of its restarts.
"""

from __future__ import annotations

from typing import Any

from ..contract import (
    KUBE_EFA_RESOURCE,
    KUBE_GPU_LABEL,
    KUBE_GPU_RESOURCE,
    KUBE_LABEL_TRUE,
    KUBE_TRAINER,
    KUBE_TRAINING_NAMESPACE,
)
from .objects import Manifest, manifest
from .site import KubeSite

JOB, NODE = "train", "node"
PORT = 29400
"""torchrun's own default for its rendezvous."""
SAVED = 75
"""EX_TEMPFAIL: the reference job's exit status after it saved and was told to end (docs/training.md)."""
RESTARTS = 3
GRACE_S = 300
"""To save a checkpoint before the pod is killed."""
HUGE_PAGES_MIB = 5120
"""Amazon EKS User Guide, "Run machine learning training on Amazon EKS with Elastic Fabric Adapter"."""
SHARE = 0.8
"""Of the node's CPUs and memory: kubelet, the agent and the device plugins have the rest."""
FSX = "fsx"


def manifests(site: KubeSite) -> list[Manifest]:
    """The volume where the stack has a file system; the run where an image is named."""
    found = _volume(site) if site.fsx_dns and site.fsx_mount else []
    if site.training_image:
        found.append(manifest("v1", "ServiceAccount", KUBE_TRAINER, {"automountServiceAccountToken": False}, _WHERE))
        found.append(manifest("jobset.x-k8s.io/v1alpha2", "JobSet", JOB, {"spec": _jobset(site)}, _WHERE))
    return found


_WHERE = KUBE_TRAINING_NAMESPACE


def _volume(site: KubeSite) -> list[Manifest]:
    """The stack's own file system, already there: nothing is provisioned, and deleting the claim deletes no data."""
    csi = {
        "driver": "fsx.csi.aws.com",
        "volumeHandle": site.fsx_dns.partition(".")[0],
        "volumeAttributes": {"dnsname": site.fsx_dns, "mountname": site.fsx_mount},
    }
    size = {"storage": "1200Gi"}  # Kubernetes wants a size; Lustre's own is not asked
    volume = {
        "capacity": size,
        "accessModes": ["ReadWriteMany"],
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "",
        "volumeMode": "Filesystem",
        "mountOptions": ["flock"],
        "csi": csi,
        "claimRef": {"namespace": _WHERE, "name": FSX},
    }
    claim = {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "",
        "volumeName": f"{site.cluster}-{FSX}",
        "resources": {"requests": size},
    }
    return [
        manifest("v1", "PersistentVolume", f"{site.cluster}-{FSX}", {"spec": volume}, None),
        manifest("v1", "PersistentVolumeClaim", FSX, {"spec": claim}, _WHERE),
    ]


def _jobset(site: KubeSite) -> dict[str, Any]:
    job = {
        "parallelism": site.nodes,
        "completions": site.nodes,
        "completionMode": "Indexed",
        "backoffLimit": 0,
        "podFailurePolicy": {
            "rules": [
                {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                {"action": "FailJob", "onExitCodes": {"containerName": JOB, "operator": "In", "values": [SAVED]}},
            ]
        },
        "template": {"spec": _pod(site)},
    }
    again = {"action": "RestartJobSetAndIgnoreMaxRestarts", "onJobFailureReasons": ["PodFailurePolicy"]}
    return {
        "failurePolicy": {"maxRestarts": RESTARTS, "rules": [{"name": "saved-or-evicted", **again}]},
        "network": {"enableDNSHostnames": True},
        "replicatedJobs": [{"name": NODE, "replicas": 1, "template": {"spec": job}}],
    }


def _pod(site: KubeSite) -> dict[str, Any]:
    spread = {"topologyKey": "kubernetes.io/hostname", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    volumes: list[dict[str, Any]] = [
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": f"{_memory_mib(site) // 4}Mi"}}
    ]
    mounts = [{"name": "shm", "mountPath": "/dev/shm"}]  # noqa: S108  # ranks of a node share memory there
    if site.fsx_dns and site.fsx_mount:
        volumes.append({"name": FSX, "persistentVolumeClaim": {"claimName": FSX}})
        mounts.append({"name": FSX, "mountPath": "/fsx"})
    return {
        "restartPolicy": "Never",
        "serviceAccountName": KUBE_TRAINER,
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": GRACE_S,
        "nodeSelector": {KUBE_GPU_LABEL: KUBE_LABEL_TRUE},
        "tolerations": [{"key": KUBE_GPU_RESOURCE, "operator": "Exists", "effect": "NoSchedule"}],
        "topologySpreadConstraints": [
            {**spread, "labelSelector": {"matchLabels": {"jobset.sigs.k8s.io/jobset-name": JOB}}}
        ],
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [_trainer(site, mounts)],
        "volumes": volumes,
    }


def _trainer(site: KubeSite, mounts: list[dict[str, Any]]) -> dict[str, Any]:
    resources: dict[str, str] = {KUBE_GPU_RESOURCE: str(site.gpus), "memory": f"{_memory_mib(site)}Mi"}
    if site.expected.vcpus:
        resources["cpu"] = str(int(site.expected.vcpus * SHARE))
    if site.efas:
        resources |= {KUBE_EFA_RESOURCE: str(site.efas), "hugepages-2Mi": f"{HUGE_PAGES_MIB}Mi"}
    torchrun = [
        "torchrun", f"--nnodes={site.nodes}", f"--nproc-per-node={site.gpus}", "--rdzv-backend=c10d",
        f"--rdzv-id={JOB}", f"--rdzv-endpoint={JOB}-{NODE}-0-0.{JOB}:{PORT}",
    ]  # fmt: skip
    return {
        "name": JOB,
        "image": site.training_image,
        "command": [*torchrun, *site.training_program],
        "env": [
            {"name": "FI_PROVIDER", "value": "efa"} if site.efas else {"name": "NCCL_SOCKET_IFNAME", "value": "eth0"},
            {"name": "FLIGHTLINE_CHECKPOINTS", "value": site.checkpoints},
            {"name": "AWS_REGION", "value": site.region},
        ],
        "resources": {"requests": resources, "limits": dict(resources)},
        "securityContext": {"allowPrivilegeEscalation": False},
        "volumeMounts": mounts,
    }


def _memory_mib(site: KubeSite) -> int:
    """A share of the type's memory, less the huge pages, which are counted apart."""
    memory = int((site.expected.memory_mib or 0) * SHARE)
    return max(memory - (HUGE_PAGES_MIB if site.efas else 0), 1024)
