"""kernel_modules: all loaded, one missing, nvidia_uvm not yet, nouveau instead, the site's list."""

from tests.harness import BROKEN, only
from tests.unit.parsers.hosttools import read

from .table import FAIL, FIX_CONFIG, PASS, SKIP, UNKNOWN, WARN, judging, row, table


def judged(*names, kind="p5.48xlarge", expected=None):
    return judging("kernel_modules", {"modules": {"names": dict.fromkeys(names, 1)}}, kind, expected=expected)


test_kernel_modules = table(
    row("healthy node", judging("kernel_modules", {"modules": read("modules", "proc/p5-modules.txt")}), PASS,
        message="loaded: nvidia, efa, ib_uverbs, efa_nv_peermem"),
    row("peer memory is not required", judged("nvidia", "nvidia_uvm", "efa", "ib_uverbs"), PASS),
    row("missing", judged("nvidia", "nvidia_uvm", "ib_uverbs"), FAIL, device={"name": "efa"}, remedy=FIX_CONFIG),
    row("nouveau in its place", judged("nouveau", "efa", "ib_uverbs"), FAIL,
        evidence=("nouveau is loaded in its place",)),
    row("uvm is loaded on first use", judged("nvidia", "efa", "ib_uverbs"), WARN, device={"name": "nvidia_uvm"}),
    row("type without EFA or GPU", judged("nvidia", "nvidia_uvm", kind="g5.xlarge"), PASS),
    row("type without EFA or GPU",
        [judged("ext4", kind="none"), judging("kernel_modules", {"modules": BROKEN}, "none")], SKIP),
    row("declared modules", judged("lustre", kind="none", expected={"modules": ["lustre"]}), PASS),
    row("declared modules", judged("ext4", kind="none", expected={"modules": ["nvidia-fs"]}), FAIL),
    row("declared modules", judged("nvidia_fs", kind="none", expected={"modules": ["nvidia-fs"]}), PASS),
    row("unknown", judging("kernel_modules", {"modules": BROKEN}), UNKNOWN),
)  # fmt: skip


def test_nouveau_explains_the_missing_driver_alone():
    (finding,) = judged("nouveau", "nvidia", "nvidia_uvm", "ib_uverbs")
    assert (finding.device, finding.evidence) == ({"name": "efa"}, ())
    assert only(judged("efa", "ib_uverbs"), FAIL).evidence == ()
