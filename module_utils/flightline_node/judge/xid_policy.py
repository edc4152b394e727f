"""From Xids to a status and a remedy: the catalogue, the text of the line, and the site's own word."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..know.catalog import nvlink5, xid
from ..model import RANK, Facts, Remedy, Status
from .kernel_history import pci_key

RECOVERY = 154
NVLINK5 = range(144, 151)
REMAPS = frozenset({63, 94})
"""The driver takes the bad page out of use; its row is replaced when the GPU is reset."""

_ACTIONS: Tuple[Tuple[str, Remedy, str], ...] = (
    # Words of the line from R565 to R610; the first that is in it counts.
    ("drain p2p", Remedy.RESET_GPU, "peer-to-peer traffic must stop, then the GPU be reset"),
    ("drain and reset", Remedy.RESET_GPU, "drain, then reset the GPU"),
    ("imex", Remedy.FIX_CONFIG, "restart nvidia-imex on every node of the NVLink domain"),
    ("reboot", Remedy.REBOOT, "the node must reboot"),
    ("reset", Remedy.RESET_GPU, "the GPU must be reset"),
    ("flr", Remedy.RESET_GPU, "the GPU must be reset"),
)
_VALUES = {1: "reset", 2: "reboot", 3: "drain p2p", 4: "drain and reset", 5: "imex"}
"""nvmlDeviceGpuRecoveryAction_t of nvml.h, for a text not seen yet."""

_POLICY = {"ignore": Status.SKIP, "info": Status.INFO, "warn": Status.WARN, "fail": Status.FAIL}


class Decision(NamedTuple):
    """What follows from the Xids of one code on one GPU. cause: of a clean-up, the Xid that decided."""

    status: Status
    remedy: Remedy
    why: str
    cause: Optional[int] = None


def decide(code: int, events: Sequence[Facts], recovery: Optional[Decision], driver_major: Optional[int]) -> Decision:
    """events: those of one code on one GPU, in order. recovery: what that GPU's last 154 says, if it has one."""
    entry = xid.lookup(code)
    if entry is None:
        return Decision(Status.UNKNOWN, Remedy.INVESTIGATE, "not in NVIDIA's catalogue")
    if code == RECOVERY:
        return recovery_of(events[-1])
    if code in NVLINK5:
        ones = [_nvlink5(code, event, recovery, driver_major) for event in events]
        return max(ones, key=lambda one: RANK[one.status])
    return Decision(Status(entry.status), Remedy(entry.remedy), entry.note)


def recovery_of(event: Facts) -> Decision:
    """What Xid 154 asks for: its text names the action."""
    text, value = str(event.get("recovery_action") or event.get("detail") or "").lower(), event.get("recovery_value")
    if value == 0 or text == "none":
        return Decision(Status.INFO, Remedy.NONE, "the driver asks for nothing more")
    words = _VALUES.get(value, "") if value is not None else ""
    for found in (text, words):
        for word, remedy, meaning in _ACTIONS:
            if word in found:
                return Decision(Status.FAIL, remedy, meaning)
    return Decision(
        Status.UNKNOWN, Remedy.INVESTIGATE, f"the recovery action could not be read: {text or 'none printed'}"
    )


def by_state(decision: Decision, code: int, pci: str, smi: Facts) -> Decision:
    """The same, or less where nvidia-smi shows that no bad row or page of this GPU waits for a reset any more."""
    waits = [
        state.get("pending")
        for gpu in smi.get("gpus", [])
        if pci_key(str(gpu.get("pci_bus_id"))) == pci_key(pci)
        for state in (gpu.get("remap"), gpu.get("retired_pages"))
        if isinstance(state, dict)
    ]
    if code in REMAPS and decision.status is Status.FAIL and False in waits and True not in waits:
        return Decision(Status.WARN, Remedy.INVESTIGATE, f"{decision.why}; by nvidia-smi none waits now")
    return decision


def _nvlink5(code: int, event: Facts, recovery: Optional[Decision], driver_major: Optional[int]) -> Decision:
    fatal = event.get("fatal")
    action = nvlink5.decode(
        code, str(event.get("unit")), event.get("intr_info"), event.get("error_status"), driver_major, fatal
    )
    if action == "RESET_GPU" or (fatal and action is None):
        why = "NVIDIA's table says reset" if action else "Fatal by its own word"
        return Decision(Status.FAIL, Remedy.RESET_GPU, why)
    if action == "XID_154_EVAL":
        if recovery:
            return Decision(recovery.status, recovery.remedy, f"by the Xid 154 after it: {recovery.why}")
        if event.get("time") is None:  # a line that somebody quoted: what follows it in the log is not known
            return Decision(
                Status.UNKNOWN, Remedy.INVESTIGATE, "a line without a stamp: whether an Xid 154 followed is not shown"
            )
        return Decision(Status.INFO, Remedy.RESTART_APP, "no Xid 154 follows: restart the application")
    if action == "IGNORE":
        return Decision(Status.INFO, Remedy.NONE, "NVIDIA's table says ignore")
    return Decision(Status.WARN, Remedy.INVESTIGATE, "not in NVIDIA's decode table")


def read_overrides(options: Mapping[str, Any]) -> Tuple[Dict[int, Decision], List[str]]:
    """The site's policy by code, and what of it cannot be read."""
    given = options.get("xid_policy") or {}
    if not isinstance(given, Mapping):
        return {}, [f"xid_policy: saw {type(given).__name__}, wanted a mapping of Xid code to {', '.join(_POLICY)}"]
    policy: Dict[int, Decision] = {}
    wrong: List[str] = []
    for code, wish in given.items():
        parts = wish if isinstance(wish, Mapping) else {"status": wish}
        status, remedy = (
            _POLICY.get(str(parts.get("status")).lower()),
            _remedy(parts.get("remedy"), parts.get("status")),
        )
        if not str(code).isdecimal() or status is None or remedy is None:
            wrong.append(f"xid_policy {code!r}: saw {wish!r}, wanted {', '.join(_POLICY)} or {{status, remedy}}")
        else:
            policy[int(code)] = Decision(status, remedy, str(parts.get("reason") or ""))
    return policy, wrong


def _remedy(given: Any, status: Any) -> Optional[Remedy]:
    if given is None:
        return Remedy.INVESTIGATE if str(status).lower() in ("warn", "fail") else Remedy.NONE
    try:
        return Remedy(str(given).upper())
    except ValueError:
        return None


def incidents(events: Sequence[Facts], gap_s: float = 10.0) -> int:
    """How many separate faults some Xids are: one crash prints many lines, with one pid or in one moment."""
    pids = {event.get("pid") for event in events}
    if None not in pids:
        return len(pids)
    uptimes: List[float] = [event["uptime_s"] for event in events if "uptime_s" in event]
    if len(uptimes) == len(events):
        return 1 + sum(1 for before, after in zip(uptimes, uptimes[1:]) if after - before > gap_s)
    return len({str(event.get("time"))[:16] for event in events})
