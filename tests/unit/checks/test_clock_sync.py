"""clock_sync: in step, adrift, unsynchronised, no source, no daemon, no offset."""

from functools import partial

import pytest

from tests.harness import only
from tests.unit.parsers.hosttools import read

from .table import FAIL, FIX_CONFIG, PASS, UNKNOWN, WARN, judging, row, table

SERVICES = {"services": read("services", "systemctl/p5.json")}
NO_DAEMON = {"services": {"units": {"chronyd.service": {"active": "failed"}, "sshd.service": {"active": "active"}}}}


def judged(file, **more):
    return judge({"chrony": read("chrony", f"chrony/{file}"), **more})


judge = partial(judging, "clock_sync")

test_clock_sync = table(
    *(row("fixtures", judged(file), wanted)
        for file, wanted in [
            ("ec2.txt", "PASS"), ("debian12-synchronised.txt", "PASS"), ("debian12-synchronised.csv", "PASS"),
            ("timesync.txt", "PASS"), ("ec2-adrift.txt", "FAIL"), ("debian12-unsynchronised.txt", "FAIL"),
            ("debian12-unsynchronised.csv", "FAIL"), ("timesync-waiting.txt", "FAIL"),
            ("timedatectl-status.txt", "FAIL"), ("debian12-no-daemon.txt", "FAIL"),
            ("debian12-local-reference.txt", "WARN"),
        ]),
    row("adrift says how far", judged("ec2-adrift.txt"), FAIL, measured=-12.481902313, unit="s", remedy=FIX_CONFIG,
        says="12.4819 s slow"),
    *(row("offset of either sign",
        judge({"chrony": {"tool": "chronyc", "leap": "Normal", "stratum": 4, "offset_s": offset_s}}), wanted)
        for offset_s, wanted in [(0.049, "PASS"), (-0.05, "WARN"), (0.127, "WARN"), (0.128, "FAIL"), (-3600, "FAIL")]),
    *(row("stratum without a source", judge({"chrony": {"leap": "Normal", "stratum": stratum, "offset_s": 0.0}}), FAIL)
        for stratum in [0, 16]),
    row("leap second is no fault", judge({"chrony": {"leap": "Insert second", "stratum": 3, "offset_s": 0.0}}), PASS),
    row("kernel flag alone needs a running daemon",
        [judged("timedatectl-show.txt", **SERVICES), judged("timedatectl-show.txt")], WARN),
    row("kernel flag alone needs a running daemon", judged("timedatectl-show.txt", **NO_DAEMON), FAIL),
    row("unknown", [judge({"chrony": {"stratum": 3, "offset_s": 0.0}}),
        judge({"chrony": {"tool": "timedatectl", "error": "Failed to connect to bus"}})], UNKNOWN),
)  # fmt: skip


@pytest.mark.parametrize(("spread_s", "wanted"), [(0.9, PASS), (1.0, WARN)])
def test_a_source_long_silent(spread_s, wanted):
    facts = {"tool": "chronyc", "leap": "Normal", "stratum": 4, "offset_s": 1e-6, "root_dispersion_s": spread_s}
    finding = only(judge({"chrony": facts}), wanted)
    assert wanted is PASS or (finding.measured, finding.expected) == (1.0, 1.0)
