"""Run one program over several nodes with Open MPI or Slurm, end it everywhere, and see what it left.

Every rank runs under timeout(1) on its own node, so it ends at the deadline whatever became of its launcher, and
carries the test's id in its environment, by which strays are found. Only processes with that id are ever ended.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from typing import Any, Dict, List, Mapping, NamedTuple, Tuple

from ..host import Host, Problem
from ..outcome import Outcome
from .stray import identity

MARK = "FLIGHTLINE_COLLECTIVE"
GRACE_S = 5
"""Between asking a process to end and killing it."""
LAUNCH_S = 30
"""A launcher may take this long beyond the ranks' deadline, to start and to collect what they printed."""
MAX_OUTPUT_BYTES = 4 << 20
"""Of a log the beginning and the end are kept, and of the rest the lines that prove each rank's transport."""
MAX_PROOF_BYTES = 8 << 20
"""32,768 ranks, each with two such lines of some hundred characters."""
_PROOF = re.compile(rb"Using network|Assigned NET plugin|elected [Pp]rovider is|NCCL WARN|Rank +\d+ .*Pid +\d+ on ")
LAUNCHERS = ("mpirun", "srun")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,252}")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,63}")


class Test(NamedTuple):
    """What to run: `ranks` of the program on each of the nodes, for at most deadline_s."""

    id: str
    nodes: Tuple[str, ...]
    ranks: int
    program: Tuple[str, ...]
    deadline_s: int
    environment: Dict[str, str]
    launcher: str = "mpirun"
    options: Tuple[str, ...] = ()


def test_of(wanted: Mapping[str, Any]) -> Test:
    """The module's arguments, checked. Raises Problem: what is given becomes arguments of a launcher."""
    nodes, program = tuple(wanted["nodes"]), tuple(wanted["program"])
    strange = [name for name in nodes if not _NAME.fullmatch(name)]
    if strange or not nodes:
        raise Problem(f"nodes {strange or 'none'}", "names or addresses", "look at node_address and ansible_host")
    if not _ID.fullmatch(wanted["id"]):
        raise Problem(f"id {wanted['id']!r}", "letters, digits and hyphens", "leave the id to flightline fabric")
    if not program or not program[0].startswith("/"):
        raise Problem(f"program {program[:1]}", "an absolute path", "set flightline_fabric_program")
    return Test(
        wanted["id"], nodes, wanted["ranks"], program, wanted["deadline_s"], dict(wanted["environment"]),
        wanted["launcher"], tuple(wanted["launcher_options"]),
    )  # fmt: skip


def argv_of(test: Test, launcher: str) -> List[str]:
    """The launcher's command line. launcher: its path."""
    ranks = ["timeout", "-k", str(GRACE_S), str(test.deadline_s), *test.program]
    given = {**test.environment, MARK: test.id}
    if test.launcher == "srun":
        # --kill-on-bad-exit ends the other ranks with the first that fails.
        limits = [f"--nodes={len(test.nodes)}", f"--nodelist={','.join(test.nodes)}", f"--ntasks-per-node={test.ranks}"]
        limits += [f"--time={-(-(test.deadline_s + LAUNCH_S) // 60)}", "--kill-on-bad-exit=1", "--exclusive"]
        return [launcher, *limits, f"--job-name=flightline-{test.id}", "--export=ALL", *test.options, *ranks]
    hosts = ",".join(f"{node}:{test.ranks}" for node in test.nodes)
    passed = [part for name in sorted(given) for part in ("-x", name)]
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    return [launcher, *root, "--host", hosts, "--map-by", f"ppr:{test.ranks}:node", *passed, *test.options, *ranks]


def run(host: Host, wanted: Mapping[str, Any]) -> Dict[str, Any]:
    """Start the test and wait for it: {rc, seconds, timed_out, output, busy_share}. Raises Problem."""
    test = test_of(wanted)
    launcher = launcher_path(test.launcher, wanted["search"])
    # A head node starts what it need not have.
    missing = [] if wanted.get("elsewhere") or os.access(test.program[0], os.X_OK) else [test.program[0]]
    if missing:
        raise Problem(f"no program {missing[0]}", "the test program on every node", "install it: role cuda_nccl")
    environment = {**os.environ, **test.environment, MARK: test.id}
    argv, began, waited_us = argv_of(test, launcher), time.monotonic(), _waited_us()
    host.commands.append(argv)
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=environment,
            start_new_session=True,
        )  # fmt: skip
        timed_out = _wait(process, test.deadline_s + LAUNCH_S)
        text = _kept(output)
    # 124 and 137 are timeout(1)'s own: the ranks met their deadline before the launcher met its.
    late = timed_out or process.returncode in (124, 137)
    seconds, waited_us = time.monotonic() - began, _waited_us() - waited_us
    return {
        "rc": process.returncode, "seconds": round(seconds, 3), "timed_out": late, "output": text,
        "busy_share": round(min(waited_us / 1e6 / max(seconds, 1e-3), 1.0), 3),
    }  # fmt: skip


def _waited_us() -> int:
    """Microseconds since boot in which a task of this node waited for a CPU; 0 where the kernel does not tell.

    Source: Linux, Documentation/accounting/psi.rst.
    """
    with suppress(OSError, ValueError), open("/proc/pressure/cpu", encoding="ascii") as stream:
        return int(stream.readline().rpartition("total=")[2])
    return 0


def launcher_path(name: str, search: List[str]) -> str:
    """Where the launcher is. Raises Problem."""
    found = shutil.which(name, path=os.pathsep.join([*search, os.environ.get("PATH", os.defpath)]))
    if not found:
        raise Problem(f"no {name} on this node", "the launcher", f"install it; looked in {search} and PATH")
    return found


def _wait(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """True when it had to be ended."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
        return False
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(OSError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S)
            break
    return True


def _kept(stream: Any) -> str:
    size = stream.seek(0, os.SEEK_END)
    half = MAX_OUTPUT_BYTES // 2
    stream.seek(0)
    head = stream.read(half)
    stream.seek(max(size - half, len(head)))
    tail = stream.read()
    cut = _proof(stream, half, size - half) if size > 2 * half else b""
    return bytes(head + cut + tail).decode("utf-8", "replace")


def _proof(stream: Any, start: int, end: int) -> bytes:
    """What is kept of the middle of a log, from the first whole line on, and how much is not."""
    stream.seek(start)
    at, kept, size = start + len(stream.readline(MAX_OUTPUT_BYTES)), [], 0
    while at < end:
        line = stream.readline(MAX_OUTPUT_BYTES)
        at += len(line)
        if size < MAX_PROOF_BYTES and _PROOF.search(line):
            kept.append(line)
            size += len(line)
    return b"\n[%d bytes are left out here]\n" % (end - start - size) + b"".join(kept)


def strays(test_id: str) -> Dict[int, str]:
    """Processes of a test on this node, by id, with their names; not this one."""
    needle, found = f"{MARK}={test_id}".encode(), {}
    for name in os.listdir("/proc"):
        if name.isdecimal() and int(name) != os.getpid():
            with suppress(OSError), open(f"/proc/{name}/environ", "rb") as stream:
                if needle in stream.read().split(b"\0"):
                    with open(f"/proc/{name}/comm", encoding="utf-8", errors="replace") as comm:
                        found[int(name)] = comm.read().strip()
    return found


def end(test_id: str) -> Dict[str, Any]:
    """End what is left of a test: {strays: names that were found, left: names that would not end}."""
    first = strays(test_id)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in strays(test_id):
            with suppress(OSError):
                os.kill(pid, number)
        until = time.monotonic() + GRACE_S
        while time.monotonic() < until and strays(test_id):
            time.sleep(0.1)
    return {"strays": sorted(first.values()), "left": sorted(strays(test_id).values())}


def ready(host: Host, wanted: Mapping[str, Any]) -> Dict[str, Any]:
    """Who this node is, and whether it could start a test."""
    problems = []
    program = wanted["program"][0] if wanted["program"] else ""
    try:
        launcher_path(wanted["launcher"], wanted["search"])
    except Problem as problem:
        problems.append(str(problem))
    if not os.access(program, os.X_OK):
        problems.append(f"no program {program}")
    # A container shares its host's boot id, and an image may carry a machine id: all three tell machines apart.
    name = os.uname().nodename
    return {"machine": f"{identity(host)} {name}", "hostname": name, "problems": problems}


def ensure(host: Host, wanted: Mapping[str, Any], check: bool) -> Outcome:
    """Do what `state` says: ready, run or ended. In check mode nothing is started or ended."""
    if wanted["state"] == "ready":
        return Outcome(False, {}, {}, ready(host, wanted))
    if check:
        return Outcome(False, {}, {}, {"strays": sorted(strays(wanted["id"]).values()), "left": []})
    facts = run(host, wanted) if wanted["state"] == "run" else end(wanted["id"])
    return Outcome(bool(facts.get("strays")), {}, {}, facts)
