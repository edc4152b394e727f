"""What do the Neuron driver and runtime say in the logs?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Iterator, Optional

from ...model import Facts, Finding, Reason, Remedy, Threshold
from ..context import Context
from .neuron_common import device, label, neuron_check

if TYPE_CHECKING:
    from ...know.catalog.neuron import MessagePattern

RUNTIME_ERROR = Reason("runtime_error", "the Neuron runtime met an error")
NO_KERNEL_LINE = Reason("no_kernel_line", "no line is a kernel message")
EARLIER_BOOT = Reason("earlier_boot", "messages of before the last boot")
HEAD_UNREAD = Reason("head_unread", "a message in a line whose head is not understood")
NAMED = Reason("named", "the driver or the runtime names a fault", device="Neuron device")

KERNEL_LOG = "kernel.log"


def evaluate(context: Context) -> Iterator[Finding]:
    """Each message by its class in the catalogue; what is older than the last boot is history."""
    from ...know.catalog import neuron as catalogue  # only a node with Neuron devices needs it

    facts = context.facts("neuron_log")
    rules = {rule.id: rule for rule in catalogue.rules()}
    findings = [
        finding for event in facts["events"] for finding in [_judge(context, event, rules[event["rule"]])] if finding
    ]
    yield from findings
    errors = facts.get("errors") or []
    explained = any(event["file"] != KERNEL_LOG for event in facts["events"])
    if errors and not explained and all(finding.remedy is Remedy.NONE for finding in findings):
        # As a job's NCCL log: one that failed shows no node to be good, and blames none.
        yield context.unknown(
            RUNTIME_ERROR,
            f"the Neuron runtime met an error, of the program or of a device: {errors[0]}",
            evidence=errors,
        )
    elif facts["files"] == [KERNEL_LOG] and context.optional("kernel") is None:
        yield context.unknown(NO_KERNEL_LINE, "no line of kernel.log is a kernel message: nothing was looked at")
    elif not any(finding.remedy is not Remedy.NONE for finding in findings):
        started = facts.get("driver_started")
        yield context.ok("no error of the Neuron driver" + (f" {started}" if started else "") + " in the log")


def _judge(context: Context, event: Facts, rule: MessagePattern) -> Optional[Finding]:
    from ...know.catalog import neuron as catalogue

    where = label(event["device"]) if event.get("device") is not None else "a device that the line does not name"
    message = f"{where}: {rule.meaning} ({event['count']} times)"
    rest: Dict[str, Any] = {"evidence": event["texts"], "measured": event["count"], "expected": 0, "unit": "messages"}
    if event.get("device") is not None:
        rest["device"] = device(context, event["device"])
        if event.get("serial"):
            rest["device"]["serial"] = event["serial"]
    if rule.kind == catalogue.NOTHING:
        return None
    if event["before_boot"]:
        return context.info(EARLIER_BOOT, f"before the last boot: {message}", **rest)
    if rule.kind == catalogue.JOB:
        return context.info(NAMED.of(rule.id), message, **rest)
    mild = rule.kind == catalogue.DEGRADES and event["count"] <= context.threshold("max_repeats")
    if mild or rule.kind == catalogue.BLINDS:  # neuron_ecc takes no count for evidence that could not be read
        return context.warn(NAMED.of(rule.id), message, remedy=rule.remedy, **rest)
    if not event["sure"]:
        return context.unknown(HEAD_UNREAD, f"{message}, in a line whose head is not understood", **rest)
    return context.fail(NAMED.of(rule.id), message, remedy=_asked(event) or rule.remedy, **rest)


def _asked(event: Facts) -> Optional[Remedy]:
    """What the line itself asks for: action=TERMINATE_INSTANCE."""
    action = str(event.get("action") or "").upper()
    if "TERMINATE" in action or "REPLACE" in action:
        return Remedy.REPLACE
    return Remedy.REBOOT if "REBOOT" in action or "RELOAD" in action else None


CHECK = neuron_check(
    id="neuron_messages",
    order=980,
    title="Neuron driver messages",
    what="Lines of the Neuron driver in the kernel log, and of the Neuron runtime in a job's output "
    "(neuron-runtime.log), each classed by what it means for the node. A runtime error of no class is UNKNOWN.",
    why="The driver says here what no counter shows: a device that did not come back from a reset, firmware that does "
    "not answer, an error for which AWS retires the instance.",
    remedy="As the line asks: terminate and replace, or reboot. One that repeats is a failure.",
    out_of_service="Yes for what AWS retires an instance for, or what repeats; a single recovered event warns.",
    source="aws-neuron-driver messages; AWS Neuron troubleshooting page and node problem detector (catalog/neuron.py)",
    needs=("neuron_log",),
    wants=("kernel", "neuron_ls", "neuron_sysfs"),
    tags=("neuron", "kernel"),
    thresholds=(
        Threshold(
            "max_repeats", 10, "messages", "how often a warning may stand in the log before it is a failure",
            "site choice: the driver retries a copy that met a reset, a device that works does not repeat it", 0,
        ),
    ),
    informs=True,
    evaluate=evaluate,
)  # fmt: skip
