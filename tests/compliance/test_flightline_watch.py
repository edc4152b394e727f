"""Role flightline_watch."""

from .looking import installed, say, units

UNIT = "flightline-watch.service"
PYTHON = "/usr/bin/python3 -m flightline_node watch"


def test_file_is_as_the_role_writes_it(as_the_role_writes_it):
    """A unit that runs something else watches nothing, and says so to nobody."""
    as_the_role_writes_it()


def test_watcher_knows_what_the_site_wants(ask, site, name):
    """Another scheduler or name in it, and the quarantine drains nothing."""
    wanted = site.of_role(name, "flightline_watch", ask.facts())["_flightline_watch_settings"]
    installed.agrees(ask.json("/etc/flightline/watch.json"), wanted, "/etc/flightline/watch.json")


def test_watcher_runs(ask, strangers, wanted):
    """systemd is asked: a drop-in may run /bin/true instead, and a unit that fails is not seen by a job."""
    say.needs(wanted["flightline_watch_enabled"], "the inventory wants no watcher")
    unit = units.runs(ask, strangers, UNIT, units.OWN)
    units.starts(unit, PYTHON)
    say.holds(unit.get("WatchdogUSec", "0") not in ("0", "infinity"), "no watchdog on the unit", "one", say.CONFIGURE)


def test_watcher_runs_the_package_that_is_installed(ask, wanted):
    """It runs from memory: after an update it is the old one until it is started again."""
    path = f"{wanted['flightline_watch_directory']}/flightline-node.pyz"
    say.needs(wanted["flightline_watch_enabled"], "the inventory wants no watcher")
    written_s = int(ask(f"stat --format=%Y {path}"))
    began_s = int(ask(f'date +%s --date="$(systemctl show --property=ActiveEnterTimestamp --value {UNIT})"'))
    saw = f"the watcher started {written_s - began_s} s before its package was written"
    say.holds(began_s >= written_s, saw, "a later start", say.CONFIGURE)


def test_state_can_be_written_by_root_alone(ask):
    """Whoever can remove the marker puts a sick node back into service."""
    installed.roots_alone(ask, "/var/lib/flightline")
