"""nvlink_links: links missing, inactive or slow, against the type and without one."""

import pytest

from flightline_node.model import BLOCKING, Remedy, Status
from flightline_node.read.parsers import nvlink
from tests.harness import judge_facts, only, status

from . import gpus


def change(index, **values):
    facts = gpus.nvlink()
    facts["nvlink"]["gpus"][index].update(values)
    return facts


def test_all_up():
    assert only(judge_facts("nvlink_links", gpus.nvlink()), Status.PASS).message == (
        "18 NVLinks per GPU active at 26.562 GB/s each"
    )


@pytest.mark.parametrize(
    ("instance_type", "links", "speed"),
    [
        ("p3dn.24xlarge", 6, 25.781),
        ("p4d.24xlarge", 12, 25.0),
        ("p6-b200.48xlarge", 18, 53.125),
        ("p6-b300.48xlarge", 18, 50.0 * 1.0625),
        ("none", 4, 14.062),
    ],
)
def test_healthy_types(instance_type, links, speed):
    assert status(judge_facts("nvlink_links", gpus.nvlink(links=links, speed=speed), instance_type)) is Status.PASS


@pytest.mark.parametrize(
    "values",
    [
        {"links": 17, "inactive": 1, "link_speeds": [26.562] * 17},
        {"links": 18, "inactive": 1},
        {"links": 17, "inactive": 0, "link_speeds": [26.562] * 17},
        {"links": 0, "inactive": 0, "link_speeds": [], "speed_gb_s": None},
    ],
)
def test_a_link_down_fails(values):
    finding = only(judge_facts("nvlink_links", change(3, **values)), Status.FAIL)
    assert (finding.device["index"], finding.expected, finding.remedy) == (3, 18, Remedy.REBOOT)


def test_one_dark_gpu_is_told_once_and_is_no_matter_of_the_fabric_manager():
    """NVLink 5, one GPU after Xid 149: its links are all down, its peers' are up."""
    dark = "NVML: Unable to retrieve NVLink information as all links are inActive"
    facts = change(3, links=0, inactive=0, link_speeds=[], speed_gb_s=None, message=dark)
    facts["nvlink"]["errors"] = [dark]
    finding = only(judge_facts("nvlink_links", facts), Status.FAIL)
    assert (finding.device["index"], finding.remedy, finding.evidence) == (3, Remedy.REBOOT, (dark,))


def test_no_link_anywhere_points_to_the_fabric_manager():
    facts = gpus.nvlink(links=0)
    for gpu in facts["nvlink"]["gpus"]:
        gpu["message"] = "NVML: Unable to retrieve NVLink information as all links are inActive"
    findings = judge_facts("nvlink_links", facts)
    assert [(finding.status, finding.remedy) for finding in findings] == [(Status.FAIL, Remedy.FIX_CONFIG)] * 8
    assert "inActive" in findings[0].evidence[0]


def test_slow_link_fails():
    finding = only(judge_facts("nvlink_links", change(1, link_speeds=[26.562] * 17 + [13.281])), Status.FAIL)
    assert (finding.device["index"], finding.measured, finding.expected) == (1, 13.281, 26.562)


def test_without_a_type_uneven_links_warn():
    facts = gpus.nvlink(count=3, links=4, speed=14.062)
    facts["nvlink"]["gpus"][2].update(links=0, link_speeds=[], speed_gb_s=None)
    finding = only(judge_facts("nvlink_links", facts, "none"), Status.WARN)
    assert finding.device["index"] == 2
    assert status(judge_facts("nvlink_links", gpus.nvlink(links=0), "none")) is Status.SKIP


@pytest.mark.parametrize(
    "values", [{"links": "ERR!"}, {"links": None}, {"inactive": "ERR!"}, {"link_speeds": ["ERR!"]}]
)
def test_unreadable_is_unknown(values):
    assert only(judge_facts("nvlink_links", change(0, **values)), Status.UNKNOWN).device["index"] == 0


def test_gpu_without_status_is_unknown():
    measures = {}
    short = judge_facts("nvlink_links", gpus.nvlink(count=7), measures=measures)
    assert only(short, Status.UNKNOWN).measured == len(measures["nvlink_links"]["values"]) == 7
    assert status(judge_facts("nvlink_links", gpus.nvlink(count=0))) is Status.UNKNOWN


def test_messages_of_the_tool():
    facts = gpus.nvlink()
    facts["nvlink"]["errors"] = ["NVML: Driver Not Loaded"]
    assert status(judge_facts("nvlink_links", facts)) is Status.UNKNOWN
    facts["nvlink"]["errors"] = ["nvlink-errors.txt: empty output"]
    assert status(judge_facts("nvlink_links", facts)) is Status.PASS


def test_only_counters_collected():
    facts = {"nvlink": {"gpus": [{"index": 0, "errors": {}}], "errors": []}}
    assert status(judge_facts("nvlink_links", facts)) is Status.SKIP
    facts["nvlink"]["errors"] = ["nvlink-status.txt: empty output"]
    assert status(judge_facts("nvlink_links", facts)) is Status.UNKNOWN


def test_type_without_nvlink():
    assert status(judge_facts("nvlink_links", gpus.nvlink(links=0), "g5.48xlarge")) is Status.SKIP
    assert status(judge_facts("nvlink_links", gpus.nvlink(count=1, links=0), "p5.4xlarge")) is Status.SKIP


def test_an_output_cut_off_within_a_gpu_is_unknown_and_no_lost_link():
    facts = {"gpus": [{"index": n, "links": 18 if n < 3 else 4, "inactive": 0, "speed_gb_s": 26.562} for n in range(4)]}
    assert "4 of 8 GPUs" in only(judge_facts("nvlink_links", {"nvlink": facts}), Status.UNKNOWN).message
    assert status(judge_facts("nvlink_links", {"nvlink": facts})) is Status.UNKNOWN
    facts["gpus"][3]["inactive"] = 1
    assert status(judge_facts("nvlink_links", {"nvlink": facts})) is Status.FAIL


DARK = "NVML: Unable to retrieve NVLink information as all links are inActive"


@pytest.mark.parametrize(("speed", "wanted"), [(95.0, Status.PASS), (94.9, Status.FAIL)])
def test_five_percent_less_speed_is_accepted(speed, wanted):
    facts = gpus.nvlink(speed=100.0)
    facts["nvlink"]["gpus"][1].update(link_speeds=[100.0] * 17 + [speed])
    assert status(judge_facts("nvlink_links", facts, expected={"nvlink_gb_s_per_link": 100.0})) is wanted


def test_without_a_type_a_slower_link_warns_too():
    finding = only(judge_facts("nvlink_links", change(1, link_speeds=[26.562] * 17 + [13.281]), "none"), Status.WARN)
    assert (finding.device["index"], finding.measured, finding.remedy) == (1, 13.281, Remedy.INVESTIGATE)


def test_a_message_that_no_gpu_has_fails_the_node():
    facts = gpus.nvlink()
    facts["nvlink"]["errors"] = [DARK]
    finding = only(judge_facts("nvlink_links", facts), Status.FAIL)
    assert (finding.device, finding.remedy, finding.evidence) == ({}, Remedy.FIX_CONFIG, (DARK,))


def test_a_message_other_than_dark_links_is_unknown_whoever_has_it():
    facts = change(3, message="NVML: Driver Not Loaded")
    facts["nvlink"]["errors"] = ["NVML: Driver Not Loaded"]
    assert only(judge_facts("nvlink_links", facts), Status.UNKNOWN).evidence == ("NVML: Driver Not Loaded",)


def test_the_last_gpu_of_a_whole_output_is_not_cut_off():
    finding = only(judge_facts("nvlink_links", change(7, links=17, link_speeds=[26.562] * 17)), Status.FAIL)
    assert finding.device["index"] == 7


def test_an_output_that_ends_at_a_gpus_name_says_nothing_of_its_links():
    facts = gpus.nvlink(count=4)
    facts["nvlink"]["gpus"][3].update(links=0, link_speeds=[], speed_gb_s=None)
    assert [finding.status for finding in judge_facts("nvlink_links", facts)] == [Status.UNKNOWN]
    facts["nvlink"]["gpus"][3]["message"] = DARK
    assert only(judge_facts("nvlink_links", facts), Status.FAIL).device["index"] == 3


def test_no_gpu_listed_without_a_type():
    assert only(judge_facts("nvlink_links", gpus.nvlink(count=0), "none"), Status.UNKNOWN)


def test_a_dark_link_among_the_counters_says_nothing_where_the_status_was_not_collected():
    facts = gpus.nvlink()
    for gpu in facts["nvlink"]["gpus"]:
        del gpu["links"]
    facts["nvlink"].update(errors=[DARK], files=["nvlink-errors.txt"])
    assert only(judge_facts("nvlink_links", facts), Status.SKIP)
    facts["nvlink"]["errors"] = ["NVML: Driver Not Loaded"]
    assert status(judge_facts("nvlink_links", facts)) is Status.UNKNOWN
    facts["nvlink"].update(errors=[DARK], files=["nvlink-errors.txt", "nvlink-status.txt"])
    assert status(judge_facts("nvlink_links", facts)) in BLOCKING


def test_no_nvlink_devices():
    facts = {"nvlink": {"gpus": [], "errors": ["No NVLink devices found."], "files": ["nvlink-status.txt"]}}
    assert {finding.status for finding in judge_facts("nvlink_links", facts)} == {Status.UNKNOWN}
    assert only(judge_facts("nvlink_links", facts, "none"), Status.SKIP)


def test_all_links_dark_without_a_type_is_a_fault_and_not_a_skip():
    """By hand: what nvidia-smi prints for each GPU whose links are down."""
    text = "".join(f"GPU {n}: NVIDIA H100 (UUID: GPU-{n})\n\t {DARK}\n" for n in range(2))
    facts = {"nvlink": nvlink.parse({"nvlink-status.txt": text.encode()})}
    assert only(judge_facts("nvlink_links", facts, "none"), Status.FAIL).measured == 0
