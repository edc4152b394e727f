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
AGENT_IMAGE = "public.ecr.aws/amazonlinux/amazonlinux:2023-minimal"
"""Of the agent: only its chroot is used, Python and the tools are the node's own."""
_CHECKPOINTS = re.compile(r"s3://[a-z0-9.-]+/\S*")


@dataclass(frozen=True)
class KubeSite:
    """One cluster. expected: a node's row of the hardware table. nodes, efas: how many, the latter of each node.

    training_image: '' leaves the training run out. training_program: torchrun's last words. settings: the node
    library's, on top of its defaults.
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
    training_program: tuple[str, ...] = ("-m", "training.job")
    settings: Mapping[str, Any] = field(default_factory=dict)

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
    numbers = {name: _number(name, outputs[name]) for name in ("node_count", "efa_count")}
    expected = resolve(str(outputs["instance_type"]))
    if not expected.has_nvidia_gpu or not expected.gpu_count:
        raise SettingsError(
            f"saw instance_type {expected.instance_type} without NVIDIA GPUs; wanted a type of GPU nodes; "
            "do: another stack, Neuron devices are not driven on Kubernetes yet"
        )
    checkpoints = str(outputs["checkpoints_url"])
    if not _CHECKPOINTS.fullmatch(checkpoints):
        raise SettingsError(f"saw checkpoints_url {checkpoints!r}; wanted s3://BUCKET/; do: make outputs STACK=...")
    return KubeSite(
        str(outputs["cluster_name"]),
        str(outputs["region"]),
        expected,
        numbers["node_count"],
        numbers["efa_count"],
        checkpoints,
        str(outputs.get("fsx_dns_name") or ""),
        str(outputs.get("fsx_mount_name") or ""),
        **decided,
    )


def _number(name: str, value: Any) -> int:
    text = str(value)
    if not text.isdecimal():
        raise SettingsError(f"saw {name} {value!r}; wanted a whole number; do: make outputs STACK=...")
    return int(text)
