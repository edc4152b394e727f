"""Role instance_store."""

import pytest

from .looking import installed, say, units

UNIT = "flightline-instance-store.service"


@pytest.fixture
def path(wanted):
    return str(wanted["instance_store_path"])


def test_file_is_as_the_role_writes_it(as_the_role_writes_it):
    """Root runs it at every boot, with disks in its hands."""
    as_the_role_writes_it()


def test_store_is_mounted(ask, path):
    """Without the mount, checkpoints and caches fill the root disk."""
    do = f"systemctl restart {UNIT}"
    say.holds(ask.answer("mountpoint -q %s", path).rc == 0, f"nothing is mounted on {path}", "the store", do)


def test_store_has_the_file_system_that_was_decided(ask, path, part_of):
    """xfs is what large parallel writes were measured with; an image's own store is taken as it is. What programs see there counts."""
    wanted = part_of("store")["type"]
    seen = ask("stat --file-system --format=%%T %s", path)
    do = f"umount {path}, and look what covers it"
    say.holds(seen.startswith(wanted[:3]), f"{path} is {seen}", wanted, do)


def test_store_has_its_mount_options(ask, path, wanted, part_of):
    """noatime: every read would otherwise be a write."""
    say.needs(not part_of("store")["adopted"], "the image's own service mounts it")
    seen = set(ask("findmnt --noheadings --output OPTIONS --mountpoint %s", path).splitlines()[-1].split(","))
    # nodiscard is the kernel's default and not printed.
    missing = set(wanted["instance_store_options"].split(",")) - {"nodiscard", "nofail"} - seen
    do = f"mount -o remount,{wanted['instance_store_options']} {path}"
    say.none(f"{path} is mounted without", sorted(missing), "instance_store_options", do)
    say.none(f"{path} is mounted", sorted(seen & {"ro", "noexec", "sync"}), "writable", f"mount -o remount,rw {path}")


def test_store_is_made_again_at_boot(ask, strangers):
    """Instance disks are blank after a stop and start."""
    unit = units.effective(ask, strangers, UNIT, units.OWN)
    units.enabled(unit, UNIT)
    units.starts(unit, "flightline_host.system.instance_store", "the role's program")


def test_store_is_open_to_jobs_and_sticky(ask, path, wanted):
    """Jobs of several users share it and must not remove each other's files."""
    say.same(f"{path} has mode", oct(ask.file(path)["mode"]), oct(int(str(wanted["instance_store_mode"]), 8)))


def test_boot_never_erases(ask, site, name):
    """A disk with data on it is somebody's data, whatever the site allowed once."""
    seen = ask.json("/etc/flightline/instance_store.json")
    say.same("at boot erase is", seen.get("erase"), False)
    wanted = site.of_role(name, "instance_store", ask.facts())["_instance_store_boot"]
    installed.agrees(seen, wanted, "instance_store.json")
