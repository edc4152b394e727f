"""Has every GPU all the PCIe lanes it has on a good node of its type?"""

from __future__ import annotations

from typing import Dict, Iterator, Optional

from ..context import Context
from ..model import Check, Facts, Finding, Remedy
from .common import (
    about,
    best_of_twins,
    field_of,
    gpu_label,
    is_number,
    judge_gpus,
    no_pcie,
    nvidia_gpus_expected,
    spread,
)

# Good nodes of these families run x16 GPUs on 8 lanes: captures of g4dn and g5 in influxdata/telegraf,
# aws-parallelcluster-cookbook pull request 2803 for the L4 of g6, NVIDIA/k8s-test-infra for the L40S of a g6e.2xlarge.
_NARROW: Dict[str, int] = {"g4dn": 8, "g5": 8, "g6": 8, "g6e": 8, "gr6": 8}
# Here AWS ParallelCluster runs DCGM's width test without an exception. Other families: nothing known.
_FULL = ("p3dn", "p4d", "p4de", "p5", "p5e", "p5en", "p6-b200", "p6-b300")


def wanted_lanes(context: Context, widest: float) -> Optional[float]:
    """Lanes that a good node of the type shows, or None when that is not known."""
    family = context.expected.instance_type.split(".")[0]
    if context.expected.pcie_width is not None:
        return context.expected.pcie_width
    return min(_NARROW.get(family, widest), widest) if family in _NARROW or family in _FULL else None


def _judge(context: Context, gpu: Facts, width: float) -> Iterator[Finding]:
    label, widest = gpu_label(gpu), field_of(gpu, "pcie.width_max")
    context.measure("pcie_width", width, "lanes", label)
    wanted = wanted_lanes(context, widest if is_number(widest) else 0) or 0
    twin = best_of_twins(context, gpu, "pcie.width") or 0
    if width < wanted:
        message = f"{label}: PCIe x{width:g}, wanted x{wanted:g}"
        yield context.fail(message, Remedy.REBOOT, **about(gpu, width, wanted, "lanes"))
    elif width < twin:
        message = f"{label}: PCIe x{width:g}, other GPUs of the node x{twin:g}"
        yield context.fail(message, Remedy.REBOOT, **about(gpu, width, twin, "lanes"))
    elif not wanted and is_number(widest) and width < widest:
        message = f"{label}: PCIe x{width:g} of x{widest:g}; set expected pcie_width if that is normal on this type"
        yield context.warn(message, Remedy.INVESTIGATE, **about(gpu, width, widest, "lanes"))


def evaluate(context: Context) -> Iterator[Finding]:
    """Against the site's or the family's width, then the other GPUs, then the GPU's own maximum."""
    yield from judge_gpus(
        context,
        "pcie.width",
        is_number,
        "PCIe width",
        _judge,
        lambda widths: f"PCIe x{spread(widths)}",
        absent="" if context.expected.pcie_width else "not printed",
        na=no_pcie(context),
    )


CHECK = Check(
    id="pcie_width",
    title="PCIe width",
    what="The PCIe lanes each GPU uses, against the type's normal width and the other GPUs of the node.",
    why="A link trained at half width halves host copies and GPUDirect traffic through that GPU.",
    remedy="Reboot the instance, which trains the link again. If it stays narrow, replace the instance.",
    source="DCGM PCIe test (PCIE_WIDTH); influxdata/telegraf captures; aws-parallelcluster-cookbook 2803",
    needs=("nvidia_smi",),
    tags=("gpu", "pcie"),
    applies=nvidia_gpus_expected,
    evaluate=evaluate,
)
