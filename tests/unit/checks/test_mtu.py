"""mtu: the inventory's, else one on all ENA interfaces."""

from flightline_node.model import Status
from flightline_node.read.parsers import sysfs
from tests.harness import judge_facts, only, sample, status


def judge(sizes, driver="ena", **expected):
    net = {name: {"mtu": size, "operstate": "up", "driver": driver} for name, size in sizes.items()}
    return judge_facts("mtu", {"sysfs": {"net": net}}, expected=expected)


def test_equal():
    facts = sysfs.parse({"sysfs.json": sample("sysfs/p5.json")})
    finding = only(judge_facts("mtu", {"sysfs": facts}), Status.PASS)
    assert (finding.measured, "2 ENA" in finding.message) == (9001, True)  # the USB interface does not count


def test_different():
    finding = only(judge({"ens5": 9001, "ens6": 1500}), Status.WARN)
    assert finding.evidence == ("ens5: 9001", "ens6: 1500")


def test_against_the_inventory():
    finding = only(judge({"ens5": 9001, "ens6": 1500}, mtu=9001), Status.FAIL)
    assert (finding.device, finding.measured, finding.expected) == ({"name": "ens6"}, 1500, 9001)
    assert status(judge({"ens5": 1500}, mtu=1500)) is Status.PASS
    assert status(judge({"ens5": 1500})) is Status.PASS


def test_interfaces_that_nobody_brought_up():
    net = {
        "ens5": {"mtu": 9001, "operstate": "up", "driver": "ena"},
        "ens6": {"mtu": 1500, "operstate": "down", "driver": "ena"},
    }
    assert status(judge_facts("mtu", {"sysfs": {"net": net}}, expected={"mtu": 9001})) is Status.PASS
    down = only(judge_facts("mtu", {"sysfs": {"net": {"ens6": net["ens6"]}}}), Status.SKIP)
    assert down.message == "no interface with the ena driver is up"


def test_unreadable():
    assert status(judge({"ens5": "error: Invalid argument"})) is Status.UNKNOWN
    assert status(judge({"ens5": 9001, "ens6": None})) is Status.UNKNOWN


def test_no_ena():
    assert only(judge({"eth0": 1500}, driver="virtio_net"), Status.SKIP).message == "no interface with the ena driver"
    assert status(judge({})) is Status.SKIP
