"""Names and packets as the host gets them."""

import ipaddress
import re

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
        known,
        f"nsswitch.conf says {row}",
        "dns or resolve among hosts",
        "sed -i 's/^hosts:.*/hosts: files dns/' /etc/nsswitch.conf",
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
        found += [f"{link} {least} in place of {mtu}"] if mtu < least else []
    say.none(
        "MTU to be",
        found,
        f"{JUMBO} with ena, else {PLAIN}",
        "; ".join(f"ip link set {row.split()[0]} mtu {row.split()[1]}" for row in found) + ", and look who set it",
    )


def test_only_the_usual_rules_choose_routes(ask):
    """A rule of `ip rule` sends some packets elsewhere before any route that one looks at."""
    rows = [row for family in ("-4", "-6") for row in ask.found(f"ip {family} rule show")]
    usual = ("from all lookup local", "from all lookup main", "from all lookup default")
    # Amazon's images choose by source address where there are several interfaces (amazon-ec2-net-utils).
    mine = r"\d+:\s+from \S+ lookup \d+( proto static)?"
    found = [row for row in rows if not row.rstrip().endswith(usual) and not re.fullmatch(mine, row.strip())]
    say.none(
        "rules for routes",
        found,
        "local, main, default, and one for each interface's address",
        "; ".join(f"ip rule del priority {row.partition(':')[0]}" for row in found),
    )


def test_no_neighbour_is_written_by_hand(ask):
    """A permanent entry stays when the node at that address is replaced by another."""
    rows = [row for row in ask.found("ip neigh show nud permanent") if " dev lo " not in row]
    do = "; ".join(f"ip neigh del {row.split()[0]} dev {row.split()[2]}" for row in rows)
    say.none("permanent neighbours", rows, "none", do)


def test_no_link_of_a_strangers_has_routes(ask):
    """A dummy, a tunnel or a VPN with routes takes packets for other nodes to nowhere, or to another network."""
    kinds = ("dummy", "tun", "wireguard", "ipip", "gre", "sit", "vxlan", "vti")
    links = {
        row.split()[1].split("@")[0].rstrip(":") for kind in kinds for row in ask.found(f"ip -o link show type {kind}")
    }
    links = {link for link in links if not link.startswith(CONTAINERS)}
    rows = [row for row in ask.found("ip -4 route show") if any(f" dev {link} " in f"{row} " for link in links)]
    say.none(
        "routes lead to links without a device:",
        rows,
        "routes of network interfaces",
        "; ".join(f"ip link del {link}" for link in sorted(links)),
    )


def test_the_metadata_service_has_a_way(ask):
    """Without it there are no keys of the instance's role, and no notice of its end; answered by the host itself, wrong ones."""
    said = ask("ip -4 route get 169.254.169.254 2>&1 || true").splitlines()[0]
    good = not said.startswith(("local", "blackhole", "unreachable", "prohibit", "RTNETLINK answers: Invalid"))
    do = "ip route del blackhole 169.254.169.254; ip address del 169.254.169.254/32 dev lo"
    say.holds(good or "Network is unreachable" in said, f"169.254.169.254: {said}", "a route to a link", do)


def test_names_do_not_wait(ask):
    """With a timeout of 30 s a lost name server stops each login, each mount and each start of a job for minutes."""
    rows = ask.found("grep -nHE '^options.*(timeout:([6-9]|[1-9][0-9])|attempts:([4-9]|[1-9][0-9]))' /etc/resolv.conf")
    say.none(
        "resolv.conf has", rows, "timeout of 5 s or less, 3 attempts or fewer", "remove the lines, or let DHCP write it"
    )


def test_no_wrapper_refuses_hosts(ask):
    """hosts.deny closes sshd, which is built with it on some systems, to the nodes that start ranks."""
    rows = ask.found("grep -nHvE '^[[:space:]]*(#|$)' /etc/hosts.deny")
    say.none("/etc/hosts.deny has", rows, "no line", "remove the lines; security groups keep others out")


def test_offloads_are_on(ask):
    """Without segmentation in the device a CPU cuts every frame: checkpoints to S3 and FSx at a third of their speed."""
    say.needs(ask.has("ethtool"), "ethtool is not installed")
    found = []
    for row in ask.found("ip -oneline -4 address show scope global"):
        link = row.split()[1]
        shown = ask.found("ethtool -k %s", link) if not link.startswith(CONTAINERS) else []
        found += [
            f"{link} {one}" for one in shown if re.fullmatch(r"(generic-segmentation-offload|scatter-gather): off", one)
        ]
    say.none("turned off", found, "on", "ethtool -K LINK sg on tso on gso on, and look who turned it off")
