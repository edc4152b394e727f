"""Role lustre_client."""

import pytest

from .looking import installed, say, units

FIXED = ("noatime", "relatime", "nosuid", "nodev", "noexec", "ro", "rw", "flock", "localflock", "noflock")


@pytest.fixture
def mounts(wanted):
    say.needs(wanted["lustre_client_mounts"], "no file system in lustre_client_mounts")
    return [
        (entry, entry["path"][1:].replace("-", "\\x2d").replace("/", "-")) for entry in wanted["lustre_client_mounts"]
    ]


def test_file_is_as_the_role_writes_it(as_the_role_writes_it):
    """It decides how the client's modules are loaded."""
    as_the_role_writes_it()


def test_client_is_installed(ask):
    """Without its mount program the kernel gets an option list that it refuses."""
    say.holds(ask.has("mount.lustre"), "no mount.lustre on the PATH", "the client's package")


def test_client_is_its_packages(ask):
    """A mount program that was replaced mounts something else under the right name."""
    installed.unaltered(ask, ("lustre-client*",), "the client's packages", but="")


def test_file_systems_are_mounted_with_their_options(ask, mounts):
    """A job that finds an empty directory in place of its data set trains on nothing, or fills the root disk."""
    rows = [line.split() for line in ask.lines("findmnt --raw --noheadings --output TARGET,SOURCE,OPTIONS")]
    for entry, _ in mounts:
        seen = [row for row in rows if row[0] == entry["path"]]
        start = f"systemctl start $(systemd-escape --path --suffix=mount {entry['path']})"
        say.holds(seen, f"nothing is mounted on {entry['path']}", entry["dns_name"], start)
        # The last mount on a directory is what programs see there.
        do = f"umount {entry['path']}"
        say.holds(entry["dns_name"] in seen[-1][1], f"{seen[-1][1]} on {entry['path']}", entry["dns_name"], do)


def test_mount_units_are_as_the_role_writes_them(ask, strangers, site, name, mounts):
    """flock is needed by checkpoints that several ranks write; _netdev keeps the boot from waiting for ever."""
    for entry, unit in mounts:
        for kind in ("mount", "automount"):
            text = site.rendered(name, "lustre_client", f"{kind}.j2", ask.facts(), lustre_client_mount=entry)
            installed.compare(ask, f"/etc/systemd/system/{unit}.{kind}", installed.digest(text), 0o644)
        units.effective(ask, strangers, f"{unit}.mount", units.OWN)


def test_file_systems_are_mounted_at_boot(ask, strangers, wanted, mounts):
    """A mount made by hand is gone after the next boot."""
    kind = "automount" if wanted["lustre_client_automount"] else "mount"
    for _, unit in mounts:
        units.enabled(units.effective(ask, strangers, f"{unit}.{kind}", units.OWN), f"{unit}.{kind}")


def test_lnet_has_its_interface(ask, wanted):
    """LNet on the wrong interface is slow, or silent."""
    say.needs(wanted["lustre_client_lnet"], "lustre_client_lnet is false: the kernel has no Lustre modules")
    shown = ask("lnetctl net show --net tcp")
    say.holds(
        wanted["lustre_client_lnet_interface"] in shown,
        "LNet without the interface",
        wanted["lustre_client_lnet_interface"],
    )
