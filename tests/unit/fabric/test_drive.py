"""The rounds with a play of the tests' own: who takes part, what a broken answer means, and that nothing unknown passes."""

import pytest

from flightline.fabric.drive import READY, FabricNodes, RoundAnswer, drive
from flightline_node.know.expected import resolve

RING = tuple(f"n{at}" for at in range(6))


def log(busbw, wrong=0, end=True, nodes=2, said=""):
    """An nccl-tests log, hand-written after its documented form."""
    head = "# nThread 1 nGpus 1 minBytes 1048576 maxBytes 1048576 step: 2(factor) warmup iters: 1 iters: 3 agg iters: 1 validation: 1 graph: 0\n"
    ranks = "".join(f"#  Rank {at:2} Group  0 Pid {at + 9} on  host{at} device  0 [0x00] none\n" for at in range(nodes))
    names = "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
    row = f"     1048576        262144     float     sum      -1    100.0   {busbw:6.2f}  {busbw:6.2f}  {wrong:5}    100.0   {busbw:6.2f}  {busbw:6.2f}  {wrong:5}\n"
    tail = (
        f"# Out of bounds values : {wrong} {'FAILED' if wrong else 'OK'}\n# Avg bus bandwidth    : {busbw}\n"
        if end
        else ""
    )
    return head + ranks + said + names + row + tail


class Play:
    """Answers as healthy nodes do, but for what `wrong` says: node -> Answer, or GB/s, wherever it takes part."""

    def __init__(self, fleet, **wrong):
        self.fleet, self.wrong, self.played = fleet, wrong, []

    def __call__(self, name, tests, collective):
        self.played.append((name, dict(tests)))
        if name == READY:
            return {
                node: self.wrong.get(f"ready_{node}", RoundAnswer({"machine": node, "problems": []}))
                for node in self.fleet.ring
            }
        ended = {node: RoundAnswer({"strays": [], "left": []}) for node in self.fleet.ring}
        return ended | {leader: self._test(name.partition("-")[0], nodes) for leader, nodes in tests.items()}

    def _test(self, name, nodes):
        for node in nodes:
            given = self.wrong.get(node)
            if isinstance(given, RoundAnswer):
                return given
            if given is not None:
                return RoundAnswer({"rc": 0, "output": log(given, nodes=len(nodes))})
        return RoundAnswer({"rc": 0, "output": log(self.wrong.get(name, 10.0), nodes=len(nodes))})


NO_EFA = resolve("g5.12xlarge", {"efa_count": 0})


def fleet(expected=None):
    return FabricNodes(RING, {node: node for node in RING}, expected or resolve("none"), ("all_reduce",))


def played(tmp_path, expected=None, pairs_always=False, **wrong):
    said, play = [], Play(fleet(expected), **wrong)
    return drive(play.fleet, play, tmp_path / "logs", said.append, pairs_always), play, said


def named(result):
    return [(blame.kind, blame.nodes) for blame in result.found]


def test_healthy_nodes_of_an_unknown_type_are_go_only_after_their_pairs(tmp_path):
    result, play, _ = played(tmp_path)
    assert result.go and result.healthy == list(RING)
    assert [name for name, _ in play.played] == ["ready", "all-all-reduce", "r1", "r2", "r3"]


def test_a_type_with_a_floor_is_go_when_all_together_reach_it(tmp_path):
    result, play, _ = played(tmp_path, NO_EFA, all=10.0)
    assert (
        result.go and [name for name, _ in play.played] == ["ready", "all-all-reduce"] and result.healthy == list(RING)
    )
    result, play, _ = played(tmp_path, NO_EFA, pairs_always=True)
    assert [name for name, _ in play.played][2:] == ["r1", "r2", "r3"]


def test_bandwidth_without_proof_of_efa_is_no_pass_for_a_type_that_has_it(tmp_path):
    result, _, _ = played(tmp_path, resolve("p5.48xlarge"), all=500.0)
    assert not result.go and result.trouble and result.together["all_reduce"].busbw_gb_s == 500.0
    assert {blame.kind for blame in result.found} == {"fabric"} and result.healthy == []


def test_a_slow_node_is_named_and_the_others_are_healthy(tmp_path):
    result, _, said = played(tmp_path, n3=2.0)
    assert named(result) == [("node", ("n3",))] and result.healthy == ["n0", "n1", "n2", "n4", "n5"] and not result.go
    assert any("1 of 3 pairs failed" in line for line in said)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (RoundAnswer(trouble="no launcher"), "no launcher"),
        (RoundAnswer({"rc": 124, "timed_out": True, "output": ""}), "did not end within its deadline"),
        (RoundAnswer({"rc": 1, "output": "mpirun was unable to reach the host"}), "could not be measured"),
        (RoundAnswer({"rc": 0, "output": ""}), "could not be measured"),
        (RoundAnswer({"rc": 0, "output": log(10.0, wrong=3)}), "wrong"),
        (RoundAnswer({"rc": 0, "output": log(10.0, end=False)}), ""),
        (RoundAnswer({"rc": 139, "output": log(10.0)}), "not trusted"),
        (RoundAnswer({}), "could not be measured"),
        (RoundAnswer({"rc": 0, "output": log(10.0, nodes=1)}), "wanted 2"),
    ],
)
def test_what_is_no_measurement_is_no_pass_and_still_names_the_node(tmp_path, answer, why):
    result, _, _ = played(tmp_path, n2=answer)
    assert named(result) == [("node", ("n2",))] and why in result.found[0].why
    assert "n2" not in result.healthy and not result.go


def test_a_node_that_is_slow_at_one_size_alone_is_named(tmp_path):
    class Sized(Play):
        def _test(self, name, nodes):
            rows = {32 << 20: 1.0 if "n3" in nodes and name != "all" else 9.0, 64 << 20: 10.0}
            row = "{:12}  1  float  sum  -1  100.0  {:.2f}  {:.2f}  0  100.0  {:.2f}  {:.2f}  0\n"
            text = "".join(row.format(size, *[busbw] * 4) for size, busbw in rows.items())
            return RoundAnswer({"rc": 0, "output": log(10.0, nodes=len(nodes)).replace("# Out", text + "# Out")})

    result = drive(fleet(), Sized(fleet()), tmp_path / "logs", lambda _: None)
    assert named(result) == [("node", ("n3",))] and "at 32 MiB" in result.found[0].why


def test_who_cannot_take_part_is_left_out_with_the_reason(tmp_path):
    result, play, _ = played(
        tmp_path,
        ready_n1=RoundAnswer(trouble="unreachable: no route", lost=True),
        ready_n4=RoundAnswer({"machine": "n4", "problems": ["no mpirun on this node"]}),
        ready_n5=RoundAnswer({"machine": "n0", "problems": []}),
    )
    assert set(result.left_out) == {"n1", "n4", "n5"} and "same machine as n0" in result.left_out["n5"]
    assert not result.go and result.healthy == ["n0", "n2", "n3"]
    assert all("n1" not in nodes for _, tests in play.played for nodes in tests.values())


def test_with_fewer_than_two_nodes_nothing_is_tested(tmp_path):
    lost = {f"ready_{node}": RoundAnswer(trouble="unreachable", lost=True) for node in RING[1:]}
    result, play, _ = played(tmp_path, **lost)
    assert not result.go and result.healthy == [] and [name for name, _ in play.played] == ["ready"]


def test_a_node_lost_in_a_round_is_left_out_of_the_next(tmp_path):
    result, _, _ = played(tmp_path, n2=RoundAnswer(trouble="unreachable: gone", lost=True))
    assert "lost in round" in result.left_out["n2"] and result.healthy == ["n0", "n1", "n3", "n4", "n5"]


def test_strays_are_kept_by_host(tmp_path):
    result, _, _ = played(tmp_path, n0=RoundAnswer({"rc": 0, "output": log(10.0)}, strays=("all_reduce_perf",)))
    assert result.strays["n0"] == ("all_reduce_perf",) and not {"n2", "n3"} & set(result.strays)


def test_every_log_is_kept(tmp_path):
    played(tmp_path, n3=2.0)
    kept = {path.parent.name for path in (tmp_path / "logs").rglob("nccl-all_reduce.log")}
    assert {"all-all_reduce", "r1-n0-n1", "r1-n2-n3", "r1-n4-n5"} <= kept


def test_ranks_that_share_a_host_are_no_measurement_of_the_network(tmp_path):
    packed = RoundAnswer({"rc": 0, "output": log(99.0, nodes=1)})
    result, _, _ = played(tmp_path, n4=packed)
    assert named(result) == [("node", ("n4",))] and "ran on 1 hosts by their own names, wanted 2" in result.found[0].why


def test_two_nccl_versions_in_one_job_are_named_as_that(tmp_path):
    """NCCL's own warning, shortened; the line around it is hand-written."""
    said = "n4:9:9 [0] NCCL INFO Using network Libfabric\nn4:9:9 [0] misc/socket.cc:1 NCCL WARN Mismatched NCCL version detected : rank 0 version 22703 rank 1 version 22602\n"
    result, _, _ = played(tmp_path, resolve("p5.48xlarge"), n4=RoundAnswer({"rc": 1, "output": log(500.0, said=said)}))
    assert "load different NCCL versions" in result.trouble


@pytest.mark.parametrize("count", [3, 5, 7, 9])
def test_an_odd_number_of_nodes_names_the_bad_one_wherever_it_stands(tmp_path, count):
    ring = tuple(f"m{at}" for at in range(count))
    for bad in ring:
        made = FabricNodes(ring, {node: node for node in ring}, NO_EFA, ("all_reduce",))
        result = drive(
            made, Play(made, **{bad: RoundAnswer({"rc": 1, "output": "no"})}), tmp_path / bad, lambda _: None
        )
        assert named(result) == [("node", (bad,))], bad


def test_ssh_refused_between_the_nodes_names_the_host_that_refuses(tmp_path):
    """Ansible reaches it; the other nodes' launcher does not. The launcher's words are hand-written."""
    refused = RoundAnswer({"rc": 255, "output": "ssh: connect to host n1 port 22: Connection refused\n"})
    result, _, _ = played(tmp_path, n1=refused)
    assert named(result) == [("node", ("n1",))] and "n1" not in result.healthy


def test_a_host_that_answers_under_another_name_is_told_by_the_machine_it_is(tmp_path):
    """n5's name leads to n0's machine, whose own name is a third: each machine takes part once, as who came first."""
    other = {"machine": "boot-1 ip-10-0-0-1", "hostname": "ip-10-0-0-1", "problems": []}
    result, play, _ = played(tmp_path, ready_n0=RoundAnswer(other), ready_n5=RoundAnswer(other))
    assert "same machine as n0" in result.left_out["n5"] and "n5" not in result.healthy and not result.go
    assert all("n5" not in nodes for _, tests in play.played for nodes in tests.values())


def test_a_node_that_dies_in_a_collective_is_named_even_where_it_comes_back_as_nothing(tmp_path):
    """The launcher's words are hand-written: the rank's signal, and no table."""
    died = RoundAnswer(
        {"rc": 137, "output": "mpirun noticed that process rank 1 on node n2 exited on signal 9 (Killed)"}
    )
    result, _, _ = played(tmp_path, n2=died)
    assert named(result) == [("node", ("n2",))] and result.healthy == ["n0", "n1", "n3", "n4", "n5"]
