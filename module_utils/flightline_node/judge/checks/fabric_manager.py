"""Does Fabric Manager run where NVSwitches need it?"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional

from ...know.expected import NO_TYPE
from ...model import Check, Finding, Reason, Remedy, Skip
from .. import reasons, skips
from ..context import Context

UNIT = "nvidia-fabricmanager.service"
UMAD = "ib_umad"

NO_STATE = Reason("no_state", "systemd prints no state of the Fabric Manager")
NO_UMAD = Reason("no_umad", "the module that NVLSM needs is not loaded", Remedy.FIX_CONFIG)
STARTING = Reason("starting", "the Fabric Manager is still starting")
NOT_RUNNING = Reason("not_running", "the Fabric Manager does not run", Remedy.FIX_CONFIG)
NOT_CONFIGURED = Reason("not_configured", "it runs and has not configured the NVSwitches", Remedy.FIX_CONFIG)
SWITCH_FATAL = Reason("switch_fatal", "it met a fatal error of an NVSwitch", Remedy.REBOOT)
LOGGED = Reason("logged", "it runs and logged errors")
NOT_SAID = Reason("not_said", "its log has errors, and not that the NVSwitches are configured", Remedy.INVESTIGATE)
NO_UNIT = Reason("no_unit", "it is not a unit of this host, and the GPUs are registered")
NOT_INSTALLED = Reason("not_installed", "the Fabric Manager is not installed", Remedy.FIX_CONFIG)


def evaluate(context: Context) -> Iterator[Finding]:
    """The unit is active and running; a node without the unit may have it in a driver container."""
    services, fatal, broken = context.optional("services"), _told(context, "fatal"), context.broken("services")
    if fatal:
        text = f"the Fabric Manager met a fatal error of an NVSwitch: {fatal[-1]}"
        yield context.fail(SWITCH_FATAL, text, measured=len(fatal), expected=0, evidence=fatal)
        return
    if services is None and broken and context.expected.nvswitch:
        yield context.unknown(reasons.of(broken.why), f"could not be measured: {broken.reason}")
    if services is None or context.expected.nvswitch is None:
        yield from _by_its_log(context)
        return
    unit = services.get("units", {}).get(UNIT)
    if unit is None or unit.get("load") == "not-found":
        yield _no_unit(context)
        return
    active, sub = unit.get("active"), unit.get("sub")
    state = f"{active}/{sub}" if sub else str(active)
    rest: Dict[str, Any] = {"measured": state, "expected": "active/running", "evidence": [f"{UNIT}: {unit}"]}
    if active is None:
        yield context.unknown(NO_STATE, f"no state of {UNIT} printed", **rest)
    elif active == "active" and sub in (None, "running") and _lacks_umad(context):
        message = f"Fabric Manager runs, but the module {UMAD} is not loaded: NVLSM cannot reach the NVSwitches"
        yield context.warn(NO_UMAD, message, **rest)
    elif active == "active" and sub in (None, "running"):
        yield from _working(context, rest)
    elif active == "activating" and sub != "auto-restart":
        yield context.fail(STARTING, "Fabric Manager is still starting", **rest)
    else:
        said = _told(context, "errors", "refused")
        why = f": {said[-1]}" if said else ""
        rest["evidence"] += said
        yield context.fail(NOT_RUNNING, f"Fabric Manager is not running ({state}){why}", **rest)


def _told(context: Context, *kinds: str) -> List[str]:
    """What the logs say since the daemons started, each with the name of its log.

    errors; refused: that the switches were not set up; fatal: of an error of a switch.
    """
    logs = (context.optional("fabric_log") or {}).get("logs", {})
    return [f"{name}: {text}" for name, log in logs.items() for kind in kinds for text in log.get(kind, ())]


def _by_its_log(context: Context) -> Iterator[Finding]:
    """What the log tells where nobody knows how the unit is."""
    done = any(log["configured"] for log in context.facts("fabric_log").get("logs", {}).values())
    said = _told(context, "errors")
    if said and not done and not _told(context, "refused") and not _registered(context):
        text = f"the Fabric Manager's log has errors, and not that the NVSwitches are configured: {said[-1]}"
        yield context.unknown(NOT_SAID, text, evidence=said)
    elif done or said or _told(context, "refused"):
        yield from _working(context, {"measured": "its log", "expected": "configured"}, "by its log configured")
    elif context.expected.nvswitch is None:
        yield context.ok("the Fabric Manager's log, of a part of its time, has no error")
    else:
        yield context.skip(skips.NOT_COLLECTED.because())


def _working(context: Context, rest: Dict[str, Any], well: str = "running") -> Iterator[Finding]:
    """A daemon that runs may have failed at its work: its log says so, and the GPUs whether it still matters."""
    facts, said, refused = context.optional("fabric_log") or {}, _told(context, "errors"), _told(context, "refused")
    configured = [log["configured"] for log in facts.get("logs", {}).values()]
    said += refused
    if (refused or (said and False in configured)) and not _registered(context):
        text = f"Fabric Manager has not configured the NVSwitches: {said[-1]}"
        yield context.fail(NOT_CONFIGURED, text, **{**rest, "evidence": said})
    elif said:
        text = f"Fabric Manager logged {len(said)} different errors since it started: {said[-1]}"
        yield context.warn(LOGGED, text, **{**rest, "evidence": said})
    else:
        yield context.ok(f"Fabric Manager is {well}", **rest)


def _registered(context: Context) -> bool:
    gpus = (context.optional("nvidia_smi") or {}).get("gpus", [])
    return bool(gpus) and all(gpu.get("fabric_state") == "Completed" for gpu in gpus)


def _lacks_umad(context: Context) -> bool:
    """On NVLink 5 the subnet manager NVLSM talks to the switches through ib_umad."""
    named = (context.optional("modules") or {}).get("names") or {}
    return bool(context.expected.nvlsm) and bool(named) and UMAD not in named and not _registered(context)


def _no_unit(context: Context) -> Finding:
    if _registered(context):
        text = "every GPU is registered with the fabric, by a Fabric Manager that is not a unit of this host"
        return context.info(NO_UNIT, text)
    message = "Fabric Manager is not installed: GPUs on NVSwitch cannot start a CUDA program without it"
    return context.fail(NOT_INSTALLED, message, measured="not found", expected="active/running")


def _switched(context: Context) -> Optional[Skip]:
    kind = context.expected.instance_type
    if context.expected.nvswitch is False or (context.expected.nvswitch is None and kind != NO_TYPE):
        return skips.NO_NVSWITCH.because(f"{kind} has no NVSwitch")
    if context.expected.nvswitch is None and not (context.optional("fabric_log") or {}).get("logs"):
        return skips.UNTYPED.because("needs an instance type (or expected nvswitch)")
    if context.expected.nvlink_rack:
        return skips.SWITCHES_IN_RACK.because(f"{kind}: the rack's switch trays run Fabric Manager, not the instance")
    return None


CHECK = Check(
    id="fabric_manager",
    order=670,
    title="Fabric Manager",
    what="That nvidia-fabricmanager is active on instance types with NVSwitch; on P6 also that NVLSM can work; "
    "what their logs say since they started.",
    why="Without it CUDA cannot initialise on these GPUs (error 802, system not yet initialized).",
    remedy="Install the version equal to the driver's, enable and start it; read /var/log/fabricmanager.log.",
    out_of_service="Yes on NVSwitch types: CUDA does not start after the next reset.",
    first="systemctl status nvidia-fabricmanager; tail -50 /var/log/fabricmanager.log",
    source="NVIDIA Fabric Manager user guide (NVLSM and ib_umad on NVLink 5)",
    needs_any=("services", "fabric_log"),
    wants=("nvidia_smi", "modules"),
    tags=("host", "services", "nvlink"),
    applies=_switched,
    skips=(skips.NO_NVSWITCH, skips.SWITCHES_IN_RACK, skips.UNTYPED),
    informs=True,
    evaluate=evaluate,
)
