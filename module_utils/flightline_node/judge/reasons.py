"""Reasons that every check may have: what the judge itself says of it, and what reading a value comes to.

A check's own reasons stand beside it (Check.reasons). Causes, advice and plans match the ids, never a message.
"""

from __future__ import annotations

from typing import Tuple

from ..model import Reason, Remedy

SILENT = Reason("silent", "a tool gave no answer within its time")
NO_DRIVER = Reason("no_driver", "a tool cannot talk to the driver")
ENDED_BADLY = Reason("ended_badly", "a tool ended badly, or could not be started")
NOT_RUN = Reason("not_run", "a test was not allowed to start")
UNREADABLE = Reason("unreadable", "the output is not what the tool's format allows")
NOT_TRUSTED = Reason("not_trusted", "a tool printed something healthy and ended badly")
NOT_COLLECTED = Reason("not_collected", "the level demands it, and it was not collected")
NOT_TAKEN = Reason("not_taken", "the node skipped it for a reason that is not the site's")
CHECK_BROKE = Reason("check_broke", "the check itself broke", Remedy.CONTACT_SUPPORT)
NO_ANSWER = Reason("no_answer", "the check gave no answer", Remedy.CONTACT_SUPPORT)
NOT_UNDERSTOOD = Reason("not_understood", "a line in an error's shape that no rule knows")
PART_FAILED = Reason("part_failed", "a part that training needs speaks of failure, in words that no rule knows")
STANDS = Reason("stands", "a trouble that may pass, and of which no log shows that it did")
WAIVER_EXPIRED = Reason("waiver_expired", "a waiver has expired, and its finding is still there", Remedy.FIX_CONFIG)

NO_GPU_LISTED = Reason("no_gpu_listed", "nvidia-smi lists no GPU")
VALUE_UNREAD = Reason("value_unread", "a device printed an error in place of a value", device="GPU")
VALUE_LACKING = Reason("value_lacking", "a device prints no value where others of its model do", device="GPU")
NO_VALUE = Reason("no_value", "no device printed a value")
NVLINK_LISTS_NONE = Reason("nvlink_lists_none", "nvidia-smi nvlink lists no GPU")
VERSION_UNREAD = Reason("version_unread", "a version could not be read", Remedy.UPDATE_SOFTWARE)
NOT_AS_PINNED = Reason("not_as_pinned", "a version is not the pinned one", Remedy.UPDATE_SOFTWARE)
TOO_OLD = Reason("too_old", "a version is older than the oldest that will do", Remedy.UPDATE_SOFTWARE)
SMI_SILENT = Reason("smi_silent", "nvidia-smi answers the watcher no more", Remedy.REBOOT)
MESSAGES_LOST = Reason("messages_lost", "kernel messages were overwritten before they were read")
QUARANTINED = Reason("quarantined", "the node is in quarantine")
SUSPECT = Reason("suspect", "the node has what many nodes have, so it stays in service", Remedy.INVESTIGATE)
OVERRULED = Reason("overruled", "somebody put the node back into service against its quarantine")

COMMON = (
    SILENT, NO_DRIVER, ENDED_BADLY, NOT_RUN, UNREADABLE, NOT_TRUSTED, NOT_COLLECTED, NOT_TAKEN, CHECK_BROKE, NO_ANSWER,
    NOT_UNDERSTOOD, PART_FAILED, WAIVER_EXPIRED, NO_GPU_LISTED, VALUE_UNREAD, VALUE_LACKING, NO_VALUE,
    NVLINK_LISTS_NONE, VERSION_UNREAD, NOT_AS_PINNED, TOO_OLD, SMI_SILENT, MESSAGES_LOST, QUARANTINED, SUSPECT,
    OVERRULED,
)  # fmt: skip

NOT_MEASURED = frozenset({
    one.id for one in (SILENT, NO_DRIVER, ENDED_BADLY, NOT_RUN, UNREADABLE, NOT_TRUSTED, NOT_COLLECTED, NO_GPU_LISTED)
})  # fmt: skip
"""Families of which one member is one trouble, whichever checks it left without an answer."""
_FAMILIES = {one.id: one for one in COMMON}


def of(why: Tuple[str, str]) -> Reason:
    """The reason of an output that could not be read: read.facts.Trouble's family and part."""
    name, part = why
    family = _FAMILIES.get(name, UNREADABLE)
    return family.of(part) if part else family
