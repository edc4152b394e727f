"""Answers to Run Command that anybody may have written: whose they are, Systems Manager says.

The agent of an instance writes an answer to the bucket under a key of Systems Manager's own making, so IAM cannot hold
that key to its writer: every node may write there. But the agent sends the beginning of the same output to Systems
Manager, and there no other node has a say. An object is an answer when its digest is the one in that beginning; it is
looked for among the versions of the object, so that writing over an answer takes nothing from it.

Sources: API reference of Systems Manager (ListCommandInvocations; CommandPlugin, Output: the first 2,500 characters)
and of S3 (ListObjectVersions: newest first).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from flightline_node.tell.frames import digests

from ..record.outputs import HostReply
from .batches import error_code

FINAL = frozenset({"Success", "Cancelled", "Failed", "TimedOut"})
COMMAND_CHARS = 36
"""Of a command's id. Source: ListCommandInvocations."""
MOST_VERSIONS = 100
"""Of one answer that are looked at: who writes more over it makes it UNKNOWN, and never a go."""
ENDLESS = "its answer is endless: more than twice of what is taken"
FORGED = "its output in the bucket is another than the one that Systems Manager has of it"


class Invocation(NamedTuple):
    """What Systems Manager says of a command on one instance. output: the beginning of it."""

    status: str
    details: str
    output: str


NONE = Invocation("", "", "")


def invocations(ssm: Any, **which: str) -> dict[str, Invocation]:
    """Of a command, by instance."""
    pages = ssm.get_paginator("list_command_invocations").paginate(**which, Details=True)
    return {
        one["InstanceId"]: Invocation(
            one.get("Status", ""),
            one.get("StatusDetails", ""),
            "".join(str(plugin.get("Output") or "") for plugin in one.get("CommandPlugins") or ()),
        )
        for page in pages
        for one in page["CommandInvocations"]
    }


def invocation(ssm: Any, command: str, name: str) -> Invocation:
    """Of a command on one instance; NONE for a command that there is not."""
    if len(command) != COMMAND_CHARS:
        return NONE
    try:
        return invocations(ssm, CommandId=command, InstanceId=name).get(name, NONE)
    except Exception as error:
        if error_code(error) == "InvalidCommandId":
            return NONE
        raise


def vouched(host: str, read: Callable[[str], HostReply], texts: Iterable[str | None], own: str) -> HostReply:
    """The answer of a host that Systems Manager knows the beginning of.

    texts: what the object says, and what its earlier versions said; None for what is endless.
    """
    wanted, found = digests(own.splitlines()), []
    for text in islice(texts, MOST_VERSIONS):
        reply = HostReply(host, trouble=ENDLESS) if text is None else read(text)
        own_one = digests((text or "").splitlines()) == wanted
        if own_one and reply.answer is not None:
            return reply
        found.append((own_one, reply))
    torn = [reply for own_one, reply in found if own_one or found[0][1].answer is None]
    if torn:
        return torn[0]
    return HostReply(host, trouble=f"{FORGED}: another node may have written it")


def texts(s3: Any, bucket: str, key: str, most_bytes: int) -> Iterator[str | None]:
    """What an object says, and what its earlier versions said; None for what is longer than most_bytes."""
    yield _text(s3, most_bytes, Bucket=bucket, Key=key)
    pages = s3.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=key)
    for page in pages:
        for one in page.get("Versions", ()):
            if one["Key"] == key and not one["IsLatest"]:
                yield _text(s3, most_bytes, Bucket=bucket, Key=key, VersionId=one["VersionId"])


def _text(s3: Any, most_bytes: int, **which: str) -> str | None:
    found = s3.get_object(**which)
    return None if int(found["ContentLength"]) > most_bytes else found["Body"].read().decode("utf-8", "replace")
