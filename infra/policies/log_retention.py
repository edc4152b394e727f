"""Every log group forgets after a stated time."""

from __future__ import annotations

from typing import Iterator, Tuple

from .model import UNKNOWN, Answer, Broken, PolicyContext, Registered, Rule, Unsure
from .values import look, require_some

_GROUP = "aws:cloudwatch/logGroup:LogGroup"
_FUNCTION = "aws:lambda/function:Function"


def check(resource: Registered, site: PolicyContext) -> Iterator[Answer]:
    """Retention is set; 0 means for ever."""
    if resource.type_ == _GROUP:
        yield from require_some(resource.props, "retentionInDays", "a number of days")


def check_stack(resources: Tuple[Registered, ...]) -> Iterator[Tuple[Registered, Answer]]:
    """A function without a group of the stack makes one of its own, which never forgets."""
    groups = [look(resource.props, "name") for resource in resources if resource.type_ == _GROUP]
    for function in (resource for resource in resources if resource.type_ == _FUNCTION):
        group = look(function.props, "loggingConfig.logGroup") or f"/aws/lambda/{look(function.props, 'name')}"
        if group in groups and group is not UNKNOWN:
            continue
        if group is UNKNOWN or UNKNOWN in groups:
            yield function, Unsure("the name of its log group is known only during the update")
        else:
            yield function, Broken(f"it writes to {group}, which is no log group of this stack with a retention")


RULE = Rule("log-retention", "Logs kept for ever are a bill and a liability.", check, check_stack)
