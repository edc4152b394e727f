"""lnet: EFA where it is declared, interfaces down, Lustre not in use."""

from flightline_node.model import Status
from flightline_node.read.parsers import lnetctl
from tests.harness import BROKEN, judge_facts, only, sample, status
from tests.unit.parsers.hosttools import read


def judge(file, instance_type="p5.48xlarge", **expected):
    return judge_facts("lnet", {"lnetctl": read("lnetctl", f"lnet/{file}")}, instance_type, expected=expected)


def kernel_table():
    text = sample("lnet/nis-efa-down.txt").decode()
    return {"sysfs": {"lnet": {"nets": lnetctl.table(text)}}}


def test_efa():
    assert only(judge("efa.txt", lustre_net="efa"), Status.PASS).measured == "tcp 1, efa 8"
    assert status(judge("efa.txt")) is Status.PASS


def test_only_tcp():
    assert only(judge("tcp-only.txt", lustre_net="efa"), Status.FAIL).measured == "tcp 1"
    assert "does not say" in only(judge("tcp-only.txt"), Status.INFO).message
    assert status(judge("tcp-only.txt", lustre_net="tcp")) is Status.PASS
    assert status(judge("tcp-only.txt", "g5.xlarge")) is Status.PASS


def test_the_kernels_table_and_an_interface_that_is_down():
    finding = only(judge_facts("lnet", kernel_table(), expected={"lustre_net": "efa"}), Status.WARN)
    assert finding.evidence == ("10.1.0.101@efa down",)
    assert finding.measured == "tcp 1, efa 1"


def test_declared_and_not_loaded_fails():
    assert status(judge_facts("lnet", {"sysfs": {}}, expected={"lustre_net": "efa"})) is Status.FAIL


def test_not_in_use():
    assert "not loaded" in only(judge_facts("lnet", {"sysfs": {}}), Status.SKIP).message
    assert "debugfs" in only(judge_facts("lnet", {"sysfs": {"lnet": {"nets": None}}}), Status.SKIP).message


def test_unreadable_is_unknown():
    wanted = {"lustre_net": "efa"}
    assert status(judge_facts("lnet", {"sysfs": BROKEN}, expected=wanted)) is Status.UNKNOWN
    assert status(judge_facts("lnet", {}, expected=wanted)) is Status.UNKNOWN


def test_none_up_under_a_mount_fails():
    down = {"lnetctl": {"nets": {"lo": {"up": 1, "down": []}, "tcp": {"up": 0, "down": ["10.1.0.21@tcp down"]}}}}
    mounts = {"mounts": {"mounts": [{"mount": "/fsx", "fstype": "lustre"}]}}
    finding = only(judge_facts("lnet", {**down, **mounts}), Status.FAIL)
    assert (finding.evidence, finding.expected) == (("10.1.0.21@tcp down",), "one up")
    assert status(judge_facts("lnet", down)) is Status.WARN


def test_no_network_configured():
    refused = {"lnetctl": {"nets": {}, "error": "cannot get networks: Network is down"}}
    assert "Network is down" in only(judge_facts("lnet", refused), Status.INFO).message
    wanted = only(judge_facts("lnet", refused, expected={"lustre_net": "efa"}), Status.FAIL)
    assert "Network is down" in wanted.message
    listed = {"lnetctl": {"nets": {"tcp": {"up": 1, "down": []}}, "error": "cannot get more"}}
    assert status(judge_facts("lnet", listed, "g5.xlarge")) is Status.PASS


def test_what_was_given_and_cannot_be_read_is_no_answer():
    assert status(judge_facts("lnet", {"lnetctl": BROKEN}, required=False)) is Status.UNKNOWN
