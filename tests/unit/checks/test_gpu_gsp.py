"""gpu_gsp: firmware of the driver's release, off, not printed."""

from . import gpus
from .table import PASS, SKIP, UNKNOWN, UPDATE_SOFTWARE, WARN, judging, row, table

test_gpu_gsp = table(
    row("same release", judging("gpu_gsp", gpus.node()), PASS, says="580.95.05"),
    row("other release fails", judging("gpu_gsp", gpus.put(gpus.node(), 1, "gsp_firmware_version", "570.86.15")),
        WARN, measured="570.86.15", expected="580.95.05", remedy=UPDATE_SOFTWARE),
    row("off or not printed is skipped", judging("gpu_gsp",
        gpus.put_all(gpus.node(), "gsp_firmware_version", None)), SKIP, says="proprietary"),
    row("off or not printed is skipped", judging("gpu_gsp", gpus.drop_all(gpus.node(), "gsp_firmware_version")),
        SKIP, says="510"),
    *(row("one GPU without is unknown", judging("gpu_gsp", gpus.put(gpus.node(), 6, "gsp_firmware_version", value)),
        UNKNOWN, index=6)
        for value in [None, "ERR!"]),
)  # fmt: skip
