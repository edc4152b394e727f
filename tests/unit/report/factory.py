"""Synthetic reports for the report's tests and benchmarks. Every value here is made up; no GPU produced it.

The same arguments always give the same fleet.
"""

import random
from typing import Any, Callable, Iterator

from flightline.fleet.result import Distribution, NodeRow, Outlier, Report, RunInfo, TroubleGroup
from flightline_node.judge.must import Answer
from flightline_node.judge.must import verdict_of as verdict_of_answers
from flightline_node.model import Remedy, Status, Verdict, worst

CHECKS = [
    "reachable", "gpu_count", "gpu_model", "driver_version", "fabric_manager", "persistence", "ecc_mode",
    "ecc_uncorrectable", "ecc_sram", "row_remap", "retired_pages", "gpu_temperature", "throttle_reasons",
    "power_limit", "clocks", "recovery_action", "mig_mode", "pcie_link", "nvlink_links", "nvlink_errors", "topology",
    "xid", "sxid", "fallen_off_bus", "kernel_events", "dcgm_diag", "dcgm_health", "efa_devices", "efa_counters",
    "efa_installer", "fi_info", "nccl_all_reduce", "nccl_all_gather", "nccl_alltoall", "nccl_version", "ofi_plugin",
    "gdrdma", "memory", "cpu_count", "numa", "hugepages", "memlock", "limits", "sysctl", "modules", "mounts",
    "lustre", "disk_space", "nvme", "fio", "chrony", "services", "kernel_version", "secure_boot", "imds",
    "instance_type", "placement", "ena", "cloudwatch_agent", "slurmd",
]  # fmt: skip
"""Sixty plausible check ids."""

TITLES = {check: check.replace("_", " ").capitalize() for check in CHECKS}

FAULTS: list[dict[str, Any]] = [
    {"check": "gpu_count", "status": "FAIL", "remedy": "REBOOT", "message": "7 of 8 GPUs: 1 missing",
     "measured": 7, "expected": 8, "unit": "GPUs"},
    {"check": "ecc_uncorrectable", "status": "FAIL", "remedy": "RESET_GPU",
     "device": {"index": 3, "name": "NVIDIA H100"},
     "message": "GPU 3: 4 uncorrectable ECC errors since the driver was loaded", "measured": 4, "expected": 0,
     "unit": "errors", "evidence": ["<dram_uncorrectable>4</dram_uncorrectable>"]},
    {"check": "row_remap", "status": "FAIL", "remedy": "REPLACE", "device": {"index": 5, "serial": "1650000000000"},
     "message": "GPU 5: row remapping failed", "measured": True, "expected": False,
     "evidence": ["Remapping Failure Occurred : Yes"]},
    {"check": "nccl_all_reduce", "status": "FAIL", "remedy": "INVESTIGATE",
     "message": "all_reduce 312 GB/s busbw, wanted at least 440", "measured": 312.4, "expected": 440.0, "unit": "GB/s"},
    {"check": "dcgm_diag", "status": "UNKNOWN", "remedy": "INVESTIGATE",
     "message": "could not be measured: dcgmi ended with 226 after 12 s", "evidence": ["Error: Unable to connect"]},
    {"check": "efa_devices", "status": "FAIL", "remedy": "FIX_CONFIG", "message": "31 of 32 EFA devices",
     "measured": 31, "expected": 32, "unit": "devices"},
    {"check": "xid", "status": "FAIL", "remedy": "REBOOT", "device": {"index": 6, "pci": "0000:ca:00.0"},
     "message": "GPU 6: Xid 79, the GPU has fallen off the bus", "measured": 79,
     "evidence": ["NVRM: Xid (PCI:0000:ca:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."]},
]  # fmt: skip
REMEDY_TEXTS = {
    "gpu_count": "Reboot once: a GPU lost from the bus often returns. If it does not, replace the instance.",
    "row_remap": "Replace the instance: the GPU has no spare rows left.",
}
WARNING = {"check": "chrony", "status": "WARN", "remedy": "FIX_CONFIG", "message": "clock is 12 ms off",
           "measured": 12.0, "expected": 5.0, "unit": "ms"}  # fmt: skip
SKIPPED = {"check": "mig_mode", "status": "SKIP", "message": "p5.48xlarge runs without MIG"}

Records = Callable[[], Iterator[dict[str, Any]]]


def verdict_of(statuses):
    """The verdict of statuses that have passed their table."""
    return verdict_of_answers(Answer("", status) for status in statuses)


def finding(**given: Any) -> dict[str, Any]:
    """A finding in the shape of Finding.to_dict(), PASS unless told otherwise."""
    blank = {"check": "gpu_count", "status": "PASS", "device": {}, "measured": None, "expected": None, "unit": "",
             "message": "8 GPUs", "remedy": "NONE", "evidence": []}  # fmt: skip
    return {**blank, **given}


def row(host: str, findings: list[dict[str, Any]], checks: list[str], **rest: Any) -> NodeRow:
    """A row as the fleet judgement makes it from all findings of a node."""
    cells: dict[str, Status] = dict.fromkeys(checks, Status.PASS)
    for check in dict.fromkeys(item["check"] for item in findings):
        cells[check] = worst(Status(item["status"]) for item in findings if item["check"] == check)
    kept = [item for item in findings if item["status"] != "PASS"]
    return NodeRow(host, verdict_of(cells.values()), worst(cells.values()), cells=cells, findings=kept, **rest)


def group(items: list[tuple[str, dict[str, Any]]]) -> TroubleGroup:
    """A group of the occurrences (host, finding) of one trouble."""
    first = items[0][1]
    index = first["device"].get("index")
    label = f"GPU {index}" if index is not None else ""
    return TroubleGroup(
        first["check"], TITLES.get(first["check"], first["check"]), Status(first["status"]), Remedy(first["remedy"]),
        REMEDY_TEXTS.get(first["check"], ""), first["message"], first["expected"], first["unit"],
        [(host, label, item["measured"]) for host, item in items],
    )  # fmt: skip


def groups_of(rows: list[NodeRow]) -> list[TroubleGroup]:
    """Groups by check and message, the largest of the worst first."""
    joined: dict[tuple[str, str], list[tuple[str, dict[str, Any]]]] = {}
    for node in rows:
        for item in node.findings:
            if item["status"] not in ("SKIP", "INFO"):
                joined.setdefault((item["check"], item["message"]), []).append((node.host, item))
    return sorted((group(items) for items in joined.values()), key=lambda one: -len(one.where))


def record(node: NodeRow, checks: list[str]) -> dict[str, Any]:
    """The record a node would have sent, in the shape of flightline_node.node.record()."""
    bad = {item["check"] for item in node.findings}
    passed = [finding(check=check, message=f"{check} is as expected") for check in checks if check not in bad]
    values = {f"GPU {index}": 470.0 + index for index in range(8)}
    return {
        "schema": "flightline-node/1", "flightline": "0.1.0", "host": node.host, "instance_id": node.instance_id,
        "instance_type": node.instance_type, "level": "standard", "verdict": str(node.verdict),
        "started_at": "2026-11-21T03:00:05+00:00", "seconds": node.seconds, "library_cpu_s": 0.4,
        "findings": passed + node.findings, "measures": {"gpu_temperature": {"unit": "C", "values": values}},
        "versions": node.versions, "gpus": [], "probes": [],
    }  # fmt: skip


def _row(number: int, checks: list[str], faulty: bool, rng: random.Random) -> NodeRow:
    host = f"gpu-{number:04d}"
    rest = {
        "instance_id": f"i-{number:017x}", "instance_type": "p5.48xlarge", "seconds": round(rng.uniform(80, 140), 1),
        "versions": {"driver": "580.95.05", "kernel": "6.8.0-1021-aws" if number % 97 else "6.8.0-1019-aws"},
    }  # fmt: skip
    if faulty and rng.random() < 0.15:
        lost = finding(check="reachable", status="UNREACHABLE", remedy="REBOOT", message="ssh: connect timed out")
        return NodeRow(
            host, Verdict.NO_GO, Status.UNREACHABLE, cells={"reachable": Status.UNREACHABLE}, findings=[lost]
        )
    findings = [finding(**SKIPPED)] + ([finding(**WARNING)] if rng.random() < 0.02 else [])
    if faulty:
        chosen = rng.sample(FAULTS, rng.choice((1, 1, 1, 2)))
        findings += [finding(**fault) for fault in chosen if fault["check"] in checks]
    return row(host, findings, checks, **rest)


def _distributions(rng: random.Random, nodes: int) -> list[Distribution]:
    bins = [0, 1, 2, 5, 12, 30, 55, 60, 48, 22, 9, 3, 1]
    outliers = [Outlier("gpu-0001", "", 312.4, -9.3), Outlier("gpu-0003", "GPU 5", 318.0, -8.7)]
    return [
        Distribution("nccl_all_reduce_busbw", "GB/s", nodes, (312.4, 452.0, 468.2, 475.5, 481.0, 486.7, 489.9),
                     [1, 1, 0, 0, 0, 0, 0, 0, 2, 9, 31, 44, 12], outliers[: min(2, nodes)]),
        Distribution("gpu_temperature", "C", nodes * 8, (31.0, 34.0, 38.0, 41.0, 44.0, 49.0, 58.0), bins, []),
        Distribution("gpu_count", "GPUs", nodes, (8.0,) * 7, [nodes], []),
        Distribution("fio_read", "GB/s", nodes, (5.1, 5.4, 6.0, 6.2, 6.3, 6.4, 6.6),
                     [rng.randint(0, 40) for _ in bins], []),
    ]  # fmt: skip


def fleet(nodes: int = 8, bad: int = 2, checks: int = 60, seed: int = 1) -> tuple[Report, Records]:
    """A fleet of `nodes`, `bad` of them no-go, and the factory of its records."""
    rng, used = random.Random(seed), CHECKS[:checks]
    faulty = set(rng.sample(range(1, nodes + 1), bad))
    rows = [_row(number, used, number in faulty, rng) for number in range(1, nodes + 1)]
    about_all = [
        {**finding(check="uniform_versions", status="WARN", remedy="UPDATE_SOFTWARE", measured="6.8.0-1019-aws",
                   expected="6.8.0-1021-aws", message="kernel differs from the rest of the fleet"),
         "hosts": [node.host for node in rows if node.versions.get("kernel") == "6.8.0-1019-aws"]},
        {**finding(check="outliers", message="no straggler"), "hosts": []},
    ]  # fmt: skip
    report = Report(
        RunInfo("20261121T030000Z", "2026-11-21T03:00:00+00:00", "2026-11-21T03:04:13+00:00", "standard",
                "inventory/demo", "0.1.0"),
        verdict_of(node.status for node in rows), used, rows,
        [item for item in about_all if item["hosts"] or item["status"] == "PASS"],
        groups_of(rows), _distributions(rng, nodes),
    )  # fmt: skip
    return report, lambda: (record(node, used) for node in rows if node.status is not Status.UNREACHABLE)


EVIL = '<script>alert(1)</script>"><img src=x onerror=alert(2)>[red]\x1b[31mred\x07\x00\u202e\ud800 ]]>'
"""What a node could send in any text: HTML, markup, terminal escapes, control and bidirectional characters."""


def hostile() -> tuple[Report, Records]:
    """A small report whose every free text is hostile."""
    checks = ["gpu_count", "xid", "chrony"]
    bad = finding(check="xid", status="FAIL", remedy="REBOOT", message=EVIL, unit=EVIL, measured=EVIL, expected=[EVIL],
                  device={"index": 1, "name": EVIL}, evidence=[EVIL, "</pre></details>", "\ufffe\uffff"])  # fmt: skip
    warned = finding(check="chrony", status="WARN", remedy="FIX_CONFIG", message=EVIL, measured=float("nan"))
    rows = [
        row(EVIL, [bad, warned], checks, instance_type=EVIL, instance_id=EVIL, versions={"driver": EVIL}),
        row("{{ 7*7 }}{% raw %}&amp;</script><!--<script>", [], checks),
    ]
    groups = [
        TroubleGroup("xid", EVIL, Status.FAIL, Remedy.REBOOT, EVIL, EVIL, [EVIL], EVIL, [(EVIL, EVIL, EVIL)]),
        TroubleGroup(
            "chrony", EVIL, Status.WARN, Remedy.FIX_CONFIG, EVIL, EVIL, None, EVIL, [(EVIL, EVIL, float("nan"))]
        ),
    ]
    about_all = [{**finding(check="uniform_versions", status="FAIL", message=EVIL), "hosts": [EVIL]}]
    measures = [Distribution(EVIL, EVIL, 2, (1.0, 1, 1, 2, 3, 3, 3.0), [1, 1], [Outlier(EVIL, EVIL, 3.0, 4.0)])]
    run = RunInfo(EVIL, EVIL, EVIL, EVIL, EVIL, EVIL)
    return Report(run, Verdict.NO_GO, checks, rows, about_all, groups, measures), lambda: (
        record(node, checks) for node in rows
    )
