"""Scan a 1 GB kernel log with the kernel parser and with `grep -c 'NVRM: Xid'`; print the ratio of their wall times.

Three made logs, warm in the page cache: `plain` has a few sorts of ordinary lines; `varied` a dozen with many different
letters, which is what the parser's search likes least; `mixed` is `varied` with an event of each kind among the lines.
The parser finds all its events, grep only counts one. Needs 1 GB in the temporary directory.

    python -m bench.bench_kernel_scan [--mib 1024] [--runs 5] [--log plain]
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from bench.common import place
from flightline_node.read import bundle
from flightline_node.read.parsers import kernel

PLAIN = [
    "usb 1-1: new high-speed USB device number {} using xhci_hcd",
    "eth0: renamed from veth{:06x}",
    "device veth{:x} entered promiscuous mode",
    "systemd[1]: Started Session {} of user ubuntu.",
    'audit: type=1400 audit(0.0:{}): apparmor="ALLOWED" operation="open"',
]
VARIED = [
    *PLAIN,
    "IPv6: ADDRCONF(NETDEV_CHANGE): veth{:x}: link becomes ready",
    "pci 0000:{:02x}:00.0: BAR 0: assigned [mem 0xc0000000-0xc0ffffff 64bit pref]",
    "nvme nvme1: {}/0/0 default/read/poll queues",
    "EXT4-fs (nvme{}n1): mounted filesystem with ordered data mode. Quota mode: none.",
    "cgroup: fork rejected by pids controller in /kubepods/{}",
    "TCP: request_sock_TCP: Possible SYN flooding on port {}. Sending cookies.",
    "efa 0000:9f:00.0: Setup irq:{} name:efa-comp0@pci:0000:9f:00.0",
]
XID = "NVRM: Xid (PCI:0000:53:00): 79, pid={}, name=python, GPU has fallen off the bus."
EVENTS = [
    XID,
    "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 24007, Fatal, Link {} sourcetrack timeout error",
    "Out of memory: Killed process {} (python) total-vm:1kB",
    "I/O error, dev nvme1n1, sector {} op 0x0:(READ) flags 0x0",
    "mce: [Hardware Error]: Machine check events logged {}",
]
BLOCK_LINES = 20_000
EVENT_EVERY = 25
"""Blocks between those with events: few, as in life."""


def write_log(path: Path, lines: list[str], events: list[str], mib: int) -> int:
    """Write the log; returns the number of events in it."""
    dice, written, count, number = random.Random(1), 0, 0, 0
    with path.open("wb") as file:
        while written < mib << 20:
            stamp = (f"[{number * 100 + n / 200:12.6f}] " for n in range(BLOCK_LINES))
            block = [head + dice.choice(lines).format(dice.randrange(250)) for head in stamp]
            if number % EVENT_EVERY == 0:
                block[5000:5000] = [f"[{number * 100 + 25:12.6f}] {event.format(number)}" for event in events]
                count += len(events)
            written += file.write(("\n".join(block) + "\n").encode())
            number += 1
    return count


def wall(action: Callable[[], object]) -> float:
    """Seconds of one call."""
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def measure(name: str, lines: list[str], events: list[str], mib: int, runs: int, directory: Path) -> None:
    """Make one log, time both on it in turns, print, remove it."""
    path = directory / "kernel.log"
    try:
        wanted = write_log(path, lines, events, mib)
        found: dict[str, int] = {}

        def parse() -> None:
            found.update(kernel.parse({path.name: bundle.load(directory).read(path.name)})["counts"])

        def grep() -> None:
            # Into a pipe: with /dev/null as its output GNU grep stops at the first match.
            subprocess.run(["grep", "-c", "NVRM: Xid", str(path)], stdout=subprocess.PIPE, check=False)

        grep()
        ours, theirs = zip(*[(wall(parse), wall(grep)) for _ in range(runs)])
        seen = sum(count for kind, count in found.items() if kind != "fallen_off_bus")
        print(
            f"{name:8} parser {statistics.median(ours):.2f} s  grep {statistics.median(theirs):.2f} s  "
            f"ratio {statistics.median(ours) / statistics.median(theirs):.2f} (best {min(ours) / min(theirs):.2f})  "
            f"events {seen} of {wanted}"
        )
    finally:
        path.unlink(missing_ok=True)


def main() -> None:
    """Run every log asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=1024, help="size of each log")
    parser.add_argument("--runs", type=int, default=5, help="runs of each; the median counts")
    parser.add_argument("--log", choices=["plain", "varied", "mixed"], help="only this one")
    options = parser.parse_args()
    logs = {"plain": (PLAIN, [XID]), "varied": (VARIED, [XID]), "mixed": (VARIED, EVENTS)}
    with place() as directory:
        for name, (lines, events) in logs.items():
            if options.log in (None, name):
                measure(name, lines, events, options.mib, options.runs, directory)


if __name__ == "__main__":
    main()
