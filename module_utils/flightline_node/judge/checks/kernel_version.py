"""Does the node run the kernel the site pinned, or at least the instance type's minimum?"""

from __future__ import annotations

from typing import Iterator

from ...model import Check, Finding
from ..context import Context
from .common import judge_version


def evaluate(context: Context) -> Iterator[Finding]:
    """The running kernel's release against the pin, else the minimum."""
    kernel = context.facts("versions").get("kernel")
    yield judge_version(context, "kernel", kernel, context.expected.kernel_version, context.expected.kernel_minimum)


CHECK = Check(
    id="kernel_version",
    order=660,
    title="Kernel version",
    what="The running kernel's release, against the inventory's pin or the instance type's minimum.",
    why="Driver, EFA and Lustre modules are built for one kernel; a node that updated itself loses them when it boots.",
    remedy="Boot the pinned kernel (grub default), hold its package, and rebuild the image from the pinned one.",
    out_of_service="Yes where the site pins it or the type does not run with less.",
    source="the site's inventory; AWS DLAMI minimum versions for P6 instance types",
    needs=("versions",),
    tags=("host", "software"),
    evaluate=evaluate,
)
