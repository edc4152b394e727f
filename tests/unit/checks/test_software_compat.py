"""software_compat: minimums and pins block, combinations warn, what is not known is said."""

import pytest

from flightline_node.model import Remedy, Status
from flightline_node.read.parsers import versions
from tests.harness import BROKEN, judge_facts, only, sample, status

GOOD = {
    "efa_installer": "1.44.0", "ofi_nccl": "1.17.1", "efa_driver": "2.17.3", "nvidia_module": "580.95.05",
    "nccl": ["2.28.3"],
}  # fmt: skip


def judge(change=(), kind="p6-b300.48xlarge", provider="203.10", **expected):
    given = {key: value for key, value in {**GOOD, **dict(change)}.items() if value}
    return judge_facts(
        "software_compat", {"versions": given, "fi_info": {"provider_versions": [provider]}}, kind, expected=expected
    )


def test_good():
    message = only(judge(), Status.PASS).message
    assert "libfabric 2.3.1" in message
    assert "aws-ofi-nccl 1.17.1" in message


@pytest.mark.parametrize(
    ("change", "what"),
    [({"efa_installer": "1.43.3"}, "EFA installer"), ({"ofi_nccl": "1.16.3", "nccl": ["2.27.7"]}, "aws-ofi-nccl")],
)
def test_below_the_types_minimum(change, what):
    finding = only(judge(change), Status.FAIL)
    assert finding.message.startswith(what)
    assert finding.remedy is Remedy.UPDATE_SOFTWARE


def test_libfabric_too_old_for_the_plugin():
    for provider, libfabric in (("121.0", "1.21.0"), ("121.90", "1.21.9"), ("100.0", "1.0.0")):
        assert only(judge(provider=provider), Status.FAIL).measured == libfabric
    for provider, libfabric in (("122.0", "1.22.0"), ("122", "1.22.0"), ("200.0", "2.0.0")):
        assert f"libfabric {libfabric}" in only(judge(provider=provider), Status.PASS).message
    assert "not known: libfabric" in only(judge(provider="99.0"), Status.PASS).message


def test_the_newest_nccl_counts_against_minimums():
    assert status(judge({"nccl": ["2.15.5", "2.28.3"]})) is Status.PASS
    assert only(judge({"nccl": ["2.15.5"]}), Status.FAIL).measured == "2.15.5"


def test_not_validated():
    assert "2.28.3" in only(judge({"nccl": ["2.29.2"]}), Status.WARN).message
    assert status(judge({"nccl": ["2.27.7"]})) is Status.INFO
    assert status(judge({"ofi_nccl": "1.99.0", "nccl": ["2.40.0"]})) is Status.PASS  # newer than the table


def test_efa_driver_without_peer_memory_for_the_gpu_driver():
    finding = only(judge({"efa_driver": "2.17.2"}), Status.WARN)
    assert (finding.measured, finding.expected) == ("2.17.2", "2.17.3")
    older = {"efa_driver": "2.17.2", "nvidia_module": "570.172.08"}
    assert status(judge(older, "p6-b200.48xlarge")) is Status.PASS
    assert status(judge({"efa_driver": "2.17.2"}, "g5.48xlarge")) is Status.PASS  # host memory by design


def test_pins():
    assert status(judge(efa_version="1.44", nccl_version="2.28.3")) is Status.PASS
    assert only(judge(efa_version="1.45.0"), Status.FAIL).expected == "1.45.0"
    assert only(judge(nccl_version="2.27.7"), Status.FAIL).measured == "2.28.3"


def test_not_known_is_said_and_no_pass():
    facts = versions.parse({"versions.json": sample("versions/p5.json")})
    assert "not known: aws-ofi-nccl" in only(judge_facts("software_compat", {"versions": facts}), Status.PASS).message
    nothing = judge_facts("software_compat", {"versions": {"kernel": "6.1.0"}})
    assert "EFA installer" in only(nothing, Status.SKIP).message
    assert status(judge_facts("software_compat", {"versions": {"kernel": "6.1.0"}}, "p4d.24xlarge")) is Status.SKIP


def test_odd_versions():
    assert status(judge({"efa_installer": "unknown", "ofi_nccl": "?", "nccl": ["x"]}, provider="x")) is Status.SKIP


def test_not_here_unreadable_missing():
    assert status(judge(kind="g4dn.xlarge")) is Status.SKIP
    assert status(judge_facts("software_compat", {"versions": BROKEN})) is Status.UNKNOWN


def test_a_driver_that_does_not_know_the_gpu():
    old = only(judge({"nvidia_module": "570.172.08"}), Status.FAIL)
    assert (old.measured, old.expected, old.remedy) == ("570.172.08", "580", Remedy.UPDATE_SOFTWARE)
    given = {"versions": {**GOOD, "nvidia_module": "570.172.08"}, "nvidia_smi": {"driver_version": "570.172.08"}}
    found = judge_facts("software_compat", given, "p6-b300.48xlarge")
    assert [f for f in found if f.status is Status.FAIL] == []  # driver_version says it
