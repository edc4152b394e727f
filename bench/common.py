"""What the benchmarks share: their words, a place, simulated nodes, timing, memory of a process tree."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
TYPE = "p5.48xlarge"


def given(about: str | None, **numbers: int) -> argparse.Namespace:
    """The command line: an option for each number, with its default."""
    reader = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in numbers.items():
        reader.add_argument(f"--{name}", type=int, default=default)
    return reader.parse_args()


@contextmanager
def place() -> Iterator[Path]:
    """A folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="flightline-bench-") as name:
        yield Path(name)


def recorded(demo: Path, faults: list[str] | None = None) -> dict[str, Any]:
    """The record of a simulated node that is made here."""
    from flightline.demo import prepare
    from flightline_node import node, settings
    from flightline_node.ask.runner import Node
    from flightline_node.know.expected import resolve

    prepare({demo.name: {"demo_dir": str(demo), "instance_type": TYPE, "demo_faults": faults or []}})
    return node.run(Node(f"{demo}/root", (f"{demo}/tools",)), resolve(TYPE), settings.build(), node.Identity(demo.name))


def demo_inventory(directory: Path, nodes: int, instance_type: str = TYPE) -> Path:
    """A healthy simulated fleet; its nodes are made by the first preflight that meets them."""
    from flightline.demo import write_inventory

    return write_inventory(directory, nodes, instance_type, [])


def environment(store: Path) -> dict[str, str]:
    """The environment of a run: this checkout's ansible.cfg, a store of its own."""
    inherited = ("ANSIBLE", "FLIGHTLINE", "PYTHON")
    env = {name: value for name, value in os.environ.items() if not name.startswith(inherited)}
    env.update(ANSIBLE_CONFIG=str(ROOT / "ansible.cfg"), FLIGHTLINE_STORE=str(store), PATH=f"{BIN}:{env['PATH']}")
    return env


def seconds(command: list[str], env: dict[str, str], ok: tuple[int, ...] = (0,)) -> float:
    """Wall time of a command; its output is shown when it fails."""
    started = time.perf_counter()
    run = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=False)
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
