"""Does libfabric offer EFA endpoints to programs?"""

from __future__ import annotations

from typing import Iterator, Optional

from ...know.expected import NO_TYPE
from ...model import Check, Finding, Reason, Remedy, Skip
from .. import skips
from ..context import Context
from .efa_count import no_efa

LINK_DOWN = Reason("link_down", "libfabric says that a link is down", Remedy.REBOOT, "EFA device")
NO_ENDPOINT = Reason("no_efa_endpoint", "libfabric has no EFA endpoint", Remedy.FIX_CONFIG)
FEWER_ENDPOINTS = Reason("fewer_endpoints", "fewer reliable endpoints than EFA devices", Remedy.REBOOT)


def not_known_to_have_efa(context: Context) -> Optional[Skip]:
    """Why EFA is not judged: on a type without it, and where nothing says that it is wanted."""
    if context.expected.instance_type == NO_TYPE and context.expected.efa_count is None:
        return skips.EFA_NOT_DECLARED.because("needs an instance type (or expected efa_count)")
    return no_efa(context)


def _devices_elsewhere(context: Context) -> int:
    """EFA devices that the bus or the driver has, whatever libfabric says."""
    lspci, sysfs = context.optional("lspci") or {}, context.optional("efa_counters") or {}
    return max(count for count in (0, lspci.get("efa"), sysfs.get("count")) if isinstance(count, int))


def evaluate(context: Context) -> Iterator[Finding]:
    """An error, no endpoint at all, or fewer reliable endpoints than devices."""
    facts = context.facts("fi_info")
    devices, endpoints, error = len(facts["devices"]), facts["rdm_endpoints"], facts["error"]
    rest = {"measured": endpoints, "unit": "endpoints"}
    unwanted, wanted = not_known_to_have_efa(context), context.expected.efa_count or "1 or more"
    down = facts.get("links_down", [])
    for device in down:
        link = {"device": {"name": device}, "measured": "FI_LINK_DOWN", "expected": "FI_LINK_UP"}
        yield context.fail(LINK_DOWN, f"{device}: libfabric says that its link is down", **link)
    others = facts.get("other_providers")
    if unwanted and unwanted.reason is skips.EFA_NOT_DECLARED and others and not (error or endpoints):
        yield context.ok(f"libfabric offers {', '.join(others)}; EFA is not declared", measured=len(others))
    elif unwanted and not endpoints and not (error and context.expected.efa_count is None):
        yield context.skip(unwanted)
    elif error or not endpoints:
        there = _devices_elsewhere(context)
        remedy = Remedy.UPDATE_SOFTWARE if there else NO_ENDPOINT.remedy
        also = f"; the node has {there} EFA devices, so driver and libfabric do not fit" if there else ""
        others = f"; only {', '.join(facts['other_providers'])}" if facts.get("other_providers") else ""
        text = f"libfabric has no EFA endpoint: {error or 'none listed'}{others}{also}"
        yield context.fail(
            NO_ENDPOINT, text, remedy=remedy, evidence=facts.get("warnings", []), expected=wanted, **rest
        )
    elif endpoints < devices:
        message = f"{endpoints} reliable (RDM) endpoints for {devices} EFA devices"
        yield context.fail(FEWER_ENDPOINTS, message, expected=devices, **rest)
    elif not down:
        versions = ", ".join(facts.get("provider_versions", []))
        yield context.ok(f"{endpoints} EFA endpoints, provider version {versions or 'not printed'}", **rest)


CHECK = Check(
    id="efa_provider",
    order=760,
    title="EFA provider",
    what="Whether fi_info lists reliable-datagram endpoints (FI_EP_RDM) of provider efa, with their links up where it "
    "says so (-v).",
    why="A device without a working provider is invisible to NCCL, which then uses TCP sockets.",
    remedy="Reinstall the EFA software (installer of the driver's generation); without devices, attach EFA interfaces.",
    out_of_service="Yes: NCCL falls back to sockets.",
    first="fi_info -p efa -t FI_EP_RDM",
    source="AWS EFA user guide (fi_info -p efa -t FI_EP_RDM); libfabric fi_efa(7)",
    needs=("fi_info",),
    tags=("efa", "network"),
    applies=no_efa,
    skips=(skips.NO_EFA, skips.EFA_NOT_DECLARED),
    evaluate=evaluate,
)
