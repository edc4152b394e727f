"""ena_allowance: bursts inform, dropped connections warn, nothing blocks."""

from flightline_node.model import BLOCKING
from flightline_node.read.parsers import ethtool
from tests.harness import BROKEN, sample, status

from .table import INFO, PASS, SKIP, WARN, judging, row, table


def judge(counters):
    return judging("ena_allowance", {"sysfs": {}, "ethtool": {"counters": counters}})


def fixture(name):
    return judge(ethtool.parse({"ethtool.txt": sample(f"ethtool/{name}")})["counters"])


test_ena_allowance = table(
    row("quiet", judge({"bw_in_allowance_exceeded": 0, "conntrack_allowance_exceeded": 0}), PASS),
    row("bursts inform", fixture("ena.txt"), INFO, measured=1915, says="bw_in 1893, bw_out 22"),
    row("dropped connections", fixture("ena-conntrack.txt"), WARN, measured=977),
    row("dropped connections", judge({"conntrack_allowance_exceeded": 0, "conntrack_allowance_available": 0}), WARN,
        says="no further connection"),
    row("not counted is no pass", [fixture("virtio.txt"), judge({})], SKIP),
    row("the counters alone are judged",
        judging("ena_allowance", {"ethtool": {"counters": {"conntrack_allowance_exceeded": 3}}}, required=False),
        WARN),
    row("the first packet dropped for lack of tracking warns",
        judge({"conntrack_allowance_exceeded": 1, "conntrack_allowance_available": 9}), WARN, alone=True, measured=1,
        expected=1),
    row("the first packet dropped for lack of tracking warns",
        judge({"conntrack_allowance_exceeded": 0, "conntrack_allowance_available": 1}), PASS, alone=True),
    row("no tracking left is no pass as well",
        judge({"conntrack_allowance_exceeded": 0, "conntrack_allowance_available": 0}), WARN, alone=True),
)  # fmt: skip


def test_a_node_without_ethtool_is_not_blocked():
    for facts in ({"sysfs": {}}, {"sysfs": {}, "ethtool": BROKEN}):
        assert status(judging("ena_allowance", facts)) is SKIP
    assert status(judging("ena_allowance", {})) in BLOCKING  # not even the reader ran
