"""cuda_version: pin, minimum of the type, no expectation, unreadable."""

from . import gpus
from .table import FAIL, PASS, UNKNOWN, UPDATE_SOFTWARE, judging, row, table


def judge(version, instance_type="p5en.48xlarge", **expected):
    return judging("cuda_version", gpus.node(cuda_version=version), instance_type, expected=expected)


test_cuda_version = table(
    row("without a pin the version is shown", judge("13.0"), PASS, measured="13.0", says="no version pinned"),
    *(row("pin kept", judge("13.0", cuda_version=pin), PASS, expected=pin) for pin in ["13", "13.0"]),
    *(row("pin missed", judge(version, cuda_version="13.0"), FAIL, measured=version, expected="13.0",
        remedy=UPDATE_SOFTWARE)
        for version in ["12.4", "13.1"]),
    *(row("minimum of the type", judge(version, "p6-b300.48xlarge"), wanted)
        for version, wanted in [("12.4", FAIL), ("13.0", PASS), ("13.1", PASS)]),
    row("numbers not text are compared", judge("13.10", cuda_minimum="13.9"), PASS),
    *(row("unreadable is unknown", judge(version), UNKNOWN) for version in [None, "Not Found", "ERR!", "[N/A]"]),
)  # fmt: skip
