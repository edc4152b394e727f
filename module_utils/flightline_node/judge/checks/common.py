"""What several checks need: naming a device, reading one field of all GPUs, comparing versions, skipping by type."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple, Union

from ...know.expected import NO_TYPE
from ...model import Check, Device, Evaluate, Facts, Finding, Skip, SkipReason, Status
from .. import reasons, skips
from ..context import Context

if TYPE_CHECKING:
    from typing import TypeGuard  # from Python 3.10; annotations are not evaluated at run time

_DEVICE_KEYS = ("index", "uuid", "serial", "name")
_BROKEN_WORD = re.compile(
    r"err!|error|\blost\b|fallen off|requires? (?:a )?re(?:set|start)|permission|unknown|not found|not loaded"
    r"|uninitialized|\btimeout\b|corrupt|insufficient (?:external )?(?:power|memory|resources|size)|version mismatch"
    r"|not in ready state|invalid (?:state|argument)|interrupt request|in use by another|blocked the request"
    r"|\bno data\b",
    re.IGNORECASE,
)
_ABSENT = object()

OF_GPU: Tuple[SkipReason, ...] = (skips.NO_NVIDIA_GPU, skips.NEURON_MACHINE)
"""Why a check of NVIDIA GPUs is skipped."""
OF_GPU_FIELD: Tuple[SkipReason, ...] = (*OF_GPU, skips.SHARE_OF_GPU)
"""Likewise one that reads a field of each GPU (judge_gpus)."""
NO_GPU = "nvidia-smi lists no GPU: nothing to judge"


def gpu_device(gpu: Facts) -> Device:
    """The identity of a GPU of nvidia_smi's facts, as findings carry it."""
    device: Dict[str, Any] = {key: gpu[key] for key in _DEVICE_KEYS if gpu.get(key) is not None}
    if gpu.get("pci_bus_id"):
        device["pci"] = gpu["pci_bus_id"]
    return device


def gpu_label(gpu: Facts) -> str:
    """'GPU 3': how messages and measures name a GPU."""
    index = gpu.get("index")
    return f"GPU {index}" if index is not None else f"GPU at {gpu.get('pci_bus_id', '?')}"


def gpus(context: Context) -> Iterator[Facts]:
    """The GPUs nvidia-smi listed."""
    yield from context.facts("nvidia_smi").get("gpus", [])


def of_gpu(context: Context, gpu: Facts) -> Context:
    """The context of one GPU: its findings and measures name it."""
    return context.of(gpu_device(gpu), gpu_label(gpu))


def field_of(facts: Any, path: str) -> Any:
    """The value at 'remap.pending', None for N/A on the way; _ABSENT never leaves this module.

    An error text on the way (remap: 'GPU is lost') comes back as the value.
    """
    found = _walk(facts, path)
    return None if found is _ABSENT else found


def _walk(facts: Any, path: str) -> Any:
    for key in path.split("."):
        if not isinstance(facts, dict):
            break
        facts = facts.get(key, _ABSENT)
    return facts


def is_number(value: Any) -> TypeGuard[Union[int, float]]:
    """A measured number: error text stays text, and a flag is not a number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def is_flag(value: Any) -> TypeGuard[bool]:
    """A Yes or No as read by a parser."""
    return isinstance(value, bool)


def is_word(value: Any) -> TypeGuard[str]:
    """A word that is a value and not the text of an error."""
    return isinstance(value, str) and not is_broken(value)


def is_items(value: Any) -> TypeGuard[List[Any]]:
    """A list, such as the active clock event reasons."""
    return isinstance(value, list)


def is_broken(value: Any) -> TypeGuard[str]:
    """The text of an error where a value should be: 'ERR!', '[Unknown Error]', 'GPU is lost'."""
    return isinstance(value, str) and bool(_BROKEN_WORD.search(value))


@dataclass
class Reading:
    """One field of every GPU: values where readable; errors and lacking (N/A or not printed) where not."""

    values: List[Tuple[Facts, Any]] = field(default_factory=list)
    errors: List[Tuple[Facts, Any]] = field(default_factory=list)
    lacking: List[Facts] = field(default_factory=list)
    printed: bool = False


def read(context: Context, path: str, readable: Callable[[Any], bool]) -> Reading:
    """Sort the GPUs by what became of one field; `printed` when any GPU's output names it."""
    reading = Reading()
    for gpu in gpus(context):
        value = _walk(gpu, path)
        reading.printed = reading.printed or value is not _ABSENT
        if value is None or value is _ABSENT or _hollow(value):
            reading.lacking.append(gpu)
        elif readable(value):
            reading.values.append((gpu, value))
        else:
            reading.errors.append((gpu, value))
    return reading


def _hollow(value: Any) -> bool:
    """A block with N/A in every line, as products without the mechanism print it."""
    return isinstance(value, dict) and all(part is None or _hollow(part) for part in value.values())


def unreadable(context: Context, reading: Reading, what: str, mig_hides: bool = False) -> Iterator[Finding]:
    """UNKNOWN for each GPU that printed an error, or nothing where its twins print a value.

    mig_hides: a GPU with MIG on does not print it, its twins do.
    """
    for gpu, value in reading.errors:
        text = next((str(part) for part in value.values() if is_broken(part)), "") if isinstance(value, dict) else value
        message = f"{gpu_label(gpu)}: {what} could not be read: {text}"
        yield context.unknown(reasons.VALUE_UNREAD, message, evidence=[str(value)], device=gpu_device(gpu))
    models = {str(gpu.get("name")) for gpu, _ in reading.values}
    for gpu in reading.lacking:
        if mig_hides and mig_on(gpu):
            continue
        # A GPU that cannot even say its name counts as one of the others.
        if str(gpu.get("name")) in models or (models and is_broken(gpu.get("name"))):
            message = f"{gpu_label(gpu)}: no {what}, where other GPUs of the same model have one"
            yield context.unknown(reasons.VALUE_LACKING, message, device=gpu_device(gpu))


def no_value(
    context: Context, reading: Reading, what: str, absent: Optional[Skip] = None, na: Optional[Skip] = None
) -> Finding:
    """The answer when no GPU has a value: SKIP where that is normal, else UNKNOWN.

    absent, na: why it is normal that the field is not printed, or is N/A (None when it is not).
    """
    if fractional(context):
        kind = context.expected.instance_type
        return context.skip(skips.SHARE_OF_GPU.because(f"{kind} has a share of a GPU, which does not show {what}"))
    found = na if reading.printed else absent
    if found:
        return context.skip(found.reason.because(f"no {what}: {found.text}"))
    shown = "N/A for every GPU" if reading.printed else "not printed"
    return context.unknown(reasons.NO_VALUE, f"no {what}: {shown}")


Judge = Callable[[Context, Facts, Any], Iterable[Finding]]


def judge_gpus(
    context: Context,
    path: str,
    readable: Callable[[Any], bool],
    what: str,
    judge: Judge,
    good: Callable[[List[Any]], str],
    *,
    absent: Optional[Skip] = None,
    na: Optional[Skip] = None,
    mig_hides: bool = False,
) -> Iterator[Finding]:
    """Judge one field of every GPU: the findings of `judge`, UNKNOWN for what cannot be read, one PASS if all is well.

    judge sees one GPU (of_gpu), and yields nothing (or INFO) for a good one. good makes the PASS message of the values.
    """
    if not any(True for _ in gpus(context)):
        yield context.unknown(reasons.NO_GPU_LISTED, NO_GPU)
        return
    reading = read(context, path, readable)
    findings = list(unreadable(context, reading, what, mig_hides))
    for gpu, value in reading.values:
        findings += judge(of_gpu(context, gpu), gpu, value)
    yield from findings
    if any(finding.status is not Status.INFO for finding in findings):
        return
    if reading.values:
        yield context.ok(good([value for _, value in reading.values]))
    else:
        yield no_value(context, reading, what, absent, na)


Normal = Union[None, Skip, Callable[[Context], Optional[Skip]]]
"""Why a value is lacking by rights: always the same, or as the node is."""


def each_gpu(
    says: str,
    path: str,
    readable: Callable[[Any], bool],
    what: str,
    judge: Judge,
    good: Callable[[List[Any]], str],
    *,
    absent: Normal = None,
    na: Normal = None,
    mig_hides: bool = False,
) -> Evaluate:
    """A whole check of one field of every GPU (judge_gpus). says: how it judges, for the docs."""

    def evaluate(context: Context) -> Iterator[Finding]:
        here = [normal(context) if callable(normal) else normal for normal in (absent, na)]
        return judge_gpus(context, path, readable, what, judge, good, absent=here[0], na=here[1], mig_hides=mig_hides)

    evaluate.__doc__ = says
    return evaluate


def spread(values: Iterable[Any]) -> str:
    """'45' or '45 to 61': the range of some numbers, for a PASS message."""
    numbers = sorted(values)
    return f"{numbers[0]:g}" if numbers[0] == numbers[-1] else f"{numbers[0]:g} to {numbers[-1]:g}"


def median(values: Iterable[float]) -> float:
    """The middle value, 0 for none. The statistics module's import costs a quick run too much."""
    ordered = sorted(values)
    half = len(ordered) // 2
    if not ordered:
        return 0.0
    return float(ordered[half]) if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def one_of_each(values: Iterable[Any]) -> str:
    """The different values, sorted and joined, for a message."""
    return ", ".join(sorted({str(value) for value in values}))


def is_finished(context: Context, run: Facts) -> bool:
    """Did a test of nccl-tests come to its end? Our own run shows its closing lines, a quoted table need not."""
    return bool(run.get("complete")) and not (context.required and run.get("excerpt"))


def untyped(context: Context) -> Optional[Skip]:
    """Why N/A is normal when the instance type, and so the product, is not known; else None."""
    if context.expected.instance_type != NO_TYPE:
        return None
    return skips.UNTYPED.because("N/A, and without an instance type it is not known whether the product has it")


def no_pcie(context: Context) -> Optional[Skip]:
    """Why N/A is normal for PCIe values: no instance type, or a superchip (GB200) whose GPU hangs on its CPU."""
    return skips.OVER_C2C.because() if context.expected.gpu_c2c_gb_s else untyped(context)


def fractional(context: Context) -> bool:
    """Is it a type with a share of a GPU (g6f, gr6f), of which the hypervisor hides most values?"""
    return context.expected.gpu_share is not None


def nvidia_gpus_expected(context: Context) -> Optional[Skip]:
    """Why a check of NVIDIA GPUs is skipped on an instance type without any, else None."""
    if context.expected.has_nvidia_gpu is False:
        return skips.NO_NVIDIA_GPU.because(f"{context.expected.instance_type} has no NVIDIA GPU")
    neuron = context.optional("neuron_sysfs") if context.expected.has_nvidia_gpu is None else None
    if neuron and neuron.get("driver") and context.optional("nvidia_smi") is None:
        return skips.NEURON_MACHINE.because("a machine with Neuron devices, and nvidia-smi was not asked")
    return None


gpu_check = partial(Check, needs=("nvidia_smi",), applies=nvidia_gpus_expected, skips=OF_GPU)
"""A check of NVIDIA GPUs: of what nvidia-smi says, and skipped for OF_GPU alone, where it does not say otherwise."""


def gpus_seen(context: Context) -> int:
    """How many GPUs the node has: by its type, else as nvidia-smi lists them; 0 where nobody says."""
    return context.expected.gpu_count or len((context.optional("nvidia_smi") or {}).get("gpus", []))


def nvlink_expected(context: Context) -> Optional[Skip]:
    """Why a check of NVLinks is skipped where no two GPUs can be linked, else None."""
    # nvidia-smi nvlink prints nothing, with exit status 0, for a GPU without NVLinks (recorded: H100, driver 580).
    if context.expected.gpu_count is None and gpus_seen(context) == 1 and not context.optional("nvlink"):
        return skips.ONE_GPU.because("one GPU has no NVLink to another")
    if context.expected.nvlink_links_per_gpu == 0:
        return skips.NO_NVLINK.because(f"{context.expected.instance_type} has no NVLink between GPUs")
    return nvidia_gpus_expected(context)


def no_nvlink(context: Context, facts: Facts) -> bool:
    """nvidia-smi nvlink says "No NVLink devices found", and none is expected."""
    said = [str(text).lower() for text in facts.get("errors", [])]
    expected = bool(context.expected.nvlink_links_per_gpu)
    return bool(said) and not expected and all("no nvlink devices" in text for text in said)


def version_tuple(text: str) -> Tuple[int, ...]:
    """'580.95.05' -> (580, 95, 5): compared as numbers, because '10' sorts below '8' as text."""
    return tuple(int(part) for part in re.findall(r"\d+", text))


def version_matches(measured: str, pinned: str) -> bool:
    """Does a version satisfy a pin? '580' accepts 580.95.05; '580.95.05' only itself."""
    wanted = version_tuple(pinned)
    return version_tuple(measured)[: len(wanted)] == wanted


def version_reaches(measured: str, minimum: str) -> bool:
    """Is a version the minimum or later? '13' reaches '13.0'."""
    have, wanted = version_tuple(measured), version_tuple(minimum)
    return have + (0,) * (len(wanted) - len(have)) >= wanted


def judge_version(context: Context, what: str, measured: Any, pinned: Optional[str], minimum: Optional[str]) -> Finding:
    """A version against its pin, else its minimum; PASS when neither is set."""
    if not isinstance(measured, str) or is_broken(measured) or not version_tuple(measured):
        shown = "not printed" if measured is None else measured
        unread = reasons.VERSION_UNREAD if measured is None else reasons.VERSION_UNREAD.of("error")
        return context.unknown(unread, f"{what} version could not be read: {shown}", measured=measured)
    if pinned and not version_matches(measured, pinned):
        message = f"{what} {measured}, pinned to {pinned}"
        return context.fail(reasons.NOT_AS_PINNED, message, measured=measured, expected=pinned)
    if minimum and not version_reaches(measured, minimum):
        message = f"{what} {measured}, wanted {minimum} or later"
        return context.fail(reasons.TOO_OLD, message, measured=measured, expected=minimum)
    wanted = f"as pinned ({pinned})" if pinned else f"{minimum} or later" if minimum else "no version pinned"
    return context.ok(f"{what} {measured}, {wanted}", measured=measured, expected=pinned or minimum)


def ecc_off(context: Context) -> Optional[Skip]:
    """Why no GPU counts memory errors: ECC is off or not there on all of them (ecc_mode judges that); else None."""
    modes = [gpu.get("ecc_mode") for gpu in gpus(context)]
    return skips.ECC_OFF.because("ECC is off") if modes and all(mode == "Disabled" for mode in modes) else None


def mig_on(gpu: Facts) -> bool:
    """Is the GPU cut into instances? NVML then shows neither its volatile memory errors nor its remapped rows."""
    return gpu.get("mig_mode") == "Enabled"


def all_mig(context: Context) -> Optional[Skip]:
    """Why no GPU shows its volatile memory errors and remapped rows: MIG is on for all of them; else None."""
    return skips.MIG_ON.because("not shown while MIG is on") if all(mig_on(gpu) for gpu in gpus(context)) else None


def best_of_twins(context: Context, gpu: Facts, path: str) -> Optional[float]:
    """The highest value of a number among the node's GPUs of the same model."""
    values = [field_of(twin, path) for twin in gpus(context) if twin.get("name") == gpu.get("name")]
    return max((float(value) for value in values if is_number(value)), default=None)


def under_load(gpu: Facts) -> bool:
    """Does the GPU draw half of its power limit or more? The idle clock reason is not set on every driver."""
    draw, limit = field_of(gpu, "power.draw_w"), field_of(gpu, "power.limit_w")
    return is_number(draw) and is_number(limit) and limit > 0 and draw >= limit / 2
