"""What the manifests need to know of a cluster: its outputs, the hardware table, and what the site decides."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from flightline_node.know.expected import Expected, resolve
from flightline_node.model import SettingsError

NEEDED = ("cluster_name", "region", "instance_type", "node_count", "efa_count", "checkpoints_url")
"""Outputs of a stack without which nothing can be written."""
TRAINING_KINDS = ("jobset", "trainjob")
HEAL_MODES = ("off", "advise", "act")
AGENT_IMAGE = "public.ecr.aws/amazonlinux/amazonlinux:2023-minimal"
"""Of the agent: only its chroot is used, Python and the tools are the node's own."""
PUBLISHED = {"table": "results_table", "bucket": "results_bucket", "topic": "alerts_topic_arn", "region": "region",
             "namespace": "metric_namespace"}  # fmt: skip
"""Publish setting -> the stack's output that it is."""
_CHECKPOINTS = re.compile(r"s3://[a-z0-9.-]+/\S*")


@dataclass(frozen=True)
class KubeSite:
    """One cluster. expected: a node's row of the hardware table. nodes, efas: how many, the latter of each node.

    training_image: '' leaves the training run out; control_image the nightly preflight and healing; serving_image the
    service. training_kind: of TRAINING_KINDS. training_program: torchrun's last words. settings: the node library's, on
    top of its defaults. heal: the mode of remediate. publish: where results go. serving_gpus: of one replica.
    """

    cluster: str
    region: str
    expected: Expected
    nodes: int
    efas: int
    checkpoints: str
    fsx_dns: str = ""
    fsx_mount: str = ""
    agent_image: str = AGENT_IMAGE
    training_image: str = ""
    training_kind: str = "jobset"
    training_program: tuple[str, ...] = ("-m", "training.job")
    settings: Mapping[str, Any] = field(default_factory=dict)
    control_image: str = ""
    heal: str = "advise"
    publish: Mapping[str, str] = field(default_factory=dict)
    serving_image: str = ""
    serving_model: str = ""
    serving_gpus: int = 1

    @property
    def gpus(self) -> int:
        """GPUs of a node."""
        return self.expected.gpu_count or 0


def of_outputs(outputs: Mapping[str, Any], **decided: Any) -> KubeSite:
    """The site of a stack. Raises SettingsError that names every output that is missing or of no use."""
    lacking = [name for name in NEEDED if outputs.get(name) in (None, "")]
    if lacking:
        raise SettingsError(
            f"saw outputs without {', '.join(lacking)}; wanted those of a stack (pulumi stack output --json); "
            "do: make outputs STACK=..., or --outputs FILE"
        )
    nodes, efas = (_number(name, outputs[name]) for name in ("node_count", "efa_count"))
    expected = resolve(str(outputs["instance_type"]))
    if not expected.has_nvidia_gpu or not expected.gpu_count:
        raise SettingsError(
            f"saw instance_type {expected.instance_type} without NVIDIA GPUs; wanted a type of GPU nodes; "
            "do: another stack, Neuron devices are not driven on Kubernetes yet"
        )
    checkpoints = str(outputs["checkpoints_url"])
    if not _CHECKPOINTS.fullmatch(checkpoints):
        raise SettingsError(f"saw checkpoints_url {checkpoints!r}; wanted s3://BUCKET/; do: make outputs STACK=...")
    gpus = int(decided.get("serving_gpus") or 1)
    if gpus > expected.gpu_count:
        raise SettingsError(
            f"saw {gpus} GPUs for a replica of the service; wanted at most the {expected.gpu_count} of a node "
            f"({expected.instance_type}); do: --serving-gpus, or a smaller model"
        )
    if decided.get("serving_image") and not decided.get("serving_model"):
        raise SettingsError("saw --serving-image without --serving-model; wanted a model's name or path; do: name it")
    cluster, region = str(outputs["cluster_name"]), str(outputs["region"])
    published = {name: str(outputs[of]) for name, of in PUBLISHED.items() if outputs.get(of)}
    dns, mount = (str(outputs.get(name) or "") for name in ("fsx_dns_name", "fsx_mount_name"))
    return KubeSite(cluster, region, expected, nodes, efas, checkpoints, dns, mount, publish=published, **decided)


def _number(name: str, value: Any) -> int:
    text = str(value)
    if not text.isdecimal():
        raise SettingsError(f"saw {name} {value!r}; wanted a whole number; do: make outputs STACK=...")
    return int(text)
