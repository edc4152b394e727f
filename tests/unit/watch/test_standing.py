"""What a preflight refuses, and a running node stays in service with."""

from flightline_node.judge.reasons import STANDS
from flightline_node.read.parsers import kernel
from flightline_node.watch.verdicts import KERNEL, stands_alone
from tests.harness import judge_facts
from tests.unit.watch.test_decisions import CASES, TOLD


def test_a_single_trouble_fails_a_preflight_and_drains_nobody(scene):
    for case, lines in CASES:
        log = "".join(f"[{9.0 * n:12.6f}] {line}\n" for n, line in enumerate(lines, 1)).encode()
        found = [f for name in KERNEL for f in judge_facts(name, {"kernel": kernel.parse({"kernel.log": log})})]
        standing = [one for one in found if stands_alone(one)]
        assert not (standing and TOLD[case]), case
        assert all(one.reason.startswith(f"{STANDS.id}.") and one.evidence for one in standing)
