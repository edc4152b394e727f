"""Does every GPU have the memory of its model?"""

from __future__ import annotations

from typing import Iterator

from ...model import Facts, Finding, Reason, Remedy, Threshold
from ..context import Context
from .common import OF_GPU_FIELD, gpu_check, is_number, judge_gpus, spread

TOO_LITTLE = Reason("too_little", "a GPU has less memory than its model", Remedy.REPLACE, "GPU")
TOO_MUCH = Reason("too_much", "a GPU has more memory than its model", Remedy.FIX_CONFIG, "GPU")


def _judge(context: Context, gpu: Facts, total_mib: float) -> Iterator[Finding]:
    context.measure("gpu_memory_total_mib", total_mib, "MiB")
    wanted = context.expected.gpu_memory_mib or 0
    message = f"{total_mib:g} MiB of memory, wanted about {wanted} MiB"
    rest = (total_mib, wanted, "MiB")
    if total_mib * 100 < wanted * (100 - context.threshold("tolerance_percent")):
        yield context.fail(TOO_LITTLE, message, *rest)
    elif total_mib * 100 > wanted * (100 + context.threshold("excess_percent")):
        yield context.fail(TOO_MUCH, message + ": another model than expected", *rest)


def evaluate(context: Context) -> Iterator[Finding]:
    """Total memory within a tolerance, because EC2 and nvidia-smi count differently."""
    good = "{} MiB of memory per GPU".format
    yield from judge_gpus(
        context, "memory_total_mib", is_number, "total memory", _judge, lambda sizes: good(spread(sizes))
    )


CHECK = gpu_check(
    id="gpu_memory",
    order=30,
    title="GPU memory size",
    what="The total memory of each GPU, against the instance type.",
    why="A GPU with less memory runs out first, hours into a job whose batch size fits all the others.",
    remedy="Too small: replace the instance. Too large: the inventory names another instance type.",
    do="Too large: the inventory names another instance type.",
    out_of_service="Yes: the job runs out of memory on that GPU; a few percent are within the tolerance.",
    source="EC2 describe-instance-types (GpuInfo); nvidia-smi captures",
    expects=("gpu_memory_mib",),
    tags=("gpu", "memory"),
    thresholds=(
        Threshold(
            "tolerance_percent",
            7,
            "%",
            "how far below the expected size is accepted",
            "EC2's figure and nvidia-smi's differ by up to 6.3 % (T4: 16384 and 15360 MiB)",
            0,
            50,
        ),
        Threshold(
            "excess_percent",
            15,
            "%",
            "how far above the expected size is accepted",
            "a share of an L4 is given in GB by EC2 and in GiB by nvidia-smi (7.4 %); other models are far off",
            0,
            100,
        ),
    ),
    skips=OF_GPU_FIELD,
    evaluate=evaluate,
)
