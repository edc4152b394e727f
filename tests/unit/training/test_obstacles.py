"""What stands in the way of a start, and that the launcher says it: no mount, no port, no meeting, a name that is taken."""

import json
import os
import socket
import time
from pathlib import Path

import pytest
import yaml

from flightline_node.train import herald, obstacles
from flightline_node.train.job_run import REFUSED
from flightline_node.train.plan import Meeting
from tests.beds import free_port

from .test_launcher import Site

ROLES = Path(__file__).parents[3] / "roles"


def test_the_gate_is_where_the_role_flightline_node_installs_it():
    gate = yaml.safe_load((ROLES / "training/defaults/main.yml").read_text())["training_gate"][0]
    written = yaml.safe_load((ROLES / "flightline_node/vars/main.yml").read_text())
    assert f"path: {gate}," in str(written).replace("'", "")


def job(site: Site, **more):
    (site.root / "jobs" / "demo.json").write_text(json.dumps({"command": ["x.py"], **more}))
    return site


def test_a_shared_file_system_that_is_not_mounted_refuses_the_node(tmp_path):
    site = Site(tmp_path, "exit 0", mounts=[str(tmp_path)])
    status, said = site.run()
    assert (status, site.count("starts"), site.count("gates")) == (77, 0, 0)
    assert f"{tmp_path}: saw nothing mounted there" in said
    assert job(site, mounts=["/proc"]).run()[0] == 0, "the job's own replace the node's"


def test_a_mount_that_hangs_holds_nothing(tmp_path, monkeypatch):
    (tmp_path / "stat").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "stat").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(obstacles, "MOUNT_S", 0.2)
    assert obstacles.not_mounted(["/proc"]) == "/proc: gives no answer in 0 s"


def test_a_mount_on_demand_that_did_not_come_is_none(monkeypatch):
    monkeypatch.setattr(obstacles, "contents", lambda _: "systemd-1 /fsx autofs rw 0 0\n")
    assert "/fsx/: saw nothing mounted" in obstacles.not_mounted(["/fsx/"])
    monkeypatch.setattr(obstacles, "contents", lambda _: "systemd-1 /fsx autofs rw 0 0\nfs@tcp:/x /fsx lustre rw 0 0\n")
    assert obstacles.not_mounted(["/fsx/"]) == ""


def test_a_port_that_another_program_has_is_named_and_tried_again(tmp_path):
    with socket.socket() as other:
        other.bind(("", 0))
        other.listen()
        port = other.getsockname()[1]
        site = job(Site(tmp_path, "exit 0"), nodes=[1, 2], rendezvous=f"{socket.gethostname()}:{port}")
        status, said = site.run()
        assert (status, site.count("starts")) == (1, 0)
        assert said.count(f"port {port} of this node is taken by another program") == 4
    assert site.run()[0] == 0


@pytest.mark.parametrize("place", ["gpu-01", "gpu-01:", "gpu-01:x", ":29400", "gpu-01:99999"])
def test_a_rendezvous_that_is_no_host_and_port_is_refused(tmp_path, place):
    status, said = job(Site(tmp_path, "exit 0"), nodes=[1, 2], rendezvous=place).run()
    assert status == 2 and "wanted HOST:PORT" in said and "Traceback" not in said


def test_a_rendezvous_host_that_is_dead_is_named(tmp_path):
    port = free_port()
    site = job(Site(tmp_path, "exit 1"), nodes=[2, 2], rendezvous=f"127.0.0.1:{port}")
    status, said = site.run()
    assert status == 1 and f"127.0.0.1:{port} gives no answer" in said and "name another node in rendezvous" in said


def test_fewer_nodes_than_needed_are_said_with_how_many(tmp_path):
    with socket.socket() as meeting:
        meeting.bind(("127.0.0.1", 0))
        meeting.listen(16)
        site = job(Site(tmp_path, "exit 1"), nodes=[3, 4], rendezvous=f"127.0.0.1:{meeting.getsockname()[1]}")
        status, said = site.run()
    assert status == 1 and "no rank was started: fewer than 3 nodes came within 600 s" in said


def test_where_ranks_were_started_nothing_is_said_of_the_meeting(tmp_path):
    log = f"{tmp_path}/logs/demo/x/attempt_0/0"
    site = job(
        Site(tmp_path, f"mkdir -p {log}; date > {log}/stderr.log; exit 1"), nodes=[2, 2], rendezvous="127.0.0.1:9"
    )
    assert "no rank was started" not in site.run()[1]


def test_two_runs_of_one_name_on_a_node(tmp_path):
    site = Site(tmp_path, f"touch {tmp_path}/up; while [ ! -e {tmp_path}/end ]; do sleep 0.05; done")
    first = site.popen()
    end = time.monotonic() + 60
    while not (tmp_path / "up").exists():
        assert time.monotonic() < end and first.poll() is None
        time.sleep(0.02)
    status, said = site.run()
    (tmp_path / "end").touch()
    assert (status, site.count("starts")) == (2, 1) and "a run of this name is on this node already" in said
    assert first.communicate(timeout=60) and first.returncode == 0


def test_logs_that_cannot_be_made_are_one_sentence(tmp_path):
    status, said = Site(tmp_path, "exit 0", logs="/proc/nowhere").run()
    assert status == 2 and "/proc/nowhere" in said and "Traceback" not in said


@pytest.fixture
def rendezvous(monkeypatch):
    """The launcher of another node, where all meet."""
    monkeypatch.setattr(herald, "is_here", bool)
    monkeypatch.setattr(herald, "PARTING_S", 0.0)
    while True:
        meeting = Meeting("127.0.0.1", free_port(), 2, 1)
        made = herald.Herald(meeting)
        if herald.ask(meeting):  # the port beside it was free as well
            return meeting, made


def test_a_spare_of_any_program_waits_while_the_others_train_and_ends_with_them(tmp_path, rendezvous):
    meeting, other = rendezvous
    other.word = herald.RUNNING
    site = job(Site(tmp_path, "exit 1"), nodes=[2, 2], rendezvous=f"{meeting.host}:{meeting.port}")
    process = site.popen()
    end = time.monotonic() + 60
    while site.count("starts") < 6:
        assert time.monotonic() < end and process.poll() is None, "more than the restarts"
        time.sleep(0.05)
    other.finished()
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 0 and said.count("waits on as a spare") >= 5, said
    assert site.count("gates") == site.count("starts"), "each is gated"


def test_the_node_of_the_rendezvous_may_be_the_spare_itself(rendezvous, monkeypatch):
    meeting, head = rendezvous
    monkeypatch.setattr(herald, "is_here", lambda _: False)
    trains = herald.Herald(meeting)
    trains.running()
    assert herald.ask(meeting) == head.word == herald.RUNNING
    trains.finished()
    assert herald.ask(meeting) == herald.FINISHED


def test_fewer_nodes_than_needed_are_no_spares(tmp_path, rendezvous):
    meeting, other = rendezvous
    assert herald.ask(meeting) == other.word == herald.MEETING
    site = job(Site(tmp_path, "exit 1", restarts=1), nodes=[2, 2], rendezvous=f"{meeting.host}:{meeting.port}")
    assert (site.run()[0], site.count("starts")) == (1, 2)


@pytest.mark.parametrize(("nodes", "asked"), [("2", ["requeue 17"]), ("3", [])])
def test_a_node_in_quarantine_leaves_the_job_to_a_spare_or_gives_it_back(tmp_path, nodes, asked):
    # Under Slurm nobody else asks before a restart: the prolog was the gate when the job began.
    marker = tmp_path / "var/lib/flightline/quarantine.json"
    site = job(
        Site(tmp_path, f"mkdir -p {marker.parent}; touch {marker}; exit 1"),
        nodes=[2, 2],
        rendezvous=f"127.0.0.1:{free_port()}",
    )
    status, _ = site.run("--no-gate", **site.tool("scontrol", "exit 0"), SLURM_JOB_ID="17", SLURM_JOB_NUM_NODES=nodes)
    assert (status, site.count("starts")) == (REFUSED, 1)
    assert [line for path in tmp_path.glob("scontrol") for line in path.read_text().splitlines()] == asked
