"""Do the NVLinks count errors?"""

from __future__ import annotations

import re
from typing import Any, Dict, Iterator, List, Tuple

from ...model import Check, Facts, Finding, Reason, Remedy, Threshold
from .. import reasons, skips
from ..context import Context
from .common import OF_GPU, is_number, no_nvlink, nvlink_expected, of_gpu

# The link was lost and came back (up to Hopper), or did not come back (Blackwell).
_FATAL = re.compile(r"^recovery errors?|^link recovery failed")
# Traffic, and the work of forward error correction: large on healthy links. The total repeats its parts.
_HEALTHY = re.compile(r"\bfec\b|\braw\b|\bber\b|\bpackets$|\bbytes\b|\bblocks\b|\bcodes\b|^total link recovery")

RECOVERED = Reason("recovered", "NVLinks of a GPU lost their connection", Remedy.RESET_GPU, "GPU")
ERRORS = Reason("errors", "NVLinks of a GPU count errors", device="GPU")
DOWN = Reason("down", "the error counters show links that are down", Remedy.REBOOT, "GPU")
NO_COUNTERS = Reason("no_counters", "a GPU shows no NVLink error counters", device="GPU")


def _name(counter: str) -> str:
    return re.sub(r"[^a-z0-9]+", " ", counter.lower()).strip()


def _sort(context: Context, errors: Dict[str, Any]) -> Tuple[List[str], List[str], List[str]]:
    """The counters that fail, warn, and cannot be read."""
    fatal: List[str] = []
    watch: List[str] = []
    broken: List[str] = []
    for counter, value in errors.items():
        name, shown = _name(counter), f"{counter}: {value}"
        if _FATAL.search(name) and is_number(value):
            if value > context.threshold("max_recoveries"):
                fatal.append(shown)
        elif name == "effective ber" and is_number(value):
            if value > context.threshold("max_effective_ber"):
                watch.append(shown)
        elif _HEALTHY.search(name) and not _FATAL.search(name):
            continue
        elif is_number(value):
            if value > context.threshold("max_errors"):
                watch.append(shown)
        elif value is not None:
            broken.append(shown)
    return fatal, watch, broken


def _judge(context: Context, errors: Dict[str, Any]) -> Iterator[Finding]:
    fatal, watch, broken = _sort(context, errors)
    if fatal:
        message = f"NVLinks lost their connection ({', '.join(fatal)})"
        yield context.fail(RECOVERED, message, fatal[0], 0, evidence=fatal + watch)
    elif broken:
        yield context.unknown(reasons.VALUE_UNREAD, "NVLink counters could not be read", evidence=broken)
    elif watch:
        message = f"NVLink errors since the driver was loaded ({', '.join(watch)})"
        yield context.warn(ERRORS, message, watch[0], 0, evidence=watch)


def _dark(context: Context, gpu: Facts, some: bool) -> Iterator[Finding]:
    """A link that is down has no counters, only a message; not again where nvlink_links counts too few links.

    Without an expected number it warns where some link of the node counts, for then NVLinks are in use.
    """
    wanted, links, said = context.expected.nvlink_links_per_gpu, gpu.get("links"), gpu.get("errors_inactive")
    if not said or not (wanted or some) or (wanted and is_number(links) and links < wanted):
        return
    message = f"the error counters show links that are down, wanted {wanted or 'all'} active"
    give, remedy = (context.fail, DOWN.remedy) if wanted else (context.warn, Remedy.INVESTIGATE)
    yield give(DOWN, message, said[0], wanted, remedy=remedy, evidence=[str(text) for text in said])


def evaluate(context: Context) -> Iterator[Finding]:
    """Lost links fail, and links that are down; other errors warn, corrected ones are normal."""
    facts = context.facts("nvlink")
    listed, counted = facts.get("gpus", []), 0
    silent = [str(text) for text in [*facts.get("errors", []), *(gpu.get("message") for gpu in listed)] if text]
    given = "nvlink-errors.txt" in facts.get("files", ("nvlink-errors.txt",))
    if listed and not (given and silent) and not any("errors" in gpu for gpu in listed):
        yield context.skip(skips.NOT_PRINTED.because("no NVLink error counters collected"))
        return
    findings: List[Finding] = []
    some = any(gpu.get("errors") for gpu in listed)
    for gpu in listed:
        one, errors = of_gpu(context, gpu), gpu.get("errors")
        dark = list(_dark(one, gpu, some))
        findings += dark
        if isinstance(errors, dict) and any(value is not None for value in errors.values()):
            counted += 1
            findings += _judge(one, errors)
        elif context.expected.nvlink_links_per_gpu and not dark:
            findings.append(one.unknown(NO_COUNTERS, "no NVLink error counters"))
    yield from findings
    if findings:
        return
    if counted:
        yield context.ok(f"no NVLink errors on {counted} GPUs")
    elif listed or no_nvlink(context, facts):
        yield context.skip(skips.NO_NVLINK.because("no GPU has NVLink error counters"))
    else:
        yield context.unknown(reasons.NVLINK_LISTS_NONE, "nvidia-smi nvlink lists no GPU")


CHECK = Check(
    id="nvlink_errors",
    order=360,
    title="NVLink errors",
    what="The NVLink error counters of each GPU, summed over its links; counts of corrected errors are left out.",
    why="A link that drops and recovers stalls every collective, and a link that does not recover ends the job.",
    remedy="Lost links: reset the GPUs (or reboot) and check again under load; if they return, replace the instance. "
    "Other errors: watch whether they grow.",
    do="Other errors: watch whether they grow.",
    out_of_service="Yes for errors that were not recovered; others warn.",
    first="nvidia-smi nvlink -e",
    source="DCGM: max_nvlink_recovery_errors 0 (NVLINK_ERROR_CRITICAL), failed link recoveries fail its health watch",
    needs=("nvlink",),
    wants=("nvidia_smi",),
    tags=("gpu", "nvlink"),
    thresholds=(
        Threshold(
            "max_recoveries",
            0,
            "events",
            "most recovery errors, or failed link recoveries, of a GPU",
            "DCGM PCIe test, default of max_nvlink_recovery_errors",
            0,
        ),
        Threshold(
            "max_errors",
            0,
            "errors",
            "most errors of any other counter before it warns",
            "a healthy p6-b300.48xlarge counts zero (field report, driver 595)",
            0,
        ),
        Threshold(
            "max_effective_ber",
            1e-6,
            "errors per bit",
            "most effective bit error rate before it warns",
            "Azure healthagent warns above it; a healthy link prints 15e-255",
            0,
            1,
        ),
    ),
    applies=nvlink_expected,
    skips=(*OF_GPU, skips.NO_NVLINK, skips.ONE_GPU, skips.NOT_PRINTED),
    evaluate=evaluate,
)
