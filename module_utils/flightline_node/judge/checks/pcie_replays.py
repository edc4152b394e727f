"""Does a GPU's PCIe link repeat packets?"""

from __future__ import annotations

from typing import Iterator

from ...model import Facts, Finding, Reason, Threshold
from .. import reasons, skips
from ..context import Context
from .common import OF_GPU_FIELD, each_gpu, field_of, gpu_check, gpus, is_broken, is_number, median, no_pcie, spread

ROLLOVERS = Reason("rollovers", "the PCIe link gave up repeating packets", device="GPU")
REPLAYS = Reason("replays", "many PCIe packets were repeated", device="GPU")

# Good p5 nodes count about 150 on every GPU (NVIDIA/k8s-test-infra), and DCGM's own limit was too low for them
# until it followed the speed of the generation (NVIDIA/DCGM issue 184).
_SHARED = 10
_MOST_SHARED = 100


def _limit(context: Context, gpu: Facts) -> float:
    """max_replays is for PCIe 3 and doubles with each generation; a count that the other GPUs share is no fault."""
    most, gen = context.threshold("max_replays"), field_of(gpu, "pcie.gen_max")
    scaled = most * 2 ** min(max(gen - 3, 0), 4) if is_number(gen) else most
    counts = [field_of(other, "pcie.replays") for other in gpus(context) if other is not gpu]
    shared = _SHARED * median(count for count in counts if is_number(count))
    return max(scaled, min(shared, _MOST_SHARED * most))


def _judge(context: Context, gpu: Facts, replays: float) -> Iterator[Finding]:
    most = _limit(context, gpu)
    rollovers = field_of(gpu, "pcie.replay_rollovers")
    context.measure("pcie_replays", replays, "replays")
    if is_broken(rollovers):
        yield context.unknown(reasons.VALUE_UNREAD, f"PCIe replay rollovers could not be read: {rollovers}")
    elif is_number(rollovers) and rollovers > 0:
        message = f"the PCIe link gave up repeating a packet {rollovers:g} times"
        yield context.warn(ROLLOVERS, message, rollovers, 0, "rollovers")
    if replays > most:
        message = f"{replays:g} PCIe packets repeated since the driver was loaded, wanted at most {most:g}"
        yield context.warn(REPLAYS, message, replays, most, "replays")


CHECK = gpu_check(
    id="pcie_replays",
    order=300,
    title="PCIe replays",
    what="The PCIe packets each GPU's link had to repeat since the driver was loaded.",
    why="Many repeats mean a bad link: bandwidth falls, and the GPU may fall off the bus.",
    remedy="Compare with the other nodes and check again after a load; replace the instance if the count climbs.",
    do="Compare with the other nodes and check again after a load.",
    out_of_service="No: every packet arrived; many replays warn.",
    first="nvidia-smi -q | grep -i replay",
    source="DCGM PCIe test, max_pcie_replays (PCI_REPLAY_RATE); NVIDIA/DCGM issue 184",
    tags=("gpu", "pcie"),
    thresholds=(
        Threshold(
            "max_replays",
            80,
            "replays",
            "most replays since the driver was loaded, on PCIe 3",
            "DCGM's default of max_pcie_replays, there for one run of its test",
            0,
        ),
    ),
    skips=(*OF_GPU_FIELD, skips.OVER_C2C, skips.NOT_PRINTED, skips.UNTYPED),
    evaluate=each_gpu(
        "A warning, as a replayed packet did arrive; doubled per PCIe generation, higher where all GPUs count alike.",
        "pcie.replays",
        is_number,
        "PCIe replay count",
        _judge,
        lambda counts: f"{spread(counts)} PCIe replays per GPU",
        absent=skips.NOT_PRINTED.because("not printed by this driver"),
        na=no_pcie,
    ),
)
