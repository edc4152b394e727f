"""What an operator wants of the watcher for what it sees: its own decision over the lines, and the reasons in docs/healing.md."""

import re
from pathlib import Path

import pytest

from flightline_node.watch.intake import Intake
from flightline_node.watch.verdicts import KERNEL

from .scene import XID_31

DOCS = (Path(__file__).parents[3] / "docs/healing.md").read_text()
TOLD = {name: word == "yes" for name, word in re.findall(r"(?m)^\| ([^|]+?) \| (yes|no) \| [^|]{20,} \|$", DOCS)}
XID_149 = "NVRM: Xid (PCI:0000:53:00): 149, NETIR_LINK_EVT {} XC0 i0 Link 04 (0x004505c6 0x00000000 0x00000000)"
LOCKUP = "watchdog: BUG: soft lockup - CPU#17 stuck for {}s! [python:4242]"
RCU = "rcu: INFO: rcu_sched self-detected stall on CPU"
EVICTED = "LustreError: 167-0: fsx-OST0000-osc-ffff8: This client was evicted by fsx-OST0000; in progress operations"
AER = "nvidia 0000:53:00.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction Layer, (Requester ID)"
STOPPED = "infiniband rdmap16s27: admin queue state not running"

CASES = [
    ("EFA: admin queue not running", [STOPPED]),
    ("EFA: admin queue not running", ["efa 0000:00:1d.0: Admin queue state is not running"]),
    ("EFA: FATAL error, in reset", ["efa 0000:00:1d.0: reset state, FATAL error"]),
    ("ENA: device reset failed", ["ena 0000:00:05.0 ens5: Device reset failed"]),
    ("ENA: device reset failed", ["ena 0000:00:05.0 ens5: ENA device reset failed"]),
    ("ENA: device reset completed, once", ["ena 0000:00:05.0: Device reset completed, status: 0"]),
    ("Xid 149, Fatal", [XID_149.format("Fatal")]),
    ("Xid 149, Nonfatal", [XID_149.format("Nonfatal")]),
    ("soft lockup, once", [LOCKUP.format(26)]),
    ("soft lockup, three, or one of a minute", [LOCKUP.format(26)] * 3),
    ("soft lockup, three, or one of a minute", [LOCKUP.format(62)]),
    ("RCU stall, once", [RCU]),
    ("RCU stall, five", [RCU] * 5),
    ("Lustre: evicted, however often", [EVICTED] * 40),
    ("AER non-fatal on a GPU, once", [AER]),
    ("AER non-fatal on a GPU, ten", [AER] * 10),
    ("Xid 31 of four jobs on one GPU", [XID_31.replace("4711", str(pid)) for pid in (11, 12, 13, 14)]),
]


@pytest.mark.parametrize(("case", "lines"), CASES)
def test_the_node_leaves_service_for_what_the_table_says(scene, case, lines):
    intake = Intake()
    intake.take(b"".join(f"3,{n},{n * 10**7},-;{text}\n".encode() for n, text in enumerate(lines)))
    assert bool(scene.rules().judge(KERNEL, {"kernel": intake.facts()})) is TOLD[case]


def test_the_table_has_every_case_and_no_other():
    assert set(TOLD) - {"nvidia-smi lists fewer GPUs, twice"} == {case for case, _ in CASES}


def test_an_efa_device_that_stopped_drains_by_its_own_reason(scene):
    marker = scene.with_slurm().boot().say(STOPPED).until(scene.drained)
    assert " for event.efa_admin_admin run " in marker["scheduler"]["reason"]
