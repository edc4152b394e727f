"""No pod lands on a GPU node that has not said go, and no node group is launched by a template that nobody judged."""

from typing import Any, Iterator

from flightline.contract import KUBE_STARTUP_TAINT

from .model import UNKNOWN, Answer, Broken, PolicyContext, Registered, Rule, Unsure
from .values import items, look, require_some

NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"
EFFECTS = ("NO_SCHEDULE", "NO_EXECUTE")
_WITHOUT_GPU = "_STANDARD"


def check(resource: Registered, site: PolicyContext) -> Iterator[Answer]:
    """Node groups; one whose image is not known to be without a GPU counts as one with."""
    if resource.type_ != NODE_GROUP:
        return
    # Without one EKS makes a template of its own, with which no other rule was ever asked.
    yield from require_some(resource.props, "launchTemplate", "a launch template of the stack")
    if look(resource.props, "remoteAccess") is not None:
        yield Broken("remoteAccess opens SSH on every node; Session Manager reaches them")
    image = look(resource.props, "amiType")
    if isinstance(image, str) and image.endswith(_WITHOUT_GPU):
        return
    taints = items(resource.props, "taints")
    if any(map(_keeps_pods_away, taints)):
        return
    if UNKNOWN in taints:
        yield Unsure("taints are known only during the update")
    else:
        yield Broken(f"taints lack {KUBE_STARTUP_TAINT}, under which a GPU node waits for its go")


def _keeps_pods_away(taint: Any) -> bool:
    return look(taint, "key") == KUBE_STARTUP_TAINT and look(taint, "effect") in EFFECTS


RULE = Rule("unproven-nodes", "A job that starts on a bad node costs the hours until somebody finds out.", check)
