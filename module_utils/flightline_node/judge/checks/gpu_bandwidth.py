"""Do copies between host and GPUs, and between the GPUs, reach the speed of their links?"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

from ...know import links
from ...know.catalog import cuda
from ...know.expected import NO_TYPE
from ...model import Facts, Finding, Reason, Remedy, Threshold
from ..context import Context
from .common import gpu_check, median, spread

LINK_UNKNOWN = Reason("link_unknown", "nothing is known of this link of the type", device="GPU")
BELOW_FLOOR = Reason("below_floor", "a copy is slower than its floor", Remedy.REBOOT, "GPU")
SLOWER = Reason("slower", "a copy is slower than the others", Remedy.REBOOT, "GPU")
COPY_NOT_MEASURED = Reason("copy_not_measured", "a GPU's copies were not measured", device="GPU")
CUT_SHORT = Reason("cut_short", "the output ends before its table")
TEST_FAILED = Reason("test_failed", "a test of nvbandwidth did not pass")
NOT_POSSIBLE = Reason("not_possible", "a copy was not possible")
NOT_AMONG_TESTS = Reason("not_among_tests", "a copy is not among nvbandwidth's tests")
FEWER_MEASURED = Reason("fewer_measured", "not every GPU was measured")
CUDA_ERROR = Reason("cuda_error", "nvbandwidth met an error of CUDA")
NO_HOST_COPY = Reason("no_host_copy", "nvbandwidth measured no host copy")

HOST = {"host_to_device_memcpy_ce": "host to GPU", "device_to_host_memcpy_ce": "GPU to host"}
PEER = {"device_to_device_memcpy_read_ce": "read from peer", "device_to_device_memcpy_write_ce": "write to peer"}
Pair = Tuple[int, int]


def _hold(
    context: Context, name: str, what: str, speed: float, usual: float, floor: Optional[float]
) -> Iterator[Finding]:
    """One GPU, or one pair of them, against the floor and its twins."""
    device: Dict[str, Any] = {"index": int(name[4:])} if name.startswith("GPU ") else {"name": name}
    rest: Dict[str, Any] = {"device": device, "measured": speed, "unit": "GB/s"}
    slow, watch = (usual * (1 - context.threshold(f"{key}_slower_percent") / 100) for key in ("fail", "warn"))
    seen = f"{name}: {what} at {speed:g} GB/s"
    if floor is None and context.expected.instance_type != NO_TYPE:
        yield context.unknown(
            LINK_UNKNOWN, f"{seen}; nothing is known of this link of {context.expected.instance_type}", **rest
        )
    elif floor is not None and speed < floor:
        yield context.fail(BELOW_FLOOR, f"{seen}, wanted {floor:.3g}", expected=round(floor, 1), **rest)
    elif speed < slow:
        yield context.fail(SLOWER, f"{seen}, the others {usual:g}", expected=round(slow, 1), **rest)
    elif speed < watch:
        yield context.warn(
            SLOWER, f"{seen}, the others {usual:g}", remedy=Remedy.INVESTIGATE, expected=round(watch, 1), **rest
        )


def _share(rate: Optional[float], percent: float) -> Optional[float]:
    return None if rate is None else rate * percent / 100


def _host(context: Context, test: Facts, what: str) -> Iterator[Finding]:
    row: List[Optional[float]] = test["matrix"][0]
    floor = _share(links.pcie_gb_s(context.expected), context.threshold("min_pcie_percent"))
    for index, speed in enumerate(row):
        label, others = f"GPU {index}", [value for at, value in enumerate(row) if value and at != index]
        if speed is None:
            yield context.unknown(COPY_NOT_MEASURED, f"{label}: {what} was not measured", device={"index": index})
            continue
        context.measure(f"bandwidth_{what.replace(' ', '_')}", speed, "GB/s", label)
        yield from _hold(context, label, what, speed, median(others), floor)


def _medians(pairs: Dict[Pair, float]) -> Dict[int, float]:
    """Of each GPU, over the pairs it is in."""
    ends = sorted({end for pair in pairs for end in pair})
    return {end: median(speed for pair, speed in pairs.items() if end in pair) for end in ends}


def _peer(context: Context, test: Facts, what: str) -> Iterator[Finding]:
    """A GPU whose pairs are mostly slow is named once; other slow pairs one by one."""
    rows, columns = len(test["matrix"]), max(map(len, test["matrix"]))
    if rows != columns:
        yield context.unknown(CUT_SHORT, f"{what}: {rows} of {columns} rows, the output ends before")
        return
    cells = {(r, c): v for r, row in enumerate(test["matrix"]) for c, v in enumerate(row) if r != c}
    pairs = {pair: speed for pair, speed in cells.items() if speed}
    floor = _share(links.peer_gb_s(context.expected), context.threshold("min_nvlink_percent"))
    own = _medians(pairs)
    guilty: Set[int] = set()
    for end, speed in own.items():
        usual = median([value for other, value in own.items() if other != end])
        context.measure(f"bandwidth_{what.replace(' ', '_')}", speed, "GB/s", f"GPU {end}")
        for finding in _hold(context, f"GPU {end}", what, speed, usual, floor):
            guilty.add(end)
            yield finding
    # On NVSwitch every pair is alike. Elsewhere they differ by design: only a GPU's own median can be compared.
    if context.expected.nvswitch:
        for row, column in (pair for pair, speed in cells.items() if not speed):
            name = f"pair {row}-{column}"
            yield context.unknown(NOT_POSSIBLE, f"{name}: {what} was not possible", device={"name": name})
        rest = {pair: speed for pair, speed in pairs.items() if not guilty & set(pair)}
        for (row, column), speed in rest.items():
            yield from _hold(context, f"pair {row}-{column}", what, speed, median(rest.values()), floor)


def _judge(context: Context, test: Facts) -> Iterator[Finding]:
    name, status = test["name"], test.get("status")
    what = HOST.get(name) or PEER.get(name) or name
    if status == "Waived" and name in PEER and not context.expected.nvlink_links_per_gpu:
        yield context.info(NOT_POSSIBLE, f"{what}: not possible between these GPUs")
    elif status != "Passed" or not test.get("matrix"):
        text = f"{what}: nvbandwidth says {status or 'nothing'}"
        evidence = [test["error"]] if test.get("error") else []
        # It compares what it copied: its error is the GPU's or the link's.
        judge = context.fail if evidence or status in ("Error", "Failed") else context.unknown
        yield judge(TEST_FAILED, text, measured=status, expected="Passed", evidence=evidence)
    else:
        yield from _host(context, test, what) if name in HOST else _peer(context, test, what)


def _all(context: Context, tests: List[Facts]) -> Iterator[Finding]:
    for test in tests:
        yield from _judge(context, test)
    there = {test["name"] for test in tests}
    for name, what in {**HOST, **(PEER if context.expected.nvlink_links_per_gpu else {})}.items():
        if name not in there and context.expected.instance_type != NO_TYPE:
            yield context.unknown(NOT_AMONG_TESTS, f"{what}: not among nvbandwidth's tests")
    seen = max((len(test["matrix"][0]) for test in tests if test.get("matrix")), default=0)
    wanted = context.expected.gpu_count
    if wanted is not None and seen < wanted:
        yield context.unknown(FEWER_MEASURED, f"{seen} of {wanted} GPUs measured", measured=seen, expected=wanted)


def _brought(context: Context, tests: List[Facts]) -> Iterator[Finding]:
    """Tests of an output without host copies: each must have passed; copies between GPUs are compared."""
    known = [test for test in tests if test["name"] in PEER or not test.get("matrix") or test.get("status") != "Passed"]
    findings = [finding for test in known for finding in _judge(context, test)]
    yield from findings
    if not findings:
        yield context.ok(f"{', '.join(test['name'] for test in tests)} passed, host copies not among them")


def evaluate(context: Context) -> Iterator[Finding]:
    """Host copies one GPU at a time, peer copies one pair at a time, as nvbandwidth runs them."""
    facts, excerpt = context.facts("nvbandwidth"), context.expected.instance_type == NO_TYPE
    tests = [test for test in facts["tests"] if test["name"] in HOST or test["name"] in PEER]
    # Of an unknown machine's output no test is wanted; what stands there is held against its twins.
    if excerpt and not facts.get("error") and not any(test["name"] in HOST for test in tests):
        yield from _brought(context, facts["tests"])
        return
    said = [line for line in (facts.get("error"), *(test.get("error") for test in facts["tests"])) if line]
    for fault, lines in cuda.faults_in(said):
        message = f"nvbandwidth met a CUDA error: {fault.meaning}"
        yield context.fail(CUDA_ERROR, message, remedy=fault.remedy, measured=len(lines), expected=0, evidence=lines)
    if facts.get("error") or not any(test["name"] in HOST for test in tests):
        yield context.unknown(
            NO_HOST_COPY, f"nvbandwidth measured no host copy: {facts.get('error') or 'not among its tests'}"
        )
        yield from (finding for test in tests for finding in _judge(context, test))
        return
    findings = list(_all(context, tests))
    yield from findings
    if not any(finding.remedy is not Remedy.NONE for finding in findings):
        speeds = {HOST.get(t["name"]) or PEER[t["name"]]: [v for row in t["matrix"] for v in row if v] for t in tests}
        yield context.ok(", ".join(f"{what} {spread(values)}" for what, values in speeds.items() if values) + " GB/s")


CHECK = gpu_check(
    id="gpu_bandwidth",
    order=840,
    title="GPU copy bandwidth",
    what="nvbandwidth's copies between host and each GPU and between each pair of GPUs, against a floor by PCIe "
    "generation and NVLink and against the node's other GPUs.",
    why="A link that trained at a lower rate or repeats packets still works, and every node then waits for it.",
    remedy="Look at pcie_width, pcie_gen, nvlink_links and nvlink_errors for the GPU named. Reboot once, which trains "
    "the links again; replace the node when it stays slow.",
    do="Look at pcie_width, pcie_gen, nvlink_links and nvlink_errors for the GPU named.",
    out_of_service="Yes below the floor of its links or far behind its twins; a little behind warns.",
    first="nvbandwidth -t host_to_device_memcpy_ce device_to_device_memcpy_read_ce",
    source="NVIDIA/nvbandwidth README; PCI Express base specification (rates); NVIDIA data sheets (NVLink)",
    needs=("nvbandwidth",),
    tags=("gpu", "pcie", "nvlink"),
    level="standard",
    thresholds=(
        Threshold(
            "min_pcie_percent", 65, "%", "least share of the PCIe link's rate in a host copy; 0 sets no floor",
            "nvbandwidth README: 26 of 31.5 GB/s (82 %) on PCIe 4 x16; a link one generation lower is at 50 % or less",
            0, 95,
        ),
        Threshold(
            "min_nvlink_percent", 65, "%", "least share of the NVLink rate between two GPUs; 0 sets no floor",
            "nvbandwidth README: 276 of 300 GB/s (92 %) on 12 links; NVIDIA/DCGM test data: 374 of 478 (78 %) on 18",
            0, 95,
        ),
        Threshold(
            "warn_slower_percent", 10, "%", "how far below the median of the others a GPU or pair warns",
            "nvbandwidth README: equal GPUs differ by 1 %, with busy hosts by some", 0, 100,
        ),
        Threshold(
            "fail_slower_percent", 30, "%", "how far below the median of the others a GPU or pair fails",
            "site choice: half of the lanes or links cost 50 %", 0, 100,
        ),
    ),
    evaluate=evaluate,
)  # fmt: skip
