"""efa_count: against the type and between bus, driver and libfabric."""

from functools import partial

from flightline_node.read.parsers import fi_info
from tests.harness import BROKEN, sample

from .table import FAIL, FIX_CONFIG, NONE, PASS, REBOOT, REPLACE, SKIP, UNKNOWN, WARN, judging, row, table


def sources(pci=None, driver=None, libfabric=None):
    facts = {}
    if pci is not None:
        facts["lspci"] = {"efa": pci}
    if driver is not None:
        facts["efa_counters"] = {"devices": {f"rdmap{n}s27": {} for n in range(driver)}, "count": driver}
    if libfabric is not None:
        facts["fi_info"] = {
            "devices": [f"rdmap{n}s27" for n in range(libfabric)],
            "rdm_endpoints": libfabric,
            "error": None,
        }
    return facts


judge = partial(judging, "efa_count")

test_efa_count = table(
    *(row("p5", judge(given), wanted, remedy=remedy, expected=32)
        for given, wanted, remedy in [
            (sources(32, 32, 32), PASS, NONE), (sources(libfabric=32), PASS, NONE), (sources(pci=32), PASS, NONE),
            (sources(32, 31, 31), FAIL, REBOOT), (sources(32, 32, 31), FAIL, REBOOT),
            (sources(31, 31, 31), FAIL, REPLACE), (sources(30, 30, 30), FAIL, REPLACE),
            (sources(29, 29, 29), FAIL, FIX_CONFIG), (sources(16, 16, 16), FAIL, FIX_CONFIG),
            (sources(driver=0), FAIL, FIX_CONFIG), (sources(33, 33, 33), WARN, FIX_CONFIG),
        ]),
    *(row("none is another reason than too few", judge(sources(*[number] * 3)), FAIL, reason=reason)
        for number, reason in [(0, "none"), (16, "too_few")]),
    row("disagreement names the sources and the device", judge(sources(32, 32, 31)), FAIL,
        says=("PCI (lspci) 32", "libfabric (fi_info) 31"), evidence=("rdmap31s27",)),
    *(each for facts in [fi_info.parse({"fi-info.txt": sample("fi_info/p5-32-devices.txt")})] for each in (
        row("whole outputs", judge({"fi_info": facts}), PASS),
        row("whole outputs", judge({"fi_info": {**facts, "devices": facts["devices"][1:], "rdm_endpoints": 31}}), FAIL),
    )),
    row("one broken source leaves the others", judge({**sources(pci=32), "fi_info": BROKEN}), PASS),
    row("a source without a number is no evidence", judge({"lspci": {"nvidia_gpus": 8}}), UNKNOWN),
    row("types", [judge(sources(0), "g4dn.xlarge"), judge(sources(4), "p6e-gb200.36xlarge"), judge(sources(4), "none")],
        SKIP),
    row("types", judge(sources(4), "p6e-gb200.36xlarge", expected={"efa_count": 8}), FAIL),
)  # fmt: skip
