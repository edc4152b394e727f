"""Run probes: each in its own process group with a deadline, none able to block the run.

Output goes to files, never pipes: a pipe kept open by an abandoned child would block its
reader for ever. A process that outlives SIGKILL (uninterruptible sleep) is left behind
and reported.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from .probes import Probe

PARALLEL_PROBES = 8
TERM_GRACE_S = 0.3
"""dcgmi stops the diagnostic in the host engine when asked to end; killed outright it would leave it running."""
KILL_GRACE_S = 1.0
MAX_OUTPUT_BYTES = 2 << 30
STDERR_TAIL_BYTES = 2000
NOT_FOUND_RC = 127
NOT_RUN = "not run: "
"""How the note of a probe that was not allowed to start begins."""
SILENT = "silent"
"""Why, of a probe that did not answer in its time."""
POLL_S, SLOW_POLL_S, BRISK_S = 0.002, 0.05, 0.5
"""Passive tools answer in milliseconds; beside an active test that runs for minutes, polling must cost nothing."""

SYSTEM_PATHS = (
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:"
    "/opt/amazon/efa/bin:/opt/amazon/openmpi/bin:/usr/local/cuda/bin:/opt/nccl-tests/build:/opt/aws/neuron/bin"
)


@dataclass(frozen=True)
class Node:
    """Where a node's tools and files are; the defaults are this machine."""

    root: str = "/"
    tool_path: Tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """The PATH given to probes."""
        return os.pathsep.join((*self.tool_path, SYSTEM_PATHS))


class Refusal(NamedTuple):
    """Why a probe must not start. id: for programs; text: for people."""

    id: str
    text: str


@dataclass
class ProbeResult:
    """What became of a probe; the manifest's entry. why: what stopped it; refused: the id of why it did not start."""

    id: str
    argv: List[str]
    file: str
    rc: Optional[int] = None
    seconds: float = 0.0
    timed_out: bool = False
    abandoned: bool = False
    note: str = ""
    stderr: str = ""
    why: str = ""
    refused: str = ""

    def to_dict(self) -> Dict[str, Any]:
        """The manifest's shape; rc is null when the process never ended."""
        return {
            "id": self.id,
            "argv": self.argv,
            "rc": self.rc,
            "seconds": round(self.seconds, 3),
            "timed_out": self.timed_out,
            "abandoned": self.abandoned,
            "file": self.file,
            "note": self.note,
            "why": self.why,
            "refused": self.refused,
            "stderr": self.stderr,
        }


@dataclass
class _Running:
    probe: Probe
    result: ProbeResult
    pid: int
    started: float
    out_path: Path
    err_path: Path
    remaining: List[List[str]] = field(default_factory=list)
    asked_at: Optional[float] = None
    killed_at: Optional[float] = None
    first: Optional[ProbeResult] = None

    @property
    def first_output(self) -> Path:
        """Where the first command's output waits while an alternative is tried."""
        return self.out_path.with_name(self.out_path.name + ".first")


def _expand(argv: Sequence[str], node: Node) -> List[str]:
    root = node.root.rstrip("/")
    return [part.replace("{root}", root) for part in argv]


def _find(tool: str, path: str) -> Optional[str]:
    return tool if "/" in tool else shutil.which(tool, path=path)


def _spawn_command(argv: List[str], node: Node, out_path: Path, err_path: Path) -> int:
    env = {key: os.environ[key] for key in ("HOME", "LANG", "LD_LIBRARY_PATH", "USER") if key in os.environ}
    env.update(LC_ALL="C", PATH=node.path)
    with open(out_path, "wb") as out, open(err_path, "wb") as err:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=env, cwd="/", start_new_session=True
        )
    # Reaped by pid below; tell Popen so, or its destructor warns about a running child.
    process.returncode = 0
    return process.pid


def _spawn_reader(function: Callable[[str], str], node: Node, out_path: Path, err_path: Path) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.setsid()
        out_path.write_text(function(node.root), encoding="utf-8")
        code = 0
    except BaseException as error:  # the child must end here, whatever happened, and say why
        err_path.write_text(f"{type(error).__name__}: {error}\n", encoding="utf-8", errors="replace")
    finally:
        os._exit(code)


def _start(
    probe: Probe,
    node: Node,
    out_dir: Path,
    commands: List[List[str]],
    readers: Mapping[str, Callable[[str], str]],
) -> Tuple[Optional[_Running], ProbeResult]:
    out_path, err_path = out_dir / probe.file, out_dir / (probe.file + ".stderr")
    started = time.monotonic()
    if probe.reader:
        result = ProbeResult(probe.id, _argv(probe, node), probe.file)
        pid = _spawn_reader(readers[probe.reader], node, out_path, err_path)
        return _Running(probe, result, pid, started, out_path, err_path), result
    missing: List[str] = []
    while commands:
        argv = commands.pop(0)
        tool = _find(argv[0], node.path)
        if tool is None:
            missing.append(argv[0])
            continue
        result = ProbeResult(probe.id, argv, probe.file)
        try:
            pid = _spawn_command([tool, *argv[1:]], node, out_path, err_path)
        except OSError as error:
            result.note = f"could not start: {error.strerror or error}"
            if commands:
                continue
            return None, result
        return _Running(probe, result, pid, started, out_path, err_path, commands), result
    argv = _argv(probe, node)
    note = f"not installed: {', '.join(missing)} (looked in {node.path})"
    return None, ProbeResult(probe.id, argv, probe.file, rc=NOT_FOUND_RC, note=note)


def _argv(probe: Probe, node: Node) -> List[str]:
    return _expand(probe.commands[0], node) if probe.commands else ["flightline-reader", probe.reader]


def _not_run(probe: Probe, node: Node, refused: Refusal) -> ProbeResult:
    return ProbeResult(probe.id, _argv(probe, node), probe.file, note=NOT_RUN + refused.text, refused=refused.id)


def _tail(path: Path) -> str:
    try:
        with open(path, "rb") as handle:
            handle.seek(0, os.SEEK_END)
            handle.seek(max(0, handle.tell() - STDERR_TAIL_BYTES))
            text = handle.read().decode("utf-8", "replace")
        path.unlink()
    except OSError:
        return ""
    return text


def _signal_group(pid: int, which: int) -> None:
    for send in (os.killpg, os.kill):  # the group does not exist until the child has called setsid
        with contextlib.suppress(ProcessLookupError, PermissionError):
            send(pid, which)
            return


def _poll(item: _Running) -> bool:
    """True when the probe is finished or given up; fills in its result."""
    result, now = item.result, time.monotonic()
    pid, status = os.waitpid(item.pid, os.WNOHANG)
    if pid:
        result.rc = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        # Children that a tool left behind must not outlive its probe.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(item.pid, signal.SIGKILL)
    elif item.asked_at is None:
        if now - item.started > item.probe.deadline_s:
            result.note, result.why = f"no answer within {item.probe.deadline_s:g} s", SILENT
        elif _size(item.out_path) > MAX_OUTPUT_BYTES:
            result.note, result.why = f"printed more than {MAX_OUTPUT_BYTES >> 20} MiB", "too_long"
        if result.note:
            result.timed_out = True
            _signal_group(item.pid, signal.SIGTERM)
            item.asked_at = now
        return False
    elif item.killed_at is None:
        if now - item.asked_at > TERM_GRACE_S:
            _signal_group(item.pid, signal.SIGKILL)
            item.killed_at = now
        return False
    elif now - item.killed_at > KILL_GRACE_S:
        result.abandoned = True
        result.note += "; did not die when killed (uninterruptible), left behind"
    else:
        return False
    result.seconds = time.monotonic() - item.started
    result.stderr = _tail(item.err_path)
    return True


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _batches(probes: Sequence[Probe]) -> List[Tuple[List[Probe], int]]:
    shared = [probe for probe in probes if not probe.exclusive]
    alone = [([probe], 1) for probe in probes if probe.exclusive]
    return ([(shared, PARALLEL_PROBES)] if shared else []) + alone


def run_probes(
    probes: Iterable[Probe],
    node: Node,
    out_dir: Path,
    readers: Mapping[str, Callable[[str], str]],
    on_done: Optional[Callable[[ProbeResult], None]] = None,
    guard: Optional[Callable[[Probe], Optional[Refusal]]] = None,
) -> List[ProbeResult]:
    """Run every probe; passive ones side by side, exclusive ones one after another.

    guard: asked before each exclusive probe; a reason it gives stands in the result instead of a run.

    Never raises for a probe: what went wrong is in its result. Raises OSError only when
    out_dir cannot be written.
    """
    done: List[ProbeResult] = []

    def finish(result: ProbeResult) -> None:
        done.append(result)
        if on_done:
            on_done(result)

    for batch, width in _batches(list(probes)):
        waiting, running = list(batch), []  # type: List[Probe], List[_Running]
        try:
            while waiting or running:
                while waiting and len(running) < width:
                    probe = waiting.pop(0)
                    refused = guard(probe) if guard and probe.exclusive else None
                    if refused:
                        finish(_not_run(probe, node, refused))
                        continue
                    item, result = _start(probe, node, out_dir, [_expand(a, node) for a in probe.commands], readers)
                    if item:
                        running.append(item)
                    else:
                        finish(result)
                running = _advance(running, node, out_dir, readers, finish)
                if running:
                    young = time.monotonic() - max(item.started for item in running) < BRISK_S
                    time.sleep(POLL_S if young else SLOW_POLL_S)
        finally:
            for item in running:  # interrupted: leave nothing running behind
                _signal_group(item.pid, signal.SIGKILL)
    return done


def _advance(
    running: List[_Running],
    node: Node,
    out_dir: Path,
    readers: Mapping[str, Callable[[str], str]],
    finish: Callable[[ProbeResult], None],
) -> List[_Running]:
    still: List[_Running] = []
    for item in running:
        if not _poll(item):
            still.append(item)
            continue
        silent = _size(item.out_path) == 0  # journalctl without a journal says nothing and exits with 0
        failed = not item.result.timed_out and (silent or item.result.rc not in item.probe.ok_rcs)
        following = _try_next(item, node, out_dir, readers) if failed else None
        if following:
            still.append(following)
        else:
            finish(_settle(item, failed))
    return still


def _try_next(
    item: _Running, node: Node, out_dir: Path, readers: Mapping[str, Callable[[str], str]]
) -> Optional[_Running]:
    """Start the next command of a probe whose command failed; None when none is installed."""
    if not item.remaining:
        return None
    if item.first is None and item.out_path.exists():
        item.out_path.replace(item.first_output)
    following, _ = _start(item.probe, node, out_dir, item.remaining, readers)
    if following is None:
        if item.first is None and item.first_output.exists():
            item.first_output.replace(item.out_path)
        return None
    following.first = item.first or item.result
    return following


def _settle(item: _Running, failed: bool) -> ProbeResult:
    """The result that stands: when every alternative failed, the first command's words say most."""
    if item.first is None:
        return item.result
    if failed:
        item.first_output.replace(item.out_path)
        return item.first
    item.first_output.unlink()
    return item.result
