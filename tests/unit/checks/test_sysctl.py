"""sysctl: as declared, drifted, not set, nothing declared."""

from tests.harness import BROKEN

from .table import FAIL, FIX_CONFIG, PASS, SKIP, UNKNOWN, judging, row, table

VALUES = {"sysctl": {"values": {"net.core.rmem_max": "212992", "net.ipv4.tcp_rmem": "4096 131072 6291456"}}}


def judged(wanted):
    return judging("sysctl", VALUES, expected={"sysctl": wanted})


test_sysctl = table(
    row("as declared whatever the spelling",
        judged({"net.core.rmem_max": 212992, "net/ipv4/tcp_rmem": "4096\t131072\t6291456"}), PASS),
    row("drift", judged({"net.core.rmem_max": 1, "net.ipv4.tcp_rmem": "4096 131072 6291456"}), FAIL,
        device={"name": "net.core.rmem_max"}, measured="212992", expected="1", remedy=FIX_CONFIG),
    row("not set", judged({"vm.absent": "1"}), FAIL, says="not set"),
    row("nothing declared", [judging("sysctl", VALUES), judging("sysctl", {"sysctl": BROKEN})], SKIP),
    row("unknown", judging("sysctl", {"sysctl": BROKEN}, expected={"sysctl": {"a": "1"}}), UNKNOWN),
)  # fmt: skip
