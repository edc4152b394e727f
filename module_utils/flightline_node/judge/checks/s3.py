"""Does the object store answer from this node?"""

from __future__ import annotations

from typing import Any, Dict, Iterator, Optional

from ...model import Check, Facts, Finding, Reason, Remedy, Skip
from .. import skips
from ..context import Context

NOT_PROBED = Reason("not_probed", "no endpoint was asked")
NO_REPLY = Reason("no_reply", "an endpoint does not answer", Remedy.FIX_CONFIG)
NO_BUCKET = Reason("no_bucket", "a bucket does not exist", Remedy.FIX_CONFIG)
OTHER_STATUS = Reason("other_status", "an endpoint answers with another status")

NOT_FOUND, SERVER_ERROR = 404, 500
OPTION = "s3_endpoints"


def evaluate(context: Context) -> Iterator[Finding]:
    """Any answer but "no such bucket" or a server's own error will do: nothing is signed."""
    rows = context.facts("s3")["endpoints"]
    for row in rows:
        context.measure("s3_answer_s", row["seconds"], "s", str(row["endpoint"]))
        yield _judge(context, row)
    if not rows:
        yield context.unknown(NOT_PROBED, "no endpoint was asked")


def _judge(context: Context, row: Facts) -> Finding:
    name, status = row["endpoint"] or "an endpoint", row["status"]
    rest: Dict[str, Any] = {"device": {"name": name}, "measured": status, "expected": "an answer"}
    if status is None:
        why = row["error"] or "no status"
        rest.update(measured="no answer", evidence=[why])
        return context.fail(NO_REPLY, f"{name} does not answer: {why}", **rest)
    if status == NOT_FOUND:
        return context.fail(NO_BUCKET, f"{name}: there is no such bucket (HTTP 404)", **rest)
    if status >= SERVER_ERROR:
        return context.warn(OTHER_STATUS, f"{name} answers with HTTP status {status}", **rest)
    return context.ok(f"{name} answers (HTTP {status})", **rest)


def _not_asked(context: Context) -> Optional[Skip]:
    if context.options.get(OPTION) or context.optional("s3") is not None:
        return None
    return skips.NO_ENDPOINT.because(f"the inventory names no endpoint (flightline_options: {OPTION})")


CHECK = Check(
    id="s3",
    order=610,
    title="S3 reachable",
    what="Whether the S3 endpoints and buckets that the inventory names answer an unsigned HEAD over HTTPS.",
    why="A job whose data or checkpoints are in S3 fails at its first read on the one node without a route to it.",
    remedy="Look at the VPC endpoint and its policy, the route table, the security group's egress to 443, and DNS.",
    out_of_service="Yes where the site names the bucket: the job could not read its data.",
    source="Amazon S3 API, HeadBucket (200, 301, 403, 404); AWS PrivateLink guide, gateway endpoints for S3",
    needs=("s3",),
    tags=("storage", "aws", "network"),
    applies=_not_asked,
    skips=(skips.NO_ENDPOINT,),
    evaluate=evaluate,
)
