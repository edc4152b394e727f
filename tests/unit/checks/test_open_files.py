"""open_files: the launcher's hard limit, else the session's."""

import pytest

from flightline_node.model import Status
from tests.harness import BROKEN, judge_facts, only, status
from tests.unit.parsers.hosttools import read


def judge(hard=None, launchers=None, **rest):
    facts = {"launchers": {name: {"nofile_hard": limit} for name, limit in (launchers or {}).items()}}
    return judge_facts("open_files", {"limits": {**facts, **({"nofile_hard": hard} if hard else {})}}, **rest)


@pytest.mark.parametrize(("hard", "wanted"), [(8191, Status.WARN), (8192, Status.PASS), ("unlimited", Status.PASS)])
def test_session(hard, wanted):
    assert only(judge(hard), wanted).measured == hard


def test_the_launcher_counts_before_the_session():
    assert status(judge(1024, {"slurmd": 131072})) is Status.PASS
    assert only(judge("unlimited", {"slurmd": 4096}), Status.WARN).message.endswith("(slurmd), wanted 8192")
    assert status(judge(1024, {"slurmd": 4096, "containerd": "unlimited"})) is Status.PASS


def test_threshold():
    assert status(judge(4096, thresholds={"open_files.min_files": 1024})) is Status.PASS


def test_fixtures():
    assert status(judge_facts("open_files", {"limits": read("limits", "proc/slurm-limits.txt")})) is Status.PASS


def test_nothing_printed_is_no_pass():
    assert status(judge()) is Status.SKIP
    assert status(judge_facts("open_files", {"limits": BROKEN})) is Status.UNKNOWN
