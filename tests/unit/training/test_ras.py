"""NCCL's RAS text names who holds up a living job; the texts are written by hand in the form of NCCL 2.30's sources and user guide."""

import json
import socket
import threading

import pytest
from click.testing import CliRunner

from flightline.commands.blame import command
from flightline_node.train import ras
from flightline_node.train.plan import plan
from flightline_node.train.pulse import Pulse
from flightline_node.train.stall import Stall
from flightline_node.train.starts import StartEvidence
from flightline_node.train.watching import StallWatch

from .test_launcher import SETTINGS

HEAD = """NCCL version 2.30.7 compiled with CUDA 13.0
CUDA runtime version 13000, driver version 13000

Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0  {comms:8}         2         4         8         8   RUNNING  MISMATCH

"""
WHO = "GPU 3 managed by process 4711 on node 10.0.0.5"


def mismatch(behind, rest, rank="Rank 3", what="AllReduce", comms=1):
    return (
        HEAD.format(comms=comms)
        + f"""Warnings
========

#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different {what} operation counts
  7 ranks have launched up to operation {rest}
  {rank} has launched up to operation {behind} -- {WHO}

"""
    )


ONE_SILENT = (
    HEAD.format(comms=1)
    + f"""Errors
======

INCOMPLETE
  Missing communicator data from 1 job process
  Process 4711 on node 10.0.0.5 managing GPU 3

#0-0 (cf264af53edbe986) INCOMPLETE
  Missing communicator data from 1 rank
  Rank 3 -- {WHO}

"""
)
DEAD = ONE_SILENT.replace(
    "INCOMPLETE\n  Missing communicator data from 1 job process",
    "DEAD\n  1 job process is considered dead (unreachable via the RAS network)",
)
OLD = DEAD.replace(f"  Rank 3 -- {WHO}", "  The missing rank: 3")
TWO = ONE_SILENT.replace(
    f"  Rank 3 -- {WHO}", f"  Rank 3 -- {WHO}\n  Rank 6 -- GPU 2 managed by process 9 on node 10.0.0.6"
)
AHEAD = f"""  Communicator ranks have different AllGather operation counts
  7 ranks have launched up to operation 40
  Rank 3 has launched up to operation 41 -- {WHO}

"""
ODD = mismatch(100, 101) + AHEAD
HEALTHY = HEAD.format(comms=1).replace("MISMATCH", "OK")
SUMMARY = """Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      2          4            1          {0}        {0}

"""
UNEVEN = """Job summary
===========

  Nodes  Processes         GPUs
          per node  per process
      1          8            1
      1          {0}            1

  Nodes  Processes         GPUs
(total)    (total)      (total)
      2          {1}           {1}

"""


def of_job(text, summary):
    return text.replace("Communicators...", summary + "Communicators...")


LARGER = "RUNNING  MISMATCH\n    1         4         2         8        16        64   RUNNING      OK\n"
CASES = {
    "silent, of a whole job": (of_job(ONE_SILENT, SUMMARY.format(8)), [3], "hung", "stopped"),
    "silent, of a part": (of_job(ONE_SILENT, SUMMARY.format(16)), [None], "hung", "stopped"),
    "silent, of a part of uneven nodes": (of_job(ONE_SILENT, UNEVEN.format(2, 10)), [None], "hung", "stopped"),
    "dead, of a part, NCCL 2.24": (of_job(OLD, SUMMARY.format(16)), [None], "vanished", "died"),
    "dead, and no more counted": (of_job(DEAD, UNEVEN.format(7, 7)), [3], "vanished", "died"),
    "behind, of a part": (of_job(mismatch(100, 101), SUMMARY.format(16)) * 2, [None], "hung", "stopped"),
    "silent, beside larger ones": (ONE_SILENT.replace("RUNNING  MISMATCH\n", LARGER), [None], "hung", "stopped"),
    "behind, twice the same": (mismatch(100, 101) * 2, [3], "hung", "stopped"),
    "behind, once": (mismatch(100, 101), [None], "unknown", "not known"),
    "behind, and comes on": (mismatch(100, 101) + mismatch(200, 201), [], None, None),
    "ahead of all others": (mismatch(102, 101) * 2, [None], "unknown", "not known"),
    "a group of many": (mismatch(100, 101, comms=8) * 2, [None], "hung", "stopped"),
    "silent": (ONE_SILENT, [3], "hung", "stopped"),
    "dead": (DEAD, [3], "vanished", "died"),
    "dead, NCCL 2.24": (OLD, [3], "vanished", "died"),
    "two silent": (TWO, [None], "unknown", "not known"),
    "called another": (ODD * 2, [3], "hung", "mismatch"),
    "healthy": (HEALTHY, [], None, None),
}  # fmt: skip


@pytest.mark.parametrize(("text", "ranks", "kind", "cause"), CASES.values(), ids=CASES)
def test_blame_reads_ras(tmp_path, text, ranks, kind, cause):
    (tmp_path / "ras.txt").write_text(text)
    found = json.loads(CliRunner().invoke(command, [str(tmp_path), "--json"]).output)["blames"]
    assert [one["rank"] for one in found] == ranks
    if found:
        assert (found[0]["kind"], found[0]["cause"]) == (kind, cause)
    if found and cause != "not known":
        assert "10.0.0.5" in found[0]["why"] and found[0]["device"] == 3
        assert found[0]["node"] == "10.0.0.5"


def test_what_a_rank_raised_comes_before_what_ras_says_of_it(tmp_path):
    (tmp_path / "ras.txt").write_text(DEAD)
    (tmp_path / "job.log").write_text(
        "[rank5]: Traceback (most recent call last):\n[rank5]:   File\n[rank5]: KeyError: 2\n"
    )
    (one,) = json.loads(CliRunner().invoke(command, [str(tmp_path), "--json"]).output)["blames"]
    assert (one["rank"], one["cause"]) == (5, "software")


@pytest.fixture
def server():
    """A stand-in of a rank's RAS thread: answers each VERBOSE STATUS and closes."""
    heard, texts = [], [mismatch(100, 101), mismatch(100, 101)]
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve():
            for text in texts:
                peer = listening.accept()[0]
                with peer, peer.makefile("rw") as file:
                    heard.append(file.readline())
                    file.write(text)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listening.getsockname()[1]}", heard


def test_a_living_job_is_asked_twice(server, tmp_path):
    address, heard = server
    text = ras.asked(address, pause_s=0.01)
    assert heard == ["VERBOSE STATUS\n"] * 2
    (tmp_path / "ras.txt").write_text(text)
    (one,) = json.loads(CliRunner().invoke(command, [str(tmp_path), "--json"]).output)["blames"]
    assert one["rank"] == 3


def test_where_nobody_listens_there_is_no_text():
    assert ras.asked("127.0.0.1:1") == "" == ras.asked("nonsense")


def test_a_job_that_takes_connections_and_says_nothing_is_no_healthy_one(tmp_path, monkeypatch):
    monkeypatch.setattr(ras, "DEADLINE_S", 0.2)
    (tmp_path / "out.log").write_text("step 1\n")
    # The kernel accepts for a process that is stopped.
    with socket.create_server(("127.0.0.1", 0)) as listening:
        words = [str(tmp_path), "--json", "--ras", f"127.0.0.1:{listening.getsockname()[1]}"]
        done = CliRunner().invoke(command, words)
    (one,) = json.loads(done.output)["blames"]
    assert done.exit_code == 1 and one["kind"] == "unknown" and "gave no answer" in one["why"]
    nobody = CliRunner().invoke(command, [str(tmp_path), "--ras", "127.0.0.1:1"])
    assert nobody.exit_code == 0 and "RAS at 127.0.0.1:1: nobody listens there" in nobody.output


def test_a_hang_asks_ras_and_blame_finds_its_answer(server, tmp_path):
    address, _ = server
    one = {"command": ["x"], "environment": {"NCCL_RAS_ADDR": address}}
    made = plan("demo", {**SETTINGS, "logs": str(tmp_path)}, one, {}, "")
    evidence, said = StartEvidence(made), []
    evidence.begin()
    watch = StallWatch(made, evidence, 1, said.append)
    watch._found(Stall([], 20.0, 1.0, ["rank 0 asleep"]), Pulse(0.0, 0, (), frozenset()))
    assert any(line.startswith("rank 3: RAS: process 4711") for line in said)
    (found,) = json.loads(CliRunner().invoke(command, [str(tmp_path / "demo"), "--json"]).output)["blames"]
    assert (found["rank"], found["cause"]) == (3, "stopped")
