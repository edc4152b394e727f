"""Role instance_store."""

from __future__ import annotations

import json


def test_store_is_mounted(host, wanted):
    """Without the mount, checkpoints and caches fill the root disk."""
    assert host.mount_point(wanted["instance_store_path"]).exists


def test_store_is_xfs(host, wanted):
    """The file system that large parallel writes were measured with."""
    # What programs see there, not what the mount table lists first.
    assert host.check_output("stat --file-system --format=%%T %s", wanted["instance_store_path"]) == "xfs"


def test_store_has_its_mount_options(host, wanted):
    """noatime: every read would otherwise be a write."""
    seen = set(host.mount_point(wanted["instance_store_path"]).options)
    # nodiscard is the kernel's default and not printed.
    assert set(wanted["instance_store_options"].split(",")) - {"nodiscard", "nofail"} <= seen


def test_store_is_made_again_at_boot(host):
    """Instance disks are blank after a stop and start."""
    assert host.service("flightline-instance-store").is_enabled


def test_store_is_open_to_jobs_and_sticky(host, wanted):
    """Jobs of several users share it and must not remove each other's files."""
    assert host.file(wanted["instance_store_path"]).mode == int(str(wanted["instance_store_mode"]), 8)


def test_boot_never_erases(host):
    """A disk with data on it is somebody's data, whatever the site allowed once."""
    assert json.loads(host.file("/etc/flightline/instance_store.json").content_string)["erase"] is False
