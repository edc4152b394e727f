"""What kernels say: faults that take a node out of service, and what healthy nodes say all day.

Written by hand after the documented message shapes (see tests/unit/fixtures/kernel/README.md); no line is from a machine.
"""

import random

GPUS = ("0000:53:00", "0000:64:00", "0000:75:00", "0000:86:00", "0000:97:00", "0000:a8:00", "0000:b9:00", "0000:ca:00")


def _xid(code: int, text: str):
    return lambda pick: [f"NVRM: Xid (PCI:{pick.choice(GPUS)}): {code}, pid='<unknown>', name=<unknown>, {text}"]


def _disk(pick: random.Random) -> str:
    return f"nvme{pick.randint(1, 8)}n1"


FAULTS = {
    "Xid 79": _xid(79, "GPU has fallen off the bus."),
    "Xid 48": _xid(
        48, "An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer at partition 3."
    ),
    "Xid 95": _xid(95, "Uncontained: LTC TAG (0x4,0x0). RST: Yes, D-RST: No"),
    "Xid 119": _xid(119, "Timeout after 6s of waiting for RPC response from GPU0 GSP! Expected function 76."),
    "Xid 64": _xid(64, "Row Remapper: failed to write row remapping entry"),
    "fatal SXid": lambda pick: [
        f"nvidia-nvswitch{pick.randint(0, 3)}: SXid (PCI:0000:c4:00.0): 24007, Fatal, Link 30 sourcetrack timeout error"
    ],
    "RmInitAdapter": lambda pick: [f"NVRM: GPU {pick.choice(GPUS)}.0: RmInitAdapter failed! (0x24:0xffff:1220)"],
    "uncorrected memory": lambda pick: ["EDAC MC1: 1 UE memory read error on CPU_SrcID#1_MC#0_Chan#0_DIMM#0"],
    "machine check": lambda pick: ["mce: [Hardware Error]: CPU 3: Machine Check: 0 Bank 8: be00000000800400"],
    "NVMe down": lambda pick: [
        f"nvme nvme{pick.randint(1, 8)}: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0xffff"
    ],
    "I/O error": lambda pick: [
        f"I/O error, dev {_disk(pick)}, sector 2048 op 0x0:(READ) flags 0x80700 phys_seg 1 prio class 2"
    ],
    "read-only": lambda pick: [f"EXT4-fs ({_disk(pick)}): Remounting filesystem read-only"],
    "kernel fault": lambda pick: ["BUG: unable to handle page fault for address: ffffa1b2c3d4e5f6"],
    "hard lockup": lambda pick: [f"NMI watchdog: Watchdog detected hard LOCKUP on cpu {pick.randint(0, 191)}"],
    "soft lockups": lambda pick: [
        f"watchdog: BUG: soft lockup - CPU#17 stuck for {seconds}s! [python:4242]" for seconds in (26, 52, 78, 104, 130)
    ],
}

DAILY = (
    lambda pick: f"eth0: renamed from veth{pick.randrange(1 << 24):06x}",
    lambda pick: f"docker0: port {pick.randint(1, 9)}(veth{pick.randrange(1 << 24):06x}) entered forwarding state",
    lambda pick: f"IPv6: ADDRCONF(NETDEV_CHANGE): veth{pick.randrange(1 << 24):06x}: link becomes ready",
    lambda pick: f'audit: type=1400 audit(1795252709.123:{pick.randint(1, 9999)}): apparmor="STATUS" name="NVRM: Xid"',
    lambda pick: "perf: interrupt took too long (2505 > 2500), lowering kernel.perf_event_max_sample_rate to 79750",
    lambda pick: "Lustre: Mounted fsx-client",
    lambda pick: "hrtimer: interrupt took 11250 ns",
    lambda pick: (
        f"python[{pick.randint(1000, 90000)}]: segfault at 0 ip 00007f1 sp 00007ff error 4 in python3.11[400000+2b4000]"
    ),
    lambda pick: f"process 'train/run.sh' started with executable stack {pick.randint(1, 99)}",
    lambda pick: "nvidia-uvm: Loaded the UVM driver, major device number 234.",
)
"""Every few minutes on a node that serves containers and jobs."""

SELDOM = (
    lambda pick: f"NVRM: Xid (PCI:{pick.choice(GPUS)}): 31, pid={pick.randint(1000, 90000)}, name=python, Ch 00000010",
    lambda pick: (
        f"NVRM: Xid (PCI:{pick.choice(GPUS)}): 13, pid={pick.randint(1000, 90000)}, name=python, Graphics SM Warp Exception"
    ),
    lambda pick: f"NVRM: Xid (PCI:{pick.choice(GPUS)}): 43, pid={pick.randint(1000, 90000)}, name=python, Ch 00000008",
    lambda pick: (
        f"Memory cgroup out of memory: Killed process {pick.randint(1000, 90000)} (python) total-vm:1kB, anon-rss:1kB"
    ),
    lambda pick: "pcieport 0000:60:01.0: PCIe Bus Error: severity=Correctable, type=Physical Layer, (Receiver ID)",
    lambda pick: (
        "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#0_DIMM#0 (channel:0 slot:0 page:0x1 offset:0x0)"
    ),
    lambda pick: (
        "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error (First)"
    ),
    lambda pick: (
        f"nvme nvme{pick.randint(1, 8)}: I/O tag 12 (100c) opcode 0x2 (I/O Cmd) QID 5 timeout, aborting req_op:READ(0) size:4096"
    ),
    lambda pick: "ena 0000:00:05.0 ens5: Keep alive watchdog timeout.",
    lambda pick: "INFO: task kworker/u384:3:991 blocked for more than 120 seconds.",
    lambda pick: "Lustre: fsx-OST0000-osc-ffff8: Connection to fsx-OST0000 (at 10.0.0.4@tcp) was lost; in progress",
)
"""Once in a while on a node that nobody would take out of service: applications' faults, corrected errors."""


SPARED = tuple(
    lambda pick, gpu=gpu, code=code: (
        f"NVRM: Xid (PCI:{gpu}): {code}, pid={pick.randint(1000, 90000)}, name=python, Ch 00000010"
    )
    for gpu in GPUS
    for code in (13, 31, 43, 45)
)
"""A program with a bug on all GPUs of its node: no node leaves service for it."""


def day(pick: random.Random, lines: int, boots: bool) -> list[str]:
    """A day of a healthy node, with a rare message on one of three: of each kind about one a month. boots: it begins with one."""
    said = [pick.choice(DAILY)(pick) for _ in range(lines)]
    for message in pick.sample(SELDOM, pick.random() < 1 / 3):
        said.insert(pick.randrange(len(said)), message(pick))
    return ["Linux version 6.8.0-1015-aws (buildd@lcy02) #16-Ubuntu SMP"] * boots + said
