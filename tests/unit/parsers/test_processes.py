"""processes.json and its reader."""

import json
import os
import time

import pytest

from flightline_node.ask.processes import processes as read_processes
from tests.unit.parsers.hosttools import parse, read

KTHREAD = 0x00200000


def process(root, pid, name="python3", state="S", parent=1, flags=0, switches=7):
    folder = root / "proc" / str(pid)
    folder.mkdir(parents=True, exist_ok=True)
    text = f"{pid} ({name}) {state} {parent} 1 1 0 -1 {flags} " + "0 " * 12 + "1000 " + "0 " * 30
    (folder / "stat").write_bytes(text.encode("utf-8", "surrogateescape"))
    (folder / "status").write_text(f"Name:\tx\nvoluntary_ctxt_switches:\t{switches}\n")
    return folder


@pytest.fixture
def root(tmp_path):
    process(tmp_path, 1, "systemd")
    (tmp_path / "proc/uptime").write_text("5400.25 1.0\n")
    return tmp_path


def collect(root):
    return parse("processes", read_processes(str(root), watch_s=0.01))


def test_recorded():
    facts = read("processes", "processes/debian12.json")
    assert (facts["init_seen"], facts["stuck"], facts["watched_s"]) == (True, [], 1.0)
    assert facts["total"] == sum(facts["states"].values())


def test_stuck_and_zombies():
    facts = read("processes", "processes/stuck.json")
    assert facts["stuck"][0]["stack"][1].endswith("[nvidia]")
    assert (facts["stuck"][1]["age_s"], facts["zombies"][0]["parent"]) == (80000.0, "dumb-init")


def test_names_are_made_printable_and_short():
    row = {"pid": 9, "name": "a\x1b[2J\n" + "x" * 200, "stack": ["\x07bell"]}
    facts = parse("processes", json.dumps({"total": 1, "stuck_count": 1, "zombie_count": 0, "stuck": [row, 3]}))
    assert facts["stuck"][0]["name"].isprintable()
    assert len(facts["stuck"][0]["name"]) <= 64
    assert facts["stuck"][0]["stack"] == ["\N{REPLACEMENT CHARACTER}bell"]


def test_reader_lists_what_does_not_move(root):
    folder = process(root, 40, "nvidia-smi", "D")
    (folder / "wchan").write_text("rwsem_down_read_slowpath")
    (folder / "stack").write_text("[<0>] a+0x1/0x2\n[<0>] b+0x1/0x2 [nvidia]\n")
    facts = collect(root)
    assert (facts["total"], facts["states"], facts["stuck_count"]) == (2, {"D": 1, "S": 1}, 1)
    age_s = 5400.25 - 1000 / os.sysconf("SC_CLK_TCK")
    assert facts["stuck"][0] == {
        "pid": 40, "name": "nvidia-smi", "parent": 1, "age_s": pytest.approx(age_s, abs=0.1),
        "wchan": "rwsem_down_read_slowpath", "stack": ["[<0>] a+0x1/0x2", "[<0>] b+0x1/0x2 [nvidia]"],
    }  # fmt: skip


def test_reader_leaves_out_kernel_threads_and_tools_of_this_run(root, monkeypatch):
    monkeypatch.setattr(os, "getppid", lambda: 900)
    process(root, 2, "kthreadd", flags=KTHREAD)
    process(root, 50, "kworker/0:1", "D", parent=2)
    process(root, 51, "kworker/1:1", "D", parent=1, flags=KTHREAD)
    process(root, 900, "ansible")
    process(root, 901, "sh", parent=900)
    process(root, 902, "nvidia-smi", "D", parent=901)
    facts = collect(root)
    assert (facts["states"]["D"], facts["stuck"]) == (3, [])


def test_reader_as_a_containers_first_process_hides_nothing(root, monkeypatch):
    monkeypatch.setattr(os, "getppid", lambda: 1)
    process(root, 40, "nvidia-smi", "D")
    assert collect(root)["stuck_count"] == 1


def test_reader_lets_go_of_what_moves(root, monkeypatch):
    process(root, 60, "dd", "D")
    process(root, 61, "dd", "D")
    process(root, 62, "dd", "D")

    def later(seconds):
        process(root, 60, "dd", "R")
        process(root, 61, "dd", "D", switches=8)
        (root / "proc/62/stat").unlink()

    monkeypatch.setattr(time, "sleep", later)
    assert collect(root)["stuck"] == []


def test_reader_counts_zombies_of_any_name(root):
    process(root, 70, "a) Z (b", "Z", parent=1)
    process(root, 71, "odd\udcff", "Z", parent=99)
    facts = collect(root)
    assert facts["zombie_count"] == 2
    named = {zombie["pid"]: (zombie["name"], zombie["parent"]) for zombie in facts["zombies"]}
    assert named == {70: ("a) Z (b", "systemd"), 71: ("odd\\xff", "?")}


def test_reader_survives_processes_that_end_and_lines_that_are_none(root):
    (root / "proc/80").mkdir()
    (root / "proc/81").mkdir()
    (root / "proc/81/stat").write_text("81 (x) S")
    assert collect(root)["total"] == 1


def test_reader_does_not_wait_when_nothing_is_stuck(root, monkeypatch):
    for pid in range(100, 300):
        process(root, pid)
    monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail("waited for nothing"))
    assert collect(root)["total"] == 201
