"""Role container_toolkit."""

from __future__ import annotations

import pytest

FILES = {"containerd": "/etc/containerd/config.toml", "docker": "/etc/docker/daemon.json"}


@pytest.mark.over("container_toolkit_packages")
def test_package_has_the_pinned_version(host, item, part, wanted):
    """The toolkit's packages work only with each other's version."""
    package = host.package(part("container_toolkit_packages"))
    assert package.is_installed
    assert package.version == str(wanted["container_toolkit_version"])


@pytest.mark.over("container_toolkit_engines")
def test_engine_knows_the_runtime(host, item, part):
    """A container without this runtime starts and sees no GPU."""
    part("container_toolkit_engines")
    assert "nvidia-container-runtime" in host.file(FILES[item]).content_string


@pytest.mark.over("container_toolkit_engines")
def test_engine_runs(host, item, part):
    """Jobs in containers cannot start without it."""
    part("container_toolkit_engines")
    assert host.service(item).is_running
    assert host.service(item).is_enabled
