"""The order of a large fleet: trouble first, then rack or zone, then name."""

import pytest

from flightline.fleet.judgement import judge_run
from flightline.report.compact import compact
from flightline.report.node_lines import lines, natural, said
from flightline.run.validation import place_of
from flightline.store.sqlite import ExpectedHost, Run
from tests.memory_store import MemoryStore
from tests.unit.made import STARTED, finding, record


def fleet(nodes, bad, places):
    hosts = tuple(ExpectedHost(f"gpu-{number}", place=places(number)) for number in range(1, nodes + 1))
    records = {
        host.host: record(host.host, *([finding("xid", "FAIL", remedy="REBOOT")] if number in bad else []))
        for number, host in enumerate(hosts, 1)
    }
    return judge_run(MemoryStore(Run("r1", STARTED, hosts=hosts), records), "r1")


def rack(number):
    return f"rack-{(number * 7) % 3 + 8}"


def test_a_large_fleet_is_ordered_by_place_then_name():
    report = fleet(70, {2, 10, 30, 41}, rack)
    listed = [line.hosts[0] for line in lines(report.rows)]
    assert listed == sorted(listed, key=lambda host: (natural(rack(int(host[4:]))), natural(host)))
    assert listed != sorted(listed, key=natural), "the places do matter here"
    order = [report.rows[number].host for number in compact(report, [])["order"]]
    assert order == sorted(order, key=lambda host: (natural(rack(int(host[4:]))), natural(host)))
    assert natural("rack-8") < natural("rack-10")


def test_a_small_fleet_is_ordered_by_name():
    report = fleet(64, {30, 9, 10}, rack)
    assert [line.hosts[0] for line in lines(report.rows)] == ["gpu-9", "gpu-10", "gpu-30"]


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({}, ""),
        ({"rack": 7}, "7"),
        ({"placement": {"availability_zone": "eu-west-1a"}}, "eu-west-1a"),
        ({"ec2_placement": {"availability_zone": "eu-west-1a"}, "rack": "r1"}, "r1"),
        ({"flightline_place": "row 2", "rack": "r1"}, "row 2"),
        ({"placement": {"group": "g"}, "rack": ["no"]}, ""),
    ],
)
def test_where_a_node_stands(variables, wanted):
    assert place_of(variables) == wanted


def test_the_parts_of_one_trouble_are_named_together():
    found = [
        finding("persistence_mode", "FAIL", message=f"GPU {n}: persistence mode Disabled", device={"index": n})
        for n in (0, 1, 2, 5)
    ]
    assert said(found) == "GPU 0-2, 5: persistence mode Disabled"
