"""gpu_gsp: firmware of the driver's release, off, not printed."""

from . import gpus
from .table import PASS, SKIP, UNKNOWN, UPDATE_SOFTWARE, WARN, judging, row, table

test_gpu_gsp = table(
    row("same release", judging("gpu_gsp", gpus.node()), PASS, says="580.95.05"),
    row("other release fails", judging("gpu_gsp", gpus.one(1, "gsp_firmware_version", "570.86.15")), WARN,
        measured="570.86.15", expected="580.95.05", remedy=UPDATE_SOFTWARE),
    row("off or not printed is skipped", judging("gpu_gsp", gpus.every("gsp_firmware_version", None)), SKIP,
        says="proprietary"),
    row("off or not printed is skipped", judging("gpu_gsp", gpus.silent("gsp_firmware_version")), SKIP, says="510"),
    *(row("one GPU without is unknown", judging("gpu_gsp", gpus.one(6, "gsp_firmware_version", value)), UNKNOWN,
        index=6)
        for value in [None, "ERR!"]),
)  # fmt: skip
