"""open_files: the launcher's hard limit, else the session's."""

from tests.harness import BROKEN
from tests.unit.parsers.hosttools import read

from .table import PASS, SKIP, UNKNOWN, WARN, judging, row, table


def judge(hard=None, launchers=None, **rest):
    facts = {"launchers": {name: {"nofile_hard": limit} for name, limit in (launchers or {}).items()}}
    return judging("open_files", {"limits": {**facts, **({"nofile_hard": hard} if hard else {})}}, **rest)


test_open_files = table(
    *(row("session", judge(hard), wanted, measured=hard)
        for hard, wanted in [(8191, WARN), (8192, PASS), ("unlimited", PASS)]),
    row("the launcher counts before the session", judge(1024, {"slurmd": 131072}), PASS),
    row("the launcher counts before the session", judge("unlimited", {"slurmd": 4096}), WARN,
        ends="(slurmd), wanted 8192"),
    row("the launcher counts before the session", judge(1024, {"slurmd": 4096, "containerd": "unlimited"}), PASS),
    row("threshold", judge(4096, thresholds={"open_files.min_files": 1024}), PASS),
    row("fixtures", judging("open_files", {"limits": read("limits", "proc/slurm-limits.txt")}), PASS),
    row("nothing printed is no pass", judge(), SKIP),
    row("nothing printed is no pass", judging("open_files", {"limits": BROKEN}), UNKNOWN),
)  # fmt: skip
