"""Do the kernel's parameters have the values the site declares?"""

from __future__ import annotations

from typing import Iterator, Optional

from ...model import Check, Finding, Reason, Remedy, Skip
from .. import skips
from ..context import Context

OTHER_VALUE = Reason("other_value", "a kernel parameter is not as declared", Remedy.FIX_CONFIG)


def evaluate(context: Context) -> Iterator[Finding]:
    """Each declared key, white space made even; one finding per drift."""
    values, wanted = context.facts("sysctl").get("values", {}), context.expected.sysctl
    drifts = 0
    for key, value in sorted(wanted.items()):
        name, declared = key.replace("/", "."), " ".join(value.split())
        measured = values.get(key, values.get(name))
        if measured != declared:
            drifts += 1
            shown = "not set" if measured is None else measured
            message = f"{name} is {shown}, wanted {declared}"
            yield context.fail(OTHER_VALUE, message, device={"name": name}, measured=shown, expected=declared)
    if not drifts:
        yield context.ok(f"{len(wanted)} kernel parameters as declared")


def _any_declared(context: Context) -> Optional[Skip]:
    none = skips.NO_SYSCTL.because("no kernel parameters are declared (expected sysctl)")
    return None if context.expected.sysctl else none


CHECK = Check(
    id="sysctl",
    order=680,
    title="Kernel parameters",
    what="The kernel parameters that the inventory declares (expected sysctl), against those in force.",
    why="A node that kept its default buffers or limits behaves unlike the rest of the fleet, and only under load.",
    remedy="Apply the site's configuration again (playbooks/site.yml), and look for a later file in /etc/sysctl.d.",
    out_of_service="Yes for what the site declares; nothing is expected by default.",
    source="the site's inventory; sysctl(8)",
    needs=("sysctl",),
    tags=("host", "software"),
    applies=_any_declared,
    skips=(skips.NO_SYSCTL,),
    evaluate=evaluate,
)
