"""Can every GPU's PCIe link reach the generation of its twins?"""

from __future__ import annotations

from typing import Iterator

from ...model import Facts, Finding, Reason, Remedy
from .. import skips
from ..context import Context
from .common import OF_GPU_FIELD, best_of_twins, each_gpu, field_of, gpu_check, is_number, no_pcie, spread, under_load

BELOW_TYPE = Reason("below_type", "the PCIe generation is below the type's", Remedy.REBOOT, "GPU")
BELOW_TWINS = Reason("below_twins", "the PCIe generation is below the other GPUs'", Remedy.REBOOT, "GPU")
LOW_UNDER_LOAD = Reason("low_under_load", "the PCIe generation is low under load", Remedy.REBOOT, "GPU")


def _judge(context: Context, gpu: Facts, reachable: float) -> Iterator[Finding]:
    now = field_of(gpu, "pcie.gen")
    context.measure("pcie_gen_max", reachable, "generation")
    wanted, twin = context.expected.pcie_gen or 0, best_of_twins(context, gpu, "pcie.gen_max") or 0
    if reachable < wanted:
        yield context.fail(BELOW_TYPE, f"PCIe generation {reachable:g} at most, wanted {wanted}", reachable, wanted)
    elif reachable < twin:
        message = f"PCIe generation {reachable:g} at most, other GPUs of the node {twin:g}"
        yield context.fail(BELOW_TWINS, message, reachable, twin)
    elif under_load(gpu) and is_number(now) and now < reachable:
        yield context.warn(LOW_UNDER_LOAD, f"PCIe generation {now:g} of {reachable:g} under load", now, reachable)


CHECK = gpu_check(
    id="pcie_gen",
    order=290,
    title="PCIe generation",
    what="The PCIe generation each GPU's link can reach, equal within the node and as expected; "
    "the one in use only under load.",
    why="One generation less halves the bandwidth of host copies and GPUDirect traffic.",
    remedy="Reboot the instance, which trains the link again. If it stays slow, replace the instance.",
    do="",
    out_of_service="Yes: a generation less is half the speed.",
    first="nvidia-smi --query-gpu=pcie.link.gen.gpucurrent,pcie.link.gen.max --format=csv",
    source="nvidia-smi manual, PCIe Generation; DCGM PCIe test (PCIE_GENERATION, severity TRIAGE)",
    tags=("gpu", "pcie"),
    skips=(*OF_GPU_FIELD, skips.OVER_C2C, skips.NOT_PRINTED, skips.UNTYPED),
    evaluate=each_gpu(
        "The generation in use says nothing of an idle GPU, which lowers it to save power.",
        "pcie.gen_max",
        is_number,
        "maximum PCIe generation",
        _judge,
        lambda found: f"PCIe generation {spread(found)} reachable",
        absent=lambda context: None if context.expected.pcie_gen else skips.NOT_PRINTED.because("not printed"),
        na=no_pcie,
    ),
)
