"""memlock: session, slurmd, containers, pam_limits; whichever gives a job its limit."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status
from tests.unit.parsers.hosttools import read

GIB = 1 << 20


def judged(kind="p5.48xlarge", **limits):
    return judge_facts("memlock", {"limits": {"launchers": {}, "configured": [], **limits}}, kind)


@pytest.mark.parametrize(
    ("soft", "wanted"), [("unlimited", "PASS"), (16 * GIB, "PASS"), (16 * GIB - 1, "FAIL"), (8192, "FAIL"), (0, "FAIL")]
)
def test_session(soft, wanted):
    assert status(judged(memlock_soft_kib=soft)) == wanted


def test_small_limit_is_configuration():
    finding = only(judge_facts("memlock", {"limits": read("limits", "proc/debian12-limits.txt")}), Status.FAIL)
    assert (finding.measured, finding.remedy) == ("8192 KiB", Remedy.FIX_CONFIG)


def test_slurmd_decides_where_it_runs():
    facts = read("limits", "proc/slurm-limits.txt")
    assert "(slurmd)" in only(judge_facts("memlock", {"limits": facts}), Status.PASS).message
    small = {"slurmd": {"memlock_soft_kib": 8192, "memlock_hard_kib": 8192}}
    assert status(judged(memlock_soft_kib="unlimited", launchers=small)) is Status.FAIL


def test_containers_and_login_sessions():
    runtime = {"containerd": {"memlock_soft_kib": "unlimited", "memlock_hard_kib": "unlimited"}}
    assert status(judged(memlock_soft_kib=8192, launchers=runtime)) is Status.PASS
    small = {"dockerd": {"memlock_soft_kib": 8192, "memlock_hard_kib": 8192}}
    users = [{"domain": "*", "type": "-", "memlock_kib": "unlimited"}]
    assert status(judged(memlock_soft_kib=8192, launchers=small, configured=users)) is Status.PASS
    root_only = [{"domain": "root", "type": "-", "memlock_kib": "unlimited"}]
    hard_only = [{"domain": "*", "type": "hard", "memlock_kib": "unlimited"}]
    assert status(judged(memlock_soft_kib=8192, configured=root_only + hard_only)) is Status.FAIL


def test_kubernetes_only_warns_where_the_runtime_may_raise_it():
    small = {"memlock_soft_kib": 8192, "memlock_hard_kib": 8192}
    pods = {"kubelet": {"memlock_soft_kib": "unlimited"}, "containerd": small}
    finding = only(judged(memlock_soft_kib=8192, launchers=pods), Status.WARN)
    assert finding.evidence == ("this session: 8192 KiB; containerd: 8192 KiB",)


def test_types_without_efa():
    assert status(judged("g5.xlarge", memlock_soft_kib=64)) is Status.SKIP
    assert status(judged("none", memlock_soft_kib=64)) is Status.SKIP


def test_unknown():
    assert status(judged(memlock_soft_kib=None)) is Status.UNKNOWN
