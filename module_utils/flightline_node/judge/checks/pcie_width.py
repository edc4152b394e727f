"""Has every GPU all the PCIe lanes it has on a good node of its type?"""

from __future__ import annotations

from typing import Iterator, Optional

from ...model import Facts, Finding, Reason, Remedy
from .. import skips
from ..context import Context
from .common import OF_GPU_FIELD, best_of_twins, each_gpu, field_of, gpu_check, is_number, no_pcie, spread

BELOW_TYPE = Reason("below_type", "the PCIe width is below the type's", Remedy.REBOOT, "GPU")
BELOW_TWINS = Reason("below_twins", "the PCIe width is below the other GPUs'", Remedy.REBOOT, "GPU")
BELOW_WIDEST = Reason("below_widest", "the PCIe width is below what the GPU can", device="GPU")


def wanted_lanes(context: Context, widest: float) -> Optional[float]:
    """Lanes that a good node of the type shows, or None when that is not known."""
    if context.expected.pcie_width is not None:
        return context.expected.pcie_width
    lanes = context.expected.gpu_pcie_lanes
    return min(lanes, widest) if lanes is not None else None


def _judge(context: Context, gpu: Facts, width: float) -> Iterator[Finding]:
    widest = field_of(gpu, "pcie.width_max")
    context.measure("pcie_width", width, "lanes")
    wanted = wanted_lanes(context, widest if is_number(widest) else 0) or 0
    twin = best_of_twins(context, gpu, "pcie.width") or 0
    if width < wanted:
        yield context.fail(BELOW_TYPE, f"PCIe x{width:g}, wanted x{wanted:g}", width, wanted, "lanes")
    elif width < twin:
        yield context.fail(BELOW_TWINS, f"PCIe x{width:g}, other GPUs of the node x{twin:g}", width, twin, "lanes")
    elif not wanted and is_number(widest) and width < widest:
        message = f"PCIe x{width:g} of x{widest:g}; set expected pcie_width if that is normal on this type"
        yield context.warn(BELOW_WIDEST, message, width, widest, "lanes")


CHECK = gpu_check(
    id="pcie_width",
    order=280,
    title="PCIe width",
    what="The PCIe lanes each GPU uses, against the type's normal width and the other GPUs of the node.",
    why="A link trained at half width halves host copies and GPUDirect traffic through that GPU.",
    remedy="Reboot the instance, which trains the link again. If it stays narrow, replace the instance.",
    do="",
    out_of_service="Yes: half the lanes are half the speed of host copies and GPUDirect.",
    first="nvidia-smi --query-gpu=pcie.link.width.current,pcie.link.width.max --format=csv",
    source="DCGM PCIe test (PCIE_WIDTH); influxdata/telegraf captures; aws-parallelcluster-cookbook 2803",
    tags=("gpu", "pcie"),
    skips=(*OF_GPU_FIELD, skips.OVER_C2C, skips.NOT_PRINTED, skips.UNTYPED),
    evaluate=each_gpu(
        "Against the site's or the family's width, then the other GPUs, then the GPU's own maximum.",
        "pcie.width",
        is_number,
        "PCIe width",
        _judge,
        lambda widths: f"PCIe x{spread(widths)}",
        absent=lambda context: None if context.expected.pcie_width else skips.NOT_PRINTED.because("not printed"),
        na=no_pcie,
    ),
)
