"""The mutation run itself: each kind of change is made, and a mutant in place of a check is noticed."""

import subprocess
import sys

from tests.mutation.mutants import mutants
from tests.mutation.run import ROOT, chosen, source_of

SOURCE = """
def evaluate(context):
    value, most = context.facts("p")["value"], context.threshold("most")
    if value is None or value == "":
        yield context.unknown("not printed", Remedy.INVESTIGATE)
    elif value > most:
        yield context.fail("too many", Remedy.REPLACE, measured=value)
    else:
        yield context.ok("fine")


CHECK = Check(thresholds=(Threshold("most", 3, "errors", "what", "source"),))
"""


def test_every_kind_of_change():
    found = {(mutant.kind, mutant.line) for mutant in mutants(SOURCE)}
    assert found == {
        ("comparison flipped", 4),
        ("and/or exchanged", 4),
        ("condition negated", 4),
        ("UNKNOWN answered as PASS", 5),
        ("comparison flipped", 6),
        ("off by one", 6),
        ("condition negated", 6),
        ("FAIL answered as PASS", 7),
        ("threshold off by one", 12),
    }


def test_a_blocking_answer_becomes_a_pass_without_its_remedy():
    changed = next(mutant.source for mutant in mutants(SOURCE) if mutant.kind == "FAIL answered as PASS")
    assert "context.ok('too many', measured=value)" in changed


def test_the_draw_is_the_same_each_time():
    assert chosen("row_remap", 5, 1) == chosen("row_remap", 5, 1)
    assert len(chosen("row_remap", 5, 1)) == 5
    assert len(chosen("row_remap", 0, 1)) == len(mutants(source_of("row_remap")))


def test_real_mutants_are_killed_and_the_unchanged_check_is_not():
    """In a process of its own: a fork of this one may hang where an earlier test left gRPC's threads."""
    command = (sys.executable, "-m", "tests.mutation.run", "--check", "gpu_count", "--per-check", "3")
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    # 2 is the exit status of a check whose own tests fail unchanged.
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "gpu_count: 3 of 3 killed" in ended.stdout


def test_a_mutant_that_does_not_end_is_told_apart_from_one_that_is_killed():
    mutant = "run.Mutant('none', 1, '', 'while True: pass')"
    script = f"from tests.mutation import run; run.CPU_S = 1; print(run.ended('swap', {mutant}, run.suite_of('swap')))"
    ended = subprocess.run((sys.executable, "-c", script), cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (ended.stdout, ended.stderr) == ("timed out\n", "")
