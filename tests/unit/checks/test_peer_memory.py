"""peer_memory: any way will do; none is a warning, never a block."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import BROKEN, judge_facts, only, status

NEW, OLD = "6.12.46-66.121.amzn2023.x86_64", "5.10.240-238.959.amzn2.x86_64"


def judge(*modules, kernel=None, taint=None, p2p=None, kind="p5.48xlarge", **rest):
    ports = {"rdmap79s0": {"ports": {}, **({"p2p": p2p} if p2p else {})}}
    sysfs = {"efa_ports": ports, **({"nvidia_taint": taint} if taint is not None else {})}
    facts = {"modules": {"names": dict.fromkeys(modules, 1)}, "sysfs": sysfs}
    return judge_facts("peer_memory", {**facts, **({"versions": {"kernel": kernel}} if kernel else {})}, kind, **rest)


@pytest.mark.parametrize("module", ["efa_nv_peermem", "nvidia_peermem"])
def test_module(module):
    assert only(judge("nvidia", module, kernel=OLD, taint="POE"), Status.PASS).measured == [module]


def test_the_drivers_word_and_dmabuf():
    assert "EFA driver" in only(judge("nvidia", p2p="NVIDIA"), Status.PASS).message
    assert "dma-buf" in only(judge("nvidia", kernel=NEW, taint="OE", p2p="None"), Status.PASS).message


@pytest.mark.parametrize(("kernel", "taint"), [(NEW, "POE"), (OLD, "OE"), (OLD, None), (None, "POE")])
def test_no_way(kernel, taint):
    # gdrdrv copies small messages; it is no way for the network card.
    finding = only(judge("nvidia", "gdrdrv", kernel=kernel, taint=taint), Status.WARN)
    assert finding.remedy is Remedy.FIX_CONFIG


def test_not_known_is_no_pass():
    assert status(judge("nvidia", kernel=NEW)) is Status.INFO
    assert status(judge("nvidia", taint="OE")) is Status.INFO
    assert status(judge("efa")) is Status.SKIP


@pytest.mark.parametrize("kind", ["p3dn.24xlarge", "g5.48xlarge", "g4dn.xlarge", "trn1.32xlarge"])
def test_types_without(kind):
    assert status(judge("nvidia", kernel=OLD, kind=kind)) is Status.SKIP


def test_without_a_type():
    assert "instance type" in only(judge("nvidia", kind="none"), Status.SKIP).message


def test_unreadable_and_missing():
    assert status(judge_facts("peer_memory", {"modules": BROKEN})) is Status.UNKNOWN


def test_a_site_that_says_there_is_rdma_needs_no_type():
    by_hand = {"rdma_read": True}
    assert status(judge("nvidia", "efa_nv_peermem", kind="none", expected=by_hand)) is Status.PASS
    assert status(judge("nvidia", kernel=OLD, kind="none", expected=by_hand)) is Status.WARN
    # A single-GPU type, for which nothing says that it has RDMA.
    assert "no RDMA read" in only(judge("nvidia", kind="g5.xlarge"), Status.SKIP).message
