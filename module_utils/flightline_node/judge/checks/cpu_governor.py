"""Do the CPUs run at full speed when they have work?"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List

from ...model import Check, Finding, Reason, Remedy
from .. import skips
from ..context import Context
from .common import is_broken

MIXED_OR_SLOW = Reason("mixed_or_slow", "the CPUs' governors differ", Remedy.FIX_CONFIG)
POWERSAVE = Reason("powersave", "the governor keeps the CPUs at their lowest frequency", Remedy.FIX_CONFIG)
PREFERENCE = Reason("preference", "the energy preference saves power", Remedy.FIX_CONFIG)

# These drivers steer the frequency themselves: "powersave" then means balanced, as by default.
_AUTONOMOUS = frozenset({"intel_pstate", "amd-pstate-epp", "amd_pstate_epp"})
_SLOW_PREFERENCES = frozenset({"power", "balance_power"})
ABSENT = "no CPU frequency control on this instance type: the hypervisor does it"


def evaluate(context: Context) -> Iterator[Finding]:
    """How the frequency policies are set; several settings on one node are worth a warning."""
    policies: List[Dict[str, Any]] = context.facts("sysfs").get("cpufreq", [])
    unread = [policy for policy in policies if not policy["governor"] or is_broken(policy["governor"])]
    findings = [finding for policy in policies if policy not in unread for finding in _judge(context, policy)]
    governors = sorted({str(policy["governor"]) for policy in policies if policy not in unread})
    if len(governors) > 1 and not findings:
        message = f"the CPUs have different governors: {', '.join(governors)}"
        findings.append(context.warn(MIXED_OR_SLOW, message, measured=governors))
    yield from findings
    if not policies:
        yield context.skip(skips.NONE_HERE.because(ABSENT))
    elif len(unread) == len(policies):
        yield context.skip(
            skips.ONLY_ADVICE.because(f"the governor could not be read: {policies[0]['governor'] or 'no text'}")
        )
    elif not findings:
        yield context.ok(f"{_total(policies)} frequency policies: {', '.join(governors)}", measured=governors)


def _total(policies: List[Dict[str, Any]]) -> int:
    return sum(policy["policies"] for policy in policies if isinstance(policy["policies"], int))


def _judge(context: Context, policy: Dict[str, Any]) -> Iterator[Finding]:
    driver, governor, preference = policy["driver"], policy["governor"], policy.get("epp")
    rest = {"measured": governor, "expected": "performance"}
    where = f"{policy['policies']} frequency policies ({driver})"
    if governor == "powersave" and driver not in _AUTONOMOUS:
        yield context.warn(POWERSAVE, f"{where}: governor powersave keeps them at the lowest frequency", **rest)
    elif preference in _SLOW_PREFERENCES and governor != "performance":
        yield context.warn(PREFERENCE, f"{where}: the energy preference is {preference}", **rest)


CHECK = Check(
    id="cpu_governor",
    order=420,
    title="CPU frequency governor",
    what="The governor and the energy preference of the CPUs, where the instance type lets the system choose.",
    why="Data loading and the launch of GPU kernels wait for single cores: slow ones make the whole job wait.",
    remedy="cpupower frequency-set -g performance (tuned profile accelerator-performance), and make it permanent.",
    out_of_service="No: it can be set on the running node.",
    first="grep -H . /sys/devices/system/cpu/cpufreq/policy*/scaling_governor",
    source="Linux admin guide, cpufreq and intel_pstate; AWS EC2 user guide, processor state control",
    needs=("sysfs",),
    tags=("host", "cpu"),
    skips=(skips.NONE_HERE, skips.ONLY_ADVICE),
    evaluate=evaluate,
)
