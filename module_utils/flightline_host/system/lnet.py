"""LNet: the networks that Lustre talks over, and the interfaces on each."""

from __future__ import annotations

import os
import re
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence, Tuple

from ..host import Host, Problem
from ..outcome import Outcome

_NET = re.compile(r"^\s*- net type:\s*(\S+)")
_NID = re.compile(r"^\s*- nid:\s*(\S+)")
_STATUS = re.compile(r"^\s*status:\s*(\S+)")
_INTERFACE = re.compile(r"^\s*\d+:\s*(\S+)$")
_EFA_DRIVER = "efa"
_LOOPBACK = "lo"


class LnetInterface(NamedTuple):
    """One local network interface of LNet."""

    net: str
    name: str
    nid: str
    status: str


def ensure(host: Host, wanted: Mapping[str, Any], check: bool) -> Outcome:
    """Every wanted network has exactly (`exclusive`) or at least its interfaces, and all are up."""
    goal = targets(host, wanted)
    if host.exists("/sys/module/lnet"):
        have = show(host)
    elif wanted["state"] == "verified":
        raise Problem(
            "the lnet module is not loaded", "LNet configured", "modprobe lnet, or run the role lustre_client"
        )
    else:
        have = []
    add, remove = plan(have, goal, wanted["exclusive"])
    before, after = _listed(have), {net: sorted(names) for net, names in sorted(goal.items())}
    if not add and not remove:
        _all_up(have, goal)
        return Outcome(False, before, before, {"networks": before})
    if wanted["state"] == "verified":
        raise Problem(
            _words("missing", add) + _words("too many", remove), f"LNet on {after}", "run the role lustre_client"
        )
    if not check:
        _apply(host, wanted, add, remove)
        have = show(host)
        _confirm(have, goal, wanted["exclusive"])
        after = _listed(have)
    return Outcome(True, before, after, {"networks": after})


def targets(host: Host, wanted: Mapping[str, Any]) -> Dict[str, List[str]]:
    """Network -> interfaces. `efa_interfaces` picks that many EFA devices, spread evenly over the sorted list."""
    goal: Dict[str, List[str]] = {entry["net"]: list(entry["interfaces"]) for entry in wanted["networks"]}
    if wanted["efa_interfaces"]:
        devices = efa_devices(host)
        if len(devices) < wanted["efa_interfaces"]:
            raise Problem(
                f"{len(devices)} EFA devices ({', '.join(devices) or 'none'})",
                f"at least {wanted['efa_interfaces']}",
                "check the instance's EFA interfaces and the efa module; or lower lustre_client_efa_interfaces",
            )
        goal["efa"] = spread(devices, wanted["efa_interfaces"])
    return goal


def efa_devices(host: Host) -> List[str]:
    """RDMA devices whose driver is efa: P6 also shows mlx5 bridges there, which are not network interfaces."""
    paths = host.glob("/sys/class/infiniband/*")
    return [os.path.basename(path) for path in paths if host.link(f"{path}/device/driver") == _EFA_DRIVER]


def spread(devices: Sequence[str], count: int) -> List[str]:
    """`count` of them at even distances: neighbours sit on one PCIe switch (AWS: every fourth of 32 on P5)."""
    return [devices[index * len(devices) // count] for index in range(count)]


def show(host: Host) -> List[LnetInterface]:
    """What lnetctl shows, without the loopback."""
    answer = host.ask(["lnetctl", "net", "show"])
    if answer.rc != 0:
        raise Problem(
            f"lnetctl net show: {answer.said or answer.rc}",
            "its list of networks",
            "modprobe lnet; lnetctl lnet configure",
        )
    return [interface for interface in parse(answer.out) if interface.net != _LOOPBACK]


def parse(text: str) -> List[LnetInterface]:
    """The interfaces in lnetctl's YAML: a fixed shape, so that no YAML reader is needed on the node."""
    found: List[LnetInterface] = []
    net, nid, status = "", "", "unknown"
    for line in text.splitlines():
        for pattern in (_NET, _NID, _STATUS, _INTERFACE):
            match = pattern.match(line)
            if not match:
                continue
            if pattern is _NET:
                net = match.group(1)
            elif pattern is _NID:
                nid, status = match.group(1), "unknown"
            elif pattern is _STATUS:
                status = match.group(1)
            else:
                found.append(LnetInterface(net, match.group(1), nid, status))
            break
    return found


def plan(
    have: Sequence[LnetInterface], goal: Mapping[str, Sequence[str]], exclusive: bool
) -> Tuple[List[Tuple[str, str]], List[Tuple[str, str]]]:
    """(net, interface) pairs to add and to remove."""
    present = {(interface.net, interface.name) for interface in have}
    wanted = {(net, name) for net, names in goal.items() for name in names}
    return sorted(wanted - present), sorted(present - wanted) if exclusive else []


def _apply(
    host: Host, wanted: Mapping[str, Any], add: Sequence[Tuple[str, str]], remove: Sequence[Tuple[str, str]]
) -> None:
    goal = "LNet configured"
    advice = "read dmesg for LNet lines; unload Lustre first (umount, lustre_rmmod) when interfaces do not attach"
    host.change(["modprobe", "lnet"], "the lnet module", "install the Lustre client for the running kernel")
    if any(net == "efa" for net, _ in add) and not host.exists("/sys/module/kefalnd"):
        address = [f"ipif_name={wanted['ip_interface']}"] if wanted["ip_interface"] else []
        host.change(
            ["modprobe", "kefalnd", *address], "the EFA transport", "install a client with EFA support (2.15 or later)"
        )
    host.change(["lnetctl", "lnet", "configure"], goal, advice)
    for net, name in remove:
        host.change(["lnetctl", "net", "del", "--net", net, "--if", name], goal, advice)
    for net, name in add:
        credits = ["--peer-credits", str(wanted["efa_peer_credits"])] if net == "efa" else []
        host.change(["lnetctl", "net", "add", "--net", net, "--if", name, *credits], goal, advice)
    if any(net == "efa" for net, _ in add):
        host.change(["lnetctl", "set", "discovery", "1"], goal, advice)
        _prefer_efa(host, advice)


def _prefer_efa(host: Host, advice: str) -> None:
    """EFA before TCP; the rule may be there from an earlier run (lnetctl then says it is in progress already)."""
    if "efa" not in host.ask(["lnetctl", "udsp", "show"]).out:
        host.change(["lnetctl", "udsp", "add", "--src", "efa", "--priority", "0"], "EFA preferred", advice)


def _confirm(have: Sequence[LnetInterface], goal: Mapping[str, Sequence[str]], exclusive: bool) -> None:
    """Interfaces can fail to attach without an error, when the CPU table was laid out for fewer of them."""
    add, remove = plan(have, goal, exclusive)
    if add or remove:
        raise Problem(
            f"after the change: {_words('missing', add)}{_words('too many', remove)}",
            f"LNet on {dict(goal)}",
            "unload Lustre (umount, lustre_rmmod) and run again: the CPU table is laid out when libcfs is loaded",
        )
    _all_up(have, goal)


def _all_up(have: Sequence[LnetInterface], goal: Mapping[str, Sequence[str]]) -> None:
    down = [f"{i.nid} ({i.name}) {i.status}" for i in have if i.name in goal.get(i.net, ()) and i.status != "up"]
    if down:
        raise Problem(
            f"LNet interfaces not up: {', '.join(down)}", "status up", "check the link and read dmesg for LNet lines"
        )


def _listed(have: Sequence[LnetInterface]) -> Dict[str, List[str]]:
    nets = sorted({interface.net for interface in have})
    return {net: sorted(i.name for i in have if i.net == net) for net in nets}


def _words(what: str, pairs: Sequence[Tuple[str, str]]) -> str:
    return f"{what}: {', '.join(f'{net} on {name}' for net, name in pairs)} " if pairs else ""
