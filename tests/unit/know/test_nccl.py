"""The NCCL gates: reachable by physics, consistent, and looked up by size."""

import dataclasses

import pytest

from flightline_node.know import nccl
from flightline_node.know.expected import known_types
from flightline_node.model import SettingsError

GIB = 1 << 30


def test_table_is_reachable_at_every_scale_a_site_may_set():
    nccl.check_gates(nccl.gates(), 1.1)
    assert len(nccl.gates()) > 20


def test_gates_are_of_types_in_the_table():
    assert {gate.instance_type for gate in nccl.gates()} <= set(known_types())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"warn_below": 800, "fail_below": 420}, "more than|above"),
        ({"warn_below": 400, "fail_below": 420}, "fail below"),
        ({"fail_below": 0}, "fail below"),
        ({"instance_type": "p9.48xlarge"}, "no link rates"),
    ],
)
def test_a_threshold_nothing_can_reach_is_refused(change, said):
    gate = next(g for g in nccl.gates() if (g.instance_type, g.nodes) == ("p5.48xlarge", 1))
    with pytest.raises(SettingsError, match=said):
        nccl.check_gates([dataclasses.replace(gate, **change)])


@pytest.mark.parametrize("collective", ["all_reduce", "all_gather", "reduce_scatter", "alltoall"])
def test_a_table_that_asks_for_more_than_the_links_carry_does_not_load(monkeypatch, collective):
    most = nccl.ceiling("p5.48xlarge", 1, collective) or 0.0
    for ask, loads in ((most - 1, True), (most + 1, False)):
        monkeypatch.setattr(nccl, "NCCL_GATES", f"p5.48xlarge|1|{collective}|8GiB|{ask:g}|100|made up")
        nccl.gates.cache_clear()
        if loads:
            assert len(nccl.gates()) == 1
        else:
            with pytest.raises(SettingsError, match=f"{collective}: .* is above the .* its links can carry"):
                nccl.gates()
    monkeypatch.undo()
    nccl.gates.cache_clear()


@pytest.mark.parametrize(
    ("args", "most"),
    [
        (("p4d.24xlarge", 1, "all_reduce"), 300),
        (("p5.48xlarge", 1, "all_reduce"), 787.5),
        (("p5.48xlarge", 1, "all_gather"), 450),
        (("p5.48xlarge", 2, "all_reduce"), 750),
        (("p4d.24xlarge", 2, "all_reduce"), 93.75),
        (("p5.48xlarge", 2, "alltoall"), 93.75),
        (("g5.48xlarge", 1, "all_reduce"), 15.752),
        (("p9.48xlarge", 1, "all_reduce"), None),
        (("trn1.32xlarge", 1, "all_reduce"), None),
    ],
)
def test_ceiling(args, most):
    assert nccl.ceiling(*args) == most


@pytest.mark.parametrize(
    ("instance_type", "nodes", "busbw"),
    [("p5.48xlarge", 2, 487), ("p6-b200.48xlarge", 2, 523.8), ("p6-b300.48xlarge", 2, 751), ("p4de.24xlarge", 2, 78.3)],
)
def test_published_measurements_lie_under_the_ceiling(instance_type, nodes, busbw):
    assert busbw < nccl.ceiling(instance_type, nodes, "all_reduce")


def test_gates_come_largest_message_first():
    sizes = [gate.min_bytes for gate in nccl.for_group("p5.48xlarge", 1, "all_reduce")]
    assert sizes == [8 * GIB, GIB, 128 << 20]
    assert nccl.for_group("p5.48xlarge", 3, "all_reduce") == ()
