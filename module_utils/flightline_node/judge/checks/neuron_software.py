"""Do the Neuron driver, the runtime library and the collectives library go together?"""

from __future__ import annotations

from typing import Iterator, List, NamedTuple, Optional

from ...model import Finding, Reason, Remedy
from .. import skips
from ..context import Context
from .common import version_reaches, version_tuple
from .neuron_common import OF_NEURON, neuron_check
from .neuron_driver import PACKAGE, installed, loaded

OLD_PART = Reason("old_part", "a part is older than another needs", Remedy.UPDATE_SOFTWARE)
COLLECTIVES_DIFFER = Reason(
    "collectives_differ", "runtime and collectives are of different releases", Remedy.UPDATE_SOFTWARE
)

RUNTIME, COLLECTIVES = "aws-neuronx-runtime-lib", "aws-neuronx-collectives"
SAME_MINOR_FROM = "2.28"
"""From this one on runtime and collectives of one release carry the same first two numbers (Neuron release content)."""


class Incompatible(NamedTuple):
    """Where `first` has from..below, `second` must be `needs` or later. Names: driver, runtime."""

    first: str
    at_least: str
    below: str
    second: str
    needs: str
    why: str


RULES = (
    Incompatible("driver", "2.29", "9999", "runtime", "2.33", "driver 2.29 made nrt_init() of older runtimes fail"),
    Incompatible(
        "runtime", "2.32", "2.33", "driver", "2.27", "runtime 2.32 does not start with driver 2.26 or earlier"
    ),
)
"""AWS Neuron, release notes of the runtime component, Known Issues of Neuron 2.31 and 2.30."""


def evaluate(context: Context) -> Iterator[Finding]:
    """Known incompatible pairs block, different releases warn; what the host lacks a container may bring."""
    runtime, collectives = installed(context, RUNTIME), installed(context, COLLECTIVES)
    driver = loaded(context) or installed(context, PACKAGE)
    findings: List[Finding] = [*_rules(context, driver, runtime), *_pair(context, runtime, collectives)]
    yield from findings
    names = {"driver": driver, "runtime": runtime, "collectives": collectives}
    known = ", ".join(f"{name} {version}" for name, version in names.items() if version)
    lacking = ", ".join(name for name, version in names.items() if not version)
    if not runtime and not collectives:
        yield context.skip(
            skips.NO_PINS.because(
                "neither the runtime nor the collectives library is installed on the host: containers bring them"
            )
        )
    elif not findings:
        yield context.ok(known + (f"; not on the host: {lacking}" if lacking else ""))


def _rules(context: Context, driver: Optional[str], runtime: Optional[str]) -> Iterator[Finding]:
    versions = {"driver": driver, "runtime": runtime}
    for rule in RULES:
        first, second = versions[rule.first], versions[rule.second]
        if not first or not second or not version_tuple(first) or not version_tuple(second):
            continue
        concerned = version_reaches(first, rule.at_least) and not version_reaches(first, rule.below)
        if concerned and not version_reaches(second, rule.needs):
            message = f"{rule.second} {second} with {rule.first} {first}, wanted {rule.needs} or later: {rule.why}"
            yield context.fail(OLD_PART, message, measured=second, expected=f"{rule.needs} or later")


def _pair(context: Context, runtime: Optional[str], collectives: Optional[str]) -> Iterator[Finding]:
    if not runtime or not collectives or not version_reaches(runtime, SAME_MINOR_FROM):
        return
    if version_tuple(runtime)[:2] != version_tuple(collectives)[:2]:
        message = f"{RUNTIME} {runtime} and {COLLECTIVES} {collectives} are of different releases"
        yield context.warn(COLLECTIVES_DIFFER, message, measured=collectives, expected=runtime)


CHECK = neuron_check(
    id="neuron_software",
    order=940,
    title="Neuron software compatibility",
    what="Neuron driver, runtime library and collectives library on the host: pairs known not to work, and releases.",
    why="With a pair that does not go together every program fails when it starts.",
    remedy="Update driver and libraries together, from one Neuron release, and reboot.",
    out_of_service="Yes for a pair that does not start; libraries of different releases warn.",
    source="AWS Neuron: release notes of the runtime component (Known Issues), release content",
    needs=("neuron_packages",),
    wants=("neuron_sysfs", "neuron_log"),
    tags=("neuron", "software"),
    skips=(*OF_NEURON, skips.NO_PINS),
    evaluate=evaluate,
)
