"""Are the Neuron devices joined as the instance type joins them?"""

from __future__ import annotations

from typing import Any, Dict, FrozenSet, Iterator, List, Optional

from ...model import Facts, Finding, Reason, Remedy
from .. import skips
from ..context import Context
from .neuron_common import OF_NEURON, device, label, listed, neuron_check, typed

NONE_SHOWN = Reason("none_shown", "neuron-ls shows no neighbours")
FEWER = Reason("fewer_neighbours", "a device lacks NeuronLink neighbours", Remedy.REPLACE, "Neuron device")
NOT_LISTED = Reason(
    "neighbour_not_listed", "a neighbour is not in the list", Remedy.REPLACE, "Neuron device", counts=True
)
ONE_SIDED = Reason("one_sided", "a link is shown from one side only", Remedy.REPLACE, "Neuron device")
OTHER_ORDER = Reason("other_order", "all neighbours are there, in another order", device="Neuron device")


def _shown(rows: List[Facts]) -> Dict[int, FrozenSet[int]]:
    """Device -> neighbours, of the devices for which neuron-ls shows a list."""
    return {
        row["index"]: frozenset(item for item in row["connected"] if isinstance(item, int))
        for row in rows
        if row.get("connected") is not None
    }


def _names(indexes: Any) -> str:
    return ", ".join(label(index) for index in sorted(indexes)) or "none"


def evaluate(context: Context) -> Iterator[Finding]:
    """One-sided links, neighbours that are not there and missing ones; a full set in another order only warns."""
    from ...know.neuron import neighbours  # only a node with Neuron devices needs it

    rows, kind = listed(context), context.expected.neuron_topology
    shown = _shown(rows)
    if not any(shown.values()):
        yield _nothing(context, rows, kind)
        return
    wanted = neighbours(kind, context.expected.gpu_count or 0) if kind else {}
    findings = [finding for row in rows for finding in _judge(context, row["index"], shown, wanted)]
    yield from findings
    if not findings:
        counts = sorted({len(others) for others in shown.values()})
        joined = f"{counts[0]} to {counts[-1]}" if counts[0] < counts[-1] else f"{counts[0]}"
        yield context.ok(f"{joined} neighbours for each of {len(shown)} devices" + (f": the {kind}" if kind else ""))


def _nothing(context: Context, rows: List[Facts], kind: Optional[str]) -> Finding:
    if kind is None:
        return context.skip(
            skips.ONE_DEVICE.because("a single device has no neighbours" if len(rows) == 1 else "no neighbours shown")
        )
    return context.unknown(
        NONE_SHOWN,
        f"neuron-ls shows no neighbours for {len(rows)} devices, wanted the {kind}: the driver shows them only when "
        f"all {context.expected.gpu_count} devices are there",
    )


def _judge(
    context: Context, index: int, shown: Dict[int, FrozenSet[int]], wanted: Dict[int, FrozenSet[int]]
) -> Iterator[Finding]:
    name, others, right = label(index), shown.get(index, frozenset()), wanted.get(index)
    evidence = [f"{name} is connected to {_names(others)}"]
    rest: Dict[str, Any] = {"device": device(context, index), "measured": _names(others), "evidence": evidence}
    one_sided = {other for other in others if other in shown and index not in shown[other]}
    lost = others - set(shown)
    if right is not None and len(others) < len(right):
        message = f"{name} has {len(others)} of {len(right)} NeuronLink neighbours: {_names(right - others)} missing"
        yield context.fail(FEWER, message, expected=_names(right), **rest)
    elif lost and not typed(context):
        # The driver shows neighbours when all devices are there: a container sees those that it was given.
        text = f"{name} is joined to {_names(lost)}, not in the list of devices: lost, or not given to this container"
        yield context.unknown(
            NOT_LISTED, text, remedy=Remedy.INVESTIGATE, device=device(context, index), evidence=evidence
        )
    elif lost:
        message = f"{name} is joined to {_names(lost)}, not in the list of devices"
        yield context.fail(NOT_LISTED, message, expected=_names(right or others - lost), **rest)
    elif one_sided:
        message = f"the link from {name} to {_names(one_sided)} is not shown from the other side"
        yield context.fail(ONE_SIDED, message, expected=_names(right or others - one_sided), **rest)
    elif right is not None and others != right:
        message = f"{name} is joined to {_names(others)}, wanted {_names(right)}"
        yield context.warn(OTHER_ORDER, message, expected=_names(right), **rest)


CHECK = neuron_check(
    id="neuron_topology",
    order=920,
    title="NeuronLink topology",
    what="The neighbours that neuron-ls shows for each device, against the type's torus, ring or line, and each link "
    "from both sides. Drivers for Trn1, Trn2 and Inf2 fill this list in by instance type, when all devices are there: "
    "a link that is down without a device missing shows in nccom_busbw and nccom_test.",
    why="Collectives run along these links: a ring with a gap does not close.",
    remedy="Reboot once; replace the instance when a neighbour stays away.",
    do="",
    out_of_service="Yes where a neighbour is missing; all there in another order warns.",
    source="aws-neuron-driver neighbour tables (neuron_dhal_v2.c, neuron_dhal_v3.c); AWS Neuron architecture pages",
    needs=("neuron_ls",),
    wants=("neuron_sysfs",),
    tags=("neuron",),
    skips=(*OF_NEURON, skips.ONE_DEVICE),
    evaluate=evaluate,
)
