"""What a failed node keeps of itself: its bundle, compressed, and NVIDIA's bug report after a GPU fault.

Imported only for a node that failed. Nothing is created that was not prepared: the directory must exist (the role
flightline_node makes it), and a disk that is nearly full is left alone.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tarfile
import time
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence

from ..ask.runner import Node
from ..judge.checks import CHECKS
from ..judge.reasons import NOT_RUN
from ..model import Finding, Status
from ..read.bundle import Bundle
from ..settings import NodeSettings
from . import packing

DIRECTORY = "var/log/flightline"
PREFIX, ARCHIVE, REPORT = "bundle-", ".tar.gz", ".nvidia-bug-report.log"
KEPT = 5
"""Failures kept on the node; older ones are removed."""
MAX_FILE_BYTES = 64 << 20
"""Of a longer file the end is kept: the newest kernel messages, the last lines of a test."""
MIN_FREE_BYTES = 1 << 30
TOOL = "nvidia-bug-report.sh"
REPORT_DEADLINE_S = 180.0
"""A minute or two on eight GPUs; on a broken one it can hang for ever."""
REPORT_MAX_BYTES = 256 << 20
POLL_S, GRACE_S = 0.2, 3.0


def keep(node: Node, bundle: Bundle, findings: Sequence[Finding], settings: NodeSettings) -> Dict[str, Any]:
    """{archive, bytes, bug_report, note}: where the evidence is on the node, or in `note` why there is none."""
    directory, name = _directory(node, settings.options), _name(bundle.manifest)
    if directory is None or not directory.is_dir():
        return {"note": f"not kept on the node: no directory {directory or DIRECTORY}"}
    try:
        space = os.statvfs(directory)
        if space.f_bavail * space.f_frsize < MIN_FREE_BYTES:
            return {"note": f"not kept on the node: less than {MIN_FREE_BYTES >> 20} MiB free in {directory}"}
        archive = _pack(bundle.directory, directory / f"{PREFIX}{name}{ARCHIVE}")
    except OSError as error:
        return {"note": f"not kept on the node: {error.strerror or error}"}
    kept: Dict[str, Any] = {"archive": str(archive), "bytes": archive.stat().st_size}
    why_not = _no_report(findings, settings.level, settings.options)
    kept.update({"note": why_not} if why_not else _report(node, directory / f"{PREFIX}{name}{REPORT}"))
    _remove_old(directory)
    return kept


def _directory(node: Node, options: Mapping[str, Any]) -> Optional[Path]:
    given = options.get("evidence_dir", DIRECTORY)
    return Path(node.root) / str(given).lstrip("/") if given else None


def _name(manifest: Mapping[str, Any]) -> str:
    """Time first, so that names sort by age."""
    stamp = re.sub(r"\D", "", str(manifest.get("collected_at")))[:14]
    host = re.sub(r"[^\w.-]", "_", str(manifest.get("host") or "node"))
    return f"{stamp}-{host[:80]}"


def _pack(bundle: Path, target: Path) -> Path:
    part = target.with_name(target.name + ".part")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o640)
    with open(handle, "wb") as out, tarfile.open(fileobj=out, mode="w:gz", compresslevel=6) as archive:
        for path in sorted(path for path in bundle.iterdir() if path.is_file()):
            packing.add(archive, path.name, packing.end_of(path, MAX_FILE_BYTES), path.stat().st_mtime)
    os.replace(part, target)
    return target


def _no_report(findings: Sequence[Finding], level: str, options: Mapping[str, Any]) -> str:
    """Why NVIDIA's report is not made, or ''. It asks everything of every GPU: never beside a job unless told to."""
    wish = str(options.get("bug_report", "auto")).lower()
    failed = [f.check for f in findings if f.status is Status.FAIL and f.check in CHECKS]
    if wish in ("never", "false", "no"):
        return "no bug report: the site wants none"
    if not any("gpu" in CHECKS[check].tags for check in failed):
        return "no bug report: no GPU check failed"
    if level == "quick" and wish != "always":
        return "no bug report: a quick run may be beside a job (option bug_report: always)"
    if any(f.reason.partition(".")[0] == NOT_RUN.id for f in findings) and wish != "always":
        return "no bug report: the node is in use (option bug_report: always)"
    return ""


def _report(node: Node, target: Path) -> Dict[str, Any]:
    """Run NVIDIA's script, which compresses what it wrote; bounded in time and size, and never waited for in vain."""
    tool = shutil.which(TOOL, path=node.path)
    if tool is None:
        return {"note": f"no bug report: {TOOL} is not installed"}
    env = {"PATH": node.path, "LC_ALL": "C", "HOME": os.environ.get("HOME", "/")}
    try:
        process = subprocess.Popen(
            [tool, "--safe-mode", "--output-file", str(target)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=target.parent,
            env=env,
            start_new_session=True,
        )
    except OSError as error:
        return {"note": f"no bug report: {error.strerror or error}"}
    why = _wait(process, target)
    made = [path for path in (target.with_name(target.name + ".gz"), target) if path.is_file()]
    size = made[0].stat().st_size if made else 0
    if why or not made or size > REPORT_MAX_BYTES:
        for path in made:
            path.unlink()
        return {"note": f"no bug report: {TOOL} {why or (f'wrote {size} bytes' if made else 'wrote nothing')}"}
    return {"bug_report": str(made[0])}


def _wait(process: subprocess.Popen[bytes], target: Path) -> str:
    """Why the script was stopped, or ''."""
    began, why = time.monotonic(), ""
    while process.poll() is None and not why:
        time.sleep(POLL_S)
        if time.monotonic() - began > REPORT_DEADLINE_S:
            why = f"did not end within {REPORT_DEADLINE_S:g} s"
        elif target.exists() and target.stat().st_size > 8 * REPORT_MAX_BYTES:
            why = "wrote too much"
    if why:
        _end(process)
    return why


def _end(process: subprocess.Popen[bytes]) -> None:
    for which in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, which)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S)
            return
    process.returncode = -signal.SIGKILL  # stuck in the kernel: left behind, not waited for


def _remove_old(directory: Path) -> None:
    """Keep the newest; a name begins with its time."""
    found: List[Path] = sorted(directory.glob(f"{PREFIX}*{ARCHIVE}"), reverse=True)
    for archive in found[KEPT:]:
        stem = archive.name[: -len(ARCHIVE)]
        for path in directory.glob(f"{stem}.*"):
            with contextlib.suppress(OSError):
                path.unlink()
