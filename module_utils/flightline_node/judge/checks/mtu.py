"""Do the node's network interfaces all send frames of the wanted size?"""

from __future__ import annotations

from typing import Any, Dict, Iterator

from ...model import Check, Finding, Reason, Remedy
from .. import skips
from ..context import Context
from .common import is_number

MTU_UNREAD = Reason("mtu_unread", "an MTU could not be read")
OTHER_MTU = Reason("other_mtu", "an interface's MTU is not the declared one", Remedy.FIX_CONFIG)
SMALL_MTU = Reason("small_mtu", "interfaces have no jumbo frames", Remedy.FIX_CONFIG)

_DRIVERS = frozenset({"ena", "efa"})


def evaluate(context: Context) -> Iterator[Finding]:
    """The ENA interfaces against the inventory, else against each other. Interfaces of containers do not count."""
    net: Dict[str, Dict[str, Any]] = context.facts("sysfs").get("net", {})
    ours = {name: values for name, values in net.items() if values.get("driver") in _DRIVERS}
    # One that nobody has brought up keeps the driver's 1500: P5 nodes have 31 of them.
    found = {name: values for name, values in ours.items() if values.get("operstate") != "down"}
    sizes = {name: values["mtu"] for name, values in found.items() if is_number(values.get("mtu"))}
    unread = sorted(set(found) - set(sizes))
    if not found:
        yield context.skip(skips.NO_MTU.because("no interface with the ena driver" + (" is up" if ours else "")))
        return
    if unread:
        yield context.unknown(
            MTU_UNREAD, f"the MTU could not be read: {', '.join(unread)}", found[unread[0]].get("mtu")
        )
    if sizes:
        yield from _judge(context, sizes)


def _judge(context: Context, sizes: Dict[str, Any]) -> Iterator[Finding]:
    wanted, seen = context.expected.mtu, sorted(set(sizes.values()))
    wrong = {name: size for name, size in sizes.items() if wanted is not None and size != wanted}
    for name, size in wrong.items():
        message = f"{name} has MTU {size}, the inventory says {wanted}"
        rest = {"measured": size, "expected": wanted, "unit": "bytes"}
        yield context.fail(OTHER_MTU, message, device={"name": name}, **rest)
    if wanted is None and len(seen) > 1:
        shown = [f"{name}: {size}" for name, size in sizes.items()]
        message = f"the ENA interfaces have different MTUs: {', '.join(map(str, seen))}"
        yield context.warn(SMALL_MTU, message, measured=seen, unit="bytes", evidence=shown)
    elif not wrong:
        yield context.ok(f"{len(sizes)} ENA interfaces: MTU {seen[0]}", measured=seen[0], expected=wanted, unit="bytes")


CHECK = Check(
    id="mtu",
    order=720,
    title="MTU",
    what="The MTU of the ENA interfaces that are up: the inventory's, or one and the same on all of the node.",
    why="With 1500 bytes where its peers send 9001, packets are dropped silently and NCCL's bootstrap hangs.",
    remedy="Set the MTU in the network configuration (9001 inside a VPC) and remove what lowered it.",
    out_of_service="Yes where the site names one; interfaces that differ warn.",
    first="ip -br link; ip -d link show",
    source="AWS EC2 user guide, network maximum transmission unit; Linux ABI, /sys/class/net",
    needs=("sysfs",),
    tags=("host", "network"),
    skips=(skips.NO_MTU,),
    evaluate=evaluate,
)
