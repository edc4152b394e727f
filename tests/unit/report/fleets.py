"""Fleets with mixed faults for the terminal's snapshots: simulated findings, fixed names and stamps, nothing at random.

`python -m tests.unit.report.fleets` writes the snapshots anew; read each before it is committed.
"""

import io
import json
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

from rich.console import Console

from flightline.fleet.judgement import judge_run
from flightline.fleet.result import Report
from flightline.report.terminal import print_summary
from flightline.store.rows import lost_record, unreachable_record
from flightline.store.sqlite import ExpectedHost, Run
from flightline_node.judge.checks import CHECKS
from flightline_node.judge.judgement import judge
from flightline_node.know.expected import resolve
from flightline_node.model import LEVELS, Status
from flightline_node.read import bundle
from flightline_node.settings import build
from tests.corpus.material import demo
from tests.harness import NOW
from tests.memory_store import MemoryStore

HERE = Path(__file__).parent
SNAPSHOTS = HERE / "snapshots"
TYPE = "p5.48xlarge"
ON = {"host_memory_error": "g4dn.metal"}
"""Faults that TYPE cannot have."""
HUNG = {"id": "nvidia-smi", "file": "nvidia-smi.xml", "argv": ["nvidia-smi", "-q", "-x"], "timed_out": True}
DENIED = {"id": "kernel-log", "file": "kernel.log", "argv": ["journalctl", "-k"], "rc": 1}
SILENT: dict[str, dict[str, Any]] = {
    "tool_hung": {**HUNG, "note": "no answer within 8 s"},
    "kernel_log_denied": {**DENIED, "note": "exit status 1"},
}
"""A tool that says nothing of use, and what the manifest says of it."""
UNREACHABLE, LOST = "unreachable", "lost"
WIDTHS = (80, 140)

EIGHT = {3: ["gpu_fallen_off_bus"], 6: ["remap_pending"]}
SIXTY_FOUR = {
    3: ["gpu_fallen_off_bus"],
    11: ["tool_hung"],
    17: ["gpu_fallen_off_bus", "disk_full"],
    23: ["efa_missing"],
    29: [UNREACHABLE],
    38: ["driver_not_rebooted"],
    41: ["persistence_off"],
    52: ["remap_failure", "readonly_root"],
    60: ["ecc_uncorrected", "clock_adrift"],
    7: ["mtu_mixed"],
    8: ["conntrack_full"],
}
FIVE_HUNDRED = {
    **{number: ["driver_not_loaded"] for number in range(101, 141)},
    **{number: [UNREACHABLE] for number in range(301, 309)},
    **{number: ["gpu_fallen_off_bus"] for number in (17, 88, 264, 415)},
    **{number: ["clock_adrift"] for number in range(441, 457)},
    33: ["tool_hung"],
    34: ["tool_hung"],
    60: ["remap_failure"],
    75: ["host_memory_error"],
    199: ["efa_missing"],
    230: ["pcie_width"],
    288: ["kernel_log_denied"],
    350: ["fabric_manager_dead"],
    399: [LOST],
    7: ["mtu_mixed"],
}
FLEETS = {8: EIGHT, 64: SIXTY_FOUR, 500: FIVE_HUNDRED}


def report(nodes: int) -> Report:
    """A judged fleet of so many nodes."""
    width = len(str(nodes)) + 1
    hosts = [ExpectedHost(f"gpu-{number:0{width}}", TYPE, f"i-{number:017x}") for number in range(1, nodes + 1)]
    records = {host.host: _record(host, FLEETS[nodes].get(number, [])) for number, host in enumerate(hosts, 1)}
    stamps = {"started_at": "2026-11-21T03:00:00+00:00", "finished_at": "2026-11-21T03:04:13+00:00"}
    run = Run(f"20261121T030000Z-{nodes:06}", inventory="inventory/aws_ec2.yml", hosts=tuple(hosts), **stamps)
    made = judge_run(MemoryStore(run, {name: one for name, one in records.items() if one}), run.run_id)
    made.rows[0].versions["driver"] = "580.95.05"
    return made


@lru_cache(maxsize=None)
def _findings(fault: str) -> tuple[dict[str, Any], ...]:
    """What the judge has against a simulated node with the fault."""
    kind, silent = ON.get(fault, TYPE), SILENT.get(fault)
    manifest = {"probes": [silent]} if silent else {}
    with tempfile.TemporaryDirectory() as name:
        for file, content in demo(kind, *([] if silent else [fault])):
            if not silent or file != silent["file"]:
                (Path(name) / file).write_bytes(content)
        (Path(name) / bundle.MANIFEST).write_text(json.dumps(manifest))
        judged = judge(bundle.load(Path(name)), resolve(kind), build(), NOW, required=bool(silent))
    blamed = [one for one in judged.findings if one.status in (Status.FAIL, Status.UNKNOWN, Status.WARN)]
    return tuple(one.to_dict() for one in blamed if not silent or silent["argv"][0] in one.message)


def _record(host: ExpectedHost, faults: list[str]) -> dict[str, Any] | None:
    if LOST in faults:
        return None
    if UNREACHABLE in faults:
        said = f"ssh: connect to host {host.host} port 22: Connection timed out"
        return {**unreachable_record(host, said), "started_at": ""}
    findings = [dict(one) for fault in faults for one in _findings(fault)]
    named = {one["check"] for one in findings}
    quick = [check.id for check in CHECKS.values() if check.level == LEVELS[0]]
    good = [{"check": check, "status": "PASS", "message": "as wanted"} for check in quick if check not in named]
    bad = any(one["status"] in ("FAIL", "UNKNOWN") for one in findings)
    made = {**lost_record(host), "verdict": "no-go" if bad else "go", "seconds": 7.5, "findings": [*findings, *good]}
    return {**made, "started_at": ""}


def shown(nodes: int, width: int) -> str:
    """The summary of a fleet as a terminal of that width shows it."""
    stream, made = io.StringIO(), report(nodes)
    place = Path(".flightline/reports") / made.run.id
    links = {"json": place / "report.json", "junit": place / "junit.xml", "html": place / "report.html"}
    links["hosts"] = place / "no-go.txt"
    print_summary(made, Console(file=stream, width=width, height=50), links)
    return stream.getvalue()


def name(nodes: int, width: int) -> Path:
    """Where a snapshot is kept."""
    return SNAPSHOTS / f"{nodes}-nodes-{width}-columns.txt"


if __name__ == "__main__":
    for size in FLEETS:
        for columns in WIDTHS:
            name(size, columns).write_text(shown(size, columns), encoding="utf-8")
