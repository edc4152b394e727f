"""What a fabric test found, as findings of the nodes and of the fleet. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from flightline_node.model import Finding, Reason, Remedy, Status

from ..fleet.together import FABRIC, HOST
from ..record import reasons
from .blame import FABRIC as WHOLE
from .blame import INTERMITTENT, PATH, UNCLEAR, Blame
from .criterion import least_of
from .drive import FabricResult

Findings = list[dict[str, Any]]


def of_result(result: FabricResult) -> Findings:
    """A finding for each node of the ring at least, and one for the fleet where nobody is to blame."""
    found = [*_left_out(result), *_blamed(result), *_strays(result), *_outside(result), *_of_all(result)]
    named = {finding["device"].get(HOST) for finding in found if finding["status"] != str(Status.WARN)}
    for node in result.fleet.ring:
        if node in result.healthy and node not in named:
            found.append(_node(node, Status.PASS, _passed(result), remedy=Remedy.NONE))
        elif node not in named:
            found += for_nodes((node,), Status.UNKNOWN, "it passed no test over several nodes")
    return found


def for_nodes(nodes: Iterable[str], status: Status, message: str) -> Findings:
    """The same word on many nodes: why nothing was tested."""
    remedy = Remedy.NONE if status is Status.SKIP else reasons.NOT_TESTED.remedy
    return [_node(node, status, message, reasons.NOT_TESTED, remedy) for node in nodes]


def _node(
    node: str, status: Status, message: str, reason: Reason | None = None, remedy: Remedy | None = None, **rest: Any
) -> dict[str, Any]:
    device, asked = {HOST: node, **rest.pop("device", {})}, remedy or (reason.remedy if reason else Remedy.NONE)
    said = reason.id if reason else ""
    return Finding(FABRIC, status, message, asked, device=device, reason=said, **rest).to_dict()


def _passed(result: FabricResult) -> str:
    if result.rounds:
        return f"{result.collective} in {len(result.rounds)} rounds of pairs: its own were not slow"
    return f"{', '.join(result.together)} over {len(result.fleet.ring)} nodes"


def _left_out(result: FabricResult) -> Iterator[dict[str, Any]]:
    for node, why in result.left_out.items():
        yield _node(node, Status.UNKNOWN, f"took no part in the test over several nodes: {why}", reasons.NOT_TESTED)


def _blamed(result: FabricResult) -> Iterator[dict[str, Any]]:
    least, _ = least_of([one for played in result.measured for one in played], None, result.least_share)
    for blame in result.found:
        for node in blame.nodes:
            figures = _sent(result, node, blame)
            status = Status.UNKNOWN if blame.kind == UNCLEAR or _either(blame) else Status.FAIL
            whole = blame.kind not in (PATH, UNCLEAR) and not _either(blame)
            remedy = Remedy.REPLACE if whole and figures and len(blame.nodes) == 1 else Remedy.INVESTIGATE
            device = {} if len(blame.nodes) != 2 else {"name": f"path {' - '.join(blame.nodes)}"}
            figure: dict[str, Any] = (
                {"measured": round(max(figures), 4), "expected": round(least, 4) or None} if figures else {}
            )
            text = f"{blame.kind}: {blame.why}"
            figure["unit"] = "GB/s" if figures else ""
            yield _node(node, status, text, reasons.BLAMED.of(blame.kind), remedy, device=device, **figure)


def _either(blame: Blame) -> bool:
    """It is one of two, and nothing says which."""
    return blame.kind == INTERMITTENT and len(blame.nodes) > 1


def _sent(result: FabricResult, node: str, blame: Blame) -> list[float]:
    """What a node sent in the tests that failed, with the other end of its path where it is one. GB/s."""
    figures = []
    for played, tested in zip(result.measured, result.rounds, strict=True):
        for measure, test in zip(played, tested, strict=True):
            of_path = len(blame.nodes) != 2 or set(measure.pair) == set(blame.nodes)
            if node in measure.sent and not test.good and of_path:
                figures.append(measure.sent[node])
    return figures


def _strays(result: FabricResult) -> Iterator[dict[str, Any]]:
    for node, names in result.strays.items():
        yield _node(
            node, Status.WARN, f"processes of the test would not end: {', '.join(names)}", reasons.PROCESSES_LEFT
        )


def _outside(result: FabricResult) -> Iterator[dict[str, Any]]:
    """A warning: what it costs shows in the bandwidth, and where that is good the node may work."""
    for node, why in result.fleet.outside.items():
        yield _node(node, Status.WARN, f"stands apart in the network: {why}", reasons.APART)


def _of_all(result: FabricResult) -> Iterator[dict[str, Any]]:
    """Faults that name no node: they are the fleet's."""
    whole = [blame.why for blame in result.found if blame.kind == WHOLE]
    if whole or (result.trouble and not result.found):
        text = whole[0] if whole else f"all nodes together: {result.trouble}; each pair alone passed"
        yield Finding(FABRIC, Status.FAIL, text, Remedy.INVESTIGATE, reason=reasons.ALL_SLOW.id).to_dict()
