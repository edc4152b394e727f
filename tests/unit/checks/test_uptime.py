"""uptime: long up, booted just now, unreadable."""

from tests.harness import BROKEN

from .table import PASS, UNKNOWN, WARN, judging, row, table

test_uptime = table(
    *(row("uptime", judging("uptime", {"uptime": {"uptime_s": seconds}}), wanted, alone=True, measured=seconds)
        for seconds, wanted in [(299.0, "INFO"), (300.0, "PASS"), (9e6, "PASS")]),
    *(each
        for boots, wanted in [([0, 1800, 3600], "WARN")]
        for facts in [{"uptime": {"uptime_s": 9e6}, "sysfs": {"boots": boots} if boots is not None else {}}]
        for each in (
        row("reboot loop", judging("uptime", facts), wanted),
        row("reboot loop", judging("uptime", facts), WARN, measured=len(boots)),
        row("reboot loop", judging("uptime", facts, thresholds={"uptime.boots": 4}), PASS),
    )),
    *(row("reboot loop", judging("uptime",
        {"uptime": {"uptime_s": 9e6}, "sysfs": {"boots": boots} if boots is not None else {}}), wanted)
        for boots, wanted in [
            ([0, 1800, 3601], "PASS"), ([0, 600], "PASS"), ([0, 4000, 8000], "PASS"), ([], "PASS"), (None, "PASS"),
        ]),
    row("unknown", judging("uptime", {"uptime": BROKEN}), UNKNOWN),
)  # fmt: skip
