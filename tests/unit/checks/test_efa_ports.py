"""efa_ports: every port active, or named."""

from flightline_node.read.parsers import sysfs
from tests.harness import sample

from .table import FAIL, PASS, REBOOT, SKIP, UNKNOWN, judging, row, table


def judge(facts, instance_type="p5.48xlarge", **rest):
    return judging("efa_ports", {"sysfs": facts}, instance_type, **rest)


def fixture(name):
    return sysfs.parse({"sysfs.json": sample(f"sysfs/{name}")})


def port(state, physical):
    return {"efa_ports": {"rdmap79s0": {"ports": {"1": {"state": state, "phys_state": physical}}}}}


test_efa_ports = table(
    row("active", judge(fixture("p5.json")), PASS, measured=2),
    row("down and unreadable are told apart", judge(fixture("p5-port-down.json")), FAIL,
        device={"name": "rdmap79s0", "port": "1"}, measured="DOWN", remedy=REBOOT, all=2).also(UNKNOWN,
        of={"name": "rdmap80s0"}),
    # no state of the link: older kernels print none
    row("an active port without a link", judge(port("ACTIVE", "Disabled")), FAIL, measured="ACTIVE"),
    row("an active port without a link", judge(port("ACTIVE", None)), PASS),
    row("no evidence", [judge(port(None, "LinkUp")), judge({"efa_ports": {"rdmap79s0": {"ports": {}}}})], UNKNOWN),
    row("not here", judge({"efa_ports": {}}), SKIP, says="efa_count"),
    row("not here", judge(port("DOWN", "Disabled"), "g4dn.xlarge"), SKIP, says="no EFA"),
    row("what was seen is in the message", judge(port("DOWN", "Disabled")), FAIL,
        says="port 1 is DOWN (Disabled), wanted"),
    row("what was seen is in the message", judge(port(None, None)), UNKNOWN,
        says="port 1 is without a state (no physical state)"),
)  # fmt: skip
