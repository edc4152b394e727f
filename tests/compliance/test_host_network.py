"""Names and packets as the host gets them."""

import ipaddress

from .looking import say

CONTAINERS = ("docker", "br-", "cni", "veth", "virbr", "podman", "flannel", "cilium")
"""Bridges of the host's own containers."""
JUMBO, PLAIN = 9001, 1500
"""EC2's frames inside a VPC (EC2 user guide, Network MTU), and Ethernet's."""


def test_names_are_asked_inside_the_network(ask):
    """A public name server knows no private zone, and is not reached without a way out: names fail one by one."""
    servers = [row.split()[1] for row in ask.found("grep -E '^nameserver' /etc/resolv.conf")]
    servers += [word for row in ask.found("resolvectl dns") for word in row.partition(":")[2].split()]
    far = sorted({one for one in servers if ipaddress.ip_address(one.partition("%")[0].partition("#")[0]).is_global})
    do = "let DHCP name the VPC's (169.254.169.253): remove the line from resolv.conf, resolved.conf.d or netplan"
    say.none("names are asked of", far, "name servers inside the network", do)


def test_dns_is_asked_at_all(ask):
    """Without dns in nsswitch.conf only /etc/hosts answers: S3 and the controller are unknown."""
    row = (ask.found("grep -E '^hosts:' /etc/nsswitch.conf") or ["hosts: files dns"])[0]
    known = {"dns", "resolve"} & set(row.split())
    say.holds(
        known, f"nsswitch.conf says {row}", "dns or resolve among hosts", "hosts: files dns in /etc/nsswitch.conf"
    )


def test_frames_have_the_networks_size(ask):
    """One node with small frames: large messages over TCP crawl, and every job with it is slow."""
    found = []
    for row in ask.found("ip -oneline -4 address show scope global"):
        link = row.split()[1]
        if link.startswith(CONTAINERS):
            continue
        mtu = int(ask("cat /sys/class/net/%s/mtu", link))
        driver = ask(f"readlink /sys/class/net/{link}/device/driver 2>/dev/null || true").rpartition("/")[2]
        least = JUMBO if driver == "ena" else PLAIN
        found += [f"{link} has {mtu}, of {least}"] if mtu < least else []
    say.none(
        "MTU",
        found,
        f"{JUMBO} with ena, else {PLAIN}",
        "ip link set LINK mtu SIZE, and look who set it (netplan, networkd)",
    )
