"""One step of healing on this node; the answer is {"outcome": ..., "detail": ..., "boot_id": ...}.

playbooks/remediate.yml takes it by the module flightline_repair, on Kubernetes the agent's own library does. A step
carries the token of the lease under which it was meant; the highest token that ever asked is kept, and a step of an
older lease is refused, so that a remediator that slept through the end of its lease changes nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import re
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ..watch import kmsg
from ..watch import marker as marking
from .program import ran
from .reach import reach

DONE, FAILED, NOT_DONE, REFUSED, BEGUN = "done", "failed", "not done", "refused", ""
TOOL_S = 60
RESET_S = 300
END_GRACE_S = 10
MOST_SAID = 400
HOLDERS = ("nvidia-dcgm.service", "dcgm-exporter.service", "nvidia-persistenced.service", "flightline-watch.service")
"""Services that keep a GPU open, so that it cannot be reset. Source: nvidia-smi(1), --gpu-reset."""

MODULES = ("efa_nv_peermem", "nvidia_peermem", "gdrdrv")
"""Kernel modules that keep a GPU's memory or device open: unloaded before a reset, loaded again after it."""
REFUSAL = re.compile(r"not supported|blocked|insufficient permissions|couldn.t run because", re.IGNORECASE)
"""What nvidia-smi says of a reset that the platform does not do. Source: nvidia-smi(1), --gpu-reset; a public report
of NVIDIA's AI cloud validation (change request 603) has T4, A100 and H100 on EC2 refuse it."""

AROUND = frozenset(
    {
        "nv-hostengine",
        "dcgm-exporter",
        "nvidia-persiste",
        "nv-fabricmanage",
        "nvidia-smi",
        "nvidia-device-p",
        "neuron-monitor",
        "dcgmi",
    }
)
"""Names of processes that hold devices without computing, as the kernel cuts them to 15 characters."""
DEVICE = re.compile(r"/dev/(nvidia|neuron)[0-9]+$")
PACKAGE = "/opt/flightline/flightline-node.pyz"
Answer = Dict[str, Any]


@dataclass(frozen=True)
class RepairStep:
    """What is asked. tool_path: directories before the system's own; spare: boot id of a machine not to be changed.

    run, judged_at: the preflight that has proven the remedy; units: services to restart; marker: the one to set, or who
    pauses and why; package: the node's own library, which knows its own marker; targets: HOST:PORT of lost neighbours.
    """

    action: str
    token: int
    root: str = "/"
    tool_path: Tuple[str, ...] = ()
    spare: str = ""
    run: str = ""
    judged_at: str = ""
    units: Tuple[str, ...] = ()
    marker: Optional[Mapping[str, Any]] = None
    package: str = PACKAGE
    targets: Tuple[str, ...] = ()

    @property
    def directory(self) -> Path:
        """Where the node keeps its state."""
        return Path(self.root) / "var/lib/flightline"

    def tool(self, *argv: str, deadline_s: float = TOOL_S) -> Tuple[int, str]:
        """Status and a short answer of a program."""
        path = os.pathsep.join((*self.tool_path, os.environ.get("PATH", ""), "/usr/sbin:/sbin"))
        status, text = ran(argv, deadline_s, path)
        return status, " ".join(text.split())[:MOST_SAID]


def take(step: RepairStep) -> Answer:
    """Do what is asked and answer. Raises OSError where the node's state cannot be kept."""
    step.directory.mkdir(parents=True, exist_ok=True)
    with (step.directory / "remediate.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        answer = _fenced(step)
    return {**answer, "boot_id": _boot_id(step.root)}


def _fenced(step: RepairStep) -> Answer:
    """The action, unless a newer lease has asked this node."""
    # What a person asks for, token 0: a mark only takes out of service, and a pause only stops; no lease forbids that.
    if step.action in BY_PERSON and step.token == 0:
        return ACTIONS[step.action](step)
    path = step.directory / "remediate.json"
    try:
        known = int((marking.read_json(path) or {}).get("token", 0))
    except (marking.MarkerError, ValueError, TypeError):
        known = 0
    if step.token < known:
        return _answer(NOT_DONE, f"refused: lease {step.token} is over, lease {known} has asked this node")
    marking.write_json(path, {"token": step.token})
    if step.action in CHANGING and step.spare and step.spare == _boot_id("/"):
        return _answer(NOT_DONE, "refused: this is the machine that Ansible runs on, no node of a cluster")
    return ACTIONS[step.action](step)


def _look(step: RepairStep) -> Answer:
    """What the node is like: its marker, and what holds its GPUs."""
    try:
        marker = marking.raw(step.directory)
    except marking.MarkerError as error:
        marker = {"unreadable": str(error)[:200]}
    return {**_answer(DONE, ""), "marker": marker, "jobs": _holders(), "software": _software(Path(step.root))}


def _reach(step: RepairStep) -> Answer:
    """Which lost neighbours answer this node."""
    return {**_answer(DONE, ""), "reached": reach(step.targets, step.tool)}


def _mark(step: RepairStep) -> Answer:
    """Set the marker; what is found there stays, and what the new one has found is added to it."""
    if not step.marker:
        return _answer(FAILED, "saw no marker, wanted the one to set")
    with marking.locked(step.directory):
        try:
            there = marking.raw(step.directory)
        except marking.MarkerError:
            return _answer(DONE, "marked, by a marker that cannot be read")
        marking.keep(step.directory, marking.beside(there, dict(step.marker)) if there else dict(step.marker))
    return _answer(DONE, "marked")


def _pause(step: RepairStep) -> Answer:
    """Let the node's own programs leave its state in the scheduler alone."""
    marking.write_json(step.directory / marking.PAUSED, {**(step.marker or {}), "at": marking.stamp()})
    return _answer(DONE, "paused")


def _resume(step: RepairStep) -> Answer:
    """End the pause; what was found meanwhile is done now."""
    with contextlib.suppress(FileNotFoundError):
        (step.directory / marking.PAUSED).unlink()
    return _answer(DONE, "not paused")


def _release(step: RepairStep) -> Answer:
    """Let the node's watcher end the quarantine, and its agent its no-go: a preflight has proven the remedy."""
    proof = {"run": step.run, "judged_at": step.judged_at or marking.stamp()}
    marking.write_json(step.directory / marking.PROVEN, proof)
    if not any((step.directory / name).exists() for name in (marking.MARKER, marking.SUSPECT)):
        return _answer(DONE, "no marker")
    judged = ["--judged-at", step.judged_at] if step.judged_at else []
    status, said = step.tool(sys.executable, step.package, "watch", "--release", step.run, *judged)
    return _answer(DONE if status == 0 else FAILED, said)


def _restart(step: RepairStep) -> Answer:
    """End what holds the GPUs, and restart the services that are named."""
    ended = [_end(int(pid)) for pid in _holders()]
    failed = [unit for unit in step.units if step.tool("systemctl", "restart", unit)[0]]
    left = _holders()
    if left or failed:
        return _answer(FAILED, f"still there: {', '.join(left + failed)}")
    return _answer(DONE, f"{len(ended)} processes ended")


def _reset(step: RepairStep) -> Answer:
    """Reset the GPUs, all of them: those behind NVSwitch cannot be reset one by one."""
    busy = _holders()
    if busy:
        return _answer(NOT_DONE, f"processes hold the GPUs: {', '.join(busy)}")
    stopped = [unit for unit in HOLDERS if step.tool("systemctl", "is-active", "--quiet", unit)[0] == 0]
    loaded = [name for name in MODULES if (Path(step.root) / "sys/module" / name).is_dir()]
    try:
        for unit in stopped:
            step.tool("systemctl", "stop", unit)
        # Persistence mode that no service holds refuses a reset as well; without it, this changes nothing.
        step.tool("nvidia-smi", "--persistence-mode=0")
        for name in loaded:
            step.tool("modprobe", "--remove", name)
        status, said = step.tool("nvidia-smi", "--gpu-reset", deadline_s=RESET_S)
    finally:
        for name in reversed(loaded):
            step.tool("modprobe", name)
        for unit in reversed(stopped):
            step.tool("systemctl", "start", unit)
    return _answer(DONE if status == 0 else REFUSED if REFUSAL.search(said) else FAILED, said)


def _reboot(step: RepairStep) -> Answer:
    """Order a reboot that begins when this answer is on its way."""
    status, said = step.tool("systemd-run", "--on-active=3", "--collect", "systemctl", "reboot")
    return _answer(BEGUN if status == 0 else FAILED, said or "ordered")


def _yield(step: RepairStep) -> Answer:
    """End the tests of a preflight that asks this node now, and what they began: a job wants the node."""
    ended = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            calls = [at for at, word in enumerate(words[:-1]) if word.endswith(Path(PACKAGE).name.encode())]
            if any(words[at + 1] == b"call" for at in calls):
                os.kill(int(process.name), signal.SIGTERM)
                ended.append(process.name)
    return _answer(DONE, f"{len(ended)} processes ended")


def _holders() -> List[str]:
    """Process ids that have a GPU or Neuron device open, the services around them left out.

    From /proc, because nvidia-smi hangs or fails on the very nodes that are healed, and no answer is not nobody.
    """
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            name = (process / "comm").read_text().strip()
            if name not in AROUND and any(map(_is_device, (process / "fd").iterdir())):
                found.append(process.name)
    return sorted(found, key=int)


def _is_device(link: Path) -> bool:
    """Is an open file a GPU or a Neuron device?"""
    try:
        return bool(DEVICE.match(os.readlink(str(link))))
    except OSError:
        return False


def _end(pid: int) -> int:
    """End a process, kindly first."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
        until = time.monotonic() + END_GRACE_S
        while time.monotonic() < until:
            os.kill(pid, 0)
            time.sleep(0.1)
        os.kill(pid, signal.SIGKILL)
    return pid


def _software(root: Path) -> str:
    """The GPU driver and the kernel, which stands for the image: what decides whether the platform takes a step."""
    found = []
    for name, path in (("driver", "sys/module/nvidia/version"), ("kernel", "proc/sys/kernel/osrelease")):
        with contextlib.suppress(OSError):
            found.append(f"{name} {(root / path).read_text().strip()}")
    return " ".join(found)


def _boot_id(root: str) -> str:
    try:
        return kmsg.boot_id(root)
    except OSError:
        return ""


def _answer(outcome: str, detail: str) -> Answer:
    return {"outcome": outcome, "detail": detail}


ACTIONS = {
    "look": _look,
    "mark": _mark,
    "reach": _reach,
    "release": _release,
    "restart": _restart,
    "reset": _reset,
    "reboot": _reboot,
    "pause": _pause,
    "resume": _resume,
    "yield": _yield,
}
BY_PERSON = frozenset({"mark", "pause", "resume"})
CHANGING = frozenset({"restart", "reset", "reboot"})


def main(argv: Optional[List[str]] = None) -> int:
    """Take the step that is given as JSON, by the names of RepairStep; the answer is one JSON object."""
    parser = argparse.ArgumentParser(
        "flightline-node.pyz repair",
        description=f"Take one step of healing on this node: {', '.join(ACTIONS)}.",
        epilog="""example: flightline-node.pyz repair '{"action": "look", "token": 1}'""",
    )
    parser.add_argument("step", type=lambda text: RepairStep(**json.loads(text)), help="a JSON object")
    sys.stdout.write(json.dumps(take(parser.parse_args(argv).step)) + "\n")
    return 0
