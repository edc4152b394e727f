"""The command over real MPI traffic: what is slow is named, what is healthy is cleared, and nothing is left running.

The hosts are network namespaces of this machine, shaped with tc; the collective is an MPI program of these tests that
prints nccl-tests' table. FLIGHTLINE_FABRIC_CASES sets how many random cases of each sort there are, and
FLIGHTLINE_FABRIC_COMMAND_CASES how many of them go through the whole command and Ansible.
"""

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from flightline_host.trial import collective
from tests.beds import ROOT, ran, until
from tests.fabric import cases, direct
from tests.fabric.bed import NEEDED, RATE_MBIT, bed, spaces

CASES = int(os.environ.get("FLIGHTLINE_FABRIC_CASES", "20"))
COMMAND_CASES = int(os.environ.get("FLIGHTLINE_FABRIC_COMMAND_CASES", "2"))
HOSTS = cases.HOSTS
pytestmark = NEEDED


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    with bed(tmp_path_factory.mktemp("bed"), HOSTS) as made:
        yield made


@pytest.fixture(autouse=True)
def healthy_again(request):
    yield
    if "hosts" in request.fixturenames:
        made = request.getfixturevalue("hosts")
        for name in made.names:
            made.shape(name, RATE_MBIT)


def command(hosts, place, *more, program=cases.PROGRAM, deadline_s=40, collectives=("all_reduce",)):
    argv = [sys.executable, "-m", "flightline", "fabric", "-i", str(hosts.inventory), "--ranks", "1"]
    argv += ["--program", f"{hosts.program} {program}", "--deadline", str(deadline_s)]
    argv += ["--least-share", str(cases.LEAST_SHARE)]
    argv += [f"--launcher-option={option}" for option in hosts.options]
    argv += [f"--collective={name}" for name in collectives]
    env = {**os.environ, "FLIGHTLINE_STORE": str(place / "runs.sqlite"), "PYTHONPATH": str(ROOT)}
    return [*argv, "--json", str(place / "result.json"), *more], env


def outcome(hosts, place, *more, **rest):
    argv, env = command(hosts, place, *more, **rest)
    done = ran(*argv, env=env, cwd=ROOT)
    assert "Traceback" not in done.stdout + done.stderr
    result = json.loads((place / "result.json").read_text()) if (place / "result.json").exists() else {}
    return done, result


def named(result):
    return {tuple(fault["nodes"]) for fault in result["faults"]}


def nothing_is_left(result):
    return not result["strays"] and not collective.strays(f"{result['run']}-all-all-reduce")


@pytest.mark.parametrize("sort", ["healthy", "shaped"])
@pytest.mark.parametrize("seed", range(CASES))
def test_a_healthy_bed_is_cleared_and_what_is_shaped_is_named(hosts, tmp_path, sort, seed):
    """Less bandwidth or lost packets, of a host or of one direction between two neighbours."""
    row = cases.run(hosts, sort, seed, tmp_path)
    assert row["right"], row


@pytest.mark.parametrize("case", range(COMMAND_CASES))
def test_the_command_clears_a_healthy_bed(hosts, tmp_path, case):
    done, result = outcome(hosts, tmp_path)
    assert (done.returncode, result["faults"], result["healthy"]) == (0, [], hosts.names), done.stdout
    assert nothing_is_left(result)


@pytest.mark.parametrize("case", range(COMMAND_CASES))
def test_the_command_names_the_shaped_host_or_path(hosts, tmp_path, case):
    fault, truth = cases.shape(hosts, case)
    done, result = outcome(hosts, tmp_path, "--hostfile", str(tmp_path / "hosts"))
    assert done.returncode == 1 and named(result) == {truth}, f"{fault} {truth}: {done.stdout}"
    healthy = [name for name in hosts.names if name not in truth]
    assert result["healthy"] == healthy and nothing_is_left(result)
    assert (tmp_path / "hosts").read_text() == "".join(f"{hosts.address(name)} slots=1\n" for name in healthy)


@pytest.mark.parametrize("fault", ["exit", "kill", "hang", "wrong"])
def test_a_rank_that_breaks_the_collective_ends_it_everywhere(hosts, tmp_path, fault):
    """It is rank 1 of every test, of all nodes and of each pair: nobody can be cleared, and nobody is."""
    done, result = outcome(hosts, tmp_path, program=f"256 256 5 --fault {fault} 1", deadline_s=6)
    assert (
        done.returncode == 1 and result["healthy"] == [] and {fault["kind"] for fault in result["faults"]} == {"fabric"}
    )
    assert nothing_is_left(result)


def test_enough_healthy_nodes_are_go(hosts, tmp_path):
    hosts.shape("n2", RATE_MBIT / 4)
    done, result = outcome(hosts, tmp_path, "--need", "5")
    assert done.returncode == 0 and result["healthy"] == ["n0", "n1", "n3", "n4", "n5"], done.stdout
    done, _ = outcome(hosts, tmp_path, "--need", "6")
    assert done.returncode == 1


def test_ctrl_c_ends_the_test_on_every_node(hosts, tmp_path):
    argv, env = command(hosts, tmp_path, program="256 256 5 --fault hang 1", deadline_s=120)
    process = subprocess.Popen(argv, env=env, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def ours():
        return [pid for pid in os.listdir("/proc") if pid.isdecimal() and _runs(pid, str(hosts.program))]

    assert until(lambda: len(ours()) >= HOSTS)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 2 and "Traceback" not in said and ours() == []


def _runs(pid, program):
    try:
        return program in Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return False


def test_every_collective_runs_over_all_nodes(hosts, tmp_path):
    every = ("all_reduce", "all_gather", "reduce_scatter", "alltoall")
    argv, env = command(hosts, tmp_path, collectives=every)
    argv[argv.index("--program") + 1] = f"{hosts.place}/{{collective}}_perf 256 512 3"
    done = ran(*argv, env=env, cwd=ROOT)
    result = json.loads((tmp_path / "result.json").read_text())
    assert done.returncode == 0 and list(result["together"]) == list(every), done.stdout
    assert all(log["busbw_gb_s"] > 0 and not log["trouble"] for log in result["together"].values())


_MAKER = """
import sys, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tests.fabric.bed import bed
with bed(Path(sys.argv[1]), 2) as made:
    print(made.tag, flush=True)
    time.sleep(300)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_however_its_maker_ends_nothing_of_a_bed_is_left(tmp_path, number):
    maker = subprocess.Popen([sys.executable, "-c", _MAKER, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    tag = maker.stdout.readline().strip()
    assert tag and spaces(tag)
    maker.send_signal(number)
    maker.wait(60)
    until(lambda: not spaces(tag))
    assert spaces(tag) == []


def test_fewer_than_two_hosts_and_a_missing_program_are_said(hosts, tmp_path):
    done, _ = outcome(hosts, tmp_path, "--limit", "n0")
    assert done.returncode == 2 and "wanted two or more" in done.stderr
    argv, env = command(hosts, tmp_path)
    argv[argv.index("--program") + 1] = "/no/such/program"
    done = ran(*argv, env=env, cwd=ROOT)
    assert done.returncode == 1 and "no program /no/such/program" in done.stdout


def test_sigkill_of_mpirun_leaves_no_rank_on_any_host(hosts):
    """Its daemons notice, or each rank meets its own deadline: nobody else is left to end them."""
    run_id = f"killed-{os.getpid()}"
    argv = [str(hosts.program), *["128", "128", "3", "--fault", "hang", "1"]]
    play = direct.Direct(hosts, run_id, argv, deadline_s=10)
    tests = {hosts.names[0]: [hosts.address(name) for name in hosts.names[:3]]}
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(play, "r1", tests, "all_reduce")
        until(lambda: _names(run_id).count("all_reduce_perf") >= 3)
        assert _names(run_id).count("all_reduce_perf") == 3
        for pid in [pid for pid, name in collective.strays(f"{run_id}-r1").items() if name in ("mpirun", "orterun")]:
            os.kill(pid, signal.SIGKILL)
        until(lambda: not _names(run_id))
        assert _names(run_id) == [] and answer.result(60)[hosts.names[0]].facts["rc"] != 0


def _names(run_id):
    return list(collective.strays(f"{run_id}-r1").values())
