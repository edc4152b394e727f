"""Every log group forgets after a stated time."""

from typing import Any, Callable, Dict, Iterator, Tuple

from .model import UNKNOWN, Answer, Broken, PolicyContext, Props, Registered, Rule, Unsure
from .values import look, require_some

_GROUP = "aws:cloudwatch/logGroup:LogGroup"
_FUNCTION = "aws:lambda/function:Function"
_CLUSTER = "aws:eks/cluster:Cluster"


def check(resource: Registered, site: PolicyContext) -> Iterator[Answer]:
    """Retention is set; 0 means for ever."""
    if resource.type_ == _GROUP:
        yield from require_some(resource.props, "retentionInDays", "a number of days")


def _of_function(props: Props) -> Any:
    return look(props, "loggingConfig.logGroup") or _named("/aws/lambda/{}", look(props, "name"))


def _of_cluster(props: Props) -> Any:
    return _named("/aws/eks/{}/cluster", look(props, "name"))


def _named(group: str, name: Any) -> Any:
    return UNKNOWN if name is UNKNOWN else group.format(name)


_WRITES: Dict[str, Callable[[Props], Any]] = {_FUNCTION: _of_function, _CLUSTER: _of_cluster}
"""Type -> the group that AWS writes its log to, and makes where nobody has."""


def check_stack(resources: Tuple[Registered, ...]) -> Iterator[Tuple[Registered, Answer]]:
    """A function or cluster without a group of the stack makes one of its own, which never forgets."""
    groups = [look(resource.props, "name") for resource in resources if resource.type_ == _GROUP]
    for writer in (resource for resource in resources if resource.type_ in _WRITES):
        group = _WRITES[writer.type_](writer.props)
        if group in groups and group is not UNKNOWN:
            continue
        if group is UNKNOWN or UNKNOWN in groups:
            yield writer, Unsure("the name of its log group is known only during the update")
        else:
            yield writer, Broken(f"it writes to {group}, which is no log group of this stack with a retention")


RULE = Rule("log-retention", "Logs kept for ever are a bill and a liability.", check, check_stack)
