"""Role lustre_client."""

from __future__ import annotations

import pytest


def test_client_is_installed(host):
    """Without its mount program the kernel gets an option list that it refuses."""
    assert host.exists("mount.lustre")


def test_file_systems_are_mounted_with_their_options(host, wanted):
    """A job that finds an empty directory in place of its data set trains on nothing, or fills the root disk."""
    if not wanted["lustre_client_mounts"]:
        pytest.skip("no file system in lustre_client_mounts")
    for mount in wanted["lustre_client_mounts"]:
        seen = host.mount_point(mount["path"])
        assert seen.exists
        assert mount["dns_name"] in seen.device


def test_mount_units_have_their_options(host, wanted):
    """flock is needed by checkpoints that several ranks write; _netdev keeps the boot from waiting for ever."""
    if not wanted["lustre_client_mounts"]:
        pytest.skip("no file system in lustre_client_mounts")
    for mount in wanted["lustre_client_mounts"]:
        unit = host.file(f"/etc/systemd/system/{mount['path'].strip('/').replace('/', '-')}.mount").content_string
        assert f"Options={wanted['lustre_client_mount_options']}" in unit.splitlines()


def test_file_systems_are_mounted_at_boot(host, wanted):
    """A mount made by hand is gone after the next boot."""
    if not wanted["lustre_client_mounts"]:
        pytest.skip("no file system in lustre_client_mounts")
    kind = "automount" if wanted["lustre_client_automount"] else "mount"
    for mount in wanted["lustre_client_mounts"]:
        assert host.service(f"{mount['path'].strip('/').replace('/', '-')}.{kind}").is_enabled


def test_lnet_has_its_interface(host, wanted):
    """LNet on the wrong interface is slow, or silent."""
    if not wanted["lustre_client_lnet"]:
        pytest.skip("lustre_client_lnet is false: the kernel has no Lustre modules")
    assert wanted["lustre_client_lnet_interface"] in host.check_output("lnetctl net show --net tcp")
