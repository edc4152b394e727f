"""What the benchmarks share: their command line, a demo fleet, timing, memory of a process tree."""

import argparse
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.beds import BIN as BIN
from tests.beds import ROOT as ROOT
from tests.beds import own_env, ran


def asked(does: str | None, **numbers: int) -> argparse.Namespace:
    """The command line: a whole number for each name, with its default."""
    reader = argparse.ArgumentParser(description=does)
    for name, default in numbers.items():
        reader.add_argument(f"--{name}", type=int, default=default)
    return reader.parse_args()


@contextmanager
def workplace() -> Iterator[Path]:
    """A folder that goes with the benchmark."""
    with tempfile.TemporaryDirectory(prefix="flightline-bench-") as name:
        yield Path(name)


def demo_inventory(directory: Path, nodes: int, instance_type: str = "p5.48xlarge") -> Path:
    """A healthy simulated fleet; its nodes are made by the first preflight that meets them."""
    from flightline.demo import write_inventory

    return write_inventory(directory, nodes, instance_type, [])


def environment(store: Path) -> dict[str, str]:
    """The environment of a run: this checkout's ansible.cfg, a store of its own."""
    own = {"ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "FLIGHTLINE_STORE": str(store)}
    made: dict[str, str] = own_env("ANSIBLE", "FLIGHTLINE", "PYTHON", **own, PATH=f"{BIN}:{os.environ['PATH']}")
    return made


def seconds(command: list[str], env: dict[str, str], ok: tuple[int, ...] = (0,)) -> float:
    """Wall time of a command; its output is shown when it fails."""
    started = time.perf_counter()
    run = ran(*command, env=env, cwd=ROOT)
    took = time.perf_counter() - started
    if run.returncode not in ok:
        sys.exit(f"{' '.join(command)}: exit {run.returncode}\n{run.stdout[-3000:]}\n{run.stderr[-3000:]}")
    return took


class TreeMemory:
    """Peak proportional set size (MB) of a process and its children, the nodes' module processes left out.

    PSS counts a page shared by n processes as 1/n: forks of one control process share most of theirs.
    """

    def __init__(self, pid: int, every_s: float = 0.5) -> None:
        self.peak_mb = 0.0
        self._pid, self._every_s, self._stop = pid, every_s, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> float:
        """End sampling; returns the peak in MB."""
        self._stop.set()
        self._thread.join()
        return self.peak_mb

    def _watch(self) -> None:
        while not self._stop.wait(self._every_s):
            self.peak_mb = max(self.peak_mb, sum(map(_pss_mb, _control_tree(self._pid))))


def _control_tree(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found, queue = [], [root]
    while queue:
        pid = queue.pop()
        if _is_node_side(pid):
            continue
        found.append(pid)
        queue += children.get(pid, [])
    return found


def _is_node_side(pid: int) -> bool:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return True
    return b"AnsiballZ" in command or b"flightline_node" in command or command.startswith(b"/bin/sh")


def _pss_mb(pid: int) -> float:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0.0
