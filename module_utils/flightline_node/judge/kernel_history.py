"""What checks of the kernel log share: which events count, how often, and on which device.

Only events of the log's last boot count: a boot resets every GPU and shows anew what is broken. The
window in hours, where a site sets one, is measured back from the log's own last stamp, not from the
clock: a bundle judged a week later must give the same findings.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Dict, List, Optional, Tuple

from ..model import Device, Facts
from .context import Context

SECONDS_PER_HOUR = 3600.0
_IDENTITY = ("index", "uuid", "serial", "name")


def pci_key(pci: Optional[str]) -> str:
    """One spelling for an address: '00000000:53:00.0', '0000:53:00.0' and '0000:53:00' are the same device."""
    parts = (pci or "").lower().split(".")[0].split(":")
    domain = parts[-3].lstrip("0") if len(parts) > 2 else ""
    return ":".join((domain.rjust(4, "0"), *parts[-2:]))


def current(facts: Facts, name: str, window_hours: float = 0) -> List[Facts]:
    """Events of a list since the last boot, in order; with a window, only those so close to the log's end."""
    events = [event for event in facts.get(name, []) if event.get("boot") == facts.get("last_boot")]
    if window_hours <= 0:
        return events
    return [event for event in events if _age_s(event, facts) <= window_hours * SECONDS_PER_HOUR]


def before_boot(facts: Facts, name: str) -> List[Facts]:
    """Events of a list that are older than the last boot."""
    return [event for event in facts.get(name, []) if event.get("boot") != facts.get("last_boot")]


def unsplit(facts: Facts, names: Tuple[str, ...], window_hours: float = 0) -> List[Facts]:
    """Events of this boot that may belong to these lists, in lines that cannot be told from another program's words."""
    return [event for event in current(facts, "unsplit", window_hours) if event.get("list") in names]


UNSPLIT = "lines that name a fault behind a head that could not be read: whether the kernel said it is not known"
"""What to say of them. The remedy is to look, and to hand in the log as journalctl or dmesg prints it."""


def dropped(facts: Facts, name: str, window_hours: float = 0, **match: Any) -> int:
    """How many more events of this boot there were than a storm's list shows.

    0 where a window leaves out some of those listed: those not listed may be as old.
    """
    if window_hours > 0 and len(current(facts, name, window_hours)) < len(current(facts, name)):
        return 0
    return sum(
        int(storm["count"]) - int(storm["kept"])
        for storm in facts.get("storms", [])
        if storm["list"] == name
        and storm["boot"] == facts.get("last_boot")
        and all(_same(part, storm.get(part), value) for part, value in match.items())
    )


def _same(part: str, one: Any, other: Any) -> bool:
    return pci_key(one) == pci_key(other) if part == "pci" else bool(one == other)


def is_after(event: Facts, other: Facts) -> bool:
    """Is an event later than another? No, when the log does not tell."""
    stamp = "uptime_s" if "uptime_s" in other else "time"
    now, then = event.get(stamp), other.get(stamp)
    return bool(then is not None and isinstance(now, type(then)) and now > then)


def driver_loaded_after(facts: Facts, event: Facts) -> bool:
    """Was the driver loaded anew after an event? That resets the GPUs, as a reset by nvidia-smi does."""
    return any(is_after(load, event) for load in current(facts, "driver_loads"))


def recovered_after(facts: Facts, event: Facts) -> bool:
    """Did the driver withdraw its last wish (Xid 154) for every GPU that it had one for, and one after an event?"""
    last = {pci_key(xid["pci"]): xid for xid in current(facts, "xids") if xid["code"] == 154}
    done = all(xid.get("recovery_value") == 0 for xid in last.values())
    return done and any(is_after(xid, event) for xid in last.values())


def _age_s(event: Facts, facts: Facts) -> float:
    """Seconds between an event and the log's last stamp; 0 (counts) when they cannot be compared."""
    time, last = event.get("time"), facts.get("last_time")
    if isinstance(time, float) and isinstance(last, float):
        return last - time
    try:
        # Zones are dropped: all lines of a log are in one.
        moments = [datetime.fromisoformat(str(stamp)[:19]) for stamp in (time, last)]
    except ValueError:
        return 0.0
    return (moments[1] - moments[0]).total_seconds()


def when(event: Facts) -> str:
    """The time of an event, for a message."""
    time = event.get("time")
    guess = " (the line has no year: assumed)" if event.get("year_assumed") else ""
    return f"{time:.0f} s after boot" if isinstance(time, float) else f"{time or 'an unknown time'}{guess}"


def span(events: List[Facts]) -> str:
    """'once, at T' or 'N lines, from T to T'."""
    first, last = when(events[0]), when(events[-1])
    return f"at {first}" if first == last else f"from {first} to {last}"


def device_at(context: Context, pci: Optional[str], facts: Facts) -> Device:
    """The device at an address: with index, UUID and serial when nvidia-smi, or the driver's own log, names it."""
    for gpu in (context.optional("nvidia_smi") or {}).get("gpus", []):
        if gpu.get("pci_bus_id") and pci_key(gpu["pci_bus_id"]) == pci_key(pci):
            found: Device = {key: gpu[key] for key in _IDENTITY if gpu.get(key) is not None}
            return {**found, "pci": gpu["pci_bus_id"]}
    device: Dict[str, Any] = {"pci": pci} if pci else {}
    uuid = next((u for address, u in facts.get("gpu_uuids", {}).items() if pci_key(address) == pci_key(pci)), None)
    return {**device, "uuid": uuid} if uuid else device


def label(device: Device) -> str:
    """'GPU 3 (0000:53:00.0)' or '0000:53:00'."""
    where = str(device.get("pci") or device.get("name") or "the node")
    return f"GPU {device['index']} ({where})" if device.get("index") is not None else where


def fallen_off_bus(facts: Facts) -> Dict[str, Facts]:
    """First event of each GPU that left the bus since the last boot, by pci_key ('' when the line names none)."""
    found: Dict[str, Facts] = {}
    for event in current(facts, "fallen_off_bus"):
        found.setdefault(pci_key(event.get("pci")) if event.get("pci") else "", event)
    return found
