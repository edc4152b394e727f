"""Is the port of every EFA device active?"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List

from ...model import Check, Finding, Reason, Remedy
from .. import skips
from ..context import Context
from .common import is_broken
from .efa_count import no_efa

NO_PORT = Reason("no_port", "a device has a driver and no port", Remedy.REBOOT, "EFA device")
PORT_UNREAD = Reason("port_unread", "a port's state could not be read", Remedy.REBOOT, "EFA device")
PORT_DOWN = Reason("port_down", "a port is not active", Remedy.REBOOT, "EFA device")

ACTIVE, LINK_UP = "ACTIVE", "LinkUp"


def evaluate(context: Context) -> Iterator[Finding]:
    """State and physical state of each port. The driver calls each port it serves active: only a lost one is not."""
    devices: Dict[str, Any] = context.facts("sysfs").get("efa_ports", {})
    findings: List[Finding] = []
    for name, device in devices.items():
        findings += _judge(context, name, device["ports"])
    yield from findings
    if not devices:
        yield context.skip(skips.NO_EFA_DEVICE.because("no device with the efa driver: see efa_count"))
    elif not findings:
        yield context.ok(f"the ports of {len(devices)} EFA devices are active", measured=len(devices), unit="devices")


def _judge(context: Context, name: str, ports: Dict[str, Any]) -> Iterator[Finding]:
    device = {"name": name}
    if not ports:
        yield context.unknown(NO_PORT, f"{name} has a driver and no port", device=device)
    for number, values in ports.items():
        state, physical = values.get("state"), values.get("phys_state")
        rest = {"device": {**device, "port": number}, "measured": state, "expected": ACTIVE}
        seen = f"{name} port {number} is {state or 'without a state'} ({physical or 'no physical state'})"
        if state is None or is_broken(state) or (physical and is_broken(physical)):
            yield context.unknown(PORT_UNREAD, f"{seen}: could not be read", **rest)
        elif state != ACTIVE or physical not in (LINK_UP, None):
            yield context.fail(PORT_DOWN, f"{seen}, wanted {ACTIVE} ({LINK_UP})", **rest)


CHECK = Check(
    id="efa_ports",
    order=750,
    title="EFA port state",
    what="State and physical state of the port of every EFA device, as the kernel shows them.",
    why="A device whose port is down is still listed and counted; NCCL hangs or fails when it picks it.",
    remedy="Reboot the node; replace the instance when the port stays down.",
    do="",
    out_of_service="Yes: a port that is down carries nothing.",
    first="grep -H . /sys/class/infiniband/rdmap*/ports/1/*state",
    source="Linux ABI, /sys/class/infiniband/<device>/ports/<port>/state; amzn-drivers efa_query_port",
    needs=("sysfs",),
    tags=("efa", "network"),
    applies=no_efa,
    skips=(skips.NO_EFA, skips.NO_EFA_DEVICE),
    evaluate=evaluate,
)
