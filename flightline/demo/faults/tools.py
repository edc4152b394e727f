"""Faults of the tools themselves, and of the way to the node."""

from __future__ import annotations

from typing import Mapping, Tuple

from flightline_node.model import Remedy, Status

from ..hardware import Machine
from ..tree import Entry, text
from .change import HANG, SMI_PARSERS, set_tool
from .fault import CONNECTION, Change, Fault


def _truncated(files: Mapping[str, Entry], machine: Machine) -> Change:
    content = text(files, "out/nvidia-smi.xml")
    return {"out/nvidia-smi.xml": content[: len(content) * 5 // 8].encode()}


def _none(files: Mapping[str, Entry], machine: Machine) -> Change:
    """Nothing in the node's files: the inventory gives it a port on which nothing listens."""
    return {}


FAULTS: Tuple[Fault, ...] = (
    Fault("tool_hung", "nvidia-smi never ends and ignores a polite kill",
          "gpu_count", Remedy.INVESTIGATE, set_tool("nvidia-smi", script=HANG),
          status=Status.UNKNOWN, blinds=SMI_PARSERS, also=("conf_compute",)),
    Fault("tool_garbage", "nvidia-smi prints binary data",
          "gpu_count", Remedy.INVESTIGATE, lambda files, machine: {"out/nvidia-smi.xml": bytes(range(256)) * 16},
          status=Status.UNKNOWN, blinds=("nvidia_smi",)),
    Fault("tool_truncated", "nvidia-smi's XML ends in the middle",
          "gpu_count", Remedy.INVESTIGATE, _truncated, status=Status.UNKNOWN, blinds=("nvidia_smi",)),
    Fault("tool_exit_nonzero", "nvidia-smi prints a healthy answer and fails",
          "gpu_count", Remedy.INVESTIGATE, set_tool("nvidia-smi", rc=255), status=Status.UNKNOWN, blinds=SMI_PARSERS),
    # Not taken away: a real nvidia-smi of this machine would answer in its place.
    Fault("tool_missing", "nvidia-smi cannot be started: a part of it is missing",
          "gpu_count", Remedy.INVESTIGATE, set_tool("nvidia-smi", interpreter="/nonexistent/flightline-demo/sh"),
          status=Status.UNKNOWN, blinds=SMI_PARSERS),
    Fault("unreachable", "nothing answers on the node's address",
          "reachable", Remedy.INVESTIGATE, _none, status=Status.UNREACHABLE, scope=CONNECTION),
)  # fmt: skip
