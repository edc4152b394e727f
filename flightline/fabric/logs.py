"""A test's log becomes a measurement, judged by the node library's own NCCL checks: one rule book."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from flightline_node.judge.checks import nccl_busbw, nccl_correctness, nccl_transport
from flightline_node.judge.judgement import judge
from flightline_node.know.expected import NO_TYPE, Expected
from flightline_node.know.nccl_floor import MEASURABLE_BYTES
from flightline_node.model import Finding, ParseError, Status
from flightline_node.read.bundle import Bundle
from flightline_node.read.parsers import ranks as labels
from flightline_node.settings import build

from . import transport

CHECKS = (nccl_busbw.CHECK.id, nccl_correctness.CHECK.id, nccl_transport.CHECK.id)
BLOCKING = (Status.FAIL, Status.UNKNOWN, Status.UNREACHABLE)
WITHOUT_TYPE = (nccl_correctness.CHECK.id,)
"""Where no instance type says what to expect of bandwidth and transport, peers and this check judge."""


@dataclass(frozen=True)
class LogResult:
    """What a log shows. trouble: the first blocking finding's message, '' when none blocks. busbw_gb_s: GB/s (10^9).

    off_efa: host, by its own name -> which of its ranks used what in EFA's place. sizes: bytes -> GB/s, of each message
    that is large enough to show the links.
    """

    trouble: str
    busbw_gb_s: float | None
    slow_only: bool = False
    off_efa: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[int, float] = field(default_factory=dict)


def read_log(
    directory: Path, collective: str, answer: Mapping[str, Any], expected: Expected, nodes: int = 0, ranks: int = 0
) -> LogResult:
    """Keep one test's output in a directory of its own, as a bundle, and judge it.

    answer: the module's facts {rc, seconds, timed_out, output}. nodes: on how many the ranks should be; ranks: how
    many, 0 where nobody knows. Raises OSError when the output cannot be kept.
    """
    directory.mkdir(parents=True, exist_ok=True)
    file = f"nccl-{collective}.log"
    said = str(answer.get("output") or "")
    (directory / file).write_text(said, encoding="utf-8", errors="replace")
    if answer.get("timed_out"):
        return LogResult(f"did not end within its deadline, saw {_size(answer)} of output", None)
    bundle = Bundle(directory, {"probes": [{"id": f"nccl_{collective}", "file": file, "rc": answer.get("rc")}]})
    names = CHECKS if expected.instance_type != NO_TYPE else WITHOUT_TYPE
    settings, now = build(level="deep", select=names), datetime.now(timezone.utc)
    judged = judge(bundle, expected, settings, now, required=True, node=False)
    blocking = [finding for finding in judged.findings if finding.status in BLOCKING]
    runs = [run for run in judged.facts.get("nccl_tests", {}).get("runs", []) if "largest" in run]
    busbw = float(runs[-1]["largest"]["busbw_gb_s"]) if runs else None
    shown = runs[-1].get("sizes", ()) if runs else ()
    sizes = {int(one["bytes"]): float(one["busbw_gb_s"]) for one in shown if one["bytes"] >= MEASURABLE_BYTES}
    slow = (nccl_busbw.CHECK.id, Status.FAIL)
    rest = [finding for finding in blocking if (finding.check, finding.status) != slow]
    # A fault that is named says more than what could not be measured because of it.
    worst = sorted(rest or blocking, key=lambda finding: finding.status is not Status.FAIL)[:1]
    went = _paths(said, expected, ranks)
    trouble = went.fallback or (worst[0].message if worst else _not_shown(runs, judged.findings, expected))
    trouble = trouble or went.unproven or _elsewhere(runs, nodes)
    slow_only = bool(blocking) and not rest and not went.fallback and not went.unproven
    return LogResult(trouble, busbw, slow_only, went.by_host, sizes)


def _paths(said: str, expected: Expected, ranks: int) -> transport.Paths:
    """Which way each rank's data went, where the type has EFA."""
    if not expected.efa_count:
        return transport.Paths()
    try:
        return transport.paths(labels.lines(said.encode("utf-8", "replace")), ranks)
    except ParseError:
        return transport.Paths(missing=ranks or 1)  # the checks have said what is wrong with the log


def _not_shown(runs: list[Any], findings: Iterable[Finding], expected: Expected) -> str:
    """What the log must show and does not: a result, and EFA where the type has it."""
    if not runs:
        return "no result in its output"
    transport = [finding for finding in findings if finding.check == nccl_transport.CHECK.id]
    shown = any(finding.status in (Status.PASS, Status.WARN) for finding in transport)
    if expected.efa_count and not shown:
        said = transport[0].message if transport else "nothing"
        return f"the log shows no transport ({said}), wanted EFA"
    return ""


def _elsewhere(runs: list[Any], nodes: int) -> str:
    """Ranks that share a host send nothing over the network: two names of one host, or a launcher that packs them."""
    hosts = runs[-1].get("hosts") if runs else None
    if not nodes or hosts in (None, nodes):
        return ""
    return f"the ranks ran on {hosts} hosts by their own names, wanted {nodes}"


def _size(answer: Mapping[str, Any]) -> str:
    return f"{len(str(answer.get('output') or ''))} characters"
