"""gpu_bandwidth: floors by PCIe and NVLink, a slow GPU or pair among its twins, waived and failed tests."""

import pytest

from flightline_node.know.expected import resolve
from flightline_node.model import Remedy, SettingsError, Status
from tests.harness import judge_facts, only, status
from tests.unit.parsers.hosttools import read

H2D, D2H = "host_to_device_memcpy_ce", "device_to_host_memcpy_ce"
READ, WRITE = "device_to_device_memcpy_read_ce", "device_to_device_memcpy_write_ce"


def host(*values, name=H2D):
    return {"name": name, "status": "Passed", "matrix": [list(values)]}


def peers(value=380.0, count=8, **cells):
    matrix = [[None if row == column else value for column in range(count)] for row in range(count)]
    for place, other in cells.items():
        row, column = map(int, place[1:].split("_"))
        matrix[row][column] = other
    return {"name": READ, "status": "Passed", "matrix": matrix}


def judge(*tests, instance_type="p5.48xlarge", **more):
    """Judge these tests beside good ones of the other three."""
    given = {test["name"] for test in tests}
    count = resolve(instance_type).gpu_count
    others = [host(*[54.0] * count, name=name) for name in (H2D, D2H)]
    others += [{**peers(count=count), "name": name} for name in (READ, WRITE)]
    everything = [*tests, *(test for test in others if test["name"] not in given)]
    return judge_facts("gpu_bandwidth", {"nvbandwidth": {"tests": everything}}, instance_type, **more)


def test_good_nodes_pass():
    for fixture, kind in (("a100-v04.txt", "p4d.24xlarge"), ("h100-v08.json", "p5.48xlarge")):
        facts = read("nvbandwidth", f"nvbandwidth/{fixture}")
        (finding,) = judge_facts("gpu_bandwidth", {"nvbandwidth": facts}, kind)
        assert finding.status is Status.PASS, finding
        assert "read from peer" in finding.message


@pytest.mark.parametrize(("value", "wanted"), [(50, None), (48, Status.WARN), (41.1, Status.WARN), (40.9, Status.FAIL)])
def test_one_slow_host_copy(value, wanted):
    findings = judge(host(*[54.5] * 7, value))
    if wanted is None:
        assert status(findings) is Status.PASS
        return
    slow = only(findings, wanted)
    assert (slow.device, slow.measured, slow.unit) == ({"index": 7}, value, "GB/s")
    assert slow.remedy is (Remedy.REBOOT if wanted is Status.FAIL else Remedy.INVESTIGATE)


@pytest.mark.parametrize(
    ("kind", "count", "good", "bad"),
    [
        ("p5.48xlarge", 8, 41.1, 40.8),
        ("p4d.24xlarge", 8, 20.6, 20.3),
        ("g5.12xlarge", 4, 10.3, 10.1),
        ("g4dn.12xlarge", 4, 5.2, 5.0),
    ],
)
def test_floor_by_generation_and_lanes(kind, count, good, bad):
    """65 % of 63.0, 31.5, 15.8 and 7.9 GB/s: PCIe 5 and 4 on 16 lanes, 4 and 3 on 8."""
    assert status(judge(host(*[good] * count), instance_type=kind)) is Status.PASS
    findings = judge(host(*[bad] * count), instance_type=kind)
    assert [finding.status for finding in findings] == [Status.FAIL] * count


@pytest.mark.parametrize(
    ("kind", "slow"),
    [
        ("p6-b300.48xlarge", 1.0),
        ("g7e.48xlarge", 3.0),
        ("g5g.metal", 1.0),
        ("p6e-gb200.36xlarge", 30.0),
        ("g6f.large", 0.1),
    ],
)
def test_every_type_has_a_floor_for_host_copies(kind, slow):
    count = resolve(kind).gpu_count
    findings = [f for f in judge(host(*[slow] * count), instance_type=kind) if "host to GPU" in f.message]
    assert [finding.status for finding in findings] == [Status.FAIL] * count


def test_a_link_that_nothing_is_known_of_is_unknown_and_not_a_floor_of_zero():
    unknown = {"gpu_pcie_gen": None}
    findings = judge(host(*[54.0] * 8), instance_type="p5.48xlarge", expected=unknown)
    assert "nothing is known of this link" in next(f for f in findings if f.status is Status.UNKNOWN).message
    assert status(judge(host(*[54.0] * 8), instance_type="p5.48xlarge")) is Status.PASS


def test_one_gpu_slow_to_all_peers_is_named_once():
    cells = {f"c3_{n}": 190.0 for n in range(8) if n != 3} | {f"c{n}_3": 190.0 for n in range(8) if n != 3}
    findings = judge(host(*[54.0] * 8), peers(**cells))
    slow = only(findings, Status.FAIL)
    assert slow.device == {"index": 3}
    assert len(findings) == 1


def test_one_slow_pair_is_named():
    slow = only(judge(host(*[54.0] * 8), peers(c2_5=150.0)), Status.FAIL)
    assert slow.device == {"name": "pair 2-5"}
    assert slow.remedy is Remedy.REBOOT


def test_a_pair_that_cannot_reach_each_other_is_unknown():
    finding = only(judge(host(*[54.0] * 8), peers(c2_5=None)), Status.UNKNOWN)
    assert finding.device == {"name": "pair 2-5"}


def test_nvlink_floor_when_all_are_slow():
    findings = judge(host(*[54.0] * 8), peers(300.0))
    assert [finding.device["index"] for finding in findings] == list(range(8))
    assert {finding.status for finding in findings} == {Status.FAIL}
    assert status(judge(host(*[54.0] * 8), peers(312.0))) is Status.PASS


def test_without_nvswitch_pairs_differ_by_design():
    mesh = peers(22.0, c0_1=44.0, c1_0=44.0, c2_3=8.0, c3_2=8.0)
    assert status(judge(host(*[12.0] * 8), mesh, instance_type="p3dn.24xlarge")) is Status.PASS


def test_peer_copies_waived():
    facts = read("nvbandwidth", "nvbandwidth/l4-v08-waived.txt")
    assert status(judge_facts("gpu_bandwidth", {"nvbandwidth": facts}, "g6.xlarge")) is Status.INFO
    waived = {"name": READ, "status": "Waived", "matrix": []}
    assert status(judge(host(*[54.0] * 8), waived)) is Status.UNKNOWN


def test_data_that_differs_after_the_copy_fails():
    facts = read("nvbandwidth", "nvbandwidth/h100-v08-wrong-data.json")
    finding = only(judge_facts("gpu_bandwidth", {"nvbandwidth": facts}), Status.FAIL)
    assert "pattern" in finding.evidence[0]


@pytest.mark.parametrize(
    "test",
    [
        {"name": H2D, "status": "Running", "matrix": []},
        {"name": READ, "status": "Passed", "matrix": peers()["matrix"][:5]},
        host(*[54.0] * 7, None),
    ],
)
def test_what_was_not_measured_is_unknown(test):
    assert status(judge(test)) is Status.UNKNOWN


@pytest.mark.parametrize("left_out", [H2D, D2H, READ, WRITE])
def test_a_test_that_is_not_there_is_unknown(left_out):
    tests = [test for test in read("nvbandwidth", "nvbandwidth/h100-v08.json")["tests"] if test["name"] != left_out]
    assert status(judge_facts("gpu_bandwidth", {"nvbandwidth": {"tests": tests}})) is Status.UNKNOWN


def test_fewer_gpus_than_the_type_has_are_unknown():
    tests = [host(54.0, 54.0), host(54.0, 54.0, name=D2H)]
    assert status(judge_facts("gpu_bandwidth", {"nvbandwidth": {"tests": tests}}, "g5.12xlarge")) is Status.UNKNOWN


def test_thresholds_above_the_link_are_refused():
    for name in ("min_pcie_percent", "min_nvlink_percent"):
        with pytest.raises(SettingsError, match=f"gpu_bandwidth.{name}"):
            judge(thresholds={f"gpu_bandwidth.{name}": 101})


def test_not_run():
    facts = read("nvbandwidth", "nvbandwidth/v08-error.json")
    assert "NOT_READY" in only(judge_facts("gpu_bandwidth", {"nvbandwidth": facts}), Status.UNKNOWN).message
    assert status(judge_facts("gpu_bandwidth", {}, "trn1.2xlarge")) is Status.SKIP


def test_bidirectional_tests_are_left_alone():
    extra = {"name": "host_to_device_bidirectional_memcpy_ce", "status": "Passed", "matrix": [[18.5] * 8]}
    assert status(judge(host(*[54.0] * 8), extra)) is Status.PASS


def test_a_cuda_error_is_named():
    text = "[CUDA_ERROR_ECC_UNCORRECTABLE] uncorrectable ECC error encountered in expression cuMemcpyAsync"
    findings = judge({"name": "host_to_device_memcpy_ce", "status": "Error", "matrix": [], "error": text})
    named = next(finding for finding in findings if finding.remedy is Remedy.RESET_GPU)
    assert (named.status, named.evidence) == (Status.FAIL, (text,))
    facts = read("nvbandwidth", "nvbandwidth/v08-error.json")
    assert only(judge_facts("gpu_bandwidth", {"nvbandwidth": facts}), Status.FAIL).remedy is Remedy.FIX_CONFIG


def test_wrong_data_between_gpus_is_told_without_a_host_copy():
    wrong = {"name": "device_to_device_memcpy_read_ce", "status": "Error", "matrix": [], "error": "Invalid value"}
    findings = judge_facts("gpu_bandwidth", {"nvbandwidth": {"tests": [wrong]}})
    assert only(findings, Status.FAIL).evidence == ("Invalid value",)
    assert "no host copy" in only(findings, Status.UNKNOWN).message


def test_a_slow_pair_is_named_without_a_host_copy():
    findings = judge_facts("gpu_bandwidth", {"nvbandwidth": {"tests": [peers(c1_0=160.0)]}}, "p5.48xlarge")
    assert only(findings, Status.FAIL).device == {"name": "pair 1-0"}
    assert "no host copy" in only(findings, Status.UNKNOWN).message


@pytest.mark.parametrize(
    ("value", "wanted"), [(90.0, Status.PASS), (89.9, Status.WARN), (70.0, Status.WARN), (69.9, Status.FAIL)]
)
def test_ten_percent_behind_the_others_warns_and_thirty_fails(value, wanted):
    # Far above the floor: only the other GPUs' median of 100 GB/s counts.
    assert status(judge(host(*[100.0] * 7, value), instance_type="g7e.48xlarge")) is wanted


def test_the_floor_is_the_least_that_passes():
    half = {"gpu_bandwidth.min_pcie_percent": 50}  # of 63.008 GB/s, 16 lanes of PCIe 5
    assert status(judge(host(*[31.504] * 8), thresholds=half)) is Status.PASS
    assert status(judge(host(*[31.503] * 8), thresholds=half)) is Status.FAIL


def test_a_gpu_that_was_not_measured_leaves_its_twins_to_be_judged():
    findings = judge(host(*[54.0] * 6, 30.0, None))
    assert only(findings, Status.UNKNOWN).device == {"index": 7}
    assert only(findings, Status.FAIL).device == {"index": 6}


def test_a_gpu_a_little_slower_to_all_peers_than_the_others_warns():
    # 320 GB/s is above the floor of 65 % and 16 % below the others.
    cells = {f"c3_{n}": 320.0 for n in range(8) if n != 3} | {f"c{n}_3": 320.0 for n in range(8) if n != 3}
    (slow,) = judge(host(*[54.0] * 8), peers(**cells))
    assert (slow.status, slow.device, slow.expected) == (Status.WARN, {"index": 3}, 342.0)


@pytest.mark.parametrize(
    ("change", "wanted", "words"),
    [
        ({"status": "Failed"}, Status.FAIL, "says Failed"),
        ({"status": "Error"}, Status.FAIL, "says Error"),
        ({"status": "Running"}, Status.UNKNOWN, "says Running"),
        ({"status": "Running", "error": "Invalid value"}, Status.FAIL, "says Running"),
        ({"status": None}, Status.UNKNOWN, "says nothing"),
        ({"matrix": []}, Status.UNKNOWN, "says Passed"),
    ],
)
def test_a_test_that_did_not_pass_is_told_by_its_status(change, wanted, words):
    finding = only(judge({**host(*[54.0] * 8), **change}), wanted)
    assert words in finding.message


def test_measures_have_names_that_a_record_takes():
    measures = {}
    judge(host(*[54.0] * 8), measures=measures)
    assert {"bandwidth_host_to_gpu", "bandwidth_gpu_to_host", "bandwidth_read_from_peer"} <= set(measures)
    assert all(name.isascii() and name == name.lower() and " " not in name for name in measures)
