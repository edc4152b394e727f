"""Do collectives over the Neuron devices reach a bandwidth that their links must give?"""

from __future__ import annotations

from typing import Any, Dict, Iterator

from ...know.expected import NO_TYPE
from ...model import Facts, Finding, Reason, Threshold
from .. import skips
from ..context import Context
from .nccom_test import name_of
from .neuron_common import OF_NEURON, neuron_check

INCOMPLETE = Reason("incomplete", "a collective did not come to its end")
NOTHING_MOVED = Reason("nothing_moved", "nothing was moved")
BELOW_FLOOR = Reason("below_floor", "the bandwidth is below its floor")

JUDGED = ("all_reduce", "all_gather", "reduce_scatter")
MIB = 1 << 20


def evaluate(context: Context) -> Iterator[Finding]:
    """Each run by its largest size."""
    for run in context.facts("nccom_test").get("runs", []):
        yield _judge(context, run)


def _judge(context: Context, run: Facts) -> Finding:
    from ...know.neuron import MIN_BYTES, busbw_floor  # only a node with Neuron devices needs it

    name, largest, nodes = name_of(run), run.get("largest"), run.get("nodes") or 1
    if not run.get("complete") or largest is None:
        return context.unknown(INCOMPLETE, f"{name} did not come to its end: no bandwidth")
    busbw, size = largest["busbw_gb_s"], largest["bytes"]
    operation = run.get("operation") or "collective"
    context.measure(f"nccom_{operation}_busbw", busbw, "GB/s")
    seen = f"{name}: {busbw:g} GB/s at {size / MIB:g} MiB"
    rest: Dict[str, Any] = {"measured": busbw, "unit": "GB/s"}
    if run.get("operation") not in (*JUDGED, None):
        return context.skip(skips.NO_FLOOR.because(f"{seen}; no floor for this operation"), **rest)
    if size < MIN_BYTES:
        return context.skip(
            skips.TOO_SMALL.because(f"{seen}: largest message too small, wanted {MIN_BYTES // MIB} MiB or more"), **rest
        )
    floor = busbw_floor(context.expected, nodes, run.get("ranks") or 0)
    if busbw <= 0:
        return context.fail(NOTHING_MOVED, f"{seen}: nothing was moved", expected="more than 0", **rest)
    if floor is None:
        kind = context.expected.instance_type
        if kind == NO_TYPE:
            return context.skip(skips.UNTYPED.because(f"{seen}; needs an instance type"), **rest)
        return context.skip(skips.NO_FLOOR.because(f"{seen}; no figure for {nodes} nodes of {kind}"), **rest)
    least = floor[0] * context.threshold("scale_percent") / 100
    if busbw < least:
        message = f"{seen}, wanted {least:g} or more ({floor[1]})"
        return context.fail(BELOW_FLOOR, message, expected=least, **rest)
    return context.ok(seen, expected=least, **rest)


CHECK = neuron_check(
    id="nccom_busbw",
    order=1010,
    title="Neuron collective bandwidth",
    what="busbw of the largest size of each nccom-test run, against a share of the type's NeuronLink (or EFA) rate.",
    why="Collectives run in step: one device that sends by another way sets the speed of all.",
    remedy="Look at neuron_topology, neuron_errors and neuron_messages; repeat when idle, then reboot, then replace.",
    out_of_service="Yes below the floor, which only a path that does not work falls short of.",
    source="AWS Neuron: NCCOM-TEST user guide (examples), Trn1, Trn2 and Inf2 architecture (NeuronLink rates)",
    needs=("nccom_test",),
    tags=("neuron", "nccl"),
    level="standard",
    thresholds=(
        Threshold(
            "scale_percent", 100, "%", "the site's share of every floor in expected/neuron.py",
            "the floors are low because AWS publishes none: calibrate on known-good nodes", 50, 1000,
        ),
    ),
    skips=(*OF_NEURON, skips.NO_FLOOR, skips.TOO_SMALL, skips.UNTYPED),
    evaluate=evaluate,
)  # fmt: skip
