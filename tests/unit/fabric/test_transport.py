"""EFA is proven by every rank or by none. All logs here are hand-written after NCCL's and nccl-tests' documented forms."""

import pytest

from flightline.fabric.drive import FabricNodes, RoundAnswer, drive
from flightline.fabric.transport import paths
from flightline_node.know.expected import resolve

HOSTS = ("ip-10-0-0-1", "ip-10-0-0-2")
EACH = 8


def listed(hosts=HOSTS, each=EACH):
    return [
        f"#  Rank {at * each + gpu:2} Group  0 Pid {100 + at * each + gpu} on {host} device  {gpu} [0x{gpu:02x}] NVIDIA H100"
        for at, host in enumerate(hosts)
        for gpu in range(each)
    ]


def said(rank, text, host=None, each=EACH):
    """One of NCCL's lines."""
    return f"{host or HOSTS[rank // each]}:{100 + rank}:{100 + rank} [{rank % each}] NCCL INFO {text}"


def efa(rank, **rest):
    return [
        said(rank, "NET/OFI Selected provider is efa, fabric is efa (found 32 nics)", **rest),
        said(rank, "Using network Libfabric", **rest),
    ]


def whole(instead=None):
    """A log in which every rank shows EFA; instead: rank -> its lines."""
    own = {rank: efa(rank) for rank in range(2 * EACH)} | (instead or {})
    return [*listed(), *(line for lines in own.values() for line in lines)]


def test_every_rank_with_network_and_provider_is_proof():
    found = paths(whole(), 2 * EACH)
    assert not found.fallback and not found.unproven


@pytest.mark.parametrize(
    "shown",
    ["Assigned NET plugin AWS Libfabric to comm", "Channel 00/0 : 3[3] -> 11[3] [send] via NET/AWS Libfabric/0/GDRDMA"],
)
def test_other_words_for_the_same(shown):
    assert not paths(whole({3: [efa(3)[0], said(3, shown)]})).unproven


@pytest.mark.parametrize(
    ("line", "used"),
    [
        ("Using network Socket", "Socket"),
        ("Using network IB", "IB"),
        ("Assigned NET plugin Socket to comm", "Socket"),
        ("NET/OFI Selected provider is tcp;ofi_rxm, fabric is tcp (found 1 nics)", "libfabric's provider tcp;ofi_rxm"),
        ("Channel 00/0 : 11[3] -> 3[3] [send] via NET/Socket/0", "Socket"),
    ],
)
@pytest.mark.parametrize("beside", [True, False])
def test_one_rank_on_another_way_is_named_with_its_host(line, used, beside):
    found = paths(whole({11: [*(efa(11) if beside else ()), said(11, line)]}))
    assert found.fallback == f"rank 11 on ip-10-0-0-2 used {used}, wanted EFA on every rank"
    assert found.by_host == {"ip-10-0-0-2": f"rank 11 used {used}, wanted EFA on every rank"}


@pytest.mark.parametrize("own", [[], efa(5)[:1], efa(5)[1:], ["NCCL INFO Using network Libfabric"]])
def test_a_rank_that_does_not_show_both_is_unproven_whatever_the_others_show(own):
    assert "rank 5 on ip-10-0-0-1" in paths(whole({5: own})).unproven


def test_a_rank_that_the_log_does_not_list_is_missing():
    lines = [line for line in whole() if "Rank  7" not in line]
    assert "lacks 1 ranks" in paths(lines, 2 * EACH).unproven
    assert "lacks 16 ranks" in paths([], 2 * EACH).unproven


def test_interleaved_ranks_are_told_apart():
    lines = whole({2: [efa(2)[0], said(2, "Using network Socket")]})
    turned = [*listed(), *reversed(lines[2 * EACH :])]
    assert paths(turned).fallback.startswith("rank 2 on ip-10-0-0-1 used Socket")


def test_a_line_that_begins_inside_another_belongs_to_its_own_rank():
    """Rank 9's line broke into rank 1's: what stands before its host's name is rank 1's."""
    torn = said(1, "Using network Libfabric") + said(9, "Using network Socket")
    found = paths(whole({1: [efa(1)[0], torn], 9: [efa(9)[0]]}))
    assert list(found.by_host) == ["ip-10-0-0-2"] and not found.silent
    turned = said(9, "Using network Socket") + said(1, "Using network Libfabric")
    found = paths(whole({1: [efa(1)[0], turned], 9: [efa(9)[0]]}))
    assert list(found.by_host) == ["ip-10-0-0-2"] and not found.silent


@pytest.mark.parametrize("cut", range(len("Using network ")))
def test_a_line_cut_before_its_name_is_no_proof_and_no_fault(cut):
    torn = said(1, "Using network "[:cut]) + said(9, "Using network Libfabric")
    found = paths(whole({1: [efa(1)[0], torn, "work Libfabric"], 9: [efa(9)[0]]}))
    assert not found.fallback and "rank 1 on" in found.unproven and "rank 9" not in found.unproven


@pytest.mark.parametrize("cut", ["Lib", "AWS L", "Libfabri"])
def test_the_beginning_of_the_right_name_is_no_proof_and_no_fault(cut):
    found = paths(whole({1: [efa(1)[0], said(1, f"Using network {cut}")]}))
    assert not found.fallback and "rank 1 on" in found.unproven


def test_ranks_of_one_process_are_told_apart_by_device():
    header = [f"#  Rank {gpu} Group  0 Pid 100 on h1 device  {gpu} [0x00] NVIDIA H100" for gpu in range(2)]
    own = ["h1:100:100 [0] NCCL INFO NET/OFI Selected provider is efa, fabric is efa (found 32 nics)"]
    own += [f"h1:100:{100 + gpu} [{gpu}] NCCL INFO Using network Libfabric" for gpu in range(2)]
    assert not paths([*header, *own], 2).unproven
    assert "rank 1 on h1" in paths([*header, *own[:-1]], 2).unproven
    assert paths([*header, *own[:-1], "h1:100:101 [1] NCCL INFO Using network Socket"]).fallback.startswith(
        "rank 1 on h1"
    )


def table(busbw, ranks):
    """The rows after the ranks."""
    names = "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong"
    row = f"  8589934592    2147483648     float     sum      -1    100.0   {busbw:6.2f}  {busbw:6.2f}      0    100.0   {busbw:6.2f}  {busbw:6.2f}      0"
    return [names, row, "# Out of bounds values : 0 OK", f"# Avg bus bandwidth    : {busbw}"]


def test_one_rank_on_sockets_names_its_node_even_where_bandwidth_passes(tmp_path):
    """All nodes together show it once, and no pair shows it again."""
    head = "# nThread 1 nGpus 1 minBytes 8589934592 maxBytes 8589934592 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0"

    def log(hosts, socket=None):
        own = {}
        for rank in range(len(hosts) * EACH):
            host = hosts[rank // EACH]
            own[rank] = efa(rank, host=host)
            if rank == socket:
                own[rank] = [efa(rank, host=host)[0], said(rank, "Using network Socket", host=host)]
        return "\n".join(
            [
                head,
                *listed(hosts),
                *(line for lines in own.values() for line in lines),
                *table(480.0, len(hosts) * EACH),
                "",
            ]
        )

    ring = ("a", "b", "c", "d")
    called = {node: f"ip-10-0-0-{at}" for at, node in enumerate(ring, 1)}

    def play(name, tests, collective):
        if not tests:
            return {
                node: RoundAnswer({"machine": node, "hostname": called[node] + ".ec2.internal", "problems": []})
                for node in ring
            }
        socket = 19 if name.startswith("all") else None
        return {
            leader: RoundAnswer({"rc": 0, "output": log([called[node] for node in nodes], socket)})
            for leader, nodes in tests.items()
        }

    made = FabricNodes(ring, {node: node for node in ring}, resolve("p5.48xlarge"), ("all_reduce",), ranks=EACH)
    result = drive(made, play, tmp_path, lambda _: None)
    assert result.trouble == "all_reduce: rank 19 on ip-10-0-0-3 used Socket, wanted EFA on every rank"
    assert [(blame.kind, blame.nodes) for blame in result.found] == [("node", ("c",))] and not result.go
    assert "rank 19 used Socket" in result.found[0].why and result.healthy == ["a", "b", "d"]
    healthy = drive(made, lambda name, tests, _: play("r", tests, _), tmp_path / "h", lambda _: None)
    assert healthy.go and healthy.healthy == list(ring)
