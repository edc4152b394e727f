"""Does every EFA device carry messages, and as fast as the node's others?"""

from __future__ import annotations

from typing import Dict, Iterator, List, Optional, Tuple

from ...model import Check, Facts, Finding, Reason, Remedy, Threshold
from .. import skips
from ..context import Context
from .common import median, spread
from .efa_count import no_efa

WRONG_DATA = Reason("wrong_data", "a device received wrong data", Remedy.REPLACE, "EFA device")
UNFINISHED = Reason("unfinished", "a device did not finish its test", device="EFA device")
FAILED = Reason("failed", "a device failed its test", device="EFA device")
SLOWER = Reason("slower", "a device is slower than the others", device="EFA device")
FEWER_TESTED = Reason("fewer_tested", "not every device was tested", counts=True)

_BLOCKED = ("unresponsive receiver", "unreachable remote", "prov_err: unknown error (13)")
"""What libfabric says where the security group does not let the packet through (efa_errno.h, 13 and 14)."""
_WRONG_DATA = ("data check error", "data verification", "verify", "integrity")


def _device(run: Facts) -> Dict[str, str]:
    return {"name": str(run["domain"]).rsplit("-rdm", 1)[0]}


def _broken(run: Facts) -> bool:
    return bool(run.get("rc") or (run.get("rc") == 0 and not run.get("largest")))


def _remedy(runs: List[Facts]) -> Remedy:
    """Devices do not all break at once: then it is what they share."""
    said = " ".join(line for run in runs for line in run.get("said", [])).lower()
    shared = len({run["domain"] for run in runs}) > 1 or any(words in said for words in _BLOCKED)
    return Remedy.FIX_CONFIG if shared and all(map(_broken, runs)) else Remedy.REBOOT


def _failed(context: Context, run: Facts, remedy: Remedy) -> Optional[Finding]:
    name, rc, said = f"{run['domain']}: {run['tool']}", run.get("rc"), run.get("said", [])
    wrong = next((line for line in said if any(word in line.lower() for word in _WRONG_DATA)), "")
    if wrong:
        rest = {"measured": "wrong data", "expected": "the data sent", "device": _device(run), "evidence": said}
        return context.fail(WRONG_DATA, f"{name} received wrong data: {wrong}", **rest)
    if rc is None:
        return context.unknown(UNFINISHED, f"{name} did not finish", device=_device(run), evidence=said)
    if _broken(run):
        why = "no answer in time" if rc == 124 else f"exit status {rc}" if rc else "it printed no result"
        rest = {"measured": why, "expected": "every message back", "device": _device(run), "evidence": said}
        return context.fail(FAILED, f"{name} failed: {why}", remedy=remedy, **rest)
    return None


def _slow(context: Context, run: Facts, others: List[float]) -> Iterator[Finding]:
    usec = run["largest"]["usec"]
    context.measure(f"efa_{run['tool']}_usec", usec, "us", _device(run)["name"])
    most = median(others) * context.threshold("max_ratio")
    if others and usec > most:
        message = f"{run['domain']}: {run['tool']} takes {usec:g} us a message, the other devices {median(others):g}"
        yield context.warn(SLOWER, message, device=_device(run), measured=usec, expected=round(most, 1), unit="us")


def _kind(run: Facts) -> Tuple[str, float]:
    """Only runs of one tool and message size can be compared."""
    return run["tool"], run.get("largest", {}).get("bytes", 0)


def _judge(context: Context, runs: List[Facts]) -> Iterator[Finding]:
    remedy = _remedy(runs)
    for run in runs:
        failed = _failed(context, run, remedy)
        if failed:
            yield failed
            continue
        alike = [other for other in runs if other is not run and _kind(other) == _kind(run)]
        yield from _slow(context, run, [other["largest"]["usec"] for other in alike if other.get("largest")])


def evaluate(context: Context) -> Iterator[Finding]:
    """A device that cannot send to itself fails. No published figure says how fast it must be: only its twins do."""
    runs = context.facts("efa_loopback")["runs"]
    findings = list(_judge(context, runs))
    devices = {run["domain"] for run in runs}
    wanted = context.expected.efa_count
    if wanted and len(devices) < wanted:
        message = f"{len(devices)} of {wanted} EFA devices tested"
        findings.append(context.unknown(FEWER_TESTED, message, measured=len(devices), expected=wanted))
    yield from findings
    if not findings:
        times = [run["largest"]["usec"] for run in runs]
        yield context.ok(f"{len(devices)} EFA devices carry messages, {spread(times)} us for the largest")


CHECK = Check(
    id="efa_loopback",
    order=850,
    title="EFA loopback",
    what="Messages that each EFA device sends to itself (fi_pingpong, and fi_rdm_bw where fabtests is installed), with "
    "their content checked and without shared memory.",
    why="A device can be listed, and its port up, although nothing gets through it: NCCL hangs when it takes that one.",
    remedy="All devices fail: allow the security group all traffic to and from itself, raise memlock. One fails: "
    "reboot, then replace. One is slow: compare again on the idle node.",
    do=(
        "All devices fail: allow the security group all traffic to and from itself, raise memlock. One is slow: "
        "compare again on the idle node."
    ),
    out_of_service="Yes when a device carries nothing; a slow one warns.",
    first="FI_EFA_ENABLE_SHM_TRANSFER=0 fi_pingpong -p efa -e rdm -d DEVICE-rdm -c & "
    "FI_EFA_ENABLE_SHM_TRANSFER=0 fi_pingpong -p efa -e rdm -d DEVICE-rdm -c localhost",
    source="AWS EFA user guide, efa_test.sh; libfabric fi_pingpong(1), fi_efa(7); fabtests(7)",
    needs=("efa_loopback",),
    tags=("efa", "network"),
    level="standard",
    thresholds=(
        Threshold(
            "max_ratio", 2, "times", "most time a message may take, in times the median of the other devices",
            "site choice: AWS publishes no figure; runs of efa_test.sh in public logs differ by less than 1.3", 1, 100,
        ),
    ),
    applies=no_efa,
    skips=(skips.NO_EFA,),
    evaluate=evaluate,
)  # fmt: skip
