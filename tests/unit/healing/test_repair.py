"""What runs on a node: one step, refused to an older lease and on the machine that Ansible runs on. Tools are simulated."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from flightline_node.watch import marker as marking
from flightline_node.watch import out_of_service, slurm
from tests.beds import until
from tests.node_programs import REPAIR


@pytest.fixture
def node(tmp_path):
    root, tools = tmp_path / "root", tmp_path / "tools"
    (root / "proc/sys/kernel/random").mkdir(parents=True)
    (root / "proc/sys/kernel/random/boot_id").write_text("boot-1\n")
    tools.mkdir()
    for name in ("nvidia-smi", "systemctl", "systemd-run"):
        (tools / name).write_text(f'#!/bin/sh\necho "{name} $@" >>{tmp_path}/ran\n')
        (tools / name).chmod(0o755)

    def ask(action, token, **more):
        step = {"action": action, "token": token, "root": str(root), "tool_path": [str(tools)], **more}
        return json.loads(
            subprocess.run([*REPAIR, json.dumps(step)], capture_output=True, text=True, check=True, timeout=60).stdout
        )

    ask.root, ask.ran = root, tmp_path / "ran"  # type: ignore[attr-defined]  # tests ask it of the function
    return ask


def test_a_look_tells_boot_and_marker(node):
    assert node("look", 1) == {
        "outcome": "done",
        "detail": "",
        "marker": None,
        "jobs": [],
        "software": "",
        "boot_id": "boot-1",
    }
    assert node("mark", 1, marker={"by": "flightline-remediate"})["outcome"] == "done"
    assert node("mark", 1, marker={"by": "another"})["outcome"] == "done"
    assert node("look", 1)["marker"] == {"by": "flightline-remediate"}


def test_an_older_lease_changes_nothing(node):
    node("look", 7)
    for action in ("reset", "reboot", "restart", "mark", "release"):
        said = node(action, 6, marker={})
        assert said["outcome"] == "not done"
        assert "lease 6 is over, lease 7" in said["detail"]
    assert not node.ran.exists()
    assert not (node.root / "var/lib/flightline/quarantine.json").exists()


def test_a_persons_mark_needs_no_lease_and_takes_none(node):
    node("look", 7)
    assert node("mark", 0, marker={"by": "flightline-blame"})["outcome"] == "done"
    assert node("reset", 0)["outcome"] == "not done", "nothing else does"
    assert node("look", 7)["marker"] == {"by": "flightline-blame"}


def test_the_machine_that_ansible_runs_on_is_spared(node):
    here = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    for action in ("reset", "reboot", "restart"):
        assert "the machine that Ansible runs on" in node(action, 1, spare=here)["detail"]
    assert not node.ran.exists()


def test_a_reset_stops_what_holds_the_gpus_and_starts_it_again(node):
    assert node("reset", 1)["outcome"] == "done"
    ran = node.ran.read_text().splitlines()
    at = ran.index("nvidia-smi --gpu-reset")
    stopped = [line.split()[-1] for line in ran[:at] if " stop " in line]
    started = [line.split()[-1] for line in ran[at:] if " start " in line]
    assert stopped == started[::-1]
    assert "flightline-watch.service" in stopped


def test_a_reboot_is_begun_not_done(node):
    assert node("reboot", 1)["outcome"] == ""
    assert node.ran.read_text().startswith("systemd-run --on-active=3 --collect systemctl reboot")


def test_a_marker_that_cannot_be_read_is_still_one(node):
    (node.root / "var/lib/flightline").mkdir(parents=True)
    (node.root / "var/lib/flightline/quarantine.json").write_text("{torn")
    assert "unreadable" in node("look", 1)["marker"]


def test_a_reset_unloads_what_holds_the_gpus_memory_and_loads_it_again(node):
    for name in ("efa_nv_peermem", "gdrdrv", "nvidia"):
        (node.root / "sys/module" / name).mkdir(parents=True)
    (node.root / "sys/module/nvidia/version").write_text("580.95.05\n")
    assert node("look", 1)["software"] == "driver 580.95.05"
    tools = Path(node.ran).parent / "tools"
    (tools / "modprobe").write_text(f'#!/bin/sh\necho "modprobe $@" >>{node.ran}\n')
    (tools / "modprobe").chmod(0o755)
    assert node("reset", 1)["outcome"] == "done"
    ran = node.ran.read_text().splitlines()
    at = ran.index("nvidia-smi --gpu-reset")
    assert [line for line in ran[:at] if "modprobe" in line] == [
        "modprobe --remove efa_nv_peermem",
        "modprobe --remove gdrdrv",
    ]
    assert [line for line in ran[at:] if "modprobe" in line] == ["modprobe gdrdrv", "modprobe efa_nv_peermem"]
    assert "nvidia-smi --persistence-mode=0" in ran[:at]


def test_a_reset_that_the_platform_does_not_do_is_told_apart_from_one_that_failed(node):
    smi = Path(node.ran).parent / "tools/nvidia-smi"
    for said, outcome in (("GPU Reset is not supported on this device.", "refused"), ("Unknown Error", "failed")):
        smi.write_text(f'#!/bin/sh\necho "{said}"\nexit 3\n')
        assert node("reset", 1)["outcome"] == outcome


def test_a_pause_is_a_persons_and_keeps_the_programs_of_the_node_still(node):
    node("look", 7)
    assert node("pause", 0, marker={"by": "ada", "why": "an upgrade"})["outcome"] == "done"
    directory = node.root / "var/lib/flightline"
    assert "paused by ada" in marking.paused(directory)
    asked = []

    def drain(reason, run, again):
        asked.append(reason)
        return slurm.DrainResult(slurm.DRAINED, reason)

    hands = out_of_service.Hands(directory, directory / "log", drain, "slurm")
    found = {"schema": marking.SCHEMA, "run": "w1", "findings": [], "scheduler": {"state": "pending"}, "by": marking.BY}
    hands.quarantine(found, "w1", None)
    until(lambda: "paused by ada" in hands.scheduler().get("reason", ""))
    assert not asked
    assert node("resume", 0)["outcome"] == "done"
    assert marking.paused(directory) == ""
    until(lambda: asked)
    hands.finish(1)


def test_it_ends_the_tests_of_a_preflight_and_nothing_else(node, tmp_path):
    pretend = [sys.executable, "-c", "import time; time.sleep(60)"]
    test = subprocess.Popen([*pretend, f"{tmp_path}/flightline-node.pyz", "call", "-", "n1"])
    watcher = subprocess.Popen([*pretend, f"{tmp_path}/flightline-node.pyz", "watch"])
    try:
        assert node("yield", 1)["outcome"] == "done"
        assert test.wait(5) == -signal.SIGTERM and watcher.poll() is None
    finally:
        test.kill()
        watcher.kill()
