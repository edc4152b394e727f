"""A training run over all nodes, as a JobSet (jobset.x-k8s.io) or Kubeflow's TrainJob, and the file system it reads.

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
STORAGE_CLASS = "flightline-fsx"
TRAINER = "trainer.kubeflow.org"


def manifests(site: KubeSite) -> list[Manifest]:
    """The volume where the stack has a file system; the run where an image is named."""
    found = _volume(site) if site.fsx_dns and site.fsx_mount else []
    if site.training_image:
        found.append(manifest("v1", "ServiceAccount", KUBE_TRAINER, {"automountServiceAccountToken": False}, _WHERE))
        found += _trainjob(site) if site.training_kind == "trainjob" else [_jobset(site)]
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
    # Provisions nothing: a claim must not order a file system that costs thousands a month.
    nothing = "kubernetes.io/no-provisioner"
    classed = {"provisioner": nothing, "reclaimPolicy": "Retain", "volumeBindingMode": "Immediate"}
    volume = {
        "capacity": size,
        "accessModes": ["ReadWriteMany"],
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": STORAGE_CLASS,
        "volumeMode": "Filesystem",
        "mountOptions": ["flock"],
        "csi": csi,
        "claimRef": {"namespace": _WHERE, "name": FSX},
    }
    claim = {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": STORAGE_CLASS,
        "volumeName": f"{site.cluster}-{FSX}",
        "resources": {"requests": size},
    }
    return [
        manifest("storage.k8s.io/v1", "StorageClass", STORAGE_CLASS, classed, None),
        manifest("v1", "PersistentVolume", f"{site.cluster}-{FSX}", {"spec": volume}, None),
        manifest("v1", "PersistentVolumeClaim", FSX, {"spec": claim}, _WHERE),
    ]


def _jobset(site: KubeSite) -> Manifest:
    torchrun = [
        f"--nnodes={site.nodes}", f"--nproc-per-node={site.gpus}", "--rdzv-backend=c10d",
        f"--rdzv-id={JOB}", f"--rdzv-endpoint={JOB}-{NODE}-0-0.{JOB}:{PORT}",
    ]  # fmt: skip
    spec = {**_group(site, JOB, torchrun), "network": {"enableDNSHostnames": True}}
    return manifest("jobset.x-k8s.io/v1alpha2", "JobSet", JOB, {"spec": spec}, _WHERE)


def _trainjob(site: KubeSite) -> list[Manifest]:
    """The runtime holds the pod, the TrainJob names it. torchrun has its group from the environment that Kubeflow sets.

    Kubeflow finds the trainer's container by the name `node`, in the job with the label below.
    """
    group = _group(site, NODE, [])
    group["replicatedJobs"][0]["template"]["metadata"] = {"labels": {f"{TRAINER}/trainjob-ancestor-step": "trainer"}}
    runtime = {"mlPolicy": {"numNodes": site.nodes, "torch": {}}, "template": {"spec": group}}
    wanted = {
        "runtimeRef": {"apiGroup": TRAINER, "kind": "TrainingRuntime", "name": JOB},
        "trainer": {"numNodes": site.nodes, "numProcPerNode": site.gpus},
    }
    labels = {f"{TRAINER}/framework": "torch"}
    return [
        manifest(f"{TRAINER}/v1alpha1", "TrainingRuntime", JOB, {"spec": runtime}, _WHERE, labels=labels),
        manifest(f"{TRAINER}/v1alpha1", "TrainJob", JOB, {"spec": wanted}, _WHERE),
    ]


def _group(site: KubeSite, container: str, torchrun: list[str]) -> dict[str, Any]:
    """One pod on each node, and when the run begins again."""
    job = {
        "parallelism": site.nodes,
        "completions": site.nodes,
        "completionMode": "Indexed",
        "backoffLimit": 0,
        "podFailurePolicy": {
            "rules": [
                {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                {"action": "FailJob", "onExitCodes": {"containerName": container, "operator": "In", "values": [SAVED]}},
            ]
        },
        "template": {"spec": _pod(site, _trainer(site, container, torchrun))},
    }
    again = {"action": "RestartJobSetAndIgnoreMaxRestarts", "onJobFailureReasons": ["PodFailurePolicy"]}
    return {
        "failurePolicy": {"maxRestarts": RESTARTS, "rules": [{"name": "savedOrEvicted", **again}]},
        "replicatedJobs": [{"name": NODE, "replicas": 1, "template": {"spec": job}}],
    }


def _pod(site: KubeSite, trainer: dict[str, Any]) -> dict[str, Any]:
    spread = {"topologyKey": "kubernetes.io/hostname", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    named = {"labelSelector": {"matchLabels": {"jobset.sigs.k8s.io/jobset-name": JOB}}}
    own = {"terminationGracePeriodSeconds": GRACE_S}, {"topologySpreadConstraints": [{**spread, **named}]}
    return {"restartPolicy": "Never", **gpu_pod(site, trainer, f"{_memory_mib(site) // 4}Mi", *own)}


def gpu_pod(
    site: KubeSite, container: dict[str, Any], shared: str, life: dict[str, Any], places: dict[str, Any]
) -> dict[str, Any]:
    """A pod on proven GPU nodes, with the file system. shared: memory at /dev/shm, where its processes meet."""
    volumes: list[dict[str, Any]] = [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": shared}}]
    mounts = [{"name": "shm", "mountPath": "/dev/shm"}]  # noqa: S108  # ranks, or tensor parallel workers
    if site.fsx_dns and site.fsx_mount:
        volumes.append({"name": FSX, "persistentVolumeClaim": {"claimName": FSX}})
        mounts.append({"name": FSX, "mountPath": "/fsx"})
    return {
        "serviceAccountName": KUBE_TRAINER,
        "automountServiceAccountToken": False,
        **life,
        "nodeSelector": {KUBE_GPU_LABEL: KUBE_LABEL_TRUE},
        "tolerations": [{"key": KUBE_GPU_RESOURCE, "operator": "Exists", "effect": "NoSchedule"}],
        **places,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{**container, "volumeMounts": mounts}],
        "volumes": volumes,
    }


def _trainer(site: KubeSite, name: str, torchrun: list[str]) -> dict[str, Any]:
    resources: dict[str, str] = {KUBE_GPU_RESOURCE: str(site.gpus), "memory": f"{_memory_mib(site)}Mi"}
    if site.expected.vcpus:
        resources["cpu"] = str(int(site.expected.vcpus * SHARE))
    if site.efas:
        resources |= {KUBE_EFA_RESOURCE: str(site.efas), "hugepages-2Mi": f"{HUGE_PAGES_MIB}Mi"}
    return {
        "name": name,
        "image": site.training_image,
        "command": ["torchrun", *torchrun, *site.training_program],
        "env": [
            {"name": "FI_PROVIDER", "value": "efa"} if site.efas else {"name": "NCCL_SOCKET_IFNAME", "value": "eth0"},
            {"name": "FLIGHTLINE_CHECKPOINTS", "value": site.checkpoints},
            {"name": "AWS_REGION", "value": site.region},
        ],
        "resources": {"requests": resources, "limits": dict(resources)},
        "securityContext": {"allowPrivilegeEscalation": False},
    }


def _memory_mib(site: KubeSite) -> int:
    """A share of the type's memory, less the huge pages, which are counted apart."""
    memory = int((site.expected.memory_mib or 0) * SHARE)
    return max(memory - (HUGE_PAGES_MIB if site.efas else 0), 1024)
