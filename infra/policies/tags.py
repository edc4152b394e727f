"""Everything that can be tagged says which cluster it belongs to."""

from typing import Any, Iterator

from infra.sdk import taggable

from .model import UNKNOWN, Answer, Broken, PolicyContext, Registered, Rule, Unsure
from .values import items, look

_GROUP = "aws:autoscaling/group:Group"
_TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"


def check(resource: Registered, site: PolicyContext) -> Iterator[Answer]:
    """The resource's tags; a launch template's also for what it launches."""
    if not taggable(resource.type_):
        return
    if resource.type_ == _GROUP:
        yield from _missing("tags", {look(tag, "key"): True for tag in items(resource.props, "tags")}, site)
        return
    yield from _missing("tags", look(resource.props, "tags"), site)
    if resource.type_ == _TEMPLATE:
        kinds = {look(part, "resourceType"): look(part, "tags") for part in items(resource.props, "tagSpecifications")}
        for kind in ("instance", "volume", "network-interface"):
            yield from _missing(f"tagSpecifications[{kind}]", kinds.get(kind), site)


def _missing(where: str, tags: Any, site: PolicyContext) -> Iterator[Answer]:
    if tags is UNKNOWN:
        yield Unsure(f"{where} is known only during the update")
        return
    absent = sorted(key for key in site.required_tags if not (tags or {}).get(key))
    if absent:
        yield Broken(f"{where} lacks {', '.join(absent)}")


RULE = Rule("tags", "What nobody owns is never switched off, and Ansible finds nodes by their tags.", check)
