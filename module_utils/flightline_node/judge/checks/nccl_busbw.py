"""Does NCCL reach the bandwidth that this type and number of nodes reach elsewhere?"""

from __future__ import annotations

from typing import Iterator, List, Optional

from ...know import nccl
from ...know.expected import NO_TYPE
from ...know.nccl_floor import MEASURABLE_BYTES, Floor, RankGroup, floor, group_of
from ...know.nccl_latency import ceiling
from ...model import RANK, Facts, Finding, Reason, Status, Threshold
from .. import skips
from ..context import Context
from .common import OF_GPU, gpu_check, is_finished

UNFINISHED = Reason("unfinished", "a collective did not finish")
ENDED_BADLY_AFTER = Reason("ended_badly_after", "a collective ended badly after its table")
REFUSED = Reason("refused", "the test itself says that it failed")
ONE_RANK = Reason("one_rank", "it ran with one rank")
ZERO = Reason("zero", "it shows a bandwidth of 0")
LINKS_UNKNOWN = Reason("links_unknown", "nothing is known of the type's links")
BELOW_FLOOR = Reason("below_floor", "the bus bandwidth is below its floor")
LATENCY = Reason("latency", "small messages take far longer than elsewhere")
STALLS = Reason("stalls", "small messages take longer than far larger ones")
DIP = Reason("dip", "one message size is far slower than those beside it")
RANKS_UNKNOWN = Reason("ranks_unknown", "the log does not say how many ranks there are")

GIB = 1 << 30
IN_PLACE = "in place"


def _ranks(run: Facts) -> int:
    return int(run.get("group_ranks") or run.get("ranks") or 0)


def _hosts(run: Facts) -> int:
    return int(run.get("group_hosts") or run.get("hosts") or 1)


def _group(context: Context, run: Facts) -> RankGroup:
    """The ranks that share one communicator; when the log does not count them, the fewest that use a network."""
    gpus, ranks = context.expected.gpu_count or 1, _ranks(run)
    return group_of(ranks, _hosts(run), gpus) if ranks else RankGroup(2, 1)


def _size(size_bytes: int) -> str:
    return f"{size_bytes / GIB:g} GiB" if size_bytes >= GIB else f"{size_bytes / (1 << 20):g} MiB"


def _not_a_measurement(context: Context, run: Facts, name: str) -> Optional[Finding]:
    errors = run.get("errors", [])
    if not is_finished(context, run) or "largest" not in run:
        torn = f", {run['damaged_rows']} torn" if run.get("damaged_rows") else ""
        cause = f": {run['cause']}" if run.get("cause") else ""
        return context.unknown(
            UNFINISHED, f"{name} did not finish: {run.get('rows', 0)} rows{torn}{cause}", evidence=errors
        )
    if errors:
        return context.unknown(
            ENDED_BADLY_AFTER, f"{name} ended badly after its table: {run.get('cause', errors[0])}", evidence=errors
        )
    if run.get("refused"):
        text = f"{name}: the test itself says {'; '.join(run['refused'])}"
        seen = {"measured": run.get("avg_busbw_gb_s"), "expected": "OK", "unit": "GB/s", "evidence": run["refused"]}
        return context.fail(REFUSED, text, **seen)
    if run.get("ranks") == 1 and context.expected.gpu_count == 1:
        return context.skip(skips.ONE_GPU.because(f"{name}: one GPU has nothing to send"))
    if run.get("ranks") == 1:
        return context.unknown(
            ONE_RANK, f"{name} ran with 1 rank: nccl-tests built without MPI, or started for one GPU"
        )
    if run["largest"]["busbw_gb_s"] <= 0 and run["largest"]["bytes"] > 0:
        return context.unknown(
            ZERO, f"{name} shows a bandwidth of 0 for {run['largest']['bytes']} bytes: no measurement"
        )
    return None


def _stalled(context: Context, run: Facts, name: str) -> Optional[Finding]:
    """A path with losses stalls some sizes, whatever the type."""
    sizes = run.get("stalled_sizes", [])
    if not sizes:
        return None
    text = f"{name}: messages of {sizes[0]} to {sizes[-1]} bytes take longer than others four times as large"
    return context.fail(STALLS, text, measured=len(sizes), expected=0, unit="sizes")


def _judge(context: Context, run: Facts) -> Finding:
    name = run.get("collective") or "a test without a name"
    broken = _not_a_measurement(context, run, name)
    if broken:
        return broken
    busbw, size = run["largest"]["busbw_gb_s"], run["largest"]["bytes"]
    group, kind = _group(context, run), context.expected.instance_type
    full = bool(_ranks(run)) and group.gpus == context.expected.gpu_count
    where = f"{group.nodes} node(s) of {kind}" if full else f"{_ranks(run) or '?'} ranks on {kind}"
    where += f", {run['groups']} groups at once" if run.get("groups") else ""
    context.measure(f"nccl_{name}_busbw", busbw, "GB/s", where if not full or group.nodes != 1 else "")
    stalled = _stalled(context, run, name)
    if stalled:
        return stalled
    seen = f"{name} {busbw:g} GB/s busbw at {_size(size)} over {where}"
    found = floor(context.expected, group, name, size, context.threshold("scale_percent") / 100)
    small = _latency(context, run, name, where)
    if found is None:
        return _nothing_to_hold_it_against(context, seen)
    held = _held(context, seen, busbw, size, found, bool(_ranks(run)))
    if held.status is Status.FAIL:
        return held
    findings = [held, *small, *_other_sizes(context, run, f"{name} over {where}", group)]
    return max(findings, key=lambda finding: RANK[finding.status])


def _latency(context: Context, run: Facts, name: str, where: str) -> List[Finding]:
    """What is wrong with the time of small messages. Without a published figure it is measured, for the fleet."""
    took, group = run.get("latency_us"), _group(context, run)
    if took is None:
        return []
    whole_node = group == RankGroup(1, context.expected.gpu_count or 0)
    context.measure(f"nccl_{name}_latency", took, "us", "" if whole_node else where)
    most = ceiling(context.expected, group, name) if _ranks(run) else None
    if most is None or took <= most.warn_above:
        return []
    limit = most.fail_above if took > most.fail_above else most.warn_above
    text = f"{name}: a small message takes {took:.3g} us over {where}, wanted at most {limit:.3g} ({most.basis})"
    said = context.fail if took > most.fail_above else context.warn
    return [said(LATENCY, text, measured=took, expected=round(limit, 1), unit="us")]


def _other_sizes(context: Context, run: Facts, name: str, group: RankGroup) -> Iterator[Finding]:
    """What is wrong with other sizes and the in-place columns: below their own floor, or far below their neighbours."""
    scale = context.threshold("scale_percent") / 100
    for column, words in (("busbw_gb_s", "out of place"), ("in_place_gb_s", IN_PLACE)):
        rows = [(one["bytes"], one[column]) for one in run.get("sizes", ()) if one["bytes"] >= MEASURABLE_BYTES]
        shown = [(size, busbw) for size, busbw in rows if busbw is not None]
        for at, (size, busbw) in enumerate(shown):
            seen = f"{name}: {busbw:g} GB/s busbw at {_size(size)} {words}"
            found = floor(context.expected, group, run.get("collective") or "", size, scale)
            if found and busbw < found.fail_below:
                least = round(found.fail_below, 4)
                text = f"{seen}, wanted {found.fail_below:.3g} ({found.basis})"
                yield context.fail(BELOW_FLOOR, text, measured=busbw, expected=least, unit="GB/s")
            beside = [shown[other][1] for other in (at - 1, at + 1) if 0 <= other < len(shown)]
            least = min(beside, default=0.0) * context.threshold("dip_percent") / 100
            if busbw < least:
                text = f"{seen}, wanted {least:.3g} or more: the sizes beside it reach {min(beside):g}"
                yield context.warn(DIP, text, measured=busbw, expected=round(least, 4), unit="GB/s")


def _nothing_to_hold_it_against(context: Context, seen: str) -> Finding:
    if context.expected.instance_type == NO_TYPE:
        return context.skip(
            skips.UNTYPED.because(
                f"{seen}; needs an instance type (or expected nvlink_gb_s, gpu_pcie_gen, network_gbps)"
            )
        )
    return context.unknown(LINKS_UNKNOWN, f"{seen}; nothing is known of the links of {context.expected.instance_type}")


def _held(context: Context, seen: str, busbw: float, size: int, found: Floor, counted: bool) -> Finding:
    rest: Facts = {"measured": busbw, "unit": "GB/s"}
    fail, warn = round(found.fail_below, 4), round(found.warn_below, 4)
    if size and busbw < found.fail_below:
        text = f"{seen}, wanted {found.fail_below:.3g} ({found.basis})"
        return context.fail(BELOW_FLOOR, text, expected=fail, **rest)
    if size and busbw < found.warn_below:
        text = f"{seen}, wanted {found.warn_below:.3g} ({found.basis})"
        return context.warn(BELOW_FLOOR, text, expected=warn, **rest)
    if size < MEASURABLE_BYTES:
        least = _size(MEASURABLE_BYTES)
        return context.skip(
            skips.TOO_SMALL.because(f"{seen}: a message this small shows no bandwidth, wanted {least}"), **rest
        )
    if not counted:
        return context.info(
            RANKS_UNKNOWN, f"{seen}; the log does not say how many ranks there are", expected=warn, **rest
        )
    return context.ok(f"{seen}, at least {found.warn_below:.3g} ({found.basis})", expected=warn, **rest)


def evaluate(context: Context) -> Iterator[Finding]:
    """Each test by its largest message, and where that is in order by all others; above the wire rate is legitimate."""
    nccl.check_gates(nccl.gates(), context.threshold("scale_percent") / 100)
    runs = context.facts("nccl_tests").get("runs", [])
    if runs and context.expected.gpu_count:
        yield from (_judge(context, run) for run in runs)
        return
    # With one rank there is no path to stall: its times are the clock's noise (recorded: 1 H100, nccl-tests 2.19.6).
    stalled = [_stalled(context, run, run.get("collective") or "a test") for run in runs if run.get("ranks") != 1]
    yield from filter(None, stalled)
    if not any(stalled):
        yield context.skip(skips.UNTYPED.because("no expected gpu_count known, or no test ran: see nccl_correctness"))


CHECK = gpu_check(
    id="nccl_busbw",
    order=870,
    title="NCCL bandwidth",
    what="busbw of the largest message of each nccl-tests run, against published figures for the type and node count, "
    "those of weaker types and of more nodes, and a stated share of what its links carry; other sizes from 16 MiB on "
    "and the in-place columns against their own floors and their neighbours; small messages of all_reduce by their "
    "median time against published ones.",
    why="Collectives run in step: one slow link or NIC sets the speed of every rank of the job.",
    remedy="Look for a lost NVLink, a throttled GPU, NVLS off, a socket fallback; test several nodes in pairs.",
    out_of_service="Yes below the floor; below the usual warns.",
    first="all_reduce_perf -b 1G -e 8G -f 2 -g 8 -c 1",
    source="nccl-tests doc/PERFORMANCE.md; published measurements named in know/hardware.py; shares with their "
    "reasons in know/nccl_floor.py and nccl_latency.py",
    needs=("nccl_tests",),
    tags=("nccl",),
    level="standard",
    thresholds=(
        Threshold(
            "scale_percent",
            100,
            "%",
            "the site's share of every gate and floor (know/nccl.py, know/nccl_floor.py)",
            "calibrate on a known-good set of nodes; above 110 no gate is sure to be reachable",
            50,
            110,
        ),
        Threshold(
            "dip_percent",
            50,
            "%",
            "what a message size must reach of the slower of its neighbours",
            "our own: where NCCL changes its algorithm published tables lose a third at most",
            0,
            90,
        ),
    ),
    skips=(*OF_GPU, skips.ONE_GPU, skips.UNTYPED, skips.TOO_SMALL),
    evaluate=evaluate,
)
