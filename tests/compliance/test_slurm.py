"""Role slurm."""

from __future__ import annotations

import pytest


@pytest.fixture
def unit(host, wanted, site):
    """slurmd on workers, slurmctld on the controller."""
    return "slurmctld" if host.backend.host == wanted["slurm_controller"] else "slurmd"


def test_scheduler_runs(host, unit):
    """A node whose daemon is down is idle, and billed."""
    assert host.service(unit).is_running


def test_scheduler_starts_at_boot(host, unit):
    """After a reboot the node must come back by itself."""
    assert host.service(unit).is_enabled


def test_munge_runs(host):
    """Slurm trusts what munge signs; without it no node answers the controller."""
    assert host.service("munge").is_running


def test_munge_key_is_secret(host):
    """Whoever has the key can be any user on every node."""
    file = host.file("/etc/munge/munge.key")
    assert (file.user, file.mode & 0o077) == ("munge", 0)


@pytest.mark.parametrize("setting", ["Prolog=", "HealthCheckProgram="])
def test_flightline_is_asked(host, setting):
    """The prolog keeps a job off a bad node, the health check drains it."""
    lines = host.file("/etc/slurm/slurm.conf").content_string.splitlines()
    mine = [line for line in lines if line.startswith(setting)]
    assert mine
    assert all("flightline" in line for line in mine)
