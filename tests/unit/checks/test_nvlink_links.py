"""nvlink_links: links missing, inactive or slow, against the type and without one."""

from functools import partial

from flightline_node.model import BLOCKING, Remedy
from flightline_node.read.parsers import nvlink
from tests.harness import only, status

from . import gpus
from .table import FAIL, PASS, SKIP, UNKNOWN, WARN, changed, judging, row, table


def change(index, **values):
    facts = gpus.nvlink()
    facts["nvlink"]["gpus"][index].update(values)
    return facts


DARK = "NVML: Unable to retrieve NVLink information as all links are inActive"
judge = partial(judging, "nvlink_links")

test_nvlink_links = table(
    row("all up", judge(gpus.nvlink()), PASS, message="18 NVLinks per GPU active at 26.562 GB/s each"),
    *(row("healthy types", judge(gpus.nvlink(links=links, speed=speed), instance_type), PASS)
        for instance_type, links, speed in [
            ("p3dn.24xlarge", 6, 25.781), ("p4d.24xlarge", 12, 25.0), ("p6-b200.48xlarge", 18, 53.125),
            ("p6-b300.48xlarge", 18, 50.0 * 1.0625), ("none", 4, 14.062),
        ]),
    *(row("a link down fails", judge(change(3, **values)), FAIL, index=3, expected=18, remedy=Remedy.REBOOT)
        for values in (
            {"links": 17, "inactive": 1, "link_speeds": [26.562] * 17},
            {"links": 18, "inactive": 1},
            {"links": 17, "inactive": 0, "link_speeds": [26.562] * 17},
            {"links": 0, "inactive": 0, "link_speeds": [], "speed_gb_s": None},
        )),
    # NVLink 5, one GPU after Xid 149: its links are all down, its peers' are up.
    *(row("one dark GPU is told once and is no matter of the fabric manager",
        judge(changed(change(3, links=0, inactive=0, link_speeds=[], speed_gb_s=None, message=dark),
        {"nvlink.errors": [dark]})), FAIL, index=3, remedy=Remedy.REBOOT, evidence=(dark,))
        for dark in ["NVML: Unable to retrieve NVLink information as all links are inActive"]),
    row("slow link fails", judge(change(1, link_speeds=[26.562] * 17 + [13.281])), FAIL, index=1, measured=13.281,
        expected=26.562),
    row("without a type uneven links warn",
        judge(changed(gpus.nvlink(count=3, links=4, speed=14.062),
        {"nvlink.gpus.2.links": 0, "nvlink.gpus.2.link_speeds": [], "nvlink.gpus.2.speed_gb_s": None}), "none"), WARN,
        index=2),
    row("without a type uneven links warn", judge(gpus.nvlink(links=0), "none"), SKIP),
    *(row("unreadable is unknown", judge(change(0, **values)), UNKNOWN, index=0)
        for values in ({"links": "ERR!"}, {"links": None}, {"inactive": "ERR!"}, {"link_speeds": ["ERR!"]})),
    row("messages of the tool", judge(changed(gpus.nvlink(), {"nvlink.errors": ["NVML: Driver Not Loaded"]})), UNKNOWN),
    row("messages of the tool", judge(changed(gpus.nvlink(), {"nvlink.errors": ["nvlink-errors.txt: empty output"]})),
        PASS),
    row("type without NVLink",
        [judge(gpus.nvlink(links=0), "g5.48xlarge"), judge(gpus.nvlink(count=1, links=0), "p5.4xlarge")], SKIP),
    *(row("five percent less speed is accepted",
        judge(changed(gpus.nvlink(speed=100.0), {"nvlink.gpus.1.link_speeds": [100.0] * 17 + [speed]}),
        expected={"nvlink_gb_s_per_link": 100.0}), wanted)
        for speed, wanted in [(95.0, PASS), (94.9, FAIL)]),
    row("without a type a slower link warns too", judge(change(1, link_speeds=[26.562] * 17 + [13.281]), "none"), WARN,
        index=1, measured=13.281, remedy=Remedy.INVESTIGATE),
    row("a message that no GPU has fails the node", judge(changed(gpus.nvlink(), {"nvlink.errors": [DARK]})), FAIL,
        device={}, remedy=Remedy.FIX_CONFIG, evidence=(DARK,)),
    row("a message other than dark links is unknown whoever has it",
        judge(changed(change(3, message="NVML: Driver Not Loaded"), {"nvlink.errors": ["NVML: Driver Not Loaded"]})),
        UNKNOWN, evidence=("NVML: Driver Not Loaded",)),
    row("the last GPU of a whole output is not cut off", judge(change(7, links=17, link_speeds=[26.562] * 17)), FAIL,
        index=7),
    row("an output that ends at a GPU's name says nothing of its links",
        judge(changed(gpus.nvlink(count=4),
        {"nvlink.gpus.3.links": 0, "nvlink.gpus.3.link_speeds": [], "nvlink.gpus.3.speed_gb_s": None})), UNKNOWN,
        statuses=(UNKNOWN,)),
    row("an output that ends at a GPU's name says nothing of its links",
        judge(changed(gpus.nvlink(count=4),
        {"nvlink.gpus.3.links": 0, "nvlink.gpus.3.link_speeds": [], "nvlink.gpus.3.speed_gb_s": None,
        "nvlink.gpus.3.message": DARK})), FAIL, index=3),
    row("no GPU listed without a type", judge(gpus.nvlink(count=0), "none"), UNKNOWN, count=1),
    *(each
        for facts in [{"nvlink": {"gpus": [], "errors": ["No NVLink devices found."], "files": ["nvlink-status.txt"]}}]
        for each in (
        row("no NVLink devices", judge(facts), UNKNOWN, every=True),
        row("no NVLink devices", judge(facts, "none"), SKIP, count=1),
    )),
    # By hand: what nvidia-smi prints for each GPU whose links are down.
    row("all links dark without a type is a fault and not a skip",
        judge({"nvlink": nvlink.parse({"nvlink-status.txt": "".join(f"GPU {n}: NVIDIA H100 (UUID: GPU-{n})\n\t {DARK}\n"
        for n in range(2)).encode()})}, "none"), FAIL, measured=0),
)  # fmt: skip


def test_no_link_anywhere_points_to_the_fabric_manager():
    facts = gpus.nvlink(links=0)
    for gpu in facts["nvlink"]["gpus"]:
        gpu["message"] = "NVML: Unable to retrieve NVLink information as all links are inActive"
    findings = judge(facts)
    assert [(finding.status, finding.remedy) for finding in findings] == [(FAIL, Remedy.FIX_CONFIG)] * 8
    assert "inActive" in findings[0].evidence[0]


def test_gpu_without_status_is_unknown():
    measures = {}
    short = judge(gpus.nvlink(count=7), measures=measures)
    assert only(short, UNKNOWN).measured == len(measures["nvlink_links"]["values"]) == 7
    assert short[0].reason == "status_missing"
    assert only(judge(gpus.nvlink(count=0)), UNKNOWN).reason == "no_status"


def test_only_counters_collected():
    for errors, wanted in (([], SKIP), (["nvlink-status.txt: empty output"], UNKNOWN)):
        facts = {"nvlink": {"gpus": [{"index": 0, "errors": {}}], "errors": errors}}
        assert status(judge(facts)) is wanted


def test_an_output_cut_off_within_a_gpu_is_unknown_and_no_lost_link():
    facts = {"gpus": [{"index": n, "links": 18 if n < 3 else 4, "inactive": 0, "speed_gb_s": 26.562} for n in range(4)]}
    assert "4 of 8 GPUs" in only(judge({"nvlink": facts}), UNKNOWN).message
    assert status(judge({"nvlink": facts})) is UNKNOWN
    facts["gpus"][3]["inactive"] = 1
    assert status(judge({"nvlink": facts})) is FAIL


def test_a_dark_link_among_the_counters_says_nothing_where_the_status_was_not_collected():
    facts = gpus.nvlink()
    for gpu in facts["nvlink"]["gpus"]:
        del gpu["links"]
    facts["nvlink"].update(errors=[DARK], files=["nvlink-errors.txt"])
    assert only(judge(facts), SKIP)
    facts["nvlink"]["errors"] = ["NVML: Driver Not Loaded"]
    assert status(judge(facts)) is UNKNOWN
    facts["nvlink"].update(errors=[DARK], files=["nvlink-errors.txt", "nvlink-status.txt"])
    assert status(judge(facts)) in BLOCKING
