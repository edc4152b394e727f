"""The driver under a lockup, a stall or a hung task: by its call trace, in every carrier and between other lines.

Traces written by hand after kernel/watchdog.c, kernel/hung_task.c, kernel/rcu and arch/x86/kernel/dumpstack.c.
"""

import json

import pytest

from flightline_node.read.parsers import kernel
from flightline_node.watch.intake import Intake

from .test_kernel_heads import HEADS

LOCKUP = "watchdog: BUG: soft lockup - CPU#17 stuck for 26s! [python:4242]"
HUNG = "INFO: task python:4242 blocked for more than 122 seconds."
RCU = "rcu: INFO: rcu_sched self-detected stall on CPU"
NVIDIA = [
    "Modules linked in: lustre(OE) nvidia_uvm(OE) nvidia(OE) efa(OE) mlx5_ib(OE)",
    "CPU: 17 PID: 4242 Comm: python Tainted: G           OE      6.8.0-1015-aws #16-Ubuntu",
    "RIP: 0010:_nv040101rm+0x2a/0x60 [nvidia]",
    "Call Trace:",
    " <IRQ>",
    " ? watchdog_timer_fn+0x206/0x290",
    " ? efa_intr_msix_mgmnt+0x1/0x20 [efa]",
    " os_acquire_spinlock+0x12/0x30 [nvidia]",
    " uvm_ioctl+0x1f/0x40 [nvidia_uvm]",
    " </TASK>",
]
NOISE = "eth0: renamed from veth12ab34"


def trace(*frames):
    return ["Call Trace:", " <TASK>", " __schedule+0x2d0/0x890", *frames, " </TASK>"]


def drivers(lines, list_name, head="[  123.456789] "):
    facts = kernel.parse({"kernel.log": "".join(f"{head}{line}\n" for line in lines).encode()})
    return [event.get("driver") for event in facts[list_name]]


@pytest.mark.parametrize("head", HEADS)
def test_the_driver_is_found_in_every_carrier(head):
    assert drivers([LOCKUP, *NVIDIA], "soft_lockup", head) == ["nvidia"]


@pytest.mark.parametrize(
    ("frame", "driver"),
    [
        (" efa_com_cmd_exec+0x1a4/0x2c0 [efa]", "efa"),
        (" ? efa_com_cmd_exec+0x1a4/0x2c0 [efa]", "efa"),  # nothing surer is there
        (" mlx5e_close_channel+0x1/0x20 [mlx5_core]", "mlx5"),
        (" nvme_poll_irqdisable+0x2/0x80", "nvme"),  # built into the kernel of most distributions
        (" nvme_reset_work+0x2/0x80 [nvme 0123456789abcdef0123456789abcdef01234567]", "nvme"),
        (" [<ffffffffc0a12345>] cl_sync_io_wait+0x3f3/0x7a0 [obdclass]", "lustre"),
        (" kefalnd_check_tx+0x3/0x7 [kefalnd]", "lustre"),
        ("Workqueue: mlx5_health0000:05:00.0 mlx5_fw_fatal_reporter_err_work [mlx5_core]", "mlx5"),
        (" ext4_sync_file+0x3/0x7 [ext4]", None),
        ("Modules linked in: nvidia(OE) efa(OE)", None),
    ],
)
def test_the_family_of_a_frame(frame, driver):
    for list_name, line in (("hung_task", HUNG), ("rcu_stall", RCU), ("soft_lockup", LOCKUP)):
        assert drivers([line, *trace(frame)], list_name) == [driver]


def test_other_lines_between_change_nothing():
    mixed = [
        line for pair in zip([LOCKUP, *NVIDIA], [NOISE, "NVRM: Xid (PCI:0000:53:00): 31, pid=1"] * 6) for line in pair
    ]
    assert drivers(mixed, "soft_lockup") == ["nvidia"]
    text = "".join(
        f"Nov 21 09:18:29 a kernel: {line}\nNov 21 09:18:29 a train[7]: WARNING: INFO: step\n"
        for line in [LOCKUP, *NVIDIA]
    )
    assert kernel.parse({"kernel.log": text.encode()})["soft_lockup"][0]["driver"] == "nvidia"


@pytest.mark.parametrize(
    "lines",
    [
        [LOCKUP, *trace(" x+0x1/0x2"), " nvidia_ioctl+0x1/0x2 [nvidia]"],  # the trace is over
        [LOCKUP, "------------[ cut here ]------------", " nvidia_ioctl+0x1/0x2 [nvidia]"],
        [LOCKUP, *[NOISE] * 300, " nvidia_ioctl+0x1/0x2 [nvidia]"],
        [" nvidia_ioctl+0x1/0x2 [nvidia]", LOCKUP],
    ],
)
def test_frames_of_something_else_are_not_its_own(lines):
    assert drivers(lines, "soft_lockup") == [None]


def test_each_has_its_own_trace_and_a_later_one_on_another_host_is_none():
    assert drivers([LOCKUP, *NVIDIA, HUNG, *trace(" efa_x+0x1/0x2 [efa]")], "hung_task") == ["efa"]
    text = f"Nov 21 09:18:29 a kernel: {HUNG}\nNov 21 09:18:29 b kernel:  efa_x+0x1/0x2 [efa]\n"
    assert kernel.parse({"kernel.log": text.encode()})["hung_task"][0].get("driver") is None
    late = f"[  10.0] {HUNG}\n[ 900.0]  efa_x+0x1/0x2 [efa]\n"
    assert kernel.parse({"kernel.log": late.encode()})["hung_task"][0].get("driver") is None


def test_the_journal_as_json():
    lines = [
        {"MESSAGE": text, "_TRANSPORT": "kernel", "__REALTIME_TIMESTAMP": "1795252709000000"}
        for text in [LOCKUP, *NVIDIA]
    ]
    text = "".join(json.dumps({**line, "PRIORITY": "3", "SYSLOG_IDENTIFIER": "kernel"}) + "\n" for line in lines)
    assert [e.get("driver") for e in kernel.parse({"kernel.log": text.encode()})["soft_lockup"]] == ["nvidia"]


@pytest.mark.parametrize("cut", [1, 3, 8])
def test_a_watcher_reads_a_trace_that_comes_in_parts(cut):
    intake = Intake()
    lines = [f"3,{n},123,-;{text}\n".encode() for n, text in enumerate([LOCKUP, *NVIDIA, NOISE])]
    intake.take(b"".join(lines[:cut]))
    more = intake.take(b"".join(lines[cut:]))
    assert [event.get("driver") for event in intake.facts()["soft_lockup"]] == ["nvidia"]
    assert bool(more) == (cut < 4), "what was judged without the driver is judged again"
