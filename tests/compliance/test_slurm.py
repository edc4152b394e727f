"""Role slurm."""

import re

import pytest

from .looking import installed, say, units

MUNGE = "/etc/munge/munge.key"


@pytest.fixture
def controller(wanted, peer):
    """The cluster's controller, asked as well."""
    there = peer(str(wanted["slurm_controller"]))
    say.needs(there is not None, "the controller does not answer")
    return there


@pytest.fixture
def unit(wanted, name):
    """slurmd on workers, slurmctld on the controller."""
    return "slurmctld" if name == wanted["slurm_controller"] else "slurmd"


def test_file_is_as_the_role_writes_it(as_the_role_writes_it):
    """slurmd runs it as root before every job; `exit 0` in it lets every node in."""
    as_the_role_writes_it()


def test_scheduler_runs(ask, strangers, unit):
    """A node whose daemon is down is idle, and billed."""
    units.runs(ask, strangers, f"{unit}.service")
    units.fresh(ask, f"{unit}.service", "/etc/slurm/*.conf", MUNGE)


def test_jobs_inherit_the_nodes_cpus_and_memory(ask, unit):
    """prlimit or taskset on the running daemon: every job after it has less, and no file shows it."""
    say.needs(unit == "slurmd", "jobs are slurmd's")
    pid = ask.unit("slurmd.service").get("MainPID", "0")
    rows = ask.lines("for p in 1 %s; do sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/$p/status; done", pid)
    say.same("slurmd may run on CPUs", rows[-1], rows[0], "systemctl restart slurmd")
    form = "prlimit --noheadings --raw --output HARD --memlock --pid"
    has, most = (_bytes(ask(f"{form} {number}")) for number in (pid, "1"))
    aim = _bytes(ask("systemctl show --value --property=LimitMEMLOCK slurmd"))
    say.holds(
        has >= min(aim, most), f"slurmd may lock {has} bytes of memory", f"{min(aim, most)}", "systemctl restart slurmd"
    )


def _bytes(text):
    return float("inf") if text.strip() in ("unlimited", "infinity") else float(text)


def test_scheduler_starts_at_boot(ask, strangers, unit):
    """After a reboot the node must come back by itself."""
    units.enabled(units.effective(ask, strangers, f"{unit}.service"), unit)


def test_scheduler_reads_the_clusters_settings(ask, unit):
    """An option of its command line, or of /etc/default, sends it to another configuration."""
    rows = ask.lines(f"ps -o args= -C {unit} || true")
    found = [row for row in rows if re.search(r" (-f|--conf\S*|-Z|-N)\b", row)]
    say.none(
        f"{unit} was started as",
        found,
        "its default settings",
        f"sed -i /OPTIONS=.*-/d /etc/default/{unit}; systemctl restart {unit}",
    )
    options = ask.found(f"cat /etc/default/{unit} /etc/sysconfig/{unit}")
    do = f"sed -i /OPTIONS=.*-/d /etc/default/{unit}; systemctl restart {unit}"
    say.none(f"{unit} gets", [row for row in options if re.match(r"\w*OPTIONS=.*-", row)], "no options", do)


def test_programs_are_their_packages(ask):
    """slurmd is root on every node of every job."""
    installed.unaltered(ask, ("slurm*", "munge", "libmunge*"), "their packages")


def test_munge_runs(ask, strangers):
    """Slurm trusts what munge signs; without it no node answers the controller."""
    units.runs(ask, strangers, "munge.service")
    units.fresh(ask, "munge.service", MUNGE)


def test_munge_key_is_secret(ask):
    """Whoever has the key can be any user on every node."""
    file = ask.file(MUNGE)
    uid = int(ask("id -u munge"))
    say.same(f"{MUNGE} has owner and mode", (file["uid"], oct(file["mode"])), (uid, oct(0o400)))


def test_munge_key_is_the_clusters(ask, controller):
    """A node with another key is down for the controller."""
    say.holds(
        ask.file(MUNGE)["sha256"] == controller.file(MUNGE)["sha256"],
        "another munge.key than the controller's",
        "the cluster's key",
    )


@pytest.mark.parametrize("file", ["slurm.conf", "gres.conf", "cgroup.conf", "topology.conf"])
def test_settings_are_the_ones_that_were_decided(ask, part_of, peer, wanted, file):
    """Slurm wants one configuration on all nodes; one that was changed alike everywhere is no less changed."""
    path = f"/etc/slurm/{file}"
    recorded = part_of("slurm")["files"]
    say.holds(path in recorded or not ask.files(path), f"{path}, which no role wrote", "no such file", f"rm {path}")
    say.needs(path in recorded, f"the role writes no {file} here")
    there = peer(str(wanted["slurm_controller"]))
    whole = bool(there) and there.files(path).get(path, {}).get("sha256") == recorded[path]
    installed.compare(ask, path, recorded[path], 0o644, there.text(path) if whole else None)


def test_no_settings_beside_the_clusters(ask, strangers):
    """Slurm reads plugstack.conf, job_container.conf and others of this directory when they are there."""
    known = {
        f"/etc/slurm/{name}" for name in ("slurm.conf", "gres.conf", "cgroup.conf", "topology.conf", "slurmdbd.conf")
    }
    found = ask.found("find /etc/slurm -type f")
    changed = [path for path in ask.altered(("slurm*",)) if path.startswith("/etc/slurm")]
    say.none(
        "changed settings of Slurm's packages", changed, "as the packages brought them", "reinstall the package's file"
    )
    strangers.none(
        "Slurm also reads", [path for path in found if path not in known], "only files of packages and roles"
    )


@pytest.mark.parametrize("setting", ["Prolog", "Epilog", "HealthCheckProgram", "UnkillableStepProgram"])
def test_flightline_is_asked(ask, setting):
    """The prolog keeps a job off a bad node, the health check drains it. Of two lines the last wins."""
    rows = [line.partition("=") for line in ask.lines("cat /etc/slurm/slurm.conf") if not line.startswith("#")]
    mine = [value.strip() for key, _, value in rows if key.strip().lower() == setting.lower()]
    say.holds(mine and "flightline" in mine[-1], f"{setting}={mine[-1] if mine else ''}", "Flightline's program")
