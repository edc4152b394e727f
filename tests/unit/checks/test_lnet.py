"""lnet: EFA where it is declared, interfaces down, Lustre not in use."""

from flightline_node.read.parsers import lnetctl
from tests.harness import BROKEN, sample
from tests.unit.parsers.hosttools import read

from .table import FAIL, INFO, PASS, SKIP, UNKNOWN, WARN, judging, row, table


def judge(file, instance_type="p5.48xlarge", **expected):
    return judging("lnet", {"lnetctl": read("lnetctl", f"lnet/{file}")}, instance_type, expected=expected)


def kernel_table():
    text = sample("lnet/nis-efa-down.txt").decode()
    return {"sysfs": {"lnet": {"nets": lnetctl.table(text)}}}


DOWN = {"lnetctl": {"nets": {"lo": {"up": 1, "down": []}, "tcp": {"up": 0, "down": ["10.1.0.21@tcp down"]}}}}
REFUSED = {"lnetctl": {"nets": {}, "error": "cannot get networks: Network is down"}}


test_lnet = table(
    row("EFA", judge("efa.txt", lustre_net="efa"), PASS, measured="tcp 1, efa 8"),
    row("EFA", judge("efa.txt"), PASS),
    row("only TCP", judge("tcp-only.txt", lustre_net="efa"), FAIL, measured="tcp 1"),
    row("only TCP", judge("tcp-only.txt"), INFO, says="does not say"),
    row("only TCP", [judge("tcp-only.txt", lustre_net="tcp"), judge("tcp-only.txt", "g5.xlarge")], PASS),
    row("the kernels table and an interface that is down",
        judging("lnet", kernel_table(), expected={"lustre_net": "efa"}), WARN, evidence=("10.1.0.101@efa down",),
        measured="tcp 1, efa 1"),
    row("declared and not loaded fails", judging("lnet", {"sysfs": {}}, expected={"lustre_net": "efa"}), FAIL),
    row("not in use", judging("lnet", {"sysfs": {}}), SKIP, says="not loaded"),
    row("not in use", judging("lnet", {"sysfs": {"lnet": {"nets": None}}}), SKIP, says="debugfs"),
    row("unreadable is unknown",
        [judging("lnet", {"sysfs": BROKEN}, expected={"lustre_net": "efa"}),
        judging("lnet", {}, expected={"lustre_net": "efa"})], UNKNOWN),
    row("none up under a mount fails",
        judging("lnet", {**DOWN, "mounts": {"mounts": [{"mount": "/fsx", "fstype": "lustre"}]}}), FAIL,
        evidence=("10.1.0.21@tcp down",), expected="one up"),
    row("none up under a mount fails", judging("lnet", DOWN), WARN),
    row("no network configured", judging("lnet", REFUSED), INFO, says="Network is down"),
    row("no network configured", judging("lnet", REFUSED, expected={"lustre_net": "efa"}), FAIL,
        says="Network is down"),
    row("no network configured",
        judging("lnet", {"lnetctl": {"nets": {"tcp": {"up": 1, "down": []}}, "error": "cannot get more"}},
        "g5.xlarge"), PASS),
    row("what was given and cannot be read is no answer", judging("lnet", {"lnetctl": BROKEN}, required=False),
        UNKNOWN),
)  # fmt: skip
