"""kernel_modules: all loaded, one missing, nvidia_uvm not yet, nouveau instead, the site's list."""

from flightline_node.model import Remedy, Status
from tests.harness import BROKEN, judge_facts, only, status
from tests.unit.parsers.hosttools import read


def judged(*names, kind="p5.48xlarge", expected=None):
    return judge_facts("kernel_modules", {"modules": {"names": dict.fromkeys(names, 1)}}, kind, expected=expected)


def test_healthy_node():
    finding = only(judge_facts("kernel_modules", {"modules": read("modules", "proc/p5-modules.txt")}), Status.PASS)
    assert finding.message == "loaded: nvidia, efa, ib_uverbs, efa_nv_peermem"


def test_peer_memory_is_not_required():
    assert status(judged("nvidia", "nvidia_uvm", "efa", "ib_uverbs")) is Status.PASS


def test_missing():
    finding = only(judged("nvidia", "nvidia_uvm", "ib_uverbs"), Status.FAIL)
    assert (finding.device, finding.remedy) == ({"name": "efa"}, Remedy.FIX_CONFIG)


def test_nouveau_in_its_place():
    finding = only(judged("nouveau", "efa", "ib_uverbs"), Status.FAIL)
    assert finding.evidence == ("nouveau is loaded in its place",)


def test_uvm_is_loaded_on_first_use():
    findings = judged("nvidia", "efa", "ib_uverbs")
    assert only(findings, Status.WARN).device == {"name": "nvidia_uvm"}
    assert status(findings) is Status.WARN


def test_type_without_efa_or_gpu():
    assert status(judged("nvidia", "nvidia_uvm", kind="g5.xlarge")) is Status.PASS
    assert status(judged("ext4", kind="none")) is Status.SKIP
    assert status(judge_facts("kernel_modules", {"modules": BROKEN}, "none")) is Status.SKIP


def test_declared_modules():
    assert status(judged("lustre", kind="none", expected={"modules": ["lustre"]})) is Status.PASS
    assert status(judged("ext4", kind="none", expected={"modules": ["nvidia-fs"]})) is Status.FAIL
    assert status(judged("nvidia_fs", kind="none", expected={"modules": ["nvidia-fs"]})) is Status.PASS


def test_unknown():
    assert status(judge_facts("kernel_modules", {"modules": BROKEN})) is Status.UNKNOWN


def test_nouveau_explains_the_missing_driver_alone():
    (finding,) = judged("nouveau", "nvidia", "nvidia_uvm", "ib_uverbs")
    assert (finding.device, finding.evidence) == ({"name": "efa"}, ())
    assert only(judged("efa", "ib_uverbs"), Status.FAIL).evidence == ()
