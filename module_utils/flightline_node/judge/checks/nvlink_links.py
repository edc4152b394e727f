"""Are all NVLinks of every GPU up, at full speed?"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional

from ...know.catalog import nvml
from ...model import Check, Facts, Finding, Reason, Remedy, Threshold
from .. import reasons, skips
from ..context import Context
from .common import OF_GPU, is_number, no_nvlink, nvlink_expected, of_gpu, spread

FEWER_ACTIVE = Reason("fewer_active", "NVLinks of a GPU are not active", Remedy.REBOOT, "GPU")
ALL_INACTIVE = Reason("all_inactive", "no NVLink of the node is active", Remedy.FIX_CONFIG, "GPU")
SLOW = Reason("slow", "NVLinks of a GPU are slow", Remedy.REBOOT, "GPU")
SAID = Reason("said", "nvidia-smi nvlink says something in place of a status", device="GPU")
NO_STATUS = Reason("no_status", "no GPU's NVLink status was printed")
STATUS_MISSING = Reason("status_missing", "the NVLink status of some GPUs was not printed")


def _speeds(gpu: Facts) -> List[float]:
    found = gpu.get("link_speeds") or [gpu.get("speed_gb_s")]
    return [speed for speed in found if is_number(speed)] if isinstance(found, list) else []


def _links(context: Context, gpu: Facts, wanted: float, dark: bool) -> Iterator[Finding]:
    """Active links; one that is down is printed as inactive, or not at all."""
    links, inactive = gpu.get("links"), gpu.get("inactive") or 0
    if not is_number(links) or not is_number(inactive):
        yield context.unknown(reasons.VALUE_UNREAD, f"NVLink status could not be read: {links}")
        return
    context.measure("nvlink_links", links, "links")
    if inactive == 0 and links >= wanted:
        return
    message = f"{links} of {wanted} NVLinks active, {inactive} printed as inactive"
    evidence = [str(gpu[key]) for key in ("message", "other_links") if gpu.get(key)]
    rest = (links, wanted, "links")
    if context.expected.nvlink_links_per_gpu is None:
        yield context.warn(FEWER_ACTIVE, message, *rest, remedy=Remedy.INVESTIGATE, evidence=evidence)
    else:
        yield context.fail(ALL_INACTIVE if dark else FEWER_ACTIVE, message, *rest, evidence=evidence)


def _speed(context: Context, gpu: Facts, wanted: float) -> Iterator[Finding]:
    speeds, share = _speeds(gpu), 1 - context.threshold("speed_tolerance_percent") / 100
    slow = [speed for speed in speeds if speed < wanted * share]
    if speeds:
        context.measure("nvlink_gb_s_per_link", min(speeds), "GB/s")
    if slow:
        message = f"{len(slow)} of {len(speeds)} NVLinks slow ({spread(slow)} GB/s), wanted {wanted:g}"
        rest = (min(slow), wanted, "GB/s")
        if context.expected.nvlink_links_per_gpu is None:  # GPUs of several models may share the node
            yield context.warn(SLOW, message, *rest, remedy=Remedy.INVESTIGATE)
        else:
            yield context.fail(SLOW, message, *rest)
    elif not speeds and gpu.get("links"):
        yield context.unknown(reasons.VALUE_UNREAD, "NVLink speed could not be read")


def _whole(context: Context, facts: Facts, listed: int) -> Iterator[Finding]:
    """What concerns the node: messages instead of links, GPUs without a line."""
    wanted: Optional[int] = context.expected.gpu_count
    told = {text for gpu in facts.get("gpus", []) for text in str(gpu.get("message") or "").split("; ")}
    for text in map(str, [] if no_nvlink(context, facts) else facts.get("errors", [])):
        known = context.expected.nvlink_links_per_gpu is not None
        if text.startswith("nvlink-errors.txt") or ("inactive" in text.lower() and text in told and known):
            continue  # the other file of this parser, for nvlink_errors; what the GPU's own finding says
        if "inactive" in text.lower():
            message, rest = "nvidia-smi: all NVLinks of a GPU are inactive", {"unit": "links", "evidence": [text]}
            links = context.expected.nvlink_links_per_gpu or "1 or more"
            yield context.fail(ALL_INACTIVE, message, measured=0, expected=links, **rest)
        elif "inactive" not in text.lower():
            yield context.unknown(SAID.of(nvml.kind(text)), f"nvidia-smi nvlink: {text}", evidence=[text])
    if wanted is not None and listed < wanted:
        message = f"NVLink status of {listed} of {wanted} GPUs"
        lacking = STATUS_MISSING if listed else NO_STATUS
        yield context.unknown(lacking, message, measured=listed, expected=wanted, unit="GPUs")


def _cut_off(context: Context, gpu: Facts, listed: int, wanted: float) -> bool:
    """Is it the end of the output, and not of the links? A GPU whose links are all down says so."""
    links, short = gpu.get("links"), listed < (context.expected.gpu_count or 0)
    return short and is_number(links) and links < wanted and not gpu["inactive"] and not gpu.get("message")


def evaluate(context: Context) -> Iterator[Finding]:
    """Against the instance type; without one, against the best GPU of the node, as a warning."""
    facts: Dict[str, Any] = context.facts("nvlink")
    listed = [gpu for gpu in facts.get("gpus", []) if "links" in gpu]
    counters_only = "nvlink-status.txt" not in facts.get("files", ("nvlink-status.txt",))
    said = [text for text in map(str, facts.get("errors", [])) if not (counters_only and "inactive" in text.lower())]
    if facts.get("gpus") and not listed and not said:
        yield context.skip(skips.NOT_PRINTED.because("NVLink status not collected"))
        return
    most = max((gpu["links"] for gpu in listed if is_number(gpu["links"])), default=0)
    wanted, known = context.expected.nvlink_links_per_gpu or most, context.expected.nvlink_gb_s_per_link
    fastest = known or max((speed for gpu in listed for speed in _speeds(gpu)), default=0.0)
    findings = list(_whole(context, facts, len(listed)))
    for gpu in listed:
        one = of_gpu(context, gpu)
        # The last one of an output that ends too early lacks the links that were not printed any more.
        if not (gpu is listed[-1] and _cut_off(context, gpu, len(listed), wanted)):
            findings += _links(one, gpu, wanted, dark=most == 0)
        findings += _speed(one, gpu, fastest)
    yield from findings
    if findings:
        return
    if not listed and not no_nvlink(context, facts):
        yield context.unknown(reasons.NVLINK_LISTS_NONE, "nvidia-smi nvlink lists no GPU")
    elif not wanted:
        yield context.skip(skips.NO_NVLINK.because("no GPU has an NVLink"))
    else:
        rates = spread(speed for gpu in listed for speed in _speeds(gpu))
        yield context.ok(f"{spread(gpu['links'] for gpu in listed)} NVLinks per GPU active at {rates} GB/s each")


CHECK = Check(
    id="nvlink_links",
    order=350,
    title="NVLink links",
    what="Active NVLinks of each GPU and their speed, against the instance type.",
    why="NCCL falls back to fewer channels, or to PCIe at a tenth of the speed, and does not say so.",
    remedy="No link on any GPU: start the fabric manager of the driver's version (on P6 also NVLSM). Some links: "
    "reboot; if they stay down, replace the instance.",
    do="No link on any GPU: start the fabric manager of the driver's version (on P6 also NVLSM).",
    out_of_service="Yes: collectives fall to the slowest link, and nothing says so.",
    source="nvidia-smi nvlink -s captures per product; DCGM (NVLINK_DOWN, severity TRIAGE)",
    needs=("nvlink",),
    wants=("nvidia_smi",),
    tags=("gpu", "nvlink"),
    thresholds=(
        Threshold(
            "speed_tolerance_percent",
            5,
            "%",
            "how far below the expected link speed is accepted",
            "rates are fixed per NVLink generation (nvidia-smi captures of V100 to B300); roundings differ",
            0,
            50,
        ),
    ),
    applies=nvlink_expected,
    skips=(*OF_GPU, skips.NO_NVLINK, skips.ONE_GPU, skips.NOT_PRINTED),
    evaluate=evaluate,
)
