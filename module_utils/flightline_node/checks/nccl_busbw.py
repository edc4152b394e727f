"""Does NCCL reach the bandwidth that this type and number of nodes reach elsewhere?"""

from __future__ import annotations

from typing import Iterator, Optional

from ..context import Context
from ..expected import nccl
from ..model import Check, Facts, Finding, Remedy, Threshold
from .common import nvidia_gpus_expected

GIB = 1 << 30


def node_count(run: Facts, gpus_per_node: int) -> Optional[int]:
    """Full nodes that a test ran on, or each of its groups; None when it used only some of a node's GPUs."""
    ranks, hosts = run.get("group_ranks") or run.get("ranks"), run.get("group_hosts") or run.get("hosts") or 1
    if not ranks or not gpus_per_node or ranks % gpus_per_node:
        return None
    nodes = int(ranks // gpus_per_node)
    return nodes if hosts <= nodes else None


def _size(size_bytes: int) -> str:
    return f"{size_bytes / GIB:g} GiB" if size_bytes >= GIB else f"{size_bytes / (1 << 20):g} MiB"


def _not_a_measurement(context: Context, run: Facts, name: str) -> Optional[Finding]:
    errors = run.get("errors", [])
    if not run.get("complete") or "largest" not in run:
        torn = f", {run['damaged_rows']} torn" if run.get("damaged_rows") else ""
        return context.unknown(f"{name} did not finish: {run.get('rows', 0)} rows{torn}", evidence=errors)
    if run.get("ranks") == 1 and context.expected.gpu_count == 1:
        return context.skip(f"{name}: one GPU has nothing to send")
    if run.get("ranks") == 1:
        return context.unknown(f"{name} ran with 1 rank: nccl-tests built without MPI, or started for one GPU")
    if run["largest"]["busbw_gb_s"] <= 0 and run["largest"]["bytes"] > 0:
        return context.unknown(f"{name} shows a bandwidth of 0 for {run['largest']['bytes']} bytes: no measurement")
    return None


def _judge(context: Context, run: Facts) -> Finding:
    name = run.get("collective") or "a test without a name"
    broken = _not_a_measurement(context, run, name)
    if broken:
        return broken
    busbw, size = run["largest"]["busbw_gb_s"], run["largest"]["bytes"]
    nodes, kind = node_count(run, context.expected.gpu_count or 0), context.expected.instance_type
    where = f"{nodes} node(s) of {kind}" if nodes else f"{run.get('ranks', '?')} ranks on {kind}"
    where += f", {run['groups']} groups at once" if run.get("groups") else ""
    context.measure(f"nccl_{name}_busbw", busbw, "GB/s", where if nodes != 1 else "")
    seen = f"{name} {busbw:g} GB/s busbw at {_size(size)} over {where}"
    gates = nccl.for_group(kind, nodes, name) if nodes else ()
    gate = next((gate for gate in gates if size >= gate.min_bytes), None)
    if not gates:
        return context.info(f"{seen}; no published figure to hold it against", measured=busbw, unit="GB/s")
    if gate is None:
        least = _size(gates[-1].min_bytes)
        return context.skip(f"{seen}: largest message too small, wanted {least} or more", measured=busbw, unit="GB/s")
    scale = context.threshold("scale_percent") / 100
    warn, fail = gate.warn_below * scale, gate.fail_below * scale
    rest = {"measured": busbw, "unit": "GB/s"}
    if busbw < fail:
        return context.fail(f"{seen}, wanted {fail:g} ({gate.basis})", Remedy.INVESTIGATE, expected=fail, **rest)
    if busbw < warn:
        return context.warn(f"{seen}, wanted {warn:g} ({gate.basis})", Remedy.INVESTIGATE, expected=warn, **rest)
    return context.ok(seen, expected=warn, **rest)


def evaluate(context: Context) -> Iterator[Finding]:
    """Each test by its largest message, out-of-place; a figure above the wire rate is legitimate."""
    nccl.check_gates(nccl.gates(), context.threshold("scale_percent") / 100)
    for run in context.facts("nccl_tests").get("runs", []):
        yield _judge(context, run)


CHECK = Check(
    id="nccl_busbw",
    title="NCCL bandwidth",
    what="busbw of the largest message of each nccl-tests run, against published figures for the type and node count.",
    why="Collectives run in step: one slow link or NIC sets the speed of every rank of the job.",
    remedy="Look for a lost NVLink, a throttled GPU, NVLS off, a socket fallback; test several nodes in pairs.",
    source="nccl-tests doc/PERFORMANCE.md; published measurements named in expected/nccl.py",
    needs=("nccl_tests",),
    expects=("gpu_count",),
    tags=("nccl",),
    level="standard",
    thresholds=(
        Threshold(
            "scale_percent",
            100,
            "%",
            "the site's share of every gate in expected/nccl.py",
            "calibrate on a known-good set of nodes; above 110 no gate is sure to be reachable",
            50,
            110,
        ),
    ),
    applies=nvidia_gpus_expected,
    evaluate=evaluate,
)
