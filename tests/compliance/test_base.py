"""Role base: operating system settings of a training node, as the system's own tools give them."""

from __future__ import annotations

import re
from fnmatch import fnmatch

import pytest

from . import installed, say, units

SYSCTL = "/etc/sysctl.d/90-flightline.conf"
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


@pytest.mark.parametrize("entry", installed.of("base"), ids=str)
def test_file_is_as_the_role_writes_it(entry, as_the_role_writes_it):
    """Whoever can write it decides how the system starts."""
    as_the_role_writes_it(entry)


@pytest.mark.over("base_packages")
def test_package_is_installed(host, item, part):
    """The preflight's probes and the operators rely on these tools."""
    say.holds(host.package(part("base_packages")).is_installed, f"no package {item}", "installed")


def test_tools_are_their_packages(ask, wanted):
    """A tool of the preflight that was changed answers what somebody wrote into it."""
    found = [path for path in ask.altered(wanted["base_packages"]) if not path.startswith("/etc/")]
    say.none("not as their packages brought them", found, "unchanged files", "reinstall the package")


@pytest.mark.over("base_sysctl")
def test_kernel_parameter(ask, item, part):
    """The kernel's own value, whatever the files say."""
    say.same(f"{item} is", ask("sysctl -n %s", item).replace("\t", " "), str(part("base_sysctl")))


def assignments(ask):
    """What systemd-sysctl sets at boot: the last line that names a parameter wins, in the order that systemd gives."""
    found = []
    for line in ask.lines("systemd-analyze cat-config sysctl.d"):
        key, mark, value = line.partition("=")
        if mark and not line.lstrip().startswith(("#", ";")):
            found.append((key.strip().lstrip("-").replace("/", "."), value.strip()))
    return found


def last(pairs, key):
    """The value that wins; a parameter's own line stands above a pattern's (sysctl.d(5))."""
    plain = [value for name, value in pairs if name == key]
    patterns = [value for name, value in pairs if "*" in name and fnmatch(key, name)]
    return (plain or patterns or [None])[-1]


@pytest.mark.over("base_sysctl")
def test_kernel_parameter_survives_a_boot(ask, item, part):
    """What is only in the running kernel, or overruled by a later file, is gone after the next boot."""
    where = f"grep -rn {item} /etc/sysctl.d /etc/sysctl.conf /run/sysctl.d; remove the later line"
    say.same(f"at boot {item} becomes", last(assignments(ask), item), str(part("base_sysctl")), where)


def test_huge_pages(ask, wanted):
    """EFA's provider takes huge pages where there are any; memory reserved by mistake is lost to training."""
    pages = int(wanted["base_hugepages"])
    if pages < 0:
        pytest.skip("base_hugepages leaves them to others")
    say.same("vm.nr_hugepages is", int(ask("sysctl -n vm.nr_hugepages")), pages)
    at_boot = last(assignments(ask), "vm.nr_hugepages")
    say.holds(
        str(at_boot or 0) == str(pages),
        f"at boot vm.nr_hugepages becomes {at_boot}",
        str(pages),
        f"correct the later file; {say.CONFIGURE}",
    )


@pytest.mark.over("base_limits")
def test_limit_of_services(ask, item, part):
    """NCCL and EFA lock memory; with the default of 64 KiB the first job fails on registration."""
    value = str(part("base_limits")).replace("unlimited", "infinity")
    shown = ask("systemctl show --property=DefaultLimit%s --value", item.upper())
    say.same(
        f"systemd gives services {item}",
        shown,
        value,
        f"systemd-analyze cat-config systemd/system.conf; {say.CONFIGURE}",
    )
    rows = [
        line.partition("=")[2]
        for line in ask.lines("systemd-analyze cat-config systemd/system.conf")
        if line.startswith(f"DefaultLimit{item.upper()}=")
    ]
    say.same(f"systemd's files give {item}", (rows or [None])[-1], value, "remove the later file in system.conf.d")


def limit_rows(ask):
    """The lines of pam_limits in its order: limits.conf, then limits.d by name; the last that fits wins."""
    text = ask("cat /etc/security/limits.conf $(ls /etc/security/limits.d/*.conf 2>/dev/null | LC_ALL=C sort)")
    return [line.split("#")[0].split() for line in text.splitlines() if len(line.split("#")[0].split()) == 4]


def limit(rows, item, user, groups, kind):
    """What pam_limits gives a user: a line of the user's own stands above a group's, that above the star's."""
    fits = [
        (2 if who == user else 1 if who.removeprefix("@") in groups and who.startswith("@") else 0, place, value)
        for place, (who, hard, what, value) in enumerate(rows)
        if what == item
        and hard in ("-", kind)
        and (who == user or (who.startswith("@") and who[1:] in groups) or (who == "*" and user != "root"))
    ]
    return max(fits)[2] if fits else None


@pytest.mark.over("base_limits")
def test_limit_of_login_sessions(ask, item, part, wanted):
    """mpirun starts its daemons in login sessions, which do not inherit the services' limits."""
    value = str(part("base_limits"))
    rows = limit_rows(ask)
    for user in {"root", str(wanted["ansible_user"]), str(wanted["cluster_ssh_user"])}:
        groups = set(ask("id -Gn %s", user).split())
        for kind in ("soft", "hard"):
            saw = limit(rows, item, user, groups, kind)
            say.same(
                f"{user} gets the {kind} limit {item}",
                saw,
                value,
                f"grep -rn {item} /etc/security; remove the later line",
            )


@pytest.mark.over("base_limits")
def test_limit_is_given(ask, item, part, wanted):
    """The shell of a login, asked itself: PAM may leave pam_limits out, or a profile lower it."""
    value = str(part("base_limits"))
    if int(ask("sed -n 's/^CapBnd:[[:space:]]*//p' /proc/1/status"), 16) & 1 << 24 == 0:
        pytest.skip("no CAP_SYS_RESOURCE here: no login can be given more than it has")
    letter = {"memlock": "l", "nofile": "n", "nproc": "u", "stack": "s", "core": "c", "as": "v"}[item]
    say.same(f"a login gets {item}", ask("su - %s -c 'ulimit -H%s' </dev/null", wanted["ansible_user"], letter), value)


def test_logins_get_their_limits(ask):
    """Without pam_limits in a service's list its logins keep the kernel's defaults, whatever limits.d says."""
    lists = ask(
        "cd /etc/pam.d; for s in sshd su sudo runuser cron crond slurm; do [ -e $s ] || continue;"
        " l=$(sed -nE 's/^@include +//p; s/^.*(include|substack) +([a-z-]+).*/\\2/p' $s);"
        " grep -qE '^[[:space:]]*-?session.*pam_limits' $s $l || echo $s; done"
    )
    say.none(
        "no pam_limits in the sessions of",
        lists.split(),
        "session required pam_limits.so",
        "reinstall the package of the file in /etc/pam.d",
    )


def test_swap_is_off(ask, wanted):
    """A training process that swaps stalls its whole collective."""
    if not wanted["base_swap_off"]:
        pytest.skip("the site leaves swap on (base_swap_off)")
    say.none("swap on", ask("swapon --show=NAME --noheadings").split(), "none", "swapoff --all")


def test_swap_stays_off(ask, wanted):
    """What fstab, a unit or a generator names is swapped to after the next boot."""
    if not wanted["base_swap_off"]:
        pytest.skip("the site leaves swap on (base_swap_off)")
    lines = ask("awk '$1 !~ /^#/ && $3 == \"swap\" {print $1}' /etc/fstab").split()
    lines += ask("find /etc/systemd/system /run/systemd/system -name '*.swap' 2>/dev/null || true").split()
    lines += ask("ls /etc/systemd/zram-generator.conf 2>/dev/null || true").split()
    say.none("swap is named by", lines, "nothing", "comment the line out, remove the unit")
    say.same("swap.target is", ask.unit("swap.target").get("LoadState"), "masked", "systemctl mask swap.target")


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
        f"sshd has {item}", found, value, "sshd -T -C user=...,addr=...; remove the Match block or the earlier file"
    )


@pytest.mark.parametrize("option", sorted(SSH_MORE))
def test_ssh_opens_no_other_way(sshd_says, option):
    """Options that the role does not set, and that let other keys, users or programs in."""
    found = [
        f"{who}: {seen[option]}"
        for who, seen in sshd_says.items()
        if seen.get(option, SSH_MORE[option][0]) not in SSH_MORE[option]
    ]
    say.none(f"sshd has {option}", found, f"{' or '.join(SSH_MORE[option])}", "sshd -T; remove the line")


def test_sshd_runs_as_configured(ask, strangers):
    """Without it the node is lost to its operators; with another command line its settings are not the ones above."""
    name = "ssh" if ask.family() == "Debian" else "sshd"
    socket = f"{name}.socket"
    unit = units.effective(ask, strangers, f"{name}.service")
    if ask.unit(socket).get("ActiveState") != "active":
        units.runs(ask, strangers, f"{name}.service")
    words = set(re.findall(r"argv\[\]=(.*?) ;", unit.get("ExecStart", "")))
    say.none(
        "sshd is started as",
        [row for row in words if re.search(r" -[fo]", row)],
        "its default settings",
        f"systemctl cat {name}",
    )
    extra = ask("cat /etc/default/ssh /etc/sysconfig/sshd 2>/dev/null || true").splitlines()
    say.none(
        "sshd gets options",
        [row for row in extra if re.match(r"(SSHD_OPTS|OPTIONS)=.*-[fo]", row)],
        "none",
        "correct /etc/default/ssh",
    )
    units.fresh(ask, f"{name}.service", "/etc/ssh/sshd_config", "/etc/ssh/sshd_config.d/*.conf")


def test_time_is_kept(ask, strangers):
    """Logs of many nodes are compared by time, and tokens expire by it."""
    name = "chrony" if ask.family() == "Debian" else "chronyd"
    units.runs(ask, strangers, f"{name}.service")
    conf = "/etc/chrony/chrony.conf" if name == "chrony" else "/etc/chrony.conf"
    units.fresh(ask, f"{name}.service", conf, "/etc/chrony/conf.d/*.conf")


def configured_sources(ask):
    """What chronyd itself reads at its start, and the source files beside it that `chronyc reload sources` takes."""
    conf = "/etc/chrony/chrony.conf" if ask.family() == "Debian" else "/etc/chrony.conf"
    rows = ask.lines("chronyd -p -f %s", conf)
    folders = [row.split()[1] for row in rows if row.startswith("sourcedir ")]
    for folder in folders:
        rows += ask.lines(f"cat {folder}/*.sources 2>/dev/null || true")
    return {row.split()[1] for row in rows if row.split()[0] in ("server", "pool", "peer", "refclock")}


@pytest.mark.over("base_time_servers")
def test_time_source(ask, item, part):
    """Amazon's time source is reachable without a route to the internet, and the same for all nodes."""
    part("base_time_servers")
    say.holds(item in configured_sources(ask), f"chronyd reads no source {item}", item)
    running = {row.split(",")[2] for row in ask.lines("chronyc -n -c sources") if row.count(",") > 2}
    say.holds(
        item in running, f"chronyd follows {', '.join(sorted(running)) or 'nothing'}", item, "systemctl restart chrony"
    )


def test_no_other_time_source(ask, wanted):
    """A public pool beside Amazon's clock pulls the node away from the others."""
    allowed = set(wanted["base_time_servers"])
    running = {row.split(",")[2] for row in ask.lines("chronyc -n -c sources") if row.count(",") > 2}
    say.none(
        "other time sources",
        sorted((configured_sources(ask) | running) - allowed),
        ", ".join(sorted(allowed)),
        "grep -r . /etc/chrony*; remove the source",
    )


def test_no_other_clock_daemon(ask):
    """Two daemons that set one clock set it against each other."""
    names = ("systemd-timesyncd", "ntp", "ntpsec", "ntpd", "openntpd")
    found = [name for name in names if ask.unit(f"{name}.service").get("ActiveState") == "active"]
    say.none("also keep the time", found, "chrony alone", "systemctl disable --now it")


def config_value(ask, name, key):
    """The last assignment in systemd's own order of files."""
    rows = [line.partition("=") for line in ask.lines(f"systemd-analyze cat-config systemd/{name}")]
    values = [value.strip() for found, mark, value in rows if mark and found.strip() == key]
    return (values or [None])[-1]


def test_journal_is_kept_over_a_boot(ask, wanted, strangers):
    """After a crash the kernel's last words are what tells a bad GPU from a bad job."""
    say.same(
        "the journal's Storage is",
        config_value(ask, "journald.conf", "Storage"),
        "persistent",
        "remove the later file in journald.conf.d",
    )
    say.same(
        "the journal's SystemMaxUse is",
        config_value(ask, "journald.conf", "SystemMaxUse"),
        str(wanted["base_journal_max_use"]),
        "remove the later file in journald.conf.d",
    )
    limited = [
        f"{key}={value}"
        for key in ("ReadKMsg", "MaxLevelStore", "MaxRetentionSec")
        if (value := config_value(ask, "journald.conf", key)) not in (None, "", "yes", "debug", "0")
    ]
    say.none("the journal leaves out", limited, "the whole kernel log", "remove the line from journald.conf.d")
    here = ask("ls -d /var/log/journal/$(cat /etc/machine-id)/system.journal 2>/dev/null || true")
    say.holds(
        here,
        "no journal of this machine below /var/log/journal",
        "one on disk",
        "systemctl restart systemd-journald; journalctl --flush",
    )
    units.effective(ask, strangers, "systemd-journald.service")
    units.fresh(ask, "systemd-journald.service", "/etc/systemd/journald.conf", "/etc/systemd/journald.conf.d/*.conf")


def test_drivers_are_held_back_from_automatic_upgrades(ask, wanted):
    """A driver that changes under a running job ends it, and Fabric Manager with it. apt is asked: a later file may clear the list."""
    if ask.family() != "Debian":
        pytest.skip("apt only")
    rows = ask.lines("apt-config dump Unattended-Upgrade::Package-Blacklist")
    patterns = [match.group(1) for row in rows if (match := re.search(r'Blacklist:: "(.*)";', row))]
    missing = [
        name for name in wanted["base_held_packages"] if not any(re.match(pattern, name) for pattern in patterns)
    ]
    say.none(
        "unattended-upgrades may change",
        missing,
        "all of base_held_packages held back",
        "apt-config dump; remove the later #clear",
    )


def test_governor_is_set(ask, wanted):
    """A core that saves power wakes late, and every collective waits for it."""
    rows = ask("cat /sys/devices/system/cpu/cpufreq/policy*/scaling_governor 2>/dev/null || true").split()
    if not rows:
        pytest.skip("no frequency scaling here: the hypervisor has it")
    say.none(
        "governors", sorted(set(rows) - {str(wanted["base_governor"])}), str(wanted["base_governor"]), say.CONFIGURE
    )


def test_logs_are_rotated_at_all(ask, strangers):
    """Without its timer no log is ever rotated, whatever logrotate.d says."""
    if ask.unit("logrotate.timer").get("LoadState") == "not-found":
        say.holds(
            ask.answer("test -x /etc/cron.daily/logrotate").rc == 0,
            "neither logrotate.timer nor a daily job",
            "one of them",
            "reinstall logrotate",
        )
        return
    units.runs(ask, strangers, "logrotate.timer")
    units.effective(ask, strangers, "logrotate.service")
