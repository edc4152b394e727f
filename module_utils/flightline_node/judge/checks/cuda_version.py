"""Is the CUDA version of the driver the one wanted?"""

from __future__ import annotations

from typing import Iterator

from ...model import Finding
from ..context import Context
from .common import gpu_check, judge_version


def evaluate(context: Context) -> Iterator[Finding]:
    """What the driver's libcuda supports; 'Not Found' there means that no job can use CUDA."""
    measured = context.facts("nvidia_smi").get("cuda_version")
    expected = context.expected
    yield judge_version(context, "CUDA", measured, expected.cuda_version, expected.cuda_minimum)


CHECK = gpu_check(
    id="cuda_version",
    order=100,
    title="CUDA version of the driver",
    what="The highest CUDA version the driver supports, against the site's pin or the instance type's minimum.",
    why="A program built for a later CUDA does not start; a node without libcuda runs no GPU program at all.",
    remedy="Install the driver of the CUDA version wanted; not found means that libcuda is missing or broken.",
    out_of_service="Yes where the site pins it or the type does not run with less.",
    first="nvidia-smi --query-gpu=driver_version --format=csv; ldconfig -p | grep libcuda",
    source="AWS DLAMI support pages for P6 (CUDA minimums); NVIDIA CUDA compatibility guide; the site's pin",
    tags=("gpu", "software"),
    evaluate=evaluate,
)
