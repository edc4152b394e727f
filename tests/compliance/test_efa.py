"""Role efa."""

from __future__ import annotations

import pytest


def test_bundle_has_the_pinned_version(host, wanted):
    """Driver, libfabric and plugin are one set; another installer is another set."""
    first = host.file("/opt/amazon/efa_installed_packages").content_string.splitlines()[0]
    assert first.split(":")[1].strip() == str(wanted["efa_version"])


def test_libfabric_is_there(host, wanted):
    """NCCL falls back to TCP without it, at a tenth of the speed and without an error."""
    if wanted["efa_minimal"]:
        pytest.skip("efa_minimal: containers bring libfabric")
    assert host.file("/opt/amazon/efa/bin/fi_info").mode & 0o111


def test_plugin_is_there(host, wanted):
    """NCCL finds EFA through this plugin only."""
    if wanted["efa_minimal"]:
        pytest.skip("efa_minimal: containers bring the plugin")
    assert host.check_output("find /opt/amazon/ofi-nccl/ -name 'libnccl-net*.so*' | head -1") != ""


@pytest.mark.over("efa_modules")
def test_module_is_loaded_at_boot(host, item, part):
    """EFA devices appear with their module; a job that starts earlier sees none."""
    part("efa_modules")
    assert item in host.file("/etc/modules-load.d/flightline-efa.conf").content_string.splitlines()


def test_the_archive_belongs_to_root(host):
    """Between download and installation nobody may exchange it."""
    folder = host.file("/var/cache/flightline")
    assert (folder.user, folder.mode & 0o022) == ("root", 0)
