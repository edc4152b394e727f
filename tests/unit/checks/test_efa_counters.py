"""efa_counters: informs, never fails on one sample."""

from flightline_node.read.parsers import efa_counters
from tests.harness import sample

from .table import INFO, PASS, SKIP, UNKNOWN, judging, row, table


def judge(facts, instance_type="p4d.24xlarge"):
    return judging("efa_counters", {"efa_counters": facts}, instance_type)


def fixture(name):
    return efa_counters.parse({"efa-counters.json": sample(f"efa_counters/{name}")})


test_efa_counters = table(
    row("clean", judge(fixture("p4d-clean.json")), PASS, measured=0),
    row("errors inform and name the device", judge(fixture("p4d-drops.json")), INFO, measured=815,
        evidence=("rdmap144s27: rx_drops 812, retrans_timeout_events 3",)),
    row("retransmitted packets alone are normal",
        judge({"devices": {"efa_0": {"rx_drops": 0, "retrans_pkts": 5000}}, "count": 1}), PASS),
    *(row("a counter that could not be read", judge({"devices": {"efa_0": {"rx_drops": value}}, "count": 1}), UNKNOWN)
        for value in ("Invalid argument", None)),
    row("nothing counted is no pass",
        [judge({"devices": {}, "count": 0}), judge({"devices": {"efa_0": {"tx_bytes": 1}}, "count": 1}),
        judge({"devices": {}, "count": 0}, "g4dn.xlarge")], SKIP),
)  # fmt: skip
