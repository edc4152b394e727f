"""Change each check's judging code in memory, one change at a time, and run that check's own test file.

`python -m tests.mutation.run [--per-check N] [--seed S] [--check ID] [--write]`. No file of the check is touched: a forked
process loads the changed source in place of the module and runs pytest there. --write keeps tests/mutation/result.json.
"""

import argparse
import contextlib
import importlib
import json
import os
import random
import resource
import signal
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from flightline_node.judge.checks import CHECKS

from .mutants import Mutant, mutants

ROOT = Path(__file__).parents[2]
RESULT = Path(__file__).parent / "result.json"
CPU_S, WALL_S = 30, 600
"""A suite needs a second or two of CPU time. The wall clock only ends what sleeps: it says nothing on a busy machine."""
KILLED, SURVIVED, TIMED_OUT = "killed", "survived", "timed out"
PER_CHECK = 12


def _child(check_id: str, mutant: Mutant, test: Path) -> int:
    module = importlib.import_module(f"flightline_node.judge.checks.{check_id}")
    exec(compile(mutant.source, str(module.__file__), "exec"), module.__dict__)
    CHECKS[check_id] = module.CHECK
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    return int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "--assert=plain", "--no-header", str(test)]))


def ended(check_id: str, mutant: Mutant, test: Path) -> str:
    """Whether the check's tests fail, pass, or do not end with the mutant in its place."""
    pid = os.fork()
    if pid == 0:
        code = 1
        with contextlib.suppress(BaseException):
            resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 5))
            signal.alarm(WALL_S)
            code = _child(check_id, mutant, test)
        os._exit(code)
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGALRM):
        return TIMED_OUT
    return KILLED if status else SURVIVED


def suite_of(check_id: str) -> Path:
    """The test file of a check."""
    return ROOT / "tests" / "unit" / "checks" / f"test_{check_id}.py"


def source_of(check_id: str) -> str:
    """The source of a check."""
    return (ROOT / "module_utils" / "flightline_node" / "judge" / "checks" / f"{check_id}.py").read_text(
        encoding="utf-8"
    )


def chosen(check_id: str, per_check: int, seed: int) -> list[Mutant]:
    """All mutants of a check, or as many as asked for, drawn with the seed."""
    found = mutants(source_of(check_id))
    if per_check and len(found) > per_check:
        found = sorted(random.Random(f"{seed} {check_id}").sample(found, per_check), key=lambda one: one.line)
    return found


def main(arguments: list[str] | None = None) -> int:
    """Print killed and survived for each check; 0 whatever survives, 2 when a check could not be measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--per-check", type=int, default=PER_CHECK, help="most mutants of a check; 0: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--check", action="append", choices=sorted(CHECKS), help="only this check; repeatable")
    parser.add_argument("--write", action="store_true", help="write tests/mutation/result.json")
    options = parser.parse_args(arguments)
    os.chdir(ROOT)
    for shared in ("conftest", "unit.checks.conftest", "unit.checks.table"):
        importlib.import_module(f"tests.{shared}")  # once, and not in every fork
    started, kinds, per_check = time.monotonic(), defaultdict(Counter), {}
    left: dict[str, list[str]] = {SURVIVED: [], TIMED_OUT: []}
    unmeasured, every = [], 0
    for check_id in sorted(options.check or CHECKS):
        unchanged = Mutant("none", 1, "", source_of(check_id))
        first = ended(check_id, unchanged, suite_of(check_id)) if suite_of(check_id).exists() else "missing"
        if first != SURVIVED:
            why = {KILLED: "fail unchanged", TIMED_OUT: "do not end in time unchanged"}.get(first, f"are {first}")
            sys.stderr.write(f"{check_id}: not measured, its own tests {why}\n")
            unmeasured.append(check_id)
            continue
        every += len(mutants(source_of(check_id)))
        drawn, dead = chosen(check_id, options.per_check, options.seed), 0
        for mutant in drawn:
            end = ended(check_id, mutant, suite_of(check_id))
            dead += end == KILLED
            kinds[mutant.kind].update(total=1, killed=end == KILLED)
            if end != KILLED:
                left[end].append(f"{check_id}.py:{mutant.line} {mutant.kind}: {mutant.was}")
                sys.stdout.write(f"{end}: {left[end][-1]}\n")
        per_check[check_id] = [len(drawn), dead]
        sys.stdout.write(f"{check_id}: {dead} of {len(drawn)} killed\n")
        sys.stdout.flush()
    total, dead = sum(pair[0] for pair in per_check.values()), sum(pair[1] for pair in per_check.values())
    ends = f"{dead} of {total} killed, {len(left[SURVIVED])} survived, {len(left[TIMED_OUT])} timed out"
    sys.stdout.write(f"{ends}, {time.monotonic() - started:.0f} s\n")
    sample = f"{total} of {every} possible, at most {options.per_check} a check, seed {options.seed}"
    result = {
        "checks": len(per_check),
        "mutants": total,
        "killed": dead,
        "survived": len(left[SURVIVED]),
        "sampling": sample if options.per_check else "all of them",
        "kinds": {kind: [count["total"], count["killed"]] for kind, count in sorted(kinds.items())},
        "unmeasured": unmeasured,
        "not_all_killed": {name: pair for name, pair in per_check.items() if pair[0] != pair[1]},
        "survivors": left[SURVIVED],
        "timed_out": left[TIMED_OUT],
    }
    if options.write:
        lines = (f"{json.dumps(key)}: {json.dumps(value)}" for key, value in result.items())
        RESULT.write_text("{" + ",\n ".join(lines) + "}\n", encoding="utf-8")
    return 2 if unmeasured else 0


if __name__ == "__main__":
    sys.exit(main())
