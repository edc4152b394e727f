"""What a machine does to its watcher: real processes, a real journald, Slurm's own daemons; the kernel is a pipe."""

import functools
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.beds import program
from tests.beds import until as until_true

from . import journald, slurmbed
from .fleet import Watched, ready
from .kernel_lines import DAILY, FAULTS, SELDOM

pytestmark = [pytest.mark.slow]
QUIET = "eth0: renamed from veth12ab34"
XID_79 = FAULTS["Xid 79"](random.Random(16))[0]
NEEDS_JOURNALD = pytest.mark.skipif(bool(journald.missing()), reason=journald.missing())
NEEDS_SLURM = slurmbed.NEEDED


WAIT_S = 120.0
until = functools.partial(until_true, most_s=WAIT_S, every_s=0.05)


def checks(one):
    marker = one.marker()
    return {part["check"] for part in marker["findings"]} if marker else set()


@pytest.fixture
def watch(tmp_path):
    """Makes watchers, and ends them."""
    made: list[Watched] = []

    def start(name="n1", env=None, scheduler="none", within=(), **own):
        quiet = {"smi_every_s": 0, "sample_every_s": 0, **own}
        one = Watched(name, tmp_path / f"{name}-{len(made)}", env or {}, scheduler, quiet, within=within)
        made.append(one)
        one.up()
        ready([one])
        return one

    yield start
    for one in made:
        one.down()


class Kernel:
    """Says each message to the watcher and to journald, or to one of them only."""

    def __init__(self, one, journal):
        self.one, self.journal = one, journal

    def say(self, *messages, watcher=True, journal=True):
        for message in messages:
            number = self.one.sequence
            if journal:
                self.journal.say(f"3,{number},{number * 1000},-;{message}\n".encode())
            if watcher:
                self.one.say(message)
            else:
                self.one.sequence += 1


@pytest.fixture
def kernel(tmp_path, watch):
    with journald.journald(tmp_path / "journal") as journal:
        made = Kernel(watch(within=journal.within), journal)
        made.one.sequence = 1000  # journalctl shows another time for a message of microsecond 0
        made.say(QUIET)
        yield made


def restarted(journal):
    journal.kill()
    journal.start()


def rotated_and_restarted(kernel, *between):
    """The watcher hears nothing of it but the last line."""
    kernel.say(*[QUIET] * 5, watcher=False)
    kernel.journal.run("journalctl", "--rotate")
    kernel.say(*between, watcher=False)
    restarted(kernel.journal)
    kernel.say(*[QUIET] * 5, watcher=False)
    kernel.say(QUIET)


def lost_in_the_buffer(kernel):
    kernel.say(*[QUIET] * 20, XID_79, *[QUIET] * 20, watcher=False)
    kernel.say(QUIET)


@NEEDS_JOURNALD
@pytest.mark.parametrize("lose", [lost_in_the_buffer, lambda kernel: rotated_and_restarted(kernel, XID_79, *[QUIET] * 5)],
                         ids=["lost in the buffer", "journald restarted and rotated between"])  # fmt: skip
def test_journald_has_what_the_watcher_did_not_hear(kernel, lose):
    lose(kernel)
    assert until(lambda: "gpu_lost" in checks(kernel.one))
    assert "kernel_errors" not in checks(kernel.one)


@NEEDS_JOURNALD
def test_a_healthy_node_stays_when_journald_was_rotated_and_restarted(kernel):
    rotated_and_restarted(kernel)
    assert until(lambda: b"asking the journal" in (kernel.one.place / "said").read_bytes())
    time.sleep(25)  # longer than all its questions
    assert kernel.one.marker() is None


@NEEDS_JOURNALD
@pytest.mark.parametrize("how", ["vacuumed", "away"])
def test_what_journald_lost_too_is_no_pass(kernel, how):
    """Emptied by a vacuum, or dead while the kernel spoke: there are lines of this boot, but not those."""
    kernel.say(*[QUIET] * 5, watcher=False, journal=how == "vacuumed")
    if how == "vacuumed":
        kernel.journal.run("journalctl", "--rotate")
        kernel.journal.run("journalctl", "--vacuum-files=1")
    else:
        restarted(kernel.journal)
    kernel.say(*[QUIET] * 5)
    assert until(lambda: checks(kernel.one)) == {"kernel_errors"}
    assert kernel.one.marker()["findings"][0]["status"] == "UNKNOWN"
    assert "the journal lacks 5 of them" in kernel.one.marker()["findings"][0]["message"]


def test_a_flood_hides_no_fault_and_fills_no_memory(watch):
    """300,000 lines of one Xid and 300,000 that differ, as fast as the pipe takes them; its CPU is bench/bench_watch.py's."""
    one = watch()
    before = most_kib(one)
    same = ["NVRM: Xid (PCI:0000:64:00): 31, pid=77, name=python, Ch 00000010, intr 00000000."] * 500
    for block in range(600):
        one.pour(same)
        if block == 300:
            one.pour([XID_79])
    for block in range(600):
        one.pour([f"nvme nvme{n % 9}: I/O tag {block} ({n:x}) opcode 0x2 QID 5 timeout, aborting" for n in range(500)])
        if block == 300:
            one.pour(FAULTS["fatal SXid"](random.Random(1)))
    assert until(lambda: checks(one) >= {"gpu_lost", "sxid"})
    assert most_kib(one) - before < 32 << 10


def most_kib(one):
    rows = Path(f"/proc/{one.process.pid}/status").read_text().splitlines()
    return next(int(row.split()[1]) for row in rows if row.startswith("VmHWM"))


@pytest.mark.parametrize(
    "lines",
    [
        ["NVRM: Xid (PCI:0000:53:00): 7NVRM: Xid (PCI:0000:64:00): 31, pid=7, name=python, Ch 00000010", "9, pid=1"],
        ["NVRM: Xid (PCI:0000:5usb 1-1: new device3:00): 79, pid=1, GPU has fallen off the bus."],
        [f"eth0: link up{XID_79}eth1: link up"],
        [XID_79[:37]],
        ["nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): "],
    ],
    ids=["two in one another", "cut by another", "in the middle", "torn", "torn SXid"],
)
def test_lines_that_another_cpu_wrote_into_are_no_pass(watch, lines):
    one = watch()
    one.say(*[pick(random.Random(1)) for pick in (*DAILY, *SELDOM)], *lines, QUIET)
    assert until(one.marker, most_s=20)


@NEEDS_SLURM
def test_a_quarantine_waits_for_slurmctld_and_outlives_its_watcher(tmp_path, watch):
    with slurmbed.bed(tmp_path / "slurm", 1) as bed:
        one = watch("n1", bed.env, "slurm")
        job = bed.sleep_on("n1")
        bed.control_down()
        one.say(XID_79)
        assert until(lambda: (one.marker() or {"scheduler": {}})["scheduler"].get("reason"))
        assert one.marker()["scheduler"]["state"] == "pending"
        one.process.send_signal(signal.SIGKILL)
        one.process.wait(WAIT_S)
        one.start()
        bed.control_up()
        assert until(lambda: one.marker()["scheduler"]["state"] == "drained")
        assert "drain" in bed.run("sinfo", "-h", "-N", "-o", "%T").stdout
        assert bed.run("sinfo", "-h", "-N", "-o", "%E").stdout.startswith("flightline: xid ")
        assert bed.job_state(job) == "RUNNING"


@NEEDS_SLURM
def test_a_node_that_slurm_calls_by_another_name_is_drained_by_that(tmp_path, watch):
    """slurm.conf: NodeName=n1 NodeHostname=<this host>; the watcher knows the host's name."""
    with slurmbed.bed(tmp_path / "slurm", 1) as bed:
        one = watch("host", bed.env, "slurm", slurm_node="")
        one.say(XID_79)
        assert until(lambda: (one.marker() or {"scheduler": {}})["scheduler"].get("state") == "drained")
        assert bed.run("sinfo", "-h", "-N", "-o", "%E").stdout.startswith("flightline: xid ")


@pytest.fixture
def freezer(tmp_path):
    """The kernel's freezer (cgroup v1): what it holds does not die of SIGKILL until it is let go."""
    place = tmp_path / "freezer"
    place.mkdir()
    argv = ["mount", "-t", "cgroup", "-o", "freezer", "none", str(place)]
    if os.geteuid() != 0 or subprocess.run(argv, capture_output=True, check=False).returncode:
        pytest.skip("needs root and the kernel's cgroup v1 freezer")
    held = place / f"flightline-{os.getpid()}"
    held.mkdir()
    yield held
    (held / "freezer.state").write_text("THAWED")
    until(lambda: not (held / "cgroup.procs").read_text(), most_s=10)
    held.rmdir()
    subprocess.run(["umount", str(place)], check=True)


def test_an_nvidia_smi_that_cannot_be_killed_is_found_and_holds_nothing(tmp_path, watch, freezer):
    """A real process that ignores SIGKILL, as one that waits in the driver; the tool itself is simulated."""
    tools = tmp_path / "bin"
    tools.mkdir()
    row = "0, 00000000:53:00.0, GPU-0, 165300, NVIDIA H100 80GB HBM3, Enabled, Disabled, 0, 0, No, No, None"
    program(tools / "nvidia-smi", f"#!/bin/sh\necho $$ >> {tools}/started\nwhile :; do echo '{row}'; sleep 1; done\n")
    one = watch(tool_path=str(tools), smi_every_s=1, boot_grace_s=0)
    (pid,) = until(lambda: (tools / "started").exists() and (tools / "started").read_text().split())
    (freezer / "cgroup.procs").write_text(pid)
    (freezer / "freezer.state").write_text("FROZEN")
    found = until(lambda: (one.marker() or {}).get("findings"))
    assert "it does not die when killed (uninterruptible)" in found[0]["message"]
    assert Path(f"/proc/{pid}/status").read_text().split("State:")[1].split()[0] == "D"
    assert (tools / "started").read_text().split() == [pid], "no second one hangs beside it"
    one.say(FAULTS["fatal SXid"](random.Random(1))[0])
    assert until(lambda: "sxid" in checks(one)), "the kernel is read on"
