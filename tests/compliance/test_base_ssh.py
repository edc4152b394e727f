"""Role base: sshd, asked for every kind of connection."""

import re

import pytest

from .looking import say, units

REMOTE = ("127.0.0.1", "10.0.0.7", "203.0.113.7")
"""Addresses of documentation and private networks: a Match block may be for any."""


SSH_MORE = {
    "authorizedkeyscommand": ("none", "/usr/share/ec2-instance-connect/eic_run_authorized_keys %u %f"),
    "authorizedkeysfile": (".ssh/authorized_keys .ssh/authorized_keys2", ".ssh/authorized_keys"),
    "trustedusercakeys": ("none",),
    "permituserenvironment": ("no",),
    "hostbasedauthentication": ("no",),
    "ignorerhosts": ("yes",),
    "strictmodes": ("yes",),
    "usepam": ("yes",),
    "forcecommand": ("none",),
    "chrootdirectory": ("none",),
    "gatewayports": ("no",),
    "permittunnel": ("no",),
}
"""What no option of the role names and would open or close the node all the same; sshd's defaults, and EC2 Instance Connect's."""


def contexts(ask, passwd_names):
    """Every connection that a Match block may be for: users, addresses, host names and ports that the settings name."""
    text = ask("cat /etc/ssh/sshd_config /etc/ssh/sshd_config.d/*.conf 2>/dev/null || true")
    named = {"user": [], "address": [], "host": [], "localport": [], "group": []}
    for line in text.splitlines():
        words = re.split(r"[\s=]+", line.strip().strip('"'))
        if words and words[0].lower() == "match":
            for key, value in zip(words[1::2], words[2::2]):
                named.setdefault(key.lower(), []).extend(value.strip('"').split(","))
    users = [*passwd_names, *(name for name in named["user"] if name.isidentifier())]
    for group in named["group"]:
        users += ask("getent group %s | cut -d: -f4 | tr , '\\n' || true", group).split()
    addresses = [*REMOTE, *(entry.lstrip("!").partition("/")[0].replace("*", "1") for entry in named["address"])]
    hosts = ["node.example", *(entry.lstrip("!").replace("*", "x") for entry in named["host"])]
    ports = ["22", *named["localport"]]
    return sorted({(u, h, a, p) for u in dict.fromkeys(users) for h in hosts for a in addresses for p in ports})


@pytest.fixture
def sshd_says(ask, wanted):
    """sshd's own answer for each kind of connection, one block per context."""
    names = [str(wanted["ansible_user"]), "root", "nobody", str(wanted["cluster_ssh_user"])]
    asked = contexts(ask, names)
    shell = "; ".join(
        f"echo '= {u} from {a}'; /usr/sbin/sshd -T -C user={u},host={h},addr={a},laddr=10.0.0.1,lport={p} 2>&1 || exit 1"
        for u, h, a, p in asked
    )
    blocks = ask(shell).split("= ")[1:]
    found = {}
    for block in blocks:
        head, *rows = block.splitlines()
        found[head] = dict(row.split(" ", 1) for row in rows if " " in row)
    return found


@pytest.mark.over("base_ssh_options")
def test_ssh_option(sshd_says, item, part):
    """What sshd itself says for every user and address, Match blocks included, not what a file says."""
    value = str(part("base_ssh_options")).lower()
    found = [
        f"{who}: {seen.get(item.lower())}"
        for who, seen in sshd_says.items()
        if str(seen.get(item.lower())).lower() != value
    ]
    say.none(
        f"sshd has {item}",
        found,
        value,
        f"grep -rni {item} /etc/ssh/sshd_config /etc/ssh/sshd_config.d; remove the line; systemctl reload ssh; {say.CONFIGURE}",
    )


@pytest.mark.parametrize("option", sorted(SSH_MORE))
def test_ssh_opens_no_other_way(sshd_says, option):
    """Options that the role does not set, and that let other keys, users or programs in."""
    found = [
        f"{who}: {seen[option]}"
        for who, seen in sshd_says.items()
        if seen.get(option, SSH_MORE[option][0]) not in SSH_MORE[option]
    ]
    say.none(
        f"sshd has {option}",
        found,
        f"{' or '.join(SSH_MORE[option])}",
        f"grep -rni {option} /etc/ssh/sshd_config /etc/ssh/sshd_config.d; remove the line; systemctl reload ssh",
    )


def test_nothing_runs_at_every_login(ask, strangers):
    """sshd runs these before each command, also before those of the cluster's key."""
    rows = ask.found("ls -d /etc/ssh/sshrc /root/.ssh/rc /home/*/.ssh/rc")
    strangers.none("each login over ssh runs", rows, "nothing")


def test_sshd_runs_as_configured(ask, strangers):
    """Without it the node is lost to its operators; with another command line its settings are not the ones above."""
    name = "ssh" if ask.family() == "Debian" else "sshd"
    socket = f"{name}.socket"
    unit = units.effective(ask, strangers, f"{name}.service")
    if ask.unit(socket).get("ActiveState") != "active":
        units.runs(ask, strangers, f"{name}.service")
    words = set(re.findall(r"argv\[\]=(.*?) ;", unit.get("ExecStart", "")))
    do = f"systemctl cat {name}"
    say.none("sshd is started as", [row for row in words if re.search(r" -[fo]", row)], "its default settings", do)
    extra = ask.found("cat /etc/default/ssh /etc/sysconfig/sshd")
    do = "correct /etc/default/ssh"
    say.none("sshd gets options", [row for row in extra if re.match(r"(SSHD_OPTS|OPTIONS)=.*-[fo]", row)], "none", do)
    units.fresh(ask, f"{name}.service", "/etc/ssh/sshd_config", "/etc/ssh/sshd_config.d/*.conf")


def test_many_may_connect_at_once(sshd_says):
    """mpirun opens a connection to each node at once, Ansible several sessions in one: refused ones look like lost nodes."""
    found = []
    for who, says in sshd_says.items():
        begin = int(str(says["maxstartups"]).split(":")[0])
        found += [f"{who}: MaxStartups {says['maxstartups']}"] if begin < 10 else []
        found += [f"{who}: MaxSessions {says['maxsessions']}"] if int(says["maxsessions"]) < 4 else []
    say.none(
        "sshd refuses",
        found,
        "MaxStartups 10 and MaxSessions 4 or more",
        "grep -rniE '^Max(Startups|Sessions)' /etc/ssh/sshd_config /etc/ssh/sshd_config.d; remove the line; systemctl reload ssh",
    )
