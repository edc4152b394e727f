"""gpu_clocks: maximum clocks within the node, clock under load, idle."""

from functools import partial

from . import gpus
from .table import PASS, RESET_GPU, UNKNOWN, WARN, judging, row, table


def loaded(facts, index):
    gpus.put(facts, index, "power.draw_w", 600.0)
    return gpus.put(facts, index, "throttle_active", [])


judge = partial(judging, "gpu_clocks")

test_gpu_clocks = table(
    row("idle clocks are no fault", judge(gpus.node()), PASS, says="1980"),
    row("idle clocks are no fault", judge(gpus.every("throttle_active", [])), PASS),
    row("lower maximum warns", judge(gpus.one(3, "clocks_max.sm_mhz", 1755)), WARN, index=3, measured=1755,
        expected=1980),
    row("stuck under load warns", judge(loaded(gpus.node(), 3)), WARN, index=3, measured=345, remedy=RESET_GPU),
    row("under load with a reason or at speed",
        [judge(gpus.put(loaded(gpus.node(), 3), 3, "throttle_active", ["sw_power_cap"])),
        judge(gpus.put(loaded(gpus.node(), 3), 3, "clocks.sm_mhz", 1700))], PASS),
    *(row("unreadable is unknown", judge(gpus.one(3, "clocks_max.sm_mhz", value)), UNKNOWN, index=3)
        for value in ["ERR!", None]),
    # of 1980 MHz
    *(row("half of the maximum is enough under load", judge(gpus.put(loaded(gpus.node(), 3), 3, "clocks.sm_mhz", mhz)),
        wanted)
        for mhz, wanted in [(990, PASS), (989, WARN)]),
)  # fmt: skip
