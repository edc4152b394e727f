"""throttle: hardware reasons fail, software thermal warns, the rest is normal."""

from . import gpus
from .table import FAIL, PASS, REPLACE, UNKNOWN, WARN, judging, row, table


def judge(reasons):
    return judging("throttle", gpus.one(1, "throttle_active", reasons))


test_throttle = table(
    *(row("reasons", judge(reasons), wanted, index=1)
        for reasons, wanted in [
            (["sw_thermal_slowdown"], WARN),
            (["hw_slowdown"], FAIL),
            (["hw_slowdown", "hw_power_brake_slowdown"], FAIL),
            (["hw_thermal_slowdown", "sw_thermal_slowdown"], FAIL),
            ("ERR!", UNKNOWN),
            (None, UNKNOWN),
        ]),
    *(row("reasons", judge(reasons), wanted)
        for reasons, wanted in [
            ([], PASS),
            (["gpu_idle"], PASS),
            (["applications_clocks_setting", "sw_power_cap"], PASS),
            (["sync_boost", "display_clocks_setting"], PASS),
        ]),
    row("failed GPU lists its reasons", judge(["hw_slowdown", "hw_power_brake_slowdown"]), FAIL,
        says="hw_power_brake_slowdown", remedy=REPLACE),
    row("N/A everywhere is unknown", judging("throttle", gpus.every("throttle_active", None)), UNKNOWN),
    row("what is active without harm is shown", judge([]), PASS, message="no hardware slowdown (active: gpu_idle)"),
    row("what is active without harm is shown", judging("throttle", gpus.every("throttle_active", [])), PASS,
        message="no hardware slowdown (active: nothing)"),
)  # fmt: skip
