"""Role flightline_node."""

import pytest

from .looking import installed, say, units

UNIT = "flightline-boot.service"


def test_file_is_as_the_role_writes_it(as_the_role_writes_it):
    """Root runs it at every boot and before every job; `exit 0` in it passes every node."""
    as_the_role_writes_it()


def test_package_is_what_the_role_installs(ask, wanted):
    """The verdict is this file's; one byte of it can turn a no-go into a go."""
    path = f"{wanted['flightline_node_directory']}/flightline-node.pyz"
    installed.compare(ask, path, installed.package_sha256(str(wanted["flightline_node_package"])), 0o755)


def test_installed_library_is_the_package(ask, wanted):
    """A preflight over Ansible starts it in place of what it would send. Names and bytes are compared by Python itself."""
    folder = wanted["flightline_node_directory"]
    program = (
        f"import glob, zipfile; z = zipfile.ZipFile('{folder}/flightline-node.pyz'); "
        f"(d,) = [p for p in glob.glob('{folder}/*/') if len(p.split('/')[-2]) == 16]; "
        "names = {n for n in z.namelist() if n.startswith('flightline_node/')}; "
        "there = {p[len(d):] for p in glob.glob(d + '**/*.py', recursive=True)}; "
        "print(sorted(names ^ there) + [n for n in names & there if open(d + n, 'rb').read() != z.read(n)])"
    )
    done = ask.answer(f'python3 -I -c "{program}"')
    say.same(f"{folder} differs from its package in", done.out.strip(), "[]", say.CONFIGURE)


@pytest.mark.parametrize("folder", ["/etc/flightline", "/var/lib/flightline", "/var/log/flightline", "/opt/flightline"])
def test_directory_belongs_to_root(ask, folder):
    """Whoever can write the directory can exchange what is in it, whatever the files' modes."""
    installed.roots_alone(ask, folder)
    say.none(f"{folder} has an access list", ask.file(folder)["attributes"], "none", f"setfacl -b {folder}")


def test_node_expects_what_the_inventory_says(ask, site, name):
    """Expected values, skipped checks, thresholds and waivers come from the inventory, never from the node under test."""
    wanted = site.of_role(name, "flightline_node", ask.facts())["_flightline_node_settings"]
    installed.agrees(ask.json("/etc/flightline/node.json"), wanted, "/etc/flightline/node.json")


def test_preflight_runs_at_every_boot(ask, strangers):
    """A node that was fine before a reboot need not be fine after it. systemd is asked: a drop-in may run /bin/true instead."""
    unit = units.effective(ask, strangers, UNIT, units.OWN)
    units.enabled(unit, UNIT)
    units.starts(unit, "/usr/local/sbin/flightline-boot", "flightline-boot")


def test_preflight_runs_before_the_scheduler(ask):
    """A job that starts before the verdict runs on a node nobody has judged."""
    before = ask.unit(UNIT).get("Before", "").split()
    found = [one for one in ("slurmd.service", "kubelet.service") if one not in before]
    say.none("flightline-boot is not ordered before", found, "before the schedulers", say.CONFIGURE)


def test_check_can_speak(ask):
    """The programs that the check starts by their names are the system's."""
    found = [
        path
        for path in ask.lines("for p in python3 timeout sh; do command -v $p; done")
        if not path.startswith(("/usr/bin/", "/bin/"))
    ]
    do = "remove the program that hides them"
    say.none("flightline-check would start", found, "python3, timeout and sh of the system", do)
    packages: tuple[str, ...] = ("python3", "python3-minimal", "python3.*-minimal", "python3-libs")
    packages += ("libpython3.*-minimal", "libpython3.*-stdlib")
    installed.unaltered(ask, packages, "Python's packages")


def test_logs_are_rotated(ask):
    """A log that grows for ever fills the root disk of a node that nobody logs into. logrotate reads all of its files."""
    done = ask.answer("logrotate --debug /etc/logrotate.conf 2>&1")
    say.same("logrotate ends with", done.rc, 0, "logrotate --debug /etc/logrotate.conf")
    say.holds(
        "/var/log/flightline/*.log" in done.out,
        "logrotate knows nothing of /var/log/flightline",
        "its logs",
        say.CONFIGURE,
    )
    twice = [line for line in done.out.splitlines() if "duplicate log entry" in line and "flightline" in line]
    say.none("logrotate refuses", twice, "one rule for our logs", "remove the other file in logrotate.d")
