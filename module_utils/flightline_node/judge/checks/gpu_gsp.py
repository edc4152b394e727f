"""Does the GPU System Processor run the driver's own firmware?"""

from __future__ import annotations

from typing import Iterator

from ...model import Facts, Finding, Reason, Remedy
from .. import skips
from ..context import Context
from .common import OF_GPU_FIELD, each_gpu, gpu_check, is_word, one_of_each, version_tuple

OTHER_VERSION = Reason("other_version", "the GSP firmware is not the driver's version", Remedy.UPDATE_SOFTWARE, "GPU")


def _judge(context: Context, gpu: Facts, firmware: str) -> Iterator[Finding]:
    driver = context.facts("nvidia_smi").get("driver_version")
    if isinstance(driver, str) and version_tuple(firmware) != version_tuple(driver):
        message = f"GSP firmware {firmware}, driver {driver}"
        # The driver loads its own firmware or none at all: the GPU works, but one of the two numbers is wrong.
        yield context.warn(OTHER_VERSION, message, firmware, driver)


CHECK = gpu_check(
    id="gpu_gsp",
    order=130,
    title="GSP firmware",
    what="The firmware version of the GPU System Processor, against the driver version.",
    why="A firmware of another release than the driver causes GSP timeouts (Xid 119, 120) under load.",
    remedy="Install driver and firmware of the same release, and reboot.",
    out_of_service="No: the driver loads its own firmware, so the GPU works.",
    source="NVIDIA driver README, GSP Firmware chapter",
    tags=("gpu", "software"),
    skips=(*OF_GPU_FIELD, skips.NO_GSP),
    evaluate=each_gpu(
        "Firmware equal to the driver; N/A means that the driver runs the GPUs without it.",
        "gsp_firmware_version",
        is_word,
        "GSP firmware version",
        _judge,
        lambda versions: f"GSP firmware {one_of_each(versions)}, as the driver",
        absent=skips.NO_GSP.because("not printed by this driver (before 510)"),
        na=skips.NO_GSP.because(),
    ),
)
