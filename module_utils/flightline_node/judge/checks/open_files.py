"""May a job open as many files as data loaders and NCCL need?"""

from __future__ import annotations

from typing import Any, Dict, Iterator

from ...model import Check, Finding, Reason, Remedy, Threshold
from .. import skips
from ..context import Context

TOO_FEW = Reason("too_few", "jobs may open too few files", Remedy.FIX_CONFIG)


def _number(limit: Any) -> float:
    return float("inf") if limit == "unlimited" else float(limit) if isinstance(limit, int) else -1.0


def evaluate(context: Context) -> Iterator[Finding]:
    """The hard limit of what starts jobs: a program raises its soft limit up to it by itself."""
    facts = context.facts("limits")
    limits: Dict[str, Any] = {name: limit.get("nofile_hard") for name, limit in facts.get("launchers", {}).items()}
    limits = {name: limit for name, limit in limits.items() if limit is not None}
    limits = limits or {"this session": facts.get("nofile_hard", facts.get("nofile_soft"))}
    name, best = max(limits.items(), key=lambda item: _number(item[1]))
    least = context.threshold("min_files")
    rest = {"measured": best, "expected": least, "unit": "files"}
    if best is None:
        yield context.skip(skips.ONLY_ADVICE.because("no limit of open files printed"))
    elif _number(best) < least:
        yield context.warn(TOO_FEW, f"jobs may open only {best} files ({name}), wanted {least:g}", **rest)
    else:
        yield context.ok(f"open files: {best} ({name})", **rest)


CHECK = Check(
    id="open_files",
    order=510,
    title="Open files limit",
    what="The hard limit of open files of the job launchers, or of this session where there is none.",
    why="A rank holds a socket per peer and data loaders a file per worker: 'too many open files' ends the job.",
    remedy="LimitNOFILE in the launcher's unit (slurmd, containerd), or nofile in /etc/security/limits.d.",
    out_of_service="No: large jobs may run out of them, and it can be raised on the running node.",
    source="getrlimit(2); systemd.exec(5), LimitNOFILE",
    needs=("limits",),
    tags=("host", "limits"),
    thresholds=(
        Threshold(
            "min_files",
            8192,
            "files",
            "least hard limit",
            "above the hard limit of 4096 that systemd gave up as too low (systemd NEWS 240; now 524288)",
            1,
        ),
    ),
    skips=(skips.ONLY_ADVICE,),
    evaluate=evaluate,
)
