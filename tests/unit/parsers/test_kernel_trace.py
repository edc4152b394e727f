"""The driver under a lockup, a stall or a hung task: by its call trace, in every carrier and between other lines.

Traces written by hand after kernel/watchdog.c, kernel/hung_task.c, kernel/rcu and arch/x86/kernel/dumpstack.c.
"""

import json

import pytest

from flightline_node.read.parsers import kernel
from flightline_node.watch.intake import Intake

from .test_kernel_heads import HEADS, LOCKUP

HUNG = "INFO: task python:4242 blocked for more than 122 seconds."
RCU = "rcu: INFO: rcu_sched self-detected stall on CPU"
NVIDIA = [
    "Modules linked in: lustre(OE) nvidia_uvm(OE) nvidia(OE) efa(OE) mlx5_ib(OE)",
    "RIP: 0010:_nv040101rm+0x2a/0x60 [nvidia]",
    "Call Trace:",
    " ? efa_intr_msix_mgmnt+0x1/0x20 [efa]",
    " uvm_ioctl+0x1f/0x40 [nvidia_uvm]",
    " </TASK>",
]
NOISE = "eth0: renamed from veth12ab34"
OTHERS = " nvidia_ioctl+0x1/0x2 [nvidia]"


def drivers(*lines, of="soft_lockup", head="[  123.456789] "):
    facts = kernel.parse({"kernel.log": "".join(f"{head}{line}\n" for line in lines).encode()})
    return [event.get("driver") for event in facts[of]]


@pytest.mark.parametrize("head", HEADS)
def test_the_driver_is_found_in_every_carrier(head):
    assert drivers(LOCKUP, *NVIDIA, head=head) == ["nvidia"]


def test_the_driver_is_found_in_the_journals_json():
    line = {"_TRANSPORT": "kernel", "__REALTIME_TIMESTAMP": "1795252709000000", "SYSLOG_IDENTIFIER": "kernel"}
    assert drivers(*(json.dumps({**line, "MESSAGE": text}) for text in (LOCKUP, *NVIDIA)), head="") == ["nvidia"]


@pytest.mark.parametrize(
    ("frame", "driver"),
    [
        (" efa_com_cmd_exec+0x1a4/0x2c0 [efa]", "efa"),
        (" ? efa_com_cmd_exec+0x1a4/0x2c0 [efa]", "efa"),  # nothing surer is there
        (" mlx5e_close_channel+0x1/0x20 [mlx5_core]", "mlx5"),
        (" nvme_poll_irqdisable+0x2/0x80", "nvme"),  # built into the kernel of most distributions
        (" nvme_reset_work+0x2/0x80 [nvme 0123456789abcdef0123456789abcdef01234567]", "nvme"),
        (" [<ffffffffc0a12345>] cl_sync_io_wait+0x3f3/0x7a0 [obdclass]", "lustre"),
        ("Workqueue: mlx5_health0000:05:00.0 mlx5_fw_fatal_reporter_err_work [mlx5_core]", "mlx5"),
        (" ext4_sync_file+0x3/0x7 [ext4]", None),
    ],
)
def test_the_family_of_a_frame(frame, driver):
    for of, line in (("hung_task", HUNG), ("rcu_stall", RCU), ("soft_lockup", LOCKUP)):
        assert drivers(line, "Call Trace:", " __schedule+0x2d0/0x890", frame, of=of) == [driver]


def test_other_lines_between_change_nothing():
    xid = "NVRM: Xid (PCI:0000:53:00): 31, pid=1"
    assert drivers(*(line for one in [LOCKUP, *NVIDIA] for line in (one, NOISE, xid))) == ["nvidia"]
    trainer = "\nNov 21 09:18:29 a train[7]: WARNING: INFO: step"
    assert drivers(*(line + trainer for line in [LOCKUP, *NVIDIA]), head="Nov 21 09:18:29 a kernel: ") == ["nvidia"]


@pytest.mark.parametrize(
    "lines",
    [
        [LOCKUP, " x+0x1/0x2", " </TASK>", OTHERS],
        [LOCKUP, "------------[ cut here ]------------", OTHERS],
        [LOCKUP, *[NOISE] * 300, OTHERS],
        [OTHERS, LOCKUP],
        [LOCKUP, "<cut>\n[  900.0]" + OTHERS],
        [LOCKUP, "<cut>\nNov 21 09:18:29 another kernel:" + OTHERS],
    ],
)
def test_frames_of_something_else_are_not_its_own(lines):
    assert drivers(*lines) == [None]
    assert drivers(*lines, HUNG, " efa_x+0x1/0x2 [efa]", of="hung_task") == ["efa"]


@pytest.mark.parametrize("cut", [1, 2, 4])
def test_a_watcher_reads_a_trace_that_comes_in_parts(cut):
    intake, lines = Intake(), [f"3,1,123,-;{text}\n".encode() for text in [LOCKUP, *NVIDIA, NOISE]]
    intake.take(b"".join(lines[:cut]))
    more = intake.take(b"".join(lines[cut:]))
    assert [event.get("driver") for event in intake.facts()["soft_lockup"]] == ["nvidia"]
    assert bool(more) == (cut < 3), "what was judged without the driver is judged again"
