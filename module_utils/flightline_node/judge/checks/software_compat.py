"""Do the versions of driver, EFA, libfabric, plugin and NCCL go together?"""

from __future__ import annotations

from typing import Any, Iterator, List, NamedTuple, Optional

from ...know.releases import PEER_MEMORY, PLUGIN_LIBFABRIC, PLUGIN_NCCL, VALIDATED
from ...model import Check, Finding, Reason, Remedy, Skip, Status
from .. import skips
from ..context import Context
from ..decided import adopted, changed
from .common import judge_version, version_matches, version_reaches, version_tuple
from .efa_count import no_efa

NOT_VALIDATED = Reason("not_validated", "NCCL is not what the plugin was validated with", Remedy.UPDATE_SOFTWARE)
OLD_DRIVER = Reason("old_driver", "the NVIDIA driver is older than the type needs", Remedy.UPDATE_SOFTWARE)
NO_PEER_MEMORY = Reason(
    "no_peer_memory", "the EFA driver has no peer memory with this NVIDIA driver", Remedy.UPDATE_SOFTWARE
)
NOT_DECIDED = Reason("not_decided", "the host is not what configure decided about it", Remedy.FIX_CONFIG)

GPU_DRIVER, EFA_DRIVER = PEER_MEMORY[0]
"""Before it only dma-buf serves, so this only warns."""


class Requirement(NamedTuple):
    """A version, the oldest that will do, a pin, and why."""

    what: str
    measured: Optional[str]
    minimum: Optional[str]
    pin: Optional[str]
    reason: str


def evaluate(context: Context) -> Iterator[Finding]:
    """Minimums and pins first: those block. Then the combination, which only warns."""
    facts = context.facts("versions")
    rules = _rules(context, facts)
    judged = [rule for rule in rules if rule.measured and version_tuple(rule.measured)]
    findings = [
        finding
        for rule in judged
        for finding in [judge_version(context, f"{rule.what} ({rule.reason})", rule.measured, rule.pin, rule.minimum)]
        if finding.status is not Status.PASS
    ]
    findings += [*_decided(context, facts), *_driver(context, facts), *_plugin(context, facts)]
    yield from findings
    lacking = ", ".join(dict.fromkeys(rule.what for rule in rules if rule not in judged))
    if not judged and not findings:
        yield context.skip(
            skips.NO_PINS.because(f"nothing to compare, version not known: {lacking or 'no rule for this type'}")
        )
    elif judged and all(finding.status is Status.INFO for finding in findings):
        seen = ", ".join(dict.fromkeys(f"{rule.what} {rule.measured}" for rule in judged))
        yield context.ok(seen + (f"; not known: {lacking}" if lacking else ""))


def _rules(context: Context, facts: Any) -> List[Requirement]:
    wanted, kind = context.expected, context.expected.instance_type
    nccl, plugin = _newest(facts.get("nccl", [])), facts.get("ofi_nccl")
    installer, libfabric = facts.get("efa_installer"), _libfabric(context)
    efa_pin = None if adopted(facts, "efa") else wanted.efa_version
    nccl_pin = None if adopted(facts, "nccl") else wanted.nccl_version
    rules = [
        Requirement("EFA installer", installer, wanted.efa_installer_minimum, efa_pin, f"for {kind}"),
        Requirement("aws-ofi-nccl", plugin, wanted.ofi_nccl_minimum, None, f"for {kind}"),
        Requirement("NCCL", nccl, wanted.nccl_minimum, nccl_pin, f"for {kind}"),
    ]
    if plugin and version_reaches(plugin, VALIDATED[-1][0]):
        rules.append(Requirement("NCCL", nccl, PLUGIN_NCCL, None, f"for aws-ofi-nccl {plugin}"))
        rules.append(Requirement("libfabric", libfabric, PLUGIN_LIBFABRIC, None, f"for aws-ofi-nccl {plugin}"))
    return [rule for rule in rules if rule.minimum or rule.pin]


def _decided(context: Context, facts: Any) -> Iterator[Finding]:
    for what, seen, wanted in changed(facts):
        yield context.fail(NOT_DECIDED, f"{what} {seen}, wanted {wanted}, as configure left it", seen, wanted)


def _newest(versions: List[str]) -> Optional[str]:
    """Several CUDA toolkits bring several NCCLs: the newest can be chosen."""
    return max((text for text in versions if version_tuple(text)), key=version_tuple, default=None)


def _libfabric(context: Context) -> Optional[str]:
    """The EFA provider's version has libfabric's number in hundreds: 203.10 is 2.3.1, 122.0 is 1.22.0."""
    for text in (context.optional("fi_info") or {}).get("provider_versions", []):
        numbers = version_tuple(text)
        if numbers and numbers[0] >= 100:
            patch = numbers[1] // 10 if len(numbers) > 1 else 0
            return f"{numbers[0] // 100}.{numbers[0] % 100}.{patch}"
    return None


def _driver(context: Context, facts: Any) -> Iterator[Finding]:
    efa, smi = facts.get("efa_driver"), context.optional("nvidia_smi") or {}
    gpu = str(facts.get("nvidia_module") or smi.get("driver_version") or "")
    oldest = context.expected.driver_minimum
    # Where nvidia-smi answers, driver_version judges it; with a driver that does not know the GPU it has no answer.
    if not smi.get("driver_version") and version_tuple(gpu) and oldest and not version_reaches(gpu, oldest):
        message = f"NVIDIA driver {gpu}, wanted {oldest} or later for {context.expected.instance_type}"
        yield context.fail(OLD_DRIVER, message, measured=gpu, expected=oldest)
    if not context.expected.rdma_read or not efa or not version_tuple(efa) or not version_tuple(gpu):
        return
    if version_reaches(gpu, GPU_DRIVER) and not version_reaches(efa, EFA_DRIVER):
        message = f"EFA driver {efa} has no peer memory with NVIDIA driver {gpu}, {EFA_DRIVER} or later has"
        yield context.warn(NO_PEER_MEMORY, message, measured=efa, expected=EFA_DRIVER)


def _plugin(context: Context, facts: Any) -> Iterator[Finding]:
    """Newer than what the plugin was tried with is a risk; older ones its release notes support."""
    plugin, installed = facts.get("ofi_nccl"), facts.get("nccl", [])
    known = next((nccl for release, nccl in VALIDATED if plugin and version_matches(plugin, release)), None)
    if known and installed and not any(version_matches(nccl, good) for nccl in installed for good in known):
        shown, newest = ", ".join(installed), _newest([*installed, *known])
        message = f"NCCL {shown} is not what aws-ofi-nccl {plugin} was validated with ({', '.join(known)})"
        status, remedy = (Status.INFO, Remedy.NONE) if newest in known else (Status.WARN, Remedy.UPDATE_SOFTWARE)
        yield context.because(status, NOT_VALIDATED, message, remedy=remedy, measured=shown, expected=", ".join(known))


def no_efa_unless_changed(context: Context) -> Optional[Skip]:
    """What is no longer as configure left it is told of every type."""
    return None if any(changed(context.optional("versions") or {})) else no_efa(context)


CHECK = Check(
    id="software_compat",
    order=790,
    title="Software compatibility",
    what="EFA installer, EFA driver, libfabric, aws-ofi-nccl and NCCL: the type's minimums, pins, each other, and with "
    "driver and host name what configure decided (/etc/flightline/host_state.json), which counts in place of a pin for "
    "what the image brought.",
    why="A plugin or driver too old for the others falls back to TCP or to host memory, without an error.",
    remedy="Run make configure, which puts back what was decided or says why not. Update with the EFA installer (it "
    "brings driver, libfabric and plugin), and NCCL to a validated version.",
    out_of_service="Yes below what the type runs with, or other than the site pins or configure decided.",
    source="AWS EFA changelog; aws-ofi-nccl release notes; AWS DLAMI minimum versions for P5 and P6",
    needs=("versions",),
    wants=("fi_info", "nvidia_smi"),
    tags=("efa", "nccl", "software"),
    applies=no_efa_unless_changed,
    skips=(skips.NO_EFA, skips.NO_PINS),
    evaluate=evaluate,
)
