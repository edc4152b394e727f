"""nccl_transport: EFA or not, told by what NCCL itself printed."""

import pytest

from flightline_node.model import Remedy, Status
from flightline_node.parsers import nccl_debug
from tests.harness import BROKEN, FIXTURES, judge_facts, only, status

EFA = {"info_lines": 9, "network": "AWS Libfabric", "provider": "efa", "gdrdma": True, "warnings": []}


def judge(facts, instance_type="p5.48xlarge"):
    return judge_facts("nccl_transport", {"nccl_debug": facts}, instance_type)


def fixture(name):
    return nccl_debug.parse({"nccl-debug.log": (FIXTURES / "nccl_debug" / name).read_bytes()})


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({}, Status.PASS),
        ({"network": "Libfabric", "gdrdma": None}, Status.PASS),
        ({"network": "Socket"}, Status.FAIL),
        ({"network": "IB"}, Status.FAIL),
        ({"transports": {"NET/Socket": 2}}, Status.FAIL),
        ({"provider": "tcp;ofi_rxm"}, Status.FAIL),
        ({"provider": None, "gdrdma": None}, Status.UNKNOWN),
        ({"provider": None}, Status.PASS),
        ({"network": None, "provider": None, "gdrdma": None}, Status.SKIP),
        ({"info_lines": 0}, Status.SKIP),
        ({"gdrdma": False}, Status.WARN),
        ({"warnings": ["socketProgress: Connection closed"]}, Status.INFO),
        (
            {"warnings": ["NET/OFI Request 0x7f completed with error. RC: 21. Error: 4104 (unreachable remote)"]},
            Status.WARN,
        ),
        ({"warnings": ["NET/OFI Request 0x7f completed with error. Unresponsive receiver"]}, Status.WARN),
    ],
)
def test_facts(change, wanted):
    assert status(judge({**EFA, **change})) is wanted


@pytest.mark.parametrize(
    ("name", "instance_type", "wanted"),
    [
        ("p4d-2node-efa.log", "p4d.24xlarge", Status.PASS),
        ("p5-socket-fallback.log", "p5.48xlarge", Status.FAIL),
        ("p5en-direct-warning.log", "p5en.48xlarge", Status.WARN),
        ("p5-socket-fallback.log", "p6e-gb200.36xlarge", Status.FAIL),
        ("p5-socket-fallback.log", "g4dn.xlarge", Status.SKIP),
        ("p5-socket-fallback.log", "none", Status.SKIP),
    ],
)
def test_whole_logs(name, instance_type, wanted):
    assert status(judge(fixture(name), instance_type)) is wanted


def test_fallback_shows_why():
    finding = only(judge(fixture("p5-socket-fallback.log")), Status.FAIL)
    assert finding.remedy is Remedy.FIX_CONFIG
    assert any("No plugin found" in line for line in finding.evidence)


def test_host_memory_is_normal_without_nvswitch():
    assert status(judge({**EFA, "gdrdma": False}, "g6e.48xlarge")) is Status.PASS


def test_unreadable_and_missing():
    assert status(judge(BROKEN)) is Status.UNKNOWN
    assert status(judge_facts("nccl_transport", {}, required=False)) is Status.SKIP


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("Cuda failure 214 'uncorrectable ECC error encountered'", Remedy.RESET_GPU),
        ("Cuda failure 'uncorrectable NVLink error detected during the execution'", Remedy.RESET_GPU),
        ("Cuda failure 802 'system not yet initialized'", Remedy.FIX_CONFIG),
    ],
)
def test_a_hardware_error_in_a_warning_fails(text, remedy):
    facts = {"info_lines": 3, "network": "AWS Libfabric", "provider": "efa", "gdrdma": True, "warnings": [text]}
    finding = only(judge_facts("nccl_transport", {"nccl_debug": facts}), Status.FAIL)
    assert (finding.remedy, finding.evidence) == (remedy, (text,))
    facts["warnings"] = ["Cuda failure 'an illegal memory access was encountered'"]
    assert not [f for f in judge_facts("nccl_transport", {"nccl_debug": facts}) if f.status is Status.FAIL]


@pytest.mark.parametrize(
    ("change", "wanted", "remedy"),
    [
        ({"warnings": ["NET/OFI Couldn't open CQ. RC: -22, ERROR: Invalid argument"]}, Status.FAIL, Remedy.FIX_CONFIG),
        ({"warnings": ["NET/OFI Couldn't enable endpoint. RC: -12"]}, Status.FAIL, Remedy.FIX_CONFIG),
        ({"warnings": ["NET/OFI aws-ofi-nccl initialization failed"]}, Status.FAIL, Remedy.FIX_CONFIG),
        ({"warnings": ["NET/OFI Unable to register memory (type = 1) for device 0"]}, Status.WARN, Remedy.FIX_CONFIG),
        ({"warnings": ["Error: failed to extend /dev/shm/nccl-a to 9 bytes"]}, Status.WARN, Remedy.FIX_CONFIG),
        (
            {"warnings": ["NET/OFI Unable to insert remote address into address vector"]},
            Status.WARN,
            Remedy.INVESTIGATE,
        ),
        ({"warnings": ["nvmlDeviceGetHandleByIndex(5) failed: GPU is lost"]}, Status.FAIL, Remedy.REBOOT),
        ({"failures": ["Test CUDA failure 'uncorrectable ECC error encountered'"]}, Status.FAIL, Remedy.RESET_GPU),
    ],
)
def test_what_goes_wrong_beside_the_efa_provider(change, wanted, remedy):
    finding = only(judge({**EFA, **change}), wanted)
    assert (finding.remedy, finding.evidence) == (remedy, tuple(next(iter(change.values()))))


@pytest.mark.parametrize("text", ["Error: network AWS Libfabric not found.", "Failed to initialize any NET plugin"])
def test_no_network_at_all_fails_unless_one_is_used(text):
    none = {"info_lines": 9, "gdrdma": None, "warnings": [text]}
    assert only(judge(none), Status.FAIL).remedy is Remedy.FIX_CONFIG
    assert only(judge({"info_lines": 0, "warnings": [], "failures": [text]}), Status.FAIL)
    assert status(judge({**EFA, "warnings": [text]})) is Status.INFO
    assert status(judge(none, "none")) is Status.SKIP
    assert "uses Socket" in only(judge({**none, "network": "Socket"}), Status.FAIL).message


def test_one_protocol_without_a_provider_where_the_other_has_one():
    assert status(judge({**EFA, "warnings": ["NET/OFI No eligible providers were found"]})) is Status.INFO


def test_a_failed_request_names_the_peer():
    line = "efa:cq:efa_rdm_txe_handle_error():737<warn> err: 5, message: Invalid address "
    line += "My host id: i-0aaaaaaaaaaaaaaaa Peer host id: i-0bbbbbbbbbbbbbbbb (7)"
    finding = only(judge({**EFA, "failures": [line]}), Status.WARN)
    assert ("i-0bbbbbbbbbbbbbbbb" in finding.message, "i-0aaaaaaaaaaaaaaaa" in finding.message) == (True, False)
    assert list(finding.evidence) == [line]
