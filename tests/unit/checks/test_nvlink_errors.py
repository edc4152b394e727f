"""nvlink_errors: old and Blackwell counters, healthy large values, unreadable ones."""

from tests.harness import only, status

from . import gpus
from .table import FAIL, PASS, REBOOT, RESET_GPU, SKIP, UNKNOWN, WARN, changed, judging, row, table

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
    return judging("nvlink_errors", facts, instance_type)


HOPPER = {"replay_errors": 0, "recovery_errors": 0, "crc_errors": 0}
DARK = "NVML: Unable to retrieve NVLink errors for link 4 - inActive"


test_nvlink_errors = table(
    *(row("healthy", judge(counters), PASS, message="no NVLink errors on 8 GPUs")
        for counters in [BLACKWELL, HOPPER, {"Replay Errors": 0, "Recovery Errors": 0, "CRC Errors": 0}]),
    *(row("counters", judge(counters, **changed), wanted, index=4)
        for counters, changed, wanted in (
            (BLACKWELL, {"link_recovery_failed_events": 1}, FAIL),
            (BLACKWELL, {"link_recovery_successful_events": 1, "total_link_recovery_events": 1}, WARN),
            (BLACKWELL, {"rx_errors": 50}, WARN),
            (BLACKWELL, {"tx_discards": 5}, WARN),
            (BLACKWELL, {"symbol_errors": 2}, WARN),
            (BLACKWELL, {"effective_ber": 1.1e-6}, WARN),
            (HOPPER, {"recovery_errors": 1}, FAIL),
            (HOPPER, {"replay_errors": 3}, WARN),
            (HOPPER, {"crc_errors": 12}, WARN),
            (HOPPER, {"crc_errors": "ERR!"}, UNKNOWN),
            (HOPPER, {"recovery_errors": "ERR!"}, UNKNOWN),
        )),
    *(row("counters", judge(counters, **changed), wanted)
        for counters, changed, wanted in (
            (BLACKWELL, {"effective_ber": 1e-6}, PASS),
            (BLACKWELL, {"fec_errors_0": 10**15, "raw_errors": 10**9}, PASS),
        )),
    row("name as printed", judge({"Link recovery failed events": 0}, **{"Link recovery failed events": 1}), FAIL),
    row("no GPU and no NVLink", judging("nvlink_errors", gpus.nvlink(count=0)), UNKNOWN),
    row("no GPU and no NVLink", judging("nvlink_errors", gpus.nvlink(), "g5.48xlarge"), SKIP),
    # 17 links: nvlink_links says so
    row("a link that is down among the counters fails",
        judging("nvlink_errors", changed(gpus.nvlink(**HOPPER), {"nvlink.gpus.2.errors_inactive": [DARK]})), FAIL,
        index=2, remedy=REBOOT, evidence=(DARK,)),
    row("a link that is down among the counters fails",
        judging("nvlink_errors",
        changed(gpus.nvlink(**HOPPER), {"nvlink.gpus.2.errors_inactive": [DARK], "nvlink.gpus.2.links": 17})), PASS),
    *(each
        for facts in [{"nvlink": {"gpus": [], "errors": ["No NVLink devices found."], "files": ["nvlink-errors.txt"]}}]
        for each in (
        row("no NVLink devices", judging("nvlink_errors", facts), UNKNOWN),
        row("no NVLink devices", judging("nvlink_errors", facts, "none"), SKIP),
    )),
)  # fmt: skip


def test_lost_links_need_a_reset():
    finding = only(judge(HOPPER, recovery_errors=2), FAIL)
    assert finding.remedy is RESET_GPU
    assert "recovery_errors: 2" in finding.evidence


def test_no_counters():
    facts = gpus.nvlink()
    facts["nvlink"]["gpus"][0]["errors"] = None
    assert only(judging("nvlink_errors", facts), UNKNOWN).device["index"] == 0
    for gpu in facts["nvlink"]["gpus"]:
        del gpu["errors"]
    assert status(judging("nvlink_errors", facts)) is SKIP
    facts["nvlink"]["errors"] = ["nvlink-errors.txt: empty output"]
    assert status(judging("nvlink_errors", facts)) is UNKNOWN


def test_a_message_of_the_status_says_nothing_of_counters_that_were_not_collected():
    facts = gpus.nvlink()
    for gpu in facts["nvlink"]["gpus"]:
        del gpu["errors"]
    facts["nvlink"]["gpus"][3]["message"] = "NVML: Unable to retrieve NVLink information as all links are inActive"
    facts["nvlink"]["files"] = ["nvlink-status.txt"]
    assert only(judging("nvlink_errors", facts), SKIP)
    facts["nvlink"]["files"] = ["nvlink-errors.txt", "nvlink-status.txt"]
    assert status(judging("nvlink_errors", facts)) is UNKNOWN


def test_a_gpu_with_all_links_down_has_a_message_for_counters():
    facts = gpus.nvlink(**HOPPER)
    gpu = facts["nvlink"]["gpus"][2]
    del gpu["errors"], gpu["links"]
    gpu["errors_inactive"] = ["NVML: Unable to retrieve NVLink errors as all links are inActive"]
    for kind, wanted, links in (("p5.48xlarge", FAIL, "18"), ("none", WARN, "all")):
        (finding,) = judging("nvlink_errors", facts, kind)
        assert (finding.status, finding.device["index"]) == (wanted, 2)
        assert finding.message.endswith(f"wanted {links} active")
    for gpu in facts["nvlink"]["gpus"]:  # cards without a bridge: no NVLink in use anywhere
        gpu.pop("errors", None)
        gpu["errors_inactive"] = ["NVML: Unable to retrieve NVLink errors as all links are inActive"]
    assert only(judging("nvlink_errors", facts, "none"), SKIP)
