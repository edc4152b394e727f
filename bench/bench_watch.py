"""The watcher: what it costs at rest, what a flood costs, and how long a kernel line takes to a drain.

At rest it follows a pipe, a simulated nvidia-smi that prints eight rows every 5 s, and a made /sys of 32 EFA devices;
the tools it runs are not counted. The drain is on a real slurmctld where Debian's Slurm is installed.
"""

import os
import random
import sys
import time
from datetime import datetime
from pathlib import Path

from bench.common import workplace
from tests.beds import program, until
from tests.healing import slurmbed
from tests.healing.faults import at
from tests.healing.fleet import Watched, ready
from tests.healing.kernel_lines import FAULTS

REST_S, DRAINS, FLOOD_LINES_PER_S, FLOOD_S = 100.0, 60, 100_000, 5
WANTED_SHARE, WANTED_MIB, WANTED_P50_S, WANTED_P99_S = 0.001, 30.0, 0.2, 0.5
EFA_DEVICES, EFA_COUNTERS = 32, 24
ROW = "{i}, 00000000:{b:x}:00.0, GPU-{i}, 16530{i}, NVIDIA H100 80GB HBM3, Enabled, Disabled, 0, 0, No, No, None\n"


def main() -> int:
    """Print the table; exit status 1 where a wanted number is not reached."""
    with workplace() as place:
        rows, good = at_rest(place)
        more, also = flood(place)
        drains, fast = drained(place)
    sys.stdout.write("| measure | value | wanted |\n|---|---|---|\n")
    sys.stdout.write("".join(f"| {name} | {value} | {wanted} |\n" for name, value, wanted in [*rows, *more, *drains]))
    return 0 if good and also and fast else 1


def _node_root(place: Path) -> Path:
    root = place / "root"
    boot = root / "proc/sys/kernel/random"
    boot.mkdir(parents=True)
    (boot / "boot_id").write_text(Path("/proc/sys/kernel/random/boot_id").read_text())
    driver = root / "sys/bus/pci/drivers/efa"
    driver.mkdir(parents=True)
    for number in range(EFA_DEVICES):
        base = root / f"sys/class/infiniband/rdmap{number}s0"
        counters = base / "ports/1/hw_counters"
        counters.mkdir(parents=True)
        for counter in range(EFA_COUNTERS):
            (counters / f"counter_{counter}").write_text("0\n")
        (base / "ports/1/state").write_text("4: ACTIVE\n")
        (base / "ports/1/phys_state").write_text("5: LinkUp\n")
        (base / "device").mkdir()
        (base / "device/driver").symlink_to(driver)
    return root


def _tools(place: Path) -> Path:
    tools = place / "bin"
    tools.mkdir()
    rows = "".join(ROW.format(i=number, b=0x53 + number) for number in range(8))
    program(tools / "nvidia-smi", f"#!/bin/sh\n# simulated\nwhile :; do cat <<'EOF'\n{rows}EOF\nsleep 5; done\n")
    return tools


def _processes(parent: int) -> list[int]:
    """The watcher and its sampler; not the tools."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    ours = [int(pid) for pid in children if b"sampler" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    return [parent, *ours]


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _mib(pid: int, which: str, file: str = "status") -> float:
    """VmRSS, VmHWM of status; Pss of smaps_rollup, where pages that several processes share count once."""
    status = Path(f"/proc/{pid}/{file}").read_text()
    return next(int(row.split()[1]) for row in status.splitlines() if row.startswith(which)) / 1024


def at_rest(place: Path) -> tuple[list[tuple[str, str, str]], bool]:
    """CPU and memory of a watcher that has nothing to do."""
    own = {"root": str(_node_root(place)), "tool_path": str(_tools(place)), "dcgm_every_s": 0}
    one = Watched("rest", place / "rest", {}, "none", own)
    one.up()
    try:
        ready([one])
        time.sleep(5)
        pids = _processes(one.process.pid)
        before, began = [_cpu_s(pid) for pid in pids], time.monotonic()
        time.sleep(REST_S)
        shares = [(_cpu_s(pid) - cpu) / (time.monotonic() - began) for pid, cpu in zip(pids, before, strict=True)]
        sizes, resident = [_mib(pid, "Pss:", "smaps_rollup") for pid in pids], [_mib(pid, "VmRSS") for pid in pids]
        quiet = one.marker() is None and len(pids) == 2
    finally:
        one.down()
    rows = [
        ("CPU at rest, of a core: watcher + sampler", _sum(shares, 100, "%"), f"{WANTED_SHARE:.1%}"),
        ("memory, shared pages once (PSS): watcher + sampler", _sum(sizes, 1, "MiB"), f"{WANTED_MIB:g} MiB"),
        ("memory, shared pages in each (RSS): watcher + sampler", _sum(resident, 1, "MiB"), ""),
    ]
    return rows, quiet and sum(shares) <= WANTED_SHARE and sum(sizes) <= WANTED_MIB


def _sum(values: list[float], times: float, unit: str) -> str:
    parts = " + ".join(f"{value * times:.2f}" for value in values)
    return f"{sum(values) * times:.2f} {unit} ({parts})"


def flood(place: Path) -> tuple[list[tuple[str, str, str]], bool]:
    """100,000 lines a second of one Xid, with a lost GPU among them."""
    one = Watched("flood", place / "flood", {}, "none", {"smi_every_s": 0, "sample_every_s": 0})
    one.up()
    try:
        ready([one])
        noise = "NVRM: Xid (PCI:0000:64:00): 31, pid={}, name=python, Ch 00000010, intr 00000000."
        block = [noise.format(number) for number in range(200)]
        before, began, said, fatal_s = _cpu_s(one.process.pid), time.monotonic(), 0, 0.0
        while time.monotonic() - began < FLOOD_S:
            one.pour(block)
            said += len(block)
            if not fatal_s and time.monotonic() - began > FLOOD_S / 2:
                one.pour(FAULTS["Xid 79"](random.Random(1)))
                fatal_s = time.time()
            time.sleep(max(0.0, said / FLOOD_LINES_PER_S - (time.monotonic() - began)))
        took = time.monotonic() - began
        time.sleep(1)
        share = (_cpu_s(one.process.pid) - before) / took
        marker, size = one.marker(), _mib(one.process.pid, "VmHWM")
        late = (one.place / "lib/quarantine.json").stat().st_mtime - fatal_s if marker else float("nan")
    finally:
        one.down()
    found = marker is not None and any(part["check"] == "gpu_lost" for part in marker["findings"])
    return [
        ("flood: lines a second that it read", f"{said / took:.0f}", f"{FLOOD_LINES_PER_S}"),
        ("flood: CPU, of a core; most memory", f"{share:.0%}; {size:.0f} MiB", "bounded"),
        ("flood: lost GPU among the lines, to marker", f"{late * 1000:.0f} ms" if found else "MISSED", "found"),
    ], found


def drained(place: Path) -> tuple[list[tuple[str, str, str]], bool]:
    """Kernel line to drained on one node of a real Slurm, again and again."""
    why = slurmbed.missing()
    if why:
        return [("kernel line to drained", f"not measured: {why}", "")], True
    took: list[float] = []
    pick = random.Random(16)
    with slurmbed.bed(place / "slurm", 1) as bed:
        one = Watched("n1", place / "n1", bed.env, "slurm", {"smi_every_s": 0, "sample_every_s": 0})
        one.up()
        try:
            ready([one])
            for _ in range(DRAINS):
                kind = pick.choice(sorted(FAULTS))
                said = one.say(*FAULTS[kind](pick))
                took.append(_until_drained(one) - said)
                one.release("bench")
                bed.run("scontrol", "update", "NodeName=n1", "State=RESUME")
                one.say("healed", priority=6)
                time.sleep(0.4)
        finally:
            one.down()
    took.sort()
    p50, p99 = at(took, 0.5), at(took, 0.99)
    return [
        (f"kernel line to drained, p50 of {DRAINS}", f"{p50 * 1000:.0f} ms", f"{WANTED_P50_S * 1000:.0f} ms"),
        (f"kernel line to drained, p99 of {DRAINS}", f"{p99 * 1000:.0f} ms", f"{WANTED_P99_S * 1000:.0f} ms"),
    ], p50 <= WANTED_P50_S and p99 <= WANTED_P99_S


def _until_drained(one: Watched, most_s: float = 10.0) -> float:
    """When scontrol had drained the node, by the marker (milliseconds after the call's end)."""

    def drained_at() -> str:
        marker = one.marker() or {"scheduler": {}}
        return str(marker["scheduler"]["at"]) if marker["scheduler"].get("state") == "drained" else ""

    at_s = until(drained_at, most_s, "drained", every_s=0.002)
    return datetime.fromisoformat(at_s.replace("Z", "+00:00")).timestamp()


if __name__ == "__main__":
    sys.exit(main())
