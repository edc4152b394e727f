"""Who is to blame: dumps and journals made here by hand, in the form that PyTorch 2.9 writes (seen over gloo)."""

import json
import pickle

import pytest
from click.testing import CliRunner

from flightline.commands.blame import command
from flightline.training import flight, slow
from flightline.training.hang import suspects

WORLD = ["0", "default_pg"]


def entry(sequence, name="all_reduce", group=WORLD, state="scheduled", size=64, at=None, **more):
    made = {"collective_seq_id": sequence, "process_group": group, "profiling_name": f"gloo:{name}", "state": state,
            "input_sizes": [[size]], "is_p2p": False, "time_created_ns": at or sequence}  # fmt: skip
    return {**made, **more}


def test_point_to_point_has_numbers_of_its_own_and_no_dump_blames_nobody():
    assert flight.calls({"entries": [entry(1, is_p2p=True)]}) == []
    assert suspects([], 4) == []


class Evil:
    def __reduce__(self):
        return print, ("run",)


def test_a_pickle_may_hold_plain_values_only(tmp_path, capsys):
    (tmp_path / "nccl_trace_rank_3").write_bytes(pickle.dumps({"entries": [entry(5)]}))
    (tmp_path / "nccl_trace_rank_4").write_bytes(pickle.dumps({"entries": Evil()}))
    (tmp_path / "nccl_trace_rank_5").write_bytes(pickle.dumps({"entries": []})[:-3])
    (tmp_path / "flight-000006.json").write_text('{"entries": 1}')
    found, wrong = flight.dumps(tmp_path)
    assert [(one.rank, one.calls[0].sequence) for one in found] == [(3, 5)]
    assert len(wrong) == 3 and any("builtins.print, wanted plain values only" in line for line in wrong)
    assert capsys.readouterr().out == ""


def steps(*local, data=0.001, whole=0.1):
    return [{"local_s": one, "data_s": data, "step_s": whole} for one in local]


def test_a_straggler_is_named_with_both_figures():
    given = {rank: steps(*[0.050 + rank / 10_000] * 5) for rank in range(7)} | {7: steps(*[0.070] * 5)}
    (one,) = slow.stragglers(given)
    why = "70.0 ms of its own work in a step, the median of the ranks is 50.4 ms (+39%)"
    assert one.rank == 7 and one.why.startswith(why)


@pytest.mark.parametrize(
    "given",
    [
        {rank: steps(0.05 + 0.004 * (rank % 2)) for rank in range(8)},
        {rank: steps(0.05 if rank < 2 else 0.5) for rank in range(3)},
        {rank: steps(0.05, 0.05, 0.9 if rank == 3 else 0.05) for rank in range(8)},
        {rank: [{"local_s": None}] for rank in range(8)},
    ],
    ids=["noise", "too few ranks", "one slow step", "not measured"],
)
def test_who_is_no_straggler(given):
    assert slow.stragglers(given) == []


@pytest.mark.parametrize(
    ("step", "wanted"),
    [
        ({"data_s": 0.4, "own_s": 0.1}, "data"),
        ({"data_s": 0.0, "own_s": 0.5}, "network"),
        ({"data_s": 0.0, "own_s": 0.9, "gpu_percent": 30.0, "cpu_s": 0.95}, "cpu"),
        ({"data_s": 0.0, "own_s": 0.9, "gpu_percent": 30.0, "cpu_s": 0.5}, "idle"),
        ({"data_s": 0.0, "own_s": 0.9, "gpu_percent": 95.0, "cpu_s": 0.99}, None),
        ({"data_s": 0.0, "own_s": 0.9, "cpu_s": 0.99}, None),
        ({"data_s": 0.0, "own_s": None, "cpu_s": None, "gpu_percent": None}, None),
    ],
    ids=["data", "network", "cpu", "low and nobody knows why", "gpu is busy", "trained on the cpu", "not measured"],
)
def test_what_all_ranks_wait_for(step, wanted):
    found = slow.bottleneck({rank: [{"step_s": 1.0, **step}] * 5 for rank in range(4)})
    assert (found[0] if found else None) == wanted


def test_the_use_of_the_gpus_and_its_spread_are_said():
    low = {rank: [{"step_s": 1.0, "data_s": 0.3, "gpu_percent": 20.0 + 10 * rank}] for rank in range(3)}
    assert (slow.bottleneck(low) or ("", ""))[1].endswith("the GPUs are used 30%, of the ranks 20% to 40%")


def say(folder, rank, *events, attempt=0):
    with (folder / f"rank-{rank:06d}.jsonl").open("a") as file:
        for at, (name, values) in enumerate(events):
            file.write(
                json.dumps({"event": name, "rank": rank, "attempt": attempt, "time": 100.0 + at, **values}) + "\n"
            )


def start(rank, world=4):
    return "start", {"world": world, "host": f"gpu-{rank // 2:02d}", "device": rank % 2, "pid": 1}


def raised(text, at=200.0, step=7):
    return "exception", {"type": "RuntimeError", "text": text, "step": step, "time": at}


def blame(folder):
    result = CliRunner().invoke(command, [str(folder), "--json"])
    return result.exit_code, json.loads(result.output)["blames"]


CLOSED = "Connection closed by peer [127.0.0.1]:3321"
TIMEOUT = "Timed out waiting 10000ms for recv operation to complete"


def test_the_first_own_exception_counts_and_not_the_last_or_first_complaint(tmp_path):
    say(tmp_path, 0, start(0), raised(CLOSED, at=200.1))
    say(tmp_path, 1, start(1), raised(CLOSED, at=199.9))
    say(tmp_path, 2, start(2), raised("index 9 is out of bounds", at=200.0))
    say(tmp_path, 3, start(3), raised("another own one", at=203.0))
    status, (one,) = blame(tmp_path)
    place = one["kind"], one["rank"], one["node"], one["device"], one["step"]
    assert status == 1 and place == ("failed", 2, "gpu-01", 0, 7)


def test_a_rank_that_is_gone_without_a_word(tmp_path):
    for rank in (0, 1, 3):
        say(tmp_path, rank, start(rank), raised(CLOSED))
        (tmp_path / f"flight-{rank:06d}.json").write_text(json.dumps({"entries": [entry(1)]}))
    say(tmp_path, 2, start(2))
    assert [(one["kind"], one["rank"]) for one in blame(tmp_path)[1]] == [("vanished", 2)]


def test_a_hang_is_named_by_the_flight_recorder(tmp_path):
    for rank in range(4):
        say(tmp_path, rank, start(rank), raised(TIMEOUT))
        entries = [entry(1)] if rank == 3 else [entry(1), entry(2)]
        (tmp_path / f"flight-{rank:06d}.json").write_text(json.dumps({"entries": entries}))
    (one,) = blame(tmp_path)[1]
    assert (one["kind"], one["rank"], one["node"], one["device"]) == ("hung", 3, "gpu-01", 1)


def test_only_the_last_start_counts_and_half_a_line_is_said(tmp_path):
    say(tmp_path, 0, start(0, 1), raised("first start"))
    say(tmp_path, 0, start(0, 1), ("step", {"step": 1}), ("finished", {}), attempt=1)
    with (tmp_path / "rank-000000.jsonl").open("a") as file:
        file.write('{"event": "st')
    result = CliRunner().invoke(command, [str(tmp_path), "--json"])
    unread = json.loads(result.output)["unreadable"]
    assert (result.exit_code, unread) == (0, ["rank-000000.jsonl:6: not a whole event"])


def test_waiting_for_data_is_said(tmp_path):
    for rank in range(4):
        say(tmp_path, rank, start(rank), *[("step", {"step": at, "step_s": 1.0, "data_s": 0.4}) for at in range(5)])
    found = [(one["kind"], one["why"]) for one in blame(tmp_path)[1]]
    assert found == [("data", "40% of a step is waiting for its data")]


def test_the_network_is_not_to_blame_for_the_wait_for_a_straggler(tmp_path):
    for rank in range(4):
        own = 0.5 if rank == 3 else 0.2
        step = {"step_s": 0.6, "data_s": 0.0, "local_s": own, "own_s": own}
        say(tmp_path, rank, start(rank, 4), *[("step", {"step": at, **step}) for at in range(5)])
    assert [(one["kind"], one["rank"]) for one in blame(tmp_path)[1]] == [("slow", 3)]


def test_nothing_to_read_is_no_acquittal(tmp_path):
    result = CliRunner().invoke(command, [str(tmp_path)])
    assert result.exit_code == 2 and "saw no journal" in result.output


def test_it_reads_well(tmp_path):
    say(tmp_path, 0, start(0, 1), raised("index 9 is out of bounds\nmore"))
    result = CliRunner().invoke(command, [str(tmp_path)])
    where = "failed    rank 0 (gpu-00, GPU 0) at step 7: "
    assert f"{where}the first of 1 ranks that failed: RuntimeError: index 9" in result.output
