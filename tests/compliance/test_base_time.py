"""Role base: the clock, as chronyd and chronyc have it."""

import pytest

from .looking import say, units


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
        rows += ask.found(f"cat {folder}/*.sources")
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


def test_time_source_is_asked(ask):
    """`chronyc offline`: the source is listed, the clock is called normal, and nobody asks it again."""
    # Counts: online, offline, in a burst and then online, in a burst and then offline, unresolved (chronyc(1)).
    _, offline, _, soon, *_ = ask("chronyc -c activity").split(",")
    say.same(
        "sources that chronyd leaves unasked:", str(int(offline) + int(soon)), "0", f"chronyc online; {say.CONFIGURE}"
    )


def test_no_other_time_source(ask, wanted):
    """A public pool beside Amazon's clock pulls the node away from the others."""
    allowed = set(wanted["base_time_servers"])
    running = {row.split(",")[2] for row in ask.lines("chronyc -n -c sources") if row.count(",") > 2}
    found = sorted((configured_sources(ask) | running) - allowed)
    say.none(
        "other time sources",
        found,
        ", ".join(sorted(allowed)),
        f"grep -rnE '^(pool|server|peer)' /etc/chrony /etc/chrony.conf; remove the line; systemctl restart chrony; {say.CONFIGURE}",
    )


def test_no_other_clock_daemon(ask):
    """Two daemons that set one clock set it against each other."""
    names = ("systemd-timesyncd", "ntp", "ntpsec", "ntpd", "openntpd")
    found = [name for name in names if ask.unit(f"{name}.service").get("ActiveState") == "active"]
    say.none("also keep the time", found, "chrony alone", "systemctl disable --now it")


def test_no_stranger_tells_the_clock_how_to_run(ask, strangers):
    """A file in conf.d can forbid steps, or make the node its own source, and every source still looks well."""
    found = ask.found("find /etc/chrony/conf.d /etc/chrony/sources.d /etc/chrony.d /run/chrony-dhcp -type f")
    strangers.none("chronyd also reads", found, "files of packages and the role's lines in chrony.conf")


def test_logs_are_written_in_universal_time(ask):
    """Logs of nodes in two zones are an hour apart by their words, and nobody sees which came first."""
    say.same("local time is", ask("date +%z"), "+0000", "timedatectl set-timezone Etc/UTC")


def test_the_hardware_clock_is_universal(ask):
    """In local time the clock is hours wrong from the boot on, until chrony has stepped it; what started before has wrong stamps."""
    rows = ask.found("grep -x LOCAL /etc/adjtime")
    say.none("/etc/adjtime says", rows, "UTC", "timedatectl set-local-rtc 0")
