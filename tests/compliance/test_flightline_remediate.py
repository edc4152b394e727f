"""Role flightline_remediate."""

import pytest

from .looking import say, units

UNIT = "flightline-remediate.service"


@pytest.fixture(autouse=True)
def is_wanted(wanted):
    say.needs(wanted["flightline_remediate_enabled"], "the inventory wants no remediator")


def test_file_is_as_the_role_writes_it(as_the_role_writes_it):
    """Another mode in it, and what was to advise reboots nodes; another store, and it sees nothing."""
    as_the_role_writes_it()


def test_it_heals_the_inventorys_nodes(ask, site, name):
    """A node that is not in its inventory is healed by nobody."""
    role = site.of_role(name, "flightline_remediate", ask.facts())
    wanted = role.template("{{ _flightline_remediate_inventory | to_nice_yaml(indent=2) }}")
    say.same("/etc/flightline/remediate.yml is", ask.text("/etc/flightline/remediate.yml").strip(), wanted.strip())


def test_service_runs(ask, strangers):
    """systemd is asked: a drop-in may run another mode, and a service that is down heals nobody."""
    unit = units.runs(ask, strangers, UNIT, units.OWN)
    units.starts(unit, "flightline remediate --mode ", "flightline remediate")
    units.fresh(ask, UNIT, "/etc/flightline/remediate.*", "/opt/flightline/control/flightline-control.tar.gz")


def test_it_has_no_more_rights_than_its_mode_needs(ask, wanted):
    """It reads what nodes say, and in mode advise changes nothing: no root, no way to become root."""
    unit = dict(line.partition("=")[::2] for line in ask.lines(f"systemctl show -p User,NoNewPrivileges {UNIT}"))
    least = "flightline" if wanted["flightline_remediate_mode"] == "advise" else "slurm"
    say.holds(unit.get("User") in ("flightline", least), f"it runs as {unit.get('User') or 'root'}", least)
    say.same("NoNewPrivileges is", unit.get("NoNewPrivileges"), "yes")


def test_program_belongs_to_root(ask):
    """Whoever can change it runs on the head node what he likes."""
    strange = ask.lines("find /opt/flightline/control ! -user root -o -perm /022 ! -type l | head -5")
    say.none("changeable by others", strange, "root's alone", say.CONFIGURE)
