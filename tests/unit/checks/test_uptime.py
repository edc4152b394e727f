"""uptime: long up, booted just now, unreadable."""

from tests.harness import BROKEN

from .table import PASS, UNKNOWN, WARN, judging, row, table


def judge(boots, **more):
    return judging("uptime", {"uptime": {"uptime_s": 9e6}, "sysfs": {} if boots is None else {"boots": boots}}, **more)


test_uptime = table(
    *(row("uptime", judging("uptime", {"uptime": {"uptime_s": seconds}}), wanted, alone=True, measured=seconds)
        for seconds, wanted in [(299.0, "INFO"), (300.0, "PASS"), (9e6, "PASS")]),
    row("three boots in an hour", judge([0, 1800, 3600]), WARN, measured=3),
    row("the site allows more", judge([0, 1800, 3600], thresholds={"uptime.boots": 4}), PASS),
    *(row("no reboot loop", judge(boots), PASS) for boots in ([0, 1800, 3601], [0, 600], [0, 4000, 8000], [], None)),
    row("unknown", judging("uptime", {"uptime": BROKEN}), UNKNOWN),
)  # fmt: skip
