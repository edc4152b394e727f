"""Is the NVIDIA driver the one wanted?"""

from __future__ import annotations

from typing import Iterator

from ...model import Finding
from ..context import Context
from ..decided import adopted
from .common import gpu_check, judge_version


def evaluate(context: Context) -> Iterator[Finding]:
    """The site's pin first, but for an image's driver that was adopted; else the oldest that knows the GPU."""
    measured = context.facts("nvidia_smi").get("driver_version")
    expected = context.expected
    pin = None if adopted(context.optional("versions") or {}, "driver") else expected.driver_version
    yield judge_version(context, "driver", measured, pin, expected.driver_minimum)


CHECK = gpu_check(
    id="driver_version",
    order=90,
    title="NVIDIA driver version",
    what="The version of the loaded driver, against the site's pin or the instance type's minimum.",
    why="Nodes with different drivers differ in speed and in NCCL behaviour; a driver too old lacks the GPU's fixes.",
    remedy="Install the pinned driver (and the same version of the fabric manager) and reboot.",
    out_of_service="Yes where the site pins it or the type does not run with less.",
    first="cat /proc/driver/nvidia/version",
    source="AWS DLAMI support pages for P6 (driver minimums); the site's pin",
    wants=("versions",),
    tags=("gpu", "software"),
    evaluate=evaluate,
)
