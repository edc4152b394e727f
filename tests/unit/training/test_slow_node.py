"""A node 3 % slow is named within 100 steps and no healthy run accused: simulated steps and simulated Inspector dumps.

Simulated after the forms of the job contract and of NCCL 2.30's Inspector; the noise is ours: 4 % from step to step, a
tenth of the steps late by up to 30 %, 0.5 % from GPU to GPU for good.
"""

import json
import random

import pytest
from click.testing import CliRunner

from flightline.commands.blame import command
from flightline.training import slow

NODES, GPUS, STEPS, STEP_S = 8, 8, 100, 1.0
SLOW = 5


def own_times(seed, factor):
    """Seconds of own work by rank and step."""
    chance = random.Random(seed)
    for_good = [chance.gauss(1.0, 0.005) * (factor if rank // GPUS == SLOW else 1.0) for rank in range(NODES * GPUS)]
    for step in range(STEPS):
        late = 1.0 + chance.random() * 0.3 if chance.random() < 0.1 else 1.0
        yield step, [STEP_S * late * of * chance.gauss(1.0, 0.04) for of in for_good]


def journals(folder, seed, factor):
    lines = {
        rank: [{"event": "start", "host": f"gpu-{rank // GPUS:02d}", "world": NODES * GPUS, "device": rank % GPUS}]
        for rank in range(NODES * GPUS)
    }
    for step, times in own_times(seed, factor):
        for rank, seconds in enumerate(times):
            lines[rank].append({"event": "step", "step": step, "local_s": seconds, "step_s": max(times)})
    for rank, of in lines.items():
        text = "".join(json.dumps({"time": 1.0, "rank": rank, "attempt": 0, **one}) + "\n" for one in of)
        (folder / f"rank-{rank:06d}.jsonl").write_text(text)


def inspector(folder, seed, factor):
    """Each rank's kernel runs from its own arrival to the end that all share: who comes last waits least."""
    lines, at = {rank: [] for rank in range(NODES * GPUS)}, 1_700_000_000.0
    for step, times in own_times(seed, factor):
        at += max(times) + 0.05
        for rank, seconds in enumerate(times):
            host = f"gpu-{rank // GPUS:02d}"
            lines[rank].append({
                "header": {"id": "0xa", "comm_name": "unknown", "rank": rank, "n_ranks": NODES * GPUS, "nnodes": NODES},
                "metadata": {"inspector_output_format_version": "v4.0", "dump_timestamp_us": int(at * 1e6), "hostname": host, "pid": 100 + rank % GPUS},
                "coll_perf": {"coll": "AllReduce", "coll_sn": step, "coll_msg_size_bytes": 1 << 30, "coll_timing_source": "kernel_gpu",
                              "coll_exec_time_us": int(1e6 * (max(times) - seconds + 0.05)), "coll_algobw_gbs": 1.0, "coll_busbw_gbs": 1.0}})  # fmt: skip
    for rank, of in lines.items():
        (folder / f"gpu-{rank // GPUS:02d}-pid{100 + rank % GPUS}.log").write_text(
            "".join(json.dumps(one) + "\n" for one in of)
        )


@pytest.mark.parametrize("kind", [journals, inspector])
def test_a_slow_node_is_named_within_100_steps(tmp_path, kind):
    kind(tmp_path, 1, 1.03)
    (one,) = json.loads(CliRunner().invoke(command, [str(tmp_path), "--json"]).output)["blames"]
    assert (one["kind"], one["rank"], one["node"], one["cause"]) == ("slow", None, f"gpu-{SLOW:02d}", "slow")
    assert "gpu-05" in CliRunner().invoke(command, [str(tmp_path)]).output


def test_of_100_healthy_runs_none_is_accused_and_a_node_3_percent_slow_is_found():
    hosts = {rank: f"gpu-{rank // GPUS:02d}" for rank in range(NODES * GPUS)}

    def named(seed, factor):
        steps = {rank: {} for rank in hosts}
        for step, times in own_times(seed, factor):
            for rank, seconds in enumerate(times):
                steps[rank][step] = seconds
        return [one.node for one in slow.slow_nodes(slow.deviations(steps), hosts)]

    assert [named(seed, 1.0) for seed in range(100)] == [[]] * 100
    found = [named(seed, 1.03) for seed in range(100, 200)]
    assert found.count([f"gpu-{SLOW:02d}"]) >= 95 and all(one in ([], [f"gpu-{SLOW:02d}"]) for one in found)


def test_too_few_nodes_or_steps_say_nothing():
    few = {rank: [0.03 if rank == 1 else 0.0] * 100 for rank in range(4)}
    assert slow.slow_nodes(few, {0: "a", 1: "b", 2: "a", 3: "a"}) == []
    assert slow.slow_nodes({rank: of[:10] for rank, of in few.items()}, {rank: str(rank) for rank in few}) == []
    assert [one.node for one in slow.slow_nodes(few, {rank: str(rank) for rank in few})] == ["1"]


def test_a_log_that_is_only_named_as_inspector_names_its_dumps_is_read(tmp_path):
    (tmp_path / "gpu-01-pid7.log").write_text(
        "[rank5]: Traceback (most recent call last):\n[rank5]:   File\n[rank5]: KeyError: 2\n"
    )
    (one,) = json.loads(CliRunner().invoke(command, [str(tmp_path), "--json"]).output)["blames"]
    assert one["rank"] == 5
