"""nvlink_errors: old and Blackwell counters, healthy large values, unreadable ones."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status

from . import gpus

BLACKWELL = {
    "tx_packets": 903_114_552_101,
    "rx_packets": 903_114_552_099,
    "tx_bytes": 1_234_567_890_123,
    "malformed_packet_errors": 0,
    "buffer_overrun_errors": 0,
    "rx_errors": 0,
    "rx_remote_errors": 0,
    "rx_general_errors": 0,
    "local_link_integrity_errors": 0,
    "tx_discards": 0,
    "link_recovery_successful_events": 0,
    "link_recovery_failed_events": 0,
    "total_link_recovery_events": 0,
    "effective_errors": 0,
    "effective_ber": 15e-255,
    "symbol_errors": 0,
    "symbol_ber": 15e-255,
    "fec_errors_0": 36_140_749_276,
    "fec_errors_1": 1204,
    "fec_errors_15": 0,
    "raw_errors": 52_031,
    "raw_ber": 3e-12,
    "raw_errors_lane_0": 52_031,
    "plr_xmit_blocks": 1_234_567_890,
}


def judge(counters, instance_type="p6-b200.48xlarge", index=4, **changed):
    facts = gpus.nvlink(**counters)
    facts["nvlink"]["gpus"][index]["errors"].update(changed)
    return judge_facts("nvlink_errors", facts, instance_type)


HOPPER = {"replay_errors": 0, "recovery_errors": 0, "crc_errors": 0}


@pytest.mark.parametrize("counters", [BLACKWELL, HOPPER, {"Replay Errors": 0, "Recovery Errors": 0, "CRC Errors": 0}])
def test_healthy(counters):
    assert only(judge(counters), Status.PASS).message == "no NVLink errors on 8 GPUs"


@pytest.mark.parametrize(
    ("counters", "changed", "wanted"),
    [
        (BLACKWELL, {"link_recovery_failed_events": 1}, Status.FAIL),
        (BLACKWELL, {"link_recovery_successful_events": 1, "total_link_recovery_events": 1}, Status.WARN),
        (BLACKWELL, {"rx_errors": 50}, Status.WARN),
        (BLACKWELL, {"tx_discards": 5}, Status.WARN),
        (BLACKWELL, {"symbol_errors": 2}, Status.WARN),
        (BLACKWELL, {"effective_ber": 1e-6}, Status.PASS),
        (BLACKWELL, {"effective_ber": 1.1e-6}, Status.WARN),
        (BLACKWELL, {"fec_errors_0": 10**15, "raw_errors": 10**9}, Status.PASS),
        (HOPPER, {"recovery_errors": 1}, Status.FAIL),
        (HOPPER, {"replay_errors": 3}, Status.WARN),
        (HOPPER, {"crc_errors": 12}, Status.WARN),
        (HOPPER, {"crc_errors": "ERR!"}, Status.UNKNOWN),
        (HOPPER, {"recovery_errors": "ERR!"}, Status.UNKNOWN),
    ],
)
def test_counters(counters, changed, wanted):
    findings = judge(counters, **changed)
    assert status(findings) is wanted
    if wanted is not Status.PASS:
        assert only(findings, wanted).device["index"] == 4


def test_lost_links_need_a_reset():
    finding = only(judge(HOPPER, recovery_errors=2), Status.FAIL)
    assert finding.remedy is Remedy.RESET_GPU
    assert "recovery_errors: 2" in finding.evidence


def test_name_as_printed():
    assert status(judge({"Link recovery failed events": 0}, **{"Link recovery failed events": 1})) is Status.FAIL


def test_no_counters():
    facts = gpus.nvlink()
    facts["nvlink"]["gpus"][0]["errors"] = None
    assert only(judge_facts("nvlink_errors", facts), Status.UNKNOWN).device["index"] == 0
    for gpu in facts["nvlink"]["gpus"]:
        del gpu["errors"]
    assert status(judge_facts("nvlink_errors", facts)) is Status.SKIP
    facts["nvlink"]["errors"] = ["nvlink-errors.txt: empty output"]
    assert status(judge_facts("nvlink_errors", facts)) is Status.UNKNOWN


def test_no_gpu_and_no_nvlink():
    assert status(judge_facts("nvlink_errors", gpus.nvlink(count=0))) is Status.UNKNOWN
    assert status(judge_facts("nvlink_errors", gpus.nvlink(), "g5.48xlarge")) is Status.SKIP


def test_a_message_of_the_status_says_nothing_of_counters_that_were_not_collected():
    facts = gpus.nvlink()
    for gpu in facts["nvlink"]["gpus"]:
        del gpu["errors"]
    facts["nvlink"]["gpus"][3]["message"] = "NVML: Unable to retrieve NVLink information as all links are inActive"
    facts["nvlink"]["files"] = ["nvlink-status.txt"]
    assert only(judge_facts("nvlink_errors", facts), Status.SKIP)
    facts["nvlink"]["files"] = ["nvlink-errors.txt", "nvlink-status.txt"]
    assert status(judge_facts("nvlink_errors", facts)) is Status.UNKNOWN


DARK = "NVML: Unable to retrieve NVLink errors for link 4 - inActive"


def test_a_link_that_is_down_among_the_counters_fails():
    facts = gpus.nvlink(**HOPPER)
    facts["nvlink"]["gpus"][2]["errors_inactive"] = [DARK]
    finding = only(judge_facts("nvlink_errors", facts), Status.FAIL)
    assert (finding.device["index"], finding.remedy, finding.evidence) == (2, Remedy.REBOOT, (DARK,))
    facts["nvlink"]["gpus"][2]["links"] = 17  # nvlink_links says so
    assert status(judge_facts("nvlink_errors", facts)) is Status.PASS


def test_a_gpu_with_all_links_down_has_a_message_for_counters():
    facts = gpus.nvlink(**HOPPER)
    gpu = facts["nvlink"]["gpus"][2]
    del gpu["errors"], gpu["links"]
    gpu["errors_inactive"] = ["NVML: Unable to retrieve NVLink errors as all links are inActive"]
    for kind, wanted, links in (("p5.48xlarge", Status.FAIL, "18"), ("none", Status.WARN, "all")):
        (finding,) = judge_facts("nvlink_errors", facts, kind)
        assert (finding.status, finding.device["index"]) == (wanted, 2)
        assert finding.message.endswith(f"wanted {links} active")
    for gpu in facts["nvlink"]["gpus"]:  # cards without a bridge: no NVLink in use anywhere
        gpu.pop("errors", None)
        gpu["errors_inactive"] = ["NVML: Unable to retrieve NVLink errors as all links are inActive"]
    assert only(judge_facts("nvlink_errors", facts, "none"), Status.SKIP)


def test_no_nvlink_devices():
    facts = {"nvlink": {"gpus": [], "errors": ["No NVLink devices found."], "files": ["nvlink-errors.txt"]}}
    assert status(judge_facts("nvlink_errors", facts)) is Status.UNKNOWN
    assert status(judge_facts("nvlink_errors", facts, "none")) is Status.SKIP
