"""Role dcgm."""

import pytest

from .looking import installed, say, units


def test_file_is_as_the_role_writes_it(as_the_role_writes_it):
    """Without the pin an upgrade brings a DCGM whose output nobody knows yet."""
    as_the_role_writes_it()


@pytest.fixture
def package(wanted):
    return (wanted["dcgm_packages"] or [f"datacenter-gpu-manager-4-cuda{wanted['dcgm_cuda_major']}"])[0]


def test_version_is_the_pinned_one(ask, wanted, package):
    """Flightline reads the output of the versions it knows."""
    version = ask.version(package)
    say.holds(version, f"no package {package}", "installed")
    seen = version.split(":")[-1]
    say.holds(seen.startswith(str(wanted["dcgm_version"])), f"{package} {seen}", str(wanted["dcgm_version"]))


def test_programs_are_their_packages(ask):
    """A dcgmi that was replaced says what it likes about the GPUs."""
    installed.unaltered(ask, ("datacenter-gpu-manager*",), "DCGM's packages", but="")


def test_host_engine_starts_at_boot(ask, strangers, wanted):
    """Diagnostics and exporters talk to it."""
    units.enabled(units.effective(ask, strangers, wanted["dcgm_service"]), wanted["dcgm_service"])


def test_host_engine_runs(ask, strangers, wanted):
    """A stopped host engine makes every diagnosis unknown."""
    say.needs(wanted["dcgm_state"] == "started", "dcgm_state is enabled: it starts at the next boot")
    units.runs(ask, strangers, wanted["dcgm_service"])
