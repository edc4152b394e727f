"""Role dcgm."""

from __future__ import annotations

import pytest


def test_version_is_the_pinned_one(host, wanted):
    """Flightline reads the output of the versions it knows."""
    name = (wanted["dcgm_packages"] or [f"datacenter-gpu-manager-4-cuda{wanted['dcgm_cuda_major']}"])[0]
    package = host.package(name)
    assert package.is_installed
    assert package.version.split(":")[-1].startswith(str(wanted["dcgm_version"]))


def test_host_engine_starts_at_boot(host, wanted):
    """Diagnostics and exporters talk to it."""
    assert host.service(wanted["dcgm_service"]).is_enabled


def test_host_engine_runs(host, wanted):
    """A stopped host engine makes every diagnosis unknown."""
    if wanted["dcgm_state"] != "started":
        pytest.skip("dcgm_state is enabled: it starts at the next boot")
    assert host.service(wanted["dcgm_service"]).is_running
