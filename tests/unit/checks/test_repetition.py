"""What warns once blocks when it repeats: one rule for every class, per device, shown in docs/checks.md."""

import pytest

from flightline_node.judge.checks import CHECKS
from flightline_node.model import Status
from flightline_node.read.parsers import kernel
from flightline_node.watch.verdicts import stands_alone
from tests.harness import judge_facts
from tools.catalogue import render

EFA = "efa 0000:4f:00.0: Failed to process command CREATE_QP (opcode 1) comp_status 7 err -62"
LOST = "Lustre: fsx-OST0003-osc-ffff: Connection to fsx-OST0003 (at 10.0.1.5@tcp) was lost; in progress operations will wait"
BACK = "Lustre: fsx-OST0003-osc-ffff: Connection restored to 10.0.1.5@tcp (at 10.0.1.5@tcp)"
EVICTED = "LustreError: 167-0: fsx-OST0003-osc-ffff: This client was evicted by fsx-OST0003; in progress operations using this service will fail."
CANCEL = "LNetError: 812:0:(kefalnd_cb.c:501:kefalnd_force_cancel_tx()) canceling TX[7] to 10.0.1.5@efa"
COMPLETION = "LNet: 812:0:(kefalnd_cb.c:611:kefalnd_tx_complete()) TX[7] completion with err[7]"
AER = (
    "nvidia 0000:53:00.0: AER: can't recover (no error_detected callback)",
    "pcieport 0000:50:01.0: AER: device recovery failed",
)
WATCHDOG = "ena 0000:7d:00.0 ens5: Keep alive watchdog timeout."
REPEATING = [
    ("kernel_errors", [EFA], 40, Status.WARN),
    ("lustre", [LOST, BACK], 40, Status.SKIP),
    ("lustre", [EVICTED], 6, Status.WARN),
    ("lustre", [CANCEL], 50, Status.WARN),
    ("lustre", [COMPLETION], 50, Status.WARN),
    ("pcie_aer", [*AER], 10, Status.WARN),
    (
        "pcie_aer",
        ["nvidia 0000:53:00.0: PCIe Bus Error: severity=Uncorrectable (Non-Fatal), type=Transaction Layer"],
        10,
        Status.WARN,
    ),
    (
        "xid",
        ["NVRM: Xid (PCI:0000:53:00): 92, pid='<unknown>', name=<unknown>, High single-bit ECC error rate"],
        5,
        Status.WARN,
    ),
    ("kernel_errors", [WATCHDOG], 40, Status.WARN),
    ("kernel_errors", ["ena 0000:7d:00.0 ens5: wd_expired: 9467"], 1, Status.FAIL),
    ("kernel_errors", ["nfs: server 10.0.0.9 not responding, still trying"], 40, Status.WARN),
    ("kernel_errors", ["mlx5_core 0000:05:00.0: High temperature on sensors with bit set 0 1"], 40, Status.WARN),
]


def worst(check, lines):
    log = "".join(f"[{9.0 * n:12.6f}] {line}\n" for n, line in enumerate(lines, 1)).encode()
    found = judge_facts(check, {"kernel": kernel.parse({"kernel.log": log})})
    order = [Status.SKIP, Status.PASS, Status.INFO, Status.WARN, Status.UNKNOWN, Status.FAIL]
    # What a preflight refuses, a running node stays in service with: it warns there.
    return max((Status.WARN if stands_alone(one) else one.status for one in found), key=order.index)


@pytest.mark.parametrize(("check", "lines", "times", "alone"), REPEATING)
def test_what_warns_once_blocks_when_it_repeats(check, lines, times, alone):
    assert worst(check, lines) is alone
    assert worst(check, lines * times) is Status.FAIL


def test_the_number_counts_per_device():
    many = [EFA.replace("4f", f"{number:02x}") for number in range(40)]
    assert worst("kernel_errors", many) is Status.WARN
    spread = [LOST.replace("OST0003", f"OST{number:04d}") for number in range(19)]
    assert (
        worst("lustre", [line for one in spread for line in (one, BACK.replace("OST0003", one[16:23]))])
        is not Status.FAIL
    )


def test_what_jobs_do_to_themselves_never_blocks_by_its_number():
    killed = ["Memory cgroup out of memory: Killed process 4242 (python) total-vm:1kB, anon-rss:1kB"]
    assert worst("kernel_errors", killed * 100) is Status.WARN


def test_every_class_is_declared_with_a_threshold_or_a_reason_and_shown():
    page = render(CHECKS.values())
    for check in CHECKS.values():
        limits = {threshold.name for threshold in check.thresholds}
        for one in check.repeated:
            assert (one.threshold in limits) != bool(one.why), f"{check.id}: {one.what}"
            assert f"{one.what}: {one.alone}, " in page
