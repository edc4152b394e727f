"""gpu_bandwidth: floors by PCIe and NVLink, a slow GPU or pair among its twins, waived and failed tests."""

import pytest

from flightline_node.know.expected import resolve
from flightline_node.model import Remedy, SettingsError
from tests.harness import only, status
from tests.unit.parsers.hosttools import read

from .table import FAIL, INFO, PASS, SKIP, UNKNOWN, WARN, judging, row, table

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
    count = resolve(instance_type).gpu_count or 0
    others = [host(*[54.0] * count, name=name) for name in (H2D, D2H)]
    others += [{**peers(count=count), "name": name} for name in (READ, WRITE)]
    everything = [*tests, *(test for test in others if test["name"] not in given)]
    return judging("gpu_bandwidth", {"nvbandwidth": {"tests": everything}}, instance_type, **more)


test_gpu_bandwidth = table(
    *(row("good nodes pass", judging("gpu_bandwidth", {"nvbandwidth": read("nvbandwidth", f"nvbandwidth/{fixture}")},
        kind), PASS, alone=True, says="read from peer")
        for fixture, kind in (("a100-v04.txt", "p4d.24xlarge"), ("h100-v08.json", "p5.48xlarge"))),
    # 65 % of 63.0, 31.5, 15.8 and 7.9 GB/s: PCIe 5 and 4 on 16 lanes, 4 and 3 on 8.
    *(each
        for kind, count, good, bad in [
            ("p5.48xlarge", 8, 41.1, 40.8), ("p4d.24xlarge", 8, 20.6, 20.3), ("g5.12xlarge", 4, 10.3, 10.1),
            ("g4dn.12xlarge", 4, 5.2, 5.0),
        ]
        for each in (
        row("floor by generation and lanes", judge(host(*[good] * count), instance_type=kind), PASS),
        row("floor by generation and lanes", judge(host(*[bad] * count), instance_type=kind), FAIL,
            statuses=(FAIL,) * count),
    )),
    *(row("every type has a floor for host copies",
        [f for f in judge(host(*[slow] * (resolve(kind).gpu_count or 0)), instance_type=kind) if "host to GPU" in f.message],
        FAIL, statuses=(FAIL,) * (resolve(kind).gpu_count or 0))
        for kind, slow in [
            ("p6-b300.48xlarge", 1.0), ("g7e.48xlarge", 3.0), ("g5g.metal", 1.0), ("p6e-gb200.36xlarge", 30.0),
            ("g6f.large", 0.1),
        ]),
    row("one GPU slow to all peers is named once",
        judge(host(*[54.0] * 8),
        peers(**({f"c3_{n}": 190.0 for n in range(8) if n != 3} | {f"c{n}_3": 190.0 for n in range(8) if n != 3}))),
        FAIL, alone=True, device={"index": 3}),
    row("one slow pair is named", judge(host(*[54.0] * 8), peers(c2_5=150.0)), FAIL, device={"name": "pair 2-5"},
        remedy=Remedy.REBOOT),
    row("a pair that cannot reach each other is unknown", judge(host(*[54.0] * 8), peers(c2_5=None)), UNKNOWN,
        device={"name": "pair 2-5"}),
    row("without NVSwitch pairs differ by design",
        judge(host(*[12.0] * 8), peers(22.0, c0_1=44.0, c1_0=44.0, c2_3=8.0, c3_2=8.0), instance_type="p3dn.24xlarge"),
        PASS),
    row("peer copies waived", judging("gpu_bandwidth",
        {"nvbandwidth": read("nvbandwidth", "nvbandwidth/l4-v08-waived.txt")}, "g6.xlarge"), INFO),
    row("peer copies waived", judge(host(*[54.0] * 8), {"name": READ, "status": "Waived", "matrix": []}), UNKNOWN),
    row("data that differs after the copy fails",
        judging("gpu_bandwidth", {"nvbandwidth": read("nvbandwidth", "nvbandwidth/h100-v08-wrong-data.json")}), FAIL,
        shows="pattern"),
    *(row("what was not measured is unknown", judge(test), UNKNOWN)
        for test in [
            {"name": H2D, "status": "Running", "matrix": []},
            {"name": READ, "status": "Passed", "matrix": peers()["matrix"][:5]},
            host(*[54.0] * 7, None),
        ]),
    *(row("a test that is not there is unknown",
        judging("gpu_bandwidth",
        {"nvbandwidth": {"tests": [test
        for test in read("nvbandwidth", "nvbandwidth/h100-v08.json")["tests"] if test["name"] != left_out]}}), UNKNOWN)
        for left_out in [H2D, D2H, READ, WRITE]),
    row("fewer GPUs than the type has are unknown",
        judging("gpu_bandwidth", {"nvbandwidth": {"tests": [host(54.0, 54.0), host(54.0, 54.0, name=D2H)]}},
        "g5.12xlarge"), UNKNOWN),
    row("not run", judging("gpu_bandwidth", {"nvbandwidth": read("nvbandwidth", "nvbandwidth/v08-error.json")}),
        FAIL).also(UNKNOWN, says="NOT_READY"),
    row("not run", judging("gpu_bandwidth", {}, "trn1.2xlarge"), SKIP),
    row("bidirectional tests are left alone",
        judge(host(*[54.0] * 8),
        {"name": "host_to_device_bidirectional_memcpy_ce", "status": "Passed", "matrix": [[18.5] * 8]}), PASS),
    row("wrong data between GPUs is told without a host copy",
        judging("gpu_bandwidth",
        {"nvbandwidth": {"tests": [{"name": "device_to_device_memcpy_read_ce", "status": "Error", "matrix": [],
        "error": "Invalid value"}]}}), FAIL, evidence=("Invalid value",)).also(UNKNOWN, says="no host copy"),
    row("a slow pair is named without a host copy",
        judging("gpu_bandwidth", {"nvbandwidth": {"tests": [peers(c1_0=160.0)]}}, "p5.48xlarge"), FAIL,
        device={"name": "pair 1-0"}).also(UNKNOWN, says="no host copy"),
    # Far above the floor: only the other GPUs' median of 100 GB/s counts.
    *(row("ten percent behind the others warns and thirty fails",
        judge(host(*[100.0] * 7, value), instance_type="g7e.48xlarge"), wanted)
        for value, wanted in [(90.0, PASS), (89.9, WARN), (70.0, WARN), (69.9, FAIL)]),
    # of 63.008 GB/s, 16 lanes of PCIe 5
    row("the floor is the least that passes",
        judge(host(*[31.504] * 8), thresholds={"gpu_bandwidth.min_pcie_percent": 50}), PASS),
    row("the floor is the least that passes",
        judge(host(*[31.503] * 8), thresholds={"gpu_bandwidth.min_pcie_percent": 50}), FAIL),
    row("a GPU that was not measured leaves its twins to be judged", judge(host(*[54.0] * 6, 30.0, None)), FAIL,
        device={"index": 6}).also(UNKNOWN, device={"index": 7}),
    # 320 GB/s is above the floor of 65 % and 16 % below the others.
    row("a GPU a little slower to all peers than the others warns",
        judge(host(*[54.0] * 8),
        peers(**({f"c3_{n}": 320.0 for n in range(8) if n != 3} | {f"c{n}_3": 320.0 for n in range(8) if n != 3}))),
        WARN, alone=True, device={"index": 3}, expected=342.0),
    *(row("a test that did not pass is told by its status", judge({**host(*[54.0] * 8), **change}), wanted, says=words)
        for change, wanted, words in (
            ({"status": "Failed"}, FAIL, "says Failed"),
            ({"status": "Error"}, FAIL, "says Error"),
            ({"status": "Running"}, UNKNOWN, "says Running"),
            ({"status": "Running", "error": "Invalid value"}, FAIL, "says Running"),
            ({"status": None}, UNKNOWN, "says nothing"),
            ({"matrix": []}, UNKNOWN, "says Passed"),
        )),
)  # fmt: skip


@pytest.mark.parametrize(("value", "wanted"), [(50, None), (48, WARN), (41.1, WARN), (40.9, FAIL)])
def test_one_slow_host_copy(value, wanted):
    findings = judge(host(*[54.5] * 7, value))
    if wanted is None:
        assert status(findings) is PASS
        return
    slow = only(findings, wanted)
    assert (slow.device, slow.measured, slow.unit) == ({"index": 7}, value, "GB/s")
    assert slow.remedy is (Remedy.REBOOT if wanted is FAIL else Remedy.INVESTIGATE)


def test_a_link_that_nothing_is_known_of_is_unknown_and_not_a_floor_of_zero():
    unknown = {"gpu_pcie_gen": None}
    findings = judge(host(*[54.0] * 8), instance_type="p5.48xlarge", expected=unknown)
    assert "nothing is known of this link" in next(f for f in findings if f.status is UNKNOWN).message
    assert status(judge(host(*[54.0] * 8), instance_type="p5.48xlarge")) is PASS


def test_nvlink_floor_when_all_are_slow():
    findings = judge(host(*[54.0] * 8), peers(300.0))
    assert [finding.device["index"] for finding in findings] == list(range(8))
    assert {finding.status for finding in findings} == {FAIL}
    assert status(judge(host(*[54.0] * 8), peers(312.0))) is PASS


def test_thresholds_above_the_link_are_refused():
    for name in ("min_pcie_percent", "min_nvlink_percent"):
        with pytest.raises(SettingsError, match=f"gpu_bandwidth.{name}"):
            list(judge(thresholds={f"gpu_bandwidth.{name}": 101}))


def test_a_cuda_error_is_named():
    text = "[CUDA_ERROR_ECC_UNCORRECTABLE] uncorrectable ECC error encountered in expression cuMemcpyAsync"
    findings = judge({"name": "host_to_device_memcpy_ce", "status": "Error", "matrix": [], "error": text})
    named = next(finding for finding in findings if finding.remedy is Remedy.RESET_GPU)
    assert (named.status, named.evidence) == (FAIL, (text,))
    facts = read("nvbandwidth", "nvbandwidth/v08-error.json")
    assert only(judging("gpu_bandwidth", {"nvbandwidth": facts}), FAIL).remedy is Remedy.FIX_CONFIG


def test_measures_have_names_that_a_record_takes():
    measures = {}
    list(judge(host(*[54.0] * 8), measures=measures))
    assert {"bandwidth_host_to_gpu", "bandwidth_gpu_to_host", "bandwidth_read_from_peer"} <= set(measures)
    assert all(name.isascii() and name == name.lower() and " " not in name for name in measures)
