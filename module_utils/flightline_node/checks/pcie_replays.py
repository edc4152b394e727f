"""Does a GPU's PCIe link repeat packets?"""

from __future__ import annotations

from typing import Iterator

from ..context import Context
from ..model import Check, Facts, Finding, Remedy, Threshold
from .common import about, field_of, gpu_label, is_broken, is_number, judge_gpus, no_pcie, nvidia_gpus_expected, spread


def _judge(context: Context, gpu: Facts, replays: float) -> Iterator[Finding]:
    label, most = gpu_label(gpu), context.threshold("max_replays")
    rollovers = field_of(gpu, "pcie.replay_rollovers")
    context.measure("pcie_replays", replays, "replays", label)
    if is_broken(rollovers):
        yield context.unknown(f"{label}: PCIe replay rollovers could not be read: {rollovers}", **about(gpu))
    elif is_number(rollovers) and rollovers > 0:
        message = f"{label}: the PCIe link gave up repeating a packet {rollovers:g} times"
        yield context.warn(message, Remedy.INVESTIGATE, **about(gpu, rollovers, 0, "rollovers"))
    if replays > most:
        message = f"{label}: {replays:g} PCIe packets repeated since the driver was loaded, wanted at most {most:g}"
        yield context.warn(message, Remedy.INVESTIGATE, **about(gpu, replays, most, "replays"))


def evaluate(context: Context) -> Iterator[Finding]:
    """A warning: the count has no time beside it, and a replayed packet did arrive."""
    yield from judge_gpus(
        context,
        "pcie.replays",
        is_number,
        "PCIe replay count",
        _judge,
        lambda counts: f"{spread(counts)} PCIe replays per GPU",
        absent="not printed by this driver",
        na=no_pcie(context),
    )


CHECK = Check(
    id="pcie_replays",
    title="PCIe replays",
    what="The PCIe packets each GPU's link had to repeat since the driver was loaded.",
    why="Many repeats mean a bad link: bandwidth falls, and the GPU may fall off the bus.",
    remedy="Compare with the other nodes and check again after a load; replace the instance if the count climbs.",
    source="DCGM PCIe test, max_pcie_replays (PCI_REPLAY_RATE)",
    needs=("nvidia_smi",),
    tags=("gpu", "pcie"),
    thresholds=(
        Threshold(
            "max_replays",
            80,
            "replays",
            "most replays since the driver was loaded",
            "DCGM's default of max_pcie_replays, there for one run of its test",
            0,
        ),
    ),
    applies=nvidia_gpus_expected,
    evaluate=evaluate,
)
