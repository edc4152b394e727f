"""Does Lustre talk over EFA where it should?"""

from __future__ import annotations

from typing import Any, Dict, Iterator, Optional

from ...model import Check, Finding, Reason, Remedy, Skip
from .. import skips
from ..context import Context

NO_INTERFACE = Reason("no_interface", "Lustre has no wanted interface that is up", Remedy.FIX_CONFIG)
NOTHING_LISTED = Reason("nothing_listed", "LNet lists no network")
ALL_DOWN = Reason("all_down", "every Lustre interface is down")
SOME_DOWN = Reason("some_down", "some Lustre interfaces are down")
NETWORK_SHOWN = Reason("network_shown", "the network that Lustre talks over")

EFA, LOOPBACK = "efa", "lo"


def evaluate(context: Context) -> Iterator[Finding]:
    """LNet up, every interface up, and the declared network among them."""
    nets: Dict[str, Any] = _nets(context)
    wanted = context.expected.lustre_net
    shown = ", ".join(f"{name} {net['up']}" for name, net in nets.items()) or "none"
    rest: Dict[str, Any] = {"measured": shown, "expected": wanted, "unit": "interfaces"}
    down = [nid for net in nets.values() for nid in net["down"]]
    refused = (context.optional("lnetctl") or {}).get("error")
    if wanted and not any(_kind(name) == wanted and net["up"] for name, net in nets.items()):
        message = f"Lustre has no {wanted} interface that is up, only: {shown}" + (f" ({refused})" if refused else "")
        yield context.fail(NO_INTERFACE, message, **rest)
    elif refused and not nets:
        yield context.info(NOTHING_LISTED, f"LNet lists no network: {refused}", **rest)
    elif down and not any(net["up"] for net in nets.values()) and _mounted(context):
        message = f"none of the {len(down)} Lustre interfaces is up, and a Lustre file system is mounted"
        yield context.fail(ALL_DOWN, message, evidence=down, **{**rest, "expected": wanted or "one up"})
    elif down:
        yield context.warn(SOME_DOWN, f"{len(down)} Lustre interfaces are down", evidence=down, **rest)
    elif not any(_kind(name) == EFA for name in nets) and context.expected.efa_count and not wanted:
        yield context.info(
            NETWORK_SHOWN, f"Lustre talks over {shown}; the inventory does not say that it should use EFA", **rest
        )
    else:
        yield context.ok(f"Lustre interfaces up: {shown}", **rest)


def _mounted(context: Context) -> bool:
    """A Lustre mount; one hangs when nothing carries it."""
    mounts = (context.optional("mounts") or {}).get("mounts", [])
    return any(entry.get("fstype") == "lustre" for entry in mounts)


def _kind(net: str) -> str:
    """'efa' of efa, efa0, efa1."""
    return net.rstrip("0123456789")


def _nets(context: Context) -> Dict[str, Any]:
    printed = context.optional("lnetctl")
    found = printed if printed is not None else (context.optional("sysfs") or {}).get("lnet") or {}
    return {name: net for name, net in found.get("nets", {}).items() if name != LOOPBACK}


def _not_in_use(context: Context) -> Optional[Skip]:
    """Nothing to judge where Lustre is neither loaded nor declared, or its networks cannot be read."""
    if context.expected.lustre_net or context.optional("lnetctl") is not None:
        return None
    sysfs = context.optional("sysfs")
    if sysfs is None:
        return None  # nothing says that Lustre is not in use: what was given and cannot be read is no answer
    lnet = sysfs.get("lnet")
    if lnet is None:
        return skips.NO_LUSTRE.because("LNet is not loaded, and the inventory declares no Lustre network")
    hidden = "LNet is loaded; its networks cannot be read here (debugfs)"
    return None if lnet.get("nets") else skips.NO_LUSTRE.because(hidden)


CHECK = Check(
    id="lnet",
    order=600,
    title="Lustre network",
    what="The networks that Lustre's LNet uses, each interface up, and EFA among them where the inventory says so.",
    why="An FSx client that was set up for EFA falls back to TCP without a word: a fraction of the bandwidth.",
    remedy="Unload Lustre (lustre_rmmod), run the FSx EFA client set-up again, mount; lnetctl net show must list efa.",
    out_of_service="Yes when no interface is up, or the declared network is missing; one of several warns.",
    source="AWS FSx for Lustre user guide, EFA-enabled file systems; lnetctl(8); Lustre lnet/router_proc.c (nis)",
    needs_any=("lnetctl", "sysfs"),
    wants=("mounts",),
    tags=("storage", "lustre", "efa"),
    applies=_not_in_use,
    skips=(skips.NO_LUSTRE,),
    informs=True,
    evaluate=evaluate,
)
