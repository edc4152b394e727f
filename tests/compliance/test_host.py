"""What holds for every host, whatever its roles."""

import re

import pytest

from .looking import filters, installed, say

SYSTEM_PATHS = ("/etc", "/usr", "/opt", "/var/lib", "/lib/systemd")


@pytest.mark.parametrize("path", SYSTEM_PATHS)
def test_nothing_is_world_writable(ask, path):
    """A file that anybody may write lets any job on the node change what root runs. Sticky directories are shared on purpose."""
    found = ask.found("find %s -xdev ! -type l -perm -0002 ! -perm -1000", path)
    say.none("world-writable", found, "nothing that anybody may write", "chmod o-w PATH, and look who made it so")


@pytest.mark.parametrize("path", ["/etc/systemd/system", "/etc/flightline", "/var/log/flightline", "/etc/default"])
def test_no_secret_is_written_down(ask, path):
    """Unit files and logs are readable and shipped; keys belong to the instance role. Only the file's name is shown."""
    found = ask.found("grep -rIlE -e %s %s", installed.SECRET.pattern, path)
    say.none("a key or password in", found, "none in files", "revoke it; remove it; give the instance a role")


def test_no_unit_has_failed(ask):
    """A failed unit is something that a role promised and the node does not do."""
    failed = ask("systemctl list-units --state=failed --plain --no-legend || true").splitlines()
    say.none(
        "failed units",
        [line.split()[0] for line in failed],
        "none",
        "journalctl -b -u UNIT; systemctl reset-failed UNIT once it is understood",
    )


def test_no_unit_is_a_strangers(ask, strangers):
    """What systemd starts at boot runs as root; each such unit is a package's, a role's or the site's."""
    names = [
        line.split()[0]
        for line in ask.lines(
            "systemctl list-unit-files --state=enabled,enabled-runtime,linked,linked-runtime --no-legend --full"
        )
    ]
    plain = [name for name in names if "@" not in name]
    rows = ask.lines(f"systemctl show --value --property=FragmentPath {' '.join(plain)}") if plain else []
    strangers.none("units start at boot from", [path for path in rows if path], "units of packages and roles")


def test_nothing_runs_that_is_a_strangers(ask, strangers):
    """`systemd-run` starts a service or a timer as root that no file of /etc shows and no list of enabled units has."""
    kinds = "service,timer,socket,path"
    rows = ask.lines(f"systemctl list-units --type={kinds} --state=active,activating --plain --no-legend --full")
    names = " ".join(f"'{row.split()[0]}'" for row in rows)
    paths = ask.lines(f"systemctl show --value --property=FragmentPath {names}") if rows else []
    strangers.none("units run from", [path for path in paths if path], "units of packages and roles")


def test_the_next_boot_ends_where_jobs_run(ask):
    """With another default target the node comes back without network or scheduler."""
    saw = f"the default target is {ask('systemctl get-default')}"
    do = "systemctl set-default multi-user.target"
    say.holds(ask("systemctl get-default") in ("multi-user.target", "graphical.target"), saw, "multi-user.target", do)


def test_traffic_is_not_shaped(ask):
    """A delay or a rate that somebody tried out stays until the next boot, and the whole collective waits for this node."""
    rows = [row.split() for row in ask.found("tc qdisc show") if row.startswith("qdisc ")]
    shapers = {f"{row[4]} with {row[1]}" for row in rows if row[1] in ("netem", "tbf", "hfsc", "cake")}
    say.none("traffic passes", sorted(shapers), "no shaper", "tc qdisc del dev NAME root")


FILTERS = ("nft list ruleset", "iptables-legacy-save", "ip6tables-legacy-save", "iptables-save", "ip6tables-save")
"""Those of iptables that keep their rules in nf_tables are asked where nft itself is not there."""


def test_no_packet_is_dropped_by_a_filter(ask):
    """NCCL's bootstrap, MPI and Slurm connect between all nodes at ports of their own choice; security groups keep others out."""
    has = {tool for tool in FILTERS if ask.answer(f"command -v {tool.split()[0]}").rc == 0}
    say.needs(has, "no program that could make or show a rule: neither nft nor iptables-save")
    hidden = set(FILTERS[3:]) if FILTERS[0] in has else set()
    nft, *saved = (ask(tool) if tool in has - hidden else "" for tool in FILTERS)
    do = "nft list ruleset; remove the rule, or a waiver for it"
    say.none("packets meet", filters.dropped(nft, saved), "no rule that drops them", do)


def test_hosts_of_the_inventory_have_a_way(ask, site):
    """A blackhole route or a rule cuts one node off from another, while ssh from outside reaches both."""
    known = [site.expected(host) for host in site.hosts()]
    given = [str(one.get("node_address") or one.get("ansible_host") or "") for one in known]
    addresses = sorted({address for address in given if re.fullmatch(r"[0-9.]+", address)})
    lost = ask(f"for a in {' '.join(addresses)}; do ip -4 route get $a >/dev/null 2>&1 || echo $a; done").split()
    say.none(
        "no way to",
        lost,
        "a route to every host of the inventory",
        "ip route del blackhole HOST, or what else stands in ip route and ip rule",
    )


def test_no_schedule_is_a_strangers(ask, strangers):
    """A job of cron runs beside the training, as root, at a time that nobody remembers."""
    find = "find /etc/cron.d /etc/cron.hourly /etc/cron.daily /etc/cron.weekly /etc/cron.monthly /var/spool/cron /etc/crontab /etc/anacrontab /etc/systemd/user /var/lib/systemd/linger /root/.config/systemd/user /home/*/.config/systemd/user -type f ! -name .placeholder 2>/dev/null || true"
    strangers.none("scheduled by", ask(find).splitlines(), "only packages' jobs")


def test_systemds_own_settings_have_no_stranger(ask, strangers):
    """Drop-ins for all units, generators and systemd's own settings change every service at once."""
    find = (
        "find /etc/systemd /run/systemd /usr/local/lib/systemd \\( -path '*/service.d/*' -o -path '*/mount.d/*' -o -path '*-generators/*'"
        " -o -path '*/system.conf.d/*' -o -path '*/logind.conf.d/*' -o -path '*/journald.conf.d/*' -o -path '*/user.conf.d/*' -o -path '*.service.d/*' -o -path '*.target.d/*' -o -path '*.slice.d/*' -o -path '/etc/systemd/*.conf.d/*' \\) -type f 2>/dev/null || true"
    )
    strangers.none("systemd is changed by", ask(find).splitlines(), "only files of packages and roles")


def test_only_expected_ports_are_open(ask, wanted):
    """Every further listener is a way in. Loopback does not count."""
    allowed = {22, *map(int, wanted["compliance_open_ports"])}
    if "slurm_cluster_name" in wanted:
        allowed |= {6817, 6818, 6819}
    rows = ask.lines("ss -Hltn")
    ports = {int(row.split()[3].rsplit(":", 1)[1]) for row in rows if not re.match(r"(127\.|\[::1\])", row.split()[3])}
    do = "ss -ltnp names the program"
    say.none("listeners on TCP ports", sorted(ports - allowed), "22, Slurm's and compliance_open_ports", do)


def test_instance_metadata_needs_a_token(ask):
    """IMDSv1 hands the instance role's keys to any request that a program can be tricked into sending."""
    said = ask("python3 -c %s", PROBE).strip()
    say.needs(said != "none", "no instance metadata service answers: not an EC2 instance")
    do = "set HttpTokens required on the instance"
    say.same("the metadata service answers a request without token with", said, "401", do)


PROBE = """
import urllib.request, urllib.error
try:
    print(urllib.request.urlopen('http://169.254.169.254/latest/meta-data/', timeout=2).status)
except urllib.error.HTTPError as error:
    print(error.code)
except OSError:
    print('none')
"""


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "/etc/shadow", "/etc/sudoers", "/etc/systemd/system", "/usr/local/sbin", "/opt"]
)
def test_ownership_of_the_system_is_left_alone(ask, path):
    """A role that changes the owner of a system path opens it, or locks the system out."""
    say.same(f"{path} belongs to user", ask.file(path)["uid"], 0, f"chown root {path}")


def test_device_rules_are_not_a_strangers(ask, strangers):
    """A udev rule decides who may open a GPU or an EFA device, and what runs when one appears."""
    rows = ask.found("grep -rlE -e 'RUN|nvidia|infiniband|efa|nvme|MODE|PROGRAM' /etc/udev/rules.d /run/udev/rules.d")
    strangers.none("udev follows", rows, "only rules of packages")


def test_no_package_is_trusted_without_a_signature(ask):
    """A switch that turns apt's or dnf's verification off makes whoever holds the network root."""
    if ask.family() == "Debian":
        options = (
            "APT::Get::AllowUnauthenticated",
            "Acquire::AllowInsecureRepositories",
            "Acquire::AllowWeakRepositories",
            "Acquire::AllowDowngradeToInsecureRepositories",
            "APT::Authentication::TrustCDROM",
        )
        rows = dict(line.rstrip(";").split(" ", 1) for line in ask.lines("apt-config dump") if " " in line)
        found = [name for name in options if rows.get(name, '""').strip('"').lower() in ("1", "true", "yes", "on")]
        found += [
            name
            for name, value in rows.items()
            if name.endswith(("::Verify-Peer", "::Verify-Host")) and value.strip('"').lower() in ("false", "no", "0")
        ]
        found += ask.found(
            "grep -rniE 'trusted *[:=] *yes|allow-(insecure|weak) *[:=] *yes' /etc/apt/sources.list /etc/apt/sources.list.d"
        )
    else:
        found = ask.found(
            "grep -rniE '^(gpgcheck|repo_gpgcheck|sslverify) *= *(0|no|false)' /etc/dnf /etc/yum.conf /etc/yum.repos.d"
        )
    say.none(
        "packages are taken on trust:",
        found,
        "every repository signed and verified",
        f"grep -rnE '{'|'.join(found)}' /etc/apt/apt.conf.d; remove the line",
    )


def test_no_package_source_is_a_strangers(ask, strangers):
    """A further repository, or a further key, can replace any package of the node."""
    own = ["/etc/apt/sources.list", "/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list.d/ubuntu.sources"]
    find = "find /etc/apt/sources.list.d /etc/apt/trusted.gpg.d /etc/apt/trusted.gpg /etc/yum.repos.d -type f -size +0 2>/dev/null || true"
    found = [
        path
        for path in ask(find).splitlines()
        if path not in own and "/flightline-" not in path and not path.endswith((".save", "~"))
    ]
    strangers.none("packages come from", found, "the distribution's and the roles' repositories")


def test_kernel_was_started_as_wanted(ask):
    """A word on the kernel's command line keeps a driver out or turns a protection off for the whole boot."""
    words = ask("cat /proc/cmdline").split()
    bad = r"(modprobe\.blacklist|module_blacklist|initcall_blacklist|rd\.driver\.blacklist)=\S*(nvidia|efa|ib_|gdrdrv)|systemd\.mask=\S+|init=/bin/\S+|single|nvidia\S*=\S+|swiotlb=force|iommu=\S*force"
    found = [word for word in words if re.fullmatch(bad, word)]
    do = "correct the boot loader and reboot"
    say.none("the kernel was started with", found, "nothing that keeps drivers or units out", do)


def test_log_of_units_is_not_thrown_away(ask, strangers):
    """tmpfiles lines of strangers empty the directories that the evidence is in."""
    files = ask.found(
        "grep -lE '^[^#]*(/var/log/flightline|/var/log/journal|/var/lib/flightline|/etc/flightline|/opt/flightline)' /etc/tmpfiles.d/* /run/tmpfiles.d/*"
    )
    strangers.none("tmpfiles clears or changes our directories in", files, "only lines of packages and roles")
