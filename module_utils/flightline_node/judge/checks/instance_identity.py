"""Is this the instance that the inventory says it is?"""

from __future__ import annotations

from typing import Any, Iterator, List, Optional, Tuple

from ...know.expected import NO_TYPE
from ...model import Check, Facts, Finding, Reason, Remedy
from .. import skips
from ..context import Context

OTHER = Reason("other", "type, zone or placement group is not the declared one", Remedy.FIX_CONFIG)
NOT_TOLD = Reason("not_told", "the metadata service does not tell it")
IMDSV1 = Reason("imdsv1", "the metadata service answers without a token", Remedy.FIX_CONFIG)
NO_METADATA = Reason("no_metadata", "the metadata service did not answer", Remedy.FIX_CONFIG)


def evaluate(context: Context) -> Iterator[Finding]:
    """Type, zone and placement group by the metadata service, against those declared."""
    facts = context.facts("imds")
    if not facts.get("available"):
        yield unavailable(context, facts)
        return
    findings = [finding for item in _declared(context, facts) for finding in _compare(context, facts, *item)]
    yield from findings
    if facts.get("tokens_required") is False:
        message = "the metadata service answers without a session token (IMDSv1 is on)"
        yield context.warn(IMDSV1, message, measured="optional", expected="required")
    if not findings:
        named = [f"{what} {wanted}" for what, wanted, _ in _declared(context, facts)]
        if named:
            yield context.ok("as declared: " + ", ".join(named))
        else:
            yield context.skip(skips.NO_PLACE.because("no instance type, zone or placement group is declared"))


def unavailable(context: Context, facts: Facts) -> Finding:
    """SKIP off EC2; a warning when the service was asked and did not answer."""
    reason = f"no instance metadata: {facts.get('reason', 'not available')}"
    if facts.get("asked") and context.expected.instance_type != NO_TYPE:
        return context.warn(NO_METADATA, f"{reason} ({facts['asked']})")
    return context.skip(skips.OFF_EC2.because(reason))


def _declared(context: Context, facts: Facts) -> List[Tuple[str, str, str]]:
    expected = context.expected
    kind = None if expected.instance_type == NO_TYPE else expected.instance_type
    zone_key = (
        "availability_zone_id"
        if expected.availability_zone == facts.get("availability_zone_id")
        else "availability_zone"
    )
    items: List[Tuple[str, Optional[str], str]] = [
        ("instance type", kind, "instance_type"),
        ("zone", expected.availability_zone, zone_key),
        ("placement group", expected.placement_group, "placement_group"),
    ]
    return [(what, wanted, key) for what, wanted, key in items if wanted]


def _compare(context: Context, facts: Facts, what: str, wanted: str, key: str) -> Iterator[Finding]:
    measured: Any = facts.get(key)
    rest = {"measured": measured, "expected": wanted}
    if key not in facts:
        message = f"{what} not told by the metadata service"
        yield context.unknown(NOT_TOLD.of(what), message, evidence=_errors(facts), **rest)
    elif measured != wanted:
        rest["measured"] = measured or "none"
        yield context.fail(OTHER.of(what), f"{what} is {measured or 'none'}, wanted {wanted}", **rest)


def _errors(facts: Facts) -> List[str]:
    return [f"{path}: {text}" for path, text in facts.get("errors", {}).items()]


CHECK = Check(
    id="instance_identity",
    order=700,
    title="Instance identity",
    what="Instance type, Availability Zone and placement group that the metadata service gives, against the inventory.",
    why="Judged as the wrong type a node passes checks it should fail; in another zone it is far from its peers.",
    remedy="Correct the inventory, or launch the node again in the right zone and placement group.",
    out_of_service="Yes: the inventory means another machine.",
    first="ec2-metadata --instance-type --instance-id --availability-zone",
    source="EC2 user guide: instance metadata categories; EFA needs one zone",
    needs=("imds",),
    tags=("host", "aws"),
    skips=(skips.NO_PLACE, skips.OFF_EC2),
    evaluate=evaluate,
)
