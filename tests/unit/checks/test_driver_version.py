"""driver_version: pin, minimum of the type, no expectation, unreadable."""

from . import gpus
from .table import FAIL, PASS, UNKNOWN, UPDATE_SOFTWARE, judging, row, table


def judge(version, instance_type="p5en.48xlarge", **expected):
    return judging("driver_version", gpus.node(driver_version=version), instance_type, expected=expected)


test_driver_version = table(
    row("without a pin the version is shown", judge("580.95.05"), PASS, measured="580.95.05", says="no version pinned"),
    *(row("pin kept", judge("580.95.05", driver_version=pin), PASS, expected=pin) for pin in ["580", "580.95.05"]),
    *(row("pin missed", judge(version, driver_version="580.95.05"), FAIL, measured=version, expected="580.95.05",
        remedy=UPDATE_SOFTWARE)
        for version in ["550.54.15", "595.58.03"]),
    *(row("minimum of the type", judge(version, "p6-b300.48xlarge"), wanted)
        for version, wanted in [("550.54.15", FAIL), ("580.95.05", PASS), ("595.58.03", PASS)]),
    row("an image's driver that configure adopted has no pin",
        judging("driver_version", {**gpus.node(driver_version="580.126.09"), "versions": {"decided": {"adopted": ["driver"]}}},
            "p5en.48xlarge", expected={"driver_version": "580.95.05"}), PASS),
    row("numbers not text are compared", judge("1000.1", driver_minimum="580"), PASS),
    *(row("unreadable is unknown", judge(version), UNKNOWN) for version in [None, "Not Found", "ERR!", "[N/A]"]),
)  # fmt: skip
