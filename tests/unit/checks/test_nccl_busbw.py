"""nccl_busbw: gates by type, node count, collective and size; never failed for being fast."""

import pytest

from flightline_node.know.expected import resolve
from flightline_node.model import SettingsError
from flightline_node.read.parsers import nccl_tests
from tests.harness import only, sample, status

from .table import FAIL, INFO, PASS, SKIP, UNKNOWN, WARN, judging, row, table

GIB = 1 << 30


def run(busbw, size=8 * GIB, ranks=8, hosts=1, collective="all_reduce", **more):
    largest = {"bytes": size, "busbw_gb_s": busbw}
    return {
        "collective": collective, "ranks": ranks, "hosts": hosts, "rows": 9, "complete": True, "largest": largest,
        "max_bytes": size, "peak_busbw_gb_s": busbw, **more,
    }  # fmt: skip


def judge(*runs, instance_type="p5.48xlarge", **more):
    return judging("nccl_busbw", {"nccl_tests": {"runs": list(runs)}}, instance_type, **more)


SLOW = [
    ("p5en.48xlarge", 2, 2), ("p5en.48xlarge", 16, 2), ("p5e.48xlarge", 2, 2), ("p4de.24xlarge", 4, 2),
    ("p6-b300.48xlarge", 4, 2), ("p6e-gb200.36xlarge", 2, 2), ("p3dn.24xlarge", 2, 0.7), ("g6e.48xlarge", 1, 0.1),
    *((f"{family}.{size}xlarge", 2, 0.7) for family in ("g5", "g6e", "g7e") for size in (12, 24, 48)),
]  # fmt: skip


test_nccl_busbw = table(
    *(row("gates", judge(given, instance_type=instance_type), wanted, measured=given["largest"]["busbw_gb_s"],
        unit="GB/s")
        for instance_type, given, wanted in [
            ("p5.48xlarge", run(480), PASS),
            ("p5.48xlarge", run(900), PASS),
            ("p5.48xlarge", run(449), WARN),
            ("p5.48xlarge", run(419), FAIL),
            ("p5.48xlarge", run(466, GIB), PASS),
            ("p5.48xlarge", run(300, GIB), FAIL),
            ("p5.48xlarge", run(40, 128 << 20), FAIL),
            ("p5.48xlarge", run(361, collective="all_gather"), PASS),
            ("p5.48xlarge", run(479, ranks=16, hosts=2), PASS),
            ("p5.48xlarge", run(90, ranks=16, hosts=2), FAIL),
            ("p5en.48xlarge", run(365, 4 * GIB, ranks=32, hosts=4), PASS),
            ("p4d.24xlarge", run(233, GIB), PASS),
            ("p4d.24xlarge", run(150, GIB), FAIL),
            ("p6-b200.48xlarge", run(840), PASS),
            ("p6-b200.48xlarge", run(682), WARN),
            ("p6-b300.48xlarge", run(654, 16 * GIB, ranks=16, hosts=2), PASS),
        ]),
    *(row("a path that stalls is one between ranks, whatever the type",
        judge(run(5, ranks=ranks, stalled_sizes=[65536, 131072]), instance_type="none"), wanted)
        for ranks, wanted in [(16, FAIL), (1, SKIP)]),
    row("a hole in the table is unknown and no floor of zero",
        judge(run(300, ranks=32, hosts=4), instance_type="p6e-gb200.36xlarge", expected={"network_gbps": None}),
        UNKNOWN, says="nothing is known of the links"),
    *(row("no measurement is unknown", judge(given), UNKNOWN)
        for given in [
            run(480, complete=False),
            run(480, ranks=1),
            run(0.0),
            {"collective": "all_reduce", "ranks": 8, "rows": 0, "complete": True},
            {"collective": "", "rows": 0, "complete": False, "errors": ["Test NCCL failure"]},
        ]),
    row("one bad test among good ones",
        judge(run(480), run(361, collective="all_gather"), run(100, collective="reduce_scatter")), FAIL,
        says="reduce_scatter"),
    *(row("whole logs", judge(*nccl_tests.parse({"nccl-all_reduce.log": sample(f"nccl_tests/{name}")})["runs"]), wanted)
        for name, wanted in (("h100-8gpu-all_reduce.log", PASS), ("h100-2node-all_reduce-debug.log", PASS),
        ("truncated-all_reduce.log", UNKNOWN))),
    row("unreadable missing and no type",
        [judge(run(480), instance_type="none"), judge(run(480), instance_type="trn1.32xlarge")], SKIP),
    *(row("a gate holds at its own figure", judge(run(busbw)), wanted)
        for busbw, wanted in [(450, PASS), (449.9, WARN), (420, WARN), (419.9, FAIL)]),
    *(row("groups of a split test are not held to the figure of all ranks",
        judge({**run(busbw), "ranks": 64, "hosts": 8, "groups": 8, **group}), wanted, says="8 groups at once")
        for group, busbw, wanted in [
            ({"group_ranks": 2, "group_hosts": 2}, 47, PASS), ({"group_ranks": 8, "group_hosts": 8}, 47, PASS),
            ({"group_ranks": 8, "group_hosts": 1}, 480, PASS), ({"group_ranks": 8, "group_hosts": 1}, 240, FAIL),
        ]),
    row("ranks that fill no whole number of nodes are held to the links alone", judge(run(479, ranks=20, hosts=2)),
        PASS, says="over 20 ranks on p5.48xlarge"),
    row("ranks that fill no whole number of nodes are held to the links alone", judge(run(479, ranks=16, hosts=2)),
        PASS, says="over 2 node(s) of p5.48xlarge"),
    *(row("the size of the largest message is shown", judge(run(480, size)), PASS,
        says=f"480 GB/s busbw at {shown} over")
        for size, shown in [(8 * GIB, "8 GiB"), (GIB, "1 GiB"), (128 << 20, "128 MiB")]),
    row("torn rows are counted", judge(run(480, complete=False, damaged_rows=2)), UNKNOWN,
        message="all_reduce did not finish: 9 rows, 2 torn"),
    row("torn rows are counted", judge(run(480, complete=False)), UNKNOWN, message="all_reduce did not finish: 9 rows"),
    row("a test of empty messages has no speed to doubt", judge(run(0.0, 0)), SKIP),
)  # fmt: skip


@pytest.mark.parametrize(
    ("instance_type", "given", "wanted"),
    [
        ("p5.48xlarge", run(5, 1 << 20), SKIP),
        ("p5.48xlarge", run(0.05, 1 << 20), FAIL),
        ("p5.48xlarge", run(300, 16 << 20), PASS),
        ("p5.48xlarge", run(300, ranks=4), PASS),
        ("p5.48xlarge", run(20, ranks=4), FAIL),
        ("p5.48xlarge", run(150, ranks=8, hosts=2), PASS),
        ("p5.48xlarge", run(4, ranks=8, hosts=2), FAIL),
        ("p5.48xlarge", run(330, ranks=64, hosts=8), PASS),
        ("p5.48xlarge", run(4, ranks=64, hosts=8), FAIL),
        ("p5.48xlarge", run(53, collective="alltoall", ranks=16, hosts=2), PASS),
        ("p5.48xlarge", run(3, collective="alltoall", ranks=16, hosts=2), FAIL),
        ("p5.48xlarge", {**run(330), "ranks": None}, INFO),
        ("p5.48xlarge", {**run(1), "ranks": None}, FAIL),
        ("g5.48xlarge", run(5), PASS),
        ("p5.4xlarge", run(0.0, ranks=1), SKIP),
        ("none", run(330), SKIP),
    ],
)
def test_where_nothing_was_published_the_links_give_a_floor(instance_type, given, wanted):
    expected = {"gpu_count": 8} if instance_type == "none" else None
    assert only(judge(given, instance_type=instance_type, expected=expected), wanted).message


@pytest.mark.parametrize(("instance_type", "nodes", "busbw"), SLOW)
def test_a_fabric_at_a_hundredth_of_its_rate_fails_on_every_type(instance_type, nodes, busbw):
    ranks = nodes * resolve(instance_type).gpu_count
    finding = only(judge(run(busbw, 16 * GIB, ranks, nodes), instance_type=instance_type), FAIL)
    assert finding.expected > busbw


def test_site_scale():
    assert status(judge(run(400), thresholds={"nccl_busbw.scale_percent": 80})) is PASS
    assert status(judge(run(480), thresholds={"nccl_busbw.scale_percent": 110})) is WARN
    with pytest.raises(SettingsError):
        list(judge(run(480), thresholds={"nccl_busbw.scale_percent": 200}))


def test_one_node_is_compared_with_the_fleet_and_a_group_with_its_own_kind():
    measures = {}
    list(judge(run(480), measures=measures))
    assert measures["nccl_all_reduce_busbw"]["values"] == {"": 480}
    measures = {}
    list(judge(run(479, ranks=16, hosts=2), measures=measures))
    assert measures["nccl_all_reduce_busbw"]["values"] == {"2 node(s) of p5.48xlarge": 479}


def by_size(*rows):
    return run(
        480, sizes=[{"bytes": size << 20, "busbw_gb_s": out, "in_place_gb_s": place} for size, out, place in rows]
    )


test_every_size_and_both_groups_of_columns_count = table(*(
    row(f"{wanted} {measured}", judge(by_size(*rows)), wanted, measured=measured)
    for rows, wanted, measured in [
        (((1024, 460, 461), (4096, 470, 471), (8192, 480, 480)), PASS, 480),
        (((1024, 460, 461), (4096, 60, 471), (8192, 480, 480)), FAIL, 60),
        (((1024, 460, 461), (4096, 470, 61), (8192, 480, 480)), FAIL, 61),
        (((16, 250, 250), (32, 90, 250), (64, 280, 280), (8192, 480, 480)), WARN, 90),
        (((16, 250, None), (64, 280, None), (8192, 480, None)), PASS, 480),
        (((1, 0.1, 0.1), (2, 30, 30), (8192, 480, 480)), PASS, 480),
        (((8192, 480, 420),), PASS, 480), (((8192, 480, 419.9),), FAIL, 419.9),
    ]
))  # fmt: skip


test_small_messages = table(*(
    row(f"{took} us", judge(run(busbw, ranks=ranks, hosts=hosts, collective=collective, latency_us=took)), wanted,
        measured=measured)
    for took, busbw, ranks, hosts, collective, wanted, measured in [
        (16.0, 480, 8, 1, "all_reduce", PASS, 480), (40.0, 480, 8, 1, "all_reduce", WARN, 40.0),
        (90.0, 480, 8, 1, "all_reduce", FAIL, 90.0), (75.0, 479, 16, 2, "all_reduce", PASS, 479),
        (400.0, 479, 16, 2, "all_reduce", FAIL, 400.0), (9000.0, 361, 8, 1, "all_gather", PASS, 361),
        (90.0, 100, 8, 1, "all_reduce", FAIL, 100),
    ]
))  # fmt: skip


def test_a_b200_node_that_reaches_what_healthy_ones_do_is_no_warning():
    """700 GB/s and more are published of healthy p6-b200 nodes; 682 is a ring, without NVLS."""
    for size, busbw in ((8 * GIB, 700), (4 * GIB, 740.6), (2 * GIB, 735), (GIB, 723.3), (128 << 20, 568.4)):
        assert status(judge(run(busbw, size), instance_type="p6-b200.48xlarge")) is PASS


def test_a_single_row_that_is_far_off_is_not_the_latency():
    """983 and 68 us stand in published tables of good nodes."""
    rows = "".join(
        f"{8 << at:12}{2 << at:12}  float  sum  -1  {took} 0.00 0.00 0  {took} 0.00 0.00 0\n"
        for at, took in enumerate((983.2, 13.0, 68.14, 14.92, 15.87, 16.1))
    )
    head, first, rest = sample("nccl_tests/h100-8gpu-all_reduce.log").decode().partition("     1048576 ")
    (one,) = nccl_tests.parse({"nccl-all_reduce.log": (head + "\n" + rows + first + rest).encode()})["runs"]
    assert 14 < one["latency_us"] < 17 and status(judge(one)) is PASS


def test_without_a_published_figure_the_latency_is_the_fleets_to_compare():
    measures = {}
    list(judge(run(361, collective="alltoall", latency_us=30.0), measures=measures))
    assert measures["nccl_alltoall_latency"]["values"] == {"": 30.0}


def test_the_rows_of_a_log_are_judged_size_by_size():
    log = sample("nccl_tests/h100-8gpu-all_reduce.log")
    facts = nccl_tests.parse({"nccl-all_reduce.log": log})
    (one,) = facts["runs"]
    assert one["sizes"][-1]["bytes"] == one["max_bytes"] and one["sizes"][-1]["in_place_gb_s"] > 0
    assert [row["bytes"] for row in one["sizes"]] == sorted(row["bytes"] for row in one["sizes"])
