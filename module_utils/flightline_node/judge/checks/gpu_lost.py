"""Has a GPU left the bus, or the driver stopped talking to it?"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional, Set

from ...know.catalog import nvml
from ...know.catalog import xid as catalogue
from ...know.catalog.nvml import Saying
from ...model import Facts, Finding, Reason, Remedy
from .. import reasons
from ..context import Context
from ..kernel_history import current, device_at, fallen_off_bus, pci_key, unsplit
from .common import gpu_check, is_broken, is_number, of_gpu

_CORE = ("uuid", "name", "serial", "memory_total_mib", "temperature_c", "performance_state")
_SENSORS = ("temperature_c", "performance_state")
"""One of these alone may be a broken sensor; its own check says UNKNOWN."""
_SAID = {one.id: Reason(one.id, one.meaning, one.remedy) for one in reversed(nvml.SAYINGS)}
"""A reason for each thing that nvidia-smi says in place of a GPU."""
OFF_BUS = _SAID[nvml.OFF_BUS]
NO_ANSWER = Reason("gpu_silent", "a GPU does not answer", Remedy.REBOOT, "GPU")
OTHER_ERROR = Reason("other_error", "nvidia-smi says something unknown in place of a GPU")
BUSY = Reason("busy", "nvidia-smi refused a change while programs use the GPU", Remedy.RESTART_APP)
NONE_ON_BUS = Reason("none_on_bus", "lspci lists no GPU", Remedy.REBOOT, counts=True)
FEWER_ON_BUS = Reason("fewer_on_bus", "lspci lists too few GPUs", Remedy.REBOOT, counts=True)
FEWER_ANSWER = Reason(
    "fewer_answer", "the driver answers for fewer GPUs than are on the bus", Remedy.REBOOT, counts=True
)
DOUBTFUL_LINES = Reason("doubtful_lines", "kernel log lines that may tell of a lost GPU could not be read")
ANSWER = "a GPU that answers"
GONE: Dict[str, Any] = {"measured": "fallen off the bus", "expected": ANSWER}


def _texts(value: Any) -> Iterator[str]:
    """Every text anywhere in a GPU's facts."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)


def _known(text: str) -> Optional[Saying]:
    return None if _refused(text) else nvml.saying(text)


def _gpu(context: Context, gpu: Facts) -> Iterator[Finding]:
    known = next(((text, _known(text)) for text in _texts(gpu) if _known(text)), None)
    broken = [f"{key}: {gpu[key]}" for key in _CORE if is_broken(gpu.get(key)) and not _refused(gpu[key])]
    if known and known[1]:
        text, said = known[0], known[1]
        yield context.fail(_SAID[said.id], said.meaning, said.meaning, ANSWER, evidence=[text])
    elif broken and not (len(broken) == 1 and broken[0].startswith(_SENSORS)):
        message = f"does not answer ({'; '.join(broken)})"
        yield context.fail(NO_ANSWER, message, "no answer", ANSWER, evidence=broken)


def _refused(text: str) -> bool:
    return "permission" in text.lower()


def _errors(context: Context, errors: List[Facts], told: Set[str]) -> Iterator[Finding]:
    """What nvidia-smi said in place of a GPU; InfoROM warnings belong to gpu_inforom."""
    for error in errors:
        text, pci = str(error.get("text", "")), error.get("pci_bus_id")
        known, device = _known(text), ({"pci": pci} if pci else {})
        if (pci and pci_key(pci) in told) or "inforom" in text.lower():
            continue
        rest: Dict[str, Any] = {"device": device, "expected": ANSWER, "evidence": [text]}
        if known:
            yield context.fail(_SAID[known.id], f"nvidia-smi: {known.meaning}", measured=known.meaning, **rest)
        elif pci and is_broken(text) and not _refused(text):
            yield context.fail(NO_ANSWER, "nvidia-smi: a GPU does not answer", measured="no answer", **rest)
        else:
            yield context.unknown(OTHER_ERROR, f"nvidia-smi: {text}", device=device, evidence=[text])


def _kernel(context: Context, told: Set[str]) -> Iterator[Finding]:
    """One finding per GPU that fell off in this boot; nvidia-smi may hang on it and say nothing."""
    facts = context.optional("kernel") or {}
    for key, event in fallen_off_bus(facts).items():
        if key not in told:
            rest = {"device": device_at(context, event.get("pci"), facts), "evidence": [str(event.get("text", ""))]}
            yield context.fail(OFF_BUS, "kernel: a GPU has fallen off the bus", **GONE, **rest)


def _doubtful(context: Context) -> List[str]:
    """Lines that may be an Xid 79 or a GPU off the bus, and could not be read for sure."""
    facts = context.optional("kernel") or {}
    events = unsplit(facts, ("xids", "unread_xids", "fallen_off_bus")) + current(facts, "unread_xids")
    return [str(event.get("text", "")) for event in events if not _harmless(event.get("code"))]


def _harmless(code: Optional[int]) -> bool:
    entry = None if code is None else catalogue.lookup(code)
    return entry is not None and entry.status in ("INFO", "WARN")


def _told(findings: List[Finding]) -> Set[str]:
    """The GPUs that the findings are about; the tools spell one address in several ways."""
    return {pci_key(finding.device["pci"]) for finding in findings if finding.device.get("pci")}


def _bus(context: Context, listed: Optional[int]) -> Iterator[Finding]:
    """Count on the PCI bus, where a lost GPU is missing or answers with all ones (rev ff)."""
    facts, wanted = context.optional("lspci") or {}, context.expected.gpu_count
    seen, there = facts.get("nvidia_gpus"), facts.get("gpu_addresses", [])
    for address in facts.get("rev_ff", []):
        if address in there:
            yield context.fail(OFF_BUS, "lspci: a GPU has fallen off the bus (rev ff)", device={"pci": address}, **GONE)
    if is_number(seen) and wanted is not None and seen < wanted:
        message = f"lspci lists {seen} of {wanted} GPUs"
        fewer = FEWER_ON_BUS if seen else NONE_ON_BUS
        yield context.fail(fewer, message, measured=seen, expected=wanted, unit="GPUs")
    elif is_number(seen) and listed is not None and listed < seen:
        message = f"the driver answers for {listed} of the {seen} GPUs on the bus"
        yield context.fail(FEWER_ANSWER, message, measured=listed, expected=seen, unit="GPUs")


def evaluate(context: Context) -> Iterator[Finding]:
    """Look for the words of a lost GPU in nvidia-smi and the kernel log, and count on the bus."""
    smi = context.optional("nvidia_smi")
    listed = smi.get("gpus", []) if smi is not None else []
    findings = [finding for gpu in listed for finding in _gpu(of_gpu(context, gpu), gpu)]
    findings += _errors(context, (smi or {}).get("errors", []), _told(findings))
    findings += _kernel(context, _told(findings))
    findings += _bus(context, None if smi is None else len(listed))
    yield from findings
    if findings:
        return
    doubtful = _doubtful(context)
    if doubtful:
        message = f"the kernel log has {len(doubtful)} lines that may tell of a lost GPU and could not be read: see xid"
        yield context.unknown(DOUBTFUL_LINES, message, evidence=doubtful[:4])
        return
    unread = context.broken("kernel")
    if unread:
        # In xid's words, so that both are told as one trouble. The kernel log names a lost GPU before any tool does.
        yield context.unknown(reasons.of(unread.why), f"could not be measured: {unread.reason}")
        return
    looked = [name for name in ("nvidia_smi", "kernel", "lspci") if context.optional(name) is not None]
    if smi is not None and smi.get("busy"):
        text = f"nvidia-smi refused a change while programs use the GPU: {smi['busy'][0]}"
        yield context.info(BUSY, text, remedy=Remedy.RESTART_APP, evidence=smi["busy"])
    elif smi is not None and not listed:
        yield context.unknown(reasons.NO_GPU_LISTED, "nvidia-smi lists no GPU and gives no reason")
    else:
        yield context.ok(f"no GPU lost, by {', '.join(looked)}")


CHECK = gpu_check(
    id="gpu_lost",
    order=40,
    title="GPU lost",
    what="Error text in place of a GPU in nvidia-smi, 'fallen off the bus' in the kernel log, GPUs missing in lspci.",
    why="A lost GPU ends every job on its node, and the driver may hang each tool that asks for it.",
    remedy="Reboot the instance once. If the GPU is lost again, replace the instance. A version mismatch needs a "
    "reboot; an unloaded driver needs the driver installed for the running kernel.",
    do="A version mismatch needs a reboot; an unloaded driver needs the driver installed for the running kernel.",
    out_of_service="Yes: the job dies with the GPU.",
    first="journalctl -k -b | grep -i nvrm; lspci -d 10de:",
    source="NVIDIA GPU debug guidelines (Xid 79: restart); nvidia-smi's own messages",
    needs_any=("nvidia_smi", "kernel", "lspci"),
    needs=(),
    tags=("gpu", "pcie"),
    evaluate=evaluate,
)
