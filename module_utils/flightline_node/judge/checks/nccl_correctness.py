"""Did the collectives give the right numbers?"""

from __future__ import annotations

from typing import Iterator, List

from ...model import Facts, Finding, Reason, Remedy
from ..context import Context
from .common import gpu_check, is_finished

WRONG_VALUES = Reason("wrong_values", "a collective gave wrong values")
UNFINISHED = Reason("unfinished", "a collective did not finish")
ENDED_BADLY_AFTER = Reason("ended_badly_after", "a collective ended badly after its table")
WRONG_OPTIONS = Reason("wrong_options", "a test was asked for what it does not do", Remedy.RESTART_APP)
NOT_CHECKED = Reason("not_checked", "the data was not checked", Remedy.FIX_CONFIG)
NOT_BITWISE = Reason("not_bitwise", "results differ bit by bit from run to run")


def _judge(context: Context, run: Facts, passed: List[str]) -> Iterator[Finding]:
    name, errors = run.get("collective") or "a test without a name", run.get("errors", [])
    wrong, outside = run.get("wrong"), run.get("out_of_bounds")
    bad = max(wrong or 0, outside or 0)
    # One node's wrong numbers are its own; among several nodes the culprit is not known yet.
    remedy = Remedy.REPLACE if run.get("hosts", 1) <= 1 else Remedy.INVESTIGATE
    if bad:
        yield context.fail(WRONG_VALUES, f"{name}: {bad} wrong values", bad, 0, "values", remedy=remedy)
    elif not is_finished(context, run) or (outside is None and not run.get("excerpt")) or not run.get("rows"):
        cause = f": {run['cause']}" if run.get("cause") else ""
        text = f"{name} did not finish after {run.get('rows', 0)} rows, none wrong so far{cause}"
        yield context.unknown(UNFINISHED, text, evidence=errors)
    elif errors:
        yield context.unknown(
            ENDED_BADLY_AFTER, f"{name} ended badly after its table: {run.get('cause', errors[0])}", evidence=errors
        )
    elif wrong is None and "max_error" not in run:
        yield context.warn(NOT_CHECKED, f"{name} ran without checking the data (#wrong is N/A)", expected=0)
    elif run.get("bitwise_mismatches"):
        text = f"{name}: the same data gave other bits when repeated, within the rounding that is allowed"
        yield context.warn(NOT_BITWISE, text, measured=run["bitwise_mismatches"], expected=0)
    else:
        passed.append(name)


def evaluate(context: Context) -> Iterator[Finding]:
    """Any wrong value fails, however fast the test was; older versions are judged by their closing count."""
    passed: List[str] = []
    refused = context.facts("nccl_tests").get("refused", [])
    if refused:
        text = f"a test was asked for what it does not do: {refused[0]}"
        yield context.info(WRONG_OPTIONS, text, remedy=Remedy.RESTART_APP, evidence=refused)
    for run in context.facts("nccl_tests").get("runs", []):
        yield from _judge(context, run, passed)
    if passed:
        yield context.ok(f"no wrong value in {', '.join(passed)}", measured=0, expected=0, unit="values")


CHECK = gpu_check(
    id="nccl_correctness",
    order=860,
    title="NCCL correctness",
    what="The #wrong columns and the out-of-bounds count of each nccl-tests run.",
    why="A GPU, link or library that corrupts data spoils a model silently, and no bandwidth figure shows it.",
    remedy="Repeat once. If one node alone shows it, replace it; among several, test each node alone, then in pairs.",
    out_of_service="Yes: wrong numbers, or no answer.",
    first="all_reduce_perf -b 1G -e 8G -f 2 -g 8 -c 1",
    source="NVIDIA/nccl-tests README (-c, --check) and src/common.cu",
    needs=("nccl_tests",),
    tags=("nccl",),
    level="standard",
    evaluate=evaluate,
)
