"""A stack that keeps data cannot be torn down by mistake: its locks are there, and closed."""

from typing import Iterator, Tuple

from .data_protection import DATA
from .model import Answer, Broken, PolicyContext, Registered, Rule
from .secrets import OUTPUTS

LOCK = "flightline:policy:Lock"


def check(resource: Registered, site: PolicyContext) -> Iterator[Answer]:
    """A lock that is not protected locks nothing."""
    if resource.type_ in (LOCK, OUTPUTS) and site.keep_data and not resource.protect:
        yield Broken("it is not protected; ResourceOptions(protect=True) is wanted while keepData is true")


def check_stack(resources: Tuple[Registered, ...]) -> Iterator[Tuple[Registered, Answer]]:
    """Protected data stands behind a lock."""
    if any(one.type_ == LOCK for one in resources):
        return
    for one in resources:
        if one.type_ in DATA and one.protect:
            yield one, Broken(f"it is kept without a {LOCK}: a destroy would take the cluster around it first")
            return


RULE = Rule(
    "locks",
    "A destroy without a preview deletes everything that stands before the data, and stops only there.",
    check,
    check_stack,
)
