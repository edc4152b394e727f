"""Role base: operating system settings of a training node, as the system's own tools give them."""

import re
from fnmatch import fnmatch

import pytest

from .looking import installed, say, units

SYSCTL = "/etc/sysctl.d/90-flightline.conf"


def test_file_is_as_the_role_writes_it(as_the_role_writes_it):
    """Whoever can write it decides how the system starts."""
    as_the_role_writes_it()


@pytest.mark.over("base_packages")
def test_package_is_installed(ask, item, part):
    """The preflight's probes and the operators rely on these tools."""
    say.holds(ask.version(part("base_packages")), f"no package {item}", "installed")


def test_tools_are_their_packages(ask, wanted):
    """A tool of the preflight that was changed answers what somebody wrote into it."""
    installed.unaltered(ask, wanted["base_packages"], "their packages")


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
    where = f"grep -rn {item} /etc/sysctl.d /etc/sysctl.conf /run/sysctl.d; remove the later line; {say.CONFIGURE}"
    say.same(f"at boot {item} becomes", last(assignments(ask), item), str(part("base_sysctl")), where)


def test_huge_pages(ask, wanted):
    """EFA's provider takes huge pages where there are any; memory reserved by mistake is lost to training."""
    pages = int(wanted["base_hugepages"])
    say.needs(pages >= 0, "base_hugepages leaves them to others")
    say.same("vm.nr_hugepages is", int(ask("sysctl -n vm.nr_hugepages")), pages)
    at_boot = last(assignments(ask), "vm.nr_hugepages")
    do = f"correct the later file; {say.CONFIGURE}"
    say.holds(str(at_boot or 0) == str(pages), f"at boot vm.nr_hugepages becomes {at_boot}", str(pages), do)


@pytest.mark.over("base_limits")
def test_limit_of_services(ask, item, part):
    """NCCL and EFA lock memory; with the default of 64 KiB the first job fails on registration."""
    value = str(part("base_limits")).replace("unlimited", "infinity")
    shown = ask("systemctl show --property=DefaultLimit%s --value", item.upper())
    do = f"grep -rn {item} /etc/systemd/system.conf /etc/systemd/system.conf.d; remove the line; systemctl daemon-reexec; {say.CONFIGURE}"
    say.same(f"systemd gives services {item}", shown, value, do)
    rows = [
        line.partition("=")[2]
        for line in ask.lines("systemd-analyze cat-config systemd/system.conf")
        if line.startswith(f"DefaultLimit{item.upper()}=")
    ]
    say.same(
        f"systemd's files give {item}",
        (rows or [None])[-1],
        value,
        f"grep -rn {item} /etc/systemd/system.conf.d; remove the line; systemctl daemon-reexec",
    )


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
            do = f"grep -rn {item} /etc/security; remove the later line; {say.CONFIGURE}"
            say.same(f"{user} gets the {kind} limit {item}", saw, value, do)


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
    do = say.PACKAGED.replace("PACKAGE", "openssh-server")
    say.none("no pam_limits in the sessions of", lists.split(), "session required pam_limits.so", do)


def test_swap_is_off(ask, wanted):
    """A training process that swaps stalls its whole collective."""
    say.needs(wanted["base_swap_off"], "the site leaves swap on (base_swap_off)")
    say.none("swap on", ask("swapon --show=NAME --noheadings").split(), "none", "swapoff --all")


def test_swap_stays_off(ask, wanted):
    """What fstab, a unit or a generator names is swapped to after the next boot."""
    say.needs(wanted["base_swap_off"], "the site leaves swap on (base_swap_off)")
    lines = ask("awk '$1 !~ /^#/ && $3 == \"swap\" {print $1}' /etc/fstab").split()
    lines += ask("find /etc/systemd/system /run/systemd/system -name '*.swap' 2>/dev/null || true").split()
    lines += ask("ls /etc/systemd/zram-generator.conf 2>/dev/null || true").split()
    say.none("swap is named by", lines, "nothing", "comment the line out, remove the unit")
    say.same("swap.target is", ask.unit("swap.target").get("LoadState"), "masked", "systemctl mask swap.target")


def config_value(ask, name, key):
    """The last assignment in systemd's own order of files."""
    rows = [line.partition("=") for line in ask.lines(f"systemd-analyze cat-config systemd/{name}")]
    values = [value.strip() for found, mark, value in rows if mark and found.strip() == key]
    return (values or [None])[-1]


def test_journal_is_kept_over_a_boot(ask, wanted, strangers):
    """After a crash the kernel's last words are what tells a bad GPU from a bad job."""
    do = f"grep -rnE '^(Storage|SystemMaxUse)=' /etc/systemd/journald.conf /etc/systemd/journald.conf.d; remove the line; systemctl restart systemd-journald; {say.CONFIGURE}"
    say.same("the journal's Storage is", config_value(ask, "journald.conf", "Storage"), "persistent", do)
    seen = config_value(ask, "journald.conf", "SystemMaxUse")
    say.same("the journal's SystemMaxUse is", seen, str(wanted["base_journal_max_use"]), do)
    limited = [
        f"{key}={value}"
        for key in ("ReadKMsg", "MaxLevelStore", "MaxRetentionSec")
        if (value := config_value(ask, "journald.conf", key)) not in (None, "", "yes", "debug", "0")
    ]
    say.none("the journal leaves out", limited, "the whole kernel log", "remove the line from journald.conf.d")
    here = ask("ls -d /var/log/journal/$(cat /etc/machine-id)/system.journal 2>/dev/null || true")
    do = "systemctl restart systemd-journald; journalctl --flush"
    say.holds(here, "no journal of this machine below /var/log/journal", "one on disk", do)
    units.effective(ask, strangers, "systemd-journald.service")
    units.fresh(ask, "systemd-journald.service", "/etc/systemd/journald.conf", "/etc/systemd/journald.conf.d/*.conf")


def test_drivers_are_held_back_from_automatic_upgrades(ask, wanted):
    """A driver that changes under a running job ends it, and Fabric Manager with it. apt is asked: a later file may clear the list."""
    say.needs(ask.family() == "Debian", "apt only")
    rows = ask.lines("apt-config dump Unattended-Upgrade::Package-Blacklist")
    patterns = [match.group(1) for row in rows if (match := re.search(r'Blacklist:: "(.*)";', row))]
    missing = [
        name for name in wanted["base_held_packages"] if not any(re.match(pattern, name) for pattern in patterns)
    ]
    do = f"grep -rn '#clear' /etc/apt/apt.conf.d; remove the line; {say.CONFIGURE}"
    say.none("unattended-upgrades may change", missing, "all of base_held_packages held back", do)


def test_kernel_is_held(ask, wanted):
    """A module that was built for one kernel is missing in the next one, and the GPUs with it."""
    say.needs(ask.family() == "Debian", "apt only")
    rows = ask.found("dpkg-query --show --showformat '${db:Status-Abbrev}|${Package}\\n' 'linux-*'")
    patterns = [str(name) for name in wanted["base_held_kernels"]]
    mine = [row.split("|") for row in rows if any(fnmatch(row.split("|")[1], pattern) for pattern in patterns)]
    installed_ones = [row for row in mine if row[0][1] == "i"]
    say.needs(installed_ones, "no package of base_held_kernels is installed")
    do = "apt-mark hold them"
    say.none("an upgrade would change", [name for state, name in installed_ones if state[0] != "h"], "held", do)


def test_governor_is_set(ask, wanted):
    """A core that saves power wakes late, and every collective waits for it."""
    rows = ask("cat /sys/devices/system/cpu/cpufreq/policy*/scaling_governor 2>/dev/null || true").split()
    say.needs(rows, "no frequency scaling here: the hypervisor has it")
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
