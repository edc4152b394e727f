#!/usr/bin/python3
"""One step of healing on a node, one JSON object as the answer: {"outcome": ..., "detail": ..., "boot_id": ...}.

Standard library only, Python 3.8 and later: playbooks/remediate.yml sends it. A step carries the token of the lease
under which it was meant; the highest token that ever asked is kept, and a step of an older lease is refused, so that
a remediator that slept through the end of its lease changes nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

DONE, FAILED, NOT_DONE, BEGUN = "done", "failed", "not done", ""
TOOL_S = 60
RESET_S = 300
END_GRACE_S = 10
HOLDERS = ("nvidia-dcgm.service", "dcgm-exporter.service", "nvidia-persistenced.service", "flightline-watch.service")
"""Services that keep a GPU open, so that it cannot be reset. Source: nvidia-smi(1), --gpu-reset."""

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
Answer = Dict[str, Any]


def main() -> None:
    """Do what is asked and answer."""
    given = arguments()
    directory = Path(given.root) / "var/lib/flightline"
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "remediate.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        answer = fenced(directory, given)
    answer["boot_id"] = boot_id(given.root)
    sys.stdout.write(json.dumps(answer) + "\n")


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="One step of healing on this node.")
    parser.add_argument("action", choices=sorted(ACTIONS))
    parser.add_argument("--token", type=int, required=True)
    parser.add_argument("--root", default="/")
    parser.add_argument("--tools", default="", help="directories before the system's own")
    parser.add_argument("--spare", default="", help="boot id of the control node, which is not to be changed")
    parser.add_argument("--run", default="")
    parser.add_argument("--judged-at", default="")
    parser.add_argument("--units", default="", help="services to restart, with commas")
    parser.add_argument("--marker", default="", help="quarantine marker to set, JSON")
    parser.add_argument("--package", default="/opt/flightline/flightline-node.pyz")
    given = parser.parse_args()
    os.environ["PATH"] = os.pathsep.join(filter(None, (given.tools, os.environ.get("PATH", ""), "/usr/sbin:/sbin")))
    return given


def fenced(directory: Path, given: argparse.Namespace) -> Answer:
    """The action, unless a newer lease has asked this node."""
    path = directory / "remediate.json"
    try:
        known = int(json.loads(path.read_text())["token"])
    except (OSError, ValueError, KeyError, TypeError):
        known = 0
    # A person's mark, token 0, only takes out of service, which no lease forbids.
    if given.action == "mark" and given.token == 0:
        return mark(directory, given)
    if given.token < known:
        return answered(NOT_DONE, f"refused: lease {given.token} is over, lease {known} has asked this node")
    written(path, {"token": given.token})
    if given.action in CHANGING and given.spare and given.spare == boot_id("/"):
        return answered(NOT_DONE, "refused: this is the machine that Ansible runs on, no node of a cluster")
    return ACTIONS[given.action](directory, given)


def written(path: Path, value: Any) -> None:
    """Replace a file whole and durably."""
    draft = path.with_name("." + path.name + ".tmp")
    with draft.open("w") as handle:
        handle.write(json.dumps(value) + "\n")
        handle.flush()
        os.fsync(handle.fileno())
    draft.replace(path)


def look(directory: Path, given: argparse.Namespace) -> Answer:
    """What the node is like: its marker, and what holds its GPUs."""
    try:
        marker = json.loads((directory / "quarantine.json").read_text())
    except FileNotFoundError:
        marker = None
    except (OSError, ValueError) as error:
        marker = {"unreadable": str(error)[:200]}
    return {**answered(DONE, ""), "marker": marker, "jobs": holders()}


def mark(directory: Path, given: argparse.Namespace) -> Answer:
    """Set the marker, where the node has none."""
    path = directory / "quarantine.json"
    if not path.exists():
        written(path, json.loads(given.marker))
    return answered(DONE, "marked")


def release(directory: Path, given: argparse.Namespace) -> Answer:
    """Let the node's watcher end the quarantine: a preflight has proven the remedy."""
    if not (directory / "quarantine.json").exists():
        return answered(DONE, "no marker")
    argv = [sys.executable, "-m", "flightline_node", "watch", "--release", given.run]
    argv += ["--judged-at", given.judged_at] if given.judged_at else []
    rc, said = ran(argv, TOOL_S, {"PYTHONPATH": given.package})
    return answered(DONE if rc == 0 else FAILED, said)


def restart(directory: Path, given: argparse.Namespace) -> Answer:
    """End what holds the GPUs, and restart the services that are named."""
    ended = [end(int(pid)) for pid in holders()]
    failed = [unit for unit in filter(None, given.units.split(",")) if ran(["systemctl", "restart", unit], TOOL_S)[0]]
    left = holders()
    if left or failed:
        return answered(FAILED, f"still there: {', '.join(left + failed)}")
    return answered(DONE, f"{len(ended)} processes ended")


def reset(directory: Path, given: argparse.Namespace) -> Answer:
    """Reset the GPUs, all of them: those behind NVSwitch cannot be reset one by one."""
    busy = holders()
    if busy:
        return answered(NOT_DONE, f"processes hold the GPUs: {', '.join(busy)}")
    stopped = [unit for unit in HOLDERS if ran(["systemctl", "is-active", "--quiet", unit], TOOL_S)[0] == 0]
    try:
        for unit in stopped:
            ran(["systemctl", "stop", unit], TOOL_S)
        rc, said = ran(["nvidia-smi", "--gpu-reset"], RESET_S)
    finally:
        for unit in reversed(stopped):
            ran(["systemctl", "start", unit], TOOL_S)
    return answered(DONE if rc == 0 else FAILED, said)


def reboot(directory: Path, given: argparse.Namespace) -> Answer:
    """Order a reboot that begins when this answer is on its way."""
    argv = ["systemd-run", "--on-active=3", "--collect", "systemctl", "reboot"]
    rc, said = ran(argv, TOOL_S)
    return answered(BEGUN if rc == 0 else FAILED, said or "ordered")


def holders() -> List[str]:
    """Process ids that have a GPU or Neuron device open, the services around them left out.

    From /proc, because nvidia-smi hangs or fails on the very nodes that are healed, and no answer is not nobody.
    """
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "comm").read_text().strip() not in AROUND and any(map(is_device, (process / "fd").iterdir())):
                found.append(process.name)
    return sorted(found, key=int)


def is_device(link: Path) -> bool:
    """Is an open file a GPU or a Neuron device?"""
    try:
        return bool(DEVICE.match(os.readlink(str(link))))
    except OSError:
        return False


def end(pid: int) -> int:
    """End a process, kindly first."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
        until = time.monotonic() + END_GRACE_S
        while time.monotonic() < until:
            os.kill(pid, 0)
            time.sleep(0.1)
        os.kill(pid, signal.SIGKILL)
    return pid


def ran(argv: Sequence[str], timeout_s: float, more: Optional[Mapping[str, str]] = None) -> Tuple[int, str]:
    """Status and a short answer of a program; 124 when it took too long, 127 when it is not there."""
    env = dict(os.environ, LC_ALL="C", **(more or {}))
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout_s, env=env
        )
    except FileNotFoundError:
        return 127, f"{argv[0]}: not found"
    except subprocess.TimeoutExpired:
        return 124, f"{argv[0]}: no end within {timeout_s} s"
    return done.returncode, " ".join(done.stdout.decode("utf-8", "replace").split())[:400]


def boot_id(root: str) -> str:
    """The kernel's id of this boot."""
    try:
        return (Path(root) / "proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def answered(outcome: str, detail: str) -> Answer:
    """An answer."""
    return {"outcome": outcome, "detail": detail}


ACTIONS = {
    "look": look,
    "mark": mark,
    "release": release,
    "restart": restart,
    "reset": reset,
    "reboot": reboot,
}
CHANGING = frozenset({"restart", "reset", "reboot"})

if __name__ == "__main__":
    main()
