"""mtu: the inventory's, else one on all ENA interfaces."""

from flightline_node.read.parsers import sysfs
from tests.harness import sample

from .table import FAIL, PASS, SKIP, UNKNOWN, WARN, judging, row, table


def judge(sizes, driver="ena", **expected):
    net = {name: {"mtu": size, "operstate": "up", "driver": driver} for name, size in sizes.items()}
    return judging("mtu", {"sysfs": {"net": net}}, expected=expected)


NET = {
    "ens5": {"mtu": 9001, "operstate": "up", "driver": "ena"},
    "ens6": {"mtu": 1500, "operstate": "down", "driver": "ena"},
}


test_mtu = table(
    # the USB interface does not count
    row("equal", judging("mtu", {"sysfs": sysfs.parse({"sysfs.json": sample("sysfs/p5.json")})}), PASS, measured=9001,
        says="2 ENA"),
    row("different", judge({"ens5": 9001, "ens6": 1500}), WARN, evidence=("ens5: 9001", "ens6: 1500")),
    row("against the inventory", judge({"ens5": 9001, "ens6": 1500}, mtu=9001), FAIL, device={"name": "ens6"},
        measured=1500, expected=9001),
    row("against the inventory", [judge({"ens5": 1500}, mtu=1500), judge({"ens5": 1500})], PASS),
    row("interfaces that nobody brought up", judging("mtu", {"sysfs": {"net": NET}}, expected={"mtu": 9001}), PASS),
    row("interfaces that nobody brought up", judging("mtu", {"sysfs": {"net": {"ens6": NET["ens6"]}}}), SKIP,
        message="no interface with the ena driver is up"),
    row("unreadable", [judge({"ens5": "error: Invalid argument"}), judge({"ens5": 9001, "ens6": None})], UNKNOWN),
    row("no ENA", judge({"eth0": 1500}, driver="virtio_net"), SKIP, message="no interface with the ena driver"),
    row("no ENA", judge({}), SKIP),
)  # fmt: skip
