"""nccl_busbw: gates by type, node count, collective and size; never failed for being fast."""

import pytest

from flightline_node.know.expected import resolve
from flightline_node.model import SettingsError, Status
from flightline_node.read.parsers import nccl_tests
from tests.harness import judge_facts, only, sample, status

GIB = 1 << 30


def run(busbw, size=8 * GIB, ranks=8, hosts=1, collective="all_reduce", **more):
    largest = {"bytes": size, "busbw_gb_s": busbw}
    return {
        "collective": collective, "ranks": ranks, "hosts": hosts, "rows": 9, "complete": True, "largest": largest,
        "max_bytes": size, "peak_busbw_gb_s": busbw, **more,
    }  # fmt: skip


def judge(*runs, instance_type="p5.48xlarge", **more):
    return judge_facts("nccl_busbw", {"nccl_tests": {"runs": list(runs)}}, instance_type, **more)


@pytest.mark.parametrize(
    ("instance_type", "given", "wanted"),
    [
        ("p5.48xlarge", run(480), Status.PASS),
        ("p5.48xlarge", run(900), Status.PASS),
        ("p5.48xlarge", run(449), Status.WARN),
        ("p5.48xlarge", run(419), Status.FAIL),
        ("p5.48xlarge", run(466, GIB), Status.PASS),
        ("p5.48xlarge", run(300, GIB), Status.FAIL),
        ("p5.48xlarge", run(40, 128 << 20), Status.FAIL),
        ("p5.48xlarge", run(361, collective="all_gather"), Status.PASS),
        ("p5.48xlarge", run(479, ranks=16, hosts=2), Status.PASS),
        ("p5.48xlarge", run(90, ranks=16, hosts=2), Status.FAIL),
        ("p5en.48xlarge", run(365, 4 * GIB, ranks=32, hosts=4), Status.PASS),
        ("p4d.24xlarge", run(233, GIB), Status.PASS),
        ("p4d.24xlarge", run(150, GIB), Status.FAIL),
        ("p6-b200.48xlarge", run(840), Status.PASS),
        ("p6-b200.48xlarge", run(682), Status.WARN),
        ("p6-b300.48xlarge", run(654, 16 * GIB, ranks=16, hosts=2), Status.PASS),
    ],
)
def test_gates(instance_type, given, wanted):
    finding = only(judge(given, instance_type=instance_type), wanted)
    assert (finding.measured, finding.unit) == (given["largest"]["busbw_gb_s"], "GB/s")


@pytest.mark.parametrize(
    ("instance_type", "given", "wanted"),
    [
        ("p5.48xlarge", run(5, 1 << 20), Status.SKIP),
        ("p5.48xlarge", run(0.05, 1 << 20), Status.FAIL),
        ("p5.48xlarge", run(300, ranks=4), Status.PASS),
        ("p5.48xlarge", run(20, ranks=4), Status.FAIL),
        ("p5.48xlarge", run(150, ranks=8, hosts=2), Status.PASS),
        ("p5.48xlarge", run(4, ranks=8, hosts=2), Status.FAIL),
        ("p5.48xlarge", run(330, ranks=64, hosts=8), Status.PASS),
        ("p5.48xlarge", run(4, ranks=64, hosts=8), Status.FAIL),
        ("p5.48xlarge", run(53, collective="alltoall", ranks=16, hosts=2), Status.PASS),
        ("p5.48xlarge", run(3, collective="alltoall", ranks=16, hosts=2), Status.FAIL),
        ("p5.48xlarge", {**run(330), "ranks": None}, Status.INFO),
        ("p5.48xlarge", {**run(1), "ranks": None}, Status.FAIL),
        ("g5.48xlarge", run(5), Status.PASS),
        ("p5.4xlarge", run(0.0, ranks=1), Status.SKIP),
        ("none", run(330), Status.SKIP),
    ],
)
def test_where_nothing_was_published_the_links_give_a_floor(instance_type, given, wanted):
    expected = {"gpu_count": 8} if instance_type == "none" else None
    assert only(judge(given, instance_type=instance_type, expected=expected), wanted).message


SLOW = [
    ("p5en.48xlarge", 2, 2), ("p5en.48xlarge", 16, 2), ("p5e.48xlarge", 2, 2), ("p4de.24xlarge", 4, 2),
    ("p6-b300.48xlarge", 4, 2), ("p6e-gb200.36xlarge", 2, 2), ("p3dn.24xlarge", 2, 0.7), ("g6e.48xlarge", 1, 0.1),
    *((f"{family}.{size}xlarge", 2, 0.7) for family in ("g5", "g6e", "g7e") for size in (12, 24, 48)),
]  # fmt: skip


@pytest.mark.parametrize(("instance_type", "nodes", "busbw"), SLOW)
def test_a_fabric_at_a_hundredth_of_its_rate_fails_on_every_type(instance_type, nodes, busbw):
    ranks = nodes * resolve(instance_type).gpu_count
    finding = only(judge(run(busbw, 16 * GIB, ranks, nodes), instance_type=instance_type), Status.FAIL)
    assert finding.expected > busbw


def test_a_hole_in_the_table_is_unknown_and_no_floor_of_zero():
    holes = {"network_gbps": None}
    finding = only(
        judge(run(300, ranks=32, hosts=4), instance_type="p6e-gb200.36xlarge", expected=holes), Status.UNKNOWN
    )
    assert "nothing is known of the links" in finding.message


@pytest.mark.parametrize(
    "given",
    [
        run(480, complete=False),
        run(480, ranks=1),
        run(0.0),
        {"collective": "all_reduce", "ranks": 8, "rows": 0, "complete": True},
        {"collective": "", "rows": 0, "complete": False, "errors": ["Test NCCL failure"]},
    ],
)
def test_no_measurement_is_unknown(given):
    assert status(judge(given)) is Status.UNKNOWN


def test_one_bad_test_among_good_ones():
    findings = judge(run(480), run(361, collective="all_gather"), run(100, collective="reduce_scatter"))
    assert status(findings) is Status.FAIL
    assert "reduce_scatter" in only(findings, Status.FAIL).message


def test_site_scale():
    assert status(judge(run(400), thresholds={"nccl_busbw.scale_percent": 80})) is Status.PASS
    assert status(judge(run(480), thresholds={"nccl_busbw.scale_percent": 110})) is Status.WARN
    with pytest.raises(SettingsError):
        judge(run(480), thresholds={"nccl_busbw.scale_percent": 200})


def test_whole_logs():
    for name, wanted in (
        ("h100-8gpu-all_reduce.log", Status.PASS),
        ("h100-2node-all_reduce-debug.log", Status.PASS),
        ("truncated-all_reduce.log", Status.UNKNOWN),
    ):
        facts = nccl_tests.parse({"nccl-all_reduce.log": sample(f"nccl_tests/{name}")})
        assert status(judge(*facts["runs"])) is wanted, name


def test_unreadable_missing_and_no_type():
    assert status(judge(run(480), instance_type="none")) is Status.SKIP
    assert status(judge(run(480), instance_type="trn1.32xlarge")) is Status.SKIP


@pytest.mark.parametrize(
    ("busbw", "wanted"), [(450, Status.PASS), (449.9, Status.WARN), (420, Status.WARN), (419.9, Status.FAIL)]
)
def test_a_gate_holds_at_its_own_figure(busbw, wanted):
    assert status(judge(run(busbw))) is wanted


@pytest.mark.parametrize(
    ("group", "busbw", "wanted"),
    [
        ({"group_ranks": 2, "group_hosts": 2}, 47, Status.PASS),
        ({"group_ranks": 8, "group_hosts": 8}, 47, Status.PASS),
        ({"group_ranks": 8, "group_hosts": 1}, 480, Status.PASS),
        ({"group_ranks": 8, "group_hosts": 1}, 240, Status.FAIL),
    ],
)
def test_groups_of_a_split_test_are_not_held_to_the_figure_of_all_ranks(group, busbw, wanted):
    finding = only(judge({**run(busbw), "ranks": 64, "hosts": 8, "groups": 8, **group}), wanted)
    assert "8 groups at once" in finding.message


def test_ranks_that_fill_no_whole_number_of_nodes_are_held_to_the_links_alone():
    finding = only(judge(run(479, ranks=20, hosts=2)), Status.PASS)
    assert "over 20 ranks on p5.48xlarge" in finding.message
    assert "over 2 node(s) of p5.48xlarge" in only(judge(run(479, ranks=16, hosts=2)), Status.PASS).message


@pytest.mark.parametrize(("size", "shown"), [(8 * GIB, "8 GiB"), (GIB, "1 GiB"), (128 << 20, "128 MiB")])
def test_the_size_of_the_largest_message_is_shown(size, shown):
    assert f"480 GB/s busbw at {shown} over" in only(judge(run(480, size)), Status.PASS).message


def test_torn_rows_are_counted():
    torn = only(judge(run(480, complete=False, damaged_rows=2)), Status.UNKNOWN)
    assert torn.message == "all_reduce did not finish: 9 rows, 2 torn"
    assert only(judge(run(480, complete=False)), Status.UNKNOWN).message == "all_reduce did not finish: 9 rows"


def test_a_test_of_empty_messages_has_no_speed_to_doubt():
    assert status(judge(run(0.0, 0))) is Status.SKIP


def test_one_node_is_compared_with_the_fleet_and_a_group_with_its_own_kind():
    measures = {}
    judge(run(480), measures=measures)
    assert measures["nccl_all_reduce_busbw"]["values"] == {"": 480}
    measures = {}
    judge(run(479, ranks=16, hosts=2), measures=measures)
    assert measures["nccl_all_reduce_busbw"]["values"] == {"2 node(s) of p5.48xlarge": 479}


def sizes(*rows):
    return [{"bytes": size << 20, "busbw_gb_s": out, "in_place_gb_s": place} for size, out, place in rows]


@pytest.mark.parametrize(
    ("rows", "wanted", "measured"),
    [
        (sizes((1024, 460, 461), (4096, 470, 471), (8192, 480, 480)), Status.PASS, 480),
        (sizes((1024, 460, 461), (4096, 60, 471), (8192, 480, 480)), Status.FAIL, 60),
        (sizes((1024, 460, 461), (4096, 470, 60), (8192, 480, 480)), Status.FAIL, 60),
        (sizes((16, 250, 250), (32, 90, 250), (64, 280, 280), (8192, 480, 480)), Status.WARN, 90),
        (sizes((16, 250, None), (64, 280, None), (8192, 480, None)), Status.PASS, 480),
        (sizes((1, 0.1, 0.1), (2, 30, 30), (8192, 480, 480)), Status.PASS, 480),
    ],
)
def test_every_size_and_both_groups_of_columns_count(rows, wanted, measured):
    assert only(judge(run(480, sizes=rows)), wanted).measured == measured


def test_the_rows_of_a_log_are_judged_size_by_size():
    log = sample("nccl_tests/h100-8gpu-all_reduce.log")
    facts = nccl_tests.parse({"nccl-all_reduce.log": log})
    (one,) = facts["runs"]
    assert one["sizes"][-1]["bytes"] == one["max_bytes"] and one["sizes"][-1]["in_place_gb_s"] > 0
    assert [row["bytes"] for row in one["sizes"]] == sorted(row["bytes"] for row in one["sizes"])
