"""Do the versions of driver, EFA, libfabric, plugin and NCCL go together?"""

from __future__ import annotations

from typing import Any, Iterator, List, NamedTuple, Optional, Tuple

from ..context import Context
from ..model import Check, Finding, Remedy, Status
from .common import judge_version, version_matches, version_reaches, version_tuple
from .efa_count import no_efa

# aws-ofi-nccl release notes: which NCCL a release was validated with, newest first, by the release's first words.
VALIDATED: Tuple[Tuple[str, Tuple[str, ...]], ...] = (
    ("1.21", ("2.31.2",)),
    ("1.20.0", ("2.28.9", "2.29.7", "2.30.4")),
    ("1.19", ("2.27.3", "2.28.7", "2.29.7")),
    ("1.18.0", ("2.29.2",)),
    ("1.17.3", ("2.28.7",)),
    ("1.17.2", ("2.28.7",)),
    ("1.17.1", ("2.28.3",)),
    ("1.17.0", ("2.28.3",)),
    ("1.16.3", ("2.27.7",)),
    ("1.16.0", ("2.27.5",)),
    ("1.15.0", ("2.26.6",)),
    ("1.14", ("2.26.2",)),
)
PLUGIN_NCCL, PLUGIN_LIBFABRIC = "2.17.1", "1.22.0"
"""The oldest that the plugin's releases of 2025 and later work with (aws-ofi-nccl release notes)."""
GPU_DRIVER, EFA_DRIVER = "580", "2.17.3"
"""EFA driver release notes: 2.17.3 added P2P with NVIDIA 580. Before it only dma-buf serves, so this only warns."""


class Rule(NamedTuple):
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
    findings += [*_driver(context, facts), *_plugin(context, facts)]
    yield from findings
    lacking = ", ".join(dict.fromkeys(rule.what for rule in rules if rule not in judged))
    if not judged:
        yield context.skip(f"nothing to compare, version not known: {lacking or 'no rule for this type'}")
    elif not findings:
        seen = ", ".join(dict.fromkeys(f"{rule.what} {rule.measured}" for rule in judged))
        yield context.ok(seen + (f"; not known: {lacking}" if lacking else ""))


def _rules(context: Context, facts: Any) -> List[Rule]:
    wanted, kind = context.expected, context.expected.instance_type
    nccl, plugin = _newest(facts.get("nccl", [])), facts.get("ofi_nccl")
    installer, libfabric = facts.get("efa_installer"), _libfabric(context)
    rules = [
        Rule("EFA installer", installer, wanted.efa_installer_minimum, wanted.efa_version, f"for {kind}"),
        Rule("aws-ofi-nccl", plugin, wanted.ofi_nccl_minimum, None, f"for {kind}"),
        Rule("NCCL", nccl, wanted.nccl_minimum, wanted.nccl_version, f"for {kind}"),
    ]
    if plugin and version_reaches(plugin, VALIDATED[-1][0]):
        rules.append(Rule("NCCL", nccl, PLUGIN_NCCL, None, f"for aws-ofi-nccl {plugin}"))
        rules.append(Rule("libfabric", libfabric, PLUGIN_LIBFABRIC, None, f"for aws-ofi-nccl {plugin}"))
    return [rule for rule in rules if rule.minimum or rule.pin]


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
        yield context.fail(message, Remedy.UPDATE_SOFTWARE, measured=gpu, expected=oldest)
    if not context.expected.rdma_read or not efa or not version_tuple(efa) or not version_tuple(gpu):
        return
    if version_reaches(gpu, GPU_DRIVER) and not version_reaches(efa, EFA_DRIVER):
        message = f"EFA driver {efa} has no peer memory with NVIDIA driver {gpu}, {EFA_DRIVER} or later has"
        yield context.warn(message, Remedy.UPDATE_SOFTWARE, measured=efa, expected=EFA_DRIVER)


def _plugin(context: Context, facts: Any) -> Iterator[Finding]:
    """Newer than what the plugin was tried with is a risk; older ones its release notes support."""
    plugin, installed = facts.get("ofi_nccl"), facts.get("nccl", [])
    known = next((nccl for release, nccl in VALIDATED if plugin and version_matches(plugin, release)), None)
    if known and installed and not any(version_matches(nccl, good) for nccl in installed for good in known):
        shown, newest = ", ".join(installed), _newest([*installed, *known])
        message = f"NCCL {shown} is not what aws-ofi-nccl {plugin} was validated with ({', '.join(known)})"
        status, remedy = (Status.INFO, Remedy.NONE) if newest in known else (Status.WARN, Remedy.UPDATE_SOFTWARE)
        yield context.finding(status, message, remedy=remedy, measured=shown, expected=", ".join(known))


CHECK = Check(
    id="software_compat",
    title="Software compatibility",
    what="EFA installer, EFA driver, libfabric, aws-ofi-nccl and NCCL: the type's minimums, pins, and each other.",
    why="A plugin or driver too old for the others falls back to TCP or to host memory, without an error.",
    remedy="Update with the EFA installer (it brings driver, libfabric and plugin), and NCCL to a validated version.",
    source="AWS EFA changelog; aws-ofi-nccl release notes; AWS DLAMI minimum versions for P5 and P6",
    needs=("versions",),
    wants=("fi_info", "nvidia_smi"),
    tags=("efa", "nccl", "software"),
    applies=no_efa,
    evaluate=evaluate,
)
